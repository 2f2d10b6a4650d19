//! What became of the gate that the caller set with `--fail-on`, for the report: which findings decided, or
//! why none could.

use convoke_kernel::{Gate, GateSight, gate};
use serde::Serialize;

use super::model::{Finding, Severity, Verdict};
use super::order::in_order;
use convoke_view::count;

/// How many findings the last line of a session names.
const MOST_NAMED: usize = 5;
/// How much of a claim stands in it.
const MOST_CLAIM: usize = 100;

/// What became of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct GateReport {
    /// The severity from which on a confirmed finding fails it.
    pub(crate) fail_on: &'static str,
    /// `passed`, `failed` or `not_evaluated`.
    pub(crate) result: &'static str,
    /// Why it could not be evaluated.
    pub(crate) why: Option<String>,
    /// The findings that decided, the worst first: severity, place and claim.
    pub(crate) decided_by: Vec<String>,
    #[serde(skip)]
    pub(crate) gate: Gate,
}

/// What a gate that had nothing to look at lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacked {
    /// The person's own program never has anything verified.
    Verify,
    /// No fan-out was agreed to: orchestration mode is off.
    Mode,
    /// The lead ran no workflow.
    Workflow,
}

impl GateReport {
    /// What became of a gate of this severity.
    pub(crate) fn of(level: Severity, findings: &[Finding], sight: GateSight, lacked: Lacked) -> Self {
        let of = |verdict: Verdict| move |it: &&Finding| it.verdict == verdict && it.severity >= level;
        let confirmed: Vec<&Finding> =
            in_order(findings).into_iter().filter(of(Verdict::Confirmed)).collect();
        let unjudged = findings.iter().filter(of(Verdict::Unverified)).count();
        let gate = gate(confirmed.len(), unjudged, sight);
        let (result, why) = match gate {
            Gate::Unset | Gate::Passed => ("passed", None),
            Gate::Found => ("failed", None),
            Gate::Blind => ("not_evaluated", Some(why(unjudged, sight, lacked))),
        };
        Self {
            fail_on: level.word(),
            result,
            why,
            decided_by: confirmed.into_iter().map(named).collect(),
            gate,
        }
    }

    /// What is said of a gate that could not be evaluated.
    pub(crate) fn blind(&self) -> Option<String> {
        let why = self.why.as_ref()?;
        Some(format!("--fail-on {} could not be evaluated: {why}", self.fail_on))
    }

    /// The last line of a session that failed by it.
    pub(crate) fn failed(&self) -> Option<String> {
        if self.gate != Gate::Found {
            return None;
        }
        let named: Vec<&str> = self.decided_by.iter().take(MOST_NAMED).map(String::as_str).collect();
        let more = match self.decided_by.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let number = count(u32::try_from(self.decided_by.len()).unwrap_or(u32::MAX), "confirmed finding");
        Some(format!("--fail-on {} failed on {number}: {}{more}", self.fail_on, named.join("; ")))
    }
}

fn named(finding: &Finding) -> String {
    let place = finding.citations.iter().find_map(super::Citation::place).map(|place| format!(" {place}"));
    let claim = crate::render::first_line(&finding.claim, MOST_CLAIM);
    format!("{}{}: {claim}", finding.severity.word(), place.unwrap_or_default())
}

