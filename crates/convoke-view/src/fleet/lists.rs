//! The lists that are drawn: rows in their order, filtered, and counted as they change. It knows rows only,
//! never an event, and a row that changes costs the same whether there are ten or ten thousand beside it.

use std::cmp::Reverse;
use std::collections::HashMap;

use convoke_kernel::AgentId;

use super::findings::Findings;
use super::rows::{
    AgentRow, AgentState, FindingRow, LetterRow, PhaseRow, RowFilter, RunRow, TaskRow, VerdictWord,
};

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Lists {
    agents: Vec<AgentRow>,
    places: HashMap<AgentId, usize>,
    phases: Vec<PhaseRow>,
    orders: HashMap<String, usize>,
    pub(super) runs: Vec<RunRow>,
    pub(super) tasks: Vec<TaskRow>,
    pub(super) letters: Vec<LetterRow>,
    pub(super) findings: Findings,
    /// Rows of agents that were looked at to take something in.
    #[cfg(test)]
    pub(super) touched: usize,
}

/// Work of a phase that has no agent: it has not begun, or it was done or failed without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    /// No agent has begun it.
    Waiting,
    /// It ended well without an agent here.
    Done,
    /// It was skipped, or failed before an agent began.
    Failed,
}

impl Lists {
    /// The row of an agent.
    pub(super) fn agent(&self, id: &AgentId) -> Option<&AgentRow> {
        self.places.get(id).map(|place| &self.agents[*place])
    }

    /// The agents there are, in the order they came.
    pub(super) fn ids(&self) -> Vec<AgentId> {
        self.agents.iter().map(|row| row.id.clone()).collect()
    }

    /// Adds an agent behind all others.
    pub(super) fn add_agent(&mut self, row: AgentRow) {
        self.count(&row.phase, row.state, true);
        self.places.insert(row.id.clone(), self.agents.len());
        self.agents.push(row);
    }

    /// Changes the row of an agent, if there is one. Says whether it looks different.
    pub(super) fn change_agent(&mut self, id: &AgentId, change: impl FnOnce(&mut AgentRow)) -> bool {
        let Some(row) = self.places.get(id).and_then(|place| self.agents.get_mut(*place)) else {
            return false;
        };
        let before = row.clone();
        change(row);
        let is_changed = *row != before;
        let phase = row.phase.clone();
        let state = row.state;
        if (&phase, state) != (&before.phase, before.state) {
            self.count(&before.phase, before.state, false);
            self.count(&phase, state, true);
        }
        #[cfg(test)]
        {
            self.touched += 1;
        }
        is_changed
    }

    /// A phase begins, unless it has begun.
    pub(super) fn begin_phase(&mut self, name: &str) -> usize {
        if let Some(order) = self.orders.get(name) {
            return *order;
        }
        self.orders.insert(name.to_owned(), self.phases.len());
        self.phases.push(PhaseRow {
            name: name.to_owned(),
            total: 0,
            running: 0,
            waiting: 0,
            failed: 0,
            done: 0,
        });
        self.phases.len() - 1
    }

    fn count(&mut self, phase: &str, state: AgentState, comes: bool) {
        let order = self.begin_phase(phase);
        let phase = &mut self.phases[order];
        let figure = match state {
            AgentState::Asks | AgentState::Running => Some(&mut phase.running),
            AgentState::Failed => Some(&mut phase.failed),
            AgentState::Waiting | AgentState::Resting => Some(&mut phase.waiting),
            AgentState::Done => Some(&mut phase.done),
            // A stopped agent is neither done nor failed nor waiting for anything.
            AgentState::Stopped => None,
        };
        for figure in figure.into_iter().chain([&mut phase.total]) {
            *figure = moved(*figure, 1, comes);
        }
    }

    /// Counts work of a phase that is no agent's.
    pub(super) fn count_other(&mut self, phase: &str, other: Other, many: usize, comes: bool) {
        let order = self.begin_phase(phase);
        let phase = &mut self.phases[order];
        let figure = match other {
            Other::Waiting => &mut phase.waiting,
            Other::Done => &mut phase.done,
            Other::Failed => &mut phase.failed,
        };
        for figure in [figure, &mut phase.total] {
            *figure = moved(*figure, many, comes);
        }
    }

