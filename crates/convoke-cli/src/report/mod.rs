//! The end report: what a session found, which agents worked on it, what it cost and how to go on. One plain
//! value, and pure functions that write it for people and for programs. It reads no journal and decides
//! nothing but an order and an exit code.

mod changes;
mod file;
mod gate;
mod json;
mod markdown;
mod model;
mod order;
mod program;
mod sarif;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use changes::{Changed, RunLater, Tree, enter as enter_changes};
pub(crate) use file::{Form, ReportFile};
pub(crate) use gate::{GateReport, Lacked};
pub(crate) use json::json;
pub(crate) use model::{
    Agent, AgentStatus, Cache, Citation, Confined, Failed, Finding, FollowUp, LostItem, Reused,
    SCHEMA_VERSION, SessionReport, Severity, Skipped, Spend, Tokens, Verdict, Waits,
};
pub(crate) use program::{Checkpoint, Declined, MENDED, ProgramReport, calls_line, value_text};
pub(crate) use text::{lost_words, text};

/// What a session spent.
#[cfg(test)]
pub(crate) fn spend_for_tests() -> Spend {
    tests::program().spend
}

/// A program's run with everything that can be in one.
#[cfg(test)]
pub(crate) fn program_for_tests() -> ProgramReport {
    tests::program().programs.swap_remove(0)
}
