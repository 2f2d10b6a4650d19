//! Programs' runs: their phases, their agents and what they had judged.

use convoke_kernel::{CallAnswer, CallResult, KeptFrom, PassBegan, ProgramClosed, ProgramStatus, Severity};
use serde_json::{Value, json};

use super::stage::*;
use super::*;
use crate::place::FilePosition;

fn callee(call: u32, label: &str, voter: u32) -> AgentId {
    made(call, "agent", label, None, json!({})).agent(wf(1).as_str(), voter)
}

fn agent(call: u32, label: &str, phase: Option<&str>) -> convoke_kernel::MadeCall {
    made(call, "agent", label, phase, json!({"want": "agent"}))
}

fn verify(call: u32, finding: Value) -> convoke_kernel::MadeCall {
    made(call, "verify", &format!("verify: {call}"), None, json!({"want": "verify", "finding": finding}))
}

fn dead() -> CallResult {
    CallResult::bare(failed_status(), CallAnswer::null())
}

#[test]
fn a_callee_stands_in_the_phase_it_was_asked_for_in() {
    let mut stage = Stage::default();
    stage.program_starts(1, "review", &["scan", "check"], true, None);
    assert_eq!(stage.phases(), [""; 0]);
    stage.steps(
        1,
        None,
        vec![agent(1, "a", Some("check")), agent(2, "b", Some("scan")), agent(3, "c", None)],
    );
    let before = [
        "review · scan 0r 1w 0f 0d of 1",
        "review · check 0r 1w 0f 0d of 1",
        "review · agents 0r 1w 0f 0d of 1",
    ];
    assert_eq!(stage.phases(), before);
    let a = callee(1, "a", 0);
    stage.agent_by(&a, convoke_kernel::AgentStarted { spec: spec(Role::Callee, "a") });
    stage.agent_by(&a, opened("go", Vec::new()));
    assert_eq!(told(stage.fleet.agent(&a).unwrap()), "review · check | a | running | running | go");
    assert_eq!(stage.fleet.agent(&a).unwrap().run, Some(wf(1)));
    assert_eq!(stage.phases()[1], "review · check 1r 0w 0f 0d of 1");
    stage.agent_by(&a, closed(None, None));
    stage.call_ends(1, 1, ok(json!("x")));
    stage.call_ends(1, 2, dead());
    stage.call_ends(1, 3, CallResult { kept: Some(KeptFrom { pass: 1, call: 3 }), ..ok(json!("x")) });
    let after = [
        "review · scan 0r 0w 1f 0d of 1",
        "review · check 0r 0w 0f 1d of 1",
        "review · agents 0r 0w 0f 1d of 1",
    ];
    assert_eq!(stage.phases(), after);
    stage.program(1, ProgramClosed { status: ProgramStatus::Partial });
    let row = &stage.fleet.runs()[0];
    let told = (row.title.as_str(), row.is_program, row.total, row.done, row.failed, row.end.as_deref());
    assert_eq!(told, ("review", true, 3, 2, 1, Some("partial")));
}

#[test]
fn a_new_pass_begins_its_figures_anew_and_keeps_its_agents() {
    let mut stage = Stage::default();
    stage.program_starts(1, "review", &[], false, None);
    stage.steps(1, None, vec![agent(1, "a", Some("scan")), agent(2, "b", Some("scan"))]);
    let a = callee(1, "a", 0);
    stage.agent_by(&a, opened("go", Vec::new()));
    stage.agent_by(&a, closed(None, None));
    stage.call_ends(1, 1, ok(json!("x")));
    stage.program(1, ProgramClosed { status: ProgramStatus::Stopped });
    assert_eq!(stage.phases(), ["scan 0r 1w 0f 1d of 2"]);
    stage.program(1, PassBegan { pass: 2, why: "again".into(), budget_total: None });
    assert_eq!(stage.phases(), ["scan 0r 0w 0f 1d of 1"]);
    assert_eq!((stage.fleet.runs()[0].total, stage.fleet.runs()[0].end.as_deref()), (0, None));
    stage.steps(1, None, vec![agent(1, "a", Some("scan")), agent(2, "b", Some("scan"))]);
    stage.call_ends(1, 1, CallResult { kept: Some(KeptFrom { pass: 1, call: 1 }), ..ok(json!("x")) });
    assert_eq!(stage.phases(), ["scan 0r 1w 0f 1d of 2"]);
    assert_eq!((stage.fleet.runs()[0].total, stage.fleet.runs()[0].done), (2, 1));
}

