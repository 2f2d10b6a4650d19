//! Interprets workflow programs written in JavaScript.
//!
//! [`Interpreter::hear`] takes one [`Ask`] and gives one [`Told`]: a program runs until it waits, says which calls it wants
//! made, and goes on when it is given an answer. There is no host in it: no clock, no file, no socket, no randomness, no other
//! crate of ours. Its own limits are not hard, because a native loop of the engine cannot be interrupted; whoever runs it keeps it
//! in a process of its own, locked, with a deadline.

mod check;
mod compile;
mod crossing;
mod desk;
mod engine;
mod interpreter;
mod meta;
mod places;
mod protocol;
mod rules;
mod weave;
mod web;

pub use interpreter::Interpreter;
pub use protocol::{
    AgentWant, Answer, Ask, Call, Fault, FaultKind, Limits, Meta, Phase, Place, Problem, Said, Start, State, Step,
    Told, Want,
};
