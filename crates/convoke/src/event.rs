//! What happens in a session while it runs, as a stream of typed events.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::answer::Status;
use crate::findings::{Finding, Severity, Verdict};

/// Something that happened in a session. Agents are named by their id; the lead's id comes first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A piece of text that an agent writes. [`Event::Retry`] withdraws what was written since the last call.
    Text {
        /// The agent.
        agent: String,
        /// The piece.
        text: String,
    },
    /// A request to the model failed and is tried again; what it had written so far does not count.
    Retry {
        /// The agent.
        agent: String,
        /// What went wrong.
        why: String,
    },
    /// An agent was started.
    AgentStarted {
        /// The agent.
        agent: String,
        /// What it is there for: `lead`, `worker`, `verifier`, `task`, `teammate`, or `callee`, which is one
        /// that a workflow's `agent()` started.
        role: &'static str,
        /// What people call it; empty for the lead.
        label: String,
    },
    /// An agent has ended what it was at.
    AgentEnded {
        /// The agent.
        agent: String,
        /// Whether it did what it was to do.
        ok: bool,
    },
    /// A tool call was started.
    ToolStarted {
        /// The agent.
        agent: String,
        /// The id of the call.
        call: String,
        /// The tool.
        tool: String,
        /// The command of `bash`, else the input as JSON.
        input: String,
    },
    /// A tool call has its outcome, whether it ran or not.
    ToolEnded {
        /// The agent.
        agent: String,
        /// The id of the call.
        call: String,
        /// Whether the model is told that it failed.
        ok: bool,
        /// The exit code, if it was a command that ended by itself.
        exit_code: Option<i32>,
        /// What the model reads.
        text: String,
    },
    /// A worker reported a finding; no verifier has looked at it yet.
    FindingReported {
        /// The finding.
        finding: Finding,
    },
    /// A finding has its verdict: of verifiers, or without them.
    FindingVerified {
        /// What was claimed.
        claim: String,
        /// How much it matters.
        severity: Severity,
        /// The verdict.
        verdict: Verdict,
        /// Why it is what it is.
        reason: String,
    },
    /// The session has spent so much so far.
    Spent {
        /// In dollars.
        usd: f64,
        /// In billionths of a dollar, for sums without rounding.
        nano_usd: u64,
        /// Tokens, in and out.
        tokens: u64,
    },
    /// An agent's call needs an answer.
    Asked {
        /// The agent.
        agent: String,
        /// What is wanted: `run: COMMAND`, `change: PATH`.
        wanted: String,
        /// Why it is asked.
        why: String,
    },
    /// What was said to the session came to an end.
    Finished {
        /// How.
        status: Status,
    },
}

/// The events of a session from now on. It ends with the session.
///
/// It is a [`Stream`] of the crate `futures`; [`next`](Self::next) needs no such crate.
#[derive(Debug)]
pub struct Events {
    pub(crate) receiver: UnboundedReceiver<Event>,
}

impl Events {
    /// The next event; `None` when the session is gone.
    pub async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.receiver.poll_recv(context)
    }
}
