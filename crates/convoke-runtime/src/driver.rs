//! Drives one agent's stream under its lease: decide, commit, act, report. It translates and has no policy of its own:
//! what follows from what is the kernel's business.

use std::collections::HashSet;
use std::sync::Arc;

use convoke_journal::{Batch, Lease, StreamId, Update};
use convoke_kernel::{Agent, AgentId, Effect, Event, Input, Pace, Room};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::accounts;
use crate::children::Parent;
use crate::control;
use crate::crash::Moment;
use crate::effects::{self, Done, Key};
use crate::error::Error;
use crate::governor::Permit;
use crate::hands::Hands;
use crate::inputs;
use crate::notice::{Notice, Watcher};
use crate::pulse::{keep_the_lease, until};
use crate::purse::Doing;
use crate::recovery::{first_spec, load};
use crate::runtime::Config;
use crate::session::Session;
use crate::spool;
use crate::stop::{Stop, StopLevel};
use crate::take::{Ended, Take};

pub(crate) struct Driver {
    config: Arc<Config>,
    id: AgentId,
    stream: StreamId,
    lease: Lease,
    seq: u64,
    agent: Agent,
    session: Arc<Session>,
    tasks: JoinSet<Done>,
    running: HashSet<Key>,
    hands: Option<Arc<Hands>>,
    /// The right to send the request that was decided last.
    permit: Option<Permit>,
    /// Waiting for room is no work under way, so it can be given up.
    waiting: Option<AbortHandle>,
    stop: Stop,
    /// Whether it opened the session.
    leads: bool,
    cut: CancellationToken,
    pace: Pace,
}

