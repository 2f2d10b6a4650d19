//! What can go wrong while driving an agent.

use std::path::PathBuf;

use convoke_kernel::{
    AgentId, BadEvent, IllegalEvent, Outcome, RetuneRefused, RunId, RunRefused, Summary, TooLong, Unexpected,
};

/// Why a run could not be started or driven on. Failures of the model or of tools are outcomes, not errors.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] convoke_journal::Error),
    /// The journal would not take what happened. What came back from the model or a tool is carried here and
    /// spooled.
    #[error("{cause}; nothing new was started{}", spooled_note(.spooled))]
    Unrecorded {
        /// What the journal said.
        #[source]
        cause: convoke_journal::Error,
        /// What the model had said, if it had.
        text: Option<String>,
        /// The answer, if the exchange was over.
        outcome: Option<Box<Outcome>>,
        /// What the agent's row would be with it: what came back is paid for, recorded or not.
        summary: Option<Box<Summary>>,
        /// The file that holds what could not be recorded; the next resume reads it.
        spooled: Option<PathBuf>,
    },
    /// There is no such agent.
    #[error("there is no agent {0} in this journal; `convoke sessions list` shows what is there")]
    NoSuchAgent(AgentId),
    /// The stream holds something that this version cannot read.
    #[error("event {seq} of {agent}: {cause}")]
    BadEvent {
        /// The agent that the stream belongs to.
        agent: AgentId,
        /// The number of the event.
        seq: u64,
        /// What is wrong.
        #[source]
        cause: BadEvent,
    },
    /// The stream holds events in an order that cannot be.
    #[error("event {seq} of {agent}: {cause}")]
    BadHistory {
        /// The agent that the stream belongs to.
        agent: AgentId,
        /// The number of the event.
        seq: u64,
        /// What is wrong.
        #[source]
        cause: IllegalEvent,
    },
    /// An input in the journal cannot be read.
    #[error("input '{key}' of {agent} cannot be read: {cause}")]
    BadInput {
        /// The agent that the input waits for.
        agent: AgentId,
        /// The key of the input.
        key: String,
        /// What is wrong.
        #[source]
        cause: serde_json::Error,
    },
    /// The kernel refused an input.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
    /// The agent cannot be given another model; nothing was written down.
    #[error(transparent)]
    RetuneRefused(#[from] RetuneRefused),
    /// The session cannot be forked, or not there; nothing was written down.
    #[error(transparent)]
    ForkRefused(#[from] crate::fork::ForkRefused),
    /// An event could not be encoded.
    #[error("an event could not be encoded: {0}")]
    Encode(#[from] serde_json::Error),
    /// The task is empty.
    #[error("the task is empty: say what is to be done")]
    EmptyTask,
    /// What was said does not fit what the model reads at once; nothing was written down.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The directory's name is not text, and what is sent and recorded is.
    #[error("the directory {} has a name that is not UTF-8: rename it, or work through a link with another \
        name", .0.display())]
    DirNotText(PathBuf),
    /// The machine gives no random bytes.
    #[error("no random bytes for an id: {0}")]
    NoRandomness(String),
    /// An effect's task panicked.
    #[error("internal error: an effect of {0} panicked; the run can be resumed")]
    EffectBroke(AgentId),
    /// A run's stream holds something that cannot be.
    #[error("event {seq} of {run}: {cause}")]
    BadRun {
        /// Which run.
        run: RunId,
        /// Which event.
        seq: u64,
        /// What is wrong.
        cause: String,
    },
    /// The kernel refused something that came of a run.
    #[error(transparent)]
    RunRefused(#[from] RunRefused),
    /// Comparing citations broke down.
    #[error("internal error: the comparison of citations panicked; the run can be resumed")]
    CheckBroke,
    /// The directory cannot be read.
    #[error(transparent)]
    Workspace(#[from] crate::workspace::WorkspaceError),
    /// The interpreter of programs cannot be had.
    #[error(transparent)]
    Interpreter(crate::interpreter::InterpreterError),
    /// The roster or the board does not allow it; the text says why and what to do.
    #[error("{0}")]
    TeamRefused(String),
    /// A tool of the embedding program cannot be given to agents; the text says why and what to do.
    #[error("{0}")]
    BadTool(String),
    /// The agent was begun with a tool that the embedding program does not have now.
    #[error(
        "this session was begun with the tool {0}, which this program does not have: give it to the session \
            again"
    )]
    ToolMissing(String),
    /// A test asked for a crash here.
    #[error("crashed on request")]
    Crashed,
}

fn spooled_note(spooled: &Option<PathBuf>) -> String {
    match spooled {
        Some(path) => {
            format!(". What had come back is kept in {} and is read by the next resume", path.display())
        }
        None => String::new(),
    }
}
