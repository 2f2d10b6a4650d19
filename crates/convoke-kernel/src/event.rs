//! What has happened to an agent, in the past tense. Events are for ever: variants are never removed, new
//! members are optional, and the text of an event is the format of the journal and of `--output jsonl`.

use serde::{Deserialize, Serialize};

use crate::capsule::Facts;
use crate::findings::{Ballot, Report};
use crate::ids::{AgentId, SessionId, TaskId};
use crate::ledger::Rates;
use crate::lesson::{Feature, Learnt};
use crate::mode::Section;
use crate::outcome::{Outcome, ToolResult};
use crate::segment::Segment;
use crate::spec::{AgentSpec, Param};
use crate::team::Letter;
use crate::wire::{Capabilities, Failure, Reply, ToolCall};

/// The reason recorded for an input that a person has taken back.
pub const TAKEN_BACK: &str = "taken back by the person";

/// Why a journaled event cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadEvent {
    /// It is not an object with a `type`.
    #[error("not an event: {0}")]
    NotAnEvent(#[source] serde_json::Error),
    /// A newer version wrote it.
    #[error("unknown event type '{0}': the journal was written by a newer convoke; use that version")]
    UnknownType(String),
    /// Its members are not those of its type.
    #[error("malformed {kind} event: {cause}")]
    Malformed {
        /// The event's type.
        kind: &'static str,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
}

// One struct per event instead of a tagged enum: serde buffers tagged enums, and a buffered segment loses its
// bytes.
macro_rules! events {
    (
        $(#[$all_doc:meta])* enum $all:ident;
        $($(#[$doc:meta])* $name:ident = $tag:literal {
            $($(#[$field_doc:meta])* $field:ident : $type:ty),* $(,)?
        })*
    ) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
            pub struct $name { $($(#[$field_doc])* pub $field: $type),* }

            impl From<$name> for $all {
                fn from(event: $name) -> $all { $all::$name(event) }
            }
        )*

        $(#[$all_doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $all { $($(#[$doc])* $name($name)),* }

        impl $all {
            /// The event's name as it stands in the journal.
            pub fn kind(&self) -> &'static str {
                match self { $($all::$name(_) => $tag),* }
            }

            /// The event as one JSON object, `type` first.
            pub fn encode(&self) -> Result<String, serde_json::Error> {
                let body = match self { $($all::$name(event) => serde_json::to_string(event)?),* };
                let members = body.strip_prefix('{').unwrap_or(&body);
                let comma = if members == "}" { "" } else { "," };
                Ok(format!("{{\"type\":\"{}\"{comma}{members}", self.kind()))
            }

            /// Reads an event back.
            pub fn decode(text: &str) -> Result<$all, $crate::event::BadEvent> {
                use $crate::event::BadEvent;
                #[derive(serde::Deserialize)]
                struct Tag { r#type: String }
                let tag: Tag = serde_json::from_str(text).map_err(BadEvent::NotAnEvent)?;
                match tag.r#type.as_str() {
                    $($tag => serde_json::from_str::<$name>(text)
                        .map($all::$name)
                        .map_err(|cause| BadEvent::Malformed { kind: $tag, cause }),)*
                    _ => Err(BadEvent::UnknownType(tag.r#type)),
                }
            }
        }
    };
}
pub(crate) use events;

events! {
    /// Something that has happened to an agent.
    enum Event;
    /// The agent exists, and this is what it is made of.
    AgentStarted = "agent_started" {
        /// Everything that stays the same for the agent's life.
        spec: AgentSpec,
    }
    /// An input from outside was taken into the history.
    ExchangeOpened = "exchange_opened" {
        /// Its number, from 1.
        exchange: u32,
        /// The key of the input, so that it is taken once.
        input: String,
        /// What was said.
        text: String,
        /// The user message.
        message: Segment,
        /// The system message that follows it, on models that take one there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<Segment>,
        /// What it tells the model about orchestration mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<Section>,
        /// The changed files it tells of.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// The run whose end it tells of; such an exchange is no person's word and no consent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
        /// The letters it brings; such an exchange is no person's word either.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        letters: Vec<Letter>,
        /// The task from the board that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<TaskId>,
        /// Whether it tells the agent who it is.
        #[serde(default, skip_serializing_if = "is_false")]
        capsule: bool,
    }
    /// Letters became part of the history between two turns.
    MailDelivered = "mail_delivered" {
        /// The user message that carries them.
        message: Segment,
        /// The letters.
        letters: Vec<Letter>,
    }
    /// The agent was asked to begin a new history.
    CompactionAsked = "compaction_asked" {
        /// What is to be kept in mind; blank is nothing in particular.
        focus: String,
    }
    /// The agent goes on with a new history; the old one stays in the events before this.
    HistoryCompacted = "history_compacted" {
        /// The user message it begins with.
        message: Segment,
        /// What it tells the model about orchestration mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<Section>,
        /// What the agent wrote about what was before.
        summary: String,
        /// Tokens of the history that was left behind, as far as they are known.
        tokens: u64,
    }
    /// Something that waited for the agent could not be read, and is kept here instead of being offered again
    /// and again.
    InputRejected = "input_rejected" {
        /// Its key.
        input: String,
        /// What is wrong with it.
        why: String,
        /// What it held.
        body: String,
    }
    /// A person made a call without the model: an exchange that leaves the history as it is.
    CallMade = "call_made" {
        /// Its number, from 1.
        exchange: u32,
        /// The key of the input, so that it is taken once.
        input: String,
        /// The call, as people read it.
        text: String,
        /// The call.
        call: ToolCall,
    }
    /// A person turned the switch of orchestration mode.
    ModeSet = "mode_set" {
        /// Where to.
        on: bool,
    }
    /// A failed exchange goes on from its last recorded outcome.
    ExchangeReopened = "exchange_reopened" {
        /// Its number.
        exchange: u32,
    }
    /// The budget has no room for the next request.
    RoomRefused = "room_refused" {
        /// The number the request would have had.
        call: u32,
        /// What is short.
        failure: Failure,
    }
    /// The model is to be asked.
    ModelCalled = "model_called" {
        /// The number of the request, from 1.
        call: u32,
        /// The number of the attempt at it, from 1.
        attempt: u32,
        /// How many segments of the history it carries.
        segments: usize,
        /// The room it gives the reply.
        max_tokens: u32,
        /// A digest of everything that is sent, cache marks left out.
        digest: String,
        /// What the reply is wanted for.
        purpose: Purpose,
    }
    /// The model answered, and it was paid for.
    ModelReplied = "model_replied" {
        /// The request it answers.
        call: u32,
        /// The reply.
        reply: Reply,
        /// Whether it became part of the history.
        kept: Kept,
    }
    /// An attempt gave no reply.
    ModelFailed = "model_failed" {
        /// The request.
        call: u32,
        /// The attempt.
        attempt: u32,
        /// What went wrong.
        failure: Failure,
        /// When it is sent again; absent when it is not, or when that waits for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<u64>,
    }
    /// The harness put a note of its own into the history.
    NoteAppended = "note_appended" {
        /// The user message that carries it.
        message: Segment,
        /// Whether it asks the agent to hand back what it has.
        #[serde(default)]
        hand_back: bool,
        /// What the budget is short of, if that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        short: Option<String>,
        /// The changed files it tells of.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// Whether it tells the agent who it is.
        #[serde(default, skip_serializing_if = "is_false")]
        capsule: bool,
        /// Whether it asks for the summary with which a new history begins.
        #[serde(default, skip_serializing_if = "is_false")]
        summary: bool,
        /// Whether it asks for a hand-back because no new history would be shorter.
        #[serde(default, skip_serializing_if = "is_false")]
        full: bool,
    }
    /// A person has to agree before a call is run.
    ApprovalAsked = "approval_asked" {
        /// The id of the call.
        id: String,
        /// What is wanted, as a person reads it.
        what: String,
        /// Why it is asked.
        why: String,
    }
    /// The question has its answer.
    ApprovalGiven = "approval_given" {
        /// The id of the call.
        id: String,
        /// What it was.
        allow: bool,
        /// What gave it, and how: a person, or Convoke where none is there. Never an agent.
        by: String,
    }
    /// A tool is to be run.
    ToolStarted = "tool_started" {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
        /// Its input.
        input: Segment,
    }
    /// A tool call has its outcome, whether it ran or not.
    ToolFinished = "tool_finished" {
        /// The id of the call.
        id: String,
        /// What it came to.
        result: ToolResult,
    }
    /// The outcomes of one reply's calls became part of the history.
    ResultsAppended = "results_appended" {
        /// The user message that carries them.
        message: Segment,
        /// Whether it also asks the agent to hand back what it has.
        #[serde(default)]
        hand_back: bool,
        /// Whether it reminds the agent of its list.
        #[serde(default, skip_serializing_if = "is_false")]
        reminded: bool,
        /// Whether it tells the agent that it goes in circles; with a hand-back, that this ends its work.
        #[serde(default, skip_serializing_if = "is_false")]
        stuck: bool,
    }
    /// The exchange is over.
    ExchangeClosed = "exchange_closed" {
        /// Its number.
        exchange: u32,
        /// What it came to.
        outcome: Outcome,
        /// Whether its user message left the history again, to be offered once more.
        taken_back: bool,
        /// What a worker reported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
        /// What a verifier judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ballot: Option<Ballot>,
        /// Why the result is worth less than it seems.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        degraded: Option<String>,
        /// Letters that left the history with it and wait once more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        returned: Vec<Letter>,
    }
    /// A person stopped what the agent was at; the exchange ends with what there is, and the next thing said
    /// opens another.
    ExchangeStopped = "exchange_stopped" {
        /// The person who stopped it, and how. Never an agent.
        by: String,
    }
    /// A person chose another model or another effort for an idle agent; everything it is sent from now on is
    /// for that one.
    Retuned = "retuned" {
        /// The model.
        model: String,
        /// What model and endpoint accept.
        capabilities: Capabilities,
        /// What its tokens cost at most; absent when that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rates: Option<Rates>,
        /// The other members of every request, in order.
        params: Vec<Param>,
    }
    /// Something was found out about the server: what it does not take is left out of requests to this model
    /// from now on, and its window is kept to.
    EndpointLearnt = "endpoint_learnt" {
        /// The server, as its base URL is shown.
        endpoint: String,
        /// The model that was asked.
        model: String,
        /// What the server does not take, or does nothing about.
        lacks: Vec<Feature>,
        /// How that was learnt.
        how: Learnt,
        /// What the server said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        said: String,
        /// How many tokens it reads at once, where that is what was learnt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    }
    /// The agent begins with the history of another one, byte for byte.
    HistoryForked = "history_forked" {
        /// The agent whose history it is.
        agent: AgentId,
        /// The session that was forked.
        session: SessionId,
        /// The last exchange that was taken along.
        exchange: u32,
        /// What was asked first there.
        task: String,
        /// The history.
        messages: Vec<Segment>,
        /// What the history has told the model about orchestration mode last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<Section>,
        /// Tokens of the history, as far as they are known.
        tokens: u64,
    }
    /// Another process took the agent up.
    Resumed = "resumed" {
        /// Files that changed while no process drove the agent, as far as that can be told.
        #[serde(default)]
        changed: Vec<String>,
        /// What the journal knew of a member of a team; the agent is told so with the next thing it reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        facts: Option<Box<Facts>>,
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// What a reply is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// An ordinary turn.
    Turn,
    /// The one turn beyond the limit, in which the agent says what it has.
    HandBack,
    /// The summary with which a new history begins.
    Summary,
}

/// Whether a reply became part of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// It did.
    Yes,
    /// It was cut at `max_tokens`.
    Cut,
    /// It was empty.
    Empty,
    /// It was a refusal.
    Refused,
    /// It ended because the window was full.
    WindowFull,
    /// Its tool calls are missing or repeat an id, so no legal history can hold it.
    Unusable,
    /// It was asked for as a summary: the next history begins with it.
    Summary,
}
