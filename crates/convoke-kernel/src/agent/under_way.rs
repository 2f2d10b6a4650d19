//! What an agent that is taken up is told of its work: which calls of its exchange are done, which failed,
//! which were cut off, and which runs go on. A note of the harness is the newest thing that the model reads,
//! and a note with the capsule alone reads like a new beginning.

use serde_json::Value;

use super::agent_state::AgentState;
use super::decide::Draft;
use crate::outcome::{Ran, ToolResult};
use crate::prompts;
use crate::run::one_line;
use crate::tools;
use crate::wire::ToolCall;

/// The text never has more bytes than this.
pub(super) const BYTES: usize = 4 * 1_024;

/// The most lines of the note; the latest calls are the ones named.
const LINES: usize = 12;

/// Characters of what was asked, and of what one call was about.
const REQUEST: usize = 160;
const ABOUT: usize = 80;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    Done,
    Failed,
    CutOff,
}

/// Calls of an exchange that ended alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    tool: String,
    /// What the call was about, if it starts agents; such calls are not counted together.
    about: Option<String>,
    /// The run that it launched.
    run: Option<String>,
    how: CallEnd,
    count: u32,
}

impl AgentState {
    /// Counts a call that has ended.
    pub(super) fn count_call(&mut self, call: &ToolCall, result: &ToolResult) {
        let how = match (result.ran, result.is_error) {
            (Ran::Interrupted, _) => CallEnd::CutOff,
            (_, true) => CallEnd::Failed,
            (_, false) => CallEnd::Done,
        };
        let tool = call.name.clone();
        let run = result.launched.clone();
        let about = about(call);
        let Some(exchange) = self.exchange.as_mut() else { return };
        let alike = |made: &&mut Made| made.tool == tool && made.how == how && made.about.is_none();
        match exchange.made.iter_mut().find(alike).filter(|_| about.is_none()) {
            Some(made) => made.count += 1,
            None => exchange.made.push(Made { tool, about, run, how, count: 1 }),
        }
    }
}

impl Draft {
    /// The note about the work that the agent was in the middle of when it was taken up.
    pub(super) fn under_way(&self) -> Option<String> {
        let exchange = self.state.exchange.as_ref()?;
        let asked: String = one_line(&exchange.text).chars().take(REQUEST).collect();
        let goes_on = |run: &String| self.state.running.contains(run);
        let mut lines: Vec<String> = Vec::new();
        for made in &exchange.made {
            lines.push(match &made.run {
                Some(run) if goes_on(run) => {
                    format!("running: {}, as {run}; you are told when it has ended", made.words())
                }
                _ => made.line(),
            });
        }
        let told = |run: &&String| !exchange.made.iter().any(|made| made.run.as_ref() == Some(*run));
        for run in self.state.running.iter().filter(told) {
            lines.push(format!("running: {run}, started before; you are told when it has ended"));
        }
        let left_out = lines.len().saturating_sub(LINES);
        Some(prompts::under_way(&asked, &lines[left_out..], left_out))
    }
}

impl Made {
    fn words(&self) -> String {
        match &self.about {
            Some(about) => format!("{} ({about})", self.tool),
            None if self.count == 1 => format!("{}, 1 call", self.tool),
            None => format!("{}, {} calls", self.tool, self.count),
        }
    }

    fn line(&self) -> String {
        let words = self.words();
        match (self.how, &self.about) {
            (CallEnd::Done, Some(_)) => {
                format!("done: {words}; its result has been given to you, do not start it again")
            }
            (CallEnd::Done, None) => format!("done: {words}"),
            (CallEnd::Failed, _) => format!("failed: {words}; the reason has been given to you"),
            (CallEnd::CutOff, _) => format!("cut off: {words}; what came of it is not known"),
        }
    }
}

/// What a call that starts agents is about; `None` for any other call.
fn about(call: &ToolCall) -> Option<String> {
    let input: Value = serde_json::from_str(call.input.as_str()).unwrap_or_default();
    let about = tools::started_by(&call.name, &input)?;
    Some(one_line(&about).chars().take(ABOUT).collect())
}
