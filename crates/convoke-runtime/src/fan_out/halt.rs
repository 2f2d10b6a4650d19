//! A run whose lead a person has stopped: agents at work end by themselves, what no task here is at ends
//! here, and the run is closed with what there is. Nothing is sent to a model.

use convoke_kernel::{AgentId, RunEffect, RunInput};

use super::results::{item_result, stopped, voter_result};
use super::runner::{AgentJob, Done, RunRecord, Runner};
use crate::children;
use crate::drive::DriveOutcome;
use crate::error::Error;

impl Runner {
    /// Ends everything that no task here is at.
    pub(super) async fn end_what_is_left(&mut self, by: &str) -> Result<(), Error> {
        loop {
            let mut heard: Vec<RunRecord> = Vec::new();
            for effect in self.run.pending() {
                if self.begun.contains(&effect) {
                    continue;
                }
                match effect {
                    // Looking up what a report cites costs nothing.
                    RunEffect::Check { .. } => {
                        self.begun.insert(effect);
                        self.begin(effect);
                    }
                    // What an earlier process had begun holds money until its own stream says that it is
                    // over.
                    _ if self.has_begun(effect) => match self.agent_for(effect) {
                        Some(one) => self.end_by_itself(effect, one, by),
                        None => heard.extend(stopped(effect, by).map(|ended| (ended, Vec::new()))),
                    },
                    _ => heard.extend(stopped(effect, by).map(|ended| (ended, Vec::new()))),
                }
            }
            if heard.is_empty() {
                return Ok(());
            }
            self.record(heard, Vec::new()).await?;
        }
    }

    fn end_by_itself(&mut self, effect: RunEffect, one: AgentJob, by: &str) {
        self.begun.insert(effect);
        let parent = self.parent.clone();
        let by = by.to_owned();
        self.tasks.spawn(async move {
            let AgentJob { agent, spec, prompt, .. } = one;
            let ended = children::drive(&parent, &agent, spec, &prompt).await?;
            Ok(Done::Halted(effect, agent, Box::new(ended), by))
        });
    }
}

/// What an agent came to that was taken up only to end.
pub(super) fn halted(effect: RunEffect, agent: AgentId, ended: &DriveOutcome, by: &str) -> Option<RunInput> {
    let Some(outcome) = &ended.outcome else { return stopped(effect, by) };
    match effect {
        RunEffect::Work { item } => {
            Some(RunInput::Ended { item, result: Box::new(item_result(agent, ended, outcome)) })
        }
        RunEffect::Verify { item, voter } => {
            let result = Box::new(voter_result(agent, ended, outcome));
            Some(RunInput::VoterEnded { item, voter, result })
        }
        RunEffect::Check { .. } => None,
    }
}