#[test]
fn a_verifier_of_a_program_is_known_by_its_voter() {
    let mut stage = Stage::default();
    stage.program_starts(1, "review", &[], false, None);
    stage.steps(1, None, vec![verify(1, json!("it leaks"))]);
    let voter = verify(1, json!("")).agent(wf(1).as_str(), 1);
    stage.agent_by(&voter, opened("judge", Vec::new()));
    assert_eq!(told(stage.fleet.agent(&voter).unwrap()), "agents | verify: 1 | running | running | ");
    assert_eq!(stage.phases(), ["agents 1r 0w 0f 0d of 1"]);
}

#[test]
fn what_a_program_had_judged_is_a_finding_whatever_it_came_to() {
    let check = |finding: Value, result: Option<CallResult>, expected: &str| {
        let mut stage = Stage::default();
        stage.program_starts(1, "review", &[], false, None);
        stage.steps(1, None, vec![verify(1, finding)]);
        if let Some(result) = result {
            stage.call_ends(1, 1, result);
        }
        stage.program(1, ProgramClosed { status: ProgramStatus::Stopped });
        assert_eq!(stage.findings(), [expected]);
    };
    let told = |verdict: &str, member: &str| Some(ok(json!({"verdict": verdict, member: "why", "votes": 1})));
    let high = || json!({"claim": "it leaks", "evidence": "e", "severity": "high"});
    check(high(), told("confirmed", "evidence"), "High confirmed it leaks (why)");
    check(high(), told("refuted", "evidence"), "High refuted it leaks (why)");
    check(high(), told("uncertain", "reason"), "High uncertain it leaks (why)");
    check(high(), Some(dead()), "High unverified it leaks (api: overloaded)");
    check(high(), None, "High unverified it leaks (the run stopped before it was judged)");
    check(json!("a claim alone"), told("confirmed", "evidence"), "Info confirmed a claim alone (why)");
}

#[test]
fn a_program_s_finding_points_at_its_place_and_one_without_a_claim_is_none() {
    let check = |finding: Value, expected: &[FilePosition]| {
        let mut stage = Stage::default();
        stage.program_starts(1, "review", &[], false, None);
        stage.steps(1, None, vec![verify(1, finding)]);
        let found = stage.fleet.findings(&RowFilter::default());
        let places: Vec<FilePosition> = found.iter().flat_map(|row| row.places.clone()).collect();
        assert_eq!(places, expected);
    };
    let place = |line| FilePosition { path: "a.rs".into(), line };
    check(json!({"claim": "c", "path": "a.rs", "line": 7}), &[place(Some(7))]);
    check(json!({"title": "c", "file": "a.rs"}), &[place(None)]);
    check(
        json!({"claim": "c", "citations": [{"path": "a.rs", "first": 3, "quote": "x"}, {"odd": 1}]}),
        &[place(Some(3))],
    );
    check(json!({"path": "a.rs"}), &[]);
    check(json!({"claim": "c", "path": "a\u{1b}[2J.rs"}), &[]);
}

#[test]
fn what_a_later_run_takes_up_counts_as_it_comes_out_there() {
    let check = |background: bool, from: Option<u32>, expected: &[&str]| {
        let mut stage = Stage::default();
        stage.program_starts(1, "review", &[], background, None);
        stage.steps(1, None, vec![verify(1, json!("first"))]);
        stage.program_starts(2, "review", &[], background, from);
        stage.steps(2, None, vec![verify(1, json!({"claim": "second", "severity": "low"}))]);
        let found = stage.fleet.findings(&RowFilter::default());
        let claims: Vec<(&str, Severity)> =
            found.iter().map(|row| (row.claim.as_str(), row.severity)).collect();
        assert_eq!(claims.iter().map(|(claim, _)| *claim).collect::<Vec<_>>(), expected);
    };
    check(true, None, &["second", "first"]);
    check(true, Some(1), &["second"]);
    check(false, None, &["second"]);
}
