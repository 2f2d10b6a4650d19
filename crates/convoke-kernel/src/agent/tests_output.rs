//! Callees and values of a shape that was asked for, fed by hand: what counts as a try, what ends the work,
//! and what a callee is made of.

use serde_json::{Value, json};

use super::tests::{Bench, calls, says};
use super::tests_roles::{call, lead, message, of, results, tool_calls};
use super::*;
use crate::callee::{CALLEE_TURNS, Callee};
use crate::confinement::{Isolation, Sandbox};
use crate::event::AgentStarted;
use crate::outcome::ToolResult;
use crate::output::Output;
use crate::prompts;
use crate::spec::{Callees, Child, FanOut, Role};
use crate::wire::{FailureKind, Retry};

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

fn settings() -> Callee {
    Callee {
        label: "a label".into(),
        instructions: None,
        child: None,
        memory: true,
        schema: None,
        tools: None,
        isolation: Isolation::None,
        read_only: false,
    }
}

fn made(settings: Callee) -> AgentSpec {
    lead(true, true, 30).callee(settings).unwrap()
}

/// A callee that is to give a value, at its first request.
fn returning(max_turns: u32) -> Bench {
    let mut spec = made(Callee { schema: Some(Segment::encode(&schema())), ..settings() });
    spec.limits.max_turns = max_turns;
    of(spec, "count")
}

fn gives(id: &str, input: Value) -> Value {
    call(id, "StructuredOutput", input)
}

fn misfits(bench: &mut Bench, times: u32) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for _ in 0..times {
        let id = format!("m{}", bench.events.len());
        kinds = bench.replies(tool_calls(vec![gives(&id, json!({"n": "three"}))]));
    }
    kinds
}

fn failed_with(bench: &Bench, expected: FailureKind, part: &str) {
    match bench.outcome() {
        Outcome::Failed { kind, message, .. } => {
            assert_eq!(*kind, expected, "{message}");
            assert!(message.contains(part), "{message:?} does not contain {part:?}");
        }
        Outcome::Ok { text } => panic!("it did not fail but said {text}"),
    }
}

