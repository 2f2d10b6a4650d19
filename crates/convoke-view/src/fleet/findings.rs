//! What was found and what became of it: rows by where they came from, so that a verdict changes its own
//! item's rows and no others, and what was done again later counts as it came out then. It keeps no event.

use std::collections::{BTreeMap, HashMap};

use convoke_kernel::{
    AgentId, CallState, Checked, Citation, Finding, ItemResult, RunId, Verdict, Vote, VoterResult,
};
use serde_json::Value;

use super::labels::{body, line, name, place};
use super::rows::{FindingRow, VerdictWord};
use crate::found::{own_name, reported};
use crate::place::FilePosition;

/// What is said of a finding that waits.
const PENDING: &str = "not judged yet";
/// What is said of a finding that will not be judged any more.
const LEFT: &str = "the run stopped before it was judged";

/// Where findings came from: the number of the run, and the item or call in it.
pub(super) type Source = (usize, u32);

/// All findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    rows: BTreeMap<Source, Vec<FindingRow>>,
    /// For every subtask: the last run in which it was done, and where its findings are.
    done: HashMap<String, usize>,
    sources: HashMap<String, Vec<Source>>,
}

impl Findings {
    /// All rows, in the order of their runs.
    pub(super) fn iter(&self) -> impl Iterator<Item = &FindingRow> {
        self.rows.values().flatten()
    }

    /// Rows from nowhere in particular.
    #[cfg(any(test, feature = "samples"))]
    pub(super) fn of(rows: Vec<FindingRow>) -> Self {
        Self { rows: BTreeMap::from([((0, 0), rows)]), ..Self::default() }
    }

    /// An item has its result; what an earlier run found for the same subtask does not count any more.
    pub(super) fn report(&mut self, source: Source, run: &RunId, subtask: &str, result: &ItemResult) {
        if result.status == convoke_kernel::ItemStatus::Ok {
            let last = self.done.entry(subtask.to_owned()).or_insert(source.0);
            *last = source.0.max(*last);
        }
        let last = self.done.get(subtask).copied().unwrap_or(0);
        for old in self.sources.get(subtask).into_iter().flatten().filter(|old| old.0 < last) {
            self.rows.remove(old);
        }
        let found = reported(result);
        if found.is_empty() || source.0 < last {
            return;
        }
        let label = name(subtask);
        let rows = found.iter().map(|finding| row(run, &label, result.agent.clone(), finding)).collect();
        self.rows.insert(source, rows);
        self.sources.entry(subtask.to_owned()).or_default().push(source);
    }

    /// The citations of an item's findings were compared.
    pub(super) fn checked(&mut self, source: Source, checks: &[Vec<Checked>]) {
        for (row, checks) in self.rows.get_mut(&source).into_iter().flatten().zip(checks) {
            for (number, check) in (1..).zip(checks) {
                let said = match check {
                    Checked::Holds => "holds".to_owned(),
                    Checked::Fails(why) => format!("fails: {}", line(why)),
                    Checked::CannotTell(why) => format!("cannot be compared: {}", line(why)),
                };
                row.reason.push_str(&format!("\ncitation {number} {said}"));
            }
        }
    }

    /// A verifier of an item is done.
    pub(super) fn voted(&mut self, source: Source, voter: u32, result: &VoterResult) {
        for (number, row) in (1..).zip(self.rows.get_mut(&source).into_iter().flatten()) {
            let votes = result.ballot.as_ref().filter(|_| result.failure.is_none());
            let vote = votes.and_then(|ballot| ballot.verdicts.iter().find(|vote| vote.finding == number));
            let said = match (vote, &result.failure) {
                (Some(vote), _) => format!("{}: {}", vote_word(vote.verdict), line(&vote.evidence)),
                (None, Some(why)) => format!("could not look: {}", line(why)),
                (None, None) => "did not judge it".to_owned(),
            };
            row.reason.push_str(&format!("\nverifier {voter} {said}"));
        }
    }

    /// An item's findings have their verdicts.
    pub(super) fn judged(&mut self, source: Source, verdicts: &[Verdict]) {
        for (row, verdict) in self.rows.get_mut(&source).into_iter().flatten().zip(verdicts) {
            (row.verdict, row.reason) = judgement(verdict);
        }
    }

