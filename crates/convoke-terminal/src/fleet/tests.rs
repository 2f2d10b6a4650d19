//! What is folded from events, and the fleets that others draw in their tests.

use super::*;

mod agents;
mod pages;
mod programs;
mod runs;
mod stage;
mod team;
mod whole;

impl Fleet {
    /// A fleet of these rows, to draw.
    pub(crate) fn of_rows(
        agents: Vec<AgentRow>,
        runs: Vec<RunRow>,
        tasks: Vec<TaskRow>,
        letters: Vec<LetterRow>,
        found: Vec<FindingRow>,
    ) -> Fleet {
        let mut fleet = Fleet::new();
        let lists = &mut fleet.lists;
        (lists.runs, lists.tasks, lists.letters, lists.findings) =
            (runs, tasks, letters, findings::Findings::of(found));
        for row in agents {
            if row.role == Role::Lead {
                fleet.lead = Some(row.id.clone());
            }
            fleet.lists.add_agent(row);
        }
        fleet
    }

    /// Tokens, to draw.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.spent.usage = usage;
    }

    /// A ledger, to draw.
    pub(crate) fn set_ledger(&mut self, ledger: Ledger) {
        self.ledger = Some(ledger);
    }
}
