//! What has happened to a board: the text of its shared stream in the journal, and the history of each task.
//! Events are for ever: variants are never removed, new members are optional.

use crate::event::events;
use crate::ids::{AgentId, TaskId};
use crate::team::TaskEdit;

events! {
    /// Something that has happened to a board.
    enum BoardEvent;

    /// A task was written.
    TaskCreated = "task_created" {
        /// Which.
        task: TaskId,
        /// What it is about.
        subject: String,
        /// Everything that has to be known to do it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
        /// When it counts as done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        criteria: Option<String>,
        /// What has to be done before it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocked_by: Vec<TaskId>,
        /// The role a claimant has to have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The greater, the sooner.
        #[serde(default)]
        priority: i32,
        /// The name of its author.
        by: String,
    }
    /// A task was changed.
    TaskEdited = "task_edited" {
        /// Which.
        task: TaskId,
        /// What.
        edit: TaskEdit,
        /// The name of the editor.
        by: String,
    }
    /// A task was claimed.
    TaskClaimed = "task_claimed" {
        /// Which.
        task: TaskId,
        /// The claimant's name.
        name: String,
        /// Its agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// The number of the claim.
        token: u64,
        /// Until when.
        until: u64,
    }
    /// Claims were renewed.
    TaskRenewed = "task_renewed" {
        /// Which tasks.
        tasks: Vec<TaskId>,
        /// Until when.
        until: u64,
    }
    /// A holder was asked to go on with its task.
    TaskOffered = "task_offered" {
        /// Which.
        task: TaskId,
    }
    /// A task is pending again.
    TaskReleased = "task_released" {
        /// Which.
        task: TaskId,
        /// The name of its last holder.
        name: String,
        /// Why.
        why: String,
        /// Whether its holder gave it up, and did not merely lose it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        given_up: bool,
    }
    /// A task is done.
    TaskFinished = "task_finished" {
        /// Which.
        task: TaskId,
        /// The holder that finished it.
        name: String,
        /// What it came to.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        result: String,
    }
    /// A task failed or was cancelled.
    TaskFailed = "task_failed" {
        /// Which.
        task: TaskId,
        /// The holder, or the one that cancelled it, by name.
        name: String,
        /// Why.
        why: String,
    }
    /// A failed task is to be tried again.
    TaskRetried = "task_retried" {
        /// Which.
        task: TaskId,
        /// The name of the one that asks for it.
        by: String,
    }
}
