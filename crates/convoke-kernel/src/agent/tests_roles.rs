//! The mode of a lead and the reports of the agents below it, fed by hand: what each is told and what
//! ends it.

use serde_json::{Value, json};

use super::tests::{Bench, calls, done, reply, says, spec};
use super::*;
use crate::mode::Section;
use crate::prompts;
use crate::spec::{CHILD_TURNS, Child, FanOut, Limits, Role};
use crate::wire::{FailureKind, Reply, Retry, StopReason};

/// A lead that can fan out, in a session that starts with the mode as told.
pub(super) fn lead(mode: bool, system_role: bool, max_turns: u32) -> AgentSpec {
    let alone = spec(max_turns);
    let mut capabilities = alone.capabilities.clone();
    capabilities.system_role = system_role;
    let limits = Limits { max_turns: CHILD_TURNS, ..Limits::default() };
    let child = Child { model: alone.model.clone(), capabilities: capabilities.clone(), limits, rates: None };
    let fan_out = FanOut {
        mode,
        consent: false,
        voters: 1,
        max_subtasks: 200,
        quoted: false,
        fresh: false,
        child,
        callees: Default::default(),
    };
    AgentSpec::lead(crate::spec::LeadSettings {
        session: alone.session,
        dir: alone.dir,
        model: alone.model,
        capabilities,
        limits: alone.limits,
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: Some(fan_out),
        team: None,
        extra_system: None,
    })
}

fn child(role: Role, max_turns: u32) -> AgentSpec {
    let mut spec = lead(true, true, 30).child(role, "a label", 1).unwrap();
    spec.limits.max_turns = max_turns;
    spec
}

pub(super) fn of(spec: AgentSpec, text: &str) -> Bench {
    let mut bench = Bench { agent: Agent::new(), events: Vec::new(), at: 1_000 };
    bench.feed(Input::Start { spec: Box::new(spec), key: "k".into(), text: text.into() });
    bench
}

pub(super) fn say(bench: &mut Bench, text: &str) -> Vec<&'static str> {
    bench.feed(Input::Say { key: text.into(), text: text.into() })
}

pub(super) fn message(bench: &Bench, index: usize) -> Value {
    serde_json::from_str(bench.agent.history()[index].as_str()).unwrap()
}

pub(super) fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

pub(super) fn tool_calls(blocks: Vec<Value>) -> Box<Reply> {
    reply(blocks.into(), StopReason::ToolUse)
}

fn reports(id: &str) -> Box<Reply> {
    tool_calls(vec![report(id)])
}

fn report(id: &str) -> Value {
    let finding = json!({"claim": "c", "evidence": "e", "severity": "low"});
    call(id, "report_findings", json!({"summary": "what I found", "findings": [finding]}))
}

fn ballot(id: &str) -> Value {
    let verdict = json!({"finding": 1, "verdict": "confirmed", "evidence": "e"});
    call(id, "report_verdicts", json!({"summary": "what I saw", "verdicts": [verdict]}))
}

