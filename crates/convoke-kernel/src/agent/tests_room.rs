//! What an agent makes of a budget that is short, fed by hand: last turns, shrunken rooms, and going on
//! afterwards.

use super::decide::user_text;
use super::tests::{Bench, calls, reply, says, spec};
use super::tests_roles::{lead, of};
use super::*;
use crate::consent::{Consent, ConsentBasis};
use crate::ledger::{Cap, HAND_BACK_NOTE_TOKENS, Short};
use crate::outcome::ToolResult;
use crate::prompts;
use crate::tools::ToolRequest;
use crate::wire::{FailureKind, Reply, Retry, StopReason};

fn cut(text: &str) -> Box<Reply> {
    reply(serde_json::json!([{"type": "text", "text": text}]), StopReason::MaxTokens)
}

/// An agent that has run one command and waits for room.
fn waiting() -> Bench {
    let mut bench = of(spec(30), "look");
    bench.replies(calls(&["t1"]));
    bench.feed_bare(Input::ToolDone { id: "t1".into(), result: ToolResult::done("one") }, Pace::Go);
    bench
}

fn answer(bench: &mut Bench, answer: RoomAnswer) -> Vec<&'static str> {
    let call = bench.agent.room_ask().unwrap().call;
    bench.feed_bare(Input::Room { call, answer }, Pace::Go)
}

fn hand_back() -> RoomAnswer {
    RoomAnswer::HandBack { max_tokens: 4_096, why: "$0.01 of $1.00 left".into() }
}

fn last_text(bench: &Bench) -> String {
    bench.agent.history().last().unwrap().as_str().to_owned()
}

#[test]
fn who_is_short_hands_back_once_and_a_new_grant_lets_it_go_on() {
    let mut bench = waiting();
    assert_eq!(answer(&mut bench, hand_back()), ["note_appended", "model_called"]);
    assert!(last_text(&bench).contains("$0.01 of $1.00 left"));
    bench.replies(says("so far"));
    bench.failed_as(FailureKind::Budget, "so far");
    bench.feed(Input::Resume { changed: Vec::new() });
    assert!(last_text(&bench).contains("has raised it"), "{}", last_text(&bench));
    bench.replies(says("all of it"));
    assert_eq!(bench.agent.outcome(), Some(&Outcome::Ok { text: "all of it".into() }));
}

#[test]
fn a_hand_back_that_failed_is_not_asked_for_again_once_there_is_room() {
    let mut bench = waiting();
    answer(&mut bench, hand_back());
    bench.fails(FailureKind::Api, Retry::Never);
    bench.feed(Input::Resume { changed: Vec::new() });
    assert!(
        last_text(&bench).contains("has raised it"),
        "the model was told that nothing follows: {}",
        last_text(&bench)
    );
}

#[test]
fn the_last_turn_of_the_turn_limit_stays_the_last_one_and_has_all_the_room() {
    let mut bench = of(spec(1), "look");
    bench.replies(calls(&["t1"]));
    bench.feed(Input::ToolDone { id: "t1".into(), result: ToolResult::done("one") });
    assert_eq!(bench.agent.request().unwrap().max_tokens, 64_000);
    bench.fails(FailureKind::Api, Retry::Never);
    bench.feed(Input::Resume { changed: Vec::new() });
    bench.replies(says("handed back"));
    bench.failed_as(FailureKind::TurnLimit, "handed back");
}

#[test]
fn a_hand_back_that_is_cut_is_kept_as_far_as_it_goes() {
    let mut bench = waiting();
    answer(&mut bench, hand_back());
    assert_eq!(bench.replies(cut("half of")), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::Budget, "half of");
}

#[test]
fn a_reply_cut_for_lack_of_money_is_no_lasting_failure() {
    let mut bench = of(spec(30), "look");
    bench.replies(cut("a"));
    bench.replies(cut("ab"));
    bench.failed_as(FailureKind::Truncated, "ab");
    assert!(!bench.agent.can_go_on());
    let mut bench = waiting();
    answer(&mut bench, RoomAnswer::Go { max_tokens: 8_000 });
    let call = bench.call().0;
    bench.feed_bare(Input::Replied { call, reply: cut("a") }, Pace::Go);
    answer(&mut bench, RoomAnswer::Go { max_tokens: 8_000 });
    let call = bench.call().0;
    bench.feed_bare(Input::Replied { call, reply: cut("a") }, Pace::Go);
    bench.failed_as(FailureKind::Budget, "a");
    assert!(bench.agent.can_go_on());
}

