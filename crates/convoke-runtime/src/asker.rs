//! How a person is asked. The question reaches whoever sits at the terminal; what an agent says is never an answer.

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

/// Asks a person and waits for the answer.
#[derive(Clone)]
pub struct Asker(Arc<Asks>);

type Asks = dyn Fn(Question) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;

impl Asker {
    /// Asks by this.
    pub fn new<F>(asks: impl Fn(Question) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        Self(Arc::new(move |question| Box::pin(asks(question))))
    }

    pub(crate) async fn agrees(&self, question: Question) -> bool {
        (self.0)(question).await
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}
