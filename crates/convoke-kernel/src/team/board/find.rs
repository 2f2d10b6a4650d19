//! Questions to a board: which task a text names, what is open, what each agent holds, and what a claimant
//! could claim. It changes nothing.

use std::collections::BTreeSet;

use super::refusals::{clip, label, list, refuse, standing};
use super::{ATTEMPTS, Board, BoardRefusal, Claimant, Task, TaskState};
use crate::capsule::TaskBrief;
use crate::ids::{AgentId, TaskId};

/// Characters of an id, its prefix left out, that are enough to name a task if no other begins with them.
const SHORTEST: usize = 3;

impl Board {
    /// The task that a text names: by an id, by a unique beginning of one, or by `#` and its number. The
    /// refusal says what there is; for a subject it names the task that has it.
    pub fn find(&self, said: &str) -> Result<&Task, BoardRefusal> {
        let said = said.trim();
        if let Some(task) = said.parse().ok().and_then(|id: TaskId| self.tasks.get(&id)) {
            return Ok(task);
        }
        let number = said.strip_prefix('#').unwrap_or(said).parse::<u64>().ok();
        if let Some(task) = number.and_then(|number| self.tasks.values().find(|task| task.number == number)) {
            return Ok(task);
        }
        let lower = said.to_lowercase();
        let beginning = lower.strip_prefix(TaskId::PREFIX).unwrap_or(&lower);
        if beginning.len() >= SHORTEST {
            let meant = self.those(|task| task.id.as_str()[TaskId::PREFIX.len()..].starts_with(beginning));
            match meant[..] {
                [] => {}
                [task] => return Ok(task),
                _ => {
                    return refuse(format!(
                        "'{}' begins several tasks: {}. Say more of the id.",
                        clip(said),
                        list(&meant)
                    ));
                }
            }
        }
        let titled = self.those(|task| task.subject.to_lowercase() == lower);
        if !titled.is_empty() {
            return refuse(format!(
                "Tasks are named by their id, and '{}' is a subject. The task that has it: {}. Use that id.",
                clip(said),
                list(&titled)
            ));
        }
        Err(self.unknown(said))
    }

    /// What a task still waits for: dependencies that are not done.
    pub fn open_dependencies(&self, task: &Task) -> Vec<&Task> {
        let known = task.blocked_by.iter().filter_map(|id| self.tasks.get(id));
        known.filter(|needed| !is_done(needed)).collect()
    }

