//! Drives one agent's stream under its lease: decide, commit, act, report. It translates and has no policy of its own:
//! what follows from what is the kernel's business.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use convoke_claude::{Live, Request};
use convoke_journal::{Batch, Lease, StreamId};
use convoke_kernel::{
    Agent, AgentId, Effect, Event, Failure, FailureKind, Input, Kept, ModelRequest, Outcome, Pace, Reply, Retry,
    Summary, ToolResult,
};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::bash::Bash;
use crate::error::Error;
use crate::notice::{Notice, Piece, Watcher};
use crate::runtime::{Config, Waiting};
use crate::spool;
use crate::stop::{Stop, StopLevel};

/// Well below the lease's lifetime, so that a few lost heartbeats do no harm.
const HEARTBEAT: Duration = Duration::from_secs(4);

/// How an agent is taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// It has just been started, or is idle and has something to hear.
    New,
    /// It was left in the middle of something, or failed and is to go on.
    Resume {
        /// Files that changed meanwhile.
        changed: Vec<String>,
    },
}

/// How driving ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// What the last exchange came to; `None` if it was stopped before its end.
    pub outcome: Option<Outcome>,
    /// The agent's row in listings.
    pub summary: Option<Summary>,
}

/// Around which commit a test wants the process to die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The effects are done and their outcome is not committed.
    BeforeCommit,
    /// It is committed and nothing that follows from it has been started.
    AfterCommit,
}

/// Decides for each commit whether the process dies there. Part of the interface, so that programs that embed Convoke
/// can test their own recovery.
#[derive(Clone)]
pub struct Crash(Arc<Dies>);

type Dies = dyn Fn(Moment, &[Event]) -> bool + Send + Sync;

impl Crash {
    /// Dies where this says so.
    pub fn when(dies: impl Fn(Moment, &[Event]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(dies))
    }
}

impl fmt::Debug for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crash")
    }
}

/// What a task came to.
enum Done {
    Model { call: u32, attempt: u32, result: Box<Result<Reply, Failure>> },
    Tool { id: String, result: ToolResult, bash: Box<Bash> },
    Wait,
}

/// Tells running effects apart, so that each is performed once per life of the process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Model(u32, u32),
    Tool(String),
    Wait(u64),
}

pub(crate) struct Driver {
    config: Arc<Config>,
    id: AgentId,
    stream: StreamId,
    lease: Lease,
    seq: u64,
    agent: Agent,
    watcher: Option<Watcher>,
    tasks: JoinSet<Done>,
    running: HashSet<Key>,
    bash: Option<Box<Bash>>,
    cut: CancellationToken,
    pace: Pace,
}

impl Driver {
    /// Takes the lease and folds what has happened so far.
    pub(crate) async fn own(config: Arc<Config>, id: AgentId, watcher: Option<Watcher>) -> Result<Self, Error> {
        let stream = StreamId::from(&id);
        let lease = config.journal.own(&stream).await?;
        let mut driver = Self {
            config,
            id,
            stream,
            lease,
            seq: 0,
            agent: Agent::new(),
            watcher,
            tasks: JoinSet::new(),
            running: HashSet::new(),
            bash: None,
            cut: CancellationToken::new(),
            pace: Pace::Go,
        };
        let ready = match driver.load().await {
            Ok(()) => driver.unspool().await,
            Err(error) => Err(error),
        };
        if let Err(error) = ready {
            let _ = driver.config.journal.release(&driver.lease).await;
            return Err(error);
        }
        Ok(driver)
    }

    async fn load(&mut self) -> Result<(), Error> {
        for record in self.config.journal.load(&self.stream, self.seq).await? {
            let seq = record.seq;
            let event =
                Event::decode(&record.event).map_err(|cause| Error::BadEvent { agent: self.id.clone(), seq, cause })?;
            self.fold(seq, record.at, &event)?;
        }
        Ok(())
    }

    fn fold(&mut self, seq: u64, at: u64, event: &Event) -> Result<(), Error> {
        self.agent.apply(event, at).map_err(|cause| Error::BadHistory { agent: self.id.clone(), seq, cause })?;
        self.seq = seq;
        Ok(())
    }

