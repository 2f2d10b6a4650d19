//! What goes into the agent loop and what comes out of it: inputs, effects, and the words for what a request
//! needs. Data, no rule.

use std::sync::Arc;

use super::agent_state::IllegalEvent;
use super::tuning::RetuneRefused;
use crate::capsule::{Facts, TaskBrief};
use crate::event::{EndpointLearnt, HistoryForked};
use crate::ledger::Rates;
use crate::outcome::ToolResult;
use crate::segment::Segment;
use crate::spec::{AgentSpec, Param};
use crate::team::Letter;
use crate::tools::ToolRequest;
use crate::wire::{Capabilities, Failure, FailureKind, Reply};

/// Something that came from outside the kernel.
#[derive(Debug, Clone)]
pub enum Input {
    /// The agent is to exist, and this is said to it: one decision, so that no agent exists without a task.
    Start {
        /// What it is made of.
        spec: Box<AgentSpec>,
        /// The key of the input.
        key: String,
        /// What is said.
        text: String,
    },
    /// The agent is to exist, and a person makes this call without the model.
    StartCall {
        /// What it is made of.
        spec: Box<AgentSpec>,
        /// The key of the input.
        key: String,
        /// The call, as people read it.
        text: String,
        /// The input of `Workflow`.
        input: Segment,
    },
    /// The agent is to exist with the history of another one, and nothing is said to it yet.
    StartFork {
        /// What it is made of.
        spec: Box<AgentSpec>,
        /// The history.
        fork: Box<HistoryForked>,
    },
    /// A person chose another model or another effort for an idle lead.
    Retune {
        /// The model.
        model: String,
        /// What model and endpoint accept.
        capabilities: Capabilities,
        /// What its tokens cost at most; absent when that is not known.
        rates: Option<Rates>,
    },
    /// Something was said to an idle agent.
    Say {
        /// The key of the input.
        key: String,
        /// What was said.
        text: String,
    },
    /// A run in the background has ended, and an idle agent is told.
    Told {
        /// The key of the input.
        key: String,
        /// The run.
        run: String,
        /// What it came to.
        text: String,
    },
    /// A person makes a call of an idle agent's, without the model.
    Call {
        /// The key of the input.
        key: String,
        /// The call, as people read it.
        text: String,
        /// The input of `Workflow`.
        input: Segment,
    },
    /// The model answered.
    Replied {
        /// Which request.
        call: u32,
        /// The reply.
        reply: Box<Reply>,
    },
    /// The model did not answer.
    Failed {
        /// Which request.
        call: u32,
        /// Which attempt.
        attempt: u32,
        /// Why not.
        failure: Failure,
    },
    /// A tool ended.
    ToolDone {
        /// Which call.
        id: String,
        /// What it came to.
        result: ToolResult,
    },
    /// A person answered a question about a call.
    Answered {
        /// Which call.
        id: String,
        /// Whether it may be run.
        allow: bool,
        /// What gave the answer, and how: a person, or Convoke where none is there. Never an agent.
        by: String,
    },
    /// A person turned the switch of orchestration mode of an idle agent.
    SetMode {
        /// Where to.
        on: bool,
    },
    /// The budget and the governor answered.
    Room {
        /// Which request.
        call: u32,
        /// What they said.
        answer: RoomAnswer,
    },
    /// Another process took the agent up, or a person asked it to go on.
    Resume {
        /// Files that changed meanwhile.
        changed: Vec<String>,
    },
    /// The same for a member of a team, which is also told who it is.
    ResumeAs {
        /// Files that changed meanwhile.
        changed: Vec<String>,
        /// What the journal knows of it.
        facts: Box<Facts>,
    },
    /// Letters have come. An idle agent is woken by them, one that is about to ask the model reads them
    /// before.
    Mail {
        /// The key of the first of them.
        key: String,
        /// The letters, in the order they are to be read.
        letters: Vec<Letter>,
        /// Members that sleep and of which the reader has not been told.
        rests: Vec<String>,
    },
    /// A task from the board is an idle agent's.
    Work {
        /// The key of the input.
        key: String,
        /// The task.
        brief: Box<TaskBrief>,
        /// Whether it held it already and left it unfinished.
        again: bool,
    },
    /// The model answered with the summary that it was asked for.
    Summarised {
        /// Which request.
        call: u32,
        /// The reply.
        reply: Box<Reply>,
        /// What the journal knows of the agent.
        facts: Box<Facts>,
    },
    /// The server refused the prompt of a summary for its length.
    Unsummarised {
        /// Which request.
        call: u32,
        /// Which attempt.
        attempt: u32,
        /// What it said.
        failure: Failure,
        /// What the journal knows of the agent.
        facts: Box<Facts>,
    },
    /// Something was found out about the server, by another agent of the session or from what its replies
    /// say.
    Learn {
        /// What.
        learnt: Box<EndpointLearnt>,
    },
    /// The agent is to begin a new history before its next request.
    Compact {
        /// What is to be kept in mind; blank is nothing in particular.
        focus: String,
    },
    /// A person stops what the agent is at. Nothing of it is taken up again
    /// by itself; an idle agent stays as it is.
    StopExchange {
        /// The person who stops it, and how. Never an agent.
        by: String,
    },
    /// Something that waited for the agent cannot be read.
    Reject {
        /// Its key.
        input: String,
        /// What is wrong with it.
        why: String,
        /// What it held.
        body: String,
    },
}

