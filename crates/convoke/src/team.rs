//! The team of a session from the outside: who is in it, what its board holds, and letters and tasks for it.

use convoke_kernel::{self as kernel, MemberState, NewTask, PERSON, TaskId};
use convoke_runtime::{Ids, TeamClient};

use crate::error::Error;
use crate::session::{Lead, Session};

/// The team of a session: teammates that its lead has spawned, their tasks and their mail. What is sent here
/// is worked on while the session is driven: by [`Session::run`], [`Session::follow_up`] or
/// [`Session::go_on`].
#[derive(Debug)]
pub struct Team {
    session: Session,
    lead: Lead,
}

/// A member of a team: the lead or a teammate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Its name; `lead` for the lead.
    pub name: String,
    /// What it is there for.
    pub role: String,
    /// What it is doing.
    pub state: MemberStatus,
    /// The id of the task that it works on.
    pub task: Option<String>,
}

/// What a member of a team is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MemberStatus {
    /// It was spawned and has not begun.
    Starting,
    /// It works.
    Working,
    /// It waits for an answer, or for the session to be driven.
    Waiting,
    /// It has nothing to do, and wakes for letters and tasks.
    Idle,
    /// It was asked to stop.
    Stopping,
    /// It has stopped.
    Stopped,
    /// Its last work failed.
    Failed,
}

/// A task on the board of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    pub id: String,
    /// What it is about, in one line.
    pub subject: String,
    /// Everything that has to be known to do it.
    pub description: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// What it came to.
    pub result: Option<String>,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskStatus {
    /// It can be claimed, now or when the tasks before it are done.
    Pending,
    /// This member works on it.
    Claimed {
        /// The member's name.
        by: String,
    },
    /// It is done.
    Done {
        /// The name of the member that did it.
        by: String,
    },
    /// It failed, or was cancelled.
    Failed {
        /// Why.
        why: String,
    },
}

impl Session {
    /// The team of this session, once the first task was given. It has the lead alone until the lead spawns
    /// teammates.
    pub async fn team(&self) -> Result<Team, Error> {
        match &*self.inner.lead.lock().await {
            Some(lead) => Ok(Team { session: self.clone(), lead: lead.clone() }),
            None => Err(Error::NotBegun),
        }
    }
}

impl Team {
    /// Its members, the lead first.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        let rows = self.client().members(&self.lead.session).await?;
        Ok(rows
            .into_iter()
            .map(|row| Member {
                name: row.member.name,
                role: row.member.role,
                state: status(row.state),
                task: row.task.map(|task| task.id.to_string()),
            })
            .collect())
    }

    /// The tasks of its board, in the order in which they were written.
    pub async fn tasks(&self) -> Result<Vec<Task>, Error> {
        let board = self.client().board(&self.lead.session).await?;
        Ok(board.tasks().into_iter().map(task).collect())
    }

    /// Writes a task on the board; a teammate claims it. `after` are ids of tasks that have to be done first.
    pub async fn add_task(&self, subject: &str, description: &str, after: &[&str]) -> Result<Task, Error> {
        let blocked_by = after.iter().map(|id| id_of(id)).collect::<Result<_, _>>()?;
        let new = NewTask {
            subject: subject.to_owned(),
            description: description.to_owned(),
            criteria: None,
            blocked_by,
            role: None,
            priority: 0,
        };
        Ok(task(&self.client().add_task(&self.lead.session, new, PERSON).await?))
    }

    /// Cancels a task, whether a member works on it or not.
    pub async fn cancel_task(&self, id: &str) -> Result<Task, Error> {
        Ok(task(&self.client().cancel(&self.lead.session, &id_of(id)?, PERSON).await?))
    }

    /// Has a failed task tried again.
    pub async fn retry_task(&self, id: &str) -> Result<Task, Error> {
        Ok(task(&self.client().retry(&self.lead.session, &id_of(id)?, PERSON).await?))
    }

    /// Sends a letter to a member. It reads the letter between two turns, or wakes for it.
    pub async fn send(&self, to: &str, text: &str) -> Result<(), Error> {
        self.client().send(&self.lead.session, &self.lead.agent, to, text, false).await?;
        Ok(())
    }

    fn client(&self) -> TeamClient {
        TeamClient::new(self.session.inner.journal.clone(), self.session.inner.clock.clone(), Ids::random())
    }
}

fn id_of(id: &str) -> Result<TaskId, Error> {
    id.parse().map_err(|_| Error::Setting(format!("{id} is no id of a task; Team::tasks lists them")))
}

fn task(task: &kernel::Task) -> Task {
    Task {
        id: task.id.to_string(),
        subject: task.subject.clone(),
        description: task.description.clone(),
        status: match &task.state {
            kernel::TaskState::Pending => TaskStatus::Pending,
            kernel::TaskState::Claimed { name, .. } => TaskStatus::Claimed { by: name.clone() },
            kernel::TaskState::Done { name, .. } => TaskStatus::Done { by: name.clone() },
            kernel::TaskState::Failed { why, .. } => TaskStatus::Failed { why: why.clone() },
        },
        result: task.result.clone(),
    }
}

fn status(state: MemberState) -> MemberStatus {
    match state {
        MemberState::Starting => MemberStatus::Starting,
        MemberState::Working => MemberStatus::Working,
        MemberState::Waiting => MemberStatus::Waiting,
        MemberState::Idle => MemberStatus::Idle,
        MemberState::Stopping => MemberStatus::Stopping,
        MemberState::Stopped => MemberStatus::Stopped,
        MemberState::Failed => MemberStatus::Failed,
    }
}
