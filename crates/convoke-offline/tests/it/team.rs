//! The offline model as a team, over HTTP: a small harness plays lead, workers and verifiers on planted
//! trees, runs their commands and compares what they report with what was planted.

mod callees;
mod harness;
mod members;
mod members_host;
mod planted;
mod roles;
mod short;
mod verdicts;
