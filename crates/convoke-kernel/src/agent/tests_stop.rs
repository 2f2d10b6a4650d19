//! A person stops an exchange, fed by hand: in every stage it ends with a legal history, nothing of it is
//! taken up again by itself, and what is said next is heard at once.

use serde_json::{Value, json};

use super::tests::{Bench, calls, done, reply, says, spec};
use super::tests_lasting::{facts, summarising};
use super::tests_mail::{alice, last_texts, leader, letter, mail, work};
use super::tests_roles::{call, lead, message, of, results, say, tool_calls};
use super::*;
use crate::approval::{Approvals, AskWhen};
use crate::event::Purpose;
use crate::outcome::Ran;
use crate::spec::Role;
use crate::wire::{FailureKind, Retry, StopReason};

fn stop(bench: &mut Bench) -> Vec<&'static str> {
    bench.feed(Input::StopExchange { by: "the person (Esc)".into() })
}

/// Every call of a reply is answered by the message behind it, and nothing but a reply stands behind a system
/// message.
#[track_caller]
fn check_legal(bench: &Bench) {
    let history: Vec<Value> = (0..bench.agent.history().len()).map(|index| message(bench, index)).collect();
    let blocks = |message: &Value, kind: &str, member: &str| -> Vec<String> {
        let all = message["content"].as_array().unwrap().iter().filter(|block| block["type"] == kind);
        all.map(|block| block[member].as_str().unwrap().to_owned()).collect()
    };
    assert!(history.first().is_none_or(|first| first["role"] == "user"), "{}", bench.outline());
    for (at, message) in history.iter().enumerate() {
        let next = history.get(at + 1);
        let asked = blocks(message, "tool_use", "id");
        if !asked.is_empty() {
            let answered = next.map(|next| blocks(next, "tool_result", "tool_use_id"));
            assert_eq!(answered, Some(asked), "{}", bench.outline());
        }
        let is = |message: &Value, role: &str| message["role"] == role;
        assert!(
            !is(message, "system") || next.is_none_or(|next| is(next, "assistant")),
            "{}",
            bench.outline()
        );
    }
}

/// Stops it there, and then says something else: the exchange has ended as stopped, and what was said is the
/// next one.
#[track_caller]
fn check(mut bench: Bench, expected: &[&str], said: &str, outline: &str) -> Bench {
    assert_eq!(stop(&mut bench), expected);
    bench.failed_as(FailureKind::Cancelled, said);
    let Outcome::Failed { message, .. } = bench.outcome() else { panic!("{:?}", bench.outcome()) };
    assert_eq!(message, "stopped by the person (Esc)");
    assert_eq!(bench.outline(), outline);
    assert!(bench.agent.is_idle() && !bench.agent.can_go_on() && bench.agent.pending().is_empty());
    check_legal(&bench);
    let mut resumed = Bench { agent: bench.agent.clone(), events: Vec::new(), at: 2_000 };
    assert_eq!(resumed.feed(Input::Resume { changed: Vec::new() }), ["resumed"], "it is not offered again");
    assert_eq!(stop(&mut bench), [""; 0], "there is nothing left to stop");
    assert_eq!(say(&mut bench, "something else").first(), Some(&"exchange_opened"));
    check_legal(&bench);
    bench.replies(says("as you wish"));
    assert_eq!(*bench.outcome(), Outcome::Ok { text: "as you wish".into() });
    check_legal(&bench);
    bench
}

fn tool(bench: &mut Bench, id: &str) {
    bench.feed_bare(Input::ToolDone { id: id.into(), result: done("seen") }, Pace::Go);
}

/// One that has said something, run a command, and is about to ask again.
fn between_turns() -> Bench {
    let mut bench = of(spec(30), "look");
    let blocks =
        vec![json!({"type": "text", "text": "I look"}), call("t1", "bash", json!({"command": "ls"}))];
    bench.replies(tool_calls(blocks));
    tool(&mut bench, "t1");
    bench
}

const ROUND: &str = "user(text) assistant(text,tool_use) user(tool_result)";

#[test]
fn an_idle_agent_and_one_that_does_not_exist_stay_as_they_are() {
    let mut bench = Bench { agent: Agent::new(), events: Vec::new(), at: 1_000 };
    assert_eq!(stop(&mut bench), [""; 0]);
    let mut bench = Bench::asked(30, "hello");
    bench.replies(says("hi"));
    assert_eq!(stop(&mut bench), [""; 0]);
    assert_eq!(*bench.outcome(), Outcome::Ok { text: "hi".into() });
}

