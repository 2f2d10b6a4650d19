//! Flat runs and what they found.

use convoke_kernel::{
    Ballot, Checked, CitationsChecked, FailureKind, ItemJudged, Judgement, Reused, RunClosed, Severity,
    Verdict, VerifierEnded, VerifierStarted, Vote, VoterResult, WorkerStarted,
};

use super::stage::*;
use super::*;
use crate::place::FilePosition;

fn voted(voter: u32, agent: u32, verdict: Vote) -> VerifierEnded {
    let verdicts = vec![Judgement { finding: 1, verdict, evidence: "I looked".into() }];
    let ballot = Some(Ballot { summary: "s".into(), verdicts });
    VerifierEnded {
        item: 1,
        voter,
        result: VoterResult { ballot, agent: Some(id(agent)), ..VoterResult::default() },
    }
}

#[test]
fn a_fan_out_is_counted_before_anybody_has_begun_and_until_all_is_judged() {
    let mut stage = Stage::default();
    stage.fan_out(1, &["one", "two", "three"], 1);
    assert_eq!(stage.fleet.lead(), Some(&id(0)));
    assert_eq!(stage.phases(), ["working 0r 3w 0f 0d of 3"]);
    stage.run(1, WorkerStarted { item: 1, agent: id(1) });
    assert_eq!(stage.told(1), "working | one | waiting | waiting | ");
    assert_eq!(stage.phases(), ["working 0r 3w 0f 0d of 3"]);
    stage.starts(1, Role::Worker, "one");
    stage.opens(1, "one");
    assert_eq!(stage.phases(), ["working 1r 2w 0f 0d of 3"]);
    stage.ends(1, None, Some(1));
    stage.run(1, item(1, Some(1), vec![finding("it leaks", Severity::High)]));
    stage.run(1, CitationsChecked { item: 1, checks: vec![vec![Checked::Holds]] });
    stage.run(1, VerifierStarted { item: 1, voter: 1, agent: id(11) });
    stage.starts(11, Role::Verifier, "verify: one");
    assert_eq!(stage.row(11).run, Some(wf(1)));
    assert_eq!(stage.phases(), ["working 0r 2w 0f 1d of 3", "verifying 0r 1w 0f 0d of 1"]);
    stage.run(1, voted(1, 11, Vote::Confirmed));
    stage.run(1, ItemJudged { item: 1, verdicts: vec![Verdict::Confirmed { evidence: "I looked".into() }] });
    // One comes from before and one never began.
    stage.run(1, item(2, None, Vec::new()));
    stage.run(1, ItemJudged { item: 2, verdicts: Vec::new() });
    stage.run(1, item_failed(3));
    stage.run(1, ItemJudged { item: 3, verdicts: Vec::new() });
    assert_eq!(stage.phases(), ["working 0r 0w 1f 2d of 3", "verifying 0r 0w 0f 1d of 1"]);
    assert_eq!(stage.fleet.runs()[0].end, None);
    stage.run(1, RunClosed {});
    let row = &stage.fleet.runs()[0];
    let told = (row.title.as_str(), row.is_program, row.total, row.done, row.failed, row.end.as_deref());
    assert_eq!(told, ("3 subtasks", false, 3, 2, 1, Some("partial")));
    assert!(row.ended_at > Some(row.started_at));
}

#[test]
fn a_worker_that_was_cut_off_is_what_its_run_says_and_one_that_goes_on_is_at_work() {
    let mut stage = Stage::default();
    stage.fan_out(1, &["one"], 0);
    stage.run(1, WorkerStarted { item: 1, agent: id(1) });
    stage.opens(1, "one");
    stage.run(1, item_failed(1));
    assert_eq!(stage.row(1).state, AgentState::Failed);
    stage.asks(1);
    assert_eq!(stage.row(1).state, AgentState::Running);
    stage.ends(1, Some(FailureKind::Api), None);
    assert_eq!(stage.row(1).state, AgentState::Failed);
}

#[test]
fn a_worker_heard_of_before_its_run_finds_its_run() {
    let mut stage = Stage::default();
    stage.starts(1, Role::Worker, "one");
    stage.opens(1, "one");
    stage.fan_out(1, &["one"], 0);
    stage.run(1, WorkerStarted { item: 1, agent: id(1) });
    assert_eq!(stage.row(1).run, Some(wf(1)));
    assert_eq!(stage.phases(), ["working 1r 0w 0f 0d of 1"]);
}

