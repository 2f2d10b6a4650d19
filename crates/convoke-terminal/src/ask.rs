//! What the person wants. Whoever runs the session does it, or says why not.

use convoke_kernel::{AgentId, RunId, TaskId};

use crate::composer::Given;

/// Something the person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Say this to the lead, now or when it has answered.
    Say(String),
    /// Go on with what was stopped.
    GoOn,
    /// Do what a command says.
    Command(Given),
    /// Stop safely: nothing new starts, what is under way is finished.
    Stop,
    /// Cut off what is under way.
    Cut,
    /// This is the answer to a question.
    Answer {
        /// Which question.
        question: u64,
        /// The answer.
        answer: Answer,
    },
    /// Send the whole history of an agent, to be looked at; it is told as [`Told::History`](crate::Told::History).
    Open(AgentId),
    /// Stop one agent.
    StopAgent(AgentId),
    /// Try again what one agent failed at.
    RetryAgent(AgentId),
    /// Try a task of the board again.
    RetryTask(TaskId),
    /// Try what failed in a run again.
    RetryRun(RunId),
    /// Write to an agent.
    Message {
        /// To whom.
        to: AgentId,
        /// What.
        text: String,
    },
    /// Open a file in the person's editor.
    Edit(Place),
    /// What could stand where this has been begun: told as [`Told::Offers`](crate::Told::Offers).
    Complete {
        /// What has been typed of the word.
        word: String,
        /// The command it is an argument of, without its slash; absent within a text.
        command: Option<String>,
    },
    /// End the session.
    Leave,
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Yes,
    /// No.
    No,
    /// Yes, and remember it.
    Always,
    /// In words.
    Text(String),
    /// Not now.
    Later,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named: relative to the session's directory, or absolute.
    pub path: String,
    /// The line.
    pub line: Option<u64>,
}
