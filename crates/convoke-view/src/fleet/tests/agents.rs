//! One agent, from its first event to its last, as its row shows it.

use convoke_kernel::{
    ApprovalAsked, ApprovalGiven, ExchangeStopped, Failure, FailureKind, HistoryCompacted, ModelFailed,
    Piece, Purpose, Resumed, Retry, Segment,
};
use serde_json::json;

use super::stage::*;
use super::*;

#[test]
fn a_worker_is_shown_from_its_first_step_to_what_it_came_to() {
    let mut stage = Stage::default();
    let check = |stage: &Stage, expected: &str| assert_eq!(stage.told(1), expected);
    stage.starts(1, Role::Worker, "look for leaks");
    check(&stage, "working | look for leaks | waiting | waiting | ");
    stage.opens(1, "look for leaks");
    check(&stage, "working | look for leaks | running | running | ");
    stage.asks(1);
    check(&stage, "working | look for leaks | running | sending | ");
    stage.replies(1, "I look.");
    check(&stage, "working | look for leaks | running | running | I look.");
    stage.calls(1, "t", "bash", json!({"command": "ls -l"}));
    check(&stage, "working | look for leaks | running | command | $ ls -l");
    let since = stage.row(1).since;
    stage.finishes(1, "t", "out", 0);
    check(&stage, "working | look for leaks | running | running | $ ls -l");
    assert!(stage.row(1).since > since);
    stage.ends(1, None, Some(2));
    check(&stage, "working | look for leaks | done | done | 2 findings");
    let row = stage.row(1);
    let figures = (row.turns, row.commands, row.tokens, row.cost_nano, row.model.as_str(), row.started_at);
    assert_eq!(figures, (1, 1, 1_000, Some(1_000_000), "small", 10));
}

#[test]
fn every_role_has_its_phase_and_its_name() {
    let check = |role: Role, label: &str, expected: &str| {
        let mut stage = Stage::default();
        stage.starts(1, role, label);
        let row = stage.row(1);
        assert_eq!(format!("{} {}", row.phase, row.label), expected);
        assert_eq!(stage.fleet.lead().is_some(), role == Role::Lead);
    };
    check(Role::Lead, "", "lead lead");
    check(Role::Worker, "a", "working a");
    check(Role::Verifier, "verify: a", "verifying a");
    check(Role::Task, "a", "tasks a");
    check(Role::Callee, "a", "tasks a");
    check(Role::Teammate, "bob", "team bob");
}

#[test]
fn an_end_is_told_by_its_kind() {
    let check = |role: Role, failure: Option<FailureKind>, expected: AgentState, last: &str| {
        let mut stage = Stage::default();
        stage.starts(1, role, "a");
        stage.opens(1, "a");
        stage.ends(1, failure, None);
        assert_eq!(
            (stage.row(1).state, stage.row(1).last.as_str()),
            (expected, last),
            "{role:?} {failure:?}"
        );
    };
    check(Role::Task, None, AgentState::Done, "all is well");
    check(Role::Lead, None, AgentState::Done, "all is well");
    check(Role::Teammate, None, AgentState::Resting, "all is well");
    check(Role::Task, Some(FailureKind::TurnLimit), AgentState::Failed, "turn_limit: it went wrong");
    check(Role::Task, Some(FailureKind::Cancelled), AgentState::Stopped, "cancelled: it went wrong");
    let mut stage = Stage::default();
    stage.opens(1, "a");
    stage.agent(1, ExchangeStopped { by: "person".into() });
    stage.ends(1, Some(FailureKind::Interrupted), None);
    assert_eq!(stage.row(1).state, AgentState::Stopped);
}

#[test]
fn an_agent_that_asks_a_person_comes_first_until_it_is_answered() {
    let mut stage = Stage::default();
    for number in 1..=2 {
        stage.starts(number, Role::Worker, &format!("w{number}"));
        stage.opens(number, "go");
    }
    stage.agent(
        2,
        ApprovalAsked { id: "t".into(), what: "run: rm -rf\u{1b}[2J x".into(), why: "a rule".into() },
    );
    assert_eq!(stage.told(2), "working | w2 | asks you | asks you | run: rm -rf\\u{1b}[2J x");
    let labels = |stage: &Stage| -> Vec<String> {
        stage.fleet.agents(&RowFilter::default()).iter().map(|row| row.label.clone()).collect()
    };
    assert_eq!(labels(&stage), ["w2", "w1"]);
    stage.agent(2, ApprovalGiven { id: "t".into(), allow: true, by: "person".into() });
    assert_eq!(stage.row(2).state, AgentState::Running);
    assert_eq!(labels(&stage), ["w1", "w2"]);
}

