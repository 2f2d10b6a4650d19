//! The findings that programs had judged, as the report lists them: what was claimed is in the call, what became of it in its answer.
//! A failure is no verdict, so whatever did not come to one is unverified.

use convoke_kernel::{self as kernel, CallAnswer, CallKind, CallState, Program, standing};
use convoke_runtime::read_finding;
use serde_json::Value;

use super::{citation, judged, severity};
use crate::report::{Finding, Verdict};

/// What stands before a claim where a call has no name of its own.
const UNNAMED: &str = "verify: ";

/// The findings of these programs, which are in the order they were started. What a later run took up counts as it came out there.
pub(super) fn findings(programs: &[Program]) -> Vec<Finding> {
    let calls = |program: &&Program| program.calls().filter_map(|call| finding(program, call)).collect::<Vec<_>>();
    standing(programs).iter().flat_map(calls).collect()
}

fn finding(program: &Program, call: &CallState) -> Option<Finding> {
    let made = &call.made;
    if made.kind != CallKind::Verify {
        return None;
    }
    let want: Value = serde_json::from_str(made.want.as_str()).ok()?;
    // What has no claim was refused, and there is nothing to tell of it.
    let kernel::Finding { claim, evidence, severity: grave, citations } = read_finding(want.get("finding")?).ok()?;
    let (verdict, reason) = verdict(call);
    Some(Finding {
        severity: severity(grave),
        verdict,
        claim,
        evidence: evidence.trim_start().to_owned(),
        reason,
        citations: citations.iter().map(citation).collect(),
        run: program.spec().map(|spec| spec.run.clone()),
        item: Some(made.call),
        is_call: true,
        // The claim itself is no name.
        label: Some(&made.label).filter(|label| !label.starts_with(UNNAMED)).cloned().unwrap_or_default(),
        agent: None,
    })
}

fn verdict(call: &CallState) -> (Verdict, String) {
    let Some(result) = &call.result else {
        return (Verdict::Unverified, "the run stopped before it was judged".to_owned());
    };
    let told = match &result.answer {
        CallAnswer::Value(value) => serde_json::from_str::<kernel::Verdict>(value.as_str()).ok(),
        CallAnswer::Throw(_) | CallAnswer::Program { .. } => None,
    };
    told.as_ref().map_or_else(|| (Verdict::Unverified, call.why_lost()), judged)
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{
        CallEnded, CallResult, FailureKind, ItemStatus, MadeCall, ProgramSpec, ProgramStarted, Segment, SessionId,
        StepTaken,
    };
    use serde_json::json;

    use super::*;
    use crate::report::Severity;

    fn made(call: u32, finding: &Value) -> MadeCall {
        let want = json!({"want": "verify", "finding": finding});
        let told =
            json!({"call": call, "kind": "verify", "label": "verify: it", "key": format!("key {call}"), "want": want});
        serde_json::from_value(told).unwrap()
    }

    /// A run whose calls have these findings judged, and what they came to.
    fn program(run: &str, from: Option<&str>, background: bool, calls: &[(Value, Option<CallResult>)]) -> Program {
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
        let check = |finding: Value, result: Option<CallResult>, expected: (Severity, Verdict, &str)| {
            let found = findings(&[program("wf_a", None, false, &[(finding, result)])]).remove(0);
            assert_eq!((found.severity, found.verdict), (expected.0, expected.1), "{found:?}");
            assert!(found.reason.contains(expected.2), "{found:?}");
            assert_eq!((found.source().as_deref(), found.run.as_deref()), (Some("call 1"), Some("wf_a")));
        };
        let high = || json!({"claim": "it leaks", "evidence": "e", "severity": "high"});
        check(high(), told("confirmed", "seen"), (Severity::High, Verdict::Confirmed, "seen"));
        check(high(), told("refuted", "not there"), (Severity::High, Verdict::Refuted, "not there"));
        check(high(), told("uncertain", "a tie"), (Severity::High, Verdict::Uncertain, "a tie"));
        check(high(), dead(), (Severity::High, Verdict::Unverified, "overloaded"));
        check(high(), None, (Severity::High, Verdict::Unverified, "the run stopped before it was judged"));
        check(json!("a claim alone"), told("confirmed", "seen"), (Severity::Info, Verdict::Confirmed, "seen"));
        let without = program("wf_a", None, false, &[(json!({"severity": "high"}), dead())]);
        assert_eq!(findings(&[without]), []);
    }

    #[test]
    fn places_are_kept_so_that_a_report_can_point_at_them() {
        let cited = json!({"claim": "c", "evidence": "e", "citations": [{"path": "a.rs", "first": 3, "last": 4, "quote": "x"}]});
        let found = findings(&[program("wf_a", None, false, &[(cited, told("confirmed", "seen"))])]).remove(0);
        assert_eq!(found.citations[0].place().as_deref(), Some("a.rs:3-4"));
    }

    #[test]
    fn what_a_later_run_took_up_counts_as_it_came_out_there() {
        let run = |id: &str, from: Option<&str>, background: bool| {
            program(id, from, background, &[(json!(id), told("confirmed", "seen"))])
        };
        let check = |programs: &[Program], expected: &[&str]| {
            let claims: Vec<String> = findings(programs).into_iter().map(|finding| finding.claim).collect();
            assert_eq!(claims, expected);
        };
        check(&[run("wf_a", None, true), run("wf_b", None, true)], &["wf_a", "wf_b"]);
        check(&[run("wf_a", None, true), run("wf_b", Some("wf_a"), true)], &["wf_b"]);
        check(&[run("wf_a", None, false), run("wf_b", None, false)], &["wf_b"]);
    }
}
