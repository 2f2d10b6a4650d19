//! The findings of a session with what became of them, gathered from its flat workflows and programs. What a
//! program claimed is in its call, what became of it in the answer.

use convoke_kernel::{AgentId, CallState, Finding, Program, Run, Verdict, standing, standing_items};

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
            let findings = result.report.iter().flat_map(|report| &report.findings);
            found.extend(findings.map(|finding| Found {
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
    let mut finding = made.claim()?;
    finding.evidence = finding.evidence.trim_start().to_owned();
    let lost = || Verdict::Unverified { reason: call.why_lost() };
    let verdict = call.result.as_ref().map(|result| result.answer.verdict().unwrap_or_else(lost));
    // The claim itself is no name.
    let label = Some(&made.label).filter(|label| !label.starts_with(UNNAMED)).cloned().unwrap_or_default();
    Some(Found { finding, verdict, run: run.to_owned(), item: made.call, is_call: true, label, agent: None })
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

    fn told(verdict: &str, why: &str) -> Option<CallResult> {
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
        check(high(), told("confirmed", "seen"), Severity::High, confirmed("seen"));
        check(high(), told("refuted", "not there"), Severity::High, refuted);
        check(high(), told("uncertain", "a tie"), Severity::High, uncertain);
        check(high(), dead(), Severity::High, lost);
        check(high(), None, Severity::High, None);
        check(json!("a claim alone"), told("confirmed", "seen"), Severity::Info, confirmed("seen"));
        let without = program("wf_a", None, false, &[(json!({"severity": "high"}), dead())]);
        assert_eq!(found(&[], &[without]), []);
    }

    #[test]
    fn places_are_kept_so_that_a_report_can_point_at_them() {
        let cited = json!({"claim": "c", "evidence": "e", "citations": [{"path": "a.rs", "first": 3, "last": 4, "quote": "x"}]});
        let one =
            found(&[], &[program("wf_a", None, false, &[(cited, told("confirmed", "seen"))])]).remove(0);
        let place = &one.finding.citations[0];
        assert_eq!((place.path.as_deref(), place.first, place.last), (Some("a.rs"), Some(3), Some(4)));
    }

    #[test]
    fn what_a_later_run_took_up_counts_as_it_came_out_there() {
        let run = |id: &str, from: Option<&str>, background: bool| {
            program(id, from, background, &[(json!(id), told("confirmed", "seen"))])
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
