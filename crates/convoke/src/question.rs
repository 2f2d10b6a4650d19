//! Questions to the embedder, and the replies to them.

use std::future::Future;

use convoke_runtime::{Asker, Checkpoint};

/// Something that needs an answer before it is done. Agents never answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// An agent wants to make a call that a rule asks about.
    Call {
        /// What the agent is called; empty for the lead.
        agent: String,
        /// What is wanted: `run: COMMAND`, `change: PATH`.
        wanted: String,
        /// Why it is asked.
        why: String,
    },
    /// The lead wants to run a workflow that was not agreed to.
    Workflow {
        /// What is wanted, in one sentence.
        wanted: String,
        /// What it would start, line by line.
        details: Vec<String>,
    },
    /// A workflow's `checkpoint()` asks for a text; [`Reply::Text`] answers it.
    Text {
        /// The run of the workflow.
        run: String,
        /// What it asks.
        question: String,
    },
}

/// The reply to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Yes, this once. To a question for a text it says nothing, and the question waits.
    Allow,
    /// No. To a question for a text it says nothing, and the question waits.
    Refuse,
    /// This text. To a question about a call or a workflow it is no consent.
    Text(String),
}

/// An asker of the runtime that asks this callback.
pub(crate) fn asker<F>(callback: impl Fn(Question) -> F + Clone + Send + Sync + 'static) -> Asker
where
    F: Future<Output = Reply> + Send + 'static,
{
    let for_text = callback.clone();
    let asker = Asker::new(move |question| {
        let asked = callback(read(question));
        async move { asked.await == Reply::Allow }
    });
    asker.answering(move |Checkpoint { run, question, .. }| {
        let asked = for_text(Question::Text { run, question });
        async move {
            match asked.await {
                Reply::Text(text) => Some(text),
                Reply::Allow | Reply::Refuse => None,
            }
        }
    })
}

fn read(question: convoke_runtime::Question) -> Question {
    match question.call {
        Some(call) => Question::Call { agent: call.label, wanted: call.wanted, why: call.why },
        None => Question::Workflow { wanted: question.what, details: question.details },
    }
}
