//! An agent that goes in circles is told once and then ended; one that only waits gets longer, and one that
//! gets on is left alone.

use serde_json::{Value, json};

use super::tests::{Bench, done, reply, says};
use super::*;
use crate::wire::{FailureKind, Reply, StopReason};

const TOLD: &str = "the same call 3 times in a row";
const ENDED: &str = "so the work ends here";

/// One round: these commands, each with its result; the bench hands out ids.
fn round(bench: &mut Bench, calls: &[(&str, &str)]) -> String {
    let number = bench.events.len();
    let id = |index: usize| format!("c{number}_{index}");
    let block = |(index, (command, _)): (usize, &(&str, &str))| json!({"type": "tool_use", "id": id(index), "name": "bash", "input": {"command": command}});
    let blocks: Vec<Value> = calls.iter().enumerate().map(block).collect();
    bench.replies(reply(blocks.into(), StopReason::ToolUse));
    for (index, (_, text)) in calls.iter().enumerate() {
        bench.feed(Input::ToolDone { id: id(index), result: done(text) });
    }
    bench.agent.history().last().map(|segment| segment.as_str().to_owned()).unwrap_or_default()
}

fn rounds(bench: &mut Bench, times: usize, command: &str) -> Vec<String> {
    (0..times).map(|_| round(bench, &[(command, "the same")])).collect()
}

/// Another process reads the journal and takes the agent up.
fn crash(bench: &mut Bench) {
    let mut agent = Agent::new();
    for event in &bench.events {
        agent.apply(event, 1_000).unwrap();
    }
    bench.agent = agent;
    bench.feed(Input::Resume { changed: Vec::new() });
}

fn ended(bench: &Bench) -> (FailureKind, String, String) {
    match bench.agent.outcome() {
        Some(Outcome::Failed { kind, message, text }) => (*kind, message.clone(), text.clone()),
        other => panic!("it ended otherwise: {other:?}"),
    }
}

#[track_caller]
fn check_told(seen: &[String], told_at: &[usize], ended_at: Option<usize>) {
    let at = |what: &str| {
        seen.iter().enumerate().filter(|(_, text)| text.contains(what)).map(|(i, _)| i + 1).collect()
    };
    let told: Vec<usize> = at(TOLD);
    let ends: Vec<usize> = at(ENDED);
    assert_eq!((told.as_slice(), ends), (told_at, ended_at.into_iter().collect()), "{seen:#?}");
}

#[test]
fn the_same_call_with_the_same_result_is_told_at_three_and_ends_at_six_as_stuck() {
    let mut bench = Bench::asked(30, "do it");
    let seen = rounds(&mut bench, 6, "ls");
    check_told(&seen, &[3], Some(6));
    bench.replies(says("There is only one file."));
    let (kind, message, text) = ended(&bench);
    assert_eq!((kind, text.as_str()), (FailureKind::Stuck, "There is only one file."));
    assert!(
        message.contains("bash was called 6 times in a row with the same input and the same result"),
        "{message}"
    );
    assert!(!bench.agent.can_go_on(), "it would only go round again");
    assert!(bench.agent.outcome().unwrap().is_partial());
}

#[test]
fn one_that_calls_again_in_its_last_turn_hands_nothing_back() {
    let mut bench = Bench::asked(30, "do it");
    rounds(&mut bench, 6, "ls");
    let again = json!([{"type": "tool_use", "id": "last", "name": "bash", "input": {"command": "ls"}}]);
    bench.replies(reply(again, StopReason::ToolUse));
    let (kind, message, text) = ended(&bench);
    assert_eq!((kind, text.as_str()), (FailureKind::Stuck, ""));
    assert!(message.contains("and it was told, and the agent handed nothing back"), "{message}");
}

#[test]
fn a_crash_in_between_changes_nothing_wherever_it_is() {
    for at in 1..6 {
        let mut bench = Bench::asked(30, "do it");
        let mut seen = rounds(&mut bench, at, "ls");
        crash(&mut bench);
        seen.extend(rounds(&mut bench, 6 - at, "ls"));
        check_told(&seen, &[3], Some(6));
        crash(&mut bench);
        bench.replies(says("One file."));
        assert_eq!(ended(&bench).0, FailureKind::Stuck, "after {at}");
    }
}

#[test]
fn polls_that_show_something_new_and_steps_that_get_on_are_left_alone() {
    let mut bench = Bench::asked(30, "wait for it");
    let polls: Vec<String> =
        (0..8).map(|n| round(&mut bench, &[("sleep 9; cat log", &format!("{n} lines"))])).collect();
    check_told(&polls, &[], None);
    let mixed: Vec<String> =
        (0..8).flat_map(|n| rounds(&mut bench, 2, if n % 2 == 0 { "ls" } else { "pwd" })).collect();
    check_told(&mixed, &[], None);
}

#[test]
fn a_wait_is_told_at_three_and_ends_at_twelve() {
    let mut bench = Bench::asked(30, "wait for it");
    let seen = rounds(&mut bench, 12, "sleep 50; tail -1 build.log");
    check_told(&seen, &[3], Some(12));
}

#[test]
fn another_call_in_between_begins_the_count_anew() {
    let mut bench = Bench::asked(30, "do it");
    let mut seen = rounds(&mut bench, 3, "ls");
    seen.extend(rounds(&mut bench, 1, "pwd"));
    seen.extend(rounds(&mut bench, 6, "ls"));
    check_told(&seen, &[3, 7], Some(10));
}

#[test]
fn whole_rounds_are_compared_and_equal_calls_of_one_reply_count_each() {
    let mut bench = Bench::asked(30, "do it");
    let both: Vec<String> = (0..6).map(|_| round(&mut bench, &[("ls", "a"), ("pwd", "b")])).collect();
    check_told(&both, &[3], Some(6));
    let mut bench = Bench::asked(30, "do it");
    // The exchange does not end before the agent has been told.
    let many: Vec<String> = (0..2).map(|_| round(&mut bench, &[("ls", "a"); 8])).collect();
    assert!(many[0].contains("the same call 8 times in a row") && many[1].contains(ENDED), "{many:#?}");
}

#[test]
fn a_call_that_cannot_be_read_goes_in_circles_too() {
    let mut bench = Bench::asked(30, "do it");
    let wrong = |n: usize| -> Box<Reply> {
        reply(
            json!([{"type": "tool_use", "id": format!("w{n}"), "name": "no_such_tool", "input": {}}]),
            StopReason::ToolUse,
        )
    };
    for n in 0..6 {
        let wrong = wrong(n);
        bench.replies(wrong);
    }
    bench.replies(says("I cannot."));
    assert_eq!(ended(&bench).0, FailureKind::Stuck);
}

#[test]
fn what_was_cut_off_is_no_result_that_could_be_the_same() {
    let mut bench = Bench::asked(30, "do it");
    let mut seen = rounds(&mut bench, 2, "ls");
    let call = json!([{"type": "tool_use", "id": "cut", "name": "bash", "input": {"command": "ls"}}]);
    bench.replies(reply(call, StopReason::ToolUse));
    crash(&mut bench);
    seen.extend(rounds(&mut bench, 2, "ls"));
    check_told(&seen, &[], None);
}
