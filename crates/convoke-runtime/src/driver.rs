//! Drives one agent's stream under its lease: decide, commit, act, report. It translates and has no policy of
//! its own: what follows from what is the kernel's business.

mod commit;
mod halt;
mod handle;
mod lessons;
mod member;
mod perform;

use std::collections::HashSet;
use std::sync::Arc;

use convoke_journal::{Lease, StreamId};
use convoke_kernel::{Agent, AgentId, Event, HeldBack, Input, NextInput, Pace};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::control;
use crate::drive::{DriveMode, DriveOutcome};
use crate::effects::{Done, Key};
use crate::error::Error;
use crate::governor::Permit;
use crate::heartbeat::{keep_the_lease, until};
use crate::inputs;
use crate::local_tools::LocalTools;
use crate::notice::Notice;
use crate::outage;
use crate::recovery::{first_spec, load};
use crate::runtime::Config;
use crate::session::{Opening, Session};
use crate::session_ledger::Doing;
use crate::stop::{Stop, StopLevel};
use crate::stream_writer::StreamWriter;
use crate::team::TeamCache;
use crate::wakers::WakeHandle;

pub(crate) use commit::CommitExtras;
use halt::Halting;
use member::woken;

pub(crate) struct Driver {
    config: Arc<Config>,
    id: AgentId,
    writer: StreamWriter<Event>,
    agent: Agent,
    session: Arc<Session>,
    tasks: JoinSet<Done>,
    running: HashSet<Key>,
    local_tools: Option<Arc<LocalTools>>,
    /// The right to send the request that was decided last.
    permit: Option<Permit>,
    /// Waiting for room is no work under way, so it can be given up.
    waiting: Option<AbortHandle>,
    stop: Stop,
    /// Whether it opened the session.
    leads: bool,
    cut: CancellationToken,
    /// Cuts off what is under way for the exchange that is open, and nothing else.
    ours: CancellationToken,
    /// The same for those that work for it.
    below: watch::Sender<Option<String>>,
    /// Rings when something is said to the agent in this process.
    waker: WakeHandle,
    /// A person's request to stop what the agent is at, from when it is heard until it is done.
    halting: Option<Halting>,
    /// Cuts the commands off that run right now, and nothing else.
    hurry: CancellationToken,
    /// Whether an urgent letter did that.
    hurried: bool,
    /// Whether it was taken up by this process, and told so.
    taken_up: bool,
    /// Whether the agent will not work again.
    for_good: bool,
    /// The last exchange was stopped, or failed on letters or a task; letters wait for words or a new drive.
    gave_up: bool,
    /// The last exchange got no answer; words wait for the next drive, because they would fail like the last.
    words_wait: bool,
    pace: Pace,
}

impl Driver {
    /// Takes the lease of an agent and folds what has happened so far. Without a session it opens its own.
    pub(crate) async fn own(
        config: Arc<Config>,
        id: AgentId,
        session: Option<Arc<Session>>,
        opening: Option<Opening>,
        stop: Stop,
    ) -> Result<Self, Error> {
        let stream = StreamId::from(&id);
        let lease = config.journal.own(&stream).await?;
        let held = lease.clone();
        match Self::begin(Arc::clone(&config), id, lease, session, opening, stop).await {
            Ok(driver) => Ok(driver),
            Err(error) => {
                let _ = config.journal.release(&held).await;
                Err(error)
            }
        }
    }

