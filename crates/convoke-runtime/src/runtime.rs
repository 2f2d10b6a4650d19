//! The library's front: open it with everything it needs, start an agent, drive it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use convoke_claude::{Client, Models, ceilings};
use convoke_journal::{Filter, Journal, KeyedInput, Listing, StreamId};
use convoke_kernel::{
    Agent, AgentId, AgentSpec, Approvals, Caps, Effect, LeadSettings, Ledger, Program, ProgramSummary, Run,
    RunId, RunSummary, SHORT_TEXT, Segment, SessionId, Status, Summary,
};
use convoke_sandbox::HelperPath;
use convoke_trees::HostPlaces;
use tokio::task::JoinHandle;

use crate::asker::{AskedCall, Asker};
use crate::clock::Clock;
use crate::confine::Confine;
use crate::control::{Control, ControlListener, Controller, STOPPED_BY};
use crate::crash::Crash;
use crate::custom::CustomTools;
use crate::drive::{DriveMode, DriveOutcome};
use crate::driver::Driver;
use crate::error::Error;
use crate::fan_out;
use crate::governor::Governor;
use crate::heartbeat::keep_alive;
use crate::ids::Ids;
use crate::inputs::{Answer, PersonsCall, Waiting};
use crate::notice::Watcher;
use crate::outage;
use crate::program::{self, Message, Programs};
use crate::recovery::{first_spec, load};
use crate::session::{Opening, Session};
use crate::session_ledger::{Entry, SessionLedger};
use crate::start::Start;
use crate::stop::{Stop, StopLevel, Stopper};
use crate::team::{Host, TeamConfig};
use crate::wait_notifier::WaitNotifier;
use crate::wakers::Wakers;

/// Everything the runtime needs. It reads no environment, no flags and no files of its own accord.
#[derive(Clone)]
pub struct Config {
    /// Where everything is remembered.
    pub journal: Journal,
    /// Talks to the model's server.
    pub client: Client,
    /// What models cost.
    pub models: Models,
    /// Time.
    pub clock: Clock,
    /// Ids.
    pub ids: Ids,
    /// The executable under which commands live.
    pub helper: HelperPath,
    /// The environment of commands: an allow-list, without secrets.
    pub env: BTreeMap<String, String>,
    /// Where the full output of commands goes; agents read it there.
    pub outputs: PathBuf,
    /// Where replies go that the journal would not take, best place first.
    pub spools: Vec<PathBuf>,
    /// How long a stop waits for what is under way.
    pub drain: Duration,
    /// When requests may be sent: one for all runtimes of a process that use the same API key.
    pub governor: Governor,
    /// Workers and verifiers that may be at work at once in a session. More than requests under way: while
    /// one runs a command, another can ask the model.
    pub agents_at_once: usize,
    /// What holds commands and file tools.
    pub confine: Confine,
    /// What the person forbids now, whatever a session was begun with: only rules that deny count.
    pub forbidden: Approvals,
    /// Where the changes of a run are kept; without it nothing can be taken back, and there are no worktrees.
    pub trees: Option<HostPlaces>,
    /// What workflow programs are run with.
    pub programs: Programs,
    /// How teams are run.
    pub team: TeamConfig,
    /// Tools of the embedding program.
    pub tools: CustomTools,
    /// Asks the person. `None` refuses calls and workflows that need approval; parked questions wait.
    pub asker: Option<Asker>,
    /// Where a test wants the process to die.
    pub crash: Option<Crash>,
}

/// Drives agents. Cloning it is cheap and shares everything.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) config: Arc<Config>,
    /// The drivers of this process, to be woken when something is said here.
    pub(crate) wakers: Wakers,
}

impl Runtime {
    /// A runtime over these parts.
    pub fn new(config: Config) -> Self {
        Self { config: Arc::new(config), wakers: Wakers::default() }
    }

