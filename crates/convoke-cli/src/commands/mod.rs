//! The commands, one file each. Every one takes the settings and its arguments and gives its exit code: it
//! prints what was asked for on stdout; what goes wrong is printed once, in `main`.

pub(crate) mod approvals;
mod ask;
mod banner;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cost;
pub(crate) mod doctor;
mod drive;
pub(crate) mod export;
mod lost;
pub(crate) mod mail;
pub(crate) mod man;
mod patch;
pub(crate) mod plan;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod sim;
mod table;
pub(crate) mod tasks;
pub(crate) mod team;
mod trust;
pub(crate) mod workflow;
pub(crate) mod worktrees;

use crate::failure::Failure;

/// Refuses lines of JSON, which are for what happens over time.
fn no_jsonl(command: &str) -> Failure {
    Failure::usage(format!("`convoke {command}` has no jsonl form")).hint("use --output json")
}
