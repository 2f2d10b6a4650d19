//! Where a session stands, in words for people and for programs.

use convoke_kernel::{EndStatus, Ending};

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// A process drives it.
    Running,
    /// It is unfinished and no process drives it.
    Open,
    /// It is unfinished, no process drives it, and it waits for a person's answer.
    Waiting,
    /// It has ended, and how.
    Ended(Ending),
}

impl State {
    /// The state in one or two words, for people.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Ended(end) if end.status != EndStatus::Done => {
                format!("{} {}", self.word(), end.reason.word())
            }
            Self::Waiting => "waits for an answer".to_owned(),
            _ => self.word().to_owned(),
        }
    }

    /// The state in one word, for programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Open => "open",
            Self::Waiting => "waiting",
            Self::Ended(end) => end.status.word(),
        }
    }

    /// How it ended, once it has.
    pub(crate) fn ending(self) -> Option<Ending> {
        match self {
            Self::Ended(end) => Some(end),
            Self::Running | Self::Open | Self::Waiting => None,
        }
    }
}
