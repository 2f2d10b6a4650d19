//! What goes wrong, as it is told to a person: one message, what to do next, and an exit code. Printed once,
//! in `main`.

use std::fmt::Write;

use convoke_kernel::Ending;

/// The exit codes, as documented in `convoke --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Everything was done.
    Done = 0,
    /// It failed.
    Failed = 1,
    /// The command line, the environment or the configuration is wrong; nothing was started.
    Usage = 2,
    /// It finished in part.
    Partial = 3,
    /// A budget stopped it.
    Budget = 4,
    /// It waits for a person's answer, or a person paused or stopped it; it can be resumed.
    NeedsPerson = 5,
    /// There is a finding that the caller asked to fail on.
    Finding = 6,
    /// SIGHUP stopped it; it can be resumed.
    HungUp = 129,
    /// SIGINT stopped it; it can be resumed.
    Interrupted = 130,
    /// SIGTERM stopped it; it can be resumed.
    Terminated = 143,
}

impl Exit {
    /// The exit code of a session that ended so.
    pub(crate) fn of(ending: Ending) -> Self {
        Self::coded(ending.code)
    }

    /// The exit code with this number.
    pub(crate) fn coded(code: u8) -> Self {
        let all = [Self::Done, Self::Failed, Self::Partial, Self::Budget, Self::NeedsPerson, Self::Finding];
        let stops = [Self::HungUp, Self::Interrupted, Self::Terminated];
        // The kernel decides no other code; a test holds it to that.
        all.into_iter().chain(stops).find(|exit| *exit as u8 == code).unwrap_or(Self::Failed)
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: Exit,
    /// What happened, in one sentence.
    pub(crate) message: String,
    /// What to do about it, one line each.
    pub(crate) hints: Vec<String>,
}

impl Failure {
    /// Something was tried and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: Exit::Failed, message: message.into(), hints: Vec::new() }
    }

    /// What was asked for makes no sense; nothing was tried.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: Exit::Usage, ..Self::failed(message) }
    }

    /// With one more line of advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The text for stderr.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("convoke: {}\n", self.message.trim_end());
        for hint in &self.hints {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {hint}");
        }
        // Names of files, keys and models come from outside, and a terminal must not obey them.
        crate::render::clean(&text)
    }
}

impl From<convoke_journal::Error> for Failure {
    fn from(error: convoke_journal::Error) -> Self {
        use convoke_journal::Error;
        let message = error.to_string();
        match &error {
            Error::BadLocation { .. } | Error::BadStream { .. } => Self::usage(message),
            // Found before anything was begun; what a session finds under way is the end of that session.
            Error::Corrupt { .. } => Self::usage(message).hint("`convoke doctor` looks at all of it"),
            Error::Held { stream, .. } => {
                Self::failed(message).hint(format!("to watch it: `convoke sessions watch {stream}`"))
            }
            Error::CannotWrite { .. } | Error::Unavailable { .. } => {
                Self::failed(message).hint("`convoke doctor` says what is wrong with the journal")
            }
            Error::Refused { .. } => Self::failed(message).hint(
                "name another journal with --journal or ORCH_JOURNAL; `convoke config show` says where \
                    this one came from",
            ),
            _ => Self::failed(message),
        }
    }
}

impl From<convoke_runtime::Error> for Failure {
    fn from(error: convoke_runtime::Error) -> Self {
        match error {
            convoke_runtime::Error::Journal(error) => error.into(),
            convoke_runtime::Error::EmptyTask
            | convoke_runtime::Error::TooLong(_)
            | convoke_runtime::Error::DirNotText(_) => Self::usage(error.to_string()),
            error => Self::failed(error.to_string()),
        }
    }
}

impl From<convoke_runtime::LibraryError> for Failure {
    fn from(error: convoke_runtime::LibraryError) -> Self {
        match error {
            convoke_runtime::LibraryError::Unchecked { .. } => {
                Self::failed(error.to_string()).hint("`convoke doctor` says what is missing")
            }
            error => Self::usage(error.to_string()),
        }
    }
}

impl From<convoke_claude::ClientError> for Failure {
    fn from(error: convoke_claude::ClientError) -> Self {
        Self::usage(error.to_string()).hint("`convoke config show` says where each setting came from")
    }
}

impl From<convoke_claude::TableError> for Failure {
    fn from(error: convoke_claude::TableError) -> Self {
        Self::usage(error.to_string()).hint("`convoke config show` says where each setting came from")
    }
}
