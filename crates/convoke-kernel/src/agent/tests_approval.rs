//! Calls that a person is asked about, and what runs beside what.

use serde_json::json;

use super::tests::{Bench, done};
use super::tests_roles::{lead, of, tool_calls};
use super::*;
use crate::approval::{Approvals, AskWhen, Decision, Rule};
use crate::outcome::{Ran, ToolResult};

fn asking(ask: AskWhen, rules: &[(&str, Decision)]) -> Bench {
    let mut spec = lead(true, false, 10);
    let rule = |&(command, decision): &(&str, Decision)| Rule {
        tool: None,
        command: Some(command.to_owned()),
        path: None,
        decision,
    };
    spec.approvals = Approvals { ask, rules: rules.iter().map(rule).collect(), park: false };
    of(spec, "go")
}

fn bash(id: &str, command: &str) -> serde_json::Value {
    json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": command}})
}

fn view(id: &str) -> serde_json::Value {
    let input = json!({"command": "view", "path": "a"});
    json!({"type": "tool_use", "id": id, "name": "str_replace_based_edit_tool", "input": input})
}

fn create(id: &str) -> serde_json::Value {
    let input = json!({"command": "create", "path": "a", "file_text": "x"});
    json!({"type": "tool_use", "id": id, "name": "str_replace_based_edit_tool", "input": input})
}

fn replies(bench: &mut Bench, calls: Vec<serde_json::Value>) -> Vec<&'static str> {
    bench.replies(tool_calls(calls))
}

fn answer(id: &str, allow: bool) -> Input {
    Input::Answered { id: id.into(), allow, by: "a person at the terminal".into() }
}

fn last_result(bench: &Bench) -> ToolResult {
    let finished = bench.events.iter().rev().find_map(|event| match event {
        Event::ToolFinished(e) => Some(e.result.clone()),
        _ => None,
    });
    finished.unwrap()
}

#[test]
fn nothing_is_run_before_the_person_has_answered_and_a_yes_runs_it() {
    let mut bench = asking(AskWhen::WhenNeeded, &[("rm", Decision::Ask)]);
    let events = replies(&mut bench, vec![bash("t1", "rm a"), bash("t2", "ls")]);
    assert_eq!(events, ["model_replied", "approval_asked"]);
    let pending = bench.agent.pending();
    assert!(matches!(&pending[..], [Effect::AskPerson { what, .. }] if what == "run: rm a"), "{pending:?}");
    assert_eq!(bench.feed(answer("t1", true)), ["approval_given", "tool_started"]);
    let after = bench.feed(Input::ToolDone { id: "t1".into(), result: done("gone") });
    assert_eq!(after, ["tool_finished", "tool_started"], "the command behind it waited for its turn");
}

#[test]
fn a_no_is_told_to_the_model_and_the_rest_goes_on() {
    let mut bench = asking(AskWhen::WhenNeeded, &[("rm", Decision::Ask)]);
    replies(&mut bench, vec![bash("t1", "rm a"), bash("t2", "ls")]);
    assert_eq!(bench.feed(answer("t1", false)), ["approval_given", "tool_finished", "tool_started"]);
    let result = last_result(&bench);
    assert!(result.ran == Ran::Refused && result.text.contains("a person at the terminal"), "{result:?}");
}

#[test]
fn an_answer_to_something_nobody_asked_is_stale() {
    let mut bench = asking(AskWhen::Always, &[]);
    replies(&mut bench, vec![bash("t1", "ls")]);
    for id in ["t2", ""] {
        let stale = bench.agent.decide(answer(id, true), 0, Pace::Go);
        assert_eq!(stale, Err(Unexpected::Stale));
    }
    bench.feed(answer("t1", true));
    assert_eq!(
        bench.agent.decide(answer("t1", true), 0, Pace::Go),
        Err(Unexpected::Stale),
        "it is asked once"
    );
}

#[test]
fn a_question_survives_the_process_and_is_asked_again() {
    let mut bench = asking(AskWhen::Always, &[]);
    replies(&mut bench, vec![bash("t1", "ls")]);
    bench.feed(Input::Resume { changed: Vec::new() });
    assert!(matches!(&bench.agent.pending()[..], [Effect::AskPerson { id, .. }] if id == "t1"));
    bench.feed(answer("t1", true));
    assert!(matches!(&bench.agent.pending()[..], [Effect::RunTool { .. }]));
}

#[test]
fn with_nobody_to_ask_the_call_is_refused_with_the_reason() {
    let mut bench = asking(AskWhen::Never, &[("rm", Decision::Ask), ("dd", Decision::Deny)]);
    replies(&mut bench, vec![bash("t1", "rm a")]);
    assert!(last_result(&bench).text.contains("nobody is there to be asked"), "{:?}", last_result(&bench));
    replies(&mut bench, vec![bash("t2", "dd if=x")]);
    assert!(last_result(&bench).text.contains("a rule of the person's forbids it (command = \"dd\")"));
}

#[test]
fn children_have_the_rules_of_their_lead() {
    let bench = asking(AskWhen::Always, &[("rm", Decision::Deny)]);
    let lead = bench.agent.spec().unwrap();
    let worker = lead.child(crate::spec::Role::Worker, "w", 0).unwrap();
    assert_eq!(worker.approvals, lead.approvals);
}

#[test]
fn reading_tools_run_beside_each_other_and_writing_ones_alone() {
    let mut bench = asking(AskWhen::Never, &[]);
    let calls = vec![view("t1"), view("t2"), create("t3"), view("t4")];
    let events = replies(&mut bench, calls);
    assert_eq!(events, ["model_replied", "tool_started", "tool_started"]);
    let seen = || done("seen");
    assert_eq!(bench.feed(Input::ToolDone { id: "t2".into(), result: seen() }), ["tool_finished"]);
    let after = bench.feed(Input::ToolDone { id: "t1".into(), result: seen() });
    assert_eq!(after, ["tool_finished", "tool_started"], "the write waited for both");
    let after = bench.feed(Input::ToolDone { id: "t3".into(), result: seen() });
    assert_eq!(after, ["tool_finished", "tool_started"], "and the reading behind it for the write");
}

#[test]
fn a_reading_tool_that_was_cut_off_is_repeated_and_a_writing_one_is_not() {
    let mut bench = asking(AskWhen::Never, &[]);
    replies(&mut bench, vec![view("t1")]);
    bench.feed(Input::Resume { changed: Vec::new() });
    assert!(matches!(&bench.agent.pending()[..], [Effect::RunTool { id, .. }] if id == "t1"));
    let mut bench = asking(AskWhen::Never, &[]);
    replies(&mut bench, vec![create("t1")]);
    bench.feed(Input::Resume { changed: Vec::new() });
    assert_eq!(last_result(&bench).ran, Ran::Interrupted);
}
