//! Drives one run's stream under its lease. Items go their own way: whatever can be checked or verified goes
//! before what can be started anew, so that no item waits for the others.

mod jobs;

use std::collections::HashSet;
use std::path::PathBuf;

use convoke_kernel::{
    AgentId, Checked, FailureKind, ItemResult, Normalised, Run, RunEffect, RunEvent, RunId, RunInput,
    RunSpec, ToolResult, VoterResult,
};
use tokio::task::{JoinError, JoinSet};

use super::halt::halted;
use super::keys::{Keys, Remembered, Sound};
use super::results::{item_result, not_admitted, voter_result};
use super::seek::{Found, ResultFinder, Sought, Ticket};
use super::tree::{Trace, Tree};
use super::{load, stream};
use crate::children::Parent;
use crate::drive::DriveOutcome;
use crate::error::Error;
use crate::means::digest_chars;
use crate::session_ledger::Entry;
use crate::stop::StopLevel;
use crate::stream_writer::{Commit, SpoolRule, StreamWriter};
use crate::workspace::{digests, fingerprint};

pub(super) use jobs::AgentJob;

/// What a task came to.
pub(super) enum Done {
    Sought(Sought),
    Checked(u32, Vec<Vec<Checked>>),
    Ended(Box<Ticket>, Box<DriveOutcome>, Option<Trace>),
    /// An agent of an earlier process ended because a person stopped the run; the text names the person.
    Halted(RunEffect, AgentId, Box<DriveOutcome>, String),
    /// Others may be at its key again.
    Landed,
}

/// Something to record, and the results to remember with it.
pub(super) type RunRecord = (RunInput, Vec<(String, String)>);

pub(super) struct Runner {
    pub(super) parent: Parent,
    id: RunId,
    writer: StreamWriter<RunEvent>,
    pub(super) run: Run,
    pub(super) tasks: JoinSet<Result<Done, Error>>,
    /// What is under way.
    pub(super) begun: HashSet<RunEffect>,
    /// What was looked up, whether something was remembered or not.
    looked_up: HashSet<RunEffect>,
    /// What waits for a person: it goes on when the run is resumed with an answer.
    parked: HashSet<RunEffect>,
    /// Whether the run was started by this process, and not taken up.
    started_here: bool,
    tree: Tree,
}

impl Runner {
    pub(super) async fn own(parent: &Parent, id: RunId) -> Result<Self, Error> {
        let stream = stream(&id)?;
        let lease = parent.config.journal.own(&stream).await?;
        let (run, seq) = load(&parent.config, &id).await?;
        let Parent { config, session, stop, .. } = parent;
        let writer = StreamWriter::new(config, session, id.clone(), stream, lease, seq, stop);
        let tasks = JoinSet::new();
        let begun = HashSet::new();
        let parked = HashSet::new();
        let looked_up = HashSet::new();
        let tree = Tree::default();
        let parent = parent.clone();
        Ok(Self { parent, id, writer, run, tasks, begun, looked_up, parked, started_here: false, tree })
    }

    pub(super) fn is_started(&self) -> bool {
        self.run.spec().is_some()
    }

    /// Admits the run's agents and records it, in one append. The answer is why that cannot be.
    pub(super) async fn start(
        &mut self,
        call: &str,
        wanted: Normalised,
        by: &str,
    ) -> Result<Option<ToolResult>, Error> {
        let lead = self.parent.spec.clone();
        let Some(fan_out) = &lead.fan_out else {
            return Ok(Some(ToolResult::refused("Workflow error: this agent may start no other.")));
        };
        let dir = PathBuf::from(&lead.dir);
        let base = match fingerprint(&self.parent.config.confine.sight(&dir), &dir).await {
            Ok(base) => base,
            // The lead can still work alone.
            Err(error) => return Ok(Some(ToolResult::refused(format!("Workflow error: {error}")))),
        };
        let mut content = Keys::new(&lead, &base);
        let keys: Vec<String> = wanted.subtasks.iter().filter_map(|subtask| content.work(subtask)).collect();
        let agents = self.missing_agents(&wanted.subtasks, &keys, &mut content, fan_out.voters).await?;
        let spec = RunSpec {
            run: self.id.to_string(),
            session: lead.session.clone(),
            lead: self.parent.id.clone(),
            call: call.to_owned(),
            dir: lead.dir.clone(),
            base,
            voters: fan_out.voters,
            subtasks: wanted.subtasks,
            keys,
            notes: wanted.notes,
            dropped: wanted.dropped,
            consent: by.to_owned(),
        };
        let admit = Entry::Admit { run: self.id.to_string(), count: agents };
        match self.record(vec![(RunInput::Start(Box::new(spec)), Vec::new())], vec![admit]).await {
            Ok(()) => {
                self.started_here = true;
                Ok(None)
            }
            Err(Error::Journal(convoke_journal::Error::Declined { reason, .. })) => {
                let text = format!(
                    "Workflow error: {reason}. No agent was started and nothing was spent; send fewer \
                        subtasks."
                );
                // A later reader of the session is told that this was not done, and why.
                Ok(Some(ToolResult { failure: Some(FailureKind::Budget), ..ToolResult::refused(text) }))
            }
            Err(error) => Err(error),
        }
    }

