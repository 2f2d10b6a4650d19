//! The end report: what a run found, who worked on it, what it cost and how to go on. One plain value, and pure functions
//! that write it for people and for programs. It reads no journal and decides nothing but an order and an exit code.

mod changes;
mod file;
mod json;
mod markdown;
mod model;
mod order;
mod sarif;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use changes::{Changed, Tree, enter as enter_changes};
pub(crate) use file::ReportFile;
pub(crate) use json::json;
pub(crate) use model::{
    Agent, AgentStatus, Cache, Citation, Confined, Failed, Finding, FollowUp, Reused, RunReport, SCHEMA_VERSION,
    Severity, Skipped, Spend, Tokens, Verdict, Waits,
};
pub(crate) use order::fail_on;
pub(crate) use text::text;
