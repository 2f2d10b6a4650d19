//! Does what the person asks for: says it to the lead, drives the lead, stops, answers, looks up. What
//! happens reaches the screen as events, whatever caused it; the loop only adds what no event says.

use std::path::Path;
use std::sync::Arc;

use convoke_journal::Journal;
use convoke_kernel::{AfterDrive, AgentId, Outcome, SessionId};
use convoke_runtime::{
    Clock, DriveMode, DriveOutcome, Error, Ids, Notice, StopLevel, Stopper, TeamClient, changed_since,
};
use convoke_terminal::{Screen, ScreenUpdate, UserAction};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::front::QuestionFront;
use super::ready::Ready;
use super::said::{Flow, agreed};
use super::{offers, said, shell, slash, whole};
use crate::confine::sight;
use crate::failure::{Exit, Failure};
use crate::feed::Feed;
use crate::open::DRAIN;
use crate::render::{heard, wait_line};
use crate::settings::Settings;
use crate::signals::{Caught, Sources};

/// The name under which requests from a session are recorded.
pub(super) const PERSON: &str = "the person";

/// How often it is looked whether another process has taken a session up that rests here.
const GLANCE: std::time::Duration = std::time::Duration::from_secs(2);

/// How often it is looked what another process does.
const LOOK: std::time::Duration = std::time::Duration::from_millis(300);

/// The task that drives the lead, and how it is stopped.
struct Driving {
    stopper: Stopper,
    /// Whether it was interrupted once.
    interrupted: bool,
    /// Whether it was asked to stop.
    is_stopping: bool,
    /// Passes on what happens.
    telling: JoinHandle<()>,
    task: JoinHandle<Result<DriveOutcome, Error>>,
}

/// Does what is asked for.
pub(super) struct SessionLoop {
    pub(super) settings: Settings,
    pub(super) journal: Journal,
    pub(super) screen: UnboundedSender<Screen>,
    pub(super) front: Arc<QuestionFront>,
    pub(super) ready: Ready,
    driving: Option<Driving>,
    /// A workflow that the person called and that is looked at and agreed to.
    pub(super) flow: Option<JoinHandle<Result<Flow, Failure>>>,
    pub(super) shell: shell::Shell,
    /// Reads the session from its journal: what happened while it was not driven here, and what another
    /// process does.
    pub(super) feed: Option<Feed>,
    /// Makes keys of inputs differ.
    count: u64,
    leaving: bool,
    /// Whether something was said after a stop was asked for: it comes instead of what is being stopped.
    pub(super) instead: bool,
    /// What was last said of an answer that is not whole.
    not_whole: Option<String>,
}

/// What comes next.
enum Next {
    Asked(UserAction),
    Ended(Box<Result<DriveOutcome, Error>>, bool),
    /// What came of a workflow that the person called.
    Flow(Box<Result<Flow, Failure>>),
    Caught(Caught),
    /// It is time to look what another process has done.
    Look,
    /// The screen is gone.
    Gone,
}

impl SessionLoop {
    pub(super) fn new(
        settings: Settings,
        journal: Journal,
        screen: UnboundedSender<Screen>,
        front: Arc<QuestionFront>,
        ready: Ready,
    ) -> Self {
        Self {
            settings,
            journal,
            screen,
            front,
            ready,
            driving: None,
            flow: None,
            shell: shell::Shell::default(),
            feed: None,
            count: 0,
            leaving: false,
            instead: false,
            not_whole: None,
        }
    }

