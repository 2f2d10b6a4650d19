//! How an agent is taken up by a driver, and how driving it ended. Data, and no rule.

use convoke_kernel::{Ballot, Outcome, Report, Summary};
use serde_json::Value;

use crate::control::Control;

/// How an agent is taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriveMode {
    /// It has just been started, or is idle and has something to hear.
    New,
    /// It was left in the middle of something, or failed and is to go on.
    Resume {
        /// Files that changed meanwhile.
        changed: Vec<String>,
    },
}

/// How driving ended.
#[derive(Debug, Clone, Default)]
pub struct DriveOutcome {
    /// What the last exchange came to; `None` if it was stopped before its end.
    pub outcome: Option<Outcome>,
    /// The agent's row in listings.
    pub summary: Option<Summary>,
    /// What a worker reported.
    pub report: Option<Report>,
    /// What a verifier judged.
    pub ballot: Option<Ballot>,
    /// The value that a callee gave to fit its schema.
    pub output: Option<Value>,
    /// Why the result is worth less than it seems.
    pub degraded: Option<String>,
    /// Whether it waits for a person's answer, or an agent below it does.
    pub parked: bool,
    /// What is left of the team's work, one line each.
    pub left: Vec<String>,
    /// What another process asked for, which is why driving ended.
    pub asked: Option<Control>,
}
