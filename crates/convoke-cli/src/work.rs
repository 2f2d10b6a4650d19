//! What the agents below a lead did, gathered from the journal for the report: findings with what became of
//! them, agents by outcome, subtasks that were not reached, what was not new, and what all of it cost. It
//! reads; it changes nothing.

mod agents;

use convoke_claude::Models;
use convoke_journal::{Journal, StreamId};
use convoke_kernel::{
    self as kernel, GateSight, ItemState, ItemStatus, ItemView, Ledger, Program, ProgramEvent, Reused,
    RunEvent, SessionId, VoterResult, standing_items,
};
use convoke_view::{Found, Losses, Used, found};

use crate::catalog::{Catalog, Entry, ListedSession};
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
    /// What there is for a gate to look at.
    pub(crate) sight: GateSight,
    /// The programs' runs, in the order they were started.
    pub(crate) programs: Vec<Program>,
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
        Self::of_listed(settings, journal, catalog.find(session.as_str())?, now).await
    }

    /// Gathers what a session of the catalog did.
    pub(crate) async fn of_listed(
        settings: &Settings,
        journal: &Journal,
        listed: &ListedSession,
        now: u64,
    ) -> Result<Self, Failure> {
        let mut flows = Vec::new();
        for summary in &listed.workflows {
            flows.push(flow(journal, &summary.run).await?);
        }
        let mut programs = Vec::new();
        for summary in &listed.programs {
            programs.push(program(journal, &summary.run).await?);
        }
        let ledger = ledger(journal, listed).await?;
        let ledger = ledger.as_ref();
        let work = Self::new(listed, &flows, &programs, ledger, &settings.models, now);
        Ok(Self { programs, ..work })
    }

    fn new(
        listed: &ListedSession,
        flows: &[kernel::Run],
        programs: &[Program],
        ledger: Option<&Ledger>,
        models: &Models,
        now: u64,
    ) -> Self {
        let mut work = Self {
            findings: found(flows, programs).into_iter().map(finding).collect(),
            agents: agents::agents(listed, flows, programs),
            losses: losses(listed, flows, programs),
            sight: GateSight::of(flows, programs),
            ..Self::default()
        };
        for (flow, items) in flows.iter().zip(standing_items(flows)) {
            let Some(spec) = flow.spec() else { continue };
            work.skipped.extend(items.iter().filter_map(|item| skipped(&spec.run, item)));
            work.skipped.extend(spec.dropped.iter().map(|subtask| Skipped {
                run: Some(spec.run.clone()),
                item: None,
                label: subtask.clone(),
                reason: "beyond the most subtasks of one workflow".to_owned(),
            }));
            work.notes.extend(spec.notes.iter().map(|note| plain(note)));
            work.notes.extend(reuse(flow, listed.session.as_str(), now));
        }
        let own = listed.session.as_str();
        work.notes.extend(programs.iter().filter_map(|program| program_reuse(program, own, now)));
        let all = used(listed);
        work.below = Used::of(listed.agents.iter().skip(1).map(|entry| &entry.summary));
        work.spend = ledger.filter(|ledger| ledger.count() > 0).map(|ledger| spend(ledger, &all, now));
        work.cache = Some(cache(listed, models));
        work
    }
}

/// What these flat workflows and programs of a session lost.
pub(crate) fn losses(listed: &ListedSession, flows: &[kernel::Run], programs: &[Program]) -> Losses {
    let agents = listed.agents.iter().map(|entry| (&entry.agent, &entry.summary));
    Losses::of(listed.lead().summary.refused.as_deref(), agents, flows, programs)
}

/// What all agents of a session used.
pub(crate) fn used(listed: &ListedSession) -> Used {
    Used::of(listed.agents.iter().map(|entry| &entry.summary))
}

