//! What becomes of values that JSON cannot hold: the run goes on, a placeholder stands in their place, and
//! the host is told where.

use convoke_script::{FaultKind, State, Want};
use serde_json::{Value, json};

use crate::drive::{End, Order, echo, program, run, run_echo, start};

fn returned(body: &str) -> (Value, Vec<String>) {
    match run_echo(body).end {
        End::State(State::Returned { value, replaced }) => (value.unwrap_or(Value::Null), replaced),
        other => panic!("{body}: {other:?}"),
    }
}

fn fault(body: &str) -> FaultKind {
    match run_echo(body).end {
        End::State(State::Failed { fault }) => fault.kind,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn plain_values_cross_unchanged_and_nothing_is_replaced() {
    for value in [
        json!(null),
        json!(true),
        json!("x"),
        json!(1.5),
        json!([[], {}]),
        json!({"a": {"b": [1, "\u{1f600}", ""]}, "": 0}),
    ] {
        assert_eq!(returned(&format!("return {value}")), (value, Vec::new()));
    }
    assert_eq!(returned("return 9007199254740991").0, json!(9_007_199_254_740_991_i64));
    assert_eq!(returned("return -5").0, json!(-5));
}

#[test]
fn what_json_cannot_hold_is_replaced_and_its_place_is_told() {
    for (inner, path) in [
        ("f: () => 1", "f"),
        ("f: Symbol('s')", "f"),
        ("f: 10n", "f"),
        ("f: new Map([[1, 2]])", "f"),
        ("f: new Set([1])", "f"),
        ("f: NaN", "f"),
        ("f: -Infinity", "f"),
    ] {
        let (value, replaced) = returned(&format!("return {{ ok: 1, {inner} }}"));
        assert_eq!(value["ok"], json!(1), "{inner}");
        assert_eq!(replaced.len(), 1, "{inner}: {replaced:?}");
        assert!(replaced[0].contains(path), "{inner}: {replaced:?}");
    }
    let (value, replaced) = returned("return { list: [1, { deep: () => 1 }] }");
    assert_eq!(value["list"][0], json!(1));
    assert!(
        replaced.len() == 1 && replaced[0].contains("list") && replaced[0].contains("deep"),
        "{replaced:?}"
    );
}

#[test]
fn a_cycle_is_cut_where_it_closes() {
    let (value, replaced) = returned("const a = { n: 1 }\na.self = a\na.list = [a]\nreturn a");
    assert_eq!(value["n"], json!(1));
    assert_eq!(replaced.len(), 2, "{replaced:?}");
    // One part that stands in two places is no cycle.
    let (value, replaced) = returned("const part = { x: 1 }\nreturn [part, part]");
    assert_eq!((value, replaced), (json!([{"x": 1}, {"x": 1}]), Vec::new()));
}

#[test]
fn undefined_is_left_out_of_objects_as_json_does() {
    assert_eq!(returned("return { a: undefined, b: 1 }").0, json!({"b": 1}));
    assert_eq!(returned("return [undefined, 1]").0[1], json!(1));
}

#[test]
fn to_json_is_honoured_as_json_does() {
    assert_eq!(
        returned(
            "return { at: new Date(0), u: new URL('https://example.org/x'), own: { toJSON: () => 'mine' } }"
        )
        .0,
        json!({
            "at": "1970-01-01T00:00:00.000Z", "u": "https://example.org/x", "own": "mine"
        })
    );
}

#[test]
fn a_result_that_is_too_deep_is_cut_and_one_that_is_too_large_is_a_fault() {
    let (_, replaced) = returned("let d = 1\nfor (let i = 0; i < 5000; i++) d = [d]\nreturn d");
    assert_eq!(replaced.len(), 1, "what is too deep is replaced too: {replaced:?}");
    assert_eq!(fault("return 'x'.repeat(17 * 1024 * 1024)"), FaultKind::Value);
    let (value, _) = returned("let d = 1\nfor (let i = 0; i < 100; i++) d = [d]\nreturn d");
    assert!(value.is_array(), "a hundred levels are fine");
}

#[test]
fn options_are_copied_when_the_call_is_made() {
    let ran = run_echo(
        "const schema = { type: 'object', properties: { a: { type: 'string' } } }
         const opts = { schema, label: 'before' }
         const p = agent('x', opts)
         schema.properties.a.type = 'number'
         opts.label = 'after'
         await p",
    );
    let Want::Agent(agent) = &ran.calls[0].want else { panic!() };
    assert_eq!(agent.label.as_deref(), Some("before"));
    assert_eq!(agent.schema.as_ref().unwrap()["properties"]["a"]["type"], json!("string"));
}

#[test]
fn a_prompt_with_its_options_has_a_size() {
    let mut start = start(&program("return await agent('x'.repeat(2000)).catch(e => 'refused')"));
    start.limits.value_bytes = 1_000;
    let ran = run(start, Order::First, 5, echo);
    assert_eq!(ran.calls, [], "it never crosses");
    assert!(
        matches!(&ran.end, End::State(State::Returned { .. }))
            || matches!(&ran.end, End::State(State::Failed { fault }) if fault.kind == FaultKind::Value),
        "{:?}",
        ran.end
    );
}

#[test]
fn lone_surrogates_cross_as_something_that_can_be_written() {
    let ran = run_echo("return [await agent('a\\ud800b'), 'x\\udfff'.length]");
    let Want::Agent(agent) = &ran.calls[0].want else { panic!() };
    assert!(agent.prompt.starts_with('a') && agent.prompt.ends_with('b'), "{:?}", agent.prompt);
    assert_eq!(ran.value()[1], json!(2));
}