    /// How many workers and verifiers have to be admitted for what is not remembered of these subtasks: two
    /// queries, however many there are.
    async fn missing_agents(
        &self,
        subtasks: &[String],
        keys: &[String],
        content: &mut Keys<'_>,
        voters: u32,
    ) -> Result<u32, Error> {
        let finder = self.result_finder();
        let found = finder.look_up::<ItemResult>(keys).await?;
        let mut missing = 0u32;
        let mut votes = Vec::new();
        for (subtask, key) in subtasks.iter().zip(keys) {
            match found.get(key) {
                None => missing = missing.saturating_add(1 + voters),
                Some(result) => {
                    let report = result.report.iter().filter(|report| !report.findings.is_empty());
                    let all = report.flat_map(|report| (1..=voters).map(move |voter| (report, voter)));
                    votes.extend(all.filter_map(|(report, voter)| content.vote(subtask, report, voter)));
                }
            }
        }
        let voted = finder.look_up::<VoterResult>(&votes).await?;
        let unknown = votes.iter().filter(|key| !voted.contains_key(*key)).count();
        Ok(missing.saturating_add(u32::try_from(unknown).unwrap_or(u32::MAX)))
    }

    /// Drives until every item is done, or until a stop is requested.
    pub(super) async fn drive(&mut self) -> Result<Option<ToolResult>, Error> {
        let mut stop = self.parent.stop.clone();
        if !self.run.is_closed() {
            let dir = self.dir();
            let sight = self.parent.config.confine.sight(&dir);
            let looks = &self.parent.session.looks;
            self.tree = match self.run.spec() {
                Some(spec) if !self.started_here => Tree::again(looks, &sight, &dir, &spec.base).await?,
                _ => Tree::new(looks, &sight, &dir).await?,
            };
        }
        while !self.run.is_closed() {
            let level = stop.level();
            if let Some(by) = stop.halted() {
                self.end_what_is_left(&by).await?;
            } else if level == StopLevel::Run {
                self.take_remembered().await?;
                self.begin_what_can_be_begun();
            }
            if self.run.is_closed() {
                break;
            }
            if self.tasks.is_empty() {
                return Ok(None);
            }
            // A stop reaches the agents by themselves; here nothing new is begun once it is heard.
            tokio::select! {
                Some(done) = self.tasks.join_next() => {
                    let mut all = vec![self.done(done)?];
                    // What else has come meanwhile shares the commit: with many agents the run's own stream
                    // would be what all of them wait for.
                    while let Some(done) = self.tasks.try_join_next() {
                        all.push(self.done(done)?);
                    }
                    self.take(all).await?;
                }
                _ = stop.above(level), if level < StopLevel::Cut => {}
            }
        }
        while let Some(landed) = self.tasks.join_next().await {
            self.done(landed)?;
        }
        let most = digest_chars(&self.parent.spec, &self.parent.session.ledger.ledger());
        Ok(Some(ToolResult::done(self.run.digest_within(most))))
    }

    fn done(&self, done: Result<Result<Done, Error>, JoinError>) -> Result<Done, Error> {
        done.map_err(|_| Error::EffectBroke(self.parent.id.clone()))?
    }

    pub(super) async fn finish(mut self) {
        self.tasks.shutdown().await;
        self.writer.release().await;
    }

    fn dir(&self) -> PathBuf {
        PathBuf::from(&self.parent.spec.dir)
    }

    /// Records what has come, and does what follows from it.
    async fn take(&mut self, all: Vec<Done>) -> Result<(), Error> {
        let mut heard = Vec::new();
        let mut free = Vec::new();
        let mut over = Vec::new();
        let counts = self.run.counts();
        let admitted = self.parent.session.ledger.ledger().admitted(self.id.as_str());
        let mut left = admitted.saturating_sub(counts.workers + counts.verifiers);
        for done in all {
            match done {
                Done::Landed => {}
                Done::Halted(effect, agent, ended, by) => {
                    self.begun.remove(&effect);
                    heard.extend(halted(effect, agent, &ended, &by).map(|ended| (ended, Vec::new())));
                }
                Done::Sought(Sought::Stopped(effect)) => drop(self.begun.remove(&effect)),
                Done::Sought(Sought::Free(ticket)) => match self.began(&ticket) {
                    // It was to be taken from elsewhere, so no agent was admitted, and now it is not there.
                    Some(_) if left == 0 => {
                        self.begun.remove(&ticket.effect);
                        heard.extend(not_admitted(ticket.effect).map(|ended| (ended, Vec::new())));
                        over.push(ticket);
                    }
                    began => {
                        left = left.saturating_sub(u32::from(began.is_some()));
                        heard.extend(began.map(|began| (began, Vec::new())));
                        free.push(ticket);
                    }
                },
                Done::Sought(Sought::Remembered(effect, found)) => {
                    self.begun.remove(&effect);
                    heard.extend(remembered(effect, found).map(|ended| (ended, Vec::new())));
                }
                Done::Checked(item, checks) => {
                    self.begun.remove(&RunEffect::Check { item });
                    heard.push((RunInput::Checked { item, checks }, Vec::new()));
                }
                Done::Ended(ticket, ended, trace) => {
                    heard.extend(self.ended(&ticket, &ended, trace).await?);
                    over.push(ticket);
                }
            }
        }
        if !heard.is_empty() {
            self.record(heard, Vec::new()).await?;
        }
        free.into_iter().for_each(|ticket| self.set_to_work(ticket));
        for ticket in over {
            let Ticket { flight, place, .. } = *ticket;
            drop(place);
            self.tasks.spawn(async move {
                flight.land().await?;
                Ok(Done::Landed)
            });
        }
        Ok(())
    }