fn why(unjudged: usize, sight: GateSight, lacked: Lacked) -> String {
    let results =
        |number: u32| if number == 1 { "1 result was".to_owned() } else { format!("{number} results were") };
    match (sight, lacked) {
        (GateSight { unvoted: 1.., .. }, _) => {
            format!("{} not verified, because verification is off", results(sight.unvoted))
        }
        (GateSight { degraded: 1.., .. }, _) => {
            let are =
                if sight.degraded == 1 { "1 result is" } else { &format!("{} results are", sight.degraded) };
            format!("{are} degraded, and what a degraded result says is not verified")
        }
        (GateSight { unverified: 1.., .. }, _) => {
            let had = if sight.unverified == 1 {
                "1 program had"
            } else {
                &format!("{} programs had", sight.unverified)
            };
            format!("{had} nothing verified; a finding counts if it went through verify()")
        }
        _ if unjudged > 0 => {
            format!(
                "{} not judged",
                if unjudged == 1 { "1 finding was".to_owned() } else { format!("{unjudged} findings were") }
            )
        }
        (_, Lacked::Verify) => {
            "the workflow had nothing verified; a finding counts if it went through verify()".to_owned()
        }
        (_, Lacked::Mode) => {
            "orchestration mode is off and the lead ran no workflow, so no worker reported findings and none \
                was verified"
                .to_owned()
        }
        (_, Lacked::Workflow) => {
            "no workflow was run, so no worker reported findings and none was verified; `convoke workflow \
             run review` always has its findings verified"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::finding;
    use super::*;

    const WHOLE: GateSight = GateSight { sound: 2, degraded: 0, unvoted: 0, unverified: 0 };

    fn of(findings: &[Finding], sight: GateSight) -> GateReport {
        GateReport::of(Severity::Medium, findings, sight, Lacked::Workflow)
    }

    #[test]
    fn only_a_confirmed_finding_of_the_severity_or_above_fails_a_gate() {
        for severity in Severity::ALL {
            for level in Severity::ALL {
                for verdict in [Verdict::Confirmed, Verdict::Uncertain, Verdict::Refuted] {
                    let told =
                        GateReport::of(level, &[finding("x", severity, verdict)], WHOLE, Lacked::Workflow);
                    let fails = verdict == Verdict::Confirmed && severity >= level;
                    assert_eq!(
                        (told.gate == Gate::Found, told.why.is_none()),
                        (fails, true),
                        "{severity:?} {verdict:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_findings_that_decided_are_named_the_worst_first() {
        let mut findings = vec![finding("slow", Severity::Medium, Verdict::Confirmed)];
        findings.extend([
            finding("wrong", Severity::High, Verdict::Refuted),
            finding("low", Severity::Low, Verdict::Confirmed),
        ]);
        findings.push(finding("breaks\nin two", Severity::High, Verdict::Confirmed));
        let told = of(&findings, WHOLE);
        assert_eq!(told.decided_by, ["high: breaks (+1 line)", "medium: slow"]);
        assert_eq!(
            told.failed().unwrap(),
            "--fail-on medium failed on 2 confirmed findings: high: breaks (+1 line); medium: slow"
        );
        let many = vec![finding("x", Severity::High, Verdict::Confirmed); 7];
        let line = of(&many, GateSight::default()).failed().unwrap();
        assert!(line.contains("7 confirmed findings") && line.ends_with("; and 2 more"), "{line}");
    }

    #[test]
    fn a_gate_that_could_not_be_evaluated_says_why() {
        let check = |findings: &[Finding], sight: GateSight, says: &str| {
            let told = of(findings, sight);
            assert_eq!((told.result, told.failed()), ("not_evaluated", None));
            assert!(told.blind().unwrap().contains(says), "{told:?}");
        };
        check(&[], GateSight::default(), "no workflow was run");
        check(&[], GateSight { unvoted: 1, ..WHOLE }, "verification is off");
        check(&[], GateSight { degraded: 2, ..WHOLE }, "2 results are degraded");
        check(&[], GateSight { unverified: 1, ..WHOLE }, "1 program had nothing verified");
        check(&[finding("x", Severity::High, Verdict::Unverified)], WHOLE, "1 finding was not judged");
        assert_eq!(of(&[finding("x", Severity::Low, Verdict::Unverified)], WHOLE).result, "passed");
        let told = GateReport::of(Severity::Low, &[], GateSight::default(), Lacked::Verify);
        assert!(told.blind().unwrap().contains("verify()"), "{told:?}");
    }
}
