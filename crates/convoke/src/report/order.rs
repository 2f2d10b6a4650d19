//! What is read first, how many there are of each, and whether there is something to fail on.

use std::collections::BTreeMap;

use super::model::{Finding, Severity, Verdict};

/// The findings in the order in which they are read: by severity, then by verdict, then as they came.
pub(crate) fn in_order(findings: &[Finding]) -> Vec<&Finding> {
    let mut ordered: Vec<&Finding> = findings.iter().collect();
    ordered.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.verdict));
    ordered
}

/// Whether there is a confirmed finding of this severity or above.
pub(crate) fn fail_on(findings: &[Finding], level: Severity) -> bool {
    findings.iter().any(|finding| finding.verdict == Verdict::Confirmed && finding.severity >= level)
}

/// `2 confirmed, 1 refuted`; empty without findings.
pub(crate) fn counts<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    let mut by_verdict: BTreeMap<Verdict, usize> = BTreeMap::new();
    for finding in findings {
        *by_verdict.entry(finding.verdict).or_default() += 1;
    }
    let said: Vec<String> = by_verdict.iter().map(|(verdict, count)| format!("{count} {}", verdict.word())).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::finding;
    use super::*;

    #[test]
    fn findings_are_read_by_severity_then_by_verdict_then_as_they_came() {
        let findings = [
            finding("a", Severity::Low, Verdict::Confirmed),
            finding("b", Severity::High, Verdict::Refuted),
            finding("c", Severity::High, Verdict::Confirmed),
            finding("d", Severity::Info, Verdict::Unverified),
            finding("e", Severity::High, Verdict::Confirmed),
            finding("f", Severity::Medium, Verdict::Uncertain),
        ];
        let claims: Vec<&str> = in_order(&findings).iter().map(|finding| finding.claim.as_str()).collect();
        assert_eq!(claims, ["c", "e", "b", "f", "a", "d"]);
        assert_eq!(counts(&findings), "3 confirmed, 1 uncertain, 1 unverified, 1 refuted");
        assert_eq!(counts([]), "");
    }

    #[test]
    fn only_a_confirmed_finding_of_the_severity_or_above_is_one_to_fail_on() {
        let check = |severity, verdict, level, expected| {
            assert_eq!(
                fail_on(&[finding("x", severity, verdict)], level),
                expected,
                "{severity:?} {verdict:?} {level:?}"
            );
        };
        for severity in Severity::ALL {
            for level in Severity::ALL {
                check(severity, Verdict::Confirmed, level, severity >= level);
                for verdict in [Verdict::Uncertain, Verdict::Unverified, Verdict::Refuted] {
                    check(severity, verdict, level, false);
                }
            }
        }
        assert!(!fail_on(&[], Severity::Low));
    }

    #[test]
    fn a_threshold_is_high_medium_or_low() {
        let check = |text: &str, expected| assert_eq!(Severity::parse_threshold(text).ok(), expected, "{text}");
        check("high", Some(Severity::High));
        check("medium", Some(Severity::Medium));
        check("low", Some(Severity::Low));
        check("info", None);
        check("HIGH", None);
        check("", None);
    }
}
