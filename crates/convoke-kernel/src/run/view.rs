//! What reports, listings and the live tree show of a run. Reads, and decides nothing.

use serde::{Deserialize, Serialize};

use super::Run;
use super::event::{ItemStatus, Reused, Spent};
use super::state::{Item, Stage, Voter};
use super::untrusted::one_line;
use crate::findings::Verdict;
use crate::ids::{AgentId, SessionId};
use crate::wire::Usage;

/// Columns of an item's label.
const LABEL_COLUMNS: usize = 60;

/// Where an item stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// It waits for a worker.
    Queued,
    /// A worker is at it.
    Working,
    /// Its citations are being compared.
    Checking,
    /// Verifiers are at it.
    Verifying,
    /// It is done.
    Done,
}

/// Findings by what has become of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictCounts {
    /// Looked up, and they hold.
    pub confirmed: u32,
    /// Looked up, and they do not.
    pub refuted: u32,
    /// Votes or citations leave it open.
    pub uncertain: u32,
    /// No verifier could look.
    pub unverified: u32,
}

impl VerdictCounts {
    pub(super) fn of(verdicts: &[Verdict]) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            match verdict {
                Verdict::Confirmed { .. } => counts.confirmed += 1,
                Verdict::Refuted { .. } => counts.refuted += 1,
                Verdict::Uncertain { .. } => counts.uncertain += 1,
                Verdict::Unverified { .. } => counts.unverified += 1,
            }
        }
        counts
    }

    fn add(&mut self, other: Self) {
        self.confirmed += other.confirmed;
        self.refuted += other.refuted;
        self.uncertain += other.uncertain;
        self.unverified += other.unverified;
    }

    /// All of them.
    pub fn total(&self) -> u32 {
        self.confirmed + self.refuted + self.uncertain + self.unverified
    }
}

/// A run in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunCounts {
    /// Items.
    pub items: u32,
    /// Items that wait for a worker.
    pub queued: u32,
    /// Items that a worker is at.
    pub working: u32,
    /// Items that are checked or verified.
    pub verifying: u32,
    /// Items that are done.
    pub done: u32,
    /// Items with a sound result.
    pub ok: u32,
    /// Items with a degraded result.
    pub degraded: u32,
    /// Items that failed.
    pub failed: u32,
    /// Items that were never started.
    pub skipped: u32,
    /// Workers that were started.
    pub workers: u32,
    /// Verifiers that were started.
    pub verifiers: u32,
    /// Item results that were taken from elsewhere.
    pub reused: u32,
    /// Votes that were taken from elsewhere.
    pub reused_votes: u32,
    /// The findings of judged items.
    pub findings: VerdictCounts,
}

/// What is shown of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemView {
    /// Its number, from 1.
    pub item: u32,
    /// The subtask.
    pub prompt: String,
    /// The subtask's first line, cut to fit a line of a terminal.
    pub label: String,
    /// Where it stands.
    pub state: ItemState,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ItemStatus>,
    /// Why its result is worth less than it looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// Where its result was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Reused>,
    /// Its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<AgentId>,
    /// Its verifiers, as far as they were started here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verifiers: Vec<AgentId>,
    /// Its findings by verdict; all zero until it is judged.
    pub findings: VerdictCounts,
    /// Files its worker changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// One row of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub run: String,
    /// Its session.
    pub session: SessionId,
    /// The agent that called for it.
    pub lead: AgentId,
    /// The directory.
    pub dir: String,
    /// Verifiers for every result.
    pub voters: u32,
    /// When it started.
    pub started_at: u64,
    /// When the last item was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<u64>,
    /// The numbers.
    pub counts: RunCounts,
    /// Tokens of its workers and verifiers that have ended; what was taken from elsewhere is not paid again.
    pub usage: Usage,
    /// Nano-dollars; absent when a price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nano: Option<u64>,
}

