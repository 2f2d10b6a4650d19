//! What of a session's fan-outs was lost: subtasks without a result, verifications that no verifier could do,
//! calls of programs that did not end well. One list for reports, listings, the exit code and the retry. It
//! reads folded runs and decides nothing else.

use std::collections::HashMap;

use crate::ids::AgentId;
use crate::program::{CallState, Program, ProgramStatus};
use crate::run::{ItemStatus, ItemView, Run, VoterResult};
use crate::wire::FailureKind;

/// What kind of work was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LostWork {
    /// A subtask of a flat workflow.
    Subtask,
    /// The verification of a subtask's findings, which are unverified for that reason.
    Verification,
    /// A call of a program.
    Call,
}

impl LostWork {
    /// The word in data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Subtask => "subtask",
            Self::Verification => "verification",
            Self::Call => "call",
        }
    }
}

/// A piece of work that was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// What it is.
    pub what: LostWork,
    /// The workflow's run.
    pub run: String,
    /// The subtask or the call, from 1.
    pub item: u32,
    /// The subtask, word for word; of a call its label.
    pub prompt: String,
    /// What people call it.
    pub label: String,
    /// The agent that was at it; `None` if none was begun.
    pub agent: Option<AgentId>,
    /// The kind of failure.
    pub kind: FailureKind,
    /// What happened, for people.
    pub reason: String,
}

impl Lost {
    /// Whether it was left out because the budget had no room for it.
    pub fn is_short(&self) -> bool {
        self.kind == FailureKind::Budget
    }
}

/// What these flat workflows of one session lost, which are in the order they were started. `failure` says
/// how an agent failed. A subtask that has a whole result in any of them is not lost, whatever became of an
/// equal one; of several equal ones that are lost the last counts.
pub fn lost_items(runs: &[Run], failure: impl Fn(&AgentId) -> Option<FailureKind>) -> Vec<Lost> {
    let mut all: Vec<Lost> = Vec::new();
    let mut whole: Vec<String> = Vec::new();
    for run in runs {
        let Some(spec) = run.spec() else { continue };
        for item in run.items() {
            match of_item(run, &spec.run, &item, &failure) {
                Some(lost) => {
                    all.retain(|before| before.prompt != lost.prompt);
                    all.push(lost);
                }
                None if item.result == Some(ItemStatus::Ok) => whole.push(item.prompt),
                None => {}
            }
        }
    }
    all.retain(|lost| !whole.contains(&lost.prompt));
    all
}

fn of_item(
    run: &Run,
    id: &str,
    item: &ItemView,
    failure: impl Fn(&AgentId) -> Option<FailureKind>,
) -> Option<Lost> {
    let worker =
        run.result(item.item).and_then(|result| result.agent.clone()).or_else(|| item.worker.clone());
    let (what, agent, kind, reason) = match item.result.as_ref()? {
        ItemStatus::Failed { kind, message } => (LostWork::Subtask, worker, *kind, message.clone()),
        ItemStatus::Skipped { reason } => (LostWork::Subtask, worker, skipped(reason), reason.clone()),
        ItemStatus::Ok => {
            let votes = run.votes(item.item);
            let blind = |vote: &&&VoterResult| vote.failure.is_some();
            let vote = votes.iter().find(blind).filter(|_| item.findings.unverified > 0)?;
            let reason = vote.failure.clone().unwrap_or_default();
            let kind = match &vote.agent {
                // One that ended by itself and judged nothing has given a reply that cannot be used.
                Some(agent) => failure(agent).unwrap_or(FailureKind::InvalidOutput),
                None => skipped(&reason),
            };
            (LostWork::Verification, vote.agent.clone(), kind, reason)
        }
    };
    let run = id.to_owned();
    let prompt = item.prompt.clone();
    let label = item.label.clone();
    Some(Lost { what, run, item: item.item, prompt, label, agent, kind, reason })
}

/// Why work was never begun: a person stopped it, or there was no room for it.
fn skipped(reason: &str) -> FailureKind {
    if reason.starts_with("stopped by") { FailureKind::Cancelled } else { FailureKind::Budget }
}

/// What a program that has ended lost.
pub fn lost_calls(program: &Program) -> Vec<Lost> {
    let Some(spec) = program.spec().filter(|_| program.status().is_some()) else { return Vec::new() };
    let lost = |call: &CallState| {
        let result = call.result.as_ref();
        let kind = match result.map(|result| &result.status) {
            Some(ItemStatus::Failed { kind, .. }) => *kind,
            // A call is skipped by a person, or because the program returned before it began; one without
            // room has failed.
            Some(ItemStatus::Skipped { .. }) => FailureKind::Cancelled,
            Some(ItemStatus::Ok) => FailureKind::InvalidOutput,
            None => FailureKind::Interrupted,
        };
        Lost {
            what: LostWork::Call,
            run: spec.run.clone(),
            item: call.made.call,
            prompt: call.made.label.clone(),
            label: call.made.label.clone(),
            agent: result.and_then(|result| result.agents.first().cloned()),
            kind,
            reason: call.why_lost(),
        }
    };
    program.losses().into_iter().map(lost).collect()
}

/// The programs, in the order they were started, that no later run replaces. A later run replaces an earlier
/// one if it serves that one's results, or if the person ran both and the later one begins anew.
pub fn standing(programs: &[Program]) -> Vec<&Program> {
    let is_taken_up = |program: &Program, later: &Program| match (program.spec(), later.spec()) {
        (Some(spec), Some(later)) => {
            later.from.as_ref() == Some(&spec.run)
                || (!spec.background && !later.background && later.from.is_none())
        }
        _ => false,
    };
    let stands = |(at, program): &(usize, &Program)| {
        !programs[at + 1..].iter().any(|later| is_taken_up(program, later))
    };
    programs.iter().enumerate().filter(stands).map(|(_, program)| program).collect()
}

/// For each of these flat workflows, which are in the order they were started, the items of it that count. An
/// item whose subtask has a whole result in a later one counts as it came out there.
pub fn standing_items(runs: &[Run]) -> Vec<Vec<ItemView>> {
    let mut items: Vec<Vec<ItemView>> = runs.iter().map(Run::items).collect();
    let mut last: HashMap<String, usize> = HashMap::new();
    for (at, items) in items.iter().enumerate() {
        let whole = items.iter().filter(|item| item.result == Some(ItemStatus::Ok));
        last.extend(whole.map(|item| (item.prompt.clone(), at)));
    }
    for (at, items) in items.iter_mut().enumerate() {
        items.retain(|item| last.get(&item.prompt).is_none_or(|last| *last <= at));
    }
    items
}

/// How many programs of a lead's failed by themselves. One that failed before another completed was an
/// attempt, and the lead has done better since.
pub fn failed_programs(programs: &[Program]) -> u32 {
    let after = programs.iter().rposition(|program| program.status() == Some(ProgramStatus::Complete));
    let later = &programs[after.map_or(0, |at| at + 1)..];
    let failed = |program: &&&Program| {
        program.status() == Some(ProgramStatus::Failed) && program.spec().is_some_and(|spec| spec.background)
    };
    standing(later).iter().filter(failed).count().try_into().unwrap_or(u32::MAX)
}
