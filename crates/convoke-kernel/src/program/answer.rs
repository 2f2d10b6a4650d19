//! What an agent's end means to the program that asked for it, and when agents are no longer started because
//! all before them failed in the same way.

use std::collections::BTreeMap;

use super::event::{CallAnswer, CallKind, CallResult, MadeCall};
use crate::run::ItemStatus;
use crate::segment::Segment;
use crate::wire::FailureKind;

/// The number of agents in a row that the API refused, after which no further one is started.
const API_FAILURES: u32 = 5;

/// The number of agents that could not fit a schema, with none that could,
/// after which no further one is asked for it.
const SCHEMA_FAILURES: u32 = 3;

/// What the program gets for an agent that ended so. A dead agent is `null`; a failure that the program has
/// to know of, because asking again in the same way cannot help, is thrown.
pub fn answer_to(status: &ItemStatus, value: Option<&Segment>, with_schema: bool) -> CallAnswer {
    match status {
        ItemStatus::Ok => value.cloned().map_or_else(CallAnswer::null, CallAnswer::Value),
        ItemStatus::Skipped { .. } => CallAnswer::null(),
        ItemStatus::Failed { kind, message } => match kind {
            FailureKind::InvalidOutput if with_schema => {
                CallAnswer::Throw(format!("agent failed: {message}"))
            }
            FailureKind::Budget => CallAnswer::Throw(format!("budget exhausted: {message}")),
            FailureKind::Deadline => CallAnswer::Throw(format!("agent failed: {message}")),
            FailureKind::Sandbox => CallAnswer::Throw(format!("agent failed: {message}")),
            _ => CallAnswer::null(),
        },
    }
}

/// Whether an agent that ended so can go on where it stands when the call is
/// tried again; otherwise a new one begins.
pub(super) fn goes_on(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Api
            | FailureKind::RateLimited
            | FailureKind::Transport
            | FailureKind::Budget
            | FailureKind::Deadline
            | FailureKind::Interrupted
            | FailureKind::Cancelled
    )
}

/// The verdict on a finding that no verifier looked into.
pub fn unverified(status: &ItemStatus) -> CallAnswer {
    let reason = match status {
        ItemStatus::Failed { message, .. } => message.as_str(),
        ItemStatus::Skipped { reason } => reason.as_str(),
        ItemStatus::Ok => "nobody looked",
    };
    CallAnswer::Value(Segment::encode(
        &serde_json::json!({"verdict": "unverified", "reason": reason, "votes": 0}),
    ))
}

/// Whether the API refused this one request, and not all requests of this client.
fn is_about_one_request(message: &str) -> bool {
    ["answered 400", "answered 413"].iter().any(|status| message.contains(status))
}

/// Counts failures of the same kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Breaker {
    /// Agents in a row that the API turned down, and what it said last.
    api: u32,
    said: String,
    /// By schema: agents that could not fit it, and whether one could.
    schemas: BTreeMap<String, (u32, bool)>,
}

impl Breaker {
    pub(super) fn count(&mut self, call: &MadeCall, result: &CallResult) {
        if !call.kind.is_agents()
            || result.reused.is_some()
            || result.kept.is_some()
            || result.agents.is_empty()
        {
            return;
        }
        let schema = call.schema.as_ref().map(|schema| self.schemas.entry(schema.clone()).or_default());
        match &result.status {
            ItemStatus::Ok => {
                self.api = 0;
                if let Some(schema) = schema {
                    schema.1 = true;
                }
            }
            ItemStatus::Failed { kind: FailureKind::InvalidOutput, message } => {
                self.api = 0;
                if let Some(schema) = schema {
                    schema.0 += 1;
                    self.said.clone_from(message);
                }
            }
            // A fault of one request says nothing about the next.
            ItemStatus::Failed { kind: FailureKind::Api, message } if is_about_one_request(message) => {}
            ItemStatus::Failed {
                kind: FailureKind::RateLimited | FailureKind::Api | FailureKind::Transport,
                message,
            } => {
                self.api += 1;
                self.said.clone_from(message);
            }
            ItemStatus::Failed { .. } | ItemStatus::Skipped { .. } => {}
        }
    }

    /// What becomes of a call that is not started, because those before it all failed in the same way.
    pub(super) fn refuses(&self, call: &MadeCall) -> Option<CallResult> {
        if !call.kind.is_agents() {
            return None;
        }
        let failed = |kind, message: String| {
            let status = ItemStatus::Failed { kind, message };
            let answer = match call.kind {
                // A call of `verify` always gets a verdict.
                CallKind::Verify => unverified(&status),
                _ => answer_to(&status, None, call.schema.is_some()),
            };
            Some(CallResult::bare(status, answer))
        };
        if self.api >= API_FAILURES {
            let count = self.api;
            let said = &self.said;
            return failed(
                FailureKind::Api,
                format!(
                    "not started: the last {count} agents were turned down by the API ({said}); retry the \
                        run when it answers again"
                ),
            );
        }
        let (bad, any) =
            call.schema.as_ref().and_then(|schema| self.schemas.get(schema)).copied().unwrap_or_default();
        if bad >= SCHEMA_FAILURES && !any {
            let said = &self.said;
            return failed(
                FailureKind::InvalidOutput,
                format!(
                    "not started: {bad} agents could not fit this schema and none could ({said}); mend the \
                        schema or the prompt"
                ),
            );
        }
        None
    }

    /// Whether no further agent is started at all.
    pub(super) fn is_open(&self) -> bool {
        self.api >= API_FAILURES
    }
}
