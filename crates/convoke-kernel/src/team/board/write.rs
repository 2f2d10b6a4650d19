//! Writing tasks and changing them: what a text must be like, and that dependencies exist and never run in a
//! circle. It decides and changes nothing.

use std::collections::{BTreeMap, VecDeque};

use super::events::{TaskCreated, TaskEdited};
use super::refusals::{label, names, refuse, standing};
use super::{Board, BoardEvent, BoardRefusal, NewTask, TASKS, Task, TaskEdit, TaskState};
use crate::ids::TaskId;

/// Characters of a subject or a role.
const LINE: usize = 200;
/// Bytes of any other text of a task.
const TEXT: usize = 32 * 1024;
/// Tasks of a circle that are spelled out.
const SPELLED: usize = 12;

impl Board {
    pub(super) fn create(
        &self,
        id: &TaskId,
        new: &NewTask,
        by: &str,
    ) -> Result<Vec<BoardEvent>, BoardRefusal> {
        let new = usable(new)?;
        if let Some(there) = self.tasks.get(id) {
            // The same call once more, after a crash between its decision and its outcome.
            return if is_same(there, &new) {
                Ok(Vec::new())
            } else {
                refuse(format!(
                    "{} is there already and says something else: change it, or use another id.",
                    label(there)
                ))
            };
        }
        if self.tasks.len() >= TASKS {
            return refuse(format!(
                "The board has {TASKS} tasks, which is as many as it takes: put more of the work into one \
                    task, or start another session."
            ));
        }
        self.known(&new.blocked_by)?;
        let NewTask { subject, description, criteria, blocked_by, role, priority } = new;
        let task = id.clone();
        let by = by.to_owned();
        Ok(vec![TaskCreated { task, subject, description, criteria, blocked_by, role, priority, by }.into()])
    }

    pub(super) fn edit(
        &self,
        task: &Task,
        edit: &TaskEdit,
        by: &str,
    ) -> Result<Vec<BoardEvent>, BoardRefusal> {
        if let TaskState::Done { name, .. } = &task.state {
            return refuse(format!(
                "{} is done (by {name}) and stays as it is: create another task for what is missing.",
                label(task)
            ));
        }
        let mut edit = trimmed(edit)?;
        self.known(&edit.add_blocked_by)?;
        self.known(&edit.remove_blocked_by)?;
        if edit.add_blocked_by.contains(&task.id) {
            return refuse(format!("{} cannot wait for itself: leave its own id out.", label(task)));
        }
        edit.remove_blocked_by.retain(|id| task.blocked_by.contains(id));
        edit.add_blocked_by.retain(|id| !task.blocked_by.contains(id) || edit.remove_blocked_by.contains(id));
        let relinked = !edit.add_blocked_by.is_empty() || !edit.remove_blocked_by.is_empty();
        if relinked && task.state != TaskState::Pending {
            return refuse(format!(
                "What {} waits for can be changed only while it is pending, and it is {}: do that when it is \
                    pending again.",
                label(task),
                standing(&task.state)
            ));
        }
        if let Some(circle) = edit.add_blocked_by.iter().find_map(|id| self.circle(task, id)) {
            return refuse(format!("That would be a circle: {circle}. Leave one of these dependencies out."));
        }
        let mut after = task.clone();
        after.change(&edit);
        if after == *task {
            return Ok(Vec::new());
        }
        Ok(vec![TaskEdited { task: task.id.clone(), edit, by: by.to_owned() }.into()])
    }

    /// Refuses ids that are not on the board.
    fn known(&self, ids: &[TaskId]) -> Result<(), BoardRefusal> {
        let missing: Vec<&str> =
            ids.iter().filter(|id| !self.tasks.contains_key(id)).map(TaskId::as_str).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing = names(missing.into_iter());
        if self.tasks.is_empty() {
            return refuse(format!(
                "Not on the board: {missing}. It is empty: create what comes first before what waits for it."
            ));
        }
        refuse(format!("Not on the board: {missing}. {}", self.what_there_is()))
    }

