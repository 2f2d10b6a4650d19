//! The board as its users meet it: what is allowed, what is refused and in which words. The walk at random is
//! beside it.

mod claims;
mod walk;
mod writing;

use super::{Board, BoardEntry, BoardEvent, Claimant, NewTask, Task, TaskEdit, TaskState};
use crate::ids::{AgentId, TaskId};

/// How long a claim of these tests lasts.
const TTL: u64 = 100;

fn id(number: u64) -> TaskId {
    TaskId::derived(&["task", &number.to_string()])
}

fn agent(name: &str) -> AgentId {
    AgentId::derived(&["teammate", name])
}

/// A teammate, with the role `coder`.
fn member(name: &str) -> Claimant {
    with_role(name, "coder")
}

fn with_role(name: &str, role: &str) -> Claimant {
    Claimant { name: name.to_owned(), agent: Some(agent(name)), role: role.to_owned() }
}

fn script(name: &str) -> Claimant {
    Claimant { name: name.to_owned(), agent: None, role: String::new() }
}

fn new(subject: &str) -> NewTask {
    NewTask { subject: subject.to_owned(), ..NewTask::default() }
}

fn create(number: u64, task: NewTask) -> BoardEntry {
    BoardEntry::Create { id: id(number), task, by: "lead".to_owned() }
}

fn edit(number: u64, edit: TaskEdit) -> BoardEntry {
    BoardEntry::Edit { task: id(number), edit, by: "lead".to_owned() }
}

fn claim(number: u64, claimant: &Claimant) -> BoardEntry {
    BoardEntry::Claim { task: id(number), claimant: claimant.clone(), ttl: TTL }
}

fn finish(number: u64, holder: &Claimant, token: Option<u64>, result: &str) -> BoardEntry {
    BoardEntry::Finish { task: id(number), holder: holder.clone(), token, result: result.to_owned() }
}

fn fail(number: u64, holder: &Claimant, why: &str) -> BoardEntry {
    BoardEntry::Fail { task: id(number), holder: holder.clone(), token: None, why: why.to_owned() }
}

fn release(number: u64, holder: &Claimant, token: Option<u64>) -> BoardEntry {
    BoardEntry::Release { task: id(number), holder: holder.clone(), token, why: "changed my mind".to_owned() }
}

/// A board with a clock that the test turns.
#[derive(Default)]
struct TestBoard {
    board: Board,
    at: u64,
}

impl TestBoard {
    /// A board with these tasks; the first is number 1.
    fn with(tasks: impl IntoIterator<Item = NewTask>) -> Self {
        let mut fixture = Self { at: 1_000, ..Self::default() };
        for (number, task) in (1..).zip(tasks) {
            fixture.does(&create(number, task));
        }
        fixture
    }

    /// A board with so many plain tasks.
    fn plain(count: u64) -> Self {
        Self::with((1..=count).map(|number| new(&format!("task {number}"))))
    }

    /// The entry is accepted; these are the kinds of its events.
    fn does(&mut self, entry: &BoardEntry) -> Vec<&'static str> {
        let events =
            self.board.decide(entry, self.at).unwrap_or_else(|refusal| panic!("{entry:?}: {refusal}"));
        for event in &events {
            self.board.apply(event, self.at);
        }
        events.iter().map(BoardEvent::kind).collect()
    }

    /// The entry is refused, and the refusal says all of this.
    fn refuses(&self, entry: &BoardEntry, said: &[&str]) {
        let refusal = self.board.decide(entry, self.at).expect_err("refused").to_string();
        for part in said {
            assert!(refusal.contains(part), "'{part}' is not in: {refusal}");
        }
    }

    fn task(&self, number: u64) -> &Task {
        self.board.task(&id(number)).unwrap()
    }

    /// The holder of a task, its claim and until when.
    fn held(&self, number: u64) -> Option<(&str, u64, u64)> {
        match &self.task(number).state {
            TaskState::Claimed { name, token, until, .. } => Some((name, *token, *until)),
            _ => None,
        }
    }

    fn is_pending(&self, number: u64) -> bool {
        self.task(number).state == TaskState::Pending
    }

    fn claimable(&self, claimant: &Claimant) -> Vec<u64> {
        self.board.claimable(claimant, self.at).iter().map(|task| task.number).collect()
    }
}

fn after(subject: &str, blocked_by: &[u64]) -> NewTask {
    NewTask { blocked_by: blocked_by.iter().map(|number| id(*number)).collect(), ..new(subject) }
}

fn for_role(subject: &str, role: &str) -> NewTask {
    NewTask { role: Some(role.to_owned()), ..new(subject) }
}

#[test]
fn a_board_is_the_same_after_its_row_was_written_and_read() {
    let mut fixture = TestBoard::with([new("one"), after("two", &[1]), for_role("three", "tester")]);
    fixture.does(&claim(1, &member("alice")));
    fixture.does(&finish(1, &member("alice"), None, "fine"));
    fixture.does(&claim(2, &script("ci")));
    fixture.does(&BoardEntry::Cancel { task: id(3), by: "person".to_owned() });
    let row = serde_json::to_string(&fixture.board).unwrap();
    assert_eq!(serde_json::from_str::<Board>(&row).unwrap(), fixture.board);
    assert_eq!(serde_json::from_str::<Board>("{}").unwrap(), Board::default());
}

#[test]
fn events_that_name_no_task_change_nothing_but_the_count() {
    let known = TestBoard::with([new("one")]).board;
    let foreign = TestBoard::plain(9);
    let mut events = foreign.board.decide(&claim(9, &member("alice")), 0).unwrap();
    events.push(super::TaskOffered { task: id(9) }.into());
    events.push(super::TaskRenewed { tasks: vec![id(9)], until: 7 }.into());
    events.push(super::TaskFinished { task: id(9), name: "alice".to_owned(), result: String::new() }.into());
    let mut board = known.clone();
    for event in &events {
        board.apply(event, 0);
    }
    assert_eq!(board.count(), known.count() + 4);
    assert_eq!(board.tasks(), known.tasks());
}
