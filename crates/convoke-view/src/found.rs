//! The findings of a session with what became of them, gathered from its flat workflows and programs. What a
//! program claimed is in its call, what became of it in the answer. Of a session that is over [`found`] reads
//! them from the kernel's states; of one that runs [`Claims`] tells them as they come.

use std::collections::HashMap;

use convoke_kernel::{
    AgentId, CallState, Finding, ItemResult, MadeCall, Program, ProgramEvent, Run, RunEvent, RunId, Verdict,
    standing, standing_items,
};

/// What stands before a claim where a call has no name of its own.
const UNNAMED: &str = "verify: ";

/// One thing that was found or claimed, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What is claimed, as it was reported.
    pub finding: Finding,
    /// What was judged of it; `None` if it was left before that. A judgement that failed is no verdict, and
    /// what it was to judge is unverified.
    pub verdict: Option<Verdict>,
    /// The workflow run it came out of.
    pub run: String,
    /// The subtask, or the call of a program that had it judged, from 1.
    pub item: u32,
    /// Whether it is a program's.
    pub is_call: bool,
    /// What people call the subtask or the call; empty for a call without a name of its own.
    pub label: String,
    /// The worker; `None` for a program's, because it is not known which agent the program had it from.
    pub agent: Option<AgentId>,
}

/// The findings of these flat workflows, then of these programs, each in the order they were started. What
/// was done again later, or taken up by a later run, counts as it came out there.
pub fn found(runs: &[Run], programs: &[Program]) -> Vec<Found> {
    let mut found = Vec::new();
    for (run, items) in runs.iter().zip(standing_items(runs)) {
        let Some(spec) = run.spec() else { continue };
        for item in items {
            let Some(result) = run.result(item.item) else { continue };
            let mut verdicts = run.verdicts(item.item).iter();
            found.extend(reported(result).iter().map(|finding| Found {
                finding: finding.clone(),
                verdict: verdicts.next().cloned(),
                run: spec.run.clone(),
                item: item.item,
                is_call: false,
                label: item.label.clone(),
                agent: result.agent.clone(),
            }));
        }
    }
    for program in standing(programs) {
        let Some(spec) = program.spec() else { continue };
        found.extend(program.calls().filter_map(|call| of_call(&spec.run, call)));
    }
    found
}

fn of_call(run: &str, call: &CallState) -> Option<Found> {
    let made = &call.made;
    let finding = claimed(made)?;
    let lost = || Verdict::Unverified { reason: call.why_lost() };
    let verdict = call.result.as_ref().map(|result| result.answer.verdict().unwrap_or_else(lost));
    let label = own_name(made).to_owned();
    Some(Found { finding, verdict, run: run.to_owned(), item: made.call, is_call: true, label, agent: None })
}

/// The findings of an item.
pub(crate) fn reported(result: &ItemResult) -> &[Finding] {
    result.report.as_ref().map(|report| report.findings.as_slice()).unwrap_or_default()
}

/// What a program claims with a call; `None` if the call is about something else.
fn claimed(made: &MadeCall) -> Option<Finding> {
    let mut finding = made.claim()?;
    finding.evidence = finding.evidence.trim_start().to_owned();
    Some(finding)
}

/// What people call a call that has a claim judged; empty where the claim itself stands for a name.
pub(crate) fn own_name(made: &MadeCall) -> &str {
    Some(made.label.as_str()).filter(|label| !label.starts_with(UNNAMED)).unwrap_or_default()
}

/// What is heard of a finding while a session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingNews {
    /// It was reported; no verifier has looked at it yet.
    Reported(Finding),
    /// It has its verdict.
    Judged(Finding, Verdict),
}

/// The findings that wait for a verdict, by the run and the item or call they come from. Of a run that began
/// before all that was heard its later findings are told all the same.
#[derive(Debug, Default)]
pub struct Claims(HashMap<(RunId, u32), Vec<Finding>>);

impl Claims {
    /// Takes in an event of a flat workflow, and says what it tells of findings.
    pub fn run(&mut self, run: &RunId, event: &RunEvent) -> Vec<FindingNews> {
        match event {
            RunEvent::ItemEnded(e) => self.wait(run, e.item, reported(&e.result).to_vec()),
            RunEvent::ItemJudged(e) => self.judge(run, e.item, &e.verdicts),
            _ => Vec::new(),
        }
    }