impl Driver {
    /// Takes the lease of an agent and folds what has happened so far. Without a session it opens its own.
    pub(crate) async fn own(
        config: Arc<Config>,
        id: AgentId,
        session: Option<Arc<Session>>,
        watcher: Option<Watcher>,
        stop: Stop,
    ) -> Result<Self, Error> {
        let stream = StreamId::from(&id);
        let lease = config.journal.own(&stream).await?;
        let held = lease.clone();
        match Self::begin(Arc::clone(&config), id, lease, session, watcher, stop).await {
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
        watcher: Option<Watcher>,
        stop: Stop,
    ) -> Result<Self, Error> {
        let stream = StreamId::from(&id);
        let (mut agent, mut seq) = (Agent::new(), 0);
        load(&config, &id, &stream, &mut agent, &mut seq).await?;
        let leads = session.is_none();
        let session = match session {
            Some(session) => session,
            None => {
                let spec = match agent.spec() {
                    Some(spec) => spec.clone(),
                    None => first_spec(&config, &id, &stream).await?,
                };
                Arc::new(Session::open(&config, &id, &spec, watcher).await?)
            }
        };
        session.purse.set(id.as_str(), Some(Doing::Working));
        let mut driver = Self {
            config,
            id,
            stream,
            lease,
            seq,
            agent,
            session,
            tasks: JoinSet::new(),
            running: HashSet::new(),
            hands: None,
            permit: None,
            waiting: None,
            stop,
            leads,
            cut: CancellationToken::new(),
            pace: Pace::Go,
        };
        // What an earlier process received and could not record is paid for as it was billed, before the rest counts as lost.
        driver.unspool().await?;
        if leads {
            driver.session.hold().await?;
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

    async fn load(&mut self) -> Result<(), Error> {
        load(&self.config, &self.id, &self.stream, &mut self.agent, &mut self.seq).await
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
        let Ok(events) = decoded else { return Ok(()) };
        let Ok(summary) = self.agent.summary_after(&events, spooled.at) else { return Ok(()) };
        let summary = summary.map(|summary| serde_json::to_string(&summary)).transpose()?;
        let updates = self.updates(&events, spooled.at, None);
        let (at, acks) = (spooled.at, spooled.acks);
        let batch = Batch { at, events: spooled.events, acks, summary, updates, ..Batch::default() };
        let appended = self.config.journal.append_shared(&self.lease, self.seq, &batch).await?;
        self.session.adopt(&appended.states)?;
        self.load().await?;
        // The batch is recorded now; a file that stays would merely not fit any more.
        let _ = std::fs::remove_file(path);
        Ok(())
    }

    /// Drives until the inputs are used up and the exchange is closed, or until somebody asks to stop.
    pub(crate) async fn run(mut self, take: Take) -> Result<Ended, Error> {
        let driven = self.drive(take).await;
        if matches!(driven, Err(Error::Crashed)) {
            // A process that dies tidies nothing up.
            return Err(Error::Crashed);
        }
        if self.leads && driven.is_ok() {
            control::acknowledge(&self.config.journal, &self.config.clock, &self.lease, self.seq).await;
        }
        let ended = self.finish().await;
        driven.map(|()| ended)
    }

    async fn drive(&mut self, take: Take) -> Result<(), Error> {
        let mut stop = self.stop.clone();
        let mut deadline: Option<tokio::time::Instant> = None;
        // A stop that came while the stream was loaded counts before anything is started.
        self.heed(stop.level(), &mut deadline);
        if let (Take::Resume { changed }, true) = (take, self.agent.is_started()) {
            // Switches and answers from before count for what goes on, and start nothing yet: what was cut off is told first.
            let pace = std::mem::replace(&mut self.pace, Pace::Hold);
            while pace == Pace::Go && self.take_input(true).await? {}
            self.pace = pace;
            self.input(Input::Resume { changed }, Vec::new(), None).await?;
        }
        let mut pulse = JoinSet::new();
        // A process has one heartbeat, and its lead keeps it going for all.
        if self.leads {
            pulse.spawn(keep_the_lease(Arc::clone(&self.config), self.lease.clone()));
        }
        loop {
            let level = stop.level();
            self.heed(level, &mut deadline);
            // A switch that is turned starts nothing: what was said after it is taken at once.
            while self.pace == Pace::Go && self.take_input(false).await? {}
            if self.tasks.is_empty() {
                return Ok(());
            }
            // Above the level that was heeded, not the one there is now: a stop may have come in between.
            tokio::select! {
                Some(done) = self.tasks.join_next() => {
                    let done = match done {
                        Ok(done) => done,
                        // Room that is not waited for any more; it is asked for again from the journal.
                        Err(error) if error.is_cancelled() => continue,
                        Err(_) => return Err(Error::EffectBroke(self.id.clone())),
                    };
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
            if let Some(waiting) = self.waiting.take() {
                waiting.abort();
            }
            self.notify(Notice::Draining { under_way: self.tasks.len() });
        }
        if level >= StopLevel::Cut {
            self.cut.cancel();
        }
    }

    async fn finish(mut self) -> Ended {
        self.tasks.shutdown().await;
        if let Some(hands) = self.hands.take() {
            hands.stop(self.agent.is_idle()).await;
        }
        // A lease that cannot be given back ends with its process; that is no reason to keep the answer back.
        let _ = self.config.journal.release(&self.lease).await;
        self.session.purse.set(self.id.as_str(), None);
        let ended = Ended {
            outcome: None,
            summary: self.agent.summary(),
            report: self.agent.report().cloned(),
            ballot: self.agent.ballot().cloned(),
            output: self.agent.output().cloned(),
            degraded: self.agent.degraded().map(str::to_owned),
            parked: self.pace == Pace::Go && self.agent.is_started() && !self.agent.is_done(),
            asked: None,
        };
        if self.agent.is_done() { Ended { outcome: self.agent.outcome().cloned(), ..ended } } else { ended }
    }

    /// Takes the next input that waits in the journal, if the agent can hear it now; says whether it took one. With
    /// `switches` it takes a turn of the switch and nothing else.
    async fn take_input(&mut self, switches: bool) -> Result<bool, Error> {
        if !inputs::can_hear(&self.agent) {
            return Ok(false);
        }
        let waiting = self.config.journal.inputs(&self.stream).await?;
        if waiting.is_empty() && !self.agent.is_started() {
            return Err(Error::NoSuchAgent(self.id.clone()));
        }
        let Some((input, key)) = inputs::next(&self.id, &self.agent, waiting, switches)? else { return Ok(false) };
        self.input(input, vec![key], None).await?;
        Ok(true)
    }

    fn start_effects(&mut self) {
        let pending = self.agent.pending();
        self.say_what_it_does(&pending);
        for effect in pending {
            if self.running.insert(Key::of(&effect)) {
                self.perform(effect);
            }
        }
    }

    fn say_what_it_does(&self, pending: &[Effect]) {
        let waits = self.running.iter().any(|key| matches!(key, Key::Room(..)));
        if let Some(doing) = effects::doing(pending).filter(|_| !waits) {
            self.session.purse.set(self.id.as_str(), Some(doing));
        }
    }

    fn perform(&mut self, effect: Effect) {
        let (config, session, cut) = (Arc::clone(&self.config), Arc::clone(&self.session), self.cut.clone());
        match effect {
            Effect::AskRoom { not_before, .. } => {
                let (Some(ask), Some(spec)) = (self.agent.room_ask(), self.agent.spec().cloned()) else { return };
                let room = effects::room(config, session, self.id.clone(), spec, ask, not_before);
                self.waiting = Some(self.tasks.spawn(room));
            }
            Effect::CallModel { call, attempt } => {
                let Some(request) = self.agent.request() else { return };
                let permit = self.permit.take();
                self.tasks.spawn(effects::call(
                    config,
                    session,
                    self.id.clone(),
                    request,
                    (call, attempt),
                    permit,
                    cut,
                ));
            }
            Effect::AskPerson { id, what, why } => {
                let Some(spec) = self.agent.spec() else { return };
                // Without anybody to ask, a parked question stays pending and its agent waits.
                if config.asker.is_none() && spec.approvals.park {
                    return;
                }
                let label = spec.label.clone();
                self.tasks.spawn(effects::person(config, self.id.clone(), label, id, (what, why), self.stop.clone()));
            }
            Effect::RunTool { id, request } if request.is_own_work() => {
                let Some(hands) = self.hands() else { return };
                self.tasks.spawn(async move {
                    let result = hands.perform(&id, request, cut).await;
                    Done::Tool { id, result }
                });
            }
            Effect::RunTool { id, request } => {
                let Some(spec) = self.agent.spec().cloned() else { return };
                let parent = Parent { config, session, id: self.id.clone(), spec, stop: self.stop.clone() };
                self.tasks.spawn(effects::child(parent, id, request));
            }
            Effect::DriveRun { run } => {
                let Some(spec) = self.agent.spec().cloned() else { return };
                let parent = Parent { config, session, id: self.id.clone(), spec, stop: self.stop.clone() };
                self.tasks.spawn(effects::run(parent, run));
            }
        }
    }

    /// The agent's hands, made when they are first needed.
    fn hands(&mut self) -> Option<Arc<Hands>> {
        if self.hands.is_none() {
            let (config, session) = (Arc::clone(&self.config), Arc::clone(&self.session));
            let (spec, shell) = (self.agent.spec()?.clone(), self.agent.shell().cloned());
            self.hands = Some(Arc::new(Hands::new(config, session, self.id.clone(), spec, shell)));
        }
        self.hands.clone()
    }

    async fn report(&mut self, done: Done) -> Result<(), Error> {
        let input = match done {
            Done::Room { call, attempt, granted } => {
                self.running.remove(&Key::Room(call, attempt));
                if self.pace == Pace::Hold {
                    // Nothing new is sent; what was granted goes back.
                    self.session.purse.withdraw(self.id.as_str());
                    return Ok(());
                }
                self.permit = granted.permit;
                return self.input(Input::Room { call, answer: granted.answer }, Vec::new(), granted.room).await;
            }
            Done::Model { call, attempt, result } => {
                self.running.remove(&Key::Model(call, attempt));
                match *result {
                    Ok(reply) => Input::Replied { call, reply: Box::new(reply) },
                    Err(failure) => Input::Failed { call, attempt, failure },
                }
            }
            Done::Tool { id, result } => {
                self.running.remove(&Key::Tool(id.clone()));
                Input::ToolDone { id, result }
            }
            Done::Answered { id, allow, by } => {
                self.running.remove(&Key::Person(id.clone()));
                // It may have been answered elsewhere meanwhile.
                match allow {
                    Some(allow) if inputs::asks(&self.agent).any(|asked| asked == id) => {
                        Input::Answered { id, allow, by }
                    }
                    Some(_) | None => return Ok(()),
                }
            }
            // Its end is an input that waits in the journal by now; one that waits for a person goes on with a resume.
            Done::Run { driven } => return driven.map(drop),
            Done::Child { id, result } => {
                self.running.remove(&Key::Tool(id.clone()));
                // Without a result it was stopped, and goes on where it stands when somebody resumes it.
                let Some(result) = result? else { return Ok(()) };
                Input::ToolDone { id, result }
            }
        };
        self.input(input, Vec::new(), None).await
    }

    /// One round of the circle: decide, commit, fold, tell. `room` is what a request was granted.
    async fn input(&mut self, input: Input, acks: Vec<String>, room: Option<Room>) -> Result<(), Error> {
        let at = self.config.clock.now();
        let events = self.agent.decide(input, at, self.pace)?;
        let called = events.iter().any(|event| matches!(event, Event::ModelCalled(_)));
        if room.is_some() && !called {
            self.permit = None;
            self.session.purse.withdraw(self.id.as_str());
        }
        if events.is_empty() && acks.is_empty() {
            return Ok(());
        }
        let encoded = events.iter().map(Event::encode).collect::<Result<Vec<_>, _>>()?;
        let bad = |cause| Error::BadHistory { agent: self.id.clone(), seq: self.seq + 1, cause };
        let summary = self.agent.summary_after(&events, at).map_err(bad)?;
        let summary = summary.map(|summary| serde_json::to_string(&summary)).transpose()?;
        let updates = self.updates(&events, at, room);
        let batch = Batch { at, events: encoded, acks, summary, updates, ..Batch::default() };
        self.crash(Moment::BeforeCommit, &events)?;
        let appended = match self.config.journal.append_shared(&self.lease, self.seq, &batch).await {
            Ok(appended) => appended,
            Err(convoke_journal::Error::Declined { .. }) if called => return self.ask_again().await,
            Err(cause) => {
                let spools = &self.config.spools;
                return Err(spool::unrecorded(spools, &self.stream, self.seq, &self.agent, cause, (&events, &batch)));
            }
        };
        let seq = appended.seq;
        self.session.adopt(&appended.states)?;
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

    /// What these events mean for the ledger, to be committed with them.
    fn updates(&self, events: &[Event], at: u64, room: Option<Room>) -> Vec<Update> {
        let entries = accounts::entries(&self.id, &self.agent, events, room);
        if entries.is_empty() { Vec::new() } else { vec![self.session.purse.update(entries, at)] }
    }

    /// Somebody in another process spent what was granted here: the newest ledger is asked.
    async fn ask_again(&mut self) -> Result<(), Error> {
        self.permit = None;
        self.session.purse.withdraw(self.id.as_str());
        self.session.purse.reload().await?;
        self.start_effects();
        Ok(())
    }

    fn crash(&self, moment: Moment, events: &[Event]) -> Result<(), Error> {
        match &self.config.crash {
            Some(crash) if crash.dies(moment, events) => Err(Error::Crashed),
            _ => Ok(()),
        }
    }

    fn notify(&self, notice: Notice) {
        self.session.tell(notice);
    }
}
