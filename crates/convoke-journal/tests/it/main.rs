//! The journal's tests: one conformance suite for every store, and what is special about each of them.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "all of this crate is tests")]
#![expect(clippy::print_stdout, reason = "a test started again in a role talks to its parent over stdout")]

mod blips;
mod cases_events;
mod cases_flights;
mod cases_inputs;
mod cases_leases;
mod cases_shared;
mod cases_whole;
mod damaged;
mod postgres;
mod processes;
mod sqlite_files;
mod stopped;
mod suite;
mod wire;
mod world;
