//! What can go wrong here, in words that say what to do next. A file that undo leaves alone is no error: it
//! is named.

use std::io;
use std::path::{Path, PathBuf};

/// Why a tree could not be kept, compared or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no git to keep anything with.
    #[error(
        "git was not found in a place that agents do not write, so changes could not be shown or taken back; \
            install git, or put it on the PATH"
    )]
    NoGit,
    /// The directory is not in a work tree of a repository.
    #[error("{} is not in a git work tree; run `git init` there and commit, or do without \
        worktrees", dir.display())]
    NoRepository {
        /// The directory given.
        dir: PathBuf,
    },
    /// There is git metadata, but not such that git could use it.
    #[error("{} does not lead to a usable repository: {why}; repair or remove it", path.display())]
    BadRepository {
        /// The `.git` that was found.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Git would wait for a pipe that no process fills.
    #[error(
        "{} is a pipe, and git would wait for it; remove it, or put a file in its place",
        path.display()
    )]
    Pipe {
        /// The pipe.
        path: PathBuf,
    },
    /// A worktree needs a repository that can be written.
    #[error(
        "the repository {} cannot be written by this user, so no worktree can be made; change its owner or \
         permissions, or do without worktrees", path.display()
    )]
    NotWritable {
        /// Its git dir.
        path: PathBuf,
    },
    /// The directory does not exist or is none.
    #[error("{} is not a directory that can be read; name one that exists", path.display())]
    NoDirectory {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The state directory would be kept inside of itself.
    #[error("the state directory {} lies inside of {}; choose one outside of \
        it", state.display(), dir.display())]
    StateInside {
        /// The state directory.
        state: PathBuf,
        /// The directory that is worked in.
        dir: PathBuf,
    },
    /// A directory without a repository is too large to be copied unasked.
    #[error(
        "{} is in no git repository that can be written and too large to be copied: more than {files} files \
         with {} MiB were counted, and the limit is {} files and {} MiB; run `git init` there (or make its \
         repository writable), name a smaller directory, or use `--sandbox read-only`",
        dir.display(), bytes >> 20, crate::size::LIMIT.files, crate::size::LIMIT.bytes >> 20
    )]
    TooLarge {
        /// The directory.
        dir: PathBuf,
        /// How many files were counted until then.
        files: u64,
        /// How many bytes they have.
        bytes: u64,
    },
    /// A path of ours is not UTF-8, which git's variables must be here.
    #[error("{} is not valid UTF-8; choose a state directory whose path is", path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// The name of a run or an agent cannot be a part of a ref.
    #[error("{name:?} cannot name a run or an agent; use letters, digits, `_` and `-`")]
    BadName {
        /// The name given.
        name: String,
    },
    /// Nothing was kept for this run.
    #[error("nothing was kept for run {run} in {}; it wrote nothing there, or its record was \
        pruned", dir.display())]
    NotKept {
        /// The run.
        run: String,
        /// The directory.
        dir: PathBuf,
    },
    /// The run's record in this repository is of another directory.
    #[error("run {run} works in another directory of this repository than {}; name that one", dir.display())]
    OtherDirectory {
        /// The run.
        run: String,
        /// The directory given.
        dir: PathBuf,
    },
    /// A command of the run is under way.
    #[error("a command of run {run} is under way; wait for it, or stop the run, then try again")]
    Busy {
        /// The run.
        run: String,
    },
    /// Another process has the record of the run in use, for longer than is waited.
    #[error(
        "{by} has had the record of this run in use for {seconds} s; see what that process does (it may be \
            stopped), then try again"
    )]
    Stuck {
        /// The process or agent that has it.
        by: String,
        /// How long this process waited for it.
        seconds: u64,
    },
    /// Another process has taken over: this one stood still for too long.
    #[error("another process has taken over what this one had begun, and records what it changed")]
    Fenced,
    /// Another process recorded changes of the same run meanwhile.
    #[error("{name} was moved by another process; let only one process work on a run, then try again")]
    Moved {
        /// The ref.
        name: String,
    },
    /// A command of git's failed.
    #[error("git failed while {doing}: {said}")]
    Git {
        /// What it was for.
        doing: &'static str,
        /// What git said.
        said: String,
    },
    /// Git's answer was longer than is kept.
    #[error("git said more than can be kept while {doing}; work in a smaller directory")]
    TooMuch {
        /// What it was for.
        doing: &'static str,
    },
    /// Git could not be run to its end.
    #[error("git could not be run to its end while {doing}: {source}; try again")]
    Run {
        /// What it was for.
        doing: &'static str,
        /// What happened.
        #[source]
        source: convoke_sandbox::Error,
    },
    /// The tree was changed over and over while it was being read.
    #[error("{} kept changing while it was read ({said}); wait until nothing writes there, then try \
        again", dir.display())]
    Restless {
        /// The directory.
        dir: PathBuf,
        /// What git said last.
        said: String,
    },
    /// A record of ours holds something that we did not write.
    #[error("{what} is not as this program writes it; was it made by a newer version?")]
    Unreadable {
        /// Which record.
        what: String,
    },
    /// A file of ours could not be read or written.
    #[error("{doing} {} failed: {source}; check its permissions and the free space", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` after an operation on a file.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { doing, path: path.to_owned(), source }
    }

    /// The same for a file that was opened beneath a handle.
    pub(crate) fn opening(doing: &'static str, path: &Path) -> impl FnOnce(convoke_beneath::Error) -> Self {
        let failed = Self::file(doing, path);
        move |error| failed(error.into())
    }
}
