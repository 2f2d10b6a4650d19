//! What can go wrong with a worktree, each with what to do next. No error stands for "used the main checkout
//! instead".

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;

/// Why a worktree operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The repository has no commit to cut a worktree from.
    #[error("the repository at {} has no commit yet: commit something, then start again", top.display())]
    NoCommit {
        /// Its top directory.
        top: PathBuf,
    },
    /// Another process is at work on this worktree.
    #[error("worktree {run}/{agent} is being worked on by another process: try again when that has ended")]
    Busy {
        /// The run.
        run: String,
        /// The agent.
        agent: String,
    },
    /// No worktree has this name.
    #[error(
        "there is no worktree {run}/{agent} in this repository: `convoke worktrees list` shows which there \
            are"
    )]
    Unknown {
        /// The run.
        run: String,
        /// The agent.
        agent: String,
    },
    /// A directory lies where the worktree is to be and this repository has no record of it.
    #[error(
        "{} is already there but this repository has no record of it: look what it is and move it \
            away", path.display()
    )]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// The files in the new worktree are not those of its base.
    #[error(
        "the new worktree {run}/{agent} does not hold its base: wanted tree {wanted}, found {found}; it was \
         not handed out. Check the disk and the file system, then start again"
    )]
    NotItsBase {
        /// The run.
        run: String,
        /// The agent.
        agent: String,
        /// The base's tree.
        wanted: String,
        /// What lay there.
        found: String,
    },
    /// The work would be lost.
    #[error(
        "the work of {run}/{agent} has not been applied ({}): apply it first, or drop it with --force",
        counted(files)
    )]
    NotApplied {
        /// The run.
        run: String,
        /// The agent.
        agent: String,
        /// The files that would be lost.
        files: Vec<String>,
    },
    /// What no commit can hold would be lost.
    #[error(
        "the worktree {run}/{agent} holds what is stored nowhere else ({}): move it out of {}, or drop it \
            with --force",
        counted(files), path.display()
    )]
    NotStored {
        /// The run.
        run: String,
        /// The agent.
        agent: String,
        /// Where the worktree is.
        path: PathBuf,
        /// What would be lost, seen from there.
        files: Vec<String>,
    },
    /// The branch is in use or has commits that Convoke did not make.
    #[error("branch {branch} {why}: delete it yourself with `git branch -D {branch}`, then drop again")]
    BranchInUse {
        /// The branch.
        branch: String,
        /// What stands against it.
        why: String,
    },
    /// An apply would overwrite changes in the checkout; nothing was written.
    #[error("nothing was applied: {0}")]
    Conflict(Conflict),
    /// An apply was stopped between two files by a change made meanwhile.
    #[error(
        "the apply stopped at {path}, which was changed while it ran; written so far: {}. Put {path} back \
         as it was and apply again, which goes on where it stopped",
        counted(done)
    )]
    HalfApplied {
        /// The file that changed.
        path: String,
        /// What had been written.
        done: Vec<String>,
        /// What is still to be written, that file included.
        left: Vec<String>,
    },
    /// Git or a file operation failed, or there is no repository.
    #[error(transparent)]
    Trees(#[from] Error),
}

/// Why an apply was refused, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Each file and what stands against it.
    pub files: Vec<(String, String)>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.files.len() == 1 { "conflict" } else { "conflicts" };
        write!(f, "{} {noun}", self.files.len())?;
        for (path, why) in &self.files {
            write!(f, "\n  {path}: {why}")?;
        }
        Ok(())
    }
}

/// A few names and how many there are.
fn counted(files: &[String]) -> String {
    let shown = files.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    match files.len() {
        0 => "no file".to_owned(),
        1..=3 => shown,
        more => format!("{shown} and {} more", more - 3),
    }
}
