//! What the agents below a lead did, gathered from the journal for the report: findings with what became of them, agents
//! by outcome, subtasks nobody reached, what was not new, and what all of it cost. It reads; it changes nothing.

mod agents;
mod losses;
mod verified;

pub(crate) use agents::role;
pub(crate) use losses::Losses;

use std::collections::HashMap;

use convoke_claude::Models;
use convoke_journal::{Journal, StreamId};
use convoke_kernel::{
    self as kernel, ItemState, ItemStatus, ItemView, Ledger, Program, ProgramEvent, Reused, RunEvent, SessionId, Usage,
    VoterResult,
};

use crate::catalog::{Catalog, Entry, Run};
use crate::failure::Failure;
use crate::report::{Agent, Cache, Citation, Finding, Severity, Skipped, Spend, Verdict};
use crate::reuse::reuse_line;
use crate::settings::Settings;

/// What the agents below the lead did, and what was spent on all of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    pub(crate) findings: Vec<Finding>,
    /// Without the lead.
    pub(crate) agents: Vec<Agent>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) notes: Vec<String>,
    /// What the agents below the lead used.
    pub(crate) below: Used,
    /// What the ledger says; `None` takes the figures of the agents.
    pub(crate) spend: Option<Spend>,
    /// What the cache did for all agents; `None` takes the lead's own figures.
    pub(crate) cache: Option<Cache>,
    /// What was lost and not done later either.
    pub(crate) losses: Losses,
    /// The programs' runs, in the order they were started.
    pub(crate) programs: Vec<Program>,
}

/// What agents used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) usage: Usage,
    /// `None` where a price is not known.
    pub(crate) cost_nano: Option<u64>,
    pub(crate) turns: u32,
    pub(crate) commands: u32,
}

impl Default for Used {
    fn default() -> Self {
        Self { usage: Usage::default(), cost_nano: Some(0), turns: 0, commands: 0 }
    }
}

impl Used {
    /// What these agents used.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut used = Self::default();
        for Entry { summary, .. } in entries {
            let Used { usage, cost_nano, turns, commands } = &mut used;
            usage.add(&summary.usage);
            *cost_nano = cost_nano.zip(summary.cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
            *turns = turns.saturating_add(summary.turns);
            *commands = commands.saturating_add(summary.commands);
        }
        used
    }

    /// All tokens, in and out.
    pub(crate) fn tokens(&self) -> u64 {
        self.usage.prompt_tokens().saturating_add(self.usage.output_tokens)
    }
}

impl Work {
    /// Gathers what a session did.
    pub(crate) async fn of_session(
        settings: &Settings,
        journal: &Journal,
        session: &SessionId,
        now: u64,
    ) -> Result<Self, Failure> {
        let catalog = Catalog::load(settings, Some(journal)).await?;
        Self::of_run(settings, journal, catalog.find(session.as_str())?, now).await
    }

    /// Gathers what a run of the catalog did.
    pub(crate) async fn of_run(settings: &Settings, journal: &Journal, run: &Run, now: u64) -> Result<Self, Failure> {
        let mut flows = Vec::new();
        for summary in &run.workflows {
            flows.push(flow(journal, &summary.run).await?);
        }
        let mut programs = Vec::new();
        for summary in &run.programs {
            programs.push(program(journal, &summary.run).await?);
        }
        let ledger = ledger(journal, run).await?;
        let mut work = Self::new(run, &flows, ledger.as_ref(), &settings.models, now);
        work.agents = agents::agents(run, &flows, &programs);
        work.findings.extend(verified::findings(&programs));
        work.losses = Losses::of(run, &flows, &programs);
        work.programs = programs;
        Ok(work)
    }

