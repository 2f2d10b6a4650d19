//! Fleets that are made of rows and not of events, for the tests of what draws them.

use convoke_kernel::{Ledger, Role, Usage};

use super::Fleet;
use super::findings::Findings;
use super::rows::{AgentRow, FindingRow, LetterRow, RunRow, TaskRow};

impl Fleet {
    /// A fleet of these rows, to draw.
    pub fn of_rows(
        agents: Vec<AgentRow>,
        runs: Vec<RunRow>,
        tasks: Vec<TaskRow>,
        letters: Vec<LetterRow>,
        found: Vec<FindingRow>,
    ) -> Fleet {
        let mut fleet = Fleet::new();
        let lists = &mut fleet.lists;
        (lists.runs, lists.tasks, lists.letters, lists.findings) =
            (runs, tasks, letters, Findings::of(found));
        for row in agents {
            if row.role == Role::Lead {
                fleet.lead = Some(row.id.clone());
            }
            fleet.lists.add_agent(row);
        }
        fleet
    }

    /// Tokens, to draw.
    pub fn set_usage(&mut self, usage: Usage) {
        self.used.usage = usage;
    }

    /// A ledger, to draw.
    pub fn set_ledger(&mut self, ledger: Ledger) {
        self.ledger = Some(ledger);
    }
}
