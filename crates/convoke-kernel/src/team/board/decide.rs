//! The board's decisions: which claimant gets a task, and which one may write to it. Each is to be
//! taken inside the transaction that appends its events, against the newest state; a refusal
//! changes nothing and says what to do next.

use super::events::{
    TaskClaimed, TaskFailed, TaskFinished, TaskOffered, TaskReleased, TaskRenewed, TaskRetried,
};
use super::find::{fits, holder, holds, is_free, is_live, lease};
use super::refusals::{clip, label, list, refuse};
use super::write::fitting;
use super::{ATTEMPTS, Board, BoardEntry, BoardEvent, BoardRefusal, Claimant, Task, TaskState};
use crate::ids::{AgentId, TaskId};

/// The reason recorded for giving back a claim that its holder did not renew.
const LAPSED: &str = "the lease of its claim ran out";

impl Board {
    /// What follows from an entry at this time.
    pub fn decide(&self, entry: &BoardEntry, at: u64) -> Result<Vec<BoardEvent>, BoardRefusal> {
        match entry {
            BoardEntry::Create { id, task, by } => self.create(id, task, by),
            BoardEntry::Edit { task, edit, by } => self.edit(self.there(task)?, edit, by),
            BoardEntry::Claim { task, claimant, ttl } => self.claim(self.there(task)?, claimant, *ttl, at),
            BoardEntry::Renew { agents, ttl } => {
                let held = self.those(|task| holder(task).is_some_and(|agent| agents.contains(agent)));
                Ok(renewed(&held, at.saturating_add(*ttl)))
            }
            BoardEntry::Finish { task, holder, token, result } => {
                self.finish(self.there(task)?, holder, *token, result)
            }
            BoardEntry::Fail { task, holder, token, why } => {
                self.fail(self.there(task)?, holder, *token, why)
            }
            BoardEntry::Release { task, holder, token, why } => {
                fitting("reason", why)?;
                let task = self.there(task)?;
                own(task, holder, *token)?;
                // Handing a task from member to member comes to an end, too.
                Ok(given_back(task, why, true).into_iter().collect())
            }
            BoardEntry::ReleaseAll { agent, why } => {
                let held = self.those(|task| holder(task) == Some(agent));
                Ok(held.into_iter().filter_map(|task| given_back(task, why, false)).collect())
            }
            BoardEntry::Offer { task, agent } => self.offer(self.there(task)?, agent),
            BoardEntry::Expire => {
                let lapsed = self.those(|task| lease(task).is_some_and(|until| until <= at));
                Ok(lapsed.into_iter().filter_map(|task| given_back(task, LAPSED, false)).collect())
            }
            BoardEntry::Cancel { task, by } => self.cancel(self.there(task)?, by),
            BoardEntry::Retry { task, by } => self.retry(self.there(task)?, by, at),
        }
    }

    fn there(&self, id: &TaskId) -> Result<&Task, BoardRefusal> {
        self.tasks.get(id).ok_or_else(|| self.unknown(id.as_str()))
    }

    fn claim(
        &self,
        task: &Task,
        claimant: &Claimant,
        ttl: u64,
        at: u64,
    ) -> Result<Vec<BoardEvent>, BoardRefusal> {
        let until = at.saturating_add(ttl);
        if holds(task, claimant) {
            return Ok(renewed(&[task], until));
        }
        if let Some(why) = taken(task, at) {
            return refuse(why);
        }
        if !self.is_ready(task) {
            let open = self.open_dependencies(task);
            let open =
                if open.is_empty() { "something that is not on the board".to_owned() } else { list(&open) };
            return refuse(format!(
                "{} waits for {open}. Take another task until that is done.",
                label(task)
            ));
        }
        if let Some(wanted) = task.role.as_ref().filter(|_| !fits(task, &claimant.role)) {
            return refuse(format!(
                "{} is for the role '{wanted}', and {} has the role '{}'. Leave it to a member with that \
                    role.",
                label(task),
                claimant.name,
                clip(&claimant.role)
            ));
        }
        let held = self.those(|task| holds(task, claimant));
        if let Some(other) = held.iter().find(|task| is_live(task, at)) {
            return refuse(format!(
                "{} already holds {}, and no member holds two: finish it or give it back first.",
                claimant.name,
                label(other)
            ));
        }
        // A claim that the claimant let run out goes back now; else a
        // renewal later could leave it with two tasks.
        let mut events: Vec<BoardEvent> =
            held.into_iter().filter_map(|task| given_back(task, LAPSED, false)).collect();
        let name = claimant.name.clone();
        let agent = claimant.agent.clone();
        events.push(TaskClaimed { task: task.id.clone(), name, agent, token: self.tokens + 1, until }.into());
        Ok(events)
    }

    fn finish(
        &self,
        task: &Task,
        holder: &Claimant,
        token: Option<u64>,
        result: &str,
    ) -> Result<Vec<BoardEvent>, BoardRefusal> {
        if matches!(&task.state, TaskState::Done { name, .. } if *name == holder.name)
            && task.result.as_deref().unwrap_or_default() == result
        {
            return Ok(Vec::new());
        }
        own(task, holder, token)?;
        fitting("result", result)?;
        let task = task.id.clone();
        let name = holder.name.clone();
        Ok(vec![TaskFinished { task, name, result: result.to_owned() }.into()])
    }