#[test]
fn before_the_first_request_the_message_is_taken_back() {
    let mut bench = Bench { agent: Agent::new(), events: Vec::new(), at: 1_000 };
    bench.feed_bare(Input::Start { spec: Box::new(spec(30)), key: "k".into(), text: "go".into() }, Pace::Go);
    check(bench, &["exchange_stopped", "exchange_closed"], "", "");
}

#[test]
fn while_the_model_answers_for_the_first_time_its_reply_is_not_waited_for_and_the_message_is_taken_back() {
    let bench =
        check(Bench::asked(30, "hello"), &["model_failed", "exchange_stopped", "exchange_closed"], "", "");
    let failed = bench.events.iter().find_map(|event| match event {
        Event::ModelFailed(e) => Some((e.failure.kind, e.retry_at, e.failure.unbilled)),
        _ => None,
    });
    assert_eq!(failed, Some((FailureKind::Interrupted, None, false)), "it is settled at its bound");
    assert_eq!(bench.outline(), "user(text) assistant(text)");
}

#[test]
fn between_two_turns_and_while_a_later_reply_is_written_what_was_said_so_far_stays() {
    check(between_turns(), &["exchange_stopped", "exchange_closed"], "I look", ROUND);
    let mut bench = between_turns();
    let call = bench.agent.room_ask().unwrap().call;
    bench.feed_bare(Input::Room { call, answer: RoomAnswer::Go { max_tokens: 8_000 } }, Pace::Go);
    check(bench, &["model_failed", "exchange_stopped", "exchange_closed"], "I look", ROUND);
}

#[test]
fn while_it_waits_for_another_try_nothing_is_sent_again() {
    let mut bench = Bench::asked(30, "hello");
    bench.fails(FailureKind::RateLimited, Retry::After(60_000));
    assert!(matches!(bench.agent.pending()[..], [Effect::AskRoom { .. }]));
    check(bench, &["exchange_stopped", "exchange_closed"], "", "");
}

#[test]
fn every_call_of_a_round_gets_its_result_whether_it_ran_or_not() {
    let mut bench = of(spec(30), "look");
    bench.replies(calls(&["t1", "t2", "t3"]));
    bench.runs("t1", "one");
    let finished =
        ["tool_finished", "tool_finished", "results_appended", "exchange_stopped", "exchange_closed"];
    let outline =
        "user(text) assistant(tool_use,tool_use,tool_use) user(tool_result,tool_result,tool_result)";
    let bench = check(bench, &finished, "", outline);
    let ran: Vec<Ran> = bench
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ToolFinished(e) => Some(e.result.ran),
            _ => None,
        })
        .collect();
    assert_eq!(ran, [Ran::Done, Ran::Interrupted, Ran::Refused]);
    let read = message(&bench, 2)["content"].clone();
    assert_eq!(read[0]["content"], "one");
    assert!(
        read[1]["content"].as_str().unwrap().starts_with("Interrupted: stopped by the person (Esc) while")
    );
    assert_eq!(
        (&read[2]["content"], &read[2]["is_error"]),
        (&json!("Not run: stopped by the person (Esc)."), &json!(true))
    );
}

#[test]
fn outcomes_that_were_recorded_while_nothing_new_may_start_are_kept() {
    let mut bench = of(spec(1), "look");
    bench.replies(calls(&["t1"]));
    bench.feed_at(Input::ToolDone { id: "t1".into(), result: done("one") }, Pace::Hold);
    let kinds = bench.feed_at(Input::StopExchange { by: "x".into() }, Pace::Hold);
    assert_eq!(kinds, ["results_appended", "exchange_stopped", "exchange_closed"]);
    assert_eq!(
        bench.outline(),
        "user(text) assistant(tool_use) user(tool_result)",
        "no hand-back is asked for"
    );
}

#[test]
fn a_call_that_waits_for_a_person_is_not_run() {
    let mut asking = lead(false, false, 10);
    asking.approvals = Approvals { ask: AskWhen::Always, rules: Vec::new(), park: true };
    let mut bench = of(asking, "go");
    bench.replies(calls(&["t1", "t2"]));
    assert!(matches!(bench.agent.pending()[..], [Effect::AskPerson { .. }]));
    assert_eq!(stop(&mut bench).last(), Some(&"exchange_closed"));
    assert_eq!(results(&bench), ["Not run: stopped by the person (Esc)."; 2]);
    assert!(bench.agent.pending().is_empty(), "nobody is asked any more");
}

