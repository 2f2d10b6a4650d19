//! What goes on beside the conversation: runs in the background and what the agent is told of them, and calls
//! that a person makes without the model. Neither is ever consent to anything else.

use super::Unexpected;
use super::agent_state::AgentState;
use super::decide::Draft;
use super::mail::Opening;
use super::state::{Exchange, Slot, Stage};
use crate::event::CallMade;
use crate::outcome::{Outcome, Ran, ToolResult};
use crate::prompts;
use crate::segment::Segment;
use crate::tools;
use crate::wire::{FailureKind, ToolCall};

/// How the key of a person's call begins that tries lost work again.
pub const RETRY_KEY: &str = "retry-";

impl Exchange {
    /// Whether this exchange tries lost work again.
    pub(super) fn is_retry(&self) -> bool {
        self.call.is_some() && self.input.starts_with(RETRY_KEY)
    }
}

impl Draft {
    /// A run in the background has ended, or one that tried lost work again, and the agent is told.
    pub(super) fn told(&mut self, key: String, run: String, text: String) -> Result<(), Unexpected> {
        if self.state.stage != Stage::Idle {
            return Err(Unexpected::Busy);
        }
        if self.state.running.contains(&run) {
            return self.open(Opening { key, text, notice: Some(run), ..Opening::default() });
        }
        if !self.state.called_last() {
            return Err(Unexpected::Stale);
        }
        let body = Some(prompts::retried(&run, &text));
        self.open(Opening { key, text, body, notice: Some(run), ..Opening::default() })
    }

    /// A person calls `Workflow`. No history is written and no model asked.
    pub(super) fn call(&mut self, key: String, text: String, input: Segment) -> Result<(), Unexpected> {
        if self.state.stage != Stage::Idle {
            return Err(Unexpected::Busy);
        }
        if text.trim().is_empty() {
            return Err(Unexpected::Blank);
        }
        let exchange = self.state.exchange.as_ref().map_or(0, |exchange| exchange.number) + 1;
        // No API gives such an id, so no call of the model's can have it.
        let call = ToolCall { id: format!("person_{exchange}"), name: tools::WORKFLOW.to_owned(), input };
        self.emit(CallMade { exchange, input: key, text, call })?;
        Ok(())
    }
}

impl AgentState {
    pub(super) fn call_made(&mut self, e: &CallMade) -> Stage {
        if self.task.is_empty() {
            self.task = e.text.clone();
        }
        // A retry is no question of the person's: the outcome before it stays the agent's outcome.
        if e.input.starts_with(RETRY_KEY)
            && let Some(before) = self.exchange.as_ref().filter(|before| !before.is_retry())
        {
            self.answered_before = before.outcome.clone();
        }
        let exchange = Exchange::new(e.exchange, &e.input, &e.text, self.mark);
        self.exchange = Some(Exchange { call: Some(e.call.clone()), ..exchange });
        Stage::Tools(vec![Slot::queued(&e.call)])
    }

    /// Whether a person's call was the last thing that happened: only the result of such a call is told
    /// although the run was not in the background.
    pub(super) fn called_last(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.call.is_some())
    }

    /// A call of `Workflow` was answered. One that was refused whole for want of room stands until another is
    /// admitted.
    pub(super) fn fan_out_answered(&mut self, call: &ToolCall, result: &ToolResult) {
        if call.name != tools::WORKFLOW {
            return;
        }
        match (result.ran, result.failure) {
            (Ran::Refused, Some(FailureKind::Budget)) => {
                let why = result.text.lines().next().unwrap_or_default();
                self.refused_fan_out = Some(why.to_owned());
            }
            (Ran::Done, _) => self.refused_fan_out = None,
            (Ran::Refused | Ran::Interrupted, _) => {}
        }
    }

    /// A call launched this run, which goes on by itself until the agent is told of its end.
    pub(super) fn launched(&mut self, run: &str) {
        if !self.running.iter().any(|known| known == run) {
            self.running.push(run.to_owned());
        }
    }
}

/// The outcome of a person's own call.
pub(super) fn outcome_of(result: &ToolResult) -> Outcome {
    let text = result.text.clone();
    if !result.is_error {
        return Outcome::Ok { text };
    }
    let message = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("the call failed").to_owned();
    Outcome::Failed { kind: result.failure.unwrap_or(FailureKind::Internal), message, text }
}
