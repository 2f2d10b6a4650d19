//! Scripts as people write them run to their end, whatever becomes of their agents and in whatever order.

use std::collections::BTreeSet;

use convoke_script::{CallOutcome, FaultKind, GuestMessage, HostMessage, Interpreter, Limits, State, Want};
use serde_json::{Value, json};

use crate::corpus::{Script, scripts};
use crate::drive::{End, Order, Ran, run};
use crate::stub::{self, Mode};

const MOST: usize = 5_000;

fn go(script: &Script, mode: Mode, order: Order) -> Ran {
    run(script.start(), order, MOST, |call| stub::answer(call, mode))
}

/// `returned`, `thrown`, or what else happened.
fn word(end: &End) -> String {
    match end {
        End::State(State::Returned { .. }) => "returned".to_owned(),
        End::State(State::Failed { fault }) if fault.kind == FaultKind::Thrown => "thrown".to_owned(),
        other => format!("{other:?}"),
    }
}

fn check_mode(mode: Mode, expected: impl Fn(&Script) -> String) {
    let mut complaints = Vec::new();
    for script in scripts() {
        for order in [Order::First, Order::Last, Order::Shuffled(7)] {
            let ran = go(&script, mode, order);
            let expected = expected(&script);
            let ended = word(&ran.end);
            if ended != expected {
                complaints.push(format!(
                    "{} ({mode:?}, {order:?}): {ended}, not {expected}: {:?}",
                    script.name, ran.end
                ));
            }
            if ran.calls.is_empty() {
                complaints.push(format!("{}: made no call", script.name));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_script_reaches_its_end_when_every_agent_is_ok() {
    check_mode(Mode::Ok, |_| "returned".to_owned());
}

#[test]
fn every_script_ends_as_it_says_when_every_agent_is_null() {
    check_mode(Mode::Null, |script| script.header("expect-null").unwrap().to_owned());
}

#[test]
fn every_script_ends_as_it_says_when_half_of_the_agents_fail() {
    check_mode(Mode::Half, |script| script.header("expect-half").unwrap().to_owned());
}

#[test]
fn agents_that_fail_in_turns_end_a_script_by_its_own_hand_or_not_at_all() {
    let mut died = BTreeSet::new();
    for script in scripts() {
        let ran = go(&script, Mode::Alternating, Order::First);
        let ended = word(&ran.end);
        assert!(ended == "returned" || ended == "thrown", "{}: {ended}", script.name);
        died.insert(ended);
    }
    assert_eq!(died.len(), 2, "some scripts live through it and some do not");
}

#[test]
fn the_order_in_which_agents_end_does_not_change_a_result_that_does_not_depend_on_it() {
    let mut compared = 0;
    for script in scripts() {
        let free = match script.header("order") {
            Some("free") => true,
            Some("bound") => false,
            other => panic!("{}: order: {other:?}", script.name),
        };
        for mode in [Mode::Ok, Mode::Half, Mode::Null] {
            let first = go(&script, mode, Order::First);
            for order in [Order::Last, Order::Shuffled(1), Order::Shuffled(2), Order::Shuffled(3)] {
                let other = go(&script, mode, order);
                if !free {
                    continue;
                }
                compared += 1;
                assert_eq!(first.end, other.end, "{} ({mode:?}, {order:?})", script.name);
                // The same agents were asked, in the same places of the program, with the same words.
                assert_eq!(asked(&first), asked(&other), "{} ({mode:?}, {order:?})", script.name);
            }
        }
    }
    println!("{compared} runs compared");
    assert!(compared > 300);
}

fn asked(ran: &Ran) -> Vec<(String, String)> {
    let mut asked: Vec<_> = ran
        .calls
        .iter()
        .map(|call| {
            let what = match &call.want {
                Want::Agent(agent) => {
                    format!("{} {}", agent.label.as_deref().unwrap_or_default(), agent.prompt)
                }
                other => format!("{other:?}"),
            };
            (call.path.clone(), what)
        })
        .collect();
    asked.sort();
    asked
}

#[test]
fn the_same_answers_in_the_same_order_give_the_same_program() {
    for script in scripts() {
        let once = go(&script, Mode::Half, Order::Shuffled(11));
        let again = go(&script, Mode::Half, Order::Shuffled(11));
        assert_eq!(once, again, "{}", script.name);
    }
}

#[test]
fn scripts_meet_arguments_they_did_not_expect_with_an_error_of_their_own() {
    for script in scripts() {
        for args in [None, Some(Value::Null), Some(json!("some text")), Some(json!({})), Some(json!([1, 2]))]
        {
            let mut start = script.start();
            start.args = args.clone();
            let ran = run(start, Order::First, MOST, |call| stub::answer(call, Mode::Ok));
            let ended = word(&ran.end);
            assert!(ended == "returned" || ended == "thrown", "{} with {args:?}: {ended}", script.name);
            if let (None, Some(expected)) = (args, script.header("expect-no-args")) {
                assert_eq!(ended, expected, "{}", script.name);
            }
        }
    }
}

#[test]
fn the_collection_is_as_large_and_as_varied_as_it_claims() {
    let scripts = scripts();
    assert!(scripts.len() >= 24, "{}", scripts.len());
    for script in &scripts {
        let lines = script.source.lines().count();
        assert!((30..=150).contains(&lines), "{}: {lines} lines", script.name);
    }
    let all: String = scripts.iter().map(|script| script.source.as_str()).collect();
    for used in [
        "typeof input === 'string'",
        "JSON.parse(args)",
        "while (budget.total && budget.remaining() >",
        "const budget =",
        "new URL(",
        "typeof setTimeout === 'function'",
        "clearTimeout(",
        ".catch(() => null)",
        "new Set(",
        "new Map(",
        "isolation: 'worktree'",
        "agentType",
        "effort:",
        "type: ['string', 'null']",
        "additionalProperties: {",
        "(?<term>",
        "/u.test",
        "??=",
        "catch {",
        "verify(",
        "sh(",
        "checkpoint(",
        "workflow(",
        "Date.now()",
        "matchAll",
    ] {
        assert!(all.contains(used), "no script uses {used}");
    }
}

#[test]
fn failing_agents_fail_in_both_ways_and_some_do_not_fail() {
    let mut null = 0;
    let mut thrown = 0;
    let mut good = 0;
    for script in scripts() {
        run(script.start(), Order::First, MOST, |call| {
            let answer = stub::answer(call, Mode::Half);
            match &answer {
                CallOutcome::Value { value: Value::Null } if matches!(call.want, Want::Agent(_)) => null += 1,
                CallOutcome::Throw { .. } => thrown += 1,
                _ => good += 1,
            }
            answer
        });
    }
    println!("{null} null, {thrown} thrown, {good} good");
    assert!(null > 25 && thrown > 25 && good > 60);
}

#[test]
fn lines_of_json_say_the_same_as_values() {
    let script = scripts().into_iter().find(|script| script.name == "nested_fan").unwrap();
    let mut by_value = Interpreter::new();
    let mut by_line = Interpreter::new();
    let mut ask = HostMessage::Start(Box::new(script.start()));
    let mut open = Vec::new();
    for _ in 0..200 {
        let told = by_value.hear(ask.clone());
        let line = by_line.hear_line(&serde_json::to_string(&ask).unwrap());
        assert!(!line.contains('\n'), "one line");
        assert_eq!(serde_json::from_str::<GuestMessage>(&line).unwrap(), told);
        let GuestMessage::Stepped(step) = told else { panic!("{told:?}") };
        open.extend(step.calls);
        if step.state != State::Waiting {
            assert!(matches!(step.state, State::Returned { .. }));
            return;
        }
        let call = open.pop().unwrap();
        ask = HostMessage::Answer { call: call.call, answer: stub::answer(&call, Mode::Ok), spent: 0 };
    }
    panic!("it did not end");
}

#[test]
fn no_script_is_said_to_hold_a_slip() {
    for Script { name, source } in scripts() {
        let told = Interpreter::new().hear(HostMessage::Check { source, limits: Limits::default() });
        let GuestMessage::Sound { slips, .. } = told else { panic!("{name}: {told:?}") };
        assert!(slips.is_empty(), "{name}: {slips:#?}");
    }
}