/// Whether new work may be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It may.
    Go,
    /// Outcomes are recorded and nothing new starts: Convoke was asked to stop.
    Hold,
}

/// Why an input cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unexpected {
    /// An exchange is open; the input waits in the journal until it is closed.
    #[error("the agent is busy with another exchange")]
    Busy,
    /// It says nothing, and the API takes no empty message.
    #[error("the input is empty")]
    Blank,
    /// It answers something that is not pending.
    #[error("the input answers something that is not pending")]
    Stale,
    /// The agent cannot be given another model.
    #[error(transparent)]
    Retune(#[from] RetuneRefused),
    /// A fault of the kernel: the capsule that tells the agent who it is lacks this.
    #[error("internal error: the agent's capsule lacks {0}")]
    Incomplete(String),
    /// A fault of the kernel: it decided something illegal.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

/// The answer of the budget and the governor to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomAnswer {
    /// There is.
    Go {
        /// The room for the reply.
        max_tokens: u32,
    },
    /// There is room for one last turn.
    HandBack {
        /// The room for the reply.
        max_tokens: u32,
        /// What is short.
        why: String,
    },
    /// There is none.
    Refused {
        /// What is short.
        why: String,
    },
    /// Waiting for the server makes no sense any more.
    GivenUp {
        /// The kind of failure that the request ends with.
        kind: FailureKind,
        /// Why, with the figures.
        why: String,
    },
}

/// What a request needs to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomAsk {
    /// The number of the request.
    pub call: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The room for the reply that is wanted.
    pub wanted: u32,
    /// At most this many tokens are sent, what the API adds by itself left out.
    pub prompt_tokens: u64,
    /// Whether the agent has said something that it could hand back.
    pub started: bool,
    /// Whether it was already asked to hand back because the budget is short.
    pub last_turn: bool,
    /// The part of these tokens that stands behind the beginning that all agents of this make share, as long
    /// as no usage has told how long the history is: a token per byte.
    pub behind_prefix: Option<u64>,
    /// The room of a reply to this very request that was cut; 0 if none was.
    pub cut_at: u32,
    /// Whether the request carries cache marks.
    pub cached: bool,
    /// A digest of what all agents of this make begin their requests with, and how many bytes that is.
    pub prefix: (String, usize),
}

/// Something to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the budget and the governor for room. Asking changes nothing and can be repeated.
    AskRoom {
        /// The request.
        call: u32,
        /// The attempt.
        attempt: u32,
        /// Not before this time.
        not_before: u64,
    },
    /// Ask the model. Repeating it is safe, and paid for again.
    CallModel {
        /// The request.
        call: u32,
        /// The attempt.
        attempt: u32,
    },
    /// Ask a person whether a call may be run. Asking changes nothing and can be repeated.
    AskPerson {
        /// The call.
        id: String,
        /// What is wanted.
        what: String,
        /// Why it is asked.
        why: String,
    },
    /// Run a tool. A command is not safe to repeat, because what the first run did is unknown. Work with a
    /// stream of its own (a task, a workflow) goes on there however often it is started.
    RunTool {
        /// The call.
        id: String,
        /// What to do.
        request: ToolRequest,
    },
    /// Drive a run that a call launched, until its end can be told. It has a stream of its own and goes on
    /// there however often it is started.
    DriveRun {
        /// The run.
        run: String,
    },
}

/// A request as it is sent, in shared pieces.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// What the agent is made of.
    pub spec: Arc<AgentSpec>,
    /// The room for the reply.
    pub max_tokens: u32,
    /// The `system` member.
    pub system: Segment,
    /// The members beside model, room, system, tools and messages.
    pub params: Vec<Param>,
    /// The history.
    pub messages: Vec<Segment>,
    /// The `anthropic-version` to send instead of the client's own.
    pub version: Option<&'static str>,
}

impl ModelRequest {
    /// Whether it carries cache marks.
    pub fn is_marked(&self) -> bool {
        self.params.iter().any(|param| param.name == "cache_control")
    }
}