    async fn begin(
        config: Arc<Config>,
        id: AgentId,
        lease: Lease,
        session: Option<Arc<Session>>,
        opening: Option<Opening>,
        stop: Stop,
    ) -> Result<Self, Error> {
        let stream = StreamId::from(&id);
        let mut agent = Agent::new();
        let mut seq = 0;
        load(&config, &id, &stream, &mut agent, &mut seq).await?;
        let leads = session.is_none();
        let session = match session {
            Some(session) => session,
            None => {
                let spec = match agent.spec() {
                    Some(spec) => spec.clone(),
                    None => first_spec(&config, &id, &stream).await?,
                };
                config.tools.check(spec.given())?;
                Arc::new(Session::open(&config, &id, &spec, opening).await?)
            }
        };
        config.tools.check(agent.spec().map_or(&[], |spec| spec.given()))?;
        session.ledger.set(id.as_str(), Some(Doing::Working));
        session.lessons.recall(agent.lessons(), config.client.endpoint());
        let cut = CancellationToken::new();
        let ours = cut.child_token();
        let waker = session.wakers.register(&id);
        let writer = StreamWriter::new(&config, &session, id.clone(), stream, lease, seq, &stop);
        let mut driver = Self {
            config,
            id,
            writer,
            agent,
            session,
            tasks: JoinSet::new(),
            running: HashSet::new(),
            local_tools: None,
            permit: None,
            waiting: None,
            stop,
            leads,
            hurry: ours.child_token(),
            ours,
            below: watch::channel(None).0,
            waker,
            halting: None,
            cut,
            hurried: false,
            taken_up: false,
            for_good: false,
            gave_up: false,
            words_wait: false,
            pace: Pace::Go,
        };
        // What an earlier process received and could not record is paid for as it was billed, before the rest
        // counts as lost.
        driver.unspool().await?;
        if leads {
            driver.session.hold().await?;
        } else {
            driver.session.ledger.take_over(driver.id.as_str()).await?;
        }
        Ok(driver)
    }

    /// The session it works in.
    pub(crate) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// Whether the agent was left in the middle of something.
    pub(crate) fn is_under_way(&self) -> bool {
        self.agent.is_started() && !self.agent.is_idle()
    }

    /// Drives until the inputs are used up and the exchange is closed, or until a stop is requested.
    pub(crate) async fn run(mut self, mode: DriveMode) -> Result<DriveOutcome, Error> {
        let driven = self.drive(mode).await;
        if matches!(driven, Err(Error::Crashed)) {
            // A process that dies tidies nothing up.
            return Err(Error::Crashed);
        }
        if self.leads && driven.is_ok() {
            let journal = &self.config.journal;
            control::acknowledge(journal, &self.config.clock, self.writer.lease(), self.writer.seq()).await;
        }
        let ended = self.finish().await;
        driven.map(|()| ended)
    }

    /// Drives until nothing is left to do for now.
    pub(crate) async fn drive(&mut self, mode: DriveMode) -> Result<(), Error> {
        let mut stop = self.stop.clone();
        let mut waker = self.session.team_cache.as_ref().map(TeamCache::listen);
        let mut words = self.waker.listen();
        // Before anything is taken in: what that leads to says better what the agent does.
        self.session.ledger.set(self.id.as_str(), Some(Doing::Working));
        let mut deadline: Option<tokio::time::Instant> = None;
        // A stop that came while the stream was loaded counts before anything is started.
        self.heed(stop.asked(), &mut deadline);
        self.gave_up = false;
        self.words_wait = false;
        // What a person stopped before this drive does not go on, whatever else there is.
        self.look().await?;
        self.halt().await?;
        if let (DriveMode::Resume { changed }, true) = (mode, self.agent.is_started()) {
            // Switches and answers from before count for what goes on, and start nothing yet: what was cut
            // off is told first.
            let pace = std::mem::replace(&mut self.pace, Pace::Hold);
            while pace == Pace::Go && self.take_input(true).await? {}
            self.pace = pace;
            let resume = self.resume(changed).await?;
            self.input(resume, CommitExtras::default()).await?;
        }
        self.taken_up = true;
        let mut pulse = JoinSet::new();
        // A process has one heartbeat, and its lead keeps it going for all.
        if self.leads {
            pulse.spawn(keep_the_lease(Arc::clone(&self.config), self.writer.lease().clone()));
            pulse.spawn(outage::tell(self.config.journal.clone(), self.session()));
        }
        loop {
            self.listen(&mut words).await?;
            self.halt().await?;
            if stop.halted().is_some() {
                return Ok(());
            }
            let level = stop.level();
            self.heed(stop.asked(), &mut deadline);
            // A switch that is turned starts nothing: what was said after it is taken at once.
            while self.pace == Pace::Go && self.halting.is_none() && self.take_input(false).await? {}
            if self.halting.is_some() {
                continue;
            }
            if self.tasks.is_empty() && !self.waits_for_team().await? {
                // Something may have been said since this looked.
                if self.waker.unregister(&words) {
                    return Ok(());
                }
                continue;
            }
            // Above the level that was heeded, not the one there is now: a stop may have come in between.
            tokio::select! {
                Some(done) = self.tasks.join_next() => {
                    let done = match done {
                        Ok(done) => done,
                        // Room that is not waited for any more; it is asked for again from the journal.
                        Err(error) if error.is_cancelled() => {
                            self.gives_up_room();
                            continue;
                        }
                        Err(_) => return Err(Error::EffectBroke(self.id.clone())),
                    };
                    // A stop that came with the outcome counts first, or something would be decided and never
                    // done.
                    self.heed(stop.asked(), &mut deadline);
                    self.listen(&mut words).await?;
                    self.report_unless_halting(done).await?;
                }
                _ = stop.above(level) => {}
                () = woken(waker.as_mut()) => self.heed_urgent(),
                () = woken(Some(&mut words)) => self.look().await?,
                () = until(deadline), if deadline.is_some() => {
                    deadline = None;
                    self.cut.cancel();
                }
                // Another process drives this agent now: work under way here ends and is not recorded.
                Some(lost) = pulse.join_next() => {
                    return Err(lost.unwrap_or_else(|_| Error::EffectBroke(self.id.clone())));
                }
            }
        }
    }