    /// Writes a new lead and its task into the journal. Nothing is done until it is driven.
    pub async fn start(&self, start: Start, task: &str) -> Result<AgentId, Error> {
        if task.trim().is_empty() {
            return Err(Error::EmptyTask);
        }
        let (agent, spec, caps) = self.new_lead(start.for_task(task))?;
        spec.check_text(task)?;
        // The caps come first: an agent without a budget would have none.
        self.grant(&spec.session, caps, "start").await?;
        let waiting = Waiting { start: Some(spec), say: Some(task.to_owned()), ..Waiting::default() };
        self.submit(&agent, "start", waiting).await?;
        Ok(agent)
    }

    /// Checks that a lead that is started like this can be asked these words. Nothing is written.
    pub fn check_text(&self, start: &Start, text: &str) -> Result<(), Error> {
        if text.len() > SHORT_TEXT {
            self.new_lead(start.clone().for_task(text))?.1.check_text(text)?;
        }
        Ok(())
    }

    pub(crate) fn new_lead(&self, start: Start) -> Result<(AgentId, AgentSpec, Caps), Error> {
        let make = if start.lean.is_some() { AgentSpec::lean_lead } else { AgentSpec::lead };
        let spec = make(LeadSettings {
            session: self.config.ids.session()?,
            dir: start.dir.to_str().ok_or_else(|| Error::DirNotText(start.dir.clone()))?.to_owned(),
            capabilities: start.capabilities,
            limits: start.limits,
            rates: ceilings(&self.config.models.get(&start.model)),
            confinement: start.confinement,
            approvals: start.approvals,
            fan_out: start.fan_out,
            team: start.team,
            model: start.model,
            extra_system: start.system,
        });
        let spec = spec.with_given(self.config.tools.definitions());
        Ok((self.config.ids.agent()?, spec, start.caps))
    }

    /// Says something to an agent; it is taken up when the agent is idle. The key makes repeating it
    /// harmless.
    pub async fn say(&self, agent: &AgentId, key: &str, text: &str) -> Result<(), Error> {
        if text.trim().is_empty() {
            return Err(Error::EmptyTask);
        }
        // What is short fits, and is said often: the journal need not be read for it.
        if text.len() > SHORT_TEXT {
            self.spec_of(agent).await?.check_text(text)?;
        }
        self.submit(agent, key, Waiting { say: Some(text.to_owned()), ..Waiting::default() }).await
    }

    /// The session that an agent belongs to, whether it was driven or not.
    pub async fn session_of(&self, agent: &AgentId) -> Result<SessionId, Error> {
        Ok(self.spec_of(agent).await?.session)
    }

    async fn spec_of(&self, id: &AgentId) -> Result<AgentSpec, Error> {
        let mut agent = Agent::new();
        let mut seq = 0;
        let stream = StreamId::from(id);
        load(&self.config, id, &stream, &mut agent, &mut seq).await?;
        match agent.spec() {
            Some(spec) => Ok(spec.clone()),
            None => first_spec(&self.config, id, &stream).await,
        }
    }

    /// Writes a new lead into the journal whose first exchange is a person's own call of `Workflow`: `input`
    /// is the call's input as JSON, `text` how people read it. No model is asked but by the agents of the
    /// program.
    pub async fn start_call(
        &self,
        start: Start,
        text: &str,
        input: &serde_json::Value,
    ) -> Result<AgentId, Error> {
        let (agent, spec, caps) = self.new_lead(start)?;
        self.grant(&spec.session, caps, "start").await?;
        let call = PersonsCall { text: text.to_owned(), input: Segment::encode(input) };
        let waiting = Waiting { start: Some(spec), call: Some(call), ..Waiting::default() };
        self.submit(&agent, "start", waiting).await?;
        Ok(agent)
    }

    /// Makes a person's own call of `Workflow` in a session that stands; it is taken up when its lead is
    /// idle.
    pub async fn call(
        &self,
        agent: &AgentId,
        key: &str,
        text: &str,
        input: &serde_json::Value,
    ) -> Result<(), Error> {
        let call = PersonsCall { text: text.to_owned(), input: Segment::encode(input) };
        self.submit(agent, key, Waiting { call: Some(call), ..Waiting::default() }).await
    }