    /// The agents that pass this filter, phase by phase, the most interesting first.
    pub(super) fn agents(&self, only: &RowFilter) -> Vec<&AgentRow> {
        let text = Text::of(only);
        let mut rows: Vec<(usize, AgentState, usize)> = Vec::with_capacity(self.agents.len());
        for (place, row) in self.agents.iter().enumerate() {
            let is_wanted = only.state.is_none_or(|state| row.state == state)
                && text.is_in(&[
                    &row.label,
                    &row.phase,
                    &row.last,
                    &row.model,
                    row.act,
                    row.state.word(),
                    row.id.as_str(),
                ]);
            if is_wanted {
                rows.push((self.orders.get(&row.phase).copied().unwrap_or(usize::MAX), row.state, place));
            }
        }
        rows.sort_unstable();
        rows.into_iter().map(|(_, _, place)| &self.agents[place]).collect()
    }

    /// The phases that have any work, in the order they began.
    pub(super) fn phases(&self) -> Vec<PhaseRow> {
        self.phases.iter().filter(|phase| phase.total > 0).cloned().collect()
    }

    /// How many agents are at work.
    pub(super) fn running(&self) -> usize {
        self.phases.iter().map(|phase| phase.running).sum()
    }

    /// The tasks that pass this filter: claimed, open, blocked, failed, done.
    pub(super) fn tasks(&self, only: &RowFilter) -> Vec<&TaskRow> {
        let text = Text::of(only);
        let mut rows: Vec<&TaskRow> =
            self.tasks.iter().filter(|row| is_task_wanted(row, only, &text)).collect();
        rows.sort_by_key(|row| task_order(row.state));
        rows
    }

    /// The letters that pass this filter, the newest last.
    pub(super) fn letters(&self, only: &RowFilter) -> Vec<&LetterRow> {
        let text = Text::of(only);
        let is_wanted = |row: &&LetterRow| {
            text.is_in(&[
                &row.from,
                &row.to,
                row.kind,
                row.text.as_deref().unwrap_or_default(),
                row.id.as_str(),
            ])
        };
        self.letters.iter().filter(is_wanted).collect()
    }

    /// The findings that pass this filter, the most serious first.
    pub(super) fn findings(&self, only: &RowFilter) -> Vec<&FindingRow> {
        let text = Text::of(only);
        let mut rows: Vec<&FindingRow> =
            self.findings.iter().filter(|row| is_finding_wanted(row, only, &text)).collect();
        rows.sort_by_key(|row| (Reverse(row.severity), row.verdict));
        rows
    }
}

fn moved(figure: usize, many: usize, comes: bool) -> usize {
    if comes { figure.saturating_add(many) } else { figure.saturating_sub(many) }
}

fn task_order(state: &str) -> usize {
    ["claimed", "open", "blocked", "failed", "done"].iter().position(|known| *known == state).unwrap_or(5)
}

fn is_task_wanted(row: &TaskRow, only: &RowFilter, text: &Text) -> bool {
    let in_state = only.state.is_none_or(|state| match state {
        AgentState::Failed => row.state == "failed",
        AgentState::Running => row.state == "claimed",
        AgentState::Done => row.state == "done",
        AgentState::Waiting => matches!(row.state, "open" | "blocked"),
        AgentState::Stopped => row.state == "cancelled",
        AgentState::Asks | AgentState::Resting => false,
    });
    let owner = row.owner.as_deref().unwrap_or_default();
    let role = row.role.as_deref().unwrap_or_default();
    in_state && text.is_in(&[&row.subject, row.state, owner, role, &row.detail, row.id.as_str()])
}

fn is_finding_wanted(row: &FindingRow, only: &RowFilter, text: &Text) -> bool {
    let in_state = only.state.is_none_or(|state| match state {
        AgentState::Failed => row.verdict == VerdictWord::Refuted,
        AgentState::Done => row.verdict == VerdictWord::Confirmed,
        // No verifier has looked at these yet, or the verifiers could not tell.
        AgentState::Waiting => matches!(row.verdict, VerdictWord::Unverified | VerdictWord::Uncertain),
        AgentState::Running | AgentState::Asks | AgentState::Resting | AgentState::Stopped => false,
    });
    let severity = severity_word(row);
    in_state
        && (text.is_in(&[&row.claim, &row.label, &row.evidence, &row.reason, row.verdict.word(), severity])
            || row.places.iter().any(|place| text.is_in(&[&place.path])))
}

fn severity_word(row: &FindingRow) -> &'static str {
    use convoke_kernel::Severity::{High, Info, Low, Medium};
    match row.severity {
        Info => "info",
        Low => "low",
        Medium => "medium",
        High => "high",
    }
}

/// A text that is looked for, whatever its case.
struct Text(String);

impl Text {
    fn of(only: &RowFilter) -> Self {
        Self(only.text.trim().to_lowercase())
    }

    fn is_in(&self, fields: &[&str]) -> bool {
        self.0.is_empty() || fields.iter().any(|field| field.to_lowercase().contains(&self.0))
    }
}