    /// Slows down as asked: nothing new starts, and after a while (or at once) what is under way is cut off.
    fn heed(&mut self, level: StopLevel, deadline: &mut Option<tokio::time::Instant>) {
        if level >= StopLevel::Drain && self.pace == Pace::Go {
            self.pace = Pace::Hold;
            *deadline = Some(tokio::time::Instant::now() + self.config.drain);
            if let Some(waiting) = self.waiting.take() {
                waiting.abort();
            }
            self.notify(Notice::Draining { under_way: self.tasks.len() });
        }
        if level >= StopLevel::Cut {
            self.cut.cancel();
        }
    }

    /// Takes the next input that waits in the journal, if the agent can hear it now; says whether it took
    /// one. With `switches` it takes a turn of the switch and nothing else.
    async fn take_input(&mut self, switches: bool) -> Result<bool, Error> {
        if !self.agent.takes_input() {
            return Ok(false);
        }
        let queue = inputs::queue(self.writer.inputs().await?);
        if queue.is_empty() && !self.agent.is_started() {
            return Err(Error::NoSuchAgent(self.id.clone()));
        }
        // One that was stopped before it existed is stopped as soon as it does.
        let stopped = Halting::among(&queue).filter(|_| !self.agent.is_started());
        let held_back =
            HeldBack { all_but_switches: switches, letters: self.gave_up, words: self.words_wait };
        let Some(NextInput { input, keys }) = self.agent.next_input(&queue, held_back) else {
            return Ok(false);
        };
        let input = match input {
            Input::StopExchange { by } => {
                self.halting = Some(Halting { by, acks: keys });
                self.halt().await?;
                return Ok(true);
            }
            Input::Mail { key, letters, .. } => self.mail(key, letters),
            input => input,
        };
        self.input(input, CommitExtras::acks(keys)).await?;
        self.halting = stopped.filter(|_| self.agent.is_started());
        Ok(true)
    }

    /// Whether a lead without anything to do stays, because its team has.
    async fn waits_for_team(&self) -> Result<bool, Error> {
        let Some(team_cache) = self.session.team_cache.as_ref().filter(|_| self.leads_team()) else {
            return Ok(false);
        };
        if self.pace == Pace::Hold || !self.agent.is_idle() || !self.leads {
            return Ok(false);
        }
        // A store that does not answer is asked again by the host.
        let _ = team_cache.reload().await;
        // A lead that failed reads no more letters; the others come to rest before the session is over.
        team_cache.set_deaf(self.gave_up);
        let waits = team_cache.is_there() && !team_cache.is_quiet();
        if waits {
            // It wants no money while it waits, so that others need not wait for what it might give back.
            self.rests();
        }
        Ok(waits)
    }

    fn notify(&self, notice: Notice) {
        self.session.tell(notice);
    }
}
