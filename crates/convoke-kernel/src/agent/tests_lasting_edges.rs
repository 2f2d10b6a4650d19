//! Where new histories, resumes, letters and the envelope meet, fed by hand: what is owed stays owed, what is told is true, and the history
//! stays legal whatever fails.

use super::tests::{Bench, calls, done, says};
use super::tests_lasting::{compacted, facts, summarises, summarising, wants_compaction};
use super::tests_mail::{LONG, alice, in_team, last_texts, leader, letter, mail, texts, work};
use super::tests_roles::{lead, of, say};
use super::*;
use crate::outcome::ToolResult;
use crate::wire::{FailureKind, Retry};

fn hand_back() -> RoomAnswer {
    RoomAnswer::HandBack { max_tokens: 4_096, why: "$0.01 of $1.00 left".into() }
}

fn room(bench: &Bench, answer: RoomAnswer) -> Input {
    Input::Room { call: bench.agent.room_ask().unwrap().call, answer }
}

/// No user message stands behind a system message, wherever the history ends.
#[track_caller]
fn check_legal(bench: &Bench) {
    let outline = bench.outline();
    assert!(!outline.contains("system(text) user"), "{outline}");
}

fn leads_on() -> AgentSpec {
    in_team(lead(true, true, 30), LONG)
}

/// One that has run a command and for which a new history is due, before anybody was asked for room.
fn before_the_summary(spec: AgentSpec) -> Bench {
    let mut bench = of(spec, "build the tower");
    bench.replies(calls(&["t1"]));
    wants_compaction(&mut bench);
    bench.feed_bare(Input::ToolDone { id: "t1".into(), result: done("one") }, Pace::Go);
    assert!(bench.agent.is_summarising());
    bench
}

/// One whose new history has begun, before anybody was asked for room.
fn before_the_first_request(spec: AgentSpec) -> Bench {
    let mut bench = summarising(spec);
    let call = bench.call().0;
    let input = Input::Summarised { call, reply: says("half is built"), facts: Box::new(facts()) };
    bench.feed_bare(input, Pace::Go);
    bench
}

#[test]
#[ignore = "shows fault K1 of t2_findings"]
fn w92_a_new_history_whose_first_request_fails_for_good_stays_legal() {
    let mut bench = compacted(leads_on());
    bench.fails(FailureKind::Api, Retry::Never);
    say(&mut bench, "well?");
    check_legal(&bench);
    assert!(bench.agent.history().iter().any(|segment| segment.as_str().contains("build the tower")));
    bench.replies(says("yes"));
    say(&mut bench, "and?");
    check_legal(&bench);
}

#[test]
#[ignore = "shows fault K1 of t2_findings"]
fn one_that_is_short_right_after_a_new_history_hands_back() {
    let mut bench = before_the_first_request(leads_on());
    let short = room(&bench, hand_back());
    bench.feed_bare(short, Pace::Go);
    check_legal(&bench);
    if let [Effect::CallModel { .. }, ..] = bench.agent.pending()[..] {
        bench.replies(says("so far"));
        bench.failed_as(FailureKind::Budget, "so far");
    } else {
        assert!(bench.agent.is_idle(), "without room for a hand-back the exchange ends and can be gone on with");
    }
    check_legal(&bench);
}

#[test]
#[ignore = "shows fault K2 of t2_findings"]
fn one_that_is_short_when_its_summary_is_due_hands_back_instead() {
    let mut bench = before_the_summary(alice(false, LONG));
    let short = room(&bench, hand_back());
    bench.feed_bare(short, Pace::Go);
    assert!(!bench.agent.is_summarising(), "the one reply that there is room for is the hand-back");
    bench.replies(says("so far"));
    bench.failed_as(FailureKind::Budget, "so far");
}

#[test]
#[ignore = "shows fault K4 of t2_findings"]
fn who_it_is_is_owed_again_if_what_told_it_is_taken_back() {
    let mut bench = of(alice(false, LONG), "look");
    bench.replies(says("done"));
    bench.feed(Input::ResumeAs { changed: vec![], facts: Box::new(facts()) });
    bench.feed(mail(&[letter("lead", "more")]));
    bench.fails(FailureKind::Api, Retry::Never);
    bench.feed(mail(&[letter("lead", "more")]));
    assert!(last_texts(&bench).contains("\nname: alice\n"), "{}", last_texts(&bench));
}

#[test]
#[ignore = "shows fault K3 of t2_findings"]
fn files_that_changed_are_told_in_the_new_history_and_not_in_the_one_that_is_left() {
    let mut bench = of(alice(false, LONG), "look");
    bench.replies(says("done"));
    bench.feed(Input::ResumeAs { changed: vec![], facts: Box::new(facts()) });
    wants_compaction(&mut bench);
    bench.feed_bare(mail(&[letter("lead", "more")]), Pace::Go);
    bench.feed(Input::ResumeAs { changed: vec!["src/a.rs".into()], facts: Box::new(facts()) });
    assert!(bench.agent.is_summarising());
    assert!(last_texts(&bench).starts_with("[new history]\n"), "it is asked last: {}", last_texts(&bench));
    summarises(&mut bench, says("so far"));
    let told = bench.agent.history().iter().any(|segment| segment.as_str().contains("src/a.rs"));
    assert!(told, "{}", texts(&bench, 0));
}

