//! The team: which members it has, what they write, what they do.

use convoke_kernel::{
    Letter, LetterKind, LetterPosted, LettersPutBack, LettersTaken, MailDelivered, MemberAsleep,
    MemberFailed, MemberSpawned, MemberStopped, MessageId, RequestAnswered, RequestAsked, RequestKind,
    RequestState, RosterOpened, Segment, TaskClaimed, TaskCreated, TaskEdit, TaskEdited, TaskFailed,
    TaskFinished, TaskId, TaskReleased, TaskRenewed, TaskRetried,
};
use serde_json::json;

use super::stage::*;
use super::*;

fn spawned(name: &str, agent: u32) -> MemberSpawned {
    let name = name.to_owned();
    let role = "coder".to_owned();
    let by = "lead".to_owned();
    MemberSpawned { name, role, agent: id(agent), requires_plan: false, by }
}

#[test]
fn b18_c21_a_teammate_is_shown_from_its_spawning_to_its_stop() {
    let mut stage = Stage::default();
    let check = |stage: &Stage, expected: &str| assert_eq!(stage.told(1), expected);
    stage.roster(RosterOpened { lead: id(0) });
    assert_eq!(stage.fleet.lead(), Some(&id(0)));
    stage.roster(spawned("bob", 1));
    check(&stage, "team | bob | waiting | waiting | coder");
    stage.starts(1, Role::Teammate, "bob");
    stage.opens(1, "mend it");
    check(&stage, "team | bob | running | running | mend it");
    stage.ends(1, None, None);
    stage.roster(MemberAsleep { name: "bob".into() });
    check(&stage, "team | bob | resting | resting | all is well");
    let request = MessageId::derived(&["r"]);
    let kind = RequestKind::Shutdown;
    let from = "lead".to_owned();
    let to = "bob".to_owned();
    let asked = RequestAsked { request: request.clone(), kind, from, to, task: None, deadline: Some(9) };
    stage.roster(asked.clone());
    check(&stage, "team | bob | resting | resting | asked to stop");
    stage.roster(RequestAnswered { request, state: RequestState::Rejected, by: "bob".into() });
    stage.roster(MemberFailed { name: "bob".into(), why: "no money".into() });
    check(&stage, "team | bob | failed | failed | no money");
    stage.opens(1, "again");
    check(&stage, "team | bob | running | running | again");
    stage.roster(MemberStopped { name: "bob".into(), why: "the lead is done".into() });
    check(&stage, "team | bob | stopped | stopped | the lead is done");
    assert_eq!(stage.phases(), ["team 0r 0w 0f 0d of 1"]);
    // The next bearer of the name is another agent.
    stage.roster(spawned("bob", 2));
    assert_eq!((stage.row(1).state, stage.row(2).state), (AgentState::Stopped, AgentState::Waiting));
}

fn posted(letter: &Letter) -> LetterPosted {
    let Letter { id, from, to, kind, urgent, .. } = letter.clone();
    LetterPosted { id, from, to, kind, urgent }
}

fn letters(stage: &Stage, text: &str) -> Vec<String> {
    let rows = stage.fleet.letters(&RowFilter { text: text.into(), state: None });
    let short = |row: &&LetterRow| {
        let said = row.text.as_deref().unwrap_or("?");
        format!(
            "{} to {}: {} {said} {}",
            row.from,
            row.to,
            row.kind,
            if row.read { "read" } else { "unread" }
        )
    };
    rows.iter().map(short).collect()
}

#[test]
fn a_letter_is_listed_when_it_is_sent_and_told_once_it_is_read() {
    let mut stage = Stage::default();
    let first = letter(1, "lead", "bob", "look\u{1b}[2J here\nplease");
    let second = Letter { kind: LetterKind::Result, ..letter(2, "bob", "lead", "done") };
    stage.roster(posted(&first));
    stage.roster(posted(&second));
    assert_eq!(letters(&stage, ""), ["lead to bob: message ? unread", "bob to lead: result ? unread"]);
    let taken = vec![(first.id.clone(), false)];
    stage.agent(1, opened("mail", vec![first.clone()]));
    stage.roster(LettersTaken { name: "bob".into(), letters: taken.clone() });
    assert_eq!(stage.row(1).last, "mail from lead");
    assert_eq!(letters(&stage, "LOOK"), ["lead to bob: message look␛[2J here\nplease read"]);
    stage.roster(LettersPutBack { name: "bob".into(), letters: taken });
    assert_eq!(letters(&stage, "look"), ["lead to bob: message look␛[2J here\nplease unread"]);
    // What arrives between two turns, and before its posting was heard.
    let third = letter(3, "carol", "bob", "hi");
    stage.agent(1, MailDelivered { message: Segment::encode(&json!({})), letters: vec![third.clone()] });
    stage.roster(posted(&third));
    assert_eq!(letters(&stage, "carol"), ["carol to bob: message hi read"]);
    assert_eq!(stage.fleet.letters(&RowFilter::default()).len(), 3);
}

