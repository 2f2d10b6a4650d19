//! A person stops what an agent is at: the exchange ends where it stands, with every call
//! answered, and nothing of it is taken up again by itself. It begins nothing, and leaves a
//! history after which something can be said.

use super::Unexpected;
use super::agent_state::AgentState;
use super::decide::Draft;
use super::state::{Exchange, Filed, SlotState, Stage};
use crate::event::{ExchangeStopped, ModelFailed, ToolFinished};
use crate::outcome::{Outcome, ToolResult};
use crate::prompts;
use crate::spec::Role;
use crate::wire::{Failure, FailureKind, Retry};

impl Draft {
    /// Ends the exchange. An agent without one has nothing to stop.
    pub(super) fn stop(&mut self, by: String) -> Result<(), Unexpected> {
        if matches!(self.state.stage, Stage::New | Stage::Idle) {
            return Ok(());
        }
        self.give_up_the_call(&by)?;
        self.give_up_the_tools(&by)?;
        self.emit(ExchangeStopped { by })?;
        Ok(())
    }

    /// A reply that is still on its way is not waited for, and may have to be paid for.
    fn give_up_the_call(&mut self, by: &str) -> Result<(), Unexpected> {
        let Stage::Calling(asking) = &self.state.stage else { return Ok(()) };
        let call = asking.call;
        let attempt = asking.attempt;
        let failure = Failure {
            kind: FailureKind::Interrupted,
            message: format!("stopped by {by} while the model was answering"),
            retry: Retry::Never,
            request_id: None,
            unbilled: false,
            refused: None,
        };
        self.emit(ModelFailed { call, attempt, failure, retry_at: None })?;
        Ok(())
    }

    /// Every call gets its result, so that a legal history remains.
    fn give_up_the_tools(&mut self, by: &str) -> Result<(), Unexpected> {
        let Stage::Tools(slots) = &self.state.stage else { return Ok(()) };
        let mut results = Vec::new();
        for slot in slots {
            let result = match slot.state {
                SlotState::Finished(_) => continue,
                SlotState::Running => ToolResult::interrupted(prompts::stopped_under_way(by)),
                SlotState::Queued | SlotState::Asked(_) | SlotState::Allowed => {
                    ToolResult::refused(prompts::stopped_before(by))
                }
            };
            results.push(ToolFinished { id: slot.call.id.clone(), result });
        }
        for finished in results {
            self.emit(finished)?;
        }
        // A person's own call stands in no history, and has ended with its result.
        self.append_results_of(true)
    }
}

impl AgentState {
    pub(super) fn stopped(&mut self, e: &ExchangeStopped) -> Option<Stage> {
        let exchange = self.exchange.as_mut()?;
        exchange.stopped = true;
        let text = exchange.filed.as_ref().map_or_else(|| exchange.said.clone(), Filed::text);
        let message = format!("stopped by {}", e.by);
        exchange.so_far = Some(Outcome::Failed { kind: FailureKind::Cancelled, message, text });
        // A request for a summary that stayed in the history would be read as one by the next request.
        if let Some((mark, since)) = self.lasting.drop_summary() {
            self.mark = mark;
            self.lasting.since = since;
        }
        Some(Stage::Ending)
    }

    /// Whether a resume takes a closed exchange up again. An exchange that a person stopped stays
    /// stopped, except for an agent that works for another one (a worker, a callee): a resume
    /// means that its work is wanted after all.
    pub(super) fn takes_up(&self, exchange: &Exchange) -> bool {
        let for_others = !matches!(self.role(), Role::Lead | Role::Teammate);
        exchange.reopenable() || exchange.stopped && for_others
    }
}
