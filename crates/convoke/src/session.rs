//! A session: a conversation with a lead that works in a directory, alone or with other agents.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use convoke_journal::Journal;
use convoke_kernel::{AgentId, SessionId};
use convoke_runtime::{
    Checked, Clock, DriveMode, DriveOutcome, Library, Runtime, Start, Stop, StopLevel, Stopper,
    changed_since, source_digest,
};
use convoke_sim::Simulator;
use convoke_trees::HostPlaces;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::answer::{Answer, Status};
use crate::builder::{At, SessionBuilder};
use crate::error::Error;
use crate::event::{Event, Events};
use crate::fold::Fold;
use crate::workflow::{Workflow, WorkflowSource};

/// A conversation with a lead that works in a directory. Clones are the same session, so that one task can
/// wait for an answer while another one [stops](Self::stop) it.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
}

/// What a session stands on.
pub(crate) struct Inner {
    pub(crate) runtime: Runtime,
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    /// What its lead is made of, if it is new.
    pub(crate) start: Start,
    pub(crate) library: Library,
    pub(crate) trees: Option<HostPlaces>,
    pub(crate) dir: PathBuf,
    /// How often something was said, for keys that are used once.
    pub(crate) said: AtomicU64,
    /// Held while an answer is waited for: one thing at a time is said to a lead.
    pub(crate) lead: tokio::sync::Mutex<Option<Lead>>,
    pub(crate) stopper: Mutex<Option<Stopper>>,
    /// Held by a drive until its end, which comes later than that of the future that was dropped.
    pub(crate) driving: Arc<tokio::sync::Mutex<()>>,
    pub(crate) listeners: Mutex<Vec<UnboundedSender<Event>>>,
    /// The offline model, which lives as long as the session that asks it.
    pub(crate) _offline: Option<Simulator>,
}

/// Stops a drive at once when the future that waits for it is dropped.
struct CutOnDrop<'a> {
    stopper: &'a Stopper,
}

impl Drop for CutOnDrop<'_> {
    fn drop(&mut self) {
        self.stopper.ask(StopLevel::Cut);
    }
}

/// The lead of a session that was begun.
#[derive(Debug, Clone)]
pub(crate) struct Lead {
    pub(crate) agent: AgentId,
    pub(crate) session: SessionId,
    /// Whether its last exchange has not come to its end.
    pub(crate) can_go_on: bool,
    /// When another process left it; what changed since is told to it.
    pub(crate) left_at: Option<u64>,
    /// Whether a workflow that the embedder called is what counts.
    pub(crate) own: bool,
}

impl Session {
    /// A new session in a directory. Everything else has a default.
    pub fn builder(dir: impl Into<PathBuf>) -> SessionBuilder {
        SessionBuilder::new(At::Dir(dir.into()))
    }