    fn new(run: &Run, flows: &[kernel::Run], ledger: Option<&Ledger>, models: &Models, now: u64) -> Self {
        let mut work = Self { agents: agents::agents(run, flows, &[]), ..Self::default() };
        let latest = latest(flows);
        for (at, flow) in flows.iter().enumerate() {
            let Some(spec) = flow.spec() else { continue };
            for item in flow.items() {
                // What was done again later counts as it came out then.
                if latest.get(&item.prompt).is_some_and(|later| *later > at) {
                    continue;
                }
                work.findings.extend(findings(flow, &spec.run, &item));
                work.skipped.extend(skipped(&spec.run, &item));
            }
            work.skipped.extend(spec.dropped.iter().map(|subtask| Skipped {
                run: Some(spec.run.clone()),
                item: None,
                label: subtask.clone(),
                reason: "beyond the most subtasks of one workflow".to_owned(),
            }));
            work.notes.extend(spec.notes.iter().map(|note| plain(note)));
            work.notes.extend(reuse(flow, run.session.as_str(), now));
        }
        let all = Used::of(&run.agents);
        work.below = Used::of(run.agents.iter().skip(1));
        work.spend = ledger.filter(|ledger| ledger.count() > 0).map(|ledger| spend(ledger, &all, now));
        work.cache = Some(cache(run, models));
        work.losses = Losses::of(run, flows, &[]);
        work
    }
}

async fn ledger(journal: &Journal, run: &Run) -> Result<Option<Ledger>, Failure> {
    let ledger = journal.shared(&StreamId::from(&run.session)).await?;
    Ok(ledger.and_then(|state| serde_json::from_str(&state).ok()))
}

/// What the ledger of a run says, without the time.
pub(crate) async fn spent(journal: &Journal, run: &Run) -> Result<Option<Spend>, Failure> {
    let all = Used::of(&run.agents);
    Ok(ledger(journal, run).await?.map(|ledger| spend(&ledger, &all, run.updated_at())))
}

/// For every subtask, the last workflow in which it was done.
fn latest(flows: &[kernel::Run]) -> HashMap<String, usize> {
    let done = |item: &ItemView| item.result == Some(ItemStatus::Ok);
    let all = flows.iter().enumerate().flat_map(|(at, flow)| flow.items().into_iter().map(move |item| (at, item)));
    all.filter(|(_, item)| done(item)).map(|(at, item)| (item.prompt, at)).collect()
}

/// A workflow's run, folded from its stream.
pub(crate) async fn flow(journal: &Journal, id: &str) -> Result<kernel::Run, Failure> {
    let bad = |seq: u64, why: String| Failure::failed(format!("event {seq} of workflow {id} cannot be read: {why}"));
    let mut run = kernel::Run::new();
    for record in journal.load(&StreamId::new(id)?, 0).await? {
        let event = RunEvent::decode(&record.event).map_err(|error| bad(record.seq, error.to_string()))?;
        run.apply(&event, record.at).map_err(|error| bad(record.seq, error.to_string()))?;
    }
    Ok(run)
}

/// A program's run, folded from its stream.
pub(crate) async fn program(journal: &Journal, id: &str) -> Result<Program, Failure> {
    let bad = |seq: u64, why: String| Failure::failed(format!("event {seq} of workflow {id} cannot be read: {why}"));
    let mut program = Program::new();
    for record in journal.load(&StreamId::new(id)?, 0).await? {
        let event = ProgramEvent::decode(&record.event).map_err(|error| bad(record.seq, error.to_string()))?;
        program.apply(&event, record.at).map_err(|error| bad(record.seq, error.to_string()))?;
    }
    Ok(program)
}

fn findings(flow: &kernel::Run, run: &str, item: &ItemView) -> Vec<Finding> {
    let Some(result) = flow.result(item.item) else { return Vec::new() };
    let Some(report) = &result.report else { return Vec::new() };
    let mut verdicts = flow.verdicts(item.item).iter();
    let finding = |finding: &kernel::Finding| {
        let (verdict, reason) = match verdicts.next() {
            Some(verdict) => judged(verdict),
            None => (Verdict::Unverified, "the run stopped before it was judged".to_owned()),
        };
        Finding {
            severity: severity(finding.severity),
            verdict,
            claim: finding.claim.clone(),
            evidence: finding.evidence.clone(),
            reason,
            citations: finding.citations.iter().map(citation).collect(),
            run: Some(run.to_owned()),
            item: Some(item.item),
            is_call: false,
            label: item.label.clone(),
            agent: result.agent.as_ref().map(ToString::to_string),
        }
    };
    report.findings.iter().map(finding).collect()
}