#[test]
fn the_first_value_that_fits_is_the_result_and_no_call_beside_it_runs() {
    let mut bench = returning(50);
    let bash = call("t1", "bash", json!({"command": "rm -rf ."}));
    let blocks = vec![
        bash,
        gives("t2", json!({})),
        gives("t3", json!({"n": 3, "a": [1, null]})),
        gives("t4", json!({"n": 4})),
    ];
    let kinds = bench.replies(tool_calls(blocks));
    assert!(
        !kinds.contains(&"tool_started") && kinds.ends_with(&["results_appended", "exchange_closed"]),
        "{kinds:?}"
    );
    let ends = prompts::REPORT_ENDS;
    assert_eq!(results(&bench), [ends, ends, prompts::RETURNED, ends]);
    assert_eq!(*bench.outcome(), Outcome::Ok { text: r#"{"n":3,"a":[1,null]}"#.into() });
    assert_eq!(bench.agent.output(), Some(&json!({"n": 3, "a": [1, null]})));
    assert_eq!(bench.agent.degraded(), None, "a callee need not have looked at anything");
    assert!(bench.agent.report().is_none() && bench.agent.is_done() && !bench.agent.can_go_on());
}

#[test]
fn a_value_that_does_not_fit_goes_back_with_what_is_wrong_and_the_next_one_counts() {
    let mut bench = returning(50);
    assert_eq!(
        misfits(&mut bench, 1),
        ["model_replied", "tool_finished", "results_appended", "model_called"]
    );
    assert!(
        results(&bench)[0].contains("- /n: \"three\" is not of type \"integer\""),
        "{:?}",
        results(&bench)
    );
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "3");
    bench.replies(tool_calls(vec![gives("t2", json!({"n": 3}))]));
    assert_eq!((bench.outcome().failure(), bench.agent.output()), (None, Some(&json!({"n": 3}))));
}

#[test]
fn after_five_values_that_do_not_fit_the_exchange_fails_and_a_resume_tries_again() {
    let mut bench = returning(50);
    misfits(&mut bench, 3);
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "work in between is no new start");
    let broken = gives("t2", json!({"_invalid_json": "{\"n\": "}));
    bench.replies(tool_calls(vec![broken]));
    assert_eq!(
        misfits(&mut bench, 1),
        ["model_replied", "tool_finished", "results_appended", "exchange_closed"]
    );
    failed_with(&bench, FailureKind::InvalidOutput, "did not fit its schema after 5 tries: /n: \"three\"");
    assert!(bench.agent.output().is_none() && bench.agent.can_go_on());
    assert_eq!(bench.feed(Input::Resume { changed: vec![] })[..2], ["resumed", "exchange_reopened"]);
    misfits(&mut bench, 4);
    bench.replies(tool_calls(vec![gives("t9", json!({"n": 1}))]));
    assert_eq!(*bench.outcome(), Outcome::Ok { text: r#"{"n":1}"#.into() });
}

#[test]
fn failures_of_the_model_are_no_tries() {
    let mut bench = returning(50);
    misfits(&mut bench, 4);
    for kind in [FailureKind::RateLimited, FailureKind::Api, FailureKind::Transport, FailureKind::RateLimited]
    {
        assert_eq!(bench.fails(kind, Retry::Soon), ["model_failed"]);
        let call = bench.agent.room_ask().unwrap().call;
        bench.feed_bare(Input::Room { call, answer: RoomAnswer::Go { max_tokens: 8_000 } }, Pace::Go);
    }
    bench.replies(tool_calls(vec![gives("t9", json!({"n": 1}))]));
    assert_eq!(bench.outcome().failure(), None);
    let mut bench = returning(50);
    misfits(&mut bench, 4);
    bench.fails(FailureKind::RateLimited, Retry::Never);
    failed_with(&bench, FailureKind::RateLimited, "it broke");
}

#[test]
fn a_misfit_followed_by_prose_is_told_as_a_misfit() {
    let mut bench = returning(50);
    misfits(&mut bench, 1);
    for _ in 0..3 {
        bench.replies(says("It is three."));
    }
    bench.failed_as(FailureKind::InvalidOutput, "It is three.");
    failed_with(&bench, FailureKind::InvalidOutput, "the result did not fit its schema (");
    failed_with(&bench, FailureKind::InvalidOutput, "went on in prose");
}

#[test]
fn prose_instead_of_the_call_is_nudged_twice_and_then_a_failure_with_its_text() {
    let mut bench = returning(50);
    for at in [2, 4] {
        assert_eq!(bench.replies(says("three")), ["model_replied", "note_appended", "model_called"]);
        assert_eq!(message(&bench, at)["content"][0]["text"], prompts::end_with("StructuredOutput"));
    }
    assert_eq!(bench.replies(says("still three")), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::InvalidOutput, "still three");
    failed_with(&bench, FailureKind::InvalidOutput, "ended without calling StructuredOutput");
    assert_eq!(bench.agent.degraded(), None);
    bench.feed(Input::Resume { changed: vec![] });
    assert_eq!(message(&bench, 6)["content"][0]["text"], prompts::end_with("StructuredOutput"));
    bench.replies(tool_calls(vec![gives("t1", json!({"n": 3}))]));
    assert_eq!(bench.agent.output(), Some(&json!({"n": 3})));
}

#[test]
fn a_hand_back_asks_for_the_call_and_a_value_in_it_is_filed_and_partial() {
    let at_limit = || {
        let mut bench = returning(1);
        bench.replies(calls(&["t1"]));
        bench.runs("t1", "seen");
        let last = message(&bench, 2)["content"][1]["text"].as_str().unwrap().to_owned();
        assert!(last.contains("in one call of StructuredOutput"), "{last}");
        bench
    };
    let mut bench = at_limit();
    bench.replies(tool_calls(vec![gives("t2", json!({"n": 2}))]));
    bench.failed_as(FailureKind::TurnLimit, r#"{"n":2}"#);
    assert_eq!(
        (bench.agent.output(), bench.agent.summary().unwrap().status),
        (Some(&json!({"n": 2})), Status::Partial)
    );
    let mut bench = at_limit();
    bench.replies(says("about two"));
    bench.failed_as(FailureKind::TurnLimit, "about two");
    let mut bench = at_limit();
    misfits(&mut bench, 1);
    bench.failed_as(FailureKind::TurnLimit, "");
    assert_eq!(bench.agent.output(), None);
}

#[test]
fn the_fifth_misfit_at_the_turn_limit_ends_the_work_without_a_hand_back() {
    let mut bench = returning(5);
    misfits(&mut bench, 5);
    failed_with(&bench, FailureKind::InvalidOutput, "after 5 tries");
    assert_eq!(message(&bench, 10)["content"].as_array().unwrap().len(), 1);
}

#[test]
fn a_short_budget_asks_for_the_call_too() {
    let mut bench = returning(50);
    bench.replies(calls(&["t1"]));
    bench.feed_bare(Input::ToolDone { id: "t1".into(), result: ToolResult::done("seen") }, Pace::Go);
    let answer = RoomAnswer::HandBack { max_tokens: 4_096, why: "$0.01 left".into() };
    bench.feed_bare(Input::Room { call: 2, answer }, Pace::Go);
    assert!(bench.agent.history().last().unwrap().as_str().contains("in one call of StructuredOutput"));
    bench.replies(tool_calls(vec![gives("t2", json!({"n": 2}))]));
    bench.failed_as(FailureKind::Budget, r#"{"n":2}"#);
}

#[test]
fn a_value_that_was_recorded_is_not_judged_again_when_its_journal_is_loaded() {
    let mut bench = returning(50);
    misfits(&mut bench, 2);
    bench.replies(tool_calls(vec![gives("t9", json!({"n": 3}))]));
    let Event::AgentStarted(AgentStarted { spec }) = bench.events[0].clone() else { panic!("it starts") };
    let stricter = Output { schema: Segment::encode(&json!({"type": "object", "maxProperties": 0})) };
    let mut again = Agent::new();
    again.apply(&AgentStarted { spec: AgentSpec { output: Some(stricter), ..spec } }.into(), 1).unwrap();
    bench.events[1..].iter().for_each(|event| again.apply(event, 1).unwrap());
    assert_eq!((again.output(), again.outcome()), (Some(&json!({"n": 3})), bench.agent.outcome()));
}

#[test]
fn a_callee_without_a_schema_returns_its_last_text_and_knows_no_other_end() {
    let mut bench = of(made(settings()), "count");
    bench.replies(tool_calls(vec![gives("t1", json!({"n": 3}))]));
    assert_eq!(results(&bench), ["unknown tool: StructuredOutput"]);
    bench.replies(says("three"));
    assert_eq!(*bench.outcome(), Outcome::Ok { text: "three".into() });
    assert_eq!((bench.agent.output(), bench.agent.degraded()), (None, None));
}

#[test]
fn only_a_lead_that_can_fan_out_has_callees_and_they_have_none() {
    let callee = made(settings());
    assert_eq!((callee.role, callee.limits.max_turns, callee.role.depth()), (Role::Callee, CALLEE_TURNS, 1));
    assert_eq!((callee.label.as_str(), callee.fan_out.is_none()), ("a label", true));
    assert_eq!(callee.callee(settings()), None);
    assert_eq!(super::tests::spec(30).callee(settings()), None);
    assert_eq!(lead(true, true, 30).child(Role::Callee, "x", 0), None, "it takes more than a role");
}

#[test]
fn a_callee_is_made_of_what_the_call_asked_for() {
    let session = lead(true, true, 30).fan_out.unwrap().child;
    let child = Child { model: "claude-haiku-4-5".into(), ..session.clone() };
    let callee =
        made(Callee { child: Some(child), instructions: Some("You know the law.".into()), ..settings() });
    assert_eq!((callee.model.as_str(), callee.limits.max_turns), ("claude-haiku-4-5", CALLEE_TURNS));
    let system: Value = serde_json::from_str(callee.system.as_str()).unwrap();
    assert_eq!(system[1]["text"], "You know the law.");
    assert!(system[0].get("cache_control").is_none() && system[1].get("cache_control").is_some());
    assert_eq!(made(settings()).model, session.model);
}

#[test]
fn a_callee_has_the_turns_and_the_project_memory_of_its_session() {
    let mut lead = lead(true, true, 30);
    let usual = lead.callee(settings()).unwrap();
    assert_eq!(usual.limits.max_turns, CALLEE_TURNS);
    let callees = Callees { turns: Some(7), project: Some("Tabs, not spaces.".into()), ..Callees::default() };
    lead.fan_out.as_mut().unwrap().callees = callees;
    let texts = |callee: &AgentSpec| {
        let system: Value = serde_json::from_str(callee.system.as_str()).unwrap();
        system.as_array().unwrap().iter().skip(1).map(|block| block["text"].clone()).collect::<Vec<_>>()
    };
    let kind = Callee { instructions: Some("You know the law.".into()), ..settings() };
    let told = lead.callee(kind.clone()).unwrap();
    assert_eq!(
        (texts(&told), told.limits.max_turns),
        (vec![json!("Tabs, not spaces."), json!("You know the law.")], 7)
    );
    let untold = lead.callee(Callee { memory: false, ..kind }).unwrap();
    assert_eq!(texts(&untold), [json!("You know the law.")]);
    // A journal from before knows none of it, and a usual session writes none of it down.
    let bare = serde_json::to_value(lead_spec_fan_out()).unwrap();
    assert!(bare.get("callees").is_none(), "{bare}");
    assert_eq!(serde_json::from_value::<FanOut>(bare).unwrap().callees, Callees::default());
}

fn lead_spec_fan_out() -> FanOut {
    *lead(true, true, 30).fan_out.unwrap()
}

#[test]
fn a_callee_writes_where_it_stays_unless_it_is_kept_from_it() {
    let check = |isolation, read_only, expected| {
        let mut lead = lead(true, true, 30);
        lead.confinement.sandbox = Sandbox::Workspace;
        let callee = lead.callee(Callee { isolation, read_only, ..settings() }).unwrap();
        assert_eq!(callee.confinement.sandbox, expected, "{isolation:?} {read_only}");
    };
    check(Isolation::None, false, Sandbox::Workspace);
    check(Isolation::Worktree, false, Sandbox::Workspace);
    check(Isolation::Copy, false, Sandbox::ReadOnly);
    for isolation in [Isolation::None, Isolation::Copy, Isolation::Worktree] {
        check(isolation, true, Sandbox::ReadOnly);
    }
}

#[test]
fn only_the_tools_that_are_left_are_declared_and_the_call_for_the_value_always_is() {
    let check = |tools: Option<&[&str]>, with_schema: bool, expected: &[&str]| {
        let tools = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        let schema = with_schema.then(|| Segment::encode(&schema()));
        let spec = made(Callee { tools, schema, ..settings() });
        let declared: Value = serde_json::from_str(spec.tools.as_str()).unwrap();
        let names: Vec<&str> =
            declared.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
        declared
    };
    let edit = "str_replace_based_edit_tool";
    check(None, false, &["bash", edit, "glob", "grep"]);
    check(None, true, &["bash", edit, "glob", "grep", "StructuredOutput"]);
    check(Some(&["Bash", "WebSearch"]), true, &["bash", "StructuredOutput"]);
    check(Some(&[]), true, &["StructuredOutput"]);
    check(Some(&[]), false, &[]);
    let commands = |declared: &Value| declared[0]["input_schema"]["properties"]["command"]["enum"].clone();
    assert_eq!(commands(&check(Some(&["Read"]), false, &[edit])), json!(["view"]));
    assert_eq!(
        commands(&check(Some(&["Write"]), false, &[edit])),
        json!(["create", "str_replace", "insert"])
    );
    assert_eq!(check(Some(&["Read", "Edit"]), false, &[edit])[0]["type"], "text_editor_20250728");
}

#[test]
fn a_narrowed_callee_is_refused_what_it_was_not_given_and_goes_on() {
    let mut bench = of(made(Callee { tools: Some(vec!["Read".into()]), ..settings() }), "look");
    let write = json!({"command": "create", "path": "a", "file_text": "x"});
    let blocks =
        vec![call("t1", "bash", json!({"command": "ls"})), call("t2", "str_replace_based_edit_tool", write)];
    let kinds = bench.replies(tool_calls(blocks));
    assert_eq!(
        kinds,
        ["model_replied", "tool_finished", "tool_finished", "results_appended", "model_called"]
    );
    assert!(
        results(&bench)
            .iter()
            .all(|text| text.starts_with("Not run: you were given view and no other tools"))
    );
    bench.replies(says("nothing"));
    assert_eq!(bench.outcome().failure(), None);
}
