//! Decides. Every rule of Convoke is a pure function in this crate: no async, no clock, no randomness, no files,
//! no network. What it decides is written to a journal first and done by `convoke-runtime` afterwards.
//!
//! * [`Agent`] is the agent loop: [`Agent::decide`], [`Agent::apply`], [`Agent::pending`].
//! * [`Event`] is what has happened, and the format of the journal.
//! * [`AgentSpec`] is what an agent is made of: prompts, tools and limits, fixed for its life.
//! * [`Segment`] is a piece of history, encoded once.
//! * The rest are the words for what a model call or a tool call came to.

mod agent;
mod event;
mod ids;
mod outcome;
mod prompts;
mod segment;
mod spec;
mod tools;
mod wire;

pub use agent::{Agent, Effect, IllegalEvent, Input, ModelRequest, Pace, Status, Summary, Unexpected};
pub use event::{
    AgentStarted, BadEvent, Event, ExchangeClosed, ExchangeOpened, ExchangeReopened, Kept, ModelCalled, ModelFailed,
    ModelReplied, NoteAppended, Purpose, ResultsAppended, Resumed, ToolFinished, ToolStarted,
};
pub use ids::{AgentId, BadId, SessionId};
pub use outcome::{Outcome, Ran, ShellState, ToolResult};
pub use segment::Segment;
pub use spec::{AgentSpec, FIRST_MAX_TOKENS, LeadSettings, Limits, Param, Role};
pub use tools::ToolRequest;
pub use wire::{
    Capabilities, Failure, FailureKind, INVALID_INPUT, Reply, Retry, StopReason, Thinking, ToolCall, Usage,
};
