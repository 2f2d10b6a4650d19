//! What an agent hears next of what waits, and how many letters at once.

use super::tests::{Bench, spec};
use super::tests_mail::{leader, letter};
use super::*;
use crate::wire::Capabilities;

fn queued(key: &str, wants: Queued) -> QueuedInput {
    QueuedInput { key: key.into(), body: format!("the body of {key}"), wants }
}

fn say(key: &str) -> QueuedInput {
    queued(key, Queued::Say { text: format!("text of {key}") })
}

fn mail(key: &str, text: &str) -> QueuedInput {
    queued(key, Queued::Letter(Box::new(letter("bob", text))))
}

fn stop(key: &str) -> QueuedInput {
    queued(key, Queued::Stop { by: "ann".into() })
}

fn unreadable(key: &str) -> QueuedInput {
    queued(key, Queued::Unreadable { why: "no JSON".into() })
}

fn begin(key: &str) -> QueuedInput {
    let opening = Opening::Say { text: "the task".into() };
    queued(key, Queued::Start { spec: Box::new(leader()), opening })
}

/// One that has said what it had to say.
fn idle() -> Agent {
    let mut bench = Bench::asked(30, "work");
    bench.replies(super::tests::says("done"));
    bench.agent
}

/// One whose request is under way.
fn busy() -> Agent {
    Bench::asked(30, "work").agent
}

const ALL: HeldBack = HeldBack { all_but_switches: false, letters: false, words: false };

/// What is heard, in a word, with the keys that are taken.
#[track_caller]
fn check(agent: &Agent, held_back: HeldBack, queue: &[QueuedInput], expected: Option<(&str, &[&str])>) {
    let heard = agent.next_input(queue, held_back);
    let word = heard.as_ref().map(|heard| {
        let word = match &heard.input {
            Input::Start { .. } => "start",
            Input::Say { .. } => "say",
            Input::Mail { .. } => "mail",
            Input::SetMode { on: true } => "mode on",
            Input::SetMode { on: false } => "mode off",
            Input::StopExchange { .. } => "stop",
            Input::Reject { .. } => "reject",
            Input::Retune { .. } => "retune",
            _ => "another",
        };
        (word, heard.keys.iter().map(String::as_str).collect::<Vec<_>>())
    });
    assert_eq!(word, expected.map(|(word, keys)| (word, keys.to_vec())), "{queue:?}");
}

#[test]
fn a_stop_is_heard_before_everything_it_stands_behind_and_all_stops_are_taken_with_it() {
    let queue = [say("a"), unreadable("b"), stop("c"), stop("d")];
    check(&idle(), ALL, &queue, Some(("stop", &["c", "d"])));
    check(&busy(), ALL, &queue, Some(("stop", &["c", "d"])));
    check(&Agent::new(), ALL, &[stop("a"), begin("b")], Some(("start", &["b"])));
}

#[test]
fn what_is_said_waits_for_the_end_of_an_exchange_and_what_cannot_be_read_does_not() {
    check(&idle(), ALL, &[say("a"), say("b")], Some(("say", &["a"])));
    check(&busy(), ALL, &[say("a")], None);
    check(&busy(), ALL, &[say("a"), unreadable("b")], Some(("reject", &["b"])));
    let heard = idle().next_input(&[unreadable("a")], ALL).unwrap();
    assert!(
        matches!(&heard.input, Input::Reject { why, body, .. } if why == "no JSON" && body == "the body of a")
    );
}

#[test]
fn an_agent_that_does_not_exist_hears_its_start_alone() {
    let queue = [unreadable("a"), mail("b", "hello"), begin("c")];
    check(&Agent::new(), ALL, &queue, Some(("start", &["c"])));
    check(&Agent::new(), ALL, &queue[..2], None);
    // A start that comes twice says its task to the agent that exists.
    check(&idle(), ALL, &[begin("a")], Some(("say", &["a"])));
}

#[test]
fn an_answer_to_no_question_and_a_run_that_is_not_known_change_nothing() {
    let answer = Queued::Answer { id: "t".into(), allow: true, by: "ann".into() };
    check(&idle(), ALL, &[queued("a", answer)], Some(("mode off", &["a"])));
    let told = Queued::Told { run: "wf_none".into(), text: "done".into() };
    check(&idle(), ALL, &[queued("a", told)], Some(("mode off", &["a"])));
    check(&idle(), ALL, &[queued("a", Queued::Control), say("b")], Some(("say", &["b"])));
}

#[test]
fn a_model_that_cannot_be_chosen_is_set_aside_with_the_reason() {
    let capabilities = Box::new(Capabilities { window: 1, ..spec(30).capabilities });
    let wants = Queued::Retune { model: "small".into(), capabilities, rates: None };
    check(&idle(), ALL, &[queued("a", wants)], Some(("reject", &["a"])));
}

#[test]
fn what_is_held_back_waits_and_the_rest_is_heard() {
    let switches = HeldBack { all_but_switches: true, ..ALL };
    let mode = queued("m", Queued::Mode { on: Some(true) });
    check(&idle(), switches, &[mode.clone(), say("a")], Some(("mode on", &["m"])));
    // In its order: the switch counts for what is said behind it.
    check(&idle(), switches, &[say("a"), mode.clone()], None);
    check(&idle(), switches, &[mail("a", "hello"), mode], None);
    let queue = [mail("a", "hello"), say("b")];
    check(&idle(), HeldBack { letters: true, ..ALL }, &queue, Some(("say", &["b"])));
    check(&idle(), HeldBack { words: true, ..ALL }, &[say("a")], None);
}

#[test]
fn letters_are_read_together_up_to_a_number_and_a_size() {
    let many: Vec<QueuedInput> = (0..30).map(|n| mail(&format!("k{n}"), &format!("letter {n}"))).collect();
    assert_eq!(next_letters(&many).unwrap().letters.len(), 20);
    check(&idle(), ALL, &[mail("a", "one"), say("b"), mail("c", "two")], Some(("mail", &["a", "c"])));
    let large = |key: &str| mail(key, &format!("{key}{}", "x".repeat(40 * 1024)));
    let read = next_letters(&[large("a"), large("b")]).unwrap();
    assert_eq!((read.key(), read.keys), ("a".to_owned(), vec!["a".to_owned()]));
    // One that is too large by itself is read all the same.
    let whole = next_letters(&[mail("a", &"x".repeat(70 * 1024))]).unwrap();
    assert_eq!(whole.letters.len(), 1);
    assert_eq!(next_letters(&[say("a")]), None);
}