    /// Takes in an event of a program's run, and says what it tells of findings. A judgement that failed is
    /// no verdict.
    pub fn program(&mut self, run: &RunId, event: &ProgramEvent) -> Vec<FindingNews> {
        match event {
            ProgramEvent::StepTaken(e) => {
                let claims = e.calls.iter().filter_map(|made| Some((made.call, claimed(made)?)));
                claims.flat_map(|(call, finding)| self.wait(run, call, vec![finding])).collect()
            }
            ProgramEvent::CallEnded(e) => {
                let verdict = e.result.answer.verdict();
                self.judge(run, e.call, verdict.as_slice())
            }
            _ => Vec::new(),
        }
    }

    fn wait(&mut self, run: &RunId, source: u32, found: Vec<Finding>) -> Vec<FindingNews> {
        let news = found.iter().cloned().map(FindingNews::Reported).collect();
        self.0.insert((run.clone(), source), found);
        news
    }

    fn judge(&mut self, run: &RunId, source: u32, verdicts: &[Verdict]) -> Vec<FindingNews> {
        let found = self.0.remove(&(run.clone(), source)).unwrap_or_default();
        let judged = found.into_iter().zip(verdicts.iter().cloned());
        judged.map(|(finding, verdict)| FindingNews::Judged(finding, verdict)).collect()
    }
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{
        CallAnswer, CallEnded, CallResult, FailureKind, ItemStatus, MadeCall, ProgramSpec, ProgramStarted,
        Segment, SessionId, Severity, StepTaken,
    };
    use serde_json::{Value, json};

    use super::*;

    fn confirmed(evidence: &str) -> Option<Verdict> {
        Some(Verdict::Confirmed { evidence: evidence.into() })
    }

    fn made(call: u32, finding: &Value) -> MadeCall {
        let want = json!({"want": "verify", "finding": finding});
        let told = json!({"call": call, "kind": "verify", "label": "verify: \
            it", "key": format!("key {call}"), "want": want});
        serde_json::from_value(told).unwrap()
    }

    /// A run whose calls have these findings judged, and what they came to.
    fn program(
        run: &str,
        from: Option<&str>,
        background: bool,
        calls: &[(Value, Option<CallResult>)],
    ) -> Program {
        let spec = json!({
            "run": run, "session": SessionId::from_bits([1; 10]), "lead": "a_aaaaaaaaaaaaaaaa", "call": "", "dir": "/", "base": "",
            "voters": 1, "name": "probe", "description": "", "source": "", "digest": "", "background": background, "consent": "",
            "from": from,
        });
        let spec: ProgramSpec = serde_json::from_value(spec).unwrap();
        let mut program = Program::new();
        program.apply(&ProgramStarted { spec }.into(), 1).unwrap();
        let made = (1..).zip(calls).map(|(number, (finding, _))| made(number, finding)).collect();
        let step = StepTaken { fed: None, calls: made, cleared: Vec::new(), said: Vec::new(), end: None };
        program.apply(&step.into(), 1).unwrap();
        for (call, (_, result)) in (1..).zip(calls) {
            if let Some(result) = result.clone() {
                program.apply(&CallEnded { call, result, spent_total: 0 }.into(), 1).unwrap();
            }
        }
        program
    }

    fn told_verdict(verdict: &str, why: &str) -> Option<CallResult> {
        let member = if matches!(verdict, "confirmed" | "refuted") { "evidence" } else { "reason" };
        let value = json!({"verdict": verdict, member: why, "claim": "it", "votes": 1});
        Some(CallResult::bare(ItemStatus::Ok, CallAnswer::Value(Segment::encode(&value))))
    }

    fn dead() -> Option<CallResult> {
        let status = ItemStatus::Failed { kind: FailureKind::Api, message: "overloaded".into() };
        Some(CallResult::bare(status, CallAnswer::null()))
    }