    /// The circle that would arise if a task waited for another one, spelled out: the
    /// shortest way from that one back to the task.
    fn circle(&self, task: &Task, added: &TaskId) -> Option<String> {
        let mut reached_from: BTreeMap<&TaskId, &TaskId> = BTreeMap::new();
        let mut left = VecDeque::from([added]);
        while let Some(id) = left.pop_front() {
            for next in &self.tasks.get(id)?.blocked_by {
                if *next == task.id {
                    let mut way = vec![task.id.as_str(), id.as_str()];
                    let mut id = id;
                    while let Some(before) = reached_from.get(id) {
                        id = before;
                        way.push(id.as_str());
                    }
                    way.push(task.id.as_str());
                    way.reverse();
                    if way.len() > SPELLED {
                        way.splice(SPELLED / 2..way.len() - SPELLED / 2, ["…"]);
                    }
                    return Some(way.join(" waits for "));
                }
                if next != added && self.tasks.contains_key(next) && !reached_from.contains_key(next) {
                    reached_from.insert(next, id);
                    left.push_back(next);
                }
            }
        }
        None
    }
}

/// Refuses a text that is longer than a board takes. Nothing is cut: the author has to say where the rest is.
pub(super) fn fitting(what: &str, text: &str) -> Result<(), BoardRefusal> {
    if text.len() > TEXT {
        return refuse(format!(
            "The {what} has {} bytes and a board takes {TEXT}: put the rest into a file and say where it is.",
            text.len()
        ));
    }
    Ok(())
}

fn line(what: &str, text: &str) -> Result<String, BoardRefusal> {
    let text = text.trim();
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return refuse(format!(
            "The {what} has to be one line of plain text: put the rest into the description."
        ));
    }
    let length = text.chars().count();
    if length > LINE {
        return refuse(format!(
            "The {what} has {length} characters and may have {LINE}: put the rest into the description."
        ));
    }
    Ok(text.to_owned())
}

fn subject(text: &str) -> Result<String, BoardRefusal> {
    match line("subject", text)? {
        blank if blank.is_empty() => {
            refuse("A task needs a subject: say in one line what it is about.".to_owned())
        }
        subject => Ok(subject),
    }
}

/// The text, or `None` if it is blank.
fn said(text: String) -> Option<String> {
    Some(text).filter(|text| !text.trim().is_empty())
}

fn unique(ids: &[TaskId]) -> Vec<TaskId> {
    let mut kept: Vec<TaskId> = Vec::new();
    for id in ids {
        if !kept.contains(id) {
            kept.push(id.clone());
        }
    }
    kept
}

/// A new task as it is written on the board.
fn usable(new: &NewTask) -> Result<NewTask, BoardRefusal> {
    fitting("description", &new.description)?;
    fitting("criteria", new.criteria.as_deref().unwrap_or_default())?;
    Ok(NewTask {
        subject: subject(&new.subject)?,
        description: new.description.clone(),
        criteria: new.criteria.clone().and_then(said),
        blocked_by: unique(&new.blocked_by),
        role: line("role", new.role.as_deref().unwrap_or_default()).map(said)?,
        priority: new.priority,
    })
}

/// A change as it is recorded.
fn trimmed(edit: &TaskEdit) -> Result<TaskEdit, BoardRefusal> {
    fitting("description", edit.description.as_deref().unwrap_or_default())?;
    fitting("criteria", edit.criteria.as_deref().unwrap_or_default())?;
    Ok(TaskEdit {
        subject: edit.subject.as_deref().map(subject).transpose()?,
        description: edit.description.clone(),
        criteria: edit.criteria.clone(),
        priority: edit.priority,
        role: edit.role.as_deref().map(|role| line("role", role)).transpose()?,
        add_blocked_by: unique(&edit.add_blocked_by),
        remove_blocked_by: unique(&edit.remove_blocked_by),
    })
}

fn is_same(task: &Task, new: &NewTask) -> bool {
    (&task.subject, &task.description, &task.criteria) == (&new.subject, &new.description, &new.criteria)
        && (&task.blocked_by, &task.role, task.priority) == (&new.blocked_by, &new.role, new.priority)
}
