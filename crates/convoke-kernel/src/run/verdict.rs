//! From votes and checked citations to verdicts on findings. A voter that could not look neither confirms nor
//! refutes, and a citation that fails can take a confirmation away but never gives one.

use super::event::{ItemResult, ItemStatus, VoterResult};
use crate::citation::Checked;
use crate::findings::{Finding, Judgement, Verdict, Vote};
use crate::wire::FailureKind;

/// Whether the findings of a result are looked into: it is whole and has some.
pub(super) fn is_worth_a_look(result: &ItemResult) -> bool {
    result.is_sound() && result.findings() > 0
}

/// A verdict for every finding of an item.
pub(super) fn judge(
    result: &ItemResult,
    checks: &[Vec<Checked>],
    voters: u32,
    votes: &[&VoterResult],
) -> Vec<Verdict> {
    let findings: &[Finding] = result.report.as_ref().map_or(&[], |report| &report.findings);
    if let Some(reason) = not_looked_into(result) {
        return findings.iter().map(|_| Verdict::Unverified { reason: reason.clone() }).collect();
    }
    (0..findings.len())
        .map(|at| {
            let broken = broken(checks.get(at).map_or(&[], Vec::as_slice));
            if voters == 0 { unvoted(broken) } else { voted(at, broken, votes) }
        })
        .collect()
}

/// The word of a kind of failure, as reports use it.
pub(crate) fn word(kind: FailureKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(word)) => word,
        _ => format!("{kind:?}"),
    }
}

fn not_looked_into(result: &ItemResult) -> Option<String> {
    match (&result.status, &result.degraded) {
        (ItemStatus::Failed { kind, .. }, _) => {
            Some(format!("the worker failed ({}), and failed results are not verified", word(*kind)))
        }
        (ItemStatus::Skipped { .. }, _) => Some("the subtask was skipped".to_owned()),
        (ItemStatus::Ok, Some(why)) => Some(format!("degraded results are not verified: {why}")),
        (ItemStatus::Ok, None) => None,
    }
}

/// The first citation that fails, in words.
fn broken(checks: &[Checked]) -> Option<String> {
    let mut numbered = (1..).zip(checks);
    numbered.find_map(|(number, check): (usize, _)| match check {
        Checked::Fails(reason) if checks.len() == 1 => Some(format!("its citation fails: {reason}")),
        Checked::Fails(reason) => Some(format!("citation {number} of {} fails: {reason}", checks.len())),
        Checked::Holds | Checked::CannotTell(_) => None,
    })
}

fn unvoted(broken: Option<String>) -> Verdict {
    match broken {
        Some(reason) => Verdict::Refuted { evidence: format!("checked by the harness: {reason}") },
        None => Verdict::Unverified { reason: "verification is off".to_owned() },
    }
}

fn voted(at: usize, broken: Option<String>, votes: &[&VoterResult]) -> Verdict {
    let judgements: Vec<&Judgement> = votes.iter().filter_map(|vote| judgement(vote, at)).collect();
    let says = |vote: Vote| {
        judgements.iter().find(|judgement| judgement.verdict == vote).map(|j| j.evidence.as_str())
    };
    let confirmed = judgements.iter().filter(|judgement| judgement.verdict == Vote::Confirmed).count();
    // Undecided after having looked is a refutation: the finding could not be shown to hold.
    let refuted = judgements.len() - confirmed;
    let with = |reason: String| match &broken {
        Some(broken) => format!("{reason}; {broken}"),
        None => reason,
    };
    let pro = says(Vote::Confirmed).unwrap_or_default();
    let contra = says(Vote::Refuted).or_else(|| says(Vote::Undecided)).unwrap_or_default();
    let tally = |evidence: &str| match votes.len() {
        0 | 1 => evidence.to_owned(),
        all => match all - judgements.len() {
            0 => format!("{confirmed} to {refuted}: {evidence}"),
            blind => format!("{confirmed} to {refuted}, {blind} could not look: {evidence}"),
        },
    };
    if judgements.is_empty() {
        let reasons = votes.iter().find_map(|vote| vote.failure.clone());
        let reason = reasons.unwrap_or_else(|| "no verifier judged it".to_owned());
        return Verdict::Unverified { reason: with(reason) };
    }
    match (confirmed.cmp(&refuted), &broken) {
        (std::cmp::Ordering::Greater, None) => Verdict::Confirmed { evidence: tally(pro) },
        (std::cmp::Ordering::Greater, Some(broken)) => {
            Verdict::Uncertain { reason: format!("{broken}; yet the verifier confirms: {}", tally(pro)) }
        }
        (std::cmp::Ordering::Less, _) => Verdict::Refuted { evidence: with(tally(contra)) },
        (std::cmp::Ordering::Equal, _) => Verdict::Uncertain {
            reason: with(format!(
                "the votes are tied, {confirmed} to {refuted}: for it: {pro}; against it: {contra}"
            )),
        },
    }
}

