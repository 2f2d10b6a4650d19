//! What the person wants. The program that runs the session does it, or says why not.

use convoke_kernel::{AgentId, RunId, TaskId};
use convoke_view::FilePosition;

use crate::composer::Given;

/// Something the person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAction {
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
        answer: QuestionAnswer,
    },
    /// Send the whole history of an agent, to be looked at; it is told as
    /// [`ScreenUpdate::History`](crate::ScreenUpdate::History).
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
        /// The agent.
        to: AgentId,
        /// The text.
        text: String,
    },
    /// Open a file in the person's editor.
    Edit(FilePosition),
    /// What could stand where this has been begun: told as
    /// [`ScreenUpdate::Offers`](crate::ScreenUpdate::Offers).
    Complete {
        /// What has been typed of the word.
        word: String,
        /// The command it is an argument of, without its slash; absent within a text.
        command: Option<String>,
    },
    /// Run this in the person's own shell: as the person, outside of the sandbox, and nothing of it goes to
    /// the lead.
    Shell(String),
    /// End what runs there.
    StopShell,
    /// End the session.
    Leave,
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
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
