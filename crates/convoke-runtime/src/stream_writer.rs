//! The one writer of streams: what was decided is appended under the lease, behind the last event that is
//! known, together with all that belongs to it; then it is folded, and then the watcher is told. Agents, runs
//! and programs are driven by different rules and recorded by this one.

use std::path::PathBuf;
use std::sync::Arc;

use convoke_journal::Error::{Declined, LostLease, StaleSequence};
use convoke_journal::{Appended, Batch, KeyedInput, Lease, StreamId, Update};
use convoke_kernel::{AgentId, Event, ProgramEvent, RunEvent, RunId};

use crate::crash::Moment;
use crate::error::Error;
use crate::notice::Notice;
use crate::runtime::Config;
use crate::session::Session;
use crate::session_ledger::Entry;
use crate::spool;
use crate::stop::{Stop, StopLevel};

/// An event of a stream that is driven.
pub(crate) trait StreamEvent: Sized {
    /// By what its stream is known.
    type Owner;

    /// The event as the journal has it.
    fn text(&self) -> Result<String, serde_json::Error>;

    /// What the watcher is told.
    fn notice(self, owner: &Self::Owner, seq: u64, at: u64) -> Notice;

    /// The events if they are an agent's: a reply among them is paid for.
    fn of_agent(_: &[Self]) -> &[Event] {
        &[]
    }
}

impl StreamEvent for Event {
    type Owner = AgentId;

    fn text(&self) -> Result<String, serde_json::Error> {
        self.encode()
    }

    fn notice(self, owner: &AgentId, seq: u64, at: u64) -> Notice {
        Notice::Recorded { agent: owner.clone(), seq, at, event: Box::new(self) }
    }

    fn of_agent(events: &[Self]) -> &[Event] {
        events
    }
}

impl StreamEvent for RunEvent {
    type Owner = RunId;

    fn text(&self) -> Result<String, serde_json::Error> {
        self.encode()
    }

    fn notice(self, owner: &RunId, seq: u64, at: u64) -> Notice {
        Notice::Run { run: owner.clone(), seq, at, event: Box::new(self) }
    }
}

impl StreamEvent for ProgramEvent {
    type Owner = RunId;

    fn text(&self) -> Result<String, serde_json::Error> {
        self.encode()
    }

    fn notice(self, owner: &RunId, seq: u64, at: u64) -> Notice {
        Notice::Program { run: owner.clone(), seq, at, event: Box::new(self) }
    }
}

/// A shared stream that an append changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    Ledger,
    Roster,
    Board,
}

/// What one append carries. The batch can be filled in further until it is committed.
pub(crate) struct Commit<E> {
    pub(crate) batch: Batch,
    pub(crate) events: Vec<E>,
    /// The streams that the batch's updates change, in their order.
    touched: Vec<Shared>,
}

impl<E: StreamEvent> Commit<E> {
    pub(crate) fn new(at: u64, events: Vec<E>) -> Result<Self, Error> {
        let texts = events.iter().map(E::text).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::of_texts(at, events, texts))
    }

    /// With events that were encoded before: they are appended byte for byte.
    pub(crate) fn of_texts(at: u64, events: Vec<E>, texts: Vec<String>) -> Self {
        Self { batch: Batch { at, events: texts, ..Batch::default() }, events, touched: Vec::new() }
    }

    /// Changes a shared stream in the same append.
    pub(crate) fn update(&mut self, shared: Shared, update: Update) {
        self.touched.push(shared);
        self.batch.updates.push(update);
    }

    /// Makes entries in the session's ledger in the same append.
    pub(crate) fn enter(&mut self, session: &Session, entries: Vec<Entry>) {
        if !entries.is_empty() {
            self.update(Shared::Ledger, session.ledger.update(entries, self.batch.at));
        }
    }
}

/// Whether an outcome is kept in a file while the store is away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpoolRule {
    /// It is paid for, and a kill meanwhile must not lose it.
    Outcome,
    /// It can be decided again, or is in a file already.
    Nothing,
}

/// Appends to one stream under its lease.
pub(crate) struct StreamWriter<E: StreamEvent> {
    config: Arc<Config>,
    session: Arc<Session>,
    owner: E::Owner,
    stream: StreamId,
    lease: Lease,
    /// The number of the last event that is known.
    seq: u64,
    stop: Stop,
}