#[test]
fn a_request_that_is_sent_again_says_why_and_live_pieces_change_one_word() {
    let mut stage = Stage::default();
    stage.opens(1, "go");
    stage.asks(1);
    let mut live = |piece: Piece| {
        let changes = stage.fleet.hear(&SessionEvent::Live { agent: id(1), piece });
        (changes, stage.row(1).act)
    };
    assert_eq!(live(Piece::Thinking("a".into())), (true, "thinking"));
    assert_eq!(live(Piece::Thinking("b".into())), (false, "thinking"));
    assert_eq!(live(Piece::Text("c".into())), (true, "answering"));
    assert_eq!(live(Piece::Tool { name: "bash".into() }), (false, "answering"));
    let failure = Failure {
        kind: FailureKind::RateLimited,
        message: "slow down".into(),
        retry: Retry::Soon,
        request_id: None,
        unbilled: true,
        refused: None,
    };
    stage.agent(1, ModelFailed { call: 1, attempt: 1, failure, retry_at: Some(9_000) });
    assert_eq!(stage.told(1), "tasks | (agent) | running | waiting | asks again: slow down");
    assert!(!stage.fleet.hear(&SessionEvent::Live { agent: id(1), piece: Piece::Began }), "nobody is asked");
    assert!(!stage.fleet.hear(&SessionEvent::Live { agent: id(9), piece: Piece::Began }), "nobody knows it");
}

#[test]
fn while_a_session_drains_whoever_is_between_two_steps_waits_and_goes_on_when_it_is_taken_up() {
    let mut stage = Stage::default();
    for number in 1..=3 {
        stage.starts(number, Role::Worker, "w");
        stage.opens(number, "go");
    }
    stage.asks(2);
    stage.ends(3, None, None);
    assert!(stage.fleet.hear(&SessionEvent::Draining));
    let states = |stage: &Stage| [1, 2, 3].map(|number| stage.row(number).state);
    assert_eq!(states(&stage), [AgentState::Waiting, AgentState::Running, AgentState::Done]);
    assert_eq!(stage.phases(), ["working 1r 1w 0f 1d of 3"]);
    stage.replies(2, "done");
    assert_eq!(states(&stage), [AgentState::Waiting, AgentState::Waiting, AgentState::Done]);
    stage.agent(1, Resumed { changed: Vec::new(), facts: None });
    assert_eq!(states(&stage), [AgentState::Running, AgentState::Waiting, AgentState::Done]);
    stage.asks(2);
    stage.replies(2, "more");
    assert_eq!(states(&stage), [AgentState::Running, AgentState::Running, AgentState::Done]);
}

#[test]
fn what_was_left_open_waits_when_nobody_drives_it() {
    let mut stage = Stage::default();
    stage.opens(1, "go");
    stage.asks(1);
    stage.opens(2, "go");
    stage.ends(2, None, None);
    assert!(stage.fleet.leave_all());
    assert_eq!((stage.row(1).state, stage.row(2).state), (AgentState::Waiting, AgentState::Done));
    assert_eq!(stage.fleet.running(), 0);
    stage.agent(1, Resumed { changed: Vec::new(), facts: None });
    assert_eq!(stage.row(1).act, "sending");
}

#[test]
fn an_idle_agent_that_begins_a_new_history_is_idle_again_afterwards() {
    let mut stage = Stage::default();
    stage.starts(1, Role::Lead, "");
    stage.opens(1, "go");
    stage.ends(1, None, None);
    stage.agent(1, called(1, Purpose::Summary));
    assert_eq!(stage.row(1).state, AgentState::Running);
    stage.replies(1, "a summary");
    let message = Segment::encode(&json!({}));
    stage.agent(1, HistoryCompacted { message, section: None, summary: "s".into(), tokens: 1 });
    assert_eq!(stage.row(1).state, AgentState::Done);
}

#[test]
fn what_an_agent_says_of_itself_reaches_no_terminal_raw() {
    let wild = "a\u{1b}[2J\u{202e}b\u{7}\r\nsecond line";
    let mut stage = Stage::default();
    stage.starts(1, Role::Worker, wild);
    stage.opens(1, wild);
    let check = |stage: &Stage| {
        let row = stage.row(1);
        for text in [&row.label, &row.last] {
            assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
        }
    };
    check(&stage);
    stage.replies(1, wild);
    check(&stage);
    stage.calls(1, "t", "bash", json!({"command": wild}));
    check(&stage);
    stage.calls(1, "t", wild, json!({"command": wild}));
    check(&stage);
}