#[test]
#[ignore = "shows fault K5 of t2_findings"]
fn letters_that_no_reply_followed_stand_in_the_new_history_word_for_word() {
    let mut bench = of(in_team(super::tests::spec(30), 10_000), "look");
    bench.replies(calls(&["t1"]));
    bench.feed_bare(Input::ToolDone { id: "t1".into(), result: done("one") }, Pace::Go);
    let long = format!("the port is 8080 {}", "x".repeat(31_000));
    bench.feed(mail(&[letter("bob", &long)]));
    if bench.agent.is_summarising() {
        summarises(&mut bench, says("nothing worth telling"));
    }
    let told = bench.agent.history().iter().any(|segment| segment.as_str().contains("the port is 8080"));
    assert!(told, "{}", texts(&bench, 0));
}

#[test]
#[ignore = "shows fault K6 of t2_findings"]
fn the_mode_that_is_told_with_the_next_input_is_the_mode_there_is_then() {
    let mut bench = of(in_team(lead(false, true, 30), LONG), "one");
    bench.replies(says("ok"));
    bench.feed(Input::ResumeAs { changed: vec![], facts: Box::new(facts()) });
    bench.feed(Input::SetMode { on: true });
    say(&mut bench, "two");
    let read = texts(&bench, 2);
    assert!(!read.contains("\nmode: off\n"), "{read}");
    assert!(read.contains("\nmode: on\n"), "{read}");
}

#[test]
#[ignore = "shows fault K7 of t2_findings"]
fn a_task_that_is_claimed_for_one_that_was_taken_up_is_not_told_as_none() {
    let mut bench = of(alice(false, LONG), "look");
    bench.replies(says("done"));
    bench.feed(Input::ResumeAs { changed: vec![], facts: Box::default() });
    bench.feed(work("t"));
    let read = last_texts(&bench);
    assert!(read.contains("\nname: alice\n"), "{read}");
    assert!(!read.contains("\ntask: none\n"), "{read}");
}

#[test]
#[ignore = "shows fault K8 of t2_findings"]
fn what_is_taken_back_makes_no_history_longer() {
    let mut bench = of(in_team(super::tests::spec(30), 20_000), "look");
    bench.replies(says("done"));
    for _ in 0..4 {
        bench.feed(mail(&[letter("bob", &"x".repeat(20_000))]));
        bench.fails(FailureKind::Api, Retry::Never);
        assert_eq!(bench.outline(), "user(text) assistant(text)");
    }
    say(&mut bench, "well?");
    assert!(!bench.agent.is_summarising(), "what left the history does not count");
}

#[test]
#[ignore = "shows fault K9 of t2_findings"]
fn a_plan_is_not_approved_any_more_when_its_task_is_done() {
    let mut bench = of(alice(true, LONG), "wait");
    bench.replies(says("ok"));
    bench.feed(work("t"));
    bench.replies(says("I wait"));
    let task = Some(TaskId::derived(&["t"]));
    let approval = crate::team::Letter {
        kind: crate::team::LetterKind::PlanAnswer,
        approve: Some(true),
        task: task.clone(),
        ..letter("lead", "yes")
    };
    bench.feed(mail(&[approval]));
    let update = serde_json::json!({"task": task.unwrap().to_string(), "status": "done", "result": "ok"});
    bench.replies(super::tests_roles::tool_calls(vec![super::tests_roles::call("u1", "task_update", update)]));
    bench.feed(Input::ToolDone { id: "u1".into(), result: ToolResult::done("Changed") });
    bench.replies(says("done"));
    bench.feed(mail(&[letter("bob", "now change this too")]));
    bench.replies(calls(&["t9"]));
    let read = super::tests_roles::results(&bench);
    assert!(read.iter().any(|text| text.contains("your plan has not been approved")), "{read:?}");
}

#[test]
fn a_summary_is_asked_for_once_however_often_it_is_wished_for() {
    let mut bench = before_the_summary(leader());
    bench.feed_bare(Input::Compact { focus: String::new() }, Pace::Go);
    let go = room(&bench, RoomAnswer::Go { max_tokens: 8_000 });
    bench.feed_bare(go, Pace::Go);
    summarises(&mut bench, says("so far"));
    assert!(!bench.agent.is_summarising());
    bench.replies(calls(&["t2"]));
    bench.runs("t2", "two");
    assert!(!bench.agent.is_summarising(), "the new history was what was wished for");
}