#[test]
fn half_a_usage_does_not_make_a_history_look_shorter() {
    let mut bench = of(spec(30), "look");
    let before = bench.agent.state.mark.tokens;
    let mut half = calls(&["t1"]);
    half.usage.input_tokens = 0;
    bench.replies(half);
    assert!(bench.agent.state.mark.tokens > before);
}

#[test]
fn the_word_in_a_task_that_was_read_from_a_file_is_no_consent() {
    let consent = |quoted: bool, text: &str| {
        let mut spec = lead(false, true, 30);
        spec.fan_out.as_mut().unwrap().quoted = quoted;
        let mut bench = of(spec, text);
        let call = serde_json::json!([{"type": "tool_use", "id": "w", "name": "Workflow", "input": {"subtasks": ["a"]}}]);
        bench.replies(reply(call, StopReason::ToolUse));
        match &bench.agent.pending()[..] {
            [Effect::RunTool { request: ToolRequest::Workflow { consent, .. }, .. }] => *consent,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(consent(false, "run a workflow"), Consent::Given(ConsentBasis::Word));
    assert_eq!(consent(true, "run a workflow"), Consent::Missing);
}

#[test]
fn an_overloaded_server_is_asked_again_after_half_a_minute_whatever_it_says_and_a_limit_is_taken_at_its_word()
{
    let check = |kind: FailureKind, told: u64, expected: u64| {
        let mut bench = Bench::asked(30, "hello");
        bench.fails(kind, Retry::After(told));
        let [Effect::AskRoom { not_before, .. }] = bench.agent.pending()[..] else { panic!("it waits") };
        assert_eq!(not_before - bench.at, expected, "{kind:?} {told}");
    };
    check(FailureKind::Api, 7_000, 7_000);
    check(FailureKind::Api, 3_600_000, 30_000);
    check(FailureKind::RateLimited, 3_600_000, 3_600_000);
}

#[test]
fn a_waiting_time_beyond_an_hour_is_told_with_its_figures() {
    let mut bench = Bench::asked(30, "hello");
    bench.fails(FailureKind::RateLimited, Retry::After(7_200_000));
    let Some(Outcome::Failed { kind: FailureKind::RateLimited, message, .. }) = bench.agent.outcome() else {
        panic!("{:?}", bench.agent.outcome());
    };
    assert!(message.contains("for 7200 s, and 3600 s is the longest"), "{message}");
}

#[test]
fn whoever_waits_in_vain_for_the_server_ends_with_the_reason_and_can_go_on() {
    let mut bench = waiting();
    let given_up = RoomAnswer::GivenUp { kind: FailureKind::RateLimited, why: "300 s are left".into() };
    assert_eq!(answer(&mut bench, given_up), ["room_refused", "exchange_closed"]);
    let outcome = bench.agent.outcome();
    assert!(
        matches!(outcome, Some(Outcome::Failed { kind: FailureKind::RateLimited, message, .. }) if message == "300 s are left"),
        "{outcome:?}"
    );
    assert!(bench.agent.can_go_on());
    bench.feed(Input::Resume { changed: Vec::new() });
    bench.replies(says("all of it"));
    assert_eq!(bench.agent.outcome(), Some(&Outcome::Ok { text: "all of it".into() }));
}

#[test]
fn the_note_of_a_hand_back_has_fewer_bytes_than_the_ledger_keeps_tokens_for_it() {
    let largest = |what| Short { what, needs: u64::MAX - 1, left: u64::MAX, cap: u64::MAX };
    let unpriced = Short { needs: u64::MAX, ..largest(Cap::Dollars) };
    let shorts =
        [Cap::Agents, Cap::Tokens, Cap::Dollars, Cap::Minutes].map(largest).into_iter().chain([unpriced]);
    for short in shorts {
        for tool in [None, Some("report_findings"), Some("report_verdicts"), Some("StructuredOutput")] {
            let note = user_text(&prompts::hand_back_short(tool, &short.to_string()));
            let bytes = note.as_str().len() as u64;
            assert!(bytes <= HAND_BACK_NOTE_TOKENS, "{bytes} bytes: {}", note.as_str());
        }
    }
}
