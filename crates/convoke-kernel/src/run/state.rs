//! Where the items of a run stand, and what may follow what. An event that cannot follow changes nothing.

use std::sync::Arc;

use super::Run;
use super::event::{ItemResult, RunEvent, VoterResult};
use super::verdict::is_worth_a_look;
use crate::citation::Checked;
use crate::findings::Verdict;
use crate::ids::AgentId;

/// An event that cannot follow the ones before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal event: {event} cannot follow while {item} is {stage}")]
pub struct IllegalRunEvent {
    /// What was to happen.
    pub event: &'static str,
    /// The run or the item it was to happen to.
    pub item: String,
    /// Where that stood.
    pub stage: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Queued,
    Working,
    Checking,
    Verifying,
    /// Nothing is missing but the verdicts, which follow in the same decision.
    Judging,
    Judged,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Voter {
    Waiting,
    Looking(AgentId),
    Done(VoterResult),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) stage: Stage,
    pub(super) worker: Option<AgentId>,
    pub(super) result: Option<ItemResult>,
    pub(super) checks: Vec<Vec<Checked>>,
    pub(super) voters: Vec<Voter>,
    pub(super) verdicts: Vec<Verdict>,
    /// Verifiers that were started; a verifier whose vote was taken from elsewhere is none.
    pub(super) verifiers: u32,
}

impl Item {
    fn queued() -> Self {
        let checks = Vec::new();
        let voters = Vec::new();
        let verdicts = Vec::new();
        Self { stage: Stage::Queued, worker: None, result: None, checks, voters, verdicts, verifiers: 0 }
    }

    pub(super) fn votes(&self) -> Vec<&VoterResult> {
        let done = self.voters.iter().filter_map(|voter| match voter {
            Voter::Done(result) => Some(result),
            Voter::Waiting | Voter::Looking(_) => None,
        });
        done.collect()
    }

    /// The number of findings, if they wait for a comparison and cite nothing.
    pub(super) fn nothing_to_compare(&self) -> Option<usize> {
        let cited = self.cited().filter(|_| self.stage == Stage::Checking)?;
        cited.iter().all(|count| *count == 0).then_some(cited.len())
    }

    /// For every finding, how many citations it has.
    fn cited(&self) -> Option<Vec<usize>> {
        let report = self.result.as_ref()?.report.as_ref()?;
        Some(report.findings.iter().map(|finding| finding.citations.len()).collect())
    }

    fn fits(&self, checks: &[Vec<Checked>]) -> bool {
        self.cited().is_some_and(|cited| cited.iter().copied().eq(checks.iter().map(Vec::len)))
    }
}

pub(super) fn apply(run: &mut Run, event: &RunEvent, at: u64) -> Result<(), IllegalRunEvent> {
    let of_the_run = |stage| IllegalRunEvent { event: event.kind(), item: "the run".to_owned(), stage };
    if let RunEvent::RunStarted(e) = event {
        if run.spec.is_some() {
            return Err(of_the_run("started already"));
        }
        run.items = e.spec.subtasks.iter().map(|_| Arc::new(Item::queued())).collect();
        run.spec = Some(Arc::new(e.spec.clone()));
        run.started_at = at;
        return Ok(());
    }
    let Some(voters) = run.spec.as_ref().map(|spec| spec.voters) else {
        return Err(of_the_run("not started"));
    };
    if run.closed_at.is_some() {
        return Err(of_the_run("closed"));
    }
    match event {
        RunEvent::RunStarted(_) => Ok(()),
        RunEvent::RunClosed(_) if run.items.iter().all(|item| item.stage == Stage::Judged) => {
            run.closed_at = Some(at);
            Ok(())
        }
        RunEvent::RunClosed(_) => Err(of_the_run("unfinished")),
        RunEvent::WorkerStarted(e) => change(run, event, e.item, |item| match item.stage {
            Stage::Queued => {
                item.worker = Some(e.agent.clone());
                item.stage = Stage::Working;
                true
            }
            _ => false,
        }),
        RunEvent::ItemEnded(e) => change(run, event, e.item, |item| match item.stage {
            Stage::Queued | Stage::Working => {
                item.stage = if is_worth_a_look(&e.result) { Stage::Checking } else { Stage::Judging };
                item.result = Some(e.result.clone());
                true
            }
            _ => false,
        }),
        RunEvent::CitationsChecked(e) => change(run, event, e.item, |item| match item.stage {
            Stage::Checking if item.fits(&e.checks) => {
                item.checks = e.checks.clone();
                item.voters = (0..voters).map(|_| Voter::Waiting).collect();
                item.stage = if voters == 0 { Stage::Judging } else { Stage::Verifying };
                true
            }
            _ => false,
        }),
        RunEvent::VerifierStarted(e) => change(run, event, e.item, |item| match voter(item, e.voter) {
            Some(state @ Voter::Waiting) => {
                *state = Voter::Looking(e.agent.clone());
                item.verifiers += 1;
                true
            }
            _ => false,
        }),
        RunEvent::VerifierEnded(e) => change(run, event, e.item, |item| match voter(item, e.voter) {
            Some(state @ (Voter::Waiting | Voter::Looking(_))) => {
                *state = Voter::Done(e.result.clone());
                if item.voters.iter().all(|voter| matches!(voter, Voter::Done(_))) {
                    item.stage = Stage::Judging;
                }
                true
            }
            _ => false,
        }),
        RunEvent::ItemJudged(e) => change(run, event, e.item, |item| {
            let findings = item.result.as_ref().map_or(0, ItemResult::findings);
            let fits = item.stage == Stage::Judging && findings == e.verdicts.len();
            if fits {
                item.verdicts = e.verdicts.clone();
                item.stage = Stage::Judged;
            }
            fits
        }),
    }
}

fn voter(item: &mut Item, number: u32) -> Option<&mut Voter> {
    item.voters.get_mut(number.checked_sub(1)? as usize)
}

/// Changes one item; `how` says whether the event may happen to it, and changes nothing if not.
fn change(
    run: &mut Run,
    event: &RunEvent,
    number: u32,
    how: impl FnOnce(&mut Item) -> bool,
) -> Result<(), IllegalRunEvent> {
    let illegal = |stage| IllegalRunEvent { event: event.kind(), item: format!("item {number}"), stage };
    let Some(item) = number.checked_sub(1).and_then(|at| run.items.get_mut(at as usize)) else {
        return Err(illegal("not there"));
    };
    let stage = item.stage;
    if how(Arc::make_mut(item)) {
        return Ok(());
    }
    Err(illegal(match stage {
        Stage::Queued => "queued",
        Stage::Working => "worked on",
        Stage::Checking => "checked",
        Stage::Verifying => "verified",
        Stage::Judging => "judged",
        Stage::Judged => "done",
    }))
}
