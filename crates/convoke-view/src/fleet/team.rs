//! The team: members, letters and tasks. The kernel's own roster and board are the truth. What a letter says
//! is in its reader's history and nowhere else, so it is shown once the letter is there.

use std::collections::HashMap;

use convoke_kernel::{
    Board, BoardEvent, Event, Letter, LetterKind, MessageId, Role, Roster, RosterEvent, Task, TaskId,
    TaskState,
};

use super::labels::{body, letter_word, line};
use super::rows::{LetterRow, TaskRow};
use super::{AgentOrigin, Fleet};

/// Roster and board, and where their rows are.
#[derive(Debug, Default)]
pub(super) struct Team {
    roster: Roster,
    board: Board,
    letters: HashMap<MessageId, usize>,
    tasks: HashMap<TaskId, usize>,
}

impl Fleet {
    /// Folds an event of the roster; says whether anything looks different now.
    pub(super) fn hear_roster(&mut self, at: u64, event: &RosterEvent) -> bool {
        self.team.roster.apply(event, at);
        match event {
            RosterEvent::RosterOpened(e) => {
                self.lead.get_or_insert_with(|| e.lead.clone());
                false
            }
            RosterEvent::MemberSpawned(e) => {
                let post = AgentOrigin { run: None, ..AgentOrigin::of("team", &e.name, Role::Teammate) };
                self.post(&e.agent, at, post);
                let role = line(&e.role);
                self.change(&e.agent, at, |_, row| {
                    if row.last.is_empty() {
                        row.last = role;
                    }
                });
                self.member(&e.name, at);
                true
            }
            RosterEvent::LetterPosted(e) => {
                self.letter(&e.id, at, (&e.from, &e.to), e.kind);
                true
            }
            RosterEvent::LettersTaken(e) => self.letters_read(&e.letters, true),
            RosterEvent::LettersPutBack(e) => self.letters_read(&e.letters, false),
            RosterEvent::RequestAsked(e) => self.member(&e.to, at),
            RosterEvent::RequestAnswered(e) => {
                let to = self.team.roster.request(&e.request).map(|request| request.to.clone());
                to.is_some_and(|to| self.member(&to, at))
            }
            RosterEvent::MemberStopped(e) => self.member(&e.name, at),
            RosterEvent::MemberFailed(e) => self.member(&e.name, at),
            RosterEvent::MemberRecovered(e) => self.member(&e.name, at),
            RosterEvent::MemberAsleep(e) => self.member(&e.name, at),
            RosterEvent::MemberAwake(e) => self.member(&e.name, at),
            RosterEvent::RestsTold(_) => false,
        }
    }

    /// Writes where a member stands into its agent's row.
    fn member(&mut self, name: &str, at: u64) -> bool {
        // The lead stands where its own events say.
        let member = self.team.roster.member(name).filter(|member| member.name != convoke_kernel::LEAD);
        let Some(member) = member.cloned() else { return false };
        self.change(&member.agent, at, |track, row| track.stand(row, &member))
    }

    /// The row of a letter; it is made if there is none.
    fn letter(
        &mut self,
        id: &MessageId,
        at: u64,
        (from, to): (&str, &str),
        kind: LetterKind,
    ) -> &mut LetterRow {
        let rows = &mut self.lists.letters;
        let place = *self.team.letters.entry(id.clone()).or_insert_with(|| {
            let from = line(from);
            let to = line(to);
            let kind = letter_word(kind);
            rows.push(LetterRow { id: id.clone(), at, from, to, kind, text: None, read: false });
            rows.len() - 1
        });
        &mut rows[place]
    }

    fn letters_read(&mut self, letters: &[(MessageId, bool)], read: bool) -> bool {
        let mut is_changed = false;
        for (id, _) in letters {
            let row = self.team.letters.get(id).and_then(|place| self.lists.letters.get_mut(*place));
            if let Some(row) = row.filter(|row| row.read != read) {
                (row.read, is_changed) = (read, true);
            }
        }
        is_changed
    }

    /// Takes what letters say from the event that brings them to their reader.
    pub(super) fn letters_in(&mut self, event: &Event) -> bool {
        let letters: &[Letter] = match event {
            Event::ExchangeOpened(e) => &e.letters,
            Event::MailDelivered(e) => &e.letters,
            _ => return false,
        };
        for letter in letters {
            let row = self.letter(&letter.id, letter.at, (&letter.from, &letter.to), letter.kind);
            (row.text, row.read) = (Some(body(&letter.text)), true);
        }
        !letters.is_empty()
    }

    /// Folds an event of the board; says whether anything looks different now.
    pub(super) fn hear_board(&mut self, at: u64, event: &BoardEvent) -> bool {
        self.team.board.apply(event, at);
        let task = match event {
            BoardEvent::TaskCreated(e) => &e.task,
            BoardEvent::TaskEdited(e) => &e.task,
            BoardEvent::TaskClaimed(e) => &e.task,
            BoardEvent::TaskReleased(e) => &e.task,
            BoardEvent::TaskFinished(e) => &e.task,
            BoardEvent::TaskFailed(e) => &e.task,
            BoardEvent::TaskRetried(e) => &e.task,
            // How long a claim is sure of, and how often its holder was asked, is not shown.
            BoardEvent::TaskRenewed(_) | BoardEvent::TaskOffered(_) => return false,
        };
        let waits = |row: &&TaskRow| row.blocked_by.contains(task) && row.id != *task;
        let waiting: Vec<TaskId> = self.lists.tasks.iter().filter(waits).map(|row| row.id.clone()).collect();
        let mut is_changed = self.task(task);
        for id in waiting {
            is_changed |= self.task(&id);
        }
        is_changed
    }

    /// Makes the row of a task anew.
    fn task(&mut self, id: &TaskId) -> bool {
        let Some(task) = self.team.board.task(id) else { return false };
        let rows = &mut self.lists.tasks;
        let place = self.team.tasks.get(id).copied();
        let before = place.and_then(|place| rows.get(place));
        let is_blocked = !self.team.board.open_dependencies(task).is_empty();
        let row = task_row(task, is_blocked, before.and_then(|row| row.owner.clone()));
        match place {
            Some(place) if rows[place] == row => return false,
            Some(place) => rows[place] = row,
            None => {
                self.team.tasks.insert(id.clone(), rows.len());
                rows.push(row);
            }
        }
        true
    }
}

fn task_row(task: &Task, is_blocked: bool, last_owner: Option<String>) -> TaskRow {
    let (state, owner, end) = match &task.state {
        TaskState::Pending if is_blocked => ("blocked", last_owner, None),
        TaskState::Pending => ("open", last_owner, None),
        TaskState::Claimed { name, .. } => ("claimed", Some(line(name)), None),
        TaskState::Done { name, .. } => ("done", Some(line(name)), None),
        // The member that cancels a task did not hold it.
        TaskState::Failed { name, why, .. } if *why == format!("cancelled by {name}") => {
            ("cancelled", last_owner, Some(why))
        }
        TaskState::Failed { name, why, .. } => ("failed", Some(line(name)), Some(why)),
    };
    let parts = [
        Some(body(&task.description)),
        task.criteria.as_ref().map(|criteria| format!("done when: {}", body(criteria))),
        task.result.as_ref().map(|result| format!("result: {}", body(result))),
        end.map(|why| body(why)),
    ];
    TaskRow {
        id: task.id.clone(),
        subject: line(&task.subject),
        state,
        owner,
        role: task.role.as_deref().map(line),
        blocked_by: task.blocked_by.clone(),
        detail: parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"),
    }
}
