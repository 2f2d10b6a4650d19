//! The offline model as a team, over HTTP: a small harness plays lead, workers and verifiers on planted
//! trees, runs their commands and compares what they report with what was planted.

mod callees;
mod crew_host;
mod harness;
mod members;
mod planted;
mod roles;
mod short;
mod verdicts;
