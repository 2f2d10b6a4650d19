//! A window that a server names, fed by hand: the agent goes on within it where it can, and
//! ends with a typed failure where it cannot.

use super::tests::{Bench, calls, says, spec};
use super::tests_full::compactions;
use super::tests_lasting::{facts, of_size, purpose, summarises};
use super::tests_mail::{LONG, in_team, last_texts};
use super::tests_roles::{of, say};
use super::*;
use crate::event::{EndpointLearnt, Purpose};
use crate::lesson::{Learnt, Refused};
use crate::wire::{Capabilities, Failure, FailureKind, Retry};

const HERE: &str = "http://gate";

fn too_long(window: u64) -> Failure {
    Failure {
        kind: FailureKind::ContextFull,
        message: format!(
            "the API answered 400: request exceeds the available context size ({window} tokens)"
        ),
        retry: Retry::Never,
        request_id: None,
        unbilled: true,
        refused: Some(Box::new(Refused { endpoint: HERE.into(), fields: Vec::new(), window: Some(window) })),
    }
}

fn refuses(bench: &mut Bench, window: u64) -> Vec<&'static str> {
    let (call, attempt) = bench.call();
    let failure = too_long(window);
    match bench.agent.is_summarising() {
        true => bench.feed(Input::Unsummarised { call, attempt, failure, facts: Box::new(facts()) }),
        false => bench.feed(Input::Failed { call, attempt, failure }),
    }
}

/// What its requests are measured by: window, longest reply, and the length at which a history is left
/// behind.
fn sizes(bench: &Bench) -> (u64, u32, Option<u64>) {
    let spec = bench.agent.spec().unwrap();
    let Capabilities { window, max_output, .. } = spec.capabilities;
    (window, max_output, spec.team.as_ref().map(|team| team.compact_at))
}

fn heard(endpoint: &str, window: Option<u64>, how: Learnt) -> Input {
    let endpoint = endpoint.to_owned();
    let model = "claude-opus-4-8".to_owned();
    Input::Learn {
        learnt: Box::new(EndpointLearnt {
            endpoint,
            model,
            lacks: Vec::new(),
            how,
            said: String::new(),
            window,
        }),
    }
}

#[test]
fn a_request_whose_reply_leaves_no_room_is_sent_again_with_a_shorter_one() {
    let mut bench = Bench::asked(30, "look");
    let before = bench.agent.request().unwrap();
    assert!(before.max_tokens > 8_000);
    assert_eq!(refuses(&mut bench, 12_000), ["model_failed", "endpoint_learnt", "model_called"]);
    let now = bench.agent.request().unwrap();
    assert!(now.max_tokens <= 6_000 && now.messages == before.messages && now.system == before.system);
    assert_eq!(sizes(&bench), (12_000, 6_000, None));
    // Where the history takes more than half, a reply has what is left.
    bench.replies(of_size(8_000, calls(&["t1"])));
    bench.runs("t1", "one");
    let room = bench.agent.request().unwrap().max_tokens;
    assert!((3_000..4_000).contains(&room), "{room}");
    let mut folded = Agent::new();
    bench.events.iter().for_each(|event| folded.apply(event, 0).unwrap());
    assert_eq!(folded.spec(), bench.agent.spec(), "a resume knows it");
}

#[test]
fn a_history_that_the_server_does_not_read_is_left_behind_without_a_summary() {
    let mut bench = of(in_team(spec(30), LONG), "a task");
    bench.replies(of_size(9_000, calls(&["t1"])));
    bench.runs("t1", "one");
    assert_eq!(
        refuses(&mut bench, 8_192),
        ["model_failed", "endpoint_learnt", "note_appended", "model_called"]
    );
    assert_eq!((purpose(&bench), sizes(&bench)), (Purpose::Summary, (8_192, 4_096, Some(8_192))));
    assert_eq!(refuses(&mut bench, 8_192), ["model_failed", "history_compacted", "model_called"]);
    let texts = last_texts(&bench);
    assert!(texts.contains("a task") && texts.contains("No summary could be had"), "{texts}");
    assert_eq!((purpose(&bench), bench.agent.history().len(), compactions(&bench)), (Purpose::Turn, 1, 1));
    // What is too long from its beginning cannot be helped.
    assert_eq!(refuses(&mut bench, 8_192), ["model_failed", "exchange_closed"]);
    bench.failed_as(FailureKind::ContextFull, "");
}

#[test]
fn a_summary_that_the_server_can_read_is_asked_for_in_time_from_then_on() {
    let mut bench = of(in_team(spec(30), LONG / 2), "a task");
    bench.replies(of_size(9_000, calls(&["t1"])));
    bench.runs("t1", "one");
    refuses(&mut bench, 8_192);
    summarises(&mut bench, says("half of it is done"));
    assert_eq!(sizes(&bench).2, Some(4_096), "the same share of the window as before");
    bench.replies(of_size(4_200, calls(&["t2"])));
    bench.runs("t2", "two");
    assert_eq!((purpose(&bench), compactions(&bench)), (Purpose::Summary, 1));
}

#[test]
fn an_agent_that_cannot_go_on_within_the_window_ends_typed_and_has_learnt_it() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(of_size(9_000, calls(&["t1"])));
    bench.runs("t1", "one");
    assert_eq!(refuses(&mut bench, 8_192), ["model_failed", "endpoint_learnt", "exchange_closed"]);
    bench.failed_as(FailureKind::ContextFull, "");
    assert!(!bench.agent.can_go_on());
    say(&mut bench, &"x".repeat(60_000));
    bench.failed_as(FailureKind::ContextFull, "");
    let Outcome::Failed { message, .. } = bench.outcome() else { panic!("{:?}", bench.outcome()) };
    assert!(message.contains("reads 8,192 tokens at once"), "{message}");
}

#[test]
fn what_others_were_told_is_kept_to_and_another_server_begins_anew() {
    let mut bench = of(in_team(spec(30), LONG / 2), "look");
    let stated = sizes(&bench);
    assert_eq!(bench.feed(heard(HERE, Some(2_000_000), Learnt::Heard)), [""; 0]);
    assert_eq!(bench.feed(heard(HERE, Some(16_000), Learnt::Heard)), ["endpoint_learnt"]);
    assert_eq!(bench.feed(heard(HERE, Some(16_000), Learnt::Heard)), [""; 0]);
    assert_eq!(sizes(&bench), (16_000, 8_000, Some(8_000)));
    assert_eq!(bench.feed(heard("http://other", None, Learnt::Moved)), ["endpoint_learnt"]);
    assert_eq!(sizes(&bench), stated);
}

#[test]
fn room_that_was_granted_before_the_window_was_heard_of_is_not_used_beyond_it() {
    let mut bench = of(in_team(spec(30), LONG), "look");
    bench.replies(of_size(20_000, says("seen")));
    bench.feed_bare(Input::Say { key: "k2".into(), text: "more".into() }, Pace::Go);
    let ask = bench.agent.room_ask().unwrap();
    bench.feed_bare(heard(HERE, Some(16_000), Learnt::Heard), Pace::Go);
    let answer = RoomAnswer::Go { max_tokens: ask.wanted };
    bench.feed_bare(Input::Room { call: ask.call, answer }, Pace::Go);
    let request = bench.agent.request().unwrap();
    assert!(request.max_tokens <= 8_000);
    assert_eq!(purpose(&bench), Purpose::Turn, "what was granted was granted for this request");
    assert_eq!(refuses(&mut bench, 16_000), ["model_failed", "note_appended", "model_called"]);
    assert_eq!(purpose(&bench), Purpose::Summary);
}
