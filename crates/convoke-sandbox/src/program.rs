//! The one door through which the host starts programs in or about a tree: git, and a program that is asked
//! for its version. Each gets exact arguments and an exact environment, no input, a deadline, patience,
//! bounded output, and its *sight*: what it may read, write and execute. It dies with the host. Never for
//! anything a model wrote.
//!
//! What is locked is prepared here, in the host, and laid upon the program between fork and exec by plain
//! system calls, so that no further process is needed. A lock that cannot be had is an error; nothing here
//! ever falls back to less.

mod git;
mod progress;
mod run;
mod start;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::git::{Git, GitCall};
use crate::confine::look;
use crate::error::Error;
use crate::late::LatePaths;

/// How long a program may stand still: without processor time, and not waiting for a disk. A program that
/// works is never cut off by this, however long it takes; one that waits for a pipe that no process fills is.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a program may take to say its version.
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// What a program printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutput {
    /// Its standard output, up to the cap.
    pub stdout: Vec<u8>,
    /// Its error output, up to the cap.
    pub stderr: Vec<u8>,
    /// Whether either was longer than the cap.
    pub truncated: bool,
    /// Its exit code; 128 and the signal if one killed it.
    pub code: i32,
}

/// What a program of ours may see of the machine. The choice is made where it is known whether commands are
/// confined, and is handed down from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// Whatever this user sees, and whatever programs it starts: a person said that commands are not confined
    /// either, or no sandbox can be had on this machine and every run that wants one is refused.
    Everything,
    /// What it is about, and the machine's libraries; and of that nothing that commands do not see.
    LikeCommands(Unseen),
}

/// What commands do not see, in the words of a [`crate::Policy`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unseen {
    /// What is hidden.
    pub hidden: Vec<PathBuf>,
    /// What may be read although it lies in something hidden.
    pub readable: Vec<PathBuf>,
    /// What is hidden even within something readable.
    pub masked: Vec<PathBuf>,
    /// The same, found when a program is first confined.
    pub found: LatePaths,
}

impl Unseen {
    /// All that is hidden even within something readable.
    fn all_masked(&self) -> impl Iterator<Item = &PathBuf> {
        self.masked.iter().chain(self.found.get())
    }
}

impl Sight {
    /// Whether commands see a place, which must be given without links.
    pub fn shows(&self, place: &Path) -> bool {
        let Self::LikeCommands(unseen) = self else { return true };
        let nearest = |places: &[PathBuf]| {
            let around = places.iter().map(|path| look(path).path).filter(|around| place.starts_with(around));
            around.map(|around| around.components().count()).max()
        };
        let is_masked = unseen.all_masked().any(|path| place.starts_with(look(path).path));
        !is_masked && nearest(&unseen.hidden) <= nearest(&unseen.readable)
    }

    /// What commands do not see below a directory, which must be given without links.
    pub fn hidden_below(&self, dir: &Path) -> Vec<PathBuf> {
        let Self::LikeCommands(unseen) = self else { return Vec::new() };
        let places = unseen.hidden.iter().chain(unseen.all_masked()).map(|path| look(path).path);
        places.filter(|path| path != dir && path.starts_with(dir)).collect()
    }
}

/// One program, put together piece by piece.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
    deadline: Duration,
    patience: Duration,
    cap: usize,
    sight: Sight,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    children: bool,
}

impl Program {
    /// A program with no arguments and no environment, in the root directory, that sees nothing but itself.
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: PathBuf::from("/"),
            deadline: Duration::from_secs(60),
            patience: PATIENCE,
            cap: 1 << 20,
            sight: Sight::LikeCommands(Unseen::default()),
            reads: Vec::new(),
            writes: Vec::new(),
            children: false,
        }
    }

    fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Runs it to its end. At the deadline, when it stands still, or when the future is dropped, its whole
    /// process group is killed. A process it leaves behind does not delay the answer.
    pub(crate) async fn run(self) -> Result<ProgramOutput, Error> {
        let (seen, held) = std::io::pipe().map_err(Error::system("making a pipe"))?;
        let work = tokio::task::spawn_blocking(move || run::run(&self, Some(&seen)));
        let outcome = work.await;
        // Only now: when this future is dropped before, the pipe closes and the work ends.
        drop(held);
        outcome.map_err(|error| Error::System {
            doing: "running a program",
            source: std::io::Error::other(error),
        })?
    }

    /// The same for a process that has one thread and no runtime.
    pub(crate) fn run_blocking(&self) -> Result<ProgramOutput, Error> {
        run::run(self, None)
    }
}

/// The first line that a trusted program says about its version; none if it says nothing. It is given no tree
/// to look at, so it is the one that is started with everything in sight.
pub async fn program_version(program: &Path) -> Option<String> {
    let asked = Program { deadline: VERSION_DEADLINE, sight: Sight::Everything, ..Program::new(program) };
    let output = asked.args(["--version"]).run().await.ok().filter(|output| output.code == 0)?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// Whether the kernel can confine the programs that the host starts; commands cannot be confined without it
/// either.
pub fn can_confine() -> bool {
    crate::sys::landlock_abi().is_ok()
}
