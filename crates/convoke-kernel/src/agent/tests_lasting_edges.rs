//! Where new histories, resumes, letters and the budget meet, fed by hand: what is owed stays owed, what is
//! told is true, and the history stays legal whatever fails.

use serde_json::json;

use super::tests::{Bench, calls, done, says, spec};
use super::tests_lasting::{compacted, facts, summarises, summarising, wants_compaction};
use super::tests_mail::{LONG, alice, in_team, last_texts, leader, letter, mail, texts, work};
use super::tests_roles::{call, lead, of, results, say, tool_calls};
use super::*;
use crate::capsule::Facts;
use crate::outcome::ToolResult;
use crate::team::{Letter, LetterKind};
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

fn approval(task: Option<&str>) -> Letter {
    let task = task.map(|word| TaskId::derived(&[word]));
    Letter { kind: LetterKind::PlanAnswer, approve: Some(true), task, ..letter("lead", "yes") }
}

/// An agent that has run a command and for which a new history is due, before room was asked for.
fn before_the_summary(spec: AgentSpec) -> Bench {
    let mut bench = of(spec, "build the tower");
    bench.replies(calls(&["t1"]));
    wants_compaction(&mut bench);
    bench.feed_bare(Input::ToolDone { id: "t1".into(), result: done("one") }, Pace::Go);
    assert!(bench.agent.is_summarising());
    bench
}

/// An agent whose new history has begun, before room was asked for.
fn before_the_first_request(spec: AgentSpec) -> Bench {
    let mut bench = summarising(spec);
    let call = bench.call().0;
    let input = Input::Summarised { call, reply: says("half is built"), facts: Box::new(facts()) };
    bench.feed_bare(input, Pace::Go);
    bench
}

#[test]
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
fn one_that_is_short_right_after_a_new_history_hands_back() {
    let mut bench = before_the_first_request(leads_on());
    let short = room(&bench, hand_back());
    bench.feed_bare(short, Pace::Go);
    check_legal(&bench);
    if let [Effect::CallModel { .. }, ..] = bench.agent.pending()[..] {
        bench.replies(says("so far"));
        bench.failed_as(FailureKind::Budget, "so far");
    } else {
        assert!(
            bench.agent.is_idle(),
            "without room for a hand-back the exchange ends and can be gone on with"
        );
    }
    check_legal(&bench);
}

#[test]
fn one_that_is_short_when_its_summary_is_due_hands_back_instead() {
    let mut bench = before_the_summary(alice(false, LONG));
    let short = room(&bench, hand_back());
    bench.feed_bare(short, Pace::Go);
    assert!(!bench.agent.is_summarising(), "the one reply that there is room for is the hand-back");
    bench.replies(says("so far"));
    bench.failed_as(FailureKind::Budget, "so far");
}