    /// A program had a finding judged, or wants it judged.
    pub(super) fn call(&mut self, source: Source, run: &RunId, call: &CallState) {
        let Some(mut row) = claimed(run, call) else { return };
        if let Some(result) = &call.result {
            let told = result.answer.verdict();
            // A failure is no verdict.
            let lost = || (VerdictWord::Unverified, body(&call.why_lost()));
            (row.verdict, row.reason) = told.as_ref().map_or_else(lost, judgement);
            row.agent = result.agents.first().cloned();
        }
        self.rows.insert(source, vec![row]);
    }

    /// A run is over: what it left unjudged will not be judged any more.
    pub(super) fn close(&mut self, run: usize) {
        let rows = self.rows.range_mut((run, 0)..=(run, u32::MAX)).flat_map(|(_, rows)| rows);
        for row in rows.filter(|row| row.reason == PENDING) {
            row.reason = LEFT.to_owned();
        }
    }

    /// What a run found does not count any more.
    pub(super) fn forget(&mut self, run: usize) {
        let sources: Vec<Source> =
            self.rows.range((run, 0)..=(run, u32::MAX)).map(|(source, _)| *source).collect();
        for source in sources {
            self.rows.remove(&source);
        }
    }
}

fn row(run: &RunId, label: &str, agent: Option<AgentId>, finding: &Finding) -> FindingRow {
    FindingRow {
        run: run.clone(),
        label: label.to_owned(),
        agent,
        severity: finding.severity,
        verdict: VerdictWord::Unverified,
        claim: line(&finding.claim),
        evidence: evidence(finding),
        reason: PENDING.to_owned(),
        places: finding.citations.iter().filter_map(cited).collect(),
    }
}

/// What a finding rests on: its words, and what it quotes from where.
fn evidence(finding: &Finding) -> String {
    // A claim of several lines is whole here, because its row shows one.
    let whole = Some(finding.claim.trim()).filter(|claim| claim.contains('\n')).map(body);
    let own = Some(body(finding.evidence.trim_start())).filter(|text| !text.is_empty());
    let quotes = finding.citations.iter().filter_map(|citation| {
        let quote = citation.quote.as_deref().filter(|quote| !quote.trim().is_empty())?;
        let lines: String = body(quote).lines().map(|line| format!("\n> {line}")).collect();
        Some(format!("{}{lines}", line(&cited_words(citation))))
    });
    whole.into_iter().chain(own).chain(quotes).collect::<Vec<_>>().join("\n")
}

fn cited_words(citation: &Citation) -> String {
    match (&citation.path, citation.first, citation.last, &citation.command) {
        (Some(path), Some(first), Some(last), _) if last > first => format!("{path}:{first}-{last}"),
        (Some(path), Some(first), _, _) => format!("{path}:{first}"),
        (Some(path), None, _, _) => path.clone(),
        (None, _, _, Some(command)) => format!("$ {command}"),
        (None, _, _, None) => "(no place)".to_owned(),
    }
}

fn cited(citation: &Citation) -> Option<FilePosition> {
    place(citation.path.as_deref()?, citation.first.map(u64::from))
}

fn judgement(verdict: &Verdict) -> (VerdictWord, String) {
    match verdict {
        Verdict::Confirmed { evidence } => (VerdictWord::Confirmed, body(evidence)),
        Verdict::Refuted { evidence } => (VerdictWord::Refuted, body(evidence)),
        Verdict::Uncertain { reason } => (VerdictWord::Uncertain, body(reason)),
        Verdict::Unverified { reason } => (VerdictWord::Unverified, body(reason)),
    }
}

fn vote_word(vote: Vote) -> &'static str {
    match vote {
        Vote::Confirmed => "confirms",
        Vote::Refuted => "refutes",
        Vote::Undecided => "cannot say",
    }
}

/// What a program claims, with the place that it names as it is opened; `None` if it claims nothing.
fn claimed(run: &RunId, call: &CallState) -> Option<FindingRow> {
    let mut finding = call.made.claim()?;
    let want: Value = serde_json::from_str(call.made.want.as_str()).ok()?;
    let told = want.get("finding")?;
    let text = |names: &[&str]| names.iter().find_map(|name| told.get(*name)?.as_str());
    // A verifier reads in the evidence what cannot be looked up; here places are places.
    finding.evidence = text(&["evidence", "detail", "details", "why"]).unwrap_or_default().to_owned();
    let mut row = row(run, &name(own_name(&call.made)), None, &finding);
    if row.places.is_empty() {
        let at = told.get("line").and_then(Value::as_u64);
        row.places.extend(text(&["path", "file"]).and_then(|path| place(path, at)));
    }
    Some(row)
}
