//! Drives one agent's stream under its lease: decide, commit, act, report. It translates and has no policy of its own:
//! what follows from what is the kernel's business.

mod commit;
mod halt;
mod handle;
mod member;

use std::collections::HashSet;
use std::sync::Arc;

use convoke_journal::{Lease, StreamId};
use convoke_kernel::{Agent, AgentId, Effect, Event, Input, Pace, ToolRequest};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::bells::Bell;
use crate::children::Parent;
use crate::control;
use crate::effects::{self, Done, Key};
use crate::error::Error;
use crate::governor::Permit;
use crate::hands::Hands;
use crate::inputs;
use crate::notice::Notice;
use crate::outage;
use crate::pulse::{keep_the_lease, until};
use crate::purse::Doing;
use crate::recovery::{first_spec, load};
use crate::runtime::Config;
use crate::session::{Opening, Session};
use crate::stop::{Stop, StopLevel};
use crate::take::{Ended, Take};
use crate::team::Crew;

pub(crate) use commit::Beside;
use halt::Halting;
use member::rung;

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
    /// Cuts off what is under way for the exchange that is open, and nothing else.
    ours: CancellationToken,
    /// The same for those that work for it.
    below: watch::Sender<Option<String>>,
    /// Rings when something is said to the agent in this process.
    bell: Bell,
    /// That a person stops what the agent is at, once it is heard and until it is done.
    halting: Option<Halting>,
    /// Cuts the commands off that run right now, and nothing else.
    hurry: CancellationToken,
    /// Whether an urgent letter did that.
    hurried: bool,
    /// Whether it was taken up by this process, and told so.
    taken_up: bool,
    /// Whether the agent will not work again.
    for_good: bool,
    /// Whether it failed at what it was brought, or was stopped: letters wait until somebody speaks to it or takes it up again.
    gave_up: bool,
    /// Whether it could not be answered, and further words wait until somebody takes it up again: they would fail like the last ones.
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
                Arc::new(Session::open(&config, &id, &spec, opening).await?)
            }
        };
        session.purse.set(id.as_str(), Some(Doing::Working));
        let cut = CancellationToken::new();
        let (ours, bell) = (cut.child_token(), session.bells.hang(&id));
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
            hurry: ours.child_token(),
            ours,
            below: watch::channel(None).0,
            bell,
            halting: None,
            cut,
            hurried: false,
            taken_up: false,
            for_good: false,
            gave_up: false,
            words_wait: false,
            pace: Pace::Go,
        };
        // What an earlier process received and could not record is paid for as it was billed, before the rest counts as lost.
        driver.unspool().await?;
        if leads {
            driver.session.hold().await?;
        } else {
            driver.session.purse.take_over(driver.id.as_str()).await?;
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

    /// Drives until nothing is left to do for now.
    pub(crate) async fn drive(&mut self, take: Take) -> Result<(), Error> {
        let mut stop = self.stop.clone();
        let mut bell = self.session.crew.as_ref().map(Crew::listen);
        let mut words = self.bell.listen();
        // Before anything is taken in: what that leads to says better what the agent does.
        self.session.purse.set(self.id.as_str(), Some(Doing::Working));
        let mut deadline: Option<tokio::time::Instant> = None;
        // A stop that came while the stream was loaded counts before anything is started.
        self.heed(stop.asked(), &mut deadline);
        (self.gave_up, self.words_wait) = (false, false);
        // What a person stopped while nobody drove it does not go on, whatever else there is.
        self.look().await?;
        self.halt().await?;
        if let (Take::Resume { changed }, true) = (take, self.agent.is_started()) {
            // Switches and answers from before count for what goes on, and start nothing yet: what was cut off is told first.
            let pace = std::mem::replace(&mut self.pace, Pace::Hold);
            while pace == Pace::Go && self.take_input(true).await? {}
            self.pace = pace;
            let resume = self.resume(changed).await?;
            self.input(resume, Beside::default()).await?;
        }
        self.taken_up = true;
        let mut pulse = JoinSet::new();
        // A process has one heartbeat, and its lead keeps it going for all.
        if self.leads {
            pulse.spawn(keep_the_lease(Arc::clone(&self.config), self.lease.clone()));
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
                if self.bell.take_down(&words) {
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
                    // A stop that came with the outcome counts first, or something would be decided and never done.
                    self.heed(stop.asked(), &mut deadline);
                    self.listen(&mut words).await?;
                    self.report_unless_halting(done).await?;
                }
                _ = stop.above(level) => {}
                () = rung(bell.as_mut()) => self.heed_urgent(),
                () = rung(Some(&mut words)) => self.look().await?,
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

    /// Takes the next input that waits in the journal, if the agent can hear it now; says whether it took one. With
    /// `switches` it takes a turn of the switch and nothing else.
    async fn take_input(&mut self, switches: bool) -> Result<bool, Error> {
        if !inputs::can_hear(&self.agent) {
            return Ok(false);
        }
        let mut waiting = self.config.journal.inputs(&self.stream).await?;
        if waiting.is_empty() && !self.agent.is_started() {
            return Err(Error::NoSuchAgent(self.id.clone()));
        }
        // One that was stopped before it existed is stopped as soon as it does.
        let stopped = Halting::among(&waiting).filter(|_| !self.agent.is_started());
        if self.gave_up {
            // They would fail again, and again; and whoever was stopped waits for a person's word.
            waiting.retain(|input| !inputs::is_letter(input));
        }
        if self.words_wait {
            waiting.retain(|input| !inputs::is_words(input));
        }
        let Some((input, keys)) = inputs::next(&self.agent, waiting, switches) else { return Ok(false) };
        let input = match input {
            Input::StopExchange { by } => {
                self.halting = Some(Halting { by, acks: keys });
                self.halt().await?;
                return Ok(true);
            }
            Input::Mail { key, letters, .. } => self.mail(key, letters),
            input => input,
        };
        self.input(input, Beside::acks(keys)).await?;
        self.halting = stopped.filter(|_| self.agent.is_started());
        Ok(true)
    }

    /// Whether a lead without anything to do stays, because its team has.
    async fn waits_for_team(&self) -> Result<bool, Error> {
        let Some(crew) = self.session.crew.as_ref().filter(|_| self.leads_team()) else { return Ok(false) };
        if self.pace == Pace::Hold || !self.agent.is_idle() || !self.leads {
            return Ok(false);
        }
        // A store that does not answer is the host's business, who asks it again.
        let _ = crew.reload().await;
        // One that failed hears nothing more; the others come to rest before it is over.
        crew.set_deaf(self.gave_up);
        let waits = crew.is_there() && !crew.is_quiet();
        if waits {
            // It wants no money while it waits, so that others need not wait for what it might give back.
            self.rests();
        }
        Ok(waits)
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
        let (config, session, cut) = (Arc::clone(&self.config), Arc::clone(&self.session), self.ours.clone());
        match effect {
            Effect::AskRoom { not_before, .. } => {
                let (Some(ask), Some(spec)) = (self.agent.room_ask(), self.agent.spec().cloned()) else { return };
                let room = effects::room(config, session, self.id.clone(), spec, ask, not_before);
                self.waiting = Some(self.tasks.spawn(Box::pin(room)));
            }
            Effect::CallModel { call, attempt } => {
                let Some(request) = self.agent.request() else { return };
                let permit = self.permit.take();
                // Boxed here: spawning copies what it is given from frame to frame, and a request is large.
                self.tasks.spawn(Box::pin(effects::call(
                    config,
                    session,
                    self.id.clone(),
                    request,
                    (call, attempt),
                    permit,
                    cut,
                )));
            }
            Effect::AskPerson { id, what, why } => {
                let Some(spec) = self.agent.spec() else { return };
                // Without anybody to ask, a parked question stays pending and its agent waits.
                if config.asker.is_none() && spec.approvals.park {
                    return;
                }
                let label = spec.label.clone();
                let stop = self.stop.clone();
                self.tasks.spawn(effects::person(config, self.id.clone(), label, id, (what, why), stop, cut));
            }
            Effect::RunTool { id, request } if request.is_own_work() => {
                let Some(hands) = self.hands() else { return };
                let cut = self.hurry.clone();
                self.tasks.spawn(async move {
                    let result = hands.perform(&id, request, cut).await;
                    Done::Tool { id, result }
                });
            }
            Effect::RunTool { id, request: ToolRequest::Team(call) } => {
                let Some(parent) = self.parent() else { return };
                self.tasks.spawn(effects::act(parent, id, self.order(), call));
            }
            Effect::RunTool { id, request } => {
                let Some(parent) = self.parent() else { return };
                self.tasks.spawn(effects::child(parent, id, request));
            }
            Effect::DriveRun { run } => {
                let Some(parent) = self.parent() else { return };
                // It goes on beside the conversation, whatever becomes of the exchange that launched it.
                self.tasks.spawn(effects::run(Parent { stop: self.stop.clone(), ..parent }, run));
            }
        }
    }

    /// The agent's hands, made when they are first needed.
    fn hands(&mut self) -> Option<Arc<Hands>> {
        if self.hands.is_none() {
            let (config, session) = (Arc::clone(&self.config), Arc::clone(&self.session));
            let (spec, shell) = (self.agent.spec()?.clone(), self.agent.shell().cloned());
            self.hands = Some(Arc::new(Hands::new(config, session, self.lease.clone(), self.id.clone(), spec, shell)));
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
                let beside = Beside { room: granted.room, ..Beside::default() };
                return self.input(Input::Room { call, answer: granted.answer }, beside).await;
            }
            Done::Model { call, attempt, result } => {
                self.running.remove(&Key::Model(call, attempt));
                match *result {
                    Ok(reply) if self.agent.is_summarising() => self.summarised(call, reply).await?,
                    Ok(reply) => Input::Replied { call, reply: Box::new(reply) },
                    Err(failure) => Input::Failed { call, attempt, failure },
                }
            }
            Done::Tool { id, result } => {
                self.running.remove(&Key::Tool(id.clone()));
                let result = self.in_a_hurry(result);
                Input::ToolDone { id, result: self.within_means(result) }
            }
            Done::Acted { id, act } => {
                self.running.remove(&Key::Tool(id.clone()));
                return self.acted(id, act?).await;
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
        self.input(input, Beside::default()).await
    }

    fn notify(&self, notice: Notice) {
        self.session.tell(notice);
    }
}
