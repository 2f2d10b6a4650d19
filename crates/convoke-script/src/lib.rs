//! Interprets workflow programs written in JavaScript.
//!
//! [`Interpreter::hear`] takes one [`HostMessage`] and gives one [`GuestMessage`]: a program runs until it
//! waits, says which calls it wants made, and goes on when it is given an answer. There is no host in it: no
//! clock, no file, no socket, no randomness, no other crate of ours. Its own limits are not hard, because a
//! native loop of the engine cannot be interrupted; the caller has to run it in a process of its own, locked,
//! with a deadline.

mod check;
mod compile;
mod crossing;
mod engine;
mod instrument;
mod interpreter;
mod lints;
mod meta;
mod outbox;
mod places;
mod protocol;
mod rules;
mod web;

pub use interpreter::Interpreter;
pub use protocol::{
    AgentWant, Call, CallOutcome, Fault, FaultKind, GuestMessage, HostMessage, Limits, Meta, Phase, Problem,
    ProgramRemark, ProgramStep, SourcePosition, Start, State, Want,
};