fn judged(verdict: &kernel::Verdict) -> (Verdict, String) {
    match verdict {
        kernel::Verdict::Confirmed { evidence } => (Verdict::Confirmed, evidence.clone()),
        kernel::Verdict::Refuted { evidence } => (Verdict::Refuted, evidence.clone()),
        kernel::Verdict::Uncertain { reason } => (Verdict::Uncertain, reason.clone()),
        kernel::Verdict::Unverified { reason } => (Verdict::Unverified, reason.clone()),
    }
}

fn severity(severity: kernel::Severity) -> Severity {
    match severity {
        kernel::Severity::Info => Severity::Info,
        kernel::Severity::Low => Severity::Low,
        kernel::Severity::Medium => Severity::Medium,
        kernel::Severity::High => Severity::High,
    }
}

fn citation(citation: &kernel::Citation) -> Citation {
    let kernel::Citation { path, first, last, command, quote } = citation.clone();
    Citation { path, first, last, command, quote }
}

fn skipped(run: &str, item: &ItemView) -> Option<Skipped> {
    let reason = match (&item.result, item.state) {
        (Some(ItemStatus::Skipped { reason }), _) => reason.clone(),
        (None, ItemState::Queued) => "the run stopped before it began".to_owned(),
        _ => return None,
    };
    Some(Skipped { run: Some(run.to_owned()), item: Some(item.item), label: item.label.clone(), reason })
}

/// A note without the brackets that set it off for the lead. What was dropped is listed among what was not run.
fn plain(note: &str) -> String {
    let first = note.lines().next().unwrap_or_default();
    first.trim().trim_start_matches("(note: ").trim_end_matches(')').to_owned()
}

fn reuse(flow: &kernel::Run, own: &str, now: u64) -> Vec<String> {
    let items = flow.items();
    let results: Vec<&Reused> = items.iter().filter_map(|item| item.reused.as_ref()).collect();
    let votes: Vec<&VoterResult> = items.iter().flat_map(|item| flow.votes(item.item)).collect();
    let verdicts: Vec<&Reused> = votes.iter().filter_map(|vote| vote.reused.as_ref()).collect();
    let lines = [
        reuse_line("results", &results, items.len(), own, now),
        reuse_line("verifications", &verdicts, votes.len(), own, now),
    ];
    lines.into_iter().flatten().collect()
}

fn spend(ledger: &Ledger, all: &Used, now: u64) -> Spend {
    let (unconfirmed, caps) = (ledger.unconfirmed(), ledger.caps());
    Spend {
        // What replies said they cost: the figure of `cost` and of the lists. What the ledger counts beside it stands apart.
        nano: all.cost_nano,
        unconfirmed_nano: unconfirmed.nano,
        cap_nano: caps.nano,
        tokens: all.tokens(),
        unconfirmed_tokens: unconfirmed.tokens,
        cap_tokens: caps.tokens,
        agents: ledger.agents(),
        cap_agents: caps.agents,
        ms: ledger.ms_used(now),
        cap_ms: caps.ms,
    }
}

/// What the cache did for all agents. Where the price of a token depends on the size of its prompt the lowest one counts,
/// so that no more is said to be saved than was.
fn cache(run: &Run, models: &Models) -> Cache {
    let usage = Used::of(&run.agents).usage;
    let saved = run.agents.iter().try_fold(0i64, |sum, Entry { summary, .. }| {
        let rates = models.get(&summary.model).prices?.rates(0)?;
        let used = &summary.usage;
        let less = |tokens: u64, rate: u64| {
            let difference = i64::try_from(rates.input).ok()?.checked_sub(i64::try_from(rate).ok()?)?;
            i64::try_from(tokens).ok()?.checked_mul(difference)
        };
        let read = less(used.cache_read_tokens, rates.cache_read)?;
        let short = less(used.cache_write_5m_tokens, rates.cache_write_5m)?;
        let long = less(used.cache_write_1h_tokens, rates.cache_write_1h)?;
        sum.checked_add(read)?.checked_add(short)?.checked_add(long)
    });
    Cache {
        read: usage.cache_read_tokens,
        written: usage.cache_write_5m_tokens.saturating_add(usage.cache_write_1h_tokens),
        fresh: usage.input_tokens,
        saved_nano: saved,
    }
}

#[cfg(test)]
mod tests;