    /// What a claimant could claim at this time, best first: priority, then age. Empty for one that holds a
    /// task.
    pub fn claimable(&self, claimant: &Claimant, at: u64) -> Vec<&Task> {
        if self.tasks.values().any(|task| holds(task, claimant) && is_live(task, at)) {
            return Vec::new();
        }
        let mut tasks: Vec<&Task> = self
            .tasks
            .values()
            .filter(|task| is_free(task, at) && !holds(task, claimant) && fits(task, &claimant.role))
            .filter(|task| self.is_ready(task))
            .collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.priority), task.number));
        tasks
    }

    /// The task that an agent holds, its lease run out or not.
    pub fn held_by(&self, agent: &AgentId) -> Option<&Task> {
        self.tasks.values().find(|task| holder(task) == Some(agent))
    }

    /// When the next lease of a claim runs out.
    pub fn next_expiry(&self) -> Option<u64> {
        self.tasks.values().filter_map(lease).min()
    }

    /// Tasks that are neither done nor failed.
    pub fn unfinished(&self) -> Vec<&Task> {
        self.those(|task| matches!(task.state, TaskState::Pending | TaskState::Claimed { .. }))
    }

    /// Why a pending task can never be claimed as things stand: a dependency failed or is missing, or no
    /// member has the role it wants (`roles` are those of the team). `None` if it can be claimed now or
    /// later. The reason of a pending dependency is the reason of every task that waits for it.
    pub fn stuck(&self, task: &Task, roles: &[&str]) -> Option<String> {
        if task.state != TaskState::Pending {
            return None;
        }
        let wanting = |task: &Task| {
            let role = task.role.as_deref().filter(|_| !roles.iter().any(|role| fits(task, role)))?;
            Some(format!("wants the role '{role}', which no member of the team has"))
        };
        if let Some(why) = wanting(task) {
            return Some(why);
        }
        let mut seen: BTreeSet<&TaskId> = BTreeSet::from([&task.id]);
        let mut left: Vec<&TaskId> = task.blocked_by.iter().rev().collect();
        while let Some(id) = left.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(needed) = self.tasks.get(id) else {
                return Some(format!("waits for {id}, which is not on the board"));
            };
            match &needed.state {
                TaskState::Failed { why, .. } => {
                    return Some(format!("waits for {}, which failed: {}", label(needed), clip(why)));
                }
                TaskState::Pending => match wanting(needed) {
                    Some(why) => return Some(format!("waits for {}, which {why}", label(needed))),
                    None => left.extend(needed.blocked_by.iter().rev()),
                },
                TaskState::Claimed { .. } | TaskState::Done { .. } => {}
            }
        }
        None
    }

    /// A task as it is handed over: whole, with what it depended on.
    pub fn brief(&self, task: &Task) -> TaskBrief {
        let each = |id: &TaskId| match self.tasks.get(id) {
            Some(needed) if is_done(needed) => {
                (id.to_string(), needed.subject.clone(), needed.result.clone().unwrap_or_default())
            }
            Some(needed) => {
                (id.to_string(), needed.subject.clone(), format!("not done: {}", standing(&needed.state)))
            }
            None => (id.to_string(), String::new(), "not on the board".to_owned()),
        };
        TaskBrief { task: task.clone(), after: task.blocked_by.iter().map(each).collect() }
    }

    /// The refusal of something that names no task.
    pub(super) fn unknown(&self, said: &str) -> BoardRefusal {
        if self.tasks.is_empty() {
            return BoardRefusal(format!(
                "There is no task '{}': the board is empty. Create a task first.",
                clip(said)
            ));
        }
        BoardRefusal(format!(
            "There is no task '{}'. Name one by its id. {}",
            clip(said),
            self.what_there_is()
        ))
    }

    /// The tasks there are; those that are still to be done first, because they are what is mostly meant.
    pub(super) fn what_there_is(&self) -> String {
        let mut tasks = self.unfinished();
        tasks.extend(
            self.those(|task| matches!(task.state, TaskState::Done { .. } | TaskState::Failed { .. })),
        );
        format!("There are: {}.", list(&tasks))
    }

    /// Tasks of which something is true, in the order they were written.
    pub(super) fn those(&self, wanted: impl Fn(&Task) -> bool) -> Vec<&Task> {
        let mut tasks: Vec<&Task> = self.tasks.values().filter(|task| wanted(task)).collect();
        tasks.sort_by_key(|task| task.number);
        tasks
    }

    /// Whether everything that has to be done before a task is done. One that is not on the board is not.
    pub(super) fn is_ready(&self, task: &Task) -> bool {
        task.blocked_by.iter().all(|id| self.tasks.get(id).is_some_and(is_done))
    }
}

fn is_done(task: &Task) -> bool {
    matches!(task.state, TaskState::Done { .. })
}

/// The agent that holds a task.
pub(super) fn holder(task: &Task) -> Option<&AgentId> {
    match &task.state {
        TaskState::Claimed { agent, .. } => agent.as_ref(),
        _ => None,
    }
}

/// Until when the holder is sure of a task.
pub(super) fn lease(task: &Task) -> Option<u64> {
    match task.state {
        TaskState::Claimed { until, .. } => Some(until),
        _ => None,
    }
}

/// Whether a task is held under a lease that has not run out.
pub(super) fn is_live(task: &Task, at: u64) -> bool {
    lease(task).is_some_and(|until| until > at)
}

/// Whether a task is this claimant's: by its agent if the claim has one, else by
/// the name of a claimant without an agent.
pub(super) fn holds(task: &Task, who: &Claimant) -> bool {
    match &task.state {
        TaskState::Claimed { agent: Some(agent), .. } => who.agent.as_ref() == Some(agent),
        TaskState::Claimed { agent: None, name, .. } => who.agent.is_none() && *name == who.name,
        _ => false,
    }
}

/// Whether a task may be claimed: it has no holder, or the holder's lease ran out. After [`ATTEMPTS`] claims
/// it may not; it is about to fail.
pub(super) fn is_free(task: &Task, at: u64) -> bool {
    match task.state {
        TaskState::Pending => true,
        TaskState::Claimed { until, .. } => until <= at && task.attempts < ATTEMPTS,
        TaskState::Done { .. } | TaskState::Failed { .. } => false,
    }
}

/// Whether a role is one that a task can be given to.
pub(super) fn fits(task: &Task, role: &str) -> bool {
    task.role.as_ref().is_none_or(|wanted| wanted.trim().to_lowercase() == role.trim().to_lowercase())
}
