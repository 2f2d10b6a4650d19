//! One execution of a flat workflow as a pure state machine: [`Run::decide`] turns an input into
//! events, [`Run::apply`] folds an event, [`Run::pending`] lists what is to be done. Every item
//! goes its own way through work, check and verification; none waits for another. It starts no
//! agent, spends nothing and knows no clock.

mod digest;
mod event;
mod prompts;
mod state;
pub(crate) mod untrusted;
mod verdict;
mod view;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use event::{
    CitationsChecked, ItemEnded, ItemJudged, ItemResult, ItemStatus, Reused, RunClosed, RunEvent, RunSpec,
    RunStarted, Spent, VerifierEnded, VerifierStarted, VoterResult, WorkerStarted,
};
pub use prompts::{verifier_prompt, worker_prompt};
pub use state::IllegalRunEvent;
use state::{Item, Stage, Voter};
pub(crate) use untrusted::{one_line, quoted};
pub(crate) use verdict::word;
pub use view::{ItemState, ItemView, RunCounts, RunSummary, VerdictCounts, label};

use crate::citation::Checked;
use crate::findings::Report;
use crate::ids::AgentId;

/// Something that came from outside the kernel. Items and voters are numbered from 1.
#[derive(Debug, Clone)]
pub enum RunInput {
    /// The run is to exist.
    Start(Box<RunSpec>),
    /// An item gets this worker; recorded before the worker is started.
    Began {
        /// The item.
        item: u32,
        /// The worker.
        agent: AgentId,
    },
    /// An item has its result: from its worker, from an equal item, or because it is skipped.
    Ended {
        /// The item.
        item: u32,
        /// The result.
        result: Box<ItemResult>,
    },
    /// An item's citations were compared.
    Checked {
        /// The item.
        item: u32,
        /// For every finding, for every citation.
        checks: Vec<Vec<Checked>>,
    },
    /// A voter gets this verifier; recorded before the verifier is started.
    VoterBegan {
        /// The item.
        item: u32,
        /// The voter.
        voter: u32,
        /// The verifier.
        agent: AgentId,
    },
    /// A voter is done: from its verifier, from an equal one, or because it cannot look.
    VoterEnded {
        /// The item.
        item: u32,
        /// The voter.
        voter: u32,
        /// The result.
        result: Box<VoterResult>,
    },
}

/// Something to be done outside. What has begun stays listed until it has ended: a process that takes the run
/// up goes on with the agent that [`Run::worker`] or [`Run::verifier`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunEffect {
    /// Have a worker do the item.
    Work {
        /// The item.
        item: u32,
    },
    /// Compare the item's citations with what stands there.
    Check {
        /// The item.
        item: u32,
    },
    /// Have a verifier look into the item's findings.
    Verify {
        /// The item.
        item: u32,
        /// The voter.
        voter: u32,
    },
}

/// Why an input cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunRefused {
    /// A run needs subtasks, and a key for each.
    #[error(
        "a run needs at least one subtask and as many keys as subtasks: {subtasks} subtasks, {keys} keys"
    )]
    BadSpec {
        /// Subtasks given.
        subtasks: usize,
        /// Keys given.
        keys: usize,
    },
    /// It is an answer to something that is not pending, or does not fit it.
    #[error(transparent)]
    Stale(#[from] IllegalRunEvent),
}

/// The verdicts on the findings of a report that only its verifiers have looked into.
pub fn judge_report(
    report: &Report,
    checks: &[Vec<Checked>],
    voters: u32,
    votes: &[&VoterResult],
) -> Vec<crate::findings::Verdict> {
    let mut result = ItemResult::bare(ItemStatus::Ok);
    result.report = Some(report.clone());
    verdict::judge(&result, checks, voters, votes)
}

/// One execution of a flat workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    spec: Option<Arc<RunSpec>>,
    // Shared, so that a decision on one item copies that item and not all of them.
    items: Vec<Arc<Item>>,
    started_at: u64,
    closed_at: Option<u64>,
}

