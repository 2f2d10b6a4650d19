//! What the worktree operations hand back. Data only: nothing here runs git or touches a file.

use std::fmt;
use std::path::PathBuf;

/// What a worktree was cut from. Recorded under `refs/convoke/<run>/<agent>/base` before the worktree exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// The checkout was clean: its HEAD.
    Head {
        /// The commit HEAD pointed to.
        commit: String,
    },
    /// The checkout had changes (tracked or untracked, not ignored): they were committed on top of HEAD,
    /// beside every branch.
    Snapshot {
        /// The commit that holds the changes.
        commit: String,
        /// Its tree: the files as they lay on disk.
        tree: String,
        /// The commit HEAD pointed to.
        head: String,
    },
}

impl Base {
    /// The commit the worktree starts from.
    #[must_use]
    pub fn commit(&self) -> &str {
        match self {
            Self::Head { commit } | Self::Snapshot { commit, .. } => commit,
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn short(id: &str) -> &str {
            id.get(..12).unwrap_or(id)
        }
        match self {
            Self::Head { commit } => write!(f, "HEAD ({})", short(commit)),
            Self::Snapshot { commit, head, .. } => {
                let commit = short(commit);
                let head = short(head);
                write!(f, "a snapshot of the uncommitted changes ({commit}), on top of HEAD ({head})")
            }
        }
    }
}

/// A worktree that is ready for its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The run it belongs to.
    pub run: String,
    /// The agent that works in it.
    pub agent: String,
    /// The directory in it that corresponds to the one [`super::Worktrees::open`] was given.
    pub path: PathBuf,
    /// Its top directory.
    pub top: PathBuf,
    /// What it was cut from.
    pub base: Base,
    /// What a person should know: submodules that are not checked out, files of the checkout that are not in
    /// it.
    pub remarks: Vec<String>,
}

/// What became of a worktree when its agent had ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// Nothing was changed and nothing was left in it: it is gone.
    Removed,
    /// Nothing was changed, but files that git ignores (or cannot store) lie in it: it stays until it is
    /// dropped.
    Unchanged {
        /// What lies there, relative to the top; a directory ends in a slash.
        ignored: Vec<PathBuf>,
        /// Where the worktree is.
        path: PathBuf,
    },
    /// The changes are stored.
    Kept {
        /// `convoke/<run>/<agent>`; none if that branch could not be set, and then a remark says why.
        branch: Option<String>,
        /// The commit that holds every tracked and untracked file; `refs/convoke/<run>/<agent>/work` points
        /// to it.
        commit: String,
        /// The changed files.
        files: Vec<String>,
        /// What is not in the commit, because git ignores it or cannot store it; it lies in the worktree
        /// until that is dropped.
        ignored: Vec<PathBuf>,
        /// Where the worktree is; none if everything is in the commit, for then the directory is gone.
        path: Option<PathBuf>,
        /// What a person should know.
        remarks: Vec<String>,
    },
}

impl Finished {
    /// What became of it, as the rest of a sentence that begins with the worktree.
    #[must_use]
    pub fn told(&self, base: &Base) -> String {
        match self {
            Self::Removed => format!("was cut from {base}, is unchanged and was removed"),
            Self::Unchanged { path, .. } => {
                format!(
                    "was cut from {base} and is unchanged but for files that git ignores: {}",
                    path.display()
                )
            }
            Self::Kept { branch, commit, files, remarks, .. } => {
                let place = match branch {
                    Some(branch) => format!("on the branch {branch}"),
                    None => format!("in the commit {commit}"),
                };
                let files = match files.len() {
                    1 => "1 changed file is".to_owned(),
                    number => format!("{number} changed files are"),
                };
                let remarks: String = remarks.iter().map(|remark| format!("; {remark}")).collect();
                format!("was cut from {base}; {files} kept {place}{remarks}")
            }
        }
    }
}

/// How a worktree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeState {
    /// Its creation was interrupted, and no agent worked in it. Creating it again goes on.
    Unfinished,
    /// Its directory is there and nothing has been stored.
    Working,
    /// Its changes are stored and its directory is still there.
    Kept,
    /// Its changes are stored and its directory is gone.
    Stored,
}

impl fmt::Display for WorktreeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfinished => "unfinished",
            Self::Working => "working",
            Self::Kept => "kept",
            Self::Stored => "stored",
        })
    }
}

/// One worktree in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeEntry {
    /// The run it belongs to.
    pub run: String,
    /// The agent that works or worked in it.
    pub agent: String,
    /// What it was cut from.
    pub base: Base,
    /// How it stands.
    pub state: WorktreeState,
    /// Whether what it holds now has been applied.
    pub applied: bool,
    /// The files that differ from the base.
    pub files: Vec<String>,
    /// What lies in it that git ignores or cannot store.
    pub ignored: Vec<PathBuf>,
    /// Those of them that git does not ignore: no commit holds them, and they may be work.
    pub not_stored: Vec<PathBuf>,
    /// Where its directory is, if it is there.
    pub path: Option<PathBuf>,
}

/// What an apply did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The files that were written or removed.
    pub files: Vec<String>,
    /// Files that already were as the worktree has them.
    pub already: Vec<String>,
    /// What lies in the worktree, is not ignored and cannot be brought over.
    pub not_stored: Vec<PathBuf>,
}

/// What a drop took away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The commit that held the work, if there was any: git keeps it for a while, `git branch NAME COMMIT`
    /// brings it back.
    pub commit: Option<String>,
    /// Ignored files that went with the directory.
    pub ignored: Vec<PathBuf>,
}