impl Run {
    /// The run in numbers.
    pub fn counts(&self) -> RunCounts {
        let mut counts = RunCounts::default();
        for item in &self.items {
            counts.items += 1;
            *match state(item) {
                ItemState::Queued => &mut counts.queued,
                ItemState::Working => &mut counts.working,
                ItemState::Checking | ItemState::Verifying => &mut counts.verifying,
                ItemState::Done => &mut counts.done,
            } += 1;
            counts.workers += u32::from(item.worker.is_some());
            counts.verifiers += item.verifiers;
            counts.reused_votes +=
                item.votes().iter().map(|vote| u32::from(vote.reused.is_some())).sum::<u32>();
            counts.findings.add(VerdictCounts::of(&item.verdicts));
            let Some(result) = &item.result else { continue };
            counts.reused += u32::from(result.reused.is_some());
            *match (&result.status, &result.degraded) {
                (ItemStatus::Ok, None) => &mut counts.ok,
                (ItemStatus::Ok, Some(_)) => &mut counts.degraded,
                (ItemStatus::Failed { .. }, _) => &mut counts.failed,
                (ItemStatus::Skipped { .. }, _) => &mut counts.skipped,
            } += 1;
        }
        counts
    }

    /// The items, in order.
    pub fn items(&self) -> Vec<ItemView> {
        let prompts = self.spec.iter().flat_map(|spec| &spec.subtasks);
        let views = (1..).zip(prompts).zip(&self.items).map(|((number, prompt), item)| {
            let result = item.result.as_ref();
            ItemView {
                item: number,
                prompt: prompt.clone(),
                label: label(prompt),
                state: state(item),
                result: result.map(|result| result.status.clone()),
                degraded: result.and_then(|result| result.degraded.clone()),
                reused: result.and_then(|result| result.reused.clone()),
                worker: item.worker.clone(),
                verifiers: item.voters.iter().filter_map(verifier).collect(),
                findings: VerdictCounts::of(&item.verdicts),
                changed: result.map(|result| result.changed.clone()).unwrap_or_default(),
            }
        });
        views.collect()
    }

    /// The run's row in a listing; `None` before it started.
    pub fn summary(&self) -> Option<RunSummary> {
        let spec = self.spec.as_ref()?;
        let mut usage = Usage::default();
        let mut cost_nano = Some(0u64);
        let mut add = |spent: &Spent| {
            usage.add(&spent.usage);
            cost_nano = cost_nano.zip(spent.cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
        };
        for item in &self.items {
            if let Some(result) = item.result.as_ref().filter(|result| result.reused.is_none()) {
                add(&result.spent);
            }
            for vote in item.votes().iter().filter(|vote| vote.reused.is_none()) {
                add(&vote.spent);
            }
        }
        Some(RunSummary {
            run: spec.run.clone(),
            session: spec.session.clone(),
            lead: spec.lead.clone(),
            dir: spec.dir.clone(),
            voters: spec.voters,
            started_at: self.started_at,
            closed_at: self.closed_at,
            counts: self.counts(),
            usage,
            cost_nano,
        })
    }
}

fn verifier(voter: &Voter) -> Option<AgentId> {
    match voter {
        Voter::Waiting => None,
        Voter::Looking(agent) => Some(agent.clone()),
        Voter::Done(result) => result.agent.clone().filter(|_| result.reused.is_none()),
    }
}

pub(super) fn state(item: &Item) -> ItemState {
    match item.stage {
        Stage::Queued => ItemState::Queued,
        Stage::Working => ItemState::Working,
        Stage::Checking => ItemState::Checking,
        Stage::Verifying | Stage::Judging => ItemState::Verifying,
        Stage::Judged => ItemState::Done,
    }
}

/// What people call an agent with this prompt: its first line, cut to fit a line of a terminal.
pub fn label(prompt: &str) -> String {
    cut_line(prompt, LABEL_COLUMNS)
}

/// The first line that says something, safe to print, cut at this many columns of a terminal.
pub(super) fn cut_line(text: &str, columns: usize) -> String {
    let line = one_line(text.trim().lines().next().unwrap_or_default());
    let mut used = 0;
    let mut cut = String::new();
    for c in line.chars() {
        used += width(c);
        if used > columns {
            // The mark takes a column of its own, and a wide character may have left one over.
            while cut.chars().map(width).sum::<usize>() + 1 > columns {
                cut.pop();
            }
            cut.push('…');
            return cut;
        }
        cut.push(c);
    }
    cut
}

/// Columns a character takes, near enough for a label: scripts and signs that terminals draw double.
fn width(c: char) -> usize {
    match c as u32 {
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F => 2,
        0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}