fn task(number: u32) -> TaskId {
    TaskId::derived(&[&number.to_string()])
}

fn created(number: u32, blocked_by: &[u32]) -> TaskCreated {
    TaskCreated {
        task: task(number),
        subject: format!("task {number}\u{1b}[2J"),
        description: "all of it".into(),
        criteria: Some("green".into()),
        blocked_by: blocked_by.iter().map(|number| task(*number)).collect(),
        role: Some("coder".into()),
        priority: 0,
        by: "lead".into(),
    }
}

fn tasks(stage: &Stage, only: &RowFilter) -> Vec<String> {
    let short =
        |row: &&TaskRow| format!("{} {} {}", row.subject, row.state, row.owner.as_deref().unwrap_or("-"));
    stage.fleet.tasks(only).iter().map(short).collect()
}

#[test]
fn c21_a_task_is_shown_in_every_state_and_who_holds_it_or_held_it_last() {
    let mut stage = Stage::default();
    let all = |stage: &Stage| tasks(stage, &RowFilter::default());
    stage.board(created(1, &[]));
    stage.board(created(2, &[1]));
    assert_eq!(all(&stage), ["task 1␛[2J open -", "task 2␛[2J blocked -"]);
    let claim =
        |number, token| TaskClaimed { task: task(number), name: "bob".into(), agent: None, token, until: 99 };
    stage.board(claim(1, 1));
    assert!(!stage.board(TaskRenewed { tasks: vec![task(1)], until: 199 }));
    assert_eq!(all(&stage), ["task 1␛[2J claimed bob", "task 2␛[2J blocked -"]);
    stage.board(TaskReleased { task: task(1), name: "bob".into(), why: "lost".into(), given_up: false });
    assert_eq!(all(&stage), ["task 1␛[2J open bob", "task 2␛[2J blocked -"]);
    stage.board(claim(1, 2));
    stage.board(TaskFinished { task: task(1), name: "bob".into(), result: "it works".into() });
    assert_eq!(all(&stage), ["task 2␛[2J open -", "task 1␛[2J done bob"]);
    let detail = &stage.fleet.tasks(&RowFilter::default())[1].detail;
    assert_eq!(detail, "all of it\n\ndone when: green\n\nresult: it works");
    stage.board(claim(2, 3));
    stage.board(TaskFailed { task: task(2), name: "bob".into(), why: "too hard".into() });
    assert_eq!(all(&stage), ["task 2␛[2J failed bob", "task 1␛[2J done bob"]);
    stage.board(TaskRetried { task: task(2), by: "person".into() });
    stage.board(TaskFailed { task: task(2), name: "person".into(), why: "cancelled by person".into() });
    assert_eq!(all(&stage), ["task 1␛[2J done bob", "task 2␛[2J cancelled bob"]);
    let edit = TaskEdit { subject: Some("another".into()), ..TaskEdit::default() };
    assert!(stage.board(TaskEdited { task: task(2), edit, by: "lead".into() }));
    assert_eq!(all(&stage)[1], "another cancelled bob");
}

#[test]
fn tasks_pass_a_filter_by_text_and_by_state() {
    let mut stage = Stage::default();
    for number in 1..=5 {
        stage.board(created(number, if number == 5 { &[1] } else { &[] }));
    }
    stage.board(TaskClaimed { task: task(2), name: "bob".into(), agent: None, token: 1, until: 9 });
    stage.board(TaskFailed { task: task(3), name: "carol".into(), why: "no".into() });
    stage.board(TaskFinished { task: task(4), name: "carol".into(), result: String::new() });
    let check = |text: &str, state: Option<AgentState>, expected: &[&str]| {
        assert_eq!(tasks(&stage, &RowFilter { text: text.into(), state }), expected, "{text} {state:?}");
    };
    check("", Some(AgentState::Running), &["task 2␛[2J claimed bob"]);
    check("", Some(AgentState::Waiting), &["task 1␛[2J open -", "task 5␛[2J blocked -"]);
    check("", Some(AgentState::Failed), &["task 3␛[2J failed carol"]);
    check("", Some(AgentState::Done), &["task 4␛[2J done carol"]);
    check("", Some(AgentState::Asks), &[]);
    check("CAROL", None, &["task 3␛[2J failed carol", "task 4␛[2J done carol"]);
}