    /// Tells an idle lead what came of lost work that a person's call had done again: the run, and its
    /// digest. The key makes repeating it harmless.
    pub async fn tell(&self, agent: &AgentId, key: &str, run: &RunId, text: &str) -> Result<(), Error> {
        self.submit(agent, key, Waiting::told(run.as_str(), text.to_owned())).await
    }

    /// The programs' runs of a session, in the order they were started.
    pub async fn programs(&self, session: &SessionId) -> Result<Vec<Program>, Error> {
        let filter = Filter { prefix: Some(RunId::PREFIX.to_owned()), limit: None };
        let mut programs = Vec::new();
        for listing in self.config.journal.list(&filter).await?.into_iter().rev() {
            let summary = listing.summary.and_then(|text| serde_json::from_str::<ProgramSummary>(&text).ok());
            let ours = summary.is_some_and(|summary| summary.session == *session);
            if let (true, Ok(id)) = (ours, listing.stream.as_str().parse()) {
                programs.push(program::load(&self.config, &id).await?.0);
            }
        }
        Ok(programs)
    }

    /// One program's run as the journal has it; one without a spec if there is none of this id.
    pub async fn program(&self, run: &RunId) -> Result<Program, Error> {
        Ok(program::load(&self.config, run).await?.0)
    }

    /// Answers a question of a program, whether it is driven or not. Only for what a person said.
    pub async fn answer_checkpoint(&self, run: &RunId, call: u32, text: &str) -> Result<(), Error> {
        let key = format!("answer:{call}");
        let message = Message::Answer { call, text: text.to_owned() };
        self.send(run, &key, &message).await
    }

    /// Has a program do without one of its calls. Only for what a person said.
    pub async fn skip_call(&self, run: &RunId, call: u32) -> Result<(), Error> {
        self.send(run, &format!("skip:{call}"), &Message::Skip { call }).await
    }

    async fn send(&self, run: &RunId, key: &str, message: &Message) -> Result<(), Error> {
        let (_, seq) = program::load(&self.config, run).await?;
        let body = serde_json::to_string(message)?;
        // The number keeps the answer to a question of a later pass apart from one of an earlier pass.
        let input = KeyedInput { stream: StreamId::new(run.as_str())?, key: format!("{key}:{seq}"), body };
        self.config.journal.submit(&input, self.config.clock.now()).await?;
        Ok(())
    }

    /// Turns the switch of orchestration mode; it is taken in before what is said after it.
    pub async fn set_mode(&self, agent: &AgentId, key: &str, on: bool) -> Result<(), Error> {
        self.submit(agent, key, Waiting { mode: Some(on), ..Waiting::default() }).await
    }

    /// Answers an agent's question about a call, whether it is driven or not. Only for what a person said.
    pub async fn answer(&self, agent: &AgentId, call: &str, allow: bool, by: &str) -> Result<(), Error> {
        let answer = Answer { id: call.to_owned(), allow, by: by.to_owned() };
        let waiting = Waiting { answer: Some(answer), ..Waiting::default() };
        self.submit(agent, &format!("answer:{call}"), waiting).await
    }

    /// The unanswered questions of a session, in the order of its agents.
    pub async fn questions(&self, session: &SessionId) -> Result<Vec<AskedCall>, Error> {
        let mut asked = Vec::new();
        for (id, summary) in self.agents(session).await? {
            if summary.status != Status::Open {
                continue;
            }
            let mut agent = Agent::new();
            let mut seq = 0;
            load(&self.config, &id, &StreamId::from(&id), &mut agent, &mut seq).await?;
            let label = summary.label;
            asked.extend(agent.pending().into_iter().filter_map(|effect| match effect {
                Effect::AskPerson { id: call, what, why } => {
                    Some(AskedCall { agent: id.clone(), call, label: label.clone(), wanted: what, why })
                }
                _ => None,
            }));
        }
        Ok(asked)
    }

