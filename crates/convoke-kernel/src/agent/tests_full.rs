//! What no new history can make shorter, fed by hand: a compaction that gains hardly anything is the last
//! one, and the agent hands back what it has.

use serde_json::json;

use super::tests::{Bench, calls, says, spec};
use super::tests_lasting::{of_size, purpose, summarises, wants_compaction};
use super::tests_mail::{in_team, last_texts};
use super::tests_roles::{call, of, results, say, tool_calls};
use super::*;
use crate::event::Purpose;
use crate::wire::{FailureKind, Retry};

/// Tokens above which the history is left behind.
const AT: u64 = 10_000;

/// One whose history of 11,000 tokens was left behind and whose new one has this many, after a round of
/// tools.
fn left_behind_for(tokens: u64) -> Bench {
    let mut bench = of(in_team(spec(30), AT), "a task that is very long");
    bench.replies(of_size(11_000, calls(&["t1"])));
    bench.runs("t1", "one");
    assert_eq!(purpose(&bench), Purpose::Summary);
    summarises(&mut bench, says("half of it is done"));
    bench.replies(of_size(tokens, calls(&["t2"])));
    bench
}

pub(super) fn compactions(bench: &Bench) -> usize {
    bench.events.iter().filter(|event| matches!(event, Event::HistoryCompacted(_))).count()
}

#[test]
fn a_compaction_that_gained_less_than_a_tenth_is_not_tried_again_and_the_agent_hands_back() {
    let mut bench = left_behind_for(10_500);
    assert_eq!(
        bench.runs("t2", "two"),
        ["tool_finished", "results_appended", "note_appended", "model_called"]
    );
    assert_eq!(purpose(&bench), Purpose::HandBack);
    assert!(last_texts(&bench).contains("context window"), "{}", last_texts(&bench));
    bench.replies(of_size(10_600, says("this is what I have")));
    bench.failed_as(FailureKind::ContextFull, "this is what I have");
    assert!(bench.outcome().is_partial());
    assert_eq!(compactions(&bench), 1);
}

#[test]
fn a_compaction_that_gained_a_tenth_is_tried_again() {
    let mut bench = left_behind_for(9_890);
    bench.runs("t2", &"x".repeat(400));
    assert_eq!(purpose(&bench), Purpose::Summary);
}

#[test]
fn what_does_not_fit_is_refused_before_any_request_and_leaves_the_history() {
    for team in [true, false] {
        let spec = if team { in_team(spec(30), AT) } else { spec(30) };
        let window = spec.capabilities.window;
        let most = usize::try_from(spec.most_text()).unwrap();
        let mut bench = of(spec.clone(), &"x".repeat(most + 1));
        bench.failed_as(FailureKind::ContextFull, "");
        let Outcome::Failed { message, .. } = bench.outcome() else { panic!("{:?}", bench.outcome()) };
        assert!(message.contains("Put it into a file"), "{window}: {message}");
        let called = bench.events.iter().any(|event| matches!(event, Event::ModelCalled(_)));
        assert!(
            !called && bench.agent.history().is_empty() && !bench.agent.can_go_on(),
            "{}",
            bench.outline()
        );
        say(&mut bench, "something short");
        assert_eq!(purpose(&bench), Purpose::Turn, "it is as good as new");
        let just = of(spec, &"x".repeat(most));
        assert_eq!(purpose(&just), Purpose::Turn);
    }
}

#[test]
fn the_next_exchange_begins_a_new_history_again() {
    let mut bench = left_behind_for(10_500);
    bench.runs("t2", "two");
    bench.replies(of_size(10_600, says("this is what I have")));
    say(&mut bench, "something short");
    assert_eq!(purpose(&bench), Purpose::Summary, "what filled the history is not asked any more");
}

#[test]
fn a_new_history_that_was_asked_for_and_gained_nothing_says_nothing_about_length() {
    let mut bench = of(in_team(spec(30), AT), "look");
    bench.replies(of_size(500, calls(&["t1"])));
    wants_compaction(&mut bench);
    bench.runs("t1", "one");
    summarises(&mut bench, says("half of it is done"));
    bench.replies(of_size(600, calls(&["t2"])));
    bench.runs("t2", &"x".repeat(40_000));
    assert_eq!(purpose(&bench), Purpose::Summary, "this is the first one that is too long");
}

#[test]
fn an_agent_whose_new_history_gained_nothing_is_refused_another_one() {
    let mut bench = of(in_team(spec(30), AT), "a task that is very long");
    bench.replies(of_size(10_050, calls(&["t1"])));
    bench.runs("t1", "one");
    summarises(&mut bench, says("half of it is done"));
    // Shorter than the limit by now, and still not a tenth shorter than before.
    bench.replies(of_size(9_600, tool_calls(vec![call("c1", "compact", json!({}))])));
    assert_eq!(purpose(&bench), Purpose::Turn);
    assert!(results(&bench)[0].contains("hardly shorter"), "{:?}", results(&bench));
    assert_eq!(compactions(&bench), 1);
}

#[test]
fn a_hand_back_that_does_not_fit_either_hands_back_what_was_said_last() {
    let mut bench = of(in_team(spec(30), AT), "a task that is very long");
    bench.replies(of_size(11_000, calls(&["t1"])));
    bench.runs("t1", "one");
    summarises(&mut bench, says("half of it is done"));
    let mut looks = calls(&["t2"]);
    looks.text = "The first half is sound.".into();
    bench.replies(of_size(10_500, looks));
    bench.runs("t2", "two");
    assert_eq!(purpose(&bench), Purpose::HandBack);
    bench.fails(FailureKind::ContextFull, Retry::Never);
    bench.failed_as(FailureKind::ContextFull, "The first half is sound.");
}
