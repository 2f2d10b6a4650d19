//! The tools of a team: what the lead and its teammates are offered beside their hands, and what counts as a usable call. What a call
//! does is for the runtime, and whether it may be done for the roster and the board.

mod declare;
mod read;

pub(crate) use declare::{declare_lead, declare_teammate};
pub(crate) use read::read_team;

use crate::confinement::Isolation;
use crate::todo::TodoItem;

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
    /// The only hands it is given; absent is all of them.
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
    /// Nobody is to do it; for the lead to say.
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
        /// To whom, as it was said.
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
    /// Show who there is and what they do.
    ListTeammates,
    /// Ask a teammate to stop. The lead's.
    RequestShutdown {
        /// Whom.
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

/// What a call of a team's tools asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TeamWanted {
    /// Something that the runtime does.
    Run(TeamCall),
    /// To end the work for now.
    Idle,
    /// To write down what there is to do.
    Todo(Vec<TodoItem>),
    /// To begin a new history, with this in mind.
    Compact(Option<String>),
}