#[test]
fn in_the_last_turn_and_after_a_pause_it_ends_too() {
    let mut bench = of(spec(1), "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    let outline = "user(text) assistant(tool_use) user(tool_result,text)";
    check(bench, &["model_failed", "exchange_stopped", "exchange_closed"], "", outline);
    let mut bench = of(spec(30), "look");
    bench.replies(reply(json!([{"type": "text", "text": "hm"}]), StopReason::PauseTurn));
    check(
        bench,
        &["model_failed", "exchange_stopped", "exchange_closed"],
        "hm",
        "user(text) assistant(text)",
    );
}

#[test]
fn a_section_and_changed_files_that_nobody_answered_are_owed_again() {
    let mut bench = of(lead(true, true, 30), "one");
    bench.feed(Input::Resume { changed: Vec::new() });
    assert_eq!(bench.outline(), "user(text) system(text)");
    stop(&mut bench);
    assert_eq!(bench.outline(), "");
    bench.feed(Input::Resume { changed: vec!["a.rs".into()] });
    say(&mut bench, "two");
    assert_eq!(bench.outline(), "user(text,text) system(text)");
    bench.replies(says("ok"));
    say(&mut bench, "three");
    assert_eq!(
        bench.outline(),
        "user(text,text) system(text) assistant(text) user(text)",
        "and then no more"
    );
}

#[test]
fn letters_that_nobody_answered_go_back_and_those_that_were_answered_stay() {
    let mut bench = of(leader(), "go");
    bench.replies(says("ok"));
    let one = letter("alice", "one");
    bench.feed(mail(std::slice::from_ref(&one)));
    assert_eq!(stop(&mut bench), ["model_failed", "exchange_stopped", "exchange_closed"]);
    let Some(Event::ExchangeClosed(closed)) = bench.events.last() else {
        panic!("{:?}", bench.events.last())
    };
    assert_eq!((closed.taken_back, closed.returned.as_slice()), (true, &[one.clone()][..]));
    assert!(!bench.agent.can_go_on());
    bench.feed(mail(std::slice::from_ref(&one)));
    bench.replies(calls(&["t1"]));
    stop(&mut bench);
    let Some(Event::ExchangeClosed(closed)) = bench.events.last() else {
        panic!("{:?}", bench.events.last())
    };
    assert_eq!((closed.taken_back, closed.returned.len()), (false, 0));
    assert!(
        bench.outline().ends_with("user(text) assistant(tool_use) user(tool_result)"),
        "{}",
        bench.outline()
    );
}

#[test]
fn a_task_from_the_board_that_was_stopped_can_be_given_again() {
    let mut bench = of(alice(false, 1_000_000), "wait");
    bench.replies(says("ok"));
    bench.feed(work("t"));
    stop(&mut bench);
    assert!(bench.agent.is_idle() && !bench.agent.can_go_on());
    assert_eq!(bench.feed(work("t")), ["exchange_opened", "model_called"]);
}

#[test]
fn a_summary_that_was_asked_for_is_dropped_with_what_asked_for_it() {
    let before = "user(text) assistant(tool_use) user(tool_result)";
    let bench = summarising(leader());
    assert_eq!(bench.outline(), format!("{before} user(text)"));
    let bench = check(bench, &["model_failed", "exchange_stopped", "exchange_closed"], "", before);
    assert!(!bench.agent.is_summarising());
    let purposes =
        bench.events.iter().filter(|e| matches!(e, Event::ModelCalled(e) if e.purpose == Purpose::Summary));
    assert_eq!(purposes.count(), 1, "the wish for it is gone");
}

#[test]
fn a_new_history_that_has_just_begun_stays() {
    let mut bench = summarising(leader());
    let call = bench.call().0;
    bench.feed(Input::Summarised { call, reply: says("half is built"), facts: Box::new(facts()) });
    assert_eq!(stop(&mut bench), ["model_failed", "exchange_stopped", "exchange_closed"]);
    assert_eq!(bench.outline(), "user(text)");
    say(&mut bench, "go on then");
    assert!(last_texts(&bench).contains("go on then"), "{}", last_texts(&bench));
    check_legal(&bench);
}

#[test]
fn a_persons_own_call_ends_and_leaves_the_history_as_it_is() {
    let mut bench = of(lead(true, true, 30), "hello");
    bench.replies(says("hi"));
    let before = bench.outline();
    let own = Segment::encode(&json!({"name": "review"}));
    bench.feed(Input::Call { key: "c".into(), text: "workflow review".into(), input: own });
    assert!(bench.agent.is_persons_call());
    check(bench, &["tool_finished", "exchange_stopped", "exchange_closed"], "", &before);
}

#[test]
fn a_run_in_the_background_goes_on_when_the_exchange_that_launched_it_is_stopped() {
    let mut bench = of(lead(true, true, 30), "review it");
    bench.replies(tool_calls(vec![call("t1", "Workflow", json!({"script": "s"}))]));
    let run = "wf_abcdefgh23456789".to_owned();
    let result = crate::outcome::ToolResult { launched: Some(run.clone()), ..done("under way") };
    bench.feed(Input::ToolDone { id: "t1".into(), result });
    stop(&mut bench);
    assert!(bench.agent.is_idle() && bench.agent.can_go_on());
    assert_eq!(bench.agent.pending(), [Effect::DriveRun { run }]);
}

fn child(role: Role) -> Bench {
    let mut spec = lead(true, true, 30).child(role, "a label", 1).unwrap();
    spec.limits.max_turns = 10;
    of(spec, "look at it")
}

#[test]
fn a_stopped_worker_and_a_stopped_verifier_have_failed_and_file_nothing() {
    for role in [Role::Worker, Role::Verifier, Role::Task] {
        let mut bench = child(role);
        bench.replies(calls(&["t1"]));
        stop(&mut bench);
        bench.failed_as(FailureKind::Cancelled, "");
        assert_eq!((bench.agent.report(), bench.agent.ballot()), (None, None));
        let row = bench.agent.summary().unwrap();
        assert_eq!(
            (row.status, row.failure, row.can_go_on),
            (Status::Failed, Some(FailureKind::Cancelled), false)
        );
    }
}

#[test]
fn what_was_reported_before_it_was_stopped_is_kept_as_what_it_had() {
    let mut bench = child(Role::Worker);
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "seen");
    let finding = json!({"claim": "c", "evidence": "e", "severity": "low"});
    let report = call("r1", "report_findings", json!({"summary": "what I found", "findings": [finding]}));
    bench.replies(tool_calls(vec![call("t2", "task", json!({"prompt": "p"})), report]));
    // The report ends the work in the same step, so there is nothing left to stop.
    assert_eq!(stop(&mut bench), [""; 0]);
    assert_eq!(*bench.outcome(), Outcome::Ok { text: "what I found".into() });
}