    /// What an agent came to. Without an outcome it was stopped; it stays pending until the next resume.
    async fn ended(
        &mut self,
        ticket: &Ticket,
        ended: &DriveOutcome,
        trace: Option<Trace>,
    ) -> Result<Option<RunRecord>, Error> {
        let Ticket { effect, agent, key, .. } = ticket;
        self.begun.remove(effect);
        if ended.parked {
            self.parked.insert(*effect);
        }
        let Some(outcome) = &ended.outcome else { return Ok(None) };
        Ok(match *effect {
            RunEffect::Work { item } => {
                let mut result = item_result(agent.clone(), ended, outcome);
                if let Some(trace) = trace {
                    let all = self.tree.moved_by(&trace);
                    result.changes = digests(&self.dir(), &all).await;
                    result.changed = trace.changed;
                }
                let kept = if self.tree.began_as_keyed() { self.remember(key, &result)? } else { Vec::new() };
                Some((RunInput::Ended { item, result: Box::new(result) }, kept))
            }
            RunEffect::Verify { item, voter } => {
                let result = voter_result(agent.clone(), ended, outcome);
                let kept = if self.tree.is_as_keyed() { self.remember(key, &result)? } else { Vec::new() };
                Some((RunInput::VoterEnded { item, voter, result: Box::new(result) }, kept))
            }
            RunEffect::Check { .. } => None,
        })
    }

    fn remember<T: Sound>(&self, key: &str, result: &T) -> Result<Vec<(String, String)>, Error> {
        if !result.is_sound() {
            return Ok(Vec::new());
        }
        let remembered = Remembered { session: self.parent.session.id.to_string(), result };
        Ok(vec![(key.to_owned(), serde_json::to_string(&remembered)?)])
    }

    /// One round of the circle for the run's own stream.
    pub(super) async fn record(
        &mut self,
        heard: Vec<RunRecord>,
        mut entries: Vec<Entry>,
    ) -> Result<(), Error> {
        let at = self.parent.config.clock.now();
        let mut after = self.run.clone();
        let mut events = Vec::new();
        let mut results = Vec::new();
        for (input, kept) in heard {
            let decided = after.decide(input)?;
            for event in &decided {
                let bad = |cause: convoke_kernel::IllegalRunEvent| Error::BadRun {
                    run: self.id.clone(),
                    seq: self.writer.seq(),
                    cause: cause.to_string(),
                };
                after.apply(event, at).map_err(bad)?;
            }
            events.extend(decided);
            results.extend(kept);
        }
        if after.is_closed() {
            let counts = after.counts();
            entries
                .push(Entry::CloseRun { run: self.id.to_string(), used: counts.workers + counts.verifiers });
        }
        let mut commit = Commit::new(at, events)?;
        commit.batch.summary = after.summary().map(|summary| serde_json::to_string(&summary)).transpose()?;
        commit.batch.results = results;
        commit.enter(&self.parent.session, entries);
        let run = &mut self.run;
        let fold = |_: &[RunEvent], _| {
            *run = after;
            Ok(())
        };
        self.writer.commit(&mut commit, SpoolRule::Nothing, fold).await
    }

    pub(super) fn result_finder(&self) -> ResultFinder {
        let fresh = self.parent.spec.fan_out.as_ref().is_some_and(|fan_out| fan_out.fresh);
        ResultFinder { parent: self.parent.clone(), fresh, dir: self.dir() }
    }
}

/// What an equal item or voter came to before.
pub(super) fn remembered(effect: RunEffect, found: Found) -> Option<RunInput> {
    match (effect, found) {
        (RunEffect::Work { item }, Found::Item(result)) => Some(RunInput::Ended { item, result }),
        (RunEffect::Verify { item, voter }, Found::Vote(result)) => {
            Some(RunInput::VoterEnded { item, voter, result })
        }
        _ => None,
    }
}
