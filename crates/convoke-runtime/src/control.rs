//! Control from outside: another process asks the driver of a session to pause or to stop. The
//! journal carries the request, so it works from another machine too. It cuts nothing off: it asks
//! for a drain, as a first signal does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use convoke_journal::{Batch, Filter, Journal, KeyedInput, Lease, StreamId};
use convoke_kernel::{AgentId, Amount, ProgramEvent, ProgramInput, ProgramSummary, RunId, SessionId};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::clock::Clock;
use crate::error::Error;
use crate::inputs::Waiting;
use crate::notice::{Notice, Watcher};
use crate::program;
use crate::session_ledger::{Entry, SessionLedger};
use crate::stop::{Stop, StopLevel, Stopper};

/// How often the driver of a session looks whether something is asked of it.
const LOOK: Duration = Duration::from_millis(500);

/// What is recorded as `by` for programs that another process asked to stop.
pub const STOPPED_BY: &str = "a person (convoke runs stop)";

/// What another process wants of the driver of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Nothing new starts, what is under way is finished, and the process ends.
    Pause,
    /// The same, and the session's programs are recorded as stopped.
    Stop,
}

impl Control {
    /// The command that asks for it, in one word.
    pub fn word(self) -> &'static str {
        match self {
            Control::Pause => "pause",
            Control::Stop => "stop",
        }
    }
}

/// Asks for things from outside. It needs the journal and nothing else: no model, no directory, and no lease
/// of a session that is being driven.
#[derive(Clone)]
pub struct Controller {
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
}

impl Controller {
    /// Asks by way of this journal.
    pub fn new(journal: Journal, clock: Clock) -> Self {
        Self { journal, clock }
    }

    /// Asks the driver of this lead, and returns the key for [`is_heard`](Self::is_heard). A
    /// request that no driver has heard is passed over when the session is taken up again: a person
    /// who resumes it wants it to go on.
    pub async fn ask(&self, lead: &AgentId, control: Control) -> Result<String, Error> {
        let at = self.clock.now();
        let key = format!("{}:{}:{at}", control.word(), self.journal.options().process.id);
        let body = serde_json::to_string(&Waiting { control: Some(control), ..Waiting::default() })?;
        let input = KeyedInput { stream: StreamId::from(lead), key: key.clone(), body };
        self.journal.submit(&input, at).await?;
        Ok(key)
    }

    /// Whether what was asked under this key has been acknowledged.
    pub async fn is_heard(&self, lead: &AgentId, key: &str) -> Result<bool, Error> {
        let waiting = self.journal.inputs(&StreamId::from(lead)).await?;
        Ok(waiting.iter().all(|input| input.key != key))
    }

    /// Writes off the unconfirmed part of a session's requests: a person's act that is recorded as such. Says
    /// how much.
    pub async fn forgive(&self, session: &SessionId, by: &str) -> Result<Amount, Error> {
        let ledger = SessionLedger::open(self.journal.clone(), session, self.clock.clone()).await?;
        let before = ledger.ledger().forgiven();
        let fates = ledger.fates(None).await?;
        ledger.enter(vec![Entry::Forgive { fates, by: by.to_owned() }]).await?;
        Ok(ledger.ledger().forgiven().minus(before))
    }

    /// Records the unfinished programs of a session that no process drives as stopped, and says which they
    /// are. `by` names who wants it. Their agents stay as they stand: the next process that takes the session
    /// up begins a new pass, and everything that was done is served.
    pub async fn stop_programs(&self, session: &SessionId, by: &str) -> Result<Vec<RunId>, Error> {
        let filter = Filter { prefix: Some(RunId::PREFIX.to_owned()), limit: None };
        let mut stopped = Vec::new();
        for listing in self.journal.list(&filter).await?.into_iter().rev() {
            let summary = listing.summary.and_then(|text| serde_json::from_str::<ProgramSummary>(&text).ok());
            let open = summary.is_some_and(|summary| summary.session == *session && summary.status.is_none());
            if let (true, Ok(run)) = (open, listing.stream.as_str().parse::<RunId>())
                && self.stop_program(session, &run, by).await?
            {
                stopped.push(run);
            }
        }
        Ok(stopped)
    }

    /// Takes the lease for as long as it takes to write this down. False if the run had ended by then.
    async fn stop_program(&self, session: &SessionId, run: &RunId, by: &str) -> Result<bool, Error> {
        let lease = self.journal.own(&StreamId::new(run.as_str())?).await?;
        let recorded = self.record_stop(&lease, session, run, by).await;
        // A lease that cannot be given back ends with its process.
        let _ = self.journal.release(&lease).await;
        recorded
    }

