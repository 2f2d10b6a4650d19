//! The tools of a team: what the lead and its teammates are offered beside their local tools,
//! and what counts as a usable call. The runtime does what a call asks for; the roster and
//! the board decide whether it may be done.

pub(super) mod board;
pub(super) mod mail;
pub(super) mod members;
pub(super) mod own;
pub(super) mod plans;

use super::{ToolRequest, Wanted};
use crate::confinement::Isolation;

/// A teammate that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnCall {
    /// Its name, as it was said.
    pub name: String,
    /// What it is there for.
    pub role: String,
    /// What it is told first.
    pub prompt: String,
    /// Whether a plan has to be approved before it may write.
    pub require_plan: bool,
    /// The only local tools it is given; absent is all of them.
    pub tools: Option<Vec<String>>,
    /// Where it works.
    pub isolation: Isolation,
}

/// A task that is to be written on the board.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskCreateCall {
    /// What it is about.
    pub subject: String,
    /// Everything that has to be known to do it.
    pub description: String,
    /// When it counts as done.
    pub criteria: Option<String>,
    /// What has to be done before it, as it was said.
    pub blocked_by: Vec<String>,
    /// The role a claimant has to have.
    pub role: Option<String>,
    /// The greater, the sooner.
    pub priority: i32,
}

/// Where a task is to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatusCall {
    /// It is done; for its holder to say.
    Done,
    /// It cannot be done; for its holder to say.
    Failed,
    /// It goes back to the board: its holder gives it up, or the lead wants a failed one tried again.
    Pending,
    /// It is not to be done any more; for the lead to say.
    Cancelled,
}

/// A change of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskUpdateCall {
    /// Which, as it was said.
    pub task: String,
    /// Where it is to stand.
    pub status: Option<TaskStatusCall>,
    /// What it came to, or why it failed.
    pub result: Option<String>,
    /// Another subject.
    pub subject: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Other criteria.
    pub criteria: Option<String>,
    /// Another priority.
    pub priority: Option<i32>,
    /// Another role.
    pub role: Option<String>,
    /// More that has to be done before it, as it was said.
    pub add_blocked_by: Vec<String>,
    /// What need not be done before it any more, as it was said.
    pub remove_blocked_by: Vec<String>,
}

/// Something that is done with the team, its mail or its board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamCall {
    /// Make a teammate. The lead's.
    Spawn(SpawnCall),
    /// Write to one member.
    Send {
        /// The reader, as it was said.
        to: String,
        /// What.
        text: String,
        /// Whether it may interrupt.
        urgent: bool,
    },
    /// Write to all other members.
    Broadcast {
        /// What.
        text: String,
    },
    /// Show the letters that wait for the lead. Looking does not consume.
    ReadInbox,
    /// Show the members and what they do.
    ListTeammates,
    /// Ask a teammate to stop. The lead's.
    RequestShutdown {
        /// The teammate.
        name: String,
        /// Why.
        reason: String,
    },
    /// Answer such a request. A teammate's.
    AnswerShutdown {
        /// Which; absent is the one that waits.
        request: Option<String>,
        /// The answer.
        approve: bool,
        /// Why.
        reason: String,
    },
    /// Hand in a plan. A teammate's.
    SubmitPlan {
        /// The plan.
        plan: String,
    },
    /// Answer a plan. The lead's.
    ReviewPlan {
        /// Which, as it was said.
        request: String,
        /// The answer.
        approve: bool,
        /// What is to be better.
        feedback: String,
    },
    /// Write a task.
    TaskCreate(TaskCreateCall),
    /// Change a task.
    TaskUpdate(TaskUpdateCall),
    /// Show a task whole.
    TaskGet {
        /// Which, as it was said.
        task: String,
    },
    /// Show the board.
    TaskList,
    /// Claim a task. A teammate's.
    ClaimTask {
        /// Which, as it was said.
        task: String,
    },
    /// Read the result of an earlier call again that a compaction left out.
    Recall {
        /// The call, as the summary names it.
        reference: String,
        /// The character to start from.
        from: usize,
    },
}

/// Something that the runtime does.
fn run(call: TeamCall) -> Wanted {
    Wanted::Run(ToolRequest::Team(call))
}

#[cfg(test)]
mod tests;