/// The results of the calls of the last reply, as the model reads them.
pub(super) fn results(bench: &Bench) -> Vec<String> {
    let last = message(bench, bench.agent.history().len() - 1);
    let blocks = last["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_result");
    blocks.map(|block| block["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn running(bench: &Bench) -> Vec<String> {
    let id = |effect| match effect {
        Effect::RunTool { id, .. } => id,
        other => panic!("{other:?} is no tool"),
    };
    bench.agent.pending().into_iter().map(id).collect()
}

#[test]
fn d2_6_d2_11_the_user_message_comes_first_and_the_section_behind_it_as_a_system_message() {
    let mut bench = of(lead(true, true, 30), "review");
    assert_eq!(bench.outline(), "user(text) system(text)");
    assert_eq!(message(&bench, 0)["content"][0]["text"], "review");
    assert_eq!(message(&bench, 1)["content"][0]["text"], prompts::section(Section::Entry));
    bench.replies(says("done"));
    say(&mut bench, "more");
    assert_eq!(bench.outline(), "user(text) system(text) assistant(text) user(text)");
}

#[test]
fn d2_11_a_model_without_the_role_gets_the_section_as_a_marked_reminder_at_the_end_of_the_user_message() {
    let mut bench = of(lead(true, false, 30), "review");
    bench.replies(says("done"));
    bench.feed(Input::Resume { changed: vec!["a.rs".into()] });
    bench.feed(Input::SetMode { on: false });
    say(&mut bench, "more");
    assert_eq!(bench.outline(), "user(text,text) assistant(text) user(text,text,text)");
    for (index, last, section) in [(0, 1, Section::Entry), (2, 2, Section::Exit)] {
        let text = message(&bench, index)["content"][last]["text"].as_str().unwrap().to_owned();
        assert_eq!(text, format!("<system-reminder>\n{}\n</system-reminder>", prompts::section(section)));
    }
}

#[test]
fn d2_10_the_top_level_system_and_the_tools_are_the_same_bytes_whatever_the_mode() {
    let fixed = |bench: &Bench| {
        let request = bench.agent.request().unwrap();
        (
            request.spec.system.as_str().to_owned(),
            request.spec.tools.as_str().to_owned(),
            request.spec.params.clone(),
        )
    };
    let mut bench = of(lead(true, true, 30), "one");
    let before = fixed(&bench);
    for (text, on) in [("two", false), ("three", true), ("four", false)] {
        bench.replies(says("ok"));
        assert_eq!(bench.feed(Input::SetMode { on }), ["mode_set"]);
        say(&mut bench, text);
        assert_eq!(fixed(&bench), before, "{text}");
    }
    assert_eq!(fixed(&of(lead(false, true, 30), "one")), before, "a session that starts with the mode off");
}

#[test]
fn a_section_whose_exchange_is_taken_back_is_owed_again() {
    let mut bench = of(lead(true, true, 30), "one");
    bench.fails(FailureKind::Api, Retry::Never);
    assert_eq!(bench.outline(), "");
    say(&mut bench, "again");
    assert_eq!(bench.outline(), "user(text) system(text)");
    bench.replies(says("ok"));
    bench.feed(Input::SetMode { on: false });
    say(&mut bench, "alone");
    let told = bench.agent.history()[4].clone();
    bench.fails(FailureKind::Transport, Retry::Never);
    assert_eq!(bench.outline(), "user(text) system(text) assistant(text)");
    let kinds = bench.feed(Input::Resume { changed: vec![] });
    assert_eq!(kinds, ["resumed", "exchange_opened", "model_called"]);
    assert_eq!(bench.agent.history()[4], told, "a resume offers the same bytes");
    bench.fails(FailureKind::Api, Retry::Never);
    bench.feed(Input::SetMode { on: true });
    say(&mut bench, "on again");
    assert_eq!(bench.outline(), "user(text) system(text) assistant(text) user(text)", "off was never told");
}

#[test]
fn the_mode_moves_only_with_a_reply_that_is_recorded() {
    let text = |stop| reply(json!([{"type": "text", "text": "x"}]), stop);
    let lost: [fn() -> Box<Reply>; 3] = [
        || reply(json!([]), StopReason::EndTurn),
        || reply(json!([{"type": "text", "text": "half"}]), StopReason::MaxTokens),
        || tool_calls(vec![]),
    ];
    for unrecorded in lost {
        let mut bench = of(lead(true, true, 30), "one");
        assert_eq!(
            bench.replies(unrecorded()),
            ["model_replied", "model_called"],
            "no note behind the section"
        );
        assert_eq!(bench.outline(), "user(text) system(text)");
        bench.replies(unrecorded());
        assert_eq!(bench.outline(), "", "its second loss ends the exchange");
        say(&mut bench, "two");
        assert_eq!(bench.outline(), "user(text) system(text)");
    }
    for dropped in [StopReason::Refusal, StopReason::ContextWindowExceeded] {
        let mut bench = of(lead(true, true, 30), "one");
        bench.replies(text(dropped));
        say(&mut bench, "two");
        assert_eq!(bench.outline(), "user(text) system(text)");
    }
    let mut bench = of(lead(true, true, 30), "one");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "seen");
    bench.fails(FailureKind::Api, Retry::Never);
    say(&mut bench, "two");
    let outline = "user(text) system(text) assistant(tool_use) user(tool_result) user(text)";
    assert_eq!(bench.outline(), outline, "the first reply was recorded, so the entry was told");
}

#[test]
fn a_mode_switch_while_the_agent_is_busy_waits() {
    let mut bench = of(lead(true, true, 30), "one");
    let switch = || Input::SetMode { on: false };
    assert_eq!(bench.agent.decide(switch(), 1, Pace::Go), Err(Unexpected::Busy));
    bench.replies(calls(&["t1"]));
    assert_eq!(bench.agent.decide(switch(), 1, Pace::Go), Err(Unexpected::Busy));
    bench.runs("t1", "seen");
    bench.replies(says("ok"));
    assert_eq!((bench.agent.mode(), bench.feed(switch())), (Some(true), vec!["mode_set"]));
    assert_eq!((bench.agent.mode(), bench.feed(switch())), (Some(false), vec![]));
}

#[test]
fn an_agent_from_before_there_was_a_mode_has_no_switch_and_is_told_nothing() {
    let old = Event::from(crate::event::AgentStarted { spec: spec(30) }).encode().unwrap();
    for new in ["fan_out", "rates", "label", "\"findings\"", "\"output\"", "\"hands\""] {
        assert!(!old.contains(new), "without {new} an agent is written as before");
    }
    let mut bench = Bench { agent: Agent::new(), events: Vec::new(), at: 1_000 };
    bench.agent.apply(&Event::decode(&old).unwrap(), 1).unwrap();
    assert_eq!((bench.agent.mode(), bench.feed(Input::SetMode { on: true })), (None, vec![]));
    say(&mut bench, "hello");
    assert_eq!(bench.outline(), "user(text)");
}

#[test]
fn d5_1_a_worker_starts_with_its_subtask_alone_under_a_system_prompt_of_its_own() {
    let bench = of(child(Role::Worker, 15), "<subtask>\nlook\n</subtask>");
    assert_eq!(bench.outline(), "user(text)");
    let mine = child(Role::Worker, 15).system;
    let leads = lead(true, true, 30).system;
    assert_ne!(mine, leads);
    for word in ["report_findings", "bash", "fan-out"] {
        assert!(mine.as_str().contains(word), "{word}");
    }
    assert_eq!(bench.agent.mode(), None);
}

#[test]
fn d5_5_d5_6_the_first_valid_report_ends_the_agent_and_no_call_beside_it_runs() {
    let mut bench = of(child(Role::Worker, 15), "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "seen");
    let last =
        tool_calls(vec![call("t2", "bash", json!({"command": "rm -rf ."})), report("t3"), report("t4")]);
    let kinds = bench.replies(last);
    assert!(
        !kinds.contains(&"tool_started") && kinds.ends_with(&["results_appended", "exchange_closed"]),
        "{kinds:?}"
    );
    assert_eq!(results(&bench), [prompts::REPORT_ENDS, prompts::REPORTED, prompts::REPORT_ENDS]);
    assert_eq!(*bench.outcome(), Outcome::Ok { text: "what I found".into() });
    assert_eq!((bench.agent.report().unwrap().findings.len(), bench.agent.degraded()), (1, None));
}

#[test]
fn d3_5_an_invalid_report_is_sent_back_with_the_reason_and_the_work_goes_on() {
    let mut bench = of(child(Role::Worker, 15), "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "seen");
    let bad = json!({"summary": "s", "findings": [{"claim": "c", "evidence": "e", "severity": "critical"}]});
    let kinds = bench.replies(tool_calls(vec![call("t2", "report_findings", bad)]));
    assert_eq!(kinds, ["model_replied", "tool_finished", "results_appended", "model_called"]);
    assert!(results(&bench)[0].contains("findings[0].severity is \"critical\""), "{:?}", results(&bench));
    bench.replies(reports("t3"));
    assert!(bench.agent.report().is_some() && bench.agent.degraded().is_none());
}

#[test]
fn a_report_without_a_single_command_goes_back_once_and_is_then_kept_as_degraded() {
    for twice in [false, true] {
        let mut bench = of(child(Role::Worker, 15), "look");
        let first = if twice { vec![report("t1"), report("t2")] } else { vec![report("t1")] };
        bench.replies(tool_calls(first));
        assert!(results(&bench).iter().all(|text| text == prompts::LOOK_FIRST), "{:?}", results(&bench));
        bench.replies(reports("t3"));
        assert_eq!(*bench.outcome(), Outcome::Ok { text: "what I found".into() });
        assert_eq!(bench.agent.degraded(), Some("the report came without a single command"));
    }
    let mut bench = of(child(Role::Worker, 15), "look");
    bench.replies(tool_calls(vec![call("t1", "bash", json!({"command": "ls"})), report("t2")]));
    bench.runs("t1", "seen");
    assert_eq!(results(&bench), ["seen", prompts::LOOK_FIRST], "it reported before it had read anything");
    bench.replies(reports("t3"));
    assert_eq!((bench.agent.report().is_some(), bench.agent.degraded()), (true, None));
}

#[test]
fn d5_4_an_agent_that_ends_in_prose_is_asked_once_and_then_kept_as_degraded_with_its_text() {
    for (role, tool) in [(Role::Worker, "report_findings"), (Role::Verifier, "report_verdicts")] {
        let mut bench = of(child(role, 15), "look");
        bench.replies(calls(&["t1"]));
        bench.runs("t1", "seen");
        assert_eq!(bench.replies(says("I think so")), ["model_replied", "note_appended", "model_called"]);
        assert_eq!(message(&bench, 4)["content"][0]["text"], prompts::end_with(tool));
        assert_eq!(bench.replies(says("I still think so")), ["model_replied", "exchange_closed"]);
        assert_eq!(*bench.outcome(), Outcome::Ok { text: "I still think so".into() });
        assert_eq!(bench.agent.degraded(), Some("it ended in prose instead of a report"));
        assert!(bench.agent.report().is_none() && bench.agent.ballot().is_none());
    }
    let mut task = of(child(Role::Task, 15), "look");
    task.replies(says("a summary"));
    assert_eq!(
        (task.outcome().failure(), task.agent.degraded()),
        (None, None),
        "a task has no report to give"
    );
}

#[test]
fn d5_7_after_fifteen_turns_one_hand_back_is_asked_for_and_a_report_in_it_is_kept_as_partial() {
    let mut bench = of(child(Role::Worker, CHILD_TURNS), "dig");
    for turn in 1..=15 {
        let id = format!("t{turn}");
        assert_eq!(bench.call(), (turn, 1));
        bench.replies(calls(&[&id]));
        bench.runs(&id, "deeper");
    }
    assert!(bench.agent.history().last().unwrap().as_str().contains("The turn limit is reached"));
    bench.replies(tool_calls(vec![call("u1", "bash", json!({"command": "ls"})), report("u2")]));
    assert_eq!(results(&bench), [prompts::REPORT_ENDS, prompts::REPORTED]);
    bench.failed_as(FailureKind::TurnLimit, "what I found");
    assert_eq!(bench.agent.report().unwrap().findings.len(), 1);
    assert!(!bench.agent.can_go_on() && bench.agent.summary().unwrap().status == Status::Partial);
    let mut prose = of(child(Role::Worker, 1), "dig");
    prose.replies(calls(&["t1"]));
    prose.runs("t1", "seen");
    prose.replies(says("so far"));
    prose.failed_as(FailureKind::TurnLimit, "so far");
    assert!(prose.agent.degraded().is_some() && prose.agent.report().is_none());
}

#[test]
fn a_ballot_is_held_to_the_rules_of_a_report() {
    let mut bench = of(child(Role::Verifier, 15), "verify");
    bench.replies(tool_calls(vec![ballot("t1")]));
    assert_eq!(results(&bench), [prompts::LOOK_FIRST]);
    bench.replies(calls(&["t2"]));
    bench.runs("t2", "seen");
    bench.replies(tool_calls(vec![call("t3", "report_verdicts", json!({"summary": "s", "verdicts": []}))]));
    assert!(results(&bench)[0].contains("finding 1 has no judgement"), "{:?}", results(&bench));
    bench.replies(tool_calls(vec![report("t4")]));
    assert_eq!(results(&bench), ["unknown tool: report_findings"]);
    bench.replies(tool_calls(vec![ballot("t5"), call("t6", "bash", json!({"command": "ls"}))]));
    assert_eq!(results(&bench), [prompts::JUDGED, prompts::REPORT_ENDS]);
    assert_eq!((bench.agent.ballot().unwrap().verdicts.len(), bench.agent.degraded()), (1, None));
}

#[test]
fn d5_3_a_paused_turn_is_asked_again_as_it_is_and_counts() {
    let mut bench = of(child(Role::Worker, 2), "look");
    let paused = || reply(json!([{"type": "text", "text": "…"}]), StopReason::PauseTurn);
    assert_eq!(bench.replies(paused()), ["model_replied", "model_called"]);
    assert_eq!(bench.outline(), "user(text) assistant(text)");
    assert_eq!(bench.replies(paused()), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::TurnLimit, "…");
}

#[test]
fn d5_4_a_truncated_worker_is_given_all_the_room_once_and_is_then_a_failure_and_no_result() {
    let mut bench = of(child(Role::Worker, 15), "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "seen");
    let cut = || reply(json!([{"type": "text", "text": "half a rep"}]), StopReason::MaxTokens);
    bench.replies(cut());
    assert_eq!(bench.agent.request().unwrap().max_tokens, 128_000);
    bench.replies(cut());
    bench.failed_as(FailureKind::Truncated, "half a rep");
    assert!(bench.agent.report().is_none());
}

#[test]
fn agents_start_together_while_commands_run_alone_and_in_order() {
    let task = |id| call(id, "task", json!({"prompt": "look"}));
    let flow = |id| call(id, "Workflow", json!({"subtasks": ["a"]}));
    let bash = |id| call(id, "bash", json!({"command": "ls"}));
    let mut bench = of(lead(true, true, 30), "go");
    bench.replies(tool_calls(vec![task("t1"), flow("t2"), bash("t3"), task("t4"), bash("t5"), bash("t6")]));
    assert_eq!(running(&bench), ["t1", "t2"], "agents run beside each other, and the command waits for them");
    let mut end = |id: &str| {
        bench.feed(Input::ToolDone { id: id.into(), result: done(id) });
        if bench.agent.request().is_some() { Vec::new() } else { running(&bench) }
    };
    assert_eq!(end("t2"), ["t1"]);
    assert_eq!(end("t1"), ["t3"]);
    assert_eq!(end("t3"), ["t4"], "a command is never beside an agent");
    assert_eq!(end("t4"), ["t5"]);
    assert_eq!(end("t5"), ["t6"]);
    assert!(end("t6").is_empty());
    assert_eq!(
        results(&bench),
        ["t1", "t2", "t3", "t4", "t5", "t6"],
        "answered in the order they were asked"
    );
}

#[test]
fn agents_that_were_under_way_go_on_after_a_crash_and_commands_do_not() {
    let mut bench = of(lead(true, true, 30), "go");
    let blocks = vec![
        call("t1", "task", json!({"prompt": "look"})),
        call("t2", "Workflow", json!({"subtasks": ["a"]})),
        call("t3", "bash", json!({"command": "ls"})),
    ];
    bench.replies(tool_calls(blocks));
    assert_eq!(bench.feed(Input::Resume { changed: vec![] }), ["resumed"]);
    assert_eq!(running(&bench), ["t1", "t2"]);
    for id in ["t1", "t2"] {
        bench.feed(Input::ToolDone { id: id.into(), result: done(id) });
    }
    bench.feed(Input::Resume { changed: vec![] });
    assert!(results(&bench)[2].contains("outcome is unknown"));
}
