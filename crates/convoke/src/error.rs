//! What can go wrong, each with what to do about it.

use std::path::PathBuf;

use crate::answer::Answer;

/// Why a session could not be opened or did not come to an answer. The text says what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program cannot serve as the helper under which commands run.
    #[error(
        "convoke::helper_entry() was not called: make it the first line of main, because commands of agents \
         run below this executable, started again; or name an executable that calls it with \
         SessionBuilder::helper"
    )]
    NoHelperEntry,
    /// There is no model to ask.
    #[error(
        "no model to ask: set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or ANTHROPIC_BASE_URL for \
         another server; or say api_key(…) or base_url(…), or offline() for the built-in model"
    )]
    NoModel,
    /// A setting is wrong; nothing was started.
    #[error("{0}")]
    Setting(String),
    /// The directory cannot be worked in.
    #[error("cannot work in {}: {why}", .dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// Commands cannot be confined as was asked for.
    #[error("{0}; or say sandbox(Sandbox::Off), with which commands have all rights of this process")]
    Sandbox(String),
    /// The journal cannot be opened, read or written.
    #[error("{0}; name another place with journal(…)")]
    Journal(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The journal has no such session.
    #[error("there is no session {0} in this journal; is it the right journal(…)?")]
    NoSuchSession(String),
    /// Nothing was said in this session yet, so there is nothing to follow up or to go on with.
    #[error("nothing was said in this session yet: call run(…) first")]
    NotBegun,
    /// There is no workflow of this name.
    #[error("{0}")]
    Workflow(String),
    /// The session ended without an answer.
    #[error("{message}")]
    Failed {
        /// What happened and what to do.
        message: String,
        /// What there is all the same: findings, spend and changed files.
        answer: Box<Answer>,
    },
    /// Driving the session failed; what was done is recorded, and the session can be resumed.
    #[error("{0}")]
    Run(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The same text as `Display`: it is what a `main` that returns this error prints.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl From<convoke_journal::Error> for Error {
    fn from(error: convoke_journal::Error) -> Self {
        Self::Journal(Box::new(error))
    }
}

impl From<convoke_runtime::Error> for Error {
    fn from(error: convoke_runtime::Error) -> Self {
        match error {
            convoke_runtime::Error::Journal(error) => Self::Journal(Box::new(error)),
            convoke_runtime::Error::BadTool(why) => Self::Setting(why),
            error => Self::Run(Box::new(error)),
        }
    }
}

impl From<convoke_claude::ClientError> for Error {
    fn from(error: convoke_claude::ClientError) -> Self {
        Self::Setting(error.to_string())
    }
}

impl From<convoke_claude::TableError> for Error {
    fn from(error: convoke_claude::TableError) -> Self {
        Self::Setting(error.to_string())
    }
}
