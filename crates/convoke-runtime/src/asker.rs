//! How a person at the terminal is asked. What an agent says is never an answer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use convoke_kernel::AgentId;

/// Something a person has to agree to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is wanted, in one sentence.
    pub what: String,
    /// What that would start, line by line.
    pub details: Vec<String>,
    /// The call it is about, if it is about one.
    pub call: Option<AskedCall>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedCall {
    /// The agent that wants to make it.
    pub agent: AgentId,
    /// The id of the call.
    pub call: String,
    /// What people call that agent.
    pub label: String,
    /// What is wanted: `run: COMMAND`, `change: PATH`.
    pub wanted: String,
    /// Why it is asked.
    pub why: String,
}

/// A question of a program, to be answered in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The program's run.
    pub run: String,
    /// The call that asks.
    pub call: u32,
    /// What is asked.
    pub question: String,
}

/// Asks a person and waits for the answer.
#[derive(Clone)]
pub struct Asker {
    agrees: Arc<Agrees>,
    answers: Option<Arc<Answers>>,
}

type Agrees = dyn Fn(Question) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;
type Answers = dyn Fn(Checkpoint) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync;

impl Asker {
    /// Asks by this. Questions of programs wait, unless [`answering`](Self::answering) says how to ask them.
    pub fn new<F>(asks: impl Fn(Question) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        Self { agrees: Arc::new(move |question| Box::pin(asks(question))), answers: None }
    }

    /// The same, and a program's question is asked by this; without an answer it waits for a later one.
    pub fn answering<F>(self, asks: impl Fn(Checkpoint) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<String>> + Send + 'static,
    {
        Self { answers: Some(Arc::new(move |question| Box::pin(asks(question)))), ..self }
    }

    pub(crate) async fn agrees(&self, question: Question) -> bool {
        (self.agrees)(question).await
    }

    /// What a person says to a program's question; `None` if it is to wait.
    pub(crate) async fn answers(&self, question: Checkpoint) -> Option<String> {
        match &self.answers {
            Some(answers) => answers(question).await,
            None => None,
        }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}