/// What a voter that could look says about a finding.
fn judgement(vote: &VoterResult, at: usize) -> Option<&Judgement> {
    if vote.failure.is_some() {
        return None;
    }
    vote.ballot.as_ref()?.verdicts.iter().find(|judgement| judgement.finding as usize == at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Ballot, Report, Severity};

    fn result(findings: usize) -> ItemResult {
        let finding = Finding {
            claim: "c".into(),
            evidence: "e".into(),
            severity: Severity::Low,
            citations: Vec::new(),
        };
        let report = Report { summary: "s".into(), findings: vec![finding; findings] };
        ItemResult { report: Some(report), ..ItemResult::bare(ItemStatus::Ok) }
    }

    /// One letter a voter: c confirmed, r refuted, u undecided, x could not look, d looked degraded and voted
    /// refuted.
    fn voters(letters: &str) -> Vec<VoterResult> {
        let ballot = |verdict, evidence: &str| {
            Some(Ballot {
                summary: "s".into(),
                verdicts: vec![Judgement { finding: 1, verdict, evidence: evidence.into() }],
            })
        };
        let failed = |why: &str| VoterResult { failure: Some(why.into()), ..VoterResult::default() };
        let voted = |ballot| VoterResult { ballot, ..VoterResult::default() };
        letters
            .chars()
            .map(|letter| match letter {
                'c' => voted(ballot(Vote::Confirmed, "saw it")),
                'r' => voted(ballot(Vote::Refuted, "saw none")),
                'u' => voted(ballot(Vote::Undecided, "no idea")),
                'd' => {
                    VoterResult { ballot: ballot(Vote::Refuted, "saw none"), ..failed("made no tool call") }
                }
                _ => failed("rate limited"),
            })
            .collect()
    }

    fn verdict(letters: &str, checks: &[Checked]) -> String {
        let votes = voters(letters);
        let votes: Vec<&VoterResult> = votes.iter().collect();
        let verdicts = judge(&result(1), &[checks.to_vec()], letters.len() as u32, &votes);
        match &verdicts[..] {
            [Verdict::Confirmed { evidence }] => format!("confirmed: {evidence}"),
            [Verdict::Refuted { evidence }] => format!("refuted: {evidence}"),
            [Verdict::Uncertain { reason }] => format!("uncertain: {reason}"),
            [Verdict::Unverified { reason }] => format!("unverified: {reason}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn votes_become_verdicts() {
        for (letters, expected) in [
            ("c", "confirmed: saw it"),
            ("r", "refuted: saw none"),
            ("u", "refuted: no idea"),
            ("x", "unverified: rate limited"),
            ("d", "unverified: made no tool call"),
            ("ccr", "confirmed: 2 to 1: saw it"),
            ("curr", "refuted: 1 to 3: saw none"),
            ("cu", "uncertain: the votes are tied, 1 to 1: for it: saw it; against it: no idea"),
            ("cr", "uncertain: the votes are tied, 1 to 1: for it: saw it; against it: saw none"),
            ("xcx", "confirmed: 1 to 0, 2 could not look: saw it"),
            ("xdr", "refuted: 0 to 1, 2 could not look: saw none"),
            ("cdd", "confirmed: 1 to 0, 2 could not look: saw it"),
            ("dx", "unverified: made no tool call"),
            ("", "unverified: verification is off"),
        ] {
            assert_eq!(verdict(letters, &[]), expected, "{letters}");
        }
    }

    #[test]
    fn a_finding_whose_citation_fails_never_comes_out_confirmed() {
        let checks = [Checked::Holds, Checked::Fails("no file".into())];
        for (letters, expected) in [
            ("c", "uncertain: citation 2 of 2 fails: no file; yet the verifier confirms: saw it"),
            ("r", "refuted: saw none; citation 2 of 2 fails: no file"),
            ("x", "unverified: rate limited; citation 2 of 2 fails: no file"),
            (
                "cr",
                "uncertain: the votes are tied, 1 to 1: for it: saw it; against it: saw none; citation 2 of \
                    2 fails: no file",
            ),
            ("", "refuted: checked by the harness: citation 2 of 2 fails: no file"),
        ] {
            assert_eq!(verdict(letters, &checks), expected, "{letters}");
        }
    }

    #[test]
    fn a_citation_that_holds_or_cannot_be_compared_confirms_nothing() {
        for check in [Checked::Holds, Checked::CannotTell("large".into())] {
            assert_eq!(verdict("", std::slice::from_ref(&check)), "unverified: verification is off");
            assert_eq!(verdict("x", std::slice::from_ref(&check)), "unverified: rate limited");
            assert_eq!(verdict("r", std::slice::from_ref(&check)), "refuted: saw none");
            assert_eq!(verdict("c", std::slice::from_ref(&check)), "confirmed: saw it");
        }
    }

    #[test]
    fn failed_degraded_and_empty_results_are_not_looked_into() {
        let failed = ItemStatus::Failed { kind: FailureKind::TurnLimit, message: "m".into() };
        for (result, reason) in [
            (
                ItemResult { status: failed, ..result(2) },
                "the worker failed (turn_limit), and failed results are not verified",
            ),
            (
                ItemResult { degraded: Some("no tool call was made".into()), ..result(2) },
                "degraded results are not verified: no tool call was made",
            ),
        ] {
            assert!(!is_worth_a_look(&result));
            let unverified = Verdict::Unverified { reason: reason.to_owned() };
            let checks = vec![vec![Checked::Fails("f".into())]; 2];
            assert_eq!(judge(&result, &checks, 0, &[]), vec![unverified; 2]);
        }
        assert!(!is_worth_a_look(&result(0)));
        assert!(is_worth_a_look(&result(1)));
    }

    #[test]
    fn a_finding_that_a_ballot_leaves_out_is_unverified() {
        let votes = voters("c");
        let verdicts = judge(&result(2), &[], 1, &votes.iter().collect::<Vec<_>>());
        assert_eq!(verdicts[1], Verdict::Unverified { reason: "no verifier judged it".into() });
    }
}