#[test]
fn a_finding_has_its_evidence_its_places_and_each_verdict() {
    let check = |verdict: Verdict, word: VerdictWord, reason: &str| {
        let mut stage = Stage::default();
        stage.fan_out(1, &["one"], 1);
        stage.run(1, WorkerStarted { item: 1, agent: id(1) });
        stage.run(1, item(1, Some(1), vec![finding("it\u{1b}[2J leaks", Severity::High)]));
        assert_eq!(stage.findings(), ["High unverified it␛[2J leaks (not judged yet)"]);
        stage.run(1, CitationsChecked { item: 1, checks: vec![vec![Checked::Fails("no such line".into())]] });
        stage.run(1, VerifierStarted { item: 1, voter: 1, agent: id(11) });
        stage.run(1, voted(1, 11, Vote::Undecided));
        let so_far = "not judged yet; citation 1 fails: no such line; verifier 1 cannot say: I looked";
        assert_eq!(stage.findings(), [format!("High unverified it␛[2J leaks ({so_far})")]);
        stage.run(1, ItemJudged { item: 1, verdicts: vec![verdict] });
        let found = stage.fleet.findings(&RowFilter::default());
        assert_eq!((found[0].verdict, found[0].reason.as_str()), (word, reason));
        assert_eq!(
            (found[0].label.as_str(), found[0].agent.as_ref(), &found[0].run),
            ("one", Some(&id(1)), &wf(1))
        );
        assert_eq!(found[0].evidence, "seen\nsrc/a.rs:3-4\n> let x");
        assert_eq!(found[0].places, [FilePosition { path: "src/a.rs".into(), line: Some(3) }]);
    };
    let why = || "because\nof it".to_owned();
    check(Verdict::Confirmed { evidence: why() }, VerdictWord::Confirmed, &why());
    check(Verdict::Refuted { evidence: why() }, VerdictWord::Refuted, &why());
    check(Verdict::Uncertain { reason: why() }, VerdictWord::Uncertain, &why());
    check(Verdict::Unverified { reason: why() }, VerdictWord::Unverified, &why());
}

#[test]
fn the_most_serious_finding_comes_first_and_what_was_done_again_counts_as_it_came_out_then() {
    let mut stage = Stage::default();
    stage.fan_out(1, &["one", "two"], 0);
    stage.run(1, item(1, None, vec![finding("low", Severity::Low), finding("high", Severity::High)]));
    stage.run(1, item(2, None, vec![finding("stays", Severity::Medium)]));
    let claims = |stage: &Stage| -> Vec<String> {
        stage.fleet.findings(&RowFilter::default()).iter().map(|row| row.claim.clone()).collect()
    };
    assert_eq!(claims(&stage), ["high", "stays", "low"]);
    stage.fan_out(2, &["one"], 0);
    assert_eq!(claims(&stage), ["high", "stays", "low"]);
    stage.run(2, item(1, None, vec![finding("new", Severity::Info)]));
    assert_eq!(claims(&stage), ["stays", "new"]);
}

#[test]
fn findings_and_agents_pass_a_filter_by_text_and_by_state() {
    let mut stage = Stage::default();
    stage.fan_out(1, &["one"], 0);
    let found = ["Alpha", "beta", "gamma", "delta"].map(|claim| finding(claim, Severity::Low));
    stage.run(1, item(1, None, found.to_vec()));
    stage.run(1, CitationsChecked { item: 1, checks: vec![vec![Checked::Holds]; 4] });
    let why = String::new;
    let verdicts = vec![
        Verdict::Confirmed { evidence: why() },
        Verdict::Refuted { evidence: why() },
        Verdict::Uncertain { reason: why() },
        Verdict::Unverified { reason: why() },
    ];
    stage.run(1, ItemJudged { item: 1, verdicts });
    let check = |text: &str, state: Option<AgentState>, expected: &[&str]| {
        let found = stage.fleet.findings(&RowFilter { text: text.into(), state });
        let claims: Vec<&str> = found.iter().map(|row| row.claim.as_str()).collect();
        assert_eq!(claims, expected, "{text} {state:?}");
    };
    check("ALPHA", None, &["Alpha"]);
    check("a.rs", None, &["Alpha", "gamma", "delta", "beta"]);
    check("refuted", None, &["beta"]);
    check("nothing of the kind", None, &[]);
    check("", Some(AgentState::Done), &["Alpha"]);
    check("", Some(AgentState::Failed), &["beta"]);
    check("", Some(AgentState::Waiting), &["gamma", "delta"]);
    check("", Some(AgentState::Running), &[]);
    for (number, label) in [(1, "Alpha"), (2, "beta")] {
        stage.starts(number, Role::Worker, label);
    }
    stage.opens(2, "go");
    let check = |text: &str, state: Option<AgentState>, expected: &[&str]| {
        let rows = stage.fleet.agents(&RowFilter { text: text.into(), state });
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, expected, "{text} {state:?}");
    };
    check("", None, &["beta", "Alpha"]);
    check("alpha", None, &["Alpha"]);
    check("running", None, &["beta"]);
    check("", Some(AgentState::Waiting), &["Alpha"]);
    check("beta", Some(AgentState::Waiting), &[]);
}

#[test]
fn a_result_from_before_has_a_row_that_says_from_when_it_is() {
    let mut stage = Stage::default();
    stage.fan_out(1, &["one"], 1);
    let mut ended = item(1, Some(7), vec![finding("it leaks", Severity::High)]);
    ended.result.reused = Some(Reused { session: "s_before".into(), at: 0 });
    stage.run(1, ended);
    let row = stage.row(7);
    assert_eq!((row.label.as_str(), row.act, row.state), ("one", "reused", AgentState::Done));
    assert!(row.last.contains(" old · 1 finding · from s_before"), "{}", row.last);
    stage.run(1, CitationsChecked { item: 1, checks: vec![vec![Checked::Holds]] });
    let mut vote = voted(1, 8, Vote::Confirmed);
    vote.result.reused = Some(Reused { session: "s_before".into(), at: 0 });
    stage.run(1, vote);
    assert!(stage.row(8).last.contains("from s_before"), "{}", stage.row(8).last);
    assert_eq!(stage.phases(), ["working 0r 0w 0f 1d of 1", "verifying 0r 0w 0f 1d of 1"]);
    stage.fleet.leave_all();
    assert_eq!(stage.row(7).act, "reused", "time alone changes nothing of it");
}
