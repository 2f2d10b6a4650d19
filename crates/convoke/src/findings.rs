//! Findings of workers, and what verifiers made of them.

use convoke_kernel::{self as kernel, Program, Run};

/// Something an agent found, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is claimed.
    pub claim: String,
    /// What it rests on, in words.
    pub evidence: String,
    /// How much it matters.
    pub severity: Severity,
    /// Where it can be looked up.
    pub citations: Vec<Citation>,
    /// Whether verifiers confirmed it.
    pub verdict: Verdict,
    /// Why the verdict is what it is.
    pub reason: String,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Good to know.
    Info,
    /// Worth mending some day.
    Low,
    /// Worth mending.
    Medium,
    /// To be mended before anything else.
    High,
}

/// What verifiers made of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// They looked, and it holds.
    Confirmed,
    /// They looked, and it does not hold.
    Refuted,
    /// They looked, and it is not settled: the votes are tied, or a citation does not hold.
    Uncertain,
    /// No verifier looked at it.
    Unverified,
}

/// A place that a finding names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Citation {
    /// A file, relative to the directory.
    pub path: Option<String>,
    /// The first line that is meant, from 1.
    pub first_line: Option<u32>,
    /// The last line that is meant.
    pub last_line: Option<u32>,
    /// A command that the agent ran.
    pub command: Option<String>,
    /// What stands there, or what the command printed.
    pub quote: Option<String>,
}

const NOT_JUDGED: &str = "the session ended before it was judged";

/// The findings of a session, in the order of its workflows. What was done again later counts as it came out
/// then.
pub(crate) fn of_session(runs: &[Run], programs: &[Program]) -> Vec<Finding> {
    let found = convoke_view::found(runs, programs);
    found.iter().map(|found| finding(&found.finding, found.verdict.as_ref())).collect()
}

pub(crate) fn finding(found: &kernel::Finding, verdict: Option<&kernel::Verdict>) -> Finding {
    let (verdict, reason) = verdict.map_or((Verdict::Unverified, NOT_JUDGED.to_owned()), said);
    Finding {
        claim: found.claim.clone(),
        evidence: found.evidence.trim_start().to_owned(),
        severity: severity(found.severity),
        citations: found.citations.iter().map(citation).collect(),
        verdict,
        reason,
    }
}

/// A verdict and its reason.
pub(crate) fn said(verdict: &kernel::Verdict) -> (Verdict, String) {
    match verdict {
        kernel::Verdict::Confirmed { evidence } => (Verdict::Confirmed, evidence.clone()),
        kernel::Verdict::Refuted { evidence } => (Verdict::Refuted, evidence.clone()),
        kernel::Verdict::Uncertain { reason } => (Verdict::Uncertain, reason.clone()),
        kernel::Verdict::Unverified { reason } => (Verdict::Unverified, reason.clone()),
    }
}

pub(crate) fn severity(severity: kernel::Severity) -> Severity {
    match severity {
        kernel::Severity::Info => Severity::Info,
        kernel::Severity::Low => Severity::Low,
        kernel::Severity::Medium => Severity::Medium,
        kernel::Severity::High => Severity::High,
    }
}

fn citation(citation: &kernel::Citation) -> Citation {
    let kernel::Citation { path, first, last, command, quote } = citation.clone();
    Citation { path, first_line: first, last_line: last, command, quote }
}
