//! What the person says: words for the lead, and workflows that are called by their names. The first of
//! either makes the lead.

use convoke_journal::{KeyedInput, StreamId};
use convoke_kernel::AgentId;
use convoke_runtime::{DriveMode, Start};
use convoke_terminal::{Candidate, ScreenUpdate};
use serde::Deserialize;
use tokio::task::JoinHandle;

use super::session_loop::{PERSON, SessionLoop, watched};
use crate::commands::complete::workflows;
use crate::commands::plan;
use crate::commands::workflow::{Called, called};
use crate::failure::Failure;
use crate::feed::Feed;
use crate::lead::Lead;

/// What was said, as it waits in the journal.
#[derive(Deserialize)]
struct Said {
    say: String,
}

/// A workflow that the person called and agreed to.
pub(super) struct Flow {
    called: Called,
    /// The lead it was called in.
    lead: Option<AgentId>,
}

/// What came of the workflow that the person called; never, while there is none.
pub(super) async fn agreed(flow: &mut Option<JoinHandle<Result<Flow, Failure>>>) -> Result<Flow, Failure> {
    let Some(now) = flow else { return std::future::pending().await };
    let came = now.await;
    *flow = None;
    came.unwrap_or_else(|error| Err(Failure::failed(format!("the workflow could not be looked at: {error}"))))
}

/// Tells the screen which workflows can be called. Whether each can be run, and whether it is trusted, is
/// told when it is called.
pub(super) fn tell_names(session_loop: &SessionLoop) {
    let all = workflows(&session_loop.settings).into_iter();
    session_loop.tell(ScreenUpdate::Workflows(
        all.map(|(text, origin)| Candidate { text, about: format!("workflow ({origin})") }).collect(),
    ));
}

/// Calls a workflow by its name. It is found, planned and agreed to beside everything else: the person's
/// answer comes the way all asks come.
pub(super) fn call(session_loop: &mut SessionLoop, name: &str, words: &str) -> Result<(), Failure> {
    if session_loop.ready.facts.watched {
        return Err(watched());
    }
    if session_loop.is_driving() {
        return Err(Failure::usage(format!("work is under way here; /{name} was not begun"))
            .hint("call it again when that has ended, or stop it first: Esc"));
    }
    if session_loop.flow.is_some() {
        return Err(Failure::usage(format!("another workflow waits for your answer; /{name} was not begun")));
    }
    let settings = session_loop.settings.clone();
    let source = session_loop.ready.source.clone();
    let library = session_loop.ready.library.clone();
    let journal = session_loop.journal.clone();
    let front = std::sync::Arc::clone(&session_loop.front);
    let lead = session_loop.ready.lead().cloned();
    let name = name.to_owned();
    let words = words.to_owned();
    session_loop.flow = Some(tokio::spawn(async move {
        let mut called = called(&settings, &source, library, &journal, (&name, &words)).await?;
        if let Some(details) = called.question.take()
            && !front.agrees_to_run(format!("run the workflow {name}?"), details).await
        {
            return Err(Failure::failed("not run: you did not agree; nothing was started or spent"));
        }
        Ok(Flow { called, lead })
    }));
    Ok(())
}

impl SessionLoop {
    /// Says something to the lead; the first thing makes it.
    pub(super) async fn say(&mut self, text: &str) -> Result<(), Failure> {
        if self.ready.facts.watched {
            return Err(watched());
        }
        let Some(lead) = self.ready.lead().cloned() else {
            if let Some(line) = plan::first_time(&self.settings, &self.ready.source, &self.journal).await? {
                self.note(&line);
            }
            let start = self.start()?;
            let made = self.ready.runtime().start(start.clone(), text).await;
            return self.made(start, made).await;
        };
        self.instead_of_stopped(&lead).await?;
        let key = self.key("say");
        self.ready.runtime().say(&lead, &key, text).await?;
        self.instead |= self.is_stopping();
        self.wake().await
    }

    /// Begins a workflow that the person called and agreed to.
    pub(super) async fn run_flow(&mut self, flow: Result<Flow, Failure>) -> Result<(), Failure> {
        let Flow { called, lead } = flow?;
        if self.is_driving() || self.ready.lead() != lead.as_ref() {
            return Err(
                Failure::usage("not run: something else was begun here meanwhile").hint("call it again")
            );
        }
        if let Some(first) = &called.first {
            self.note(first);
        }
        let Some(lead) = lead else {
            let start = self.start()?;
            let made = self.ready.runtime().start_call(start.clone(), &called.text, &called.input).await;
            return self.made(start, made).await;
        };
        self.instead_of_stopped(&lead).await?;
        let key = self.key("call");
        self.ready.runtime().call(&lead, &key, &called.text, &called.input).await?;
        self.wake().await
    }

    /// What a lead is made of, which is made once.
    fn start(&mut self) -> Result<Start, Failure> {
        let gone = || Failure::failed("this session cannot be begun any more").hint("/new begins another");
        self.ready.start.take().ok_or_else(gone)
    }

    /// Goes on after a lead was made, or could not be.
    async fn made(
        &mut self,
        start: Start,
        made: Result<AgentId, convoke_runtime::Error>,
    ) -> Result<(), Failure> {
        let agent = match made {
            Ok(agent) => agent,
            Err(error) => {
                self.ready.start = Some(start);
                return Err(error.into());
            }
        };
        self.ready.facts.lead = Some(agent.clone());
        let told = Lead::read(&self.journal, &agent).await?;
        self.ready.facts.session = told.spec.map(|spec| spec.session);
        self.feed = self.session().map(|session| Feed::new(&self.journal, &session));
        self.tell(ScreenUpdate::Facts(Box::new(self.ready.facts.clone())));
        self.drive(DriveMode::New).await
    }

    /// What was stopped stays stopped: what comes now comes instead.
    async fn instead_of_stopped(&mut self, lead: &AgentId) -> Result<(), Failure> {
        if !self.is_driving() && self.ready.facts.can_go_on {
            self.ready.runtime().stop_exchange(lead, PERSON).await?;
            self.ready.facts.can_go_on = false;
        }
        Ok(())
    }

    /// What was said and waits for the lead, the oldest first.
    pub(super) async fn words(&self) -> Vec<String> {
        let Some(lead) = self.ready.lead() else { return Vec::new() };
        let waiting = self.journal.inputs(&StreamId::from(lead)).await.unwrap_or_default();
        let said = |input: &KeyedInput| Some(serde_json::from_str::<Said>(&input.body).ok()?.say);
        waiting.iter().filter_map(said).collect()
    }
}
