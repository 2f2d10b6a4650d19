//! The real binary, driven from outside with an empty home and a cleared environment.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod admin;
mod inspection;
mod kill;
mod output;
mod resume;
mod run;
mod settings;
mod signals;
mod sim;
mod stage;
mod support;
mod terminal;
