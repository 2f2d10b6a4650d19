//! What can go wrong here, in words that say what to do next. A command that fails is no error: it is an
//! outcome.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a shell could not be started or kept, or a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The helper executable could not be started.
    #[error(
        "the helper {program} could not be started; check that the path names this program's own executable"
    )]
    HelperStart {
        /// The path that was tried.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The helper said why it cannot go on.
    #[error("the shell's helper gave up: {message}")]
    HelperRefused {
        /// Its own words.
        message: String,
    },
    /// The helper is gone, and with it the shell and all its processes.
    #[error("the shell's helper ended unexpectedly ({status}); start the shell again")]
    HelperEnded {
        /// How it ended, as far as is known.
        status: String,
    },
    /// The helper did not answer in time and was killed.
    #[error("the shell's helper did not answer within {waited:?} and was killed; start the shell again")]
    HelperSilent {
        /// How long it was waited for.
        waited: Duration,
    },
    /// A worker could not be locked, so it computes nothing.
    #[error("the worker does not compute, because it could not be started and locked: {message}")]
    WorkerRefused {
        /// Why.
        message: String,
    },
    /// Something that is not our protocol arrived.
    #[error(
        "the shell's helper sent something unreadable ({problem}); is it the same version of this program?"
    )]
    Protocol {
        /// What was wrong.
        problem: String,
    },
    /// The working directory does not exist or is none.
    #[error("{} is not a directory that can be entered; name one that exists", path.display())]
    NoDirectory {
        /// The path given.
        path: PathBuf,
    },
    /// The policy confines, but no layers were chosen to hold it.
    #[error("the policy confines commands but no layers were chosen; ask `hold` which ones hold it here")]
    NotHeld,
    /// The sandbox holds less than was found when it was tried.
    #[error(
        "no command was run, because the sandbox holds less than when it was tried ({missing}); start again: \
         it is tried anew then, and `convoke doctor` says what it finds"
    )]
    NotAsTried {
        /// What is missing, and why.
        missing: String,
    },
    /// A command, or a variable, holds a NUL byte, which no program can be given.
    #[error("{what} contains a NUL byte; remove it")]
    NulByte {
        /// Which text it was.
        what: &'static str,
    },
    /// The command is larger than can be sent.
    #[error("the command has {bytes} bytes, more than the {limit} allowed; write it to a file and run that")]
    CommandTooLong {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A trusted program could not be started.
    #[error("{} could not be started; is it installed?", program.display())]
    ProgramStart {
        /// Where it is.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A trusted program could not be confined, so it was not started.
    #[error("{} was not started, because it cannot be confined as commands are: {why}", program.display())]
    ProgramLock {
        /// Where it is.
        program: PathBuf,
        /// What could not be had.
        why: String,
    },
    /// A trusted program ran past its deadline and was killed with its process group.
    #[error("{} did not finish within {deadline:?} and was killed", program.display())]
    ProgramDeadline {
        /// Where it is.
        program: PathBuf,
        /// The time it had.
        deadline: Duration,
    },
    /// A trusted program stood still and was killed with its process group.
    #[error(
        "{} stood still for {patience:?} and was killed; {}", program.display(),
        waiting_for.as_deref().map_or_else(
            || "look for a pipe or a device where it expects a file, and remove it".to_owned(),
            |file| format!("it waited for {}: if that is a pipe or a device, remove it", file.display())
        )
    )]
    ProgramStalled {
        /// Where it is.
        program: PathBuf,
        /// How long it stood still.
        patience: Duration,
        /// The file it waited for, as far as that could be seen; as it named it, so it may be relative to
        /// where it was started.
        waiting_for: Option<PathBuf>,
    },
    /// A command of git's that nothing here is meant to run.
    #[error("`git {command}` is not on the list of what Convoke runs")]
    NotListed {
        /// Its name.
        command: String,
    },
    /// The system refused something that normally works.
    #[error("{doing} failed")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was being done when the system refused.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { doing, source }
    }
}