#[test]
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
fn letters_that_no_reply_followed_stand_in_the_new_history_word_for_word() {
    let mut bench = of(in_team(spec(30), 10_000), "look");
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
fn what_is_taken_back_makes_no_history_longer() {
    let mut bench = of(in_team(spec(30), 20_000), "look");
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
fn a_plan_is_not_approved_any_more_when_its_task_is_done() {
    let mut bench = of(alice(true, LONG), "wait");
    bench.replies(says("ok"));
    bench.feed(work("t"));
    bench.replies(says("I wait"));
    bench.feed(mail(&[approval(Some("t"))]));
    let update = json!({"task": TaskId::derived(&["t"]).to_string(), "status": "done", "result": "ok"});
    bench.replies(tool_calls(vec![call("u1", "task_update", update)]));
    bench.feed(Input::ToolDone { id: "u1".into(), result: ToolResult::done("Changed") });
    bench.replies(says("done"));
    bench.feed(mail(&[letter("bob", "now change this too")]));
    bench.replies(calls(&["t9"]));
    let read = results(&bench);
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

#[test]
fn c17_letters_that_are_read_with_it_are_not_told_as_unread() {
    let check = |letters: &[Letter], expected: &[&str]| {
        let mut bench = of(alice(false, LONG), "look");
        bench.replies(says("done"));
        let unread = vec![("bob".to_owned(), 2), ("lead".to_owned(), 1)];
        bench.feed(Input::ResumeAs { changed: vec![], facts: Box::new(Facts { unread, ..facts() }) });
        bench.feed(mail(letters));
        let read = last_texts(&bench);
        let lines: Vec<&str> = read.lines().filter(|line| line.starts_with("unread: ")).collect();
        assert_eq!(lines, expected, "{read}");
    };
    let [one, two, three] = [letter("bob", "one"), letter("bob", "two"), letter("lead", "three")];
    check(std::slice::from_ref(&one), &["unread: bob, 1 letter", "unread: lead, 1 letter"]);
    check(&[one.clone(), two.clone()], &["unread: lead, 1 letter"]);
    check(std::slice::from_ref(&three), &["unread: bob, 2 letters"]);
    check(&[one, three, two], &["unread: none"]);
}

#[test]
fn a_plan_for_work_without_a_task_can_be_approved_after_a_task_was_given_back() {
    let mut bench = of(alice(true, LONG), "wait");
    bench.replies(says("ok"));
    bench.feed(work("t"));
    let update = json!({"task": TaskId::derived(&["t"]).to_string(), "status": "pending"});
    bench.replies(tool_calls(vec![call("u1", "task_update", update)]));
    bench.feed(Input::ToolDone { id: "u1".into(), result: ToolResult::done("Changed") });
    bench.replies(tool_calls(vec![call("p1", "submit_plan", json!({"plan": "look, then write"}))]));
    bench.feed(Input::ToolDone { id: "p1".into(), result: ToolResult::done("sent") });
    bench.replies(says("I wait"));
    bench.feed(mail(&[approval(None)]));
    bench.replies(calls(&["t9"]));
    assert_eq!(bench.tool(), "t9");
}

#[test]
fn runs_in_the_background_are_named_in_a_new_history_and_after_a_restart() {
    let mut bench = of(leads_on(), "go");
    bench.replies(tool_calls(vec![call("w1", "Workflow", json!({"subtasks": ["a"]}))]));
    bench.feed_bare(Input::Compact { focus: String::new() }, Pace::Go);
    let result = ToolResult { launched: Some("wf_aaaaaaaaaaaaaaaa".into()), ..done("it runs") };
    bench.feed(Input::ToolDone { id: "w1".into(), result });
    let Some(Effect::CallModel { call, .. }) = bench.agent.pending().into_iter().next() else {
        panic!("not asked")
    };
    bench.feed(Input::Summarised { call, reply: says("so far"), facts: Box::new(facts()) });
    assert!(texts(&bench, 0).contains("\nrunning: wf_aaaaaaaaaaaaaaaa\n"), "{}", texts(&bench, 0));
    bench.replies(says("it runs"));
    bench.feed(Input::ResumeAs { changed: vec![], facts: Box::new(facts()) });
    say(&mut bench, "well?");
    let told =
        bench.agent.history().iter().filter(|s| s.as_str().contains("running: wf_aaaaaaaaaaaaaaaa")).count();
    assert_eq!(told, 2);
}

#[test]
fn an_approval_lasts_beyond_the_history_and_the_process() {
    let mut bench = of(alice(true, LONG), "wait");
    bench.replies(says("I wait"));
    bench.feed(mail(&[approval(None)]));
    wants_compaction(&mut bench);
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    summarises(&mut bench, says("so far"));
    assert!(texts(&bench, 0).contains("; your plan is approved\n"), "{}", texts(&bench, 0));
    bench.feed(Input::ResumeAs { changed: vec![], facts: Box::new(facts()) });
    bench.replies(calls(&["t2"]));
    bench.runs("t2", "two");
    assert!(last_texts(&bench).contains("; your plan is approved\n"), "{}", last_texts(&bench));
}
