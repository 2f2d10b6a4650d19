//! What a member is doing, as people are told: derived from the process that drives its stream and from where
//! its agent stands, never read from a record that a dead process left behind.

use serde::{Deserialize, Serialize};

use crate::agent::Status;
use crate::team::{Member, Standing};

/// What a member is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It was spawned and no process has driven it yet.
    Starting,
    /// It has an exchange open, and a process drives it.
    Working,
    /// It waits: for a person's answer, for the answer to its plan, or for a process to drive it.
    Waiting,
    /// It has nothing to do, and wakes for letters and work.
    Idle,
    /// It was asked to stop.
    Stopping,
    /// It has stopped.
    Stopped,
    /// Its last work failed.
    Failed,
}

impl MemberState {
    /// The state in one word.
    pub fn word(self) -> &'static str {
        match self {
            MemberState::Starting => "starting",
            MemberState::Working => "working",
            MemberState::Waiting => "waiting",
            MemberState::Idle => "idle",
            MemberState::Stopping => "stopping",
            MemberState::Stopped => "stopped",
            MemberState::Failed => "failed",
        }
    }
}

/// What is known of a member's agent at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    /// Where its agent stands; absent before a process has driven it.
    pub status: Option<Status>,
    /// Whether a live process drives it.
    pub driven: bool,
    /// Whether it waits for a person's answer.
    pub asks: bool,
    /// Whether a plan of its own waits for approval.
    pub plan_pending: bool,
}

/// What a member is doing, and why if that is not plain from the word.
pub fn state_of(member: &Member, view: MemberView) -> (MemberState, Option<String>) {
    let waits = |why: &str| (MemberState::Waiting, Some(why.to_owned()));
    match (&member.standing, view.status) {
        (Standing::Stopped { why, .. }, _) => (MemberState::Stopped, Some(why.clone())),
        (Standing::Failed { why, .. }, _) => (MemberState::Failed, Some(why.clone())),
        (Standing::Stopping { .. }, _) => (MemberState::Stopping, None),
        (Standing::Live, None) => (MemberState::Starting, None),
        (Standing::Live, Some(Status::Open)) if !view.driven => {
            waits("no process drives it: resume the session")
        }
        (Standing::Live, Some(Status::Open)) if view.asks => waits("waits for a person's answer"),
        (Standing::Live, Some(Status::Open)) => (MemberState::Working, None),
        (Standing::Live, Some(_)) if view.plan_pending => waits("its plan waits for approval"),
        (Standing::Live, Some(_)) => (MemberState::Idle, None),
    }
}