impl Run {
    /// A run to which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// What follows from this input. Time decides nothing here, so none is given.
    pub fn decide(&self, input: RunInput) -> Result<Vec<RunEvent>, RunRefused> {
        let touched = match &input {
            RunInput::Start(_) => None,
            RunInput::Began { item, .. }
            | RunInput::Ended { item, .. }
            | RunInput::Checked { item, .. }
            | RunInput::VoterBegan { item, .. }
            | RunInput::VoterEnded { item, .. } => Some(*item),
        };
        let event: RunEvent = match input {
            RunInput::Start(spec) => {
                let subtasks = spec.subtasks.len();
                let keys = spec.keys.len();
                if subtasks == 0 || subtasks != keys || u32::try_from(subtasks).is_err() {
                    return Err(RunRefused::BadSpec { subtasks, keys });
                }
                RunStarted { spec: *spec }.into()
            }
            RunInput::Began { item, agent } => WorkerStarted { item, agent }.into(),
            RunInput::Ended { item, result } => ItemEnded { item, result: *result }.into(),
            RunInput::Checked { item, checks } => CitationsChecked { item, checks }.into(),
            RunInput::VoterBegan { item, voter, agent } => VerifierStarted { item, voter, agent }.into(),
            RunInput::VoterEnded { item, voter, result } => {
                VerifierEnded { item, voter, result: *result }.into()
            }
        };
        let mut draft = self.clone();
        let mut events = Vec::new();
        draft.emit(event, &mut events)?;
        if let Some(item) = touched {
            draft.settle(item, &mut events)?;
        }
        Ok(events)
    }

    /// Folds an event that is in the journal.
    pub fn apply(&mut self, event: &RunEvent, at: u64) -> Result<(), IllegalRunEvent> {
        state::apply(self, event, at)
    }

    /// What is to be done, in the order of the items.
    pub fn pending(&self) -> Vec<RunEffect> {
        let mut effects = Vec::new();
        for (item, state) in (1..).zip(&self.items) {
            match state.stage {
                Stage::Queued | Stage::Working => effects.push(RunEffect::Work { item }),
                Stage::Checking => effects.push(RunEffect::Check { item }),
                Stage::Verifying => {
                    let voters =
                        (1..).zip(&state.voters).filter(|(_, voter)| !matches!(voter, Voter::Done(_)));
                    effects.extend(voters.map(|(voter, _)| RunEffect::Verify { item, voter }));
                }
                Stage::Judging | Stage::Judged => {}
            }
        }
        effects
    }

    /// What the run is made of; `None` before it started.
    pub fn spec(&self) -> Option<&RunSpec> {
        self.spec.as_deref()
    }

    /// Whether every item is done.
    pub fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }

    /// The item's worker, once it has one.
    pub fn worker(&self, item: u32) -> Option<&AgentId> {
        self.item(item)?.worker.as_ref()
    }

    /// The voter's verifier, while it is looking.
    pub fn verifier(&self, item: u32, voter: u32) -> Option<&AgentId> {
        match self.item(item)?.voters.get(voter.checked_sub(1)? as usize)? {
            Voter::Looking(agent) => Some(agent),
            Voter::Done(result) => result.agent.as_ref(),
            Voter::Waiting => None,
        }
    }

    /// The item's result, once it has one.
    pub fn result(&self, item: u32) -> Option<&ItemResult> {
        self.item(item)?.result.as_ref()
    }

    /// The verdicts on the item's findings; empty until it is judged.
    pub fn verdicts(&self, item: u32) -> &[crate::findings::Verdict] {
        self.item(item).map_or(&[], |item| &item.verdicts)
    }

    /// What the item's voters came to, as far as they have ended.
    pub fn votes(&self, item: u32) -> Vec<&VoterResult> {
        self.item(item).map(|item| item.votes()).unwrap_or_default()
    }

    fn item(&self, item: u32) -> Option<&Item> {
        self.items.get(item.checked_sub(1)? as usize).map(Arc::as_ref)
    }

    fn emit(
        &mut self,
        event: impl Into<RunEvent>,
        events: &mut Vec<RunEvent>,
    ) -> Result<(), IllegalRunEvent> {
        let event = event.into();
        // A draft is thrown away, so it does not matter when it happens.
        self.apply(&event, 0)?;
        events.push(event);
        Ok(())
    }

    /// What follows for this item without anything being done outside.
    fn settle(&mut self, item: u32, events: &mut Vec<RunEvent>) -> Result<(), IllegalRunEvent> {
        let nothing_cited = self.item(item).and_then(Item::nothing_to_compare);
        if let Some(findings) = nothing_cited {
            self.emit(CitationsChecked { item, checks: vec![Vec::new(); findings] }, events)?;
        }
        let voters = self.spec.as_ref().map_or(0, |spec| spec.voters);
        let verdicts = self.item(item).filter(|state| state.stage == Stage::Judging).and_then(|state| {
            Some(verdict::judge(state.result.as_ref()?, &state.checks, voters, &state.votes()))
        });
        if let Some(verdicts) = verdicts {
            self.emit(ItemJudged { item, verdicts }, events)?;
            if self.items.iter().all(|item| item.stage == Stage::Judged) {
                self.emit(RunClosed {}, events)?;
            }
        }
        Ok(())
    }
}