    #[test]
    fn what_verify_came_to_is_a_finding_whatever_it_came_to() {
        let check = |finding: Value,
                     result: Option<CallResult>,
                     grave: Severity,
                     expected: Option<Verdict>| {
            let one = found(&[], &[program("wf_a", None, false, &[(finding, result)])]).remove(0);
            assert_eq!((one.finding.severity, &one.verdict), (grave, &expected), "{one:?}");
            assert_eq!((one.item, one.is_call, one.run.as_str(), one.label.as_str()), (1, true, "wf_a", ""));
        };
        let high = || json!({"claim": "it leaks", "evidence": "e", "severity": "high"});
        let refuted = Some(Verdict::Refuted { evidence: "not there".into() });
        let uncertain = Some(Verdict::Uncertain { reason: "a tie".into() });
        let lost = Some(Verdict::Unverified { reason: "api: overloaded".into() });
        check(high(), told_verdict("confirmed", "seen"), Severity::High, confirmed("seen"));
        check(high(), told_verdict("refuted", "not there"), Severity::High, refuted);
        check(high(), told_verdict("uncertain", "a tie"), Severity::High, uncertain);
        check(high(), dead(), Severity::High, lost);
        check(high(), None, Severity::High, None);
        check(json!("a claim alone"), told_verdict("confirmed", "seen"), Severity::Info, confirmed("seen"));
        let without = program("wf_a", None, false, &[(json!({"severity": "high"}), dead())]);
        assert_eq!(found(&[], &[without]), []);
    }

    #[test]
    fn a_claim_is_told_when_it_is_made_and_again_with_its_verdict_if_it_gets_one() {
        let run = RunId::derived(&["wf"]);
        let told = |news: &[FindingNews]| -> Vec<String> {
            let word = |news: &FindingNews| match news {
                FindingNews::Reported(finding) => format!("{} reported", finding.claim),
                FindingNews::Judged(finding, Verdict::Confirmed { .. }) => {
                    format!("{} confirmed", finding.claim)
                }
                FindingNews::Judged(finding, _) => format!("{} judged", finding.claim),
            };
            news.iter().map(word).collect()
        };
        let mut claims = Claims::default();
        let calls =
            vec![made(1, &json!("one")), made(2, &json!("two")), made(3, &json!({"severity": "low"}))];
        let step = StepTaken { fed: None, calls, cleared: Vec::new(), said: Vec::new(), end: None };
        assert_eq!(told(&claims.program(&run, &step.into())), ["one reported", "two reported"]);
        let ended = |call: u32, result: Option<CallResult>| -> ProgramEvent {
            CallEnded { call, result: result.unwrap(), spent_total: 0 }.into()
        };
        let check = |claims: &mut Claims, event: ProgramEvent, expected: &[&str]| {
            assert_eq!(told(&claims.program(&run, &event)), expected);
        };
        check(&mut claims, ended(2, told_verdict("confirmed", "seen")), &["two confirmed"]);
        check(&mut claims, ended(2, told_verdict("confirmed", "seen")), &[]);
        check(&mut claims, ended(1, dead()), &[]);
    }

    #[test]
    fn places_are_kept_so_that_a_report_can_point_at_them() {
        let cited = json!({"claim": "c", "evidence": "e", "citations": [{"path": "a.rs", "first": 3, "last": 4, "quote": "x"}]});
        let one = found(&[], &[program("wf_a", None, false, &[(cited, told_verdict("confirmed", "seen"))])])
            .remove(0);
        let place = &one.finding.citations[0];
        assert_eq!((place.path.as_deref(), place.first, place.last), (Some("a.rs"), Some(3), Some(4)));
    }

    #[test]
    fn what_a_later_run_took_up_counts_as_it_came_out_there() {
        let run = |id: &str, from: Option<&str>, background: bool| {
            program(id, from, background, &[(json!(id), told_verdict("confirmed", "seen"))])
        };
        let check = |programs: &[Program], expected: &[&str]| {
            let claims: Vec<String> =
                found(&[], programs).into_iter().map(|found| found.finding.claim).collect();
            assert_eq!(claims, expected);
        };
        check(&[run("wf_a", None, true), run("wf_b", None, true)], &["wf_a", "wf_b"]);
        check(&[run("wf_a", None, true), run("wf_b", Some("wf_a"), true)], &["wf_b"]);
        check(&[run("wf_a", None, false), run("wf_b", None, false)], &["wf_b"]);
    }
}
