//! What is read first, and how many there are of each.

use std::collections::BTreeMap;

use super::model::{Finding, Verdict};

/// The findings in the order in which they are read: by severity, then by verdict, then as they came.
pub(crate) fn in_order(findings: &[Finding]) -> Vec<&Finding> {
    let mut ordered: Vec<&Finding> = findings.iter().collect();
    ordered.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.verdict));
    ordered
}

/// What may hold, the worst first, equal claims of one severity and verdict together: the first of each, and
/// how many they are.
pub(crate) fn worst(findings: &[Finding]) -> Vec<(&Finding, usize)> {
    let mut groups: Vec<(&Finding, usize)> = Vec::new();
    for finding in in_order(findings).into_iter().filter(|finding| finding.verdict != Verdict::Refuted) {
        let is_equal = |first: &Finding| {
            (first.severity, first.verdict) == (finding.severity, finding.verdict)
                && first.claim == finding.claim
        };
        match groups.iter_mut().find(|(first, _)| is_equal(first)) {
            Some((_, number)) => *number += 1,
            None => groups.push((finding, 1)),
        }
    }
    groups
}

/// `2 confirmed, 1 refuted`; empty without findings.
pub(crate) fn counts<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    let mut by_verdict: BTreeMap<Verdict, usize> = BTreeMap::new();
    for finding in findings {
        *by_verdict.entry(finding.verdict).or_default() += 1;
    }
    let said: Vec<String> =
        by_verdict.iter().map(|(verdict, count)| format!("{count} {}", verdict.word())).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
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
    fn the_worst_are_those_that_may_hold_equal_ones_together() {
        let findings = [
            finding("a", Severity::Low, Verdict::Confirmed),
            finding("b", Severity::High, Verdict::Refuted),
            finding("c", Severity::Medium, Verdict::Confirmed),
            finding("c", Severity::Medium, Verdict::Unverified),
            finding("a", Severity::Low, Verdict::Confirmed),
        ];
        let said: Vec<String> = worst(&findings)
            .into_iter()
            .map(|(first, number)| {
                format!("{number} {} {} {}", first.severity.word(), first.verdict.word(), first.claim)
            })
            .collect();
        assert_eq!(said, ["1 medium confirmed c", "1 medium unverified c", "2 low confirmed a"]);
    }

    #[test]
    fn a_threshold_is_high_medium_or_low() {
        let check =
            |text: &str, expected| assert_eq!(Severity::parse_threshold(text).ok(), expected, "{text}");
        check("high", Some(Severity::High));
        check("medium", Some(Severity::Medium));
        check("low", Some(Severity::Low));
        check("info", None);
        check("HIGH", None);
        check("", None);
    }
}
