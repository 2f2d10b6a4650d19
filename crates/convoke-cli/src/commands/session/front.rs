//! How a person is asked in a session: the question goes to the screen and waits there, others beside it. A
//! question whose asker has stopped waiting is taken away again. What an agent says is never an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_runtime::{Asker, Checkpoint, Question};
use convoke_terminal::{About, Asking, QuestionAnswer, Screen, ScreenUpdate};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::super::ask::Rules;
use crate::questions::who;

/// Where questions are asked.
pub(super) struct QuestionFront {
    screen: UnboundedSender<Screen>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

struct Waiting {
    /// The command it is about, if it is about one.
    command: Option<String>,
    answer: oneshot::Sender<QuestionAnswer>,
}

impl QuestionFront {
    pub(super) fn new(screen: UnboundedSender<Screen>) -> Arc<Self> {
        Arc::new(Self { screen, next: AtomicU64::new(1), waiting: Mutex::default() })
    }

    /// Asks the person on the screen, in a session that goes by these rules.
    pub(super) fn asker(self: &Arc<Self>, rules: Rules) -> Asker {
        let rules = Arc::new(rules);
        let agrees = Arc::clone(self);
        let answers = Arc::clone(self);
        let asker = Asker::new(move |question| Arc::clone(&agrees).agrees(Arc::clone(&rules), question));
        asker.answering(move |checkpoint| Arc::clone(&answers).answers(checkpoint))
    }

    /// Whether the person agrees to run a workflow that they called themselves.
    pub(super) async fn agrees_to_run(&self, what: String, details: Vec<String>) -> bool {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let about = About::Workflow;
        let who = "the workflow".to_owned();
        let why = String::new();
        self.ask(Asking { id, agent: None, who, wanted: what, why, details, about }, None).await
            == Some(QuestionAnswer::Yes)
    }

    /// Takes a person's answer; one to a question that waits no more changes nothing.
    pub(super) fn answered(&self, question: u64, answer: QuestionAnswer) {
        if let Some(waiting) = self.waiting().remove(&question) {
            // The caller may have stopped waiting.
            let _ = waiting.answer.send(answer);
        }
    }

    async fn agrees(self: Arc<Self>, rules: Arc<Rules>, question: Question) -> bool {
        let Question { what, details, call } = question;
        let command = call.as_ref().and_then(|call| call.wanted.strip_prefix("run: ")).map(str::to_owned);
        if command.as_deref().is_some_and(|command| rules.allows(command)) {
            return true;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let asking = match call {
            Some(call) => {
                let always = command.as_deref().and_then(|command| rules.always(command));
                let about = About::Call { always };
                let who = who(&call.label);
                let agent = Some(call.agent);
                Asking { id, agent, who, wanted: call.wanted, why: call.why, details: Vec::new(), about }
            }
            None => {
                let who = "the lead".to_owned();
                let about = About::Workflow;
                Asking { id, agent: None, who, wanted: what, why: String::new(), details, about }
            }
        };
        match (self.ask(asking, command.clone()).await, command) {
            (Some(QuestionAnswer::Always), Some(command)) => {
                self.tell(ScreenUpdate::Note(rules.remember(&command)));
                self.settle(&rules);
                true
            }
            (answer, _) => answer == Some(QuestionAnswer::Yes),
        }
    }

    /// Questions that a rule answers now need no answer any more.
    fn settle(&self, rules: &Rules) {
        let allowed: Vec<u64> = {
            let waiting = self.waiting();
            let allowed = waiting
                .iter()
                .filter(|(_, one)| one.command.as_deref().is_some_and(|command| rules.allows(command)));
            allowed.map(|(id, _)| *id).collect()
        };
        for id in allowed {
            self.answered(id, QuestionAnswer::Yes);
            self.tell(ScreenUpdate::Withdrawn(id));
        }
    }

    async fn answers(self: Arc<Self>, checkpoint: Checkpoint) -> Option<String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let who = "the workflow".to_owned();
        let why = String::new();
        let asking = Asking {
            id,
            agent: None,
            who,
            wanted: checkpoint.question,
            why,
            details: Vec::new(),
            about: About::Checkpoint,
        };
        match self.ask(asking, None).await {
            Some(QuestionAnswer::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Asks, and waits; `None` if the screen is gone.
    async fn ask(&self, asking: Asking, command: Option<String>) -> Option<QuestionAnswer> {
        let (answer, answered) = oneshot::channel();
        let stands = Stands { front: self, id: asking.id };
        self.waiting().insert(asking.id, Waiting { command, answer });
        self.tell(ScreenUpdate::Asked(Box::new(asking)));
        let answer = answered.await.ok();
        drop(stands);
        answer
    }

    fn tell(&self, told: ScreenUpdate) {
        // A screen that is gone shows nothing.
        let _ = self.screen.send(Screen::Update(told));
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that stands. A stop makes an end of waiting for it, and it is taken away.
struct Stands<'a> {
    front: &'a QuestionFront,
    id: u64,
}

impl Drop for Stands<'_> {
    fn drop(&mut self) {
        self.front.waiting().remove(&self.id);
        self.front.tell(ScreenUpdate::Withdrawn(self.id));
    }
}

#[cfg(test)]
mod tests {
    use convoke_kernel::AgentId;
    use convoke_runtime::AskedCall;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn question(command: &str) -> Question {
        let call = "t1".to_owned();
        let label = "tidy up".to_owned();
        let why = "a rule asks for it".to_owned();
        let call = AskedCall {
            agent: AgentId::from_bits([1; 10]),
            call,
            label,
            wanted: format!("run: {command}"),
            why,
        };
        Question { what: String::new(), details: Vec::new(), call: Some(call) }
    }

    async fn asked(news: &mut UnboundedReceiver<Screen>) -> Asking {
        loop {
            if let Some(Screen::Update(ScreenUpdate::Asked(asking))) = news.recv().await {
                return *asking;
            }
        }
    }

    #[tokio::test]
    async fn always_counts_at_once_for_everybody_and_is_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let (screen, mut news) = unbounded_channel();
        let front = QuestionFront::new(screen);
        let rules = Arc::new(Rules::at(file.clone()));
        let first = tokio::spawn(Arc::clone(&front).agrees(Arc::clone(&rules), question("cargo test")));
        let one = asked(&mut news).await;
        let second =
            tokio::spawn(Arc::clone(&front).agrees(Arc::clone(&rules), question("cargo test --workspace")));
        asked(&mut news).await;
        let About::Call { always: Some(_) } = one.about else { panic!("{one:?}") };
        front.answered(one.id, QuestionAnswer::Always);
        assert!(first.await.unwrap() && second.await.unwrap(), "the second needs no answer any more");
        assert!(std::fs::read_to_string(&file).unwrap().contains("command = \"cargo test\""));
        assert!(Arc::clone(&front).agrees(rules, question("cargo test -p x")).await, "nobody is asked again");
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let (screen, mut news) = unbounded_channel();
        let front = QuestionFront::new(screen);
        let rules = Arc::new(Rules::at(dir.path().join("config.toml")));
        let waits = tokio::spawn(Arc::clone(&front).agrees(rules, question("git push")));
        let asking = asked(&mut news).await;
        waits.abort();
        let withdrawn = loop {
            if let Some(Screen::Update(ScreenUpdate::Withdrawn(id))) = news.recv().await {
                break id;
            }
        };
        assert_eq!(withdrawn, asking.id);
        front.answered(asking.id, QuestionAnswer::Yes);
    }
}