    /// Records what an earlier process had received and could not record.
    async fn unspool(&mut self) -> Result<(), Error> {
        let Some((path, spooled)) = spool::find(&self.config.spools, &self.stream, self.seq) else { return Ok(()) };
        // What cannot follow what has happened must not be stored, whoever wrote the file; it is left for a person to see.
        let decoded: Result<Vec<Event>, _> = spooled.events.iter().map(|text| Event::decode(text)).collect();
        let Some(summary) = decoded.ok().and_then(|events| self.agent.summary_after(&events, spooled.at).ok()) else {
            return Ok(());
        };
        let summary = summary.map(|summary| serde_json::to_string(&summary)).transpose()?;
        let batch = Batch { at: spooled.at, events: spooled.events, acks: spooled.acks, summary, ..Batch::default() };
        self.config.journal.append(&self.lease, self.seq, &batch).await?;
        self.load().await?;
        // The batch is recorded now; a file that stays would merely not fit any more.
        let _ = std::fs::remove_file(path);
        Ok(())
    }

    /// Drives until the inputs are used up and the exchange is closed, or until somebody asks to stop.
    pub(crate) async fn run(mut self, take: Take, stop: Stop) -> Result<Ended, Error> {
        let driven = self.drive(take, stop).await;
        if matches!(driven, Err(Error::Crashed)) {
            // A process that dies tidies nothing up.
            return Err(Error::Crashed);
        }
        let ended = self.finish().await;
        driven.map(|()| ended)
    }

    async fn drive(&mut self, take: Take, mut stop: Stop) -> Result<(), Error> {
        let mut deadline: Option<tokio::time::Instant> = None;
        // A stop that came while the stream was loaded counts before anything is started.
        self.heed(stop.level(), &mut deadline);
        if let (Take::Resume { changed }, true) = (take, self.agent.is_started()) {
            self.input(Input::Resume { changed }, Vec::new()).await?;
        }
        let mut pulse = JoinSet::new();
        pulse.spawn(keep_the_lease(Arc::clone(&self.config), self.lease.clone()));
        loop {
            let level = stop.level();
            self.heed(level, &mut deadline);
            if self.pace == Pace::Go {
                self.take_inputs().await?;
            }
            if self.tasks.is_empty() {
                return Ok(());
            }
            // Above the level that was heeded, not the one there is now: a stop may have come in between.
            tokio::select! {
                Some(done) = self.tasks.join_next() => {
                    let done = done.map_err(|_| Error::EffectBroke(self.id.clone()))?;
                    // A stop that came with the outcome counts first, or something would be decided and never done.
                    self.heed(stop.level(), &mut deadline);
                    self.report(done).await?;
                }
                _ = stop.above(level) => {}
                () = until(deadline), if deadline.is_some() => {
                    deadline = None;
                    self.cut.cancel();
                }
                // Somebody else drives this agent now: what is under way here ends, and nothing more is recorded.
                Some(lost) = pulse.join_next() => return Err(lost.unwrap_or_else(|_| Error::EffectBroke(self.id.clone()))),
            }
        }
    }

    /// Slows down as asked: nothing new starts, and after a while (or at once) what is under way is cut off.
    fn heed(&mut self, level: StopLevel, deadline: &mut Option<tokio::time::Instant>) {
        if level >= StopLevel::Drain && self.pace == Pace::Go {
            self.pace = Pace::Hold;
            *deadline = Some(tokio::time::Instant::now() + self.config.drain);
            // A wait is no work under way: it starts again from the journal.
            if self.running.iter().all(|key| matches!(key, Key::Wait(_))) {
                self.tasks.abort_all();
                self.tasks = JoinSet::new();
            }
            self.notify(Notice::Draining { under_way: self.tasks.len() });
        }
        if level >= StopLevel::Cut {
            self.cut.cancel();
        }
    }

    async fn finish(mut self) -> Ended {
        self.tasks.shutdown().await;
        if let Some(bash) = self.bash.take() {
            bash.stop().await;
        }
        // A lease that cannot be given back ends with its process; that is no reason to keep the answer back.
        let _ = self.config.journal.release(&self.lease).await;
        let outcome = if self.agent.is_idle() { self.agent.outcome().cloned() } else { None };
        Ended { outcome, summary: self.agent.summary() }
    }

