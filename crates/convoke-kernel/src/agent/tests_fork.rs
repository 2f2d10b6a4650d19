//! Forks, fed by hand: what is taken along, where a history can be gone on from, and what the model is told.

use super::fork::FORKED;
use super::tests::{Bench, calls, says, spec};
use super::tests_lasting::compacted;
use super::tests_mail::{in_team, last_texts, leader};
use super::tests_roles::{lead, message, of, say};
use super::*;
use crate::event::HistoryForked;
use crate::ids::{AgentId, SessionId};
use crate::spec::Role;
use crate::wire::{FailureKind, Retry, Usage};

fn new_session() -> SessionId {
    SessionId::from_bits([9; 10])
}

fn original() -> AgentId {
    AgentId::from_bits([7; 10])
}

fn taken(bench: &Bench) -> (AgentSpec, HistoryForked) {
    bench.agent.fork(&original(), new_session()).expect("it can be forked")
}

/// The fork of an agent, as it stands.
fn forked(bench: &Bench) -> Bench {
    let (spec, fork) = taken(bench);
    let mut new = Bench { agent: Agent::new(), events: Vec::new(), at: 5_000 };
    let started = new.feed(Input::StartFork { spec: Box::new(spec), fork: Box::new(fork) });
    assert_eq!(started, ["agent_started", "history_forked"]);
    new
}

fn answered(spec: AgentSpec) -> Bench {
    let mut bench = of(spec, "look");
    bench.replies(says("seen"));
    bench
}

#[test]
fn a_fork_begins_with_the_same_bytes_and_waits() {
    let mut bench = of(lead(true, true, 30), "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    bench.replies(says("seen"));
    let fork = forked(&bench);
    assert_eq!(fork.agent.history(), bench.agent.history());
    assert!(fork.agent.is_idle() && fork.agent.pending().is_empty() && !fork.agent.can_go_on());
    let was = bench.agent.spec().unwrap();
    let is = fork.agent.spec().unwrap();
    assert_eq!(
        (&was.model, &was.system, &was.tools, &was.params),
        (&is.model, &is.system, &is.tools, &is.params)
    );
    assert_eq!(is.session, new_session());
}

#[test]
fn a_fork_has_paid_for_nothing_and_says_where_it_comes_from() {
    let summary = forked(&answered(spec(30))).agent.summary().unwrap();
    assert_eq!(
        (summary.turns, summary.calls, summary.usage, summary.cost_nano),
        (0, 0, Usage::default(), Some(0))
    );
    assert_eq!((summary.task.as_str(), summary.status, summary.can_go_on), ("look", Status::Open, false));
    assert_eq!((&summary.session, summary.forked_from), (&new_session(), Some(spec(30).session)));
    let (spec, fork) = taken(&answered(self::spec(30)));
    let waiting = Summary::waiting_fork(&spec, &fork, 5_000);
    assert_eq!(waiting, forked(&answered(self::spec(30))).agent.summary().unwrap(), "driven or not");
}

#[test]
fn what_a_fork_is_asked_goes_behind_the_history_with_a_word_about_the_fork() {
    let bench = answered(spec(30));
    let mut fork = forked(&bench);
    say(&mut fork, "and now?");
    assert_eq!(fork.outline(), "user(text) assistant(text) user(text,text)");
    let request = fork.agent.request().unwrap();
    assert_eq!(request.messages[..2], *bench.agent.history());
    assert_eq!(message(&fork, 2)["content"][1]["text"], FORKED);
    // A failed exchange takes the note back with it; an answered one has used it up.
    fork.fails(FailureKind::Api, Retry::Never);
    assert_eq!(fork.agent.history(), bench.agent.history());
    say(&mut fork, "and now?");
    assert_eq!(last_texts(&fork), format!("and now?\n{FORKED}"));
    fork.replies(says("this"));
    say(&mut fork, "more");
    assert_eq!(last_texts(&fork), "more");
}

#[test]
fn the_mode_is_told_neither_twice_nor_never() {
    // `+` and `-` turn the switch, `.` is an exchange; what is told in the fork's first exchange.
    let check = |on: bool, before: &str, after: &str, expected: &str| {
        let mut bench = of(lead(on, true, 30), "look");
        bench.replies(says("seen"));
        let play = |bench: &mut Bench, script: &str| {
            for (at, step) in script.chars().enumerate() {
                match step {
                    '.' => {
                        say(bench, &format!("turn {at}"));
                        bench.replies(says("seen"));
                    }
                    _ => drop(bench.feed(Input::SetMode { on: step == '+' })),
                }
            }
        };
        play(&mut bench, before);
        let mut fork = forked(&bench);
        assert_eq!(fork.agent.mode(), bench.agent.mode());
        let known = fork.agent.history().len();
        play(&mut fork, after);
        say(&mut fork, "and now?");
        let told = fork.agent.history()[known + 1..].first().map(|segment| segment.as_str().to_owned());
        let word = told
            .and_then(|text| Some(text.split("[orchestration mode: ").nth(1)?.split(']').next()?.to_owned()));
        assert_eq!(word.as_deref().unwrap_or_default(), expected, "{on} {before} | {after}");
    };
    check(true, "", "", "");
    check(true, "-", "", "off");
    check(true, "-.", "", "");
    check(true, "-.+", "", "on");
    check(false, "+", "", "on");
    check(false, "+.", "", "");
    check(true, "", "-", "off");
    check(true, "-", "+", "");
    check(false, "", "+", "on");
}

#[test]
fn what_no_reply_followed_is_left_out() {
    let mut bench = answered(spec(30));
    say(&mut bench, "more");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    bench.fails(FailureKind::Api, Retry::Never);
    assert_eq!(
        forked(&bench).outline(),
        "user(text) assistant(text) user(text) assistant(tool_use) user(tool_result)",
        "results that were come by stay"
    );
    bench.feed(Input::Resume { changed: vec![] });
    bench.replies(reply_cut());
    bench.replies(reply_cut());
    bench.feed(Input::Say { key: "s".into(), text: "once more".into() });
    bench.fails(FailureKind::Api, Retry::Never);
    let mut fork = forked(&bench);
    say(&mut fork, "and now?");
    fork.replies(says("done"));
    assert_eq!(fork.outcome(), &Outcome::Ok { text: "done".into() });
}

/// A reply that was cut and is not kept.
fn reply_cut() -> Box<crate::wire::Reply> {
    Box::new(crate::wire::Reply { stop: crate::wire::StopReason::MaxTokens, ..*says("half") })
}

#[test]
fn who_has_no_reply_to_go_on_from_cannot_be_forked() {
    let none = |bench: &Bench| assert!(bench.agent.fork(&original(), new_session()).is_none());
    let mut bench = Bench::asked(30, "look");
    none(&bench);
    bench.fails(FailureKind::Api, Retry::Never);
    none(&bench);
    assert!(Agent::new().fork(&original(), new_session()).is_none());
    let worker = lead(true, true, 30).child(Role::Task, "a part", 0).unwrap();
    none(&answered(worker));
}

#[test]
fn ids_of_calls_in_the_history_are_not_used_twice() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    bench.replies(says("seen"));
    let mut fork = forked(&bench);
    say(&mut fork, "and now?");
    assert_eq!(
        fork.replies(calls(&["t1"])),
        ["model_replied", "model_called"],
        "it is not kept and asked for again"
    );
}