    fn fail(
        &self,
        task: &Task,
        holder: &Claimant,
        token: Option<u64>,
        why: &str,
    ) -> Result<Vec<BoardEvent>, BoardRefusal> {
        if let TaskState::Failed { name, why: said, .. } = &task.state
            && *name == holder.name
            && said == why
        {
            return Ok(Vec::new());
        }
        own(task, holder, token)?;
        fitting("reason", why)?;
        Ok(vec![TaskFailed { task: task.id.clone(), name: holder.name.clone(), why: why.to_owned() }.into()])
    }

    fn offer(&self, task: &Task, agent: &AgentId) -> Result<Vec<BoardEvent>, BoardRefusal> {
        if holder(task) != Some(agent) {
            return refuse(format!(
                "{agent} does not hold {} any more: there is nothing to go on with.",
                label(task)
            ));
        }
        Ok(vec![TaskOffered { task: task.id.clone() }.into()])
    }

    fn cancel(&self, task: &Task, by: &str) -> Result<Vec<BoardEvent>, BoardRefusal> {
        match &task.state {
            TaskState::Done { name, .. } => refuse(format!(
                "{} is done already (by {name}) and cannot be cancelled: create a task that undoes it, if \
                    need be.",
                label(task)
            )),
            TaskState::Failed { .. } => Ok(Vec::new()),
            TaskState::Pending | TaskState::Claimed { .. } => {
                let why = format!("cancelled by {by}");
                Ok(vec![TaskFailed { task: task.id.clone(), name: by.to_owned(), why }.into()])
            }
        }
    }

    fn retry(&self, task: &Task, by: &str, at: u64) -> Result<Vec<BoardEvent>, BoardRefusal> {
        let again = TaskRetried { task: task.id.clone(), by: by.to_owned() }.into();
        match &task.state {
            TaskState::Pending => Ok(Vec::new()),
            TaskState::Failed { .. } => Ok(vec![again]),
            TaskState::Done { name, .. } => refuse(format!(
                "{} is done (by {name}): only a failed task is tried again. Create another task instead.",
                label(task)
            )),
            // It has failed, but no event says so yet.
            TaskState::Claimed { until, .. } if *until <= at && task.attempts >= ATTEMPTS => {
                Ok(given_back(task, LAPSED, false).into_iter().chain([again]).collect())
            }
            TaskState::Claimed { name, .. } => refuse(format!(
                "{} is held by {name}: only a failed task is tried again. Wait for it, or cancel it first.",
                label(task)
            )),
        }
    }
}

/// One event for all claims that are longer from now on; none if there is none.
fn renewed(held: &[&Task], until: u64) -> Vec<BoardEvent> {
    let longer = held.iter().filter(|task| lease(task).is_some_and(|now| now < until));
    let tasks: Vec<TaskId> = longer.map(|task| task.id.clone()).collect();
    if tasks.is_empty() { Vec::new() } else { vec![TaskRenewed { tasks, until }.into()] }
}

/// The runtime takes a task from its holder. A task that is never finished
/// would go round for ever, so it fails at last.
fn given_back(task: &Task, why: &str, given_up: bool) -> Option<BoardEvent> {
    let TaskState::Claimed { name, .. } = &task.state else { return None };
    let id = task.id.clone();
    let name = name.clone();
    Some(if task.attempts >= ATTEMPTS {
        let why = format!("{why}; it was claimed {} times and never finished", task.attempts);
        TaskFailed { task: id, name, why }.into()
    } else {
        TaskReleased { task: id, name, why: why.to_owned(), given_up }.into()
    })
}

/// Whether this holder may write to a task. It still may after its claim ran out, if no
/// other one took it: its work is not lost.
fn own(task: &Task, who: &Claimant, token: Option<u64>) -> Result<(), BoardRefusal> {
    match &task.state {
        TaskState::Claimed { token: now, .. } if holds(task, who) => match token {
            Some(token) if token != *now => refuse(format!(
                "Claim {token} of {} is over, and {} holds it under claim {now}: drop this, and use the \
                    newer claim.",
                label(task),
                who.name
            )),
            _ => Ok(()),
        },
        TaskState::Claimed { name, .. } => refuse(format!(
            "{} is held by {name} now, not by {}: do not write to it; send what you have to {name}.",
            label(task),
            who.name
        )),
        TaskState::Pending => {
            refuse(format!("No member holds {} now: claim it before you say what became of it.", label(task)))
        }
        TaskState::Done { name, .. } => refuse(format!(
            "{} is done already (by {name}), and its result stays: send what is new to the members that need it.",
            label(task)
        )),
        TaskState::Failed { why, .. } => refuse(format!(
            "{} has failed already ({}): it can be claimed once it is to be tried again.",
            label(task),
            clip(why)
        )),
    }
}

/// Why a task cannot be claimed that is not free.
fn taken(task: &Task, at: u64) -> Option<String> {
    let named = label(task);
    match &task.state {
        TaskState::Pending => None,
        TaskState::Claimed { .. } if is_free(task, at) => None,
        TaskState::Claimed { name, until, .. } if *until > at => {
            Some(format!("{named} is held by {name}: take another task, or write to {name} about it."))
        }
        TaskState::Claimed { .. } => Some(format!(
            "{named} was claimed {} times and never finished: take another task; this one can be claimed \
             once it is to be tried again.",
            task.attempts
        )),
        TaskState::Done { name, .. } => {
            Some(format!("{named} is done already (by {name}): take another task."))
        }
        TaskState::Failed { why, .. } => Some(format!(
            "{named} has failed ({}): take another task; this one can be claimed once it is to be \
                tried again.",
            clip(why)
        )),
    }
}