    /// Takes what waits in the journal, as far as the agent can hear it now.
    async fn take_inputs(&mut self) -> Result<(), Error> {
        if self.agent.is_started() && !self.agent.is_idle() {
            return Ok(());
        }
        let inputs = self.config.journal.inputs(&self.stream).await?;
        if inputs.is_empty() && !self.agent.is_started() {
            return Err(Error::NoSuchAgent(self.id.clone()));
        }
        // One at a time: the agent is busy with it then.
        let Some(input) = inputs.into_iter().next() else { return Ok(()) };
        let bad = |cause| Error::BadInput { agent: self.id.clone(), key: input.key.clone(), cause };
        let waiting: Waiting = serde_json::from_str(&input.body).map_err(bad)?;
        let (key, text) = (input.key.clone(), waiting.say);
        let input_taken = match waiting.start.filter(|_| !self.agent.is_started()) {
            Some(spec) => Input::Start { spec: Box::new(spec), key, text },
            None => Input::Say { key, text },
        };
        self.input(input_taken, vec![input.key]).await
    }

    fn start_effects(&mut self) {
        for effect in self.agent.pending() {
            let key = match &effect {
                Effect::CallModel { call, attempt } => Key::Model(*call, *attempt),
                Effect::RunTool { id, .. } => Key::Tool(id.clone()),
                Effect::Wait { until } => Key::Wait(*until),
            };
            if self.running.insert(key) {
                self.perform(effect);
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        let config = Arc::clone(&self.config);
        let cut = self.cut.clone();
        match effect {
            Effect::CallModel { call, attempt } => {
                let Some(request) = self.agent.request() else { return };
                let (watcher, agent) = (self.watcher.clone(), self.id.clone());
                self.tasks.spawn(async move {
                    let model = config.models.get(&request.spec.model);
                    let live = |live: Live<'_>| {
                        if let Some(piece) = Piece::of(live) {
                            tell(&watcher, Notice::Live { agent: agent.clone(), piece });
                        }
                    };
                    let mut result = tokio::select! {
                        result = config.client.send(wire(request), live) => result,
                        () = cut.cancelled() => Err(stopped()),
                    };
                    if let Ok(reply) = &mut result {
                        reply.cost_nano = convoke_claude::cost(&model, &reply.usage);
                    }
                    Done::Model { call, attempt, result: Box::new(result) }
                });
            }
            Effect::RunTool { id, request } => {
                let mut bash = self.bash.take().unwrap_or_else(|| Box::new(self.new_bash()));
                self.tasks.spawn(async move {
                    let result = bash.perform(&id, request, cut).await;
                    Done::Tool { id, result, bash }
                });
            }
            Effect::Wait { until } => {
                self.tasks.spawn(async move {
                    config.clock.sleep_until(until).await;
                    Done::Wait
                });
            }
        }
    }

    fn new_bash(&self) -> Bash {
        let spec = self.agent.spec();
        let dir = spec.map(|spec| PathBuf::from(&spec.dir)).unwrap_or_default();
        let timeout = Duration::from_millis(spec.map_or(60_000, |spec| spec.limits.bash_timeout_ms));
        Bash::new(Arc::clone(&self.config), self.id.as_str(), dir, timeout, self.agent.shell().cloned())
    }

    async fn report(&mut self, done: Done) -> Result<(), Error> {
        let input = match done {
            Done::Model { call, attempt, result } => {
                self.running.remove(&Key::Model(call, attempt));
                match *result {
                    Ok(reply) => Input::Replied { call, reply: Box::new(reply) },
                    Err(failure) => Input::Failed { call, attempt, failure },
                }
            }
            Done::Tool { id, result, bash } => {
                self.running.remove(&Key::Tool(id.clone()));
                self.bash = Some(bash);
                Input::ToolDone { id, result }
            }
            Done::Wait => {
                self.running.retain(|key| !matches!(key, Key::Wait(_)));
                Input::Waited
            }
        };
        self.input(input, Vec::new()).await
    }

    /// One round of the circle: decide, commit, fold, tell.
    async fn input(&mut self, input: Input, acks: Vec<String>) -> Result<(), Error> {
        let at = self.config.clock.now();
        let events = self.agent.decide(input, at, self.pace)?;
        if events.is_empty() && acks.is_empty() {
            // Nothing follows, so what was pending still is: a wait that ended before its time begins again.
            if self.pace == Pace::Go {
                self.start_effects();
            }
            return Ok(());
        }
        let encoded = events.iter().map(Event::encode).collect::<Result<Vec<_>, _>>()?;
        let bad = |cause| Error::BadHistory { agent: self.id.clone(), seq: self.seq + 1, cause };
        let summary = self.agent.summary_after(&events, at).map_err(bad)?;
        let summary = summary.map(|summary| serde_json::to_string(&summary)).transpose()?;
        let batch = Batch { at, events: encoded, acks, summary, ..Batch::default() };
        self.crash(Moment::BeforeCommit, &events)?;
        let seq = match self.config.journal.append(&self.lease, self.seq, &batch).await {
            Ok(seq) => seq,
            Err(cause) => return Err(self.unrecorded(cause, &events, &batch)),
        };
        let first = self.seq + 1;
        for (event, seq) in events.iter().zip(first..) {
            self.fold(seq, at, event)?;
        }
        debug_assert_eq!(self.seq, seq, "the journal and the driver count alike");
        self.crash(Moment::AfterCommit, &events)?;
        for (event, seq) in events.into_iter().zip(first..) {
            self.notify(Notice::Recorded { agent: self.id.clone(), seq, at, event: Box::new(event) });
        }
        // What was decided is begun at once: a stop in between would leave it decided and never done, and the next
        // resume would have to call its outcome unknown.
        if self.pace == Pace::Go {
            self.start_effects();
        }
        Ok(())
    }

    fn crash(&self, moment: Moment, events: &[Event]) -> Result<(), Error> {
        match &self.config.crash {
            Some(Crash(dies)) if dies(moment, events) => Err(Error::Crashed),
            _ => Ok(()),
        }
    }

    /// What came back is paid for: it is spooled unless another process took the stream over.
    fn unrecorded(&self, cause: convoke_journal::Error, events: &[Event], batch: &Batch) -> Error {
        use convoke_journal::Error::{LostLease, StaleSequence};
        if matches!(cause, LostLease { .. } | StaleSequence { .. }) {
            return Error::Journal(cause);
        }
        let text = events.iter().find_map(|event| match event {
            Event::ModelReplied(e) if e.kept == Kept::Yes => Some(e.reply.text.clone()),
            _ => None,
        });
        let outcome = events.iter().find_map(|event| match event {
            Event::ExchangeClosed(e) => Some(Box::new(e.outcome.clone())),
            _ => None,
        });
        let worth = events.iter().any(|e| matches!(e, Event::ModelReplied(_) | Event::ToolFinished(_)));
        // Only the outcome is kept, not what would have followed from it: that was never allowed to start.
        let spooled = if worth {
            spool::keep(&self.config.spools, &self.stream, self.seq, &outcome_only(events, batch))
        } else {
            None
        };
        let summary = self.agent.summary_after(events, batch.at).ok().flatten().map(Box::new);
        Error::Unrecorded { cause, text, outcome, summary, spooled }
    }

    fn notify(&self, notice: Notice) {
        tell(&self.watcher, notice);
    }
}

/// Keeps saying that this process lives, apart from the driver, so that a slow store holds nothing up. Ends when the lease
/// has gone to somebody else, which a process that was suspended for long only learns by asking.
async fn keep_the_lease(config: Arc<Config>, lease: Lease) -> Error {
    let mut beats = tokio::time::interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats.reset();
    loop {
        beats.tick().await;
        // A store that does not answer is asked again; if the lease is lost meanwhile, the next append says so.
        let _ = config.journal.heartbeat().await;
        if let Ok(false) = config.journal.holds(&lease).await {
            return Error::Journal(convoke_journal::Error::LostLease { stream: lease.stream().clone() });
        }
    }
}

/// The batch without its decisions to call or run something: those have not been acted upon.
fn outcome_only(events: &[Event], batch: &Batch) -> Batch {
    let keep = |event: &Event| !matches!(event, Event::ModelCalled(_) | Event::ToolStarted(_));
    let kept = events.iter().zip(&batch.events).take_while(|(event, _)| keep(event)).map(|(_, text)| text.clone());
    Batch { events: kept.collect(), ..batch.clone() }
}

fn tell(watcher: &Option<Watcher>, notice: Notice) {
    if let Some(watcher) = watcher {
        // A watcher that is gone is no reason to stop working.
        let _ = watcher.send(notice);
    }
}

fn wire(request: ModelRequest) -> Request {
    Request {
        model: request.spec.model.clone(),
        max_tokens: request.max_tokens,
        system: Some(request.spec.system.clone()),
        tools: Some(request.spec.tools.clone()),
        params: request.params().iter().map(|param| (param.name.clone(), param.value.clone())).collect(),
        messages: request.messages,
    }
}

fn stopped() -> Failure {
    Failure {
        kind: FailureKind::Interrupted,
        message: "a person stopped Convoke while the model was answering".to_owned(),
        retry: Retry::Soon,
        request_id: None,
    }
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