#[test]
fn the_bound_of_a_forks_first_request_is_the_originals() {
    let mut bench = answered(spec(30));
    let mut fork = forked(&bench);
    let ask = |bench: &mut Bench, text: &str| {
        bench.feed_bare(Input::Say { key: "s".into(), text: text.into() }, Pace::Go);
        bench.agent.room_ask().unwrap()
    };
    let was = ask(&mut bench, "more");
    let is = ask(&mut fork, "more");
    let note = serde_json::json!({"type": "text", "text": FORKED}).to_string().len() as u64 + 1;
    assert_eq!(is.prompt_tokens, was.prompt_tokens + note);
    assert_eq!(is.prefix, was.prefix, "it waits for the same siblings");
}

#[test]
fn a_compacted_history_forks_as_it_stands_and_a_fork_can_be_compacted() {
    let mut bench = compacted(leader());
    bench.replies(says("built"));
    let fork = forked(&bench);
    assert_eq!(fork.agent.history(), bench.agent.history());
    assert_eq!(fork.outline(), "user(text) assistant(text)");

    let mut fork = forked(&answered(in_team(spec(30), 10)));
    assert_eq!(say(&mut fork, "go on"), ["exchange_opened", "note_appended", "model_called"]);
    assert!(fork.agent.is_summarising());
}

#[test]
fn a_fork_of_a_fork_goes_on_from_the_same_place() {
    let bench = answered(spec(30));
    let fork = forked(&bench);
    let again = forked(&fork);
    assert_eq!(again.agent.history(), bench.agent.history());
    assert_eq!(again.agent.forked_from(), Some(&new_session()));
}

#[test]
fn only_a_history_that_has_not_begun_can_begin_as_another_one() {
    let bench = answered(spec(30));
    let (_, fork) = taken(&bench);
    let illegal = |agent: &Agent, fork: HistoryForked| assert!(agent.clone().apply(&fork.into(), 1).is_err());
    illegal(&bench.agent, fork.clone());
    illegal(&forked(&bench).agent, fork.clone());
    let mut new = Agent::new();
    illegal(&new, fork.clone());
    new.apply(&crate::event::AgentStarted { spec: spec(30) }.into(), 1).unwrap();
    illegal(&new, HistoryForked { messages: fork.messages[..1].to_vec(), ..fork.clone() });
    illegal(&new, HistoryForked { messages: Vec::new(), ..fork });
}