    /// The session, once there is one.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.ready.facts.session.clone()
    }

    /// Does what is asked for until the person leaves. With `fork` it begins with a fork of what is there.
    pub(super) async fn conduct(
        &mut self,
        mut wanted: UnboundedReceiver<UserAction>,
        fork: bool,
    ) -> Result<Exit, Failure> {
        let mut signals =
            Sources::new().map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
        self.begin().await;
        if fork && let Err(failure) = slash::fork(self, None).await {
            self.refuse(&failure);
        }
        let mut caught: Option<Caught> = None;
        loop {
            if self.leaving && self.driving.is_none() {
                return Ok(caught.map_or(Exit::Done, Caught::exit));
            }
            let idle = self.driving.is_none() && self.ready.lead().is_some();
            let next = tokio::select! {
                ask = wanted.recv() => ask.map_or(Next::Gone, Next::Asked),
                (ended, stopped) = over(&mut self.driving) => Next::Ended(Box::new(ended), stopped),
                flow = agreed(&mut self.flow) => Next::Flow(Box::new(flow)),
                signal = signals.next() => Next::Caught(signal),
                () = tokio::time::sleep(LOOK), if self.ready.facts.watched => Next::Look,
                () = tokio::time::sleep(GLANCE), if idle => Next::Look,
            };
            match next {
                Next::Asked(ask) => {
                    if let Err(failure) = Box::pin(self.asked(ask)).await {
                        self.refuse(&failure);
                    }
                }
                Next::Ended(ended, stopped) => self.ended(*ended, stopped).await,
                Next::Flow(flow) => {
                    if let Err(failure) = self.run_flow(*flow).await {
                        self.refuse(&failure);
                    }
                }
                Next::Look => {
                    if let Err(failure) = self.look().await {
                        self.ready.facts.watched = false;
                        self.refuse(&failure);
                    }
                }
                Next::Caught(Caught::Interrupt) if self.driving.is_some() && !self.leaving => {
                    self.interrupted()
                }
                Next::Caught(signal) => {
                    match (&caught, self.leaving) {
                        (None, _) => self.end_soon(),
                        // The guard of the terminal gives it back.
                        (Some(first), true) if self.driving.is_none() => return Ok(first.exit()),
                        (Some(_), _) => self.stop(StopLevel::Cut),
                    }
                    self.leaving = true;
                    caught.get_or_insert(signal);
                }
                Next::Gone => {
                    // Without a terminal no person leads: what is under way ends safely.
                    self.end_soon();
                    self.leaving = true;
                    caught.get_or_insert(Caught::HangUp);
                    if self.driving.is_some() {
                        let (ended, stopped) = over(&mut self.driving).await;
                        self.ended(ended, stopped).await;
                    }
                }
            }
        }
    }

    /// Tells the screen where the session stands, and everything that happened in it so far.
    pub(super) async fn begin(&mut self) {
        self.tell(ScreenUpdate::Afresh);
        self.tell(ScreenUpdate::Facts(Box::new(self.ready.facts.clone())));
        self.feed = self.session().map(|session| Feed::new(&self.journal, &session));
        if let Err(failure) = self.pass_on().await {
            self.refuse(&failure);
        }
        self.tell(ScreenUpdate::CaughtUp);
        let words = self.words().await;
        if !words.is_empty() {
            self.note("what was said before and not heard yet waits, and is said first");
        }
        self.tell(ScreenUpdate::Waits(words));
        said::tell_names(self);
        for remark in std::mem::take(&mut self.ready.remarks) {
            self.note(&remark);
        }
        if self.ready.facts.watched {
            self.note("another process drives this session: it is watched here");
        } else if self.ready.facts.can_go_on {
            self.note(
                "this session was left unfinished: Enter alone goes on with it, anything you say comes \
                instead",
            );
        }
    }

    pub(super) fn tell(&self, told: ScreenUpdate) {
        // A screen that is gone shows nothing.
        let _ = self.screen.send(Screen::Update(told));
    }

    pub(super) fn note(&self, text: &str) {
        self.tell(ScreenUpdate::Note(text.to_owned()));
    }

    pub(super) fn refuse(&self, failure: &Failure) {
        let mut text = failure.message.clone();
        for hint in &failure.hints {
            text.push_str(&format!("\n{hint}"));
        }
        self.tell(ScreenUpdate::Refused(text));
    }

    /// The lead, or that there is none yet.
    pub(super) fn lead(&self) -> Result<(AgentId, SessionId), Failure> {
        let none = || {
            Failure::usage("nothing has been said in this session yet").hint("say what is to be done first")
        };
        self.ready.lead().cloned().zip(self.session()).ok_or_else(none)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.driving.as_ref().is_some_and(|driving| driving.is_stopping)
    }

    pub(super) fn is_driving(&self) -> bool {
        self.driving.is_some()
    }

    pub(super) fn team(&self) -> TeamClient {
        TeamClient::new(self.journal.clone(), Clock::system(), Ids::random())
    }

    /// A key that no other input of this session has.
    pub(super) fn key(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{what}-{}-{}", self.ready.opened.clock.now(), self.count)
    }

    async fn asked(&mut self, ask: UserAction) -> Result<(), Failure> {
        if self.driving.is_none() && matches!(ask, UserAction::Command(_) | UserAction::Open(_)) {
            self.pass_on().await?;
        }
        match ask {
            UserAction::Say(text) => self.say(&text).await,
            UserAction::GoOn => self.go_on().await,
            UserAction::Command(given) => slash::run(self, &given).await,
            UserAction::Stop => {
                self.stop(StopLevel::Drain);
                Ok(())
            }
            UserAction::Cut => {
                self.stop(StopLevel::Cut);
                Ok(())
            }
            UserAction::Shell(command) => {
                self.shell.run(&self.screen, Path::new(&self.ready.facts.dir), &command)
            }
            UserAction::StopShell => {
                self.shell.stop();
                Ok(())
            }
            UserAction::Answer { question, answer } => {
                self.front.answered(question, answer);
                Ok(())
            }
            UserAction::Open(agent) => self.open(agent).await,
            UserAction::StopAgent(agent) => self.stop_agent(&agent).await,
            UserAction::RetryAgent(agent) => self.retry_agent(&agent).await,
            UserAction::RetryTask(task) => {
                let (_, session) = self.lead()?;
                let task = self.team().retry(&session, &task, convoke_kernel::PERSON).await?;
                self.note(&format!("\"{}\" is on the board again", task.subject));
                self.wake().await
            }
            UserAction::RetryRun(run) => {
                let text = format!(
                    "Run the workflow {run} again with resumeFromRunId: what failed in it is to be tried \
                        again."
                );
                self.say(&text).await
            }
            UserAction::Message { to, text } => self.message(&to, &text).await,
            UserAction::Complete { word, command } => {
                let candidates = offers::offers(self, &word, command.as_deref()).await;
                self.tell(ScreenUpdate::Offers { word, candidates });
                Ok(())
            }
            UserAction::Leave => {
                self.leaving = true;
                self.stop(StopLevel::Drain);
                Ok(())
            }
            // The screen does it.
            UserAction::Edit(_) => Ok(()),
        }
    }

    /// Drives the lead, unless it is driven already, so that it takes up what waits in the journal.
    pub(super) async fn wake(&mut self) -> Result<(), Failure> {
        if self.driving.is_some() || self.ready.lead().is_none() {
            Ok(())
        } else {
            self.drive(DriveMode::New).await
        }
    }

    /// Goes on with what was left unfinished.
    pub(super) async fn go_on(&mut self) -> Result<(), Failure> {
        if self.ready.facts.watched {
            return Err(watched());
        }
        if self.driving.is_some() {
            return Ok(());
        }
        self.lead()?;
        let dir = Path::new(&self.ready.facts.dir);
        let changed = changed_since(&sight(&self.settings, dir), dir, self.ready.last_at).await;
        self.drive(DriveMode::Resume { changed }).await
    }

    pub(super) async fn drive(&mut self, take: DriveMode) -> Result<(), Failure> {
        let Some(lead) = self.ready.lead().cloned() else { return Ok(()) };
        // From now on everything is told as it happens; what happened before is told first.
        self.pass_on().await?;
        let (stopper, stop) = Stopper::new();
        let (watcher, mut notices) = unbounded_channel();
        let runtime = self.ready.runtime().clone();
        let screen = self.screen.clone();
        let telling = tokio::spawn(async move {
            while let Some(notice) = notices.recv().await {
                // That the store is away stands on the screen for as long as it is.
                if let Some(line) = wait_line(&notice).filter(|_| !matches!(notice, Notice::StoreAway { .. }))
                {
                    let _ = screen.send(Screen::Update(ScreenUpdate::Note(line)));
                } else if let Some(heard) = heard(notice) {
                    let _ = screen.send(Screen::Event(heard));
                }
            }
        });
        let task =
            tokio::spawn(async move { Box::pin(runtime.drive(&lead, take, stop, Some(watcher))).await });
        self.driving = Some(Driving { stopper, interrupted: false, is_stopping: false, telling, task });
        self.tell(ScreenUpdate::Working(true));
        Ok(())
    }

    /// Ctrl-C where nothing is drawn, or a signal that means the same: what is under way is stopped, then cut
    /// off.
    fn interrupted(&mut self) {
        let Some(driving) = &mut self.driving else { return };
        let (level, word) = match driving.interrupted {
            false => (StopLevel::Drain, "stopping: nothing new starts; once more cuts off what is under way"),
            true => (StopLevel::Cut, "cutting off what is under way"),
        };
        (driving.interrupted, driving.is_stopping) = (true, true);
        driving.stopper.ask(level);
        self.note(word);
    }

    /// Ends what is under way for a person who cannot ask twice: what takes too long is cut off.
    fn end_soon(&mut self) {
        self.stop(StopLevel::Drain);
        if let Some(driving) = &self.driving {
            let stopper = driving.stopper.clone();
            tokio::spawn(async move {
                tokio::time::sleep(DRAIN).await;
                stopper.ask(StopLevel::Cut);
            });
        }
    }

    pub(super) fn stop(&mut self, level: StopLevel) {
        if let Some(driving) = &mut self.driving {
            driving.is_stopping = true;
            driving.stopper.ask(level);
        }
    }

    /// Driving the lead has ended. `stopped` is whether a stop was asked for.
    async fn ended(&mut self, ended: Result<DriveOutcome, Error>, stopped: bool) {
        said::tell_names(self);
        self.ready.last_at = self.ready.opened.clock.now();
        let instead = std::mem::take(&mut self.instead) && !self.leaving;
        match ended {
            Ok(ended) => {
                let failure = ended.outcome.as_ref().and_then(Outcome::failure);
                let left = ended.outcome.is_none() || ended.summary.as_ref().is_some_and(|row| row.can_go_on);
                let words = self.words().await;
                let next = AfterDrive::of(ended.outcome.as_ref(), words.len(), stopped, instead);
                // All that waits is seen, also what was said in the moment of a stop.
                self.tell(ScreenUpdate::Waits(words));
                self.ready.facts.can_go_on =
                    next != AfterDrive::Instead && (left || next == AfterDrive::Waits);
                for line in &ended.left {
                    self.note(&format!("left of the team's work: {line}"));
                }
                if failure.is_none() && ended.outcome.is_some() {
                    let remark =
                        whole::remark(&self.settings, &self.journal, self.ready.facts.session.as_ref()).await;
                    if let Some(remark) = remark.as_ref().filter(|_| remark != self.not_whole) {
                        self.note(remark);
                    }
                    self.not_whole = remark;
                }
                if let Some(summary) = &ended.summary {
                    self.ready.facts.model.clone_from(&summary.model);
                    self.ready.facts.effort.clone_from(&summary.effort);
                }
                self.rests();
                if stopped && self.settings.plain && self.ready.facts.can_go_on {
                    self.note("stopped; Enter alone goes on where it stands");
                }
                let done = match next {
                    _ if self.leaving => Ok(()),
                    AfterDrive::Nothing => Ok(()),
                    AfterDrive::Instead => self.say_instead().await,
                    AfterDrive::Said => self.drive(DriveMode::New).await,
                    // After a stop the screen says it.
                    AfterDrive::Waits if stopped && !self.settings.plain => Ok(()),
                    AfterDrive::Waits => {
                        let again = if failure.is_some() { "tries again, and then says" } else { "says" };
                        self.note(&format!("what you said meanwhile waits: Enter alone {again} it"));
                        Ok(())
                    }
                };
                if let Err(failure) = done {
                    self.refuse(&failure);
                }
            }
            Err(Error::Journal(convoke_journal::Error::Held { .. })) => {
                // What was said here is in the journal, and the process that drives the lead says it.
                (self.ready.facts.watched, self.ready.facts.can_go_on) = (true, false);
                self.rests();
                self.note(
                    "another process drives this session now: it is watched here, and what you said is said \
                        there",
                );
            }
            Err(error) => {
                self.ready.facts.can_go_on = true;
                self.rests();
                self.refuse(
                    &Failure::from(error).hint("everything that was recorded is kept: Enter alone goes on"),
                );
            }
        }
    }

    /// Tells the screen that nothing is driven here any more, and where the session stands.
    fn rests(&self) {
        self.tell(ScreenUpdate::Facts(Box::new(self.ready.facts.clone())));
        self.tell(ScreenUpdate::Working(false));
    }

    /// What was stopped stays stopped, and what was said since comes instead.
    async fn say_instead(&mut self) -> Result<(), Failure> {
        let (lead, _) = self.lead()?;
        self.ready.runtime().stop_exchange(&lead, PERSON).await?;
        self.drive(DriveMode::New).await
    }
}

/// How driving ended, and whether a stop was asked for; pending for ever while nothing is driven.
async fn over(driving: &mut Option<Driving>) -> (Result<DriveOutcome, Error>, bool) {
    let Some(now) = driving else { return std::future::pending().await };
    let ended = (&mut now.task).await;
    let stopped = now.is_stopping;
    // What happened last is told before the screen hears that nothing happens any more.
    let _ = (&mut now.telling).await;
    *driving = None;
    // A driver that broke is told of like one that failed; what it recorded is kept.
    let broke = |error| Err(Error::TeamRefused(format!("the session broke off: {error}")));
    (ended.unwrap_or_else(broke), stopped)
}

pub(super) fn watched() -> Failure {
    Failure::usage("another process drives this session; here it is only watched")
        .hint("`convoke sessions pause` ends it there; then /resume takes it up")
}