    /// A session that was begun before, here or in another process, by the id that [`Answer::session`] has.
    /// It works in the directory it was begun in. This opens the session and does nothing in it yet:
    /// [`go_on`](Self::go_on) ends what was left open, [`run`](Self::run) says something new.
    pub fn resume(id: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(At::Recorded(id.into()))
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// Gives the lead a task and waits for the answer. The first call begins the conversation, a later one
    /// goes on with it.
    ///
    /// Dropping the future stops the work at once, as [`stop_now`](Self::stop_now) does: it is recorded up to
    /// there, and [`go_on`](Self::go_on) goes on with it. [`stop`](Self::stop) ends it in good order.
    pub async fn run(&self, task: &str) -> Result<Answer, Error> {
        let mut lead = self.inner.lead.lock().await;
        match &mut *lead {
            Some(lead) => {
                self.inner.runtime.say(&lead.agent, &self.key("say"), task).await?;
                lead.own = false;
                self.drive(lead).await
            }
            none => {
                let agent = self.inner.runtime.start(self.inner.start.clone(), task).await?;
                let begun = self.begun(agent, false).await?;
                self.drive(none.insert(begun)).await
            }
        }
    }

    /// Says something more to the lead, which knows what was said before, and waits for the answer.
    pub async fn follow_up(&self, text: &str) -> Result<Answer, Error> {
        if self.inner.lead.lock().await.is_none() {
            return Err(Error::NotBegun);
        }
        self.run(text).await
    }

    /// Goes on with what was stopped, cut off or left waiting, and waits for the answer. The lead is told
    /// nothing new, as it is by [`follow_up`](Self::follow_up); and the session is this one, where
    /// [`resume`](Self::resume) opens one of an earlier process, to be gone on with by this method. Where
    /// nothing is left open it says again what the last task came to.
    pub async fn go_on(&self) -> Result<Answer, Error> {
        let mut lead = self.inner.lead.lock().await;
        match &mut *lead {
            Some(lead) => self.drive(lead).await,
            None => Err(Error::NotBegun),
        }
    }

    /// Runs a workflow and waits for what it returns. No model is asked but by the agents that the workflow
    /// starts. Calling it is the consent to it.
    pub async fn run_workflow(&self, workflow: Workflow, args: Option<Value>) -> Result<Answer, Error> {
        let (name, source) = self.find(workflow).await?;
        let given = args.as_ref().map(|args| format!(" {args}")).unwrap_or_default();
        let digest = source_digest(&source);
        let text = format!("workflow {name}{given} (script {})", digest.get(..12).unwrap_or_default());
        let mut input = json!({"script": source});
        if let Some(args) = args {
            input["args"] = args;
        }
        let mut lead = self.inner.lead.lock().await;
        match &mut *lead {
            Some(lead) => {
                self.inner.runtime.call(&lead.agent, &self.key("script"), &text, &input).await?;
                lead.own = true;
                self.drive(lead).await
            }
            none => {
                let mut start = self.inner.start.clone();
                // Nothing that stands in a program or its arguments is consent to more than this run.
                if let Some(fan_out) = &mut start.fan_out {
                    fan_out.quoted = true;
                }
                let agent = self.inner.runtime.start_call(start, &text, &input).await?;
                let begun = self.begun(agent, true).await?;
                self.drive(none.insert(begun)).await
            }
        }
    }

    /// Stops what is under way in good order: nothing new is started, and what runs is waited for up to ten
    /// seconds. The call that waits for the answer returns with [`Status::Stopped`]. Where nothing is under
    /// way nothing happens.
    pub fn stop(&self) {
        self.ask(StopLevel::Drain);
    }

    /// Stops at once: what runs is cut off and recorded as interrupted.
    pub fn stop_now(&self) {
        self.ask(StopLevel::Cut);
    }

    /// What happens from now on, in this session and in its agents. It can be called before
    /// [`run`](Self::run), and by several listeners.
    pub fn events(&self) -> Events {
        let (sender, events) = unbounded_channel();
        self.listeners().push(sender);
        Events { receiver: events }
    }

    /// The session's id; `None` until the first task.
    pub async fn id(&self) -> Option<String> {
        self.inner.lead.lock().await.as_ref().map(|lead| lead.session.to_string())
    }

    /// Closes the journal, so that another process can go on at once. Dropping the last clone does the same
    /// after a while.
    pub async fn close(self) -> Result<(), Error> {
        let _idle = self.inner.lead.lock().await;
        let _ended = self.inner.driving.lock().await;
        Ok(self.inner.journal.close().await?)
    }

    fn ask(&self, level: StopLevel) {
        if let Some(stopper) = &*self.inner.stopper.lock().unwrap_or_else(PoisonError::into_inner) {
            stopper.ask(level);
        }
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Vec<UnboundedSender<Event>>> {
        self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: &Event) {
        self.listeners().retain(|listener| listener.send(event.clone()).is_ok());
    }

    fn key(&self, what: &str) -> String {
        format!("{what}-{}-{}", self.inner.clock.now(), self.inner.said.fetch_add(1, Ordering::Relaxed))
    }

    async fn begun(&self, agent: AgentId, own: bool) -> Result<Lead, Error> {
        let session = self.inner.runtime.session_of(&agent).await?;
        Ok(Lead { agent, session, can_go_on: false, left_at: None, own })
    }

    /// The name and the source of a workflow.
    async fn find(&self, workflow: Workflow) -> Result<(String, String), Error> {
        let refused = |error: convoke_runtime::LibraryError| Error::Workflow(error.to_string());
        match workflow.source {
            WorkflowSource::Source(source) => {
                match self.inner.library.checker().check(&source).await.map_err(refused)? {
                    Checked::Sound { meta, .. } => Ok((meta.name, source)),
                    Checked::Unsound { problems } => {
                        let problems = problems
                            .iter()
                            .map(|problem| problem.message.clone())
                            .collect::<Vec<_>>()
                            .join("; ");
                        Err(Error::Workflow(format!("the workflow cannot be run: {problems}")))
                    }
                }
            }
            WorkflowSource::Named(name) => match self.inner.library.find(&name).await.map_err(refused)? {
                Some(found) => Ok((found.name, found.source)),
                None => {
                    let known = self
                        .inner
                        .library
                        .list()
                        .await
                        .into_iter()
                        .map(|entry| entry.name)
                        .collect::<Vec<_>>();
                    Err(Error::Workflow(format!(
                        "there is no workflow {name}; there are: {}",
                        known.join(", ")
                    )))
                }
            },
        }
    }

    /// Drives the lead until it has answered everything, and tells the listeners what happens.
    async fn drive(&self, lead: &mut Lead) -> Result<Answer, Error> {
        let take = match lead.can_go_on {
            false => DriveMode::New,
            true => DriveMode::Resume { changed: self.changed(lead.left_at.take()).await },
        };
        // Until it is known how this ends: also a future that is dropped, and an error, leave something to go
        // on with.
        lead.can_go_on = true;
        let (stopper, stop) = Stopper::new();
        *self.inner.stopper.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopper.clone());
        let driven = self.watch(&lead.agent, take, stop, &stopper).await;
        let stopped = self
            .inner
            .stopper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .is_some_and(|it| it.is_asked());
        let ended = driven?;
        lead.can_go_on = ended.summary.as_ref().is_some_and(|summary| summary.can_go_on);
        let answer = Answer::of(&self.inner, &lead.agent, ended, lead.own, stopped).await;
        let status = match &answer {
            Ok(answer) => answer.status,
            Err(_) => Status::Failed,
        };
        self.tell(&Event::Finished { status });
        answer
    }

    async fn watch(
        &self,
        agent: &AgentId,
        take: DriveMode,
        stop: Stop,
        stopper: &Stopper,
    ) -> Result<DriveOutcome, Error> {
        let (watcher, mut notices) = unbounded_channel();
        let mut fold = Fold::default();
        let runtime = self.inner.runtime.clone();
        let agent = agent.clone();
        // A task of its own: a drive that is dropped half-way would leave tasks behind that hold the lead's
        // stream for a moment, and the next drive would find it taken.
        let turn = Arc::clone(&self.inner.driving).lock_owned().await;
        let mut drive = tokio::spawn(async move {
            let _turn = turn;
            runtime.drive(&agent, take, stop, Some(watcher)).await
        });
        let _cut = CutOnDrop { stopper };
        let ended = loop {
            tokio::select! {
                ended = &mut drive => break ended,
                Some(notice) = notices.recv() => fold.hear(notice).iter().for_each(|event| self.tell(event)),
            }
        };
        // What was told before the end comes before it.
        while let Ok(notice) = notices.try_recv() {
            fold.hear(notice).iter().for_each(|event| self.tell(event));
        }
        match ended {
            Ok(ended) => Ok(ended?),
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        }
    }

    /// The files that changed while no process drove the session.
    async fn changed(&self, since: Option<u64>) -> Vec<String> {
        match (since, &self.inner.trees) {
            (Some(since), Some(trees)) => changed_since(&trees.sight, &self.inner.dir, since).await,
            _ => Vec::new(),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("dir", &self.inner.dir).finish_non_exhaustive()
    }
}
