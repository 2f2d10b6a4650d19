//! Folding: what a board is after each of its events. Total, and it decides nothing.

use super::events::{TaskClaimed, TaskCreated, TaskRenewed};
use super::{Board, BoardEvent, Task, TaskEdit, TaskState};
use crate::ids::TaskId;

impl Board {
    /// Takes in what has happened. Total: an event that does not match the state changes only what it names.
    pub fn apply(&mut self, event: &BoardEvent, at: u64) {
        self.count += 1;
        match event {
            BoardEvent::TaskCreated(event) => self.created(event, at),
            BoardEvent::TaskEdited(event) => self.with(&event.task, |task| {
                task.change(&event.edit);
                // Another member has edited the task, which may be worth another try now.
                task.given_up.take_if(|giver| *giver != event.by);
            }),
            BoardEvent::TaskClaimed(event) => self.claimed(event),
            BoardEvent::TaskRenewed(TaskRenewed { tasks, until: longer }) => {
                for id in tasks {
                    self.with(id, |task| {
                        if let TaskState::Claimed { until, .. } = &mut task.state {
                            *until = (*until).max(*longer);
                        }
                    });
                }
            }
            BoardEvent::TaskOffered(event) => {
                self.with(&event.task, |task| task.offers = task.offers.saturating_add(1))
            }
            BoardEvent::TaskReleased(event) => self.with(&event.task, |task| {
                let given_up = event.given_up.then(|| event.name.clone());
                task.stands(TaskState::Pending);
                task.given_up = given_up;
            }),
            BoardEvent::TaskFinished(event) => self.with(&event.task, |task| {
                task.stands(TaskState::Done { name: event.name.clone(), at });
                task.result = Some(event.result.clone()).filter(|result| !result.is_empty());
            }),
            BoardEvent::TaskFailed(event) => self.with(&event.task, |task| {
                task.stands(TaskState::Failed { name: event.name.clone(), why: event.why.clone(), at });
            }),
            BoardEvent::TaskRetried(event) => self.with(&event.task, |task| {
                task.stands(TaskState::Pending);
                task.attempts = 0;
                task.given_up = None;
            }),
        }
    }

    fn with(&mut self, id: &TaskId, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.tasks.get_mut(id) {
            change(task);
        }
    }

    fn created(&mut self, event: &TaskCreated, at: u64) {
        self.numbers += 1;
        let task = Task {
            id: event.task.clone(),
            number: self.numbers,
            subject: event.subject.clone(),
            description: event.description.clone(),
            criteria: event.criteria.clone(),
            blocked_by: event.blocked_by.clone(),
            role: event.role.clone(),
            priority: event.priority,
            state: TaskState::Pending,
            result: None,
            attempts: 0,
            offers: 0,
            given_up: None,
            by: event.by.clone(),
            at,
        };
        self.tasks.insert(event.task.clone(), task);
    }

    fn claimed(&mut self, event: &TaskClaimed) {
        self.tokens = self.tokens.max(event.token);
        let name = event.name.clone();
        let agent = event.agent.clone();
        let state = TaskState::Claimed { name, agent, token: event.token, until: event.until };
        self.with(&event.task, |task| {
            task.stands(state);
            task.attempts = task.attempts.saturating_add(1);
        });
    }
}

impl Task {
    /// The task changes its state, and the offers to its last holder are over.
    fn stands(&mut self, state: TaskState) {
        self.state = state;
        self.offers = 0;
    }

    /// Changes what an edit names. What is added comes after what is removed, so that naming a task in both
    /// puts it last.
    pub(super) fn change(&mut self, edit: &TaskEdit) {
        let unblank = |text: &String| Some(text.clone()).filter(|text| !text.trim().is_empty());
        if let Some(subject) = &edit.subject {
            self.subject.clone_from(subject);
        }
        if let Some(description) = &edit.description {
            self.description.clone_from(description);
        }
        if let Some(criteria) = &edit.criteria {
            self.criteria = unblank(criteria);
        }
        if let Some(role) = &edit.role {
            self.role = unblank(role);
        }
        self.priority = edit.priority.unwrap_or(self.priority);
        self.blocked_by.retain(|id| !edit.remove_blocked_by.contains(id));
        for id in &edit.add_blocked_by {
            if !self.blocked_by.contains(id) {
                self.blocked_by.push(id.clone());
            }
        }
    }
}
