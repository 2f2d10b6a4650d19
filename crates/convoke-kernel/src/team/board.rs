//! The board: tasks with dependencies, and their holders. A claim is compare-and-swap: everything that has to
//! be true (pending, no open dependency, the right role, no other task held by the claimant) is checked in
//! the transaction that writes it. A claim has a lease that its holder renews and a token that grows with
//! every claim, so that a holder that was believed dead writes nothing late.

mod apply;
mod decide;
mod events;
mod find;
mod refusals;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use events::{
    BoardEvent, TaskClaimed, TaskCreated, TaskEdited, TaskFailed, TaskFinished, TaskOffered, TaskReleased,
    TaskRenewed, TaskRetried,
};

use crate::ids::{AgentId, TaskId};

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum TaskState {
    /// It has no holder.
    Pending,
    /// A member or a person holds it.
    Claimed {
        /// The holder's name.
        name: String,
        /// Its agent; absent when a person, or a script of a person's, holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// The number of the claim: a later one is greater.
        token: u64,
        /// Until when its holder is sure of it.
        until: u64,
    },
    /// It is done.
    Done {
        /// The holder that finished it.
        name: String,
        /// When.
        at: u64,
    },
    /// It failed, or was cancelled.
    Failed {
        /// The holder, or the one that cancelled it, by name.
        name: String,
        /// Why.
        why: String,
        /// When.
        at: u64,
    },
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its place in the order of creation, from 1.
    pub number: u64,
    /// What it is about, in one line.
    pub subject: String,
    /// Everything that has to be known to do it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When it counts as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<String>,
    /// What has to be done before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<TaskId>,
    /// The role a claimant has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The greater, the sooner.
    #[serde(default)]
    pub priority: i32,
    /// Where it stands.
    pub state: TaskState,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// How often it was claimed since it was written, or since a retry was last asked for.
    #[serde(default)]
    pub attempts: u32,
    /// How often its present holder was asked to go on with it.
    #[serde(default)]
    pub offers: u32,
    /// The holder that gave it up: it is not given to that one again by itself, until another one edits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
    /// The name of its author.
    pub by: String,
    /// When.
    pub at: u64,
}

/// A task that is to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTask {
    /// What it is about, in one line.
    pub subject: String,
    /// Everything that has to be known to do it.
    pub description: String,
    /// When it counts as done.
    pub criteria: Option<String>,
    /// What has to be done before it.
    pub blocked_by: Vec<TaskId>,
    /// The role a claimant has to have.
    pub role: Option<String>,
    /// The greater, the sooner.
    pub priority: i32,
}

/// What is to be changed in a task; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskEdit {
    /// Another subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Another description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Other criteria; blank for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<String>,
    /// Another priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Another role; blank for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// More that has to be done before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_blocked_by: Vec<TaskId>,
    /// What need not be done before it any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove_blocked_by: Vec<TaskId>,
}

/// A member or a person that claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Its name.
    pub name: String,
    /// Its agent; absent for a person or a script of a person's.
    pub agent: Option<AgentId>,
    /// What it is there for.
    pub role: String,
}

/// Something that is to be done to the board, in the transaction of the append it belongs to.
#[derive(Debug, Clone)]
pub enum BoardEntry {
    /// A task is written.
    Create {
        /// Its id.
        id: TaskId,
        /// The task.
        task: NewTask,
        /// The name of its author.
        by: String,
    },
    /// A task is changed. Dependencies can be changed only while it is pending. Nothing of a done task can be
    /// changed.
    Edit {
        /// Which.
        task: TaskId,
        /// What.
        edit: TaskEdit,
        /// The name of the editor.
        by: String,
    },
    /// A task is claimed. A claim whose lease has run out counts as none. Claiming what one holds renews it.
    Claim {
        /// Which.
        task: TaskId,
        /// The claimant.
        claimant: Claimant,
        /// For how long, in milliseconds.
        ttl: u64,
    },
    /// Agents that live renew what they hold. Nothing happens for those that hold nothing.
    Renew {
        /// Which agents.
        agents: Vec<AgentId>,
        /// For how long.
        ttl: u64,
    },
    /// A task is done. Only its holder can say so, by its name (and agent), and by its token if it gives one.
    Finish {
        /// Which.
        task: TaskId,
        /// Its holder.
        holder: Claimant,
        /// Under which claim.
        token: Option<u64>,
        /// What it came to.
        result: String,
    },
    /// A task failed in its holder's hands.
    Fail {
        /// Which.
        task: TaskId,
        /// Its holder.
        holder: Claimant,
        /// Under which claim.
        token: Option<u64>,
        /// Why.
        why: String,
    },
    /// A holder gives a task up, and it goes back to the board. A task that has been claimed [`ATTEMPTS`]
    /// times fails instead.
    Release {
        /// Which.
        task: TaskId,
        /// Its holder.
        holder: Claimant,
        /// Under which claim.
        token: Option<u64>,
        /// Why.
        why: String,
    },
    /// The runtime gives back what an agent holds. Nothing happens if it holds nothing. A task that has been
    /// claimed [`ATTEMPTS`] times fails instead.
    ReleaseAll {
        /// Which agent.
        agent: AgentId,
        /// Why.
        why: String,
    },
    /// A holder is asked to go on with what it left unfinished.
    Offer {
        /// Which.
        task: TaskId,
        /// Its holder.
        agent: AgentId,
    },
    /// Claims whose lease has run out are given back. Nothing happens if there are none. A task that has been
    /// claimed [`ATTEMPTS`] times fails instead.
    Expire,
    /// The lead or a person cancels a task, even one that is held. A done one cannot be cancelled.
    Cancel {
        /// Which.
        task: TaskId,
        /// The name of the one that cancels.
        by: String,
    },
    /// The lead or a person wants a failed task tried again.
    Retry {
        /// Which.
        task: TaskId,
        /// The name of the one that asks for it.
        by: String,
    },
}

/// Claims of one task before it counts as failed.
pub const ATTEMPTS: u32 = 5;
/// Tasks on one board.
pub const TASKS: usize = 5_000;

/// Why an entry cannot be made; the text is for a model or a person to act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BoardRefusal(pub String);

/// The board of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Board {
    count: u64,
    tasks: BTreeMap<TaskId, Task>,
    /// How many tasks were ever written, and how many claims were ever made.
    numbers: u64,
    tokens: u64,
}

impl Board {
    /// How many events it has taken in: of two states the one with more is the newer.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All tasks in the order they were written.
    pub fn tasks(&self) -> Vec<&Task> {
        let mut tasks: Vec<&Task> = self.tasks.values().collect();
        tasks.sort_by_key(|task| task.number);
        tasks
    }

    /// One task.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }
}