#[test]
fn whoever_started_a_child_for_its_work_can_have_it_done_after_all() {
    let mut bench = child(Role::Task);
    bench.replies(calls(&["t1"]));
    stop(&mut bench);
    let kinds = bench.feed(Input::Resume { changed: Vec::new() });
    assert_eq!(kinds, ["resumed", "exchange_reopened", "model_called"]);
    bench.replies(says("done after all"));
    assert_eq!(*bench.outcome(), Outcome::Ok { text: "done after all".into() });
    let mut bench = child(Role::Task);
    stop(&mut bench);
    let kinds = bench.feed(Input::Resume { changed: Vec::new() });
    assert_eq!(kinds, ["resumed", "exchange_opened", "model_called"], "what was taken back is said again");
}

#[test]
fn the_exchange_is_closed_in_the_decision_that_stops_it_whatever_the_pace() {
    for pace in [Pace::Go, Pace::Hold] {
        let mut bench = of(spec(30), "look");
        bench.replies(calls(&["t1"]));
        let kinds = bench.feed_bare(Input::StopExchange { by: "x".into() }, pace);
        assert_eq!(kinds, ["tool_finished", "results_appended", "exchange_stopped", "exchange_closed"]);
    }
}

#[test]
fn an_exchange_is_stopped_nowhere_else() {
    let stopped = Event::from(crate::event::ExchangeStopped { by: "x".into() });
    let mut idle = Bench::asked(30, "hello");
    idle.replies(says("hi"));
    let mut tools = Bench::asked(30, "hello");
    tools.replies(calls(&["t1"]));
    for bench in [&idle, &tools, &Bench::asked(30, "hello")] {
        assert!(
            bench.agent.clone().apply(&stopped, 0).is_err(),
            "after {:?}",
            bench.events.last().map(Event::kind)
        );
    }
}