    async fn record_stop(
        &self,
        lease: &Lease,
        session: &SessionId,
        run: &RunId,
        by: &str,
    ) -> Result<bool, Error> {
        let (mut program, seq) = program::load_from(&self.journal, run).await?;
        if program.spec().is_none() || program.is_closed() {
            return Ok(false);
        }
        let at = self.clock.now();
        let bad = |cause: String| Error::BadRun { run: run.clone(), seq, cause };
        let events = program
            .decide(ProgramInput::Stop { by: by.to_owned() })
            .map_err(|error| bad(error.to_string()))?;
        for event in &events {
            program.apply(event, at).map_err(|error| bad(error.to_string()))?;
        }
        let ledger = SessionLedger::open(self.journal.clone(), session, self.clock.clone()).await?;
        // Only a new pass goes on with these agents, so nothing stays held for them.
        let open = program.calls().filter(|call| call.result.is_none() && call.made.kind.is_agents());
        let agents = open
            .flat_map(|call| (0..=call.made.agents).map(|voter| call.made.agent(program.origin(), voter)));
        let mut entries: Vec<Entry> =
            agents.map(|agent| Entry::Release { agent: agent.to_string() }).collect();
        entries.push(Entry::CloseRun { run: run.to_string(), used: program.agents_used() });
        let batch = Batch {
            at,
            events: events.iter().map(ProgramEvent::encode).collect::<Result<_, _>>()?,
            inputs: program::closing_notice(&program)?.into_iter().collect(),
            summary: program.summary().map(|summary| serde_json::to_string(&summary)).transpose()?,
            updates: vec![ledger.update(entries, at)],
            ..Batch::default()
        };
        self.journal.append_shared(lease, seq, &batch).await?;
        Ok(true)
    }
}

/// What asks for control among what waits for a lead, by its key.
async fn asked(journal: &Journal, stream: &StreamId) -> Result<Vec<(String, Control)>, Error> {
    let control = |body: &str| serde_json::from_str::<Waiting>(body).ok()?.control;
    let waiting = journal.inputs(stream).await?.into_iter();
    Ok(waiting
        .filter_map(|input| Some((control(&input.body)?, input.key)))
        .map(|(what, key)| (key, what))
        .collect())
}

/// Says that what was asked of this lead has been heard, or came when there was nothing left to ask of it.
pub(crate) async fn acknowledge(journal: &Journal, clock: &Clock, lease: &Lease, seq: u64) {
    let Ok(asked) = asked(journal, lease.stream()).await else { return };
    if !asked.is_empty() {
        let acks = asked.into_iter().map(|(key, _)| key).collect();
        let batch = Batch { at: clock.now(), acks, ..Batch::default() };
        // What stays is old when the session is taken up again, and old things are passed over.
        let _ = journal.append(lease, seq, &batch).await;
    }
}

/// Listens, beside the driver of a lead, for what is asked from outside, and passes on what is asked in this
/// process.
pub(crate) struct ControlListener {
    journal: Journal,
    stream: StreamId,
    /// What was asked before the lead was taken up.
    old: Vec<String>,
    heard: Arc<Mutex<Option<Control>>>,
    stopper: Stopper,
    stop: Stop,
    task: Option<JoinHandle<()>>,
}

impl ControlListener {
    /// To be made before the lead's lease is taken: what waits by then was asked of an earlier process.
    pub(crate) async fn new(journal: &Journal, lead: &AgentId) -> Result<Self, Error> {
        let stream = StreamId::from(lead);
        let old = asked(journal, &stream).await?.into_iter().map(|(key, _)| key).collect();
        let (stopper, stop) = Stopper::new();
        Ok(Self { journal: journal.clone(), stream, old, heard: Arc::default(), stopper, stop, task: None })
    }

    /// What the driver listens to.
    pub(crate) fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Listens from now on. `inside` is what is asked in this process.
    pub(crate) fn listen(&mut self, mut inside: Stop, watcher: Option<Watcher>) {
        // A stop that came before counts before anything is started.
        self.stopper.ask(inside.level());
        let journal = self.journal.clone();
        let stream = self.stream.clone();
        let old = self.old.clone();
        let heard = Arc::clone(&self.heard);
        let stopper = self.stopper.clone();
        self.task = Some(tokio::spawn(async move {
            let mut looks = tokio::time::interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut level = inside.level();
            loop {
                tokio::select! {
                    harder = inside.above(level) => {
                        level = harder;
                        stopper.ask(level);
                    }
                    // Together, so that an ask of this process is heard while the journal does not answer.
                    asked = async { looks.tick().await; asked(&journal, &stream).await } => {
                        // A journal that does not answer is asked again.
                        let Ok(asked) = asked else { continue };
                        let new = asked.into_iter().filter(|(key, _)| !old.contains(key));
                        let hardest = new.map(|(_, what)| what).max();
                        let harder = hardest.filter(|control| *heard_of(&heard) < Some(*control));
                        let Some(control) = harder else { continue };
                        *heard_of(&heard) = Some(control);
                        if let Some(watcher) = &watcher {
                            let _ = watcher.send(Notice::Controlled { control });
                        }
                        stopper.ask(StopLevel::Drain);
                    }
                }
            }
        }));
    }

    /// What has been asked from outside.
    pub(crate) fn heard(&self) -> Option<Control> {
        *heard_of(&self.heard)
    }
}

fn heard_of(heard: &Mutex<Option<Control>>) -> std::sync::MutexGuard<'_, Option<Control>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