async fn ledger(journal: &Journal, listed: &ListedSession) -> Result<Option<Ledger>, Failure> {
    let ledger = journal.shared(&StreamId::from(&listed.session)).await?;
    Ok(ledger.and_then(|state| serde_json::from_str(&state).ok()))
}

/// What the ledger of a session says, without the time.
pub(crate) async fn spent(journal: &Journal, listed: &ListedSession) -> Result<Option<Spend>, Failure> {
    let all = used(listed);
    Ok(ledger(journal, listed).await?.map(|ledger| spend(&ledger, &all, listed.updated_at())))
}

/// A workflow's run, folded from its stream.
pub(crate) async fn flow(journal: &Journal, id: &str) -> Result<kernel::Run, Failure> {
    let bad = |seq: u64, why: String| {
        Failure::failed(format!("event {seq} of workflow {id} cannot be read: {why}"))
    };
    let mut run = kernel::Run::new();
    for record in journal.load(&StreamId::new(id)?, 0).await? {
        let event = RunEvent::decode(&record.event).map_err(|error| bad(record.seq, error.to_string()))?;
        run.apply(&event, record.at).map_err(|error| bad(record.seq, error.to_string()))?;
    }
    Ok(run)
}

/// A program's run, folded from its stream.
pub(crate) async fn program(journal: &Journal, id: &str) -> Result<Program, Failure> {
    let bad = |seq: u64, why: String| {
        Failure::failed(format!("event {seq} of workflow {id} cannot be read: {why}"))
    };
    let mut program = Program::new();
    for record in journal.load(&StreamId::new(id)?, 0).await? {
        let event =
            ProgramEvent::decode(&record.event).map_err(|error| bad(record.seq, error.to_string()))?;
        program.apply(&event, record.at).map_err(|error| bad(record.seq, error.to_string()))?;
    }
    Ok(program)
}

fn finding(found: Found) -> Finding {
    let (verdict, reason) = match &found.verdict {
        Some(verdict) => judged(verdict),
        None => (Verdict::Unverified, "the run stopped before it was judged".to_owned()),
    };
    let kernel::Finding { claim, evidence, severity: grave, citations } = found.finding;
    Finding {
        severity: severity(grave),
        verdict,
        claim,
        evidence,
        reason,
        citations: citations.into_iter().map(citation).collect(),
        run: Some(found.run),
        item: Some(found.item),
        is_call: found.is_call,
        label: found.label,
        agent: found.agent.as_ref().map(ToString::to_string),
    }
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

fn citation(citation: kernel::Citation) -> Citation {
    let kernel::Citation { path, first, last, command, quote } = citation;
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

/// A note without the brackets that set it off for the lead. What was dropped is listed among what was not
/// run.
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

/// The line about results of a program that were not asked for anew, and how old they are.
fn program_reuse(program: &Program, own: &str, now: u64) -> Option<String> {
    let ended =
        || program.calls().filter(|call| call.made.kind.is_agents()).filter_map(|call| call.result.as_ref());
    let reused: Vec<&Reused> = ended().filter_map(|result| result.reused.as_ref()).collect();
    let line = reuse_line("results", &reused, ended().count(), own, now)?;
    let name = program.spec().map(|spec| spec.name.as_str()).unwrap_or_default();
    Some(format!("workflow {name}: {line}; --fresh asks anew"))
}

fn spend(ledger: &Ledger, all: &Used, now: u64) -> Spend {
    let unconfirmed = ledger.unconfirmed();
    let caps = ledger.caps();
    Spend {
        // What replies said they cost: the figure of `cost` and of the lists. What the ledger counts beside
        // it stands apart.
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

/// What the cache did for all agents. Where the price of a token depends on the size of its prompt the lowest
/// one counts, so that no more is said to be saved than was.
fn cache(listed: &ListedSession, models: &Models) -> Cache {
    let usage = used(listed).usage;
    let saved = listed.agents.iter().try_fold(0i64, |sum, Entry { summary, .. }| {
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