    /// Sets the caps of a session: new totals, and a person's act that is recorded as such.
    pub async fn grant(&self, session: &SessionId, caps: Caps, by: &str) -> Result<(), Error> {
        let ledger =
            SessionLedger::open(self.config.journal.clone(), session, self.config.clock.clone()).await?;
        ledger.enter(vec![Entry::Grant { caps, by: by.to_owned() }]).await
    }

    /// The runs of a session, in the order they were started.
    pub async fn runs(&self, session: &SessionId) -> Result<Vec<Run>, Error> {
        let filter = Filter { prefix: Some(RunId::PREFIX.to_owned()), limit: None };
        let mut runs = Vec::new();
        // Newest first in the listing.
        for listing in self.config.journal.list(&filter).await?.into_iter().rev() {
            let summary = listing.summary.and_then(|text| serde_json::from_str::<RunSummary>(&text).ok());
            let ours = summary.is_some_and(|summary| summary.session == *session);
            if let (true, Ok(id)) = (ours, listing.stream.as_str().parse()) {
                runs.push(fan_out::load(&self.config, &id).await?.0);
            }
        }
        Ok(runs)
    }

    /// The agents of a session, in the order they were started: the lead, and every agent below it.
    pub async fn agents(&self, session: &SessionId) -> Result<Vec<(AgentId, Summary)>, Error> {
        let filter = Filter { prefix: Some(AgentId::PREFIX.to_owned()), limit: None };
        let row = |listing: Listing| {
            let summary: Summary = serde_json::from_str(&listing.summary?).ok()?;
            let id = listing.stream.as_str().parse().ok()?;
            (summary.session == *session).then_some((id, summary))
        };
        Ok(self.config.journal.list(&filter).await?.into_iter().rev().filter_map(row).collect())
    }

    /// The ledger of a session as it stands.
    pub async fn ledger(&self, session: &SessionId) -> Result<Ledger, Error> {
        Ok(SessionLedger::open(self.config.journal.clone(), session, self.config.clock.clone())
            .await?
            .ledger())
    }

    pub(crate) async fn submit(&self, agent: &AgentId, key: &str, waiting: Waiting) -> Result<(), Error> {
        let body = serde_json::to_string(&waiting)?;
        let input = KeyedInput { stream: StreamId::from(agent), key: key.to_owned(), body };
        self.config.journal.submit(&input, self.config.clock.now()).await?;
        self.wakers.wake(agent);
        Ok(())
    }

    /// Drives an agent until its inputs are used up and its exchange is closed, or until it is asked to stop.
    pub async fn drive(
        &self,
        agent: &AgentId,
        mode: DriveMode,
        stop: Stop,
        watcher: Option<Watcher>,
    ) -> Result<DriveOutcome, Error> {
        // Boxed whole, because what drives an agent is large, and the caller's stack holds every future that
        // it awaits.
        Box::pin(self.drive_here(agent, mode, stop, watcher)).await
    }

    async fn drive_here(
        &self,
        agent: &AgentId,
        mode: DriveMode,
        stop: Stop,
        watcher: Option<Watcher>,
    ) -> Result<DriveOutcome, Error> {
        let mut ear = ControlListener::new(&self.config.journal, agent).await?;
        let opening = Some(Opening { watcher: watcher.clone(), wakers: self.wakers.clone() });
        let driver = Driver::own(Arc::clone(&self.config), agent.clone(), None, opening, ear.stop()).await?;
        let _wait_notifier = watcher.clone().map(|watcher| WaitNotifier::start(&self.config, watcher));
        ear.listen(stop, watcher);
        let session = driver.session();
        let hosted = Hosted::beside(&self.config, &session, ear.stop());
        let ended = hosted.with(Box::pin(driver.run(mode))).await;
        if !matches!(ended, Err(Error::Crashed)) {
            session.leave().await;
        }
        let mut ended = DriveOutcome { asked: ear.heard(), left: session.left().await, ..ended? };
        if session.has_team() && !ended.left.is_empty() {
            // A teammate that waits for a person waits for the same one as its lead would.
            ended.parked |= !self.questions(&session.id).await?.is_empty();
        }
        if ended.asked == Some(Control::Stop) {
            let controller = Controller::new(self.config.journal.clone(), self.config.clock.clone());
            controller.stop_programs(&session.id, STOPPED_BY).await?;
        }
        Ok(ended)
    }

