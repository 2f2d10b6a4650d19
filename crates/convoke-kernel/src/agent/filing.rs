//! What the call that ends an agent files: a report, verdicts or a value. A value that was accepted is never
//! compared with its schema again, so that a history stays the same whichever version folds it.

use super::agent_state::AgentState;
use super::state::{Exchange, Filed};
use crate::outcome::ToolResult;
use crate::tools::{self, Wanted};
use crate::wire::ToolCall;

/// What a finished call means for what is filed.
pub(super) enum Taken {
    /// Nothing.
    Nothing,
    /// This is filed.
    Filed(Filed),
    /// A value did not fit, and this is what the model was told.
    Misfit(String),
}

impl AgentState {
    /// What a call files, if it does.
    pub(super) fn taken(&self, call: &ToolCall, result: &ToolResult) -> Taken {
        let returns = call.name == tools::STRUCTURED_OUTPUT;
        if returns && self.spec.as_ref().is_some_and(|spec| spec.output.is_some()) {
            return match tools::value_of(call).filter(|_| !result.is_error) {
                Some(value) => Taken::Filed(Filed::Output(value)),
                None => Taken::Misfit(result.text.clone()),
            };
        }
        if result.is_error {
            return Taken::Nothing;
        }
        match self.read(call) {
            Ok(Wanted::Report(report)) => Taken::Filed(Filed::Report(report)),
            Ok(Wanted::Ballot(ballot)) => Taken::Filed(Filed::Ballot(ballot)),
            Ok(_) | Err(_) => Taken::Nothing,
        }
    }
}

impl Exchange {
    pub(super) fn take(&mut self, taken: Taken) {
        match taken {
            Taken::Filed(filed) => {
                // A value can be right without a look at the tree.
                let unseen = !self.looked && !matches!(filed, Filed::Output(_));
                self.degraded = unseen.then(|| "the report came without a single command".to_owned());
                self.filed = Some(filed);
            }
            // A value beside one that was accepted does not count as a try.
            Taken::Misfit(told) if self.filed.is_none() => {
                self.misfits += 1;
                self.misfit = told;
            }
            Taken::Misfit(_) | Taken::Nothing => {}
        }
    }
}