impl<E: StreamEvent> StreamWriter<E> {
    pub(crate) fn new(
        config: &Arc<Config>,
        session: &Arc<Session>,
        owner: E::Owner,
        stream: StreamId,
        lease: Lease,
        seq: u64,
        stop: &Stop,
    ) -> Self {
        let config = Arc::clone(config);
        let session = Arc::clone(session);
        Self { config, session, owner, stream, lease, seq, stop: stop.clone() }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn stream(&self) -> &StreamId {
        &self.stream
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// What waits for the stream's owner.
    pub(crate) async fn inputs(&self) -> Result<Vec<KeyedInput>, Error> {
        Ok(self.config.journal.inputs(&self.stream).await?)
    }

    /// Gives the stream back. A lease that cannot be given back ends with its process.
    pub(crate) async fn release(&self) {
        let _ = self.config.journal.release(&self.lease).await;
    }

    /// Appends, lets `fold` take over what is committed by then, and tells the watcher. An error of the
    /// journal means that nothing was appended as far as is known; the commit still has its events then.
    pub(crate) async fn commit(
        &mut self,
        commit: &mut Commit<E>,
        keep: SpoolRule,
        fold: impl FnOnce(&[E], u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.crash(Moment::BeforeCommit, &commit.events)?;
        let appended = self.append(commit, keep).await.map_err(Error::Journal)?;
        self.adopt(&commit.touched, &appended.states)?;
        let first = self.seq + 1;
        self.seq = appended.seq;
        debug_assert_eq!(first + commit.events.len() as u64, self.seq + 1, "the journal counts alike");
        fold(&commit.events, first)?;
        self.crash(Moment::AfterCommit, &commit.events)?;
        for (event, seq) in std::mem::take(&mut commit.events).into_iter().zip(first..) {
            self.session.tell(event.notice(&self.owner, seq, commit.batch.at));
        }
        Ok(())
    }

    /// Appends. If the store is away, what came back is kept in a file as well until it is recorded, so that
    /// a kill meanwhile loses nothing that is paid for; and a person who cuts the run off need not wait for
    /// the store.
    async fn append(&self, commit: &Commit<E>, keep: SpoolRule) -> Result<Appended, convoke_journal::Error> {
        let journal = &self.config.journal;
        let mut outage = journal.outage();
        let mut append = std::pin::pin!(journal.append_shared(&self.lease, self.seq, &commit.batch));
        tokio::select! {
            biased;
            done = &mut append => return done,
            Ok(_) = outage.wait_for(Option::is_some) => {}
        }
        let kept = self.keep(commit, keep);
        let mut stop = self.stop.clone();
        let done = tokio::select! {
            done = append => done,
            _ = stop.above(StopLevel::Drain) => {
                let place = journal.location().to_string();
                let reason = "it did not answer, and the run was cut off".to_owned();
                Err(convoke_journal::Error::Unavailable { place, reason })
            }
        };
        if let (Some(path), Ok(_) | Err(LostLease { .. } | StaleSequence { .. } | Declined { .. })) =
            (kept, &done)
        {
            // What is recorded, or another's by now, is not to be recorded by the next resume.
            let _ = std::fs::remove_file(path);
        }
        done
    }

    fn keep(&self, commit: &Commit<E>, keep: SpoolRule) -> Option<PathBuf> {
        if keep == SpoolRule::Nothing {
            return None;
        }
        let events = E::of_agent(&commit.events);
        spool::keep_if_worth(&self.config.spools, &self.stream, self.seq, events, &commit.batch)
    }

    /// Takes over the states that an append led to.
    fn adopt(&self, touched: &[Shared], states: &[String]) -> Result<(), Error> {
        let of = |wanted: Shared| {
            touched.iter().zip(states).find(|(shared, _)| **shared == wanted).map(|(_, state)| state)
        };
        self.session.adopt(of(Shared::Ledger))?;
        match &self.session.team_cache {
            // In one call, so that members are woken when both are known.
            Some(team) => {
                team.adopt(of(Shared::Roster).map(String::as_str), of(Shared::Board).map(String::as_str))
            }
            None => Ok(()),
        }
    }

    fn crash(&self, moment: Moment, events: &[E]) -> Result<(), Error> {
        match &self.config.crash {
            Some(crash) if crash.dies(moment, E::of_agent(events)) => Err(Error::Crashed),
            _ => Ok(()),
        }
    }
}