    /// Drives teammates of a session that is led here or on another machine: all of them, or only these. Ends
    /// when a stop is requested, or when nothing is left to do and no process leads the session any more.
    pub async fn host(
        &self,
        lead: &AgentId,
        only: Option<Vec<String>>,
        stop: Stop,
        watcher: Option<Watcher>,
    ) -> Result<(), Error> {
        let _wait_notifier = watcher.clone().map(|watcher| WaitNotifier::start(&self.config, watcher));
        let spec = self.spec_of(lead).await?;
        let opening = Some(Opening { watcher, wakers: self.wakers.clone() });
        let session = Arc::new(Session::open(&self.config, lead, &spec, opening).await?);
        if session.team_cache.is_none() {
            return Err(Error::TeamRefused("this session was started without a team (--no-team)".to_owned()));
        }
        let pulse = tokio::spawn(keep_alive(Arc::clone(&self.config)));
        let telling = tokio::spawn(outage::tell(self.config.journal.clone(), Arc::clone(&session)));
        let hosted = Host::new(Arc::clone(&self.config), session, stop, only, false).run().await;
        telling.abort();
        pulse.abort();
        hosted
    }
}

/// A lead that is being driven.
type Driving<'a> = Pin<Box<dyn Future<Output = Result<DriveOutcome, Error>> + Send + 'a>>;

/// The host of a lead's own team, which ends with the lead.
struct Hosted(Option<Hosting>);

/// A host that runs: how to stop it, the host itself, and what passes on to it what the lead is asked.
type Hosting = (Stopper, JoinHandle<Result<(), Error>>, JoinHandle<()>);

impl Hosted {
    fn beside(config: &Arc<Config>, session: &Arc<Session>, mut asked: Stop) -> Self {
        Self(session.team_cache.is_some().then(|| {
            let (stopper, stop) = Stopper::new();
            let host = Host::new(Arc::clone(config), Arc::clone(session), stop, None, true);
            let harder = stopper.clone();
            // A stop that is asked of the lead is asked of the host too.
            let passes_on = tokio::spawn(async move {
                let mut level = StopLevel::Run;
                loop {
                    level = asked.above(level).await;
                    harder.ask(level);
                }
            });
            (stopper, tokio::spawn(host.run()), passes_on)
        }))
    }

    /// Drives the lead to its end, and its team with it. An error of the host is an error of the whole.
    async fn with(self, mut lead: Driving<'_>) -> Result<DriveOutcome, Error> {
        let Some((stopper, host, passes_on)) = self.0 else { return lead.await };
        // Dropping this future ends the host too: nothing of the team goes on without its lead.
        let mut host = Ending(host);
        let _passes_on = Ending(passes_on);
        let ended = tokio::select! {
            ended = &mut lead => ended,
            hosted = &mut host.0 => {
                return match hosted {
                    Ok(Err(error)) => Err(error),
                    // A stop was requested, and the host was the first to be done.
                    Ok(Ok(())) | Err(_) => lead.await,
                };
            }
        };
        if matches!(ended, Err(Error::Crashed)) {
            return ended;
        }
        stopper.ask(StopLevel::Drain);
        match (&mut host.0).await {
            Ok(Ok(())) | Err(_) => ended,
            Ok(Err(error)) => ended.and(Err(error)),
        }
    }
}

/// A task that is aborted when this is dropped.
struct Ending<T>(JoinHandle<T>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
