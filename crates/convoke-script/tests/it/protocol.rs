//! Questions that make no sense are answered as such, and change nothing.

use convoke_script::{CallOutcome, GuestMessage, HostMessage, Interpreter, Limits, State};
use serde_json::{Value, json};

use crate::drive::{program, start};

fn begin(body: &str) -> HostMessage {
    HostMessage::Start(Box::new(start(&program(body))))
}

fn value(call: u32, value: Value) -> HostMessage {
    HostMessage::Answer { call, answer: CallOutcome::Value { value }, spent: 0 }
}

fn is_confused(told: GuestMessage) -> bool {
    matches!(told, GuestMessage::Confused { why } if !why.is_empty())
}

fn state(told: GuestMessage) -> State {
    match told {
        GuestMessage::Stepped(step) => step.state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_before_the_start_is_confusing() {
    assert!(is_confused(Interpreter::new().hear(value(1, json!(1)))));
}

#[test]
fn a_second_start_is_confusing_and_the_first_goes_on() {
    let mut interpreter = Interpreter::new();
    assert_eq!(state(interpreter.hear(begin("return await agent('x')"))), State::Waiting);
    assert!(is_confused(interpreter.hear(begin("return 2"))));
    let end = state(interpreter.hear(value(1, json!("one"))));
    assert_eq!(end, State::Returned { value: Some(json!("one")), replaced: Vec::new() });
}

#[test]
fn an_answer_to_no_call_is_confusing_and_changes_nothing() {
    let mut interpreter = Interpreter::new();
    interpreter.hear(begin("const a = agent('x')\nreturn [await a, await agent('y')]"));
    for call in [0, 2, 99, u32::MAX] {
        assert!(is_confused(interpreter.hear(value(call, json!("evil")))), "{call}");
    }
    assert_eq!(state(interpreter.hear(value(1, json!("one")))), State::Waiting);
    assert!(is_confused(interpreter.hear(value(1, json!("evil")))), "the second answer to one call");
    let end = state(interpreter.hear(value(2, json!("two"))));
    assert_eq!(end, State::Returned { value: Some(json!(["one", "two"])), replaced: Vec::new() });
}

#[test]
fn a_program_for_a_call_that_is_no_workflow_does_not_run() {
    let mut interpreter = Interpreter::new();
    interpreter.hear(begin("try { return ['resolved', await agent('x')] } catch (e) { return 'rejected' }"));
    let answer = CallOutcome::Program { name: "child".to_owned(), source: program("return 'ran'") };
    match interpreter.hear(HostMessage::Answer { call: 1, answer, spent: 0 }) {
        GuestMessage::Confused { .. } => {}
        GuestMessage::Stepped(step) => {
            assert_eq!(step.state, State::Returned { value: Some(json!("rejected")), replaced: Vec::new() })
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_check_may_be_asked_at_any_time_and_any_number_of_times() {
    let mut interpreter = Interpreter::new();
    let check = |source: String| HostMessage::Check { source, limits: Limits::default() };
    for _ in 0..3 {
        assert!(matches!(interpreter.hear(check(program("return 1"))), GuestMessage::Sound { .. }));
        assert!(matches!(interpreter.hear(check("nothing".to_owned())), GuestMessage::Unsound { .. }));
    }
    interpreter.hear(begin("return await agent('x')"));
    assert!(matches!(interpreter.hear(check(program("return 1"))), GuestMessage::Sound { .. }));
    assert!(matches!(state(interpreter.hear(value(1, json!(1)))), State::Returned { .. }));
}

#[test]
fn a_check_runs_nothing() {
    let source = program("while (true) {}");
    assert!(matches!(
        Interpreter::new().hear(HostMessage::Check { source, limits: Limits::default() }),
        GuestMessage::Sound { .. }
    ));
}

#[test]
fn an_unsound_start_says_what_is_wrong() {
    match Interpreter::new().hear(begin("return (")) {
        GuestMessage::Unsound { problems } => assert!(problems[0].place.is_some(), "{problems:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_that_are_no_questions_are_confusing() {
    let mut interpreter = Interpreter::new();
    for line in [
        "",
        "{}",
        "null",
        "[1]",
        "{\"ask\":\"dance\"}",
        "{\"ask\":\"answer\",\"call\":-1}",
        "\u{0}",
        "{\"ask\":\"start\",\"source\":5}",
    ] {
        let told: GuestMessage = serde_json::from_str(&interpreter.hear_line(line)).unwrap();
        assert!(is_confused(told), "{line}");
    }
    let line = serde_json::to_string(&begin("return 5")).unwrap();
    let told: GuestMessage = serde_json::from_str(&interpreter.hear_line(&line)).unwrap();
    assert_eq!(state(told), State::Returned { value: Some(json!(5)), replaced: Vec::new() });
}

#[test]
fn many_interpreters_do_not_know_of_each_other() {
    let mut all: Vec<Interpreter> = (0..20).map(|_| Interpreter::new()).collect();
    for (n, interpreter) in all.iter_mut().enumerate() {
        interpreter
            .hear(begin(&format!("globalThis.mine = {n}\nreturn [await agent('x'), globalThis.mine]")));
    }
    for (n, interpreter) in all.iter_mut().enumerate().rev() {
        let end = state(interpreter.hear(value(1, json!(n))));
        assert_eq!(end, State::Returned { value: Some(json!([n, n])), replaced: Vec::new() });
    }
}

#[test]
fn deep_and_large_answers_arrive_or_are_refused_and_never_break_it() {
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let wide: Value = (0..50_000).map(|n| json!({"n": n})).collect();
    for answer in [deep, wide, json!("x".repeat(4 << 20))] {
        let mut interpreter = Interpreter::new();
        interpreter.hear(begin("const got = await agent('x')\nreturn typeof got"));
        let State::Returned { value: Some(kind), .. } = state(interpreter.hear(value(1, answer))) else {
            panic!()
        };
        assert!(kind == json!("object") || kind == json!("string"));
    }
}
