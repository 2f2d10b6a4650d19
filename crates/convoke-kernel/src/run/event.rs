//! What has happened to a run, in the past tense, and the data it carries: the format of the run's stream.
//! Events are for ever: variants are never removed, and new members are optional.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::Summary;
use crate::citation::Checked;
use crate::event::events;
use crate::findings::{Ballot, Report, Verdict};
use crate::ids::{AgentId, SessionId};
use crate::wire::{FailureKind, Usage};

events! {
    /// Something that has happened to a run.
    enum RunEvent;

    /// The run exists, and this is what it is made of.
    RunStarted = "run_started" {
        /// Everything that stays the same for the run's life.
        spec: RunSpec,
    }
    /// An item has its worker.
    WorkerStarted = "worker_started" {
        /// The item, from 1.
        item: u32,
        /// The worker.
        agent: AgentId,
    }
    /// An item has its result, wherever that came from.
    ItemEnded = "item_ended" {
        /// The item.
        item: u32,
        /// What it came to.
        result: ItemResult,
    }
    /// The citations of an item's findings were compared with what stands there.
    CitationsChecked = "citations_checked" {
        /// The item.
        item: u32,
        /// For every finding, for every one of its citations.
        checks: Vec<Vec<Checked>>,
    }
    /// A voter has its verifier.
    VerifierStarted = "verifier_started" {
        /// The item.
        item: u32,
        /// The voter, from 1.
        voter: u32,
        /// The verifier.
        agent: AgentId,
    }
    /// A voter is done, whether it could look or not.
    VerifierEnded = "verifier_ended" {
        /// The item.
        item: u32,
        /// The voter.
        voter: u32,
        /// What it came to.
        result: VoterResult,
    }
    /// An item is done, and every finding of it has its verdict.
    ItemJudged = "item_judged" {
        /// The item.
        item: u32,
        /// For every finding.
        verdicts: Vec<Verdict>,
    }
    /// Every item is done.
    RunClosed = "run_closed" {}
}

/// What a run is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The run's id, `wf_…`.
    pub run: String,
    /// The session it belongs to.
    pub session: SessionId,
    /// The agent that called `Workflow`.
    pub lead: AgentId,
    /// The call.
    pub call: String,
    /// The directory.
    pub dir: String,
    /// The fingerprint of the directory at the start.
    pub base: String,
    /// Verifiers for every result that has findings; 0 means that verification is off.
    pub voters: u32,
    /// The subtasks, one item each.
    pub subtasks: Vec<String>,
    /// The content keys of the items' results.
    pub keys: Vec<String>,
    /// What was changed or left out when the subtasks were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Subtasks beyond the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// What the person's consent rests on.
    pub consent: String,
}

/// How an item ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ItemStatus {
    /// The worker reported.
    Ok,
    /// It did not, or only in part.
    Failed {
        /// The kind, for programs.
        kind: FailureKind,
        /// What happened and what to do, for people.
        message: String,
    },
    /// It was never started.
    Skipped {
        /// Why not.
        reason: String,
    },
}

/// Where a result was taken from instead of being worked out again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reused {
    /// The session that paid for it.
    pub session: String,
    /// When it was recorded.
    pub at: u64,
}

/// What an agent took to come to its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Requests to the model, repeats left out.
    #[serde(default)]
    pub calls: u32,
    /// Turns.
    #[serde(default)]
    pub turns: u32,
    /// Commands run.
    #[serde(default)]
    pub commands: u32,
    /// Tokens.
    #[serde(default)]
    pub usage: Usage,
    /// Nano-dollars; absent when a price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nano: Option<u64>,
}

impl Default for Spent {
    /// Nothing, and it is known that it cost nothing.
    fn default() -> Self {
        Self { calls: 0, turns: 0, commands: 0, usage: Usage::default(), cost_nano: Some(0) }
    }
}

impl From<&Summary> for Spent {
    fn from(summary: &Summary) -> Self {
        let Summary { calls, turns, commands, usage, cost_nano, .. } = *summary;
        Self { calls, turns, commands, usage, cost_nano }
    }
}

/// What an item came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemResult {
    /// How it ended.
    #[serde(flatten)]
    pub status: ItemStatus,
    /// The report, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// What the worker said beside its report; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Why the result is worth less than it looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// The worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Where it was taken from; absent when it was worked out here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Reused>,
    /// What that took.
    #[serde(flatten)]
    pub spent: Spent,
    /// Files that changed while the worker was at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The files that had changed since the run's start when it ended, by any process, with their digests;
    /// `None` for a file that is gone. The worker saw a directory in this state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, Option<String>>,
}

impl ItemResult {
    /// A result that has nothing but its status.
    pub fn bare(status: ItemStatus) -> Self {
        Self {
            status,
            report: None,
            text: String::new(),
            degraded: None,
            agent: None,
            reused: None,
            spent: Spent::default(),
            changed: Vec::new(),
            changes: BTreeMap::new(),
        }
    }

    /// Whether it may be taken for an equal item of another run: it is whole, and worth what it looks.
    pub fn is_sound(&self) -> bool {
        self.status == ItemStatus::Ok && self.degraded.is_none()
    }

    /// How many findings it has.
    pub fn findings(&self) -> usize {
        self.report.as_ref().map_or(0, |report| report.findings.len())
    }
}

/// What a voter came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoterResult {
    /// Its votes, if it gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ballot: Option<Ballot>,
    /// Why it could not look. Its votes count only if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The verifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Where it was taken from; absent when it was worked out here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Reused>,
    /// What that took.
    #[serde(flatten)]
    pub spent: Spent,
}
