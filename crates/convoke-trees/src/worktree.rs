//! Worktrees: an agent's own checkout, cut from a recorded base, its work stored before anything of it is
//! taken away.
//!
//! What an agent leaves in its directory was written by model-written commands. Its `.git`, its attributes
//! and any repository in it are therefore never believed: git is run on a git dir of ours, and what is known
//! about a worktree stands in refs of the repository and in the names of directories that the agent cannot
//! rename.
//!
//! Every operation can be stopped anywhere and done again. There is no journal: refs are set before
//! directories are renamed, and a directory's name says how far things have come (see `names.rs`).

mod apply;
mod content;
mod create;
mod disk;
mod drop;
mod error;
mod finish;
mod look;
mod merge;
mod names;
mod plan;
mod scan;
mod types;
mod unapply;

#[cfg(test)]
mod crash_tests;

pub use error::{Conflict, WorktreeError};
pub use types::{Applied, Base, Dropped, Finished, Worktree, WorktreeEntry, WorktreeState};

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::places::HostPlaces;
use crate::stops::Steps;
use crate::store::Store;
use names::Site;

/// The worktrees of one repository.
///
/// Each operation on a worktree excludes any other on the same one, in other processes too
/// ([`WorktreeError::Busy`]). An agent must have ended, with all its processes, before its worktree is
/// finished, applied or dropped.
#[derive(Debug)]
pub struct Worktrees {
    places: HostPlaces,
    /// The whole checkout, seen from its top.
    store: Store,
    /// The directory that was given, seen from the top.
    prefix: PathBuf,
    /// The git dir of this checkout.
    git_dir: PathBuf,
    /// Whether this user can make worktrees there; else those that are there can be looked at.
    writable: bool,
    steps: Steps,
}

impl Worktrees {
    /// The worktrees of the repository whose work tree `dir` lies in. Writes nothing.
    pub async fn open(places: HostPlaces, dir: &Path) -> Result<Self, WorktreeError> {
        let found = Store::find(&places, dir).await?;
        let Some(git_dir) = found.git_dir().map(Path::to_owned) else {
            return Err(Error::NoRepository { dir: dir.to_owned() }.into());
        };
        let state = places.state.canonicalize().unwrap_or_else(|_| places.state.clone());
        if state.starts_with(found.top()) {
            return Err(Error::StateInside { state, dir: found.top().to_owned() }.into());
        }
        let prefix = found.prefix().to_owned();
        let places = HostPlaces { state, ..places };
        let store = found.in_repository(&places).whole();
        let writable = !found.is_apart();
        Ok(Self { places, store, prefix, git_dir, writable, steps: Steps::default() })
    }

    /// Whether a file, as seen from the top, lies in the directory that was given.
    pub fn covers(&self, file: &Path) -> bool {
        file.starts_with(&self.prefix)
    }

    fn site(&self, run: &str, agent: &str) -> Result<Site, Error> {
        Site::new(&self.places.state, self.store.common(), run, agent)
    }

    /// The recorded base of a worktree; none if there is no such worktree.
    async fn base(&self, site: &Site) -> Result<Option<Base>, Error> {
        let Some(commit) = self.store.read_ref(&site.base_ref()).await? else { return Ok(None) };
        let (tree, title) = self.commit(&commit).await?;
        if title != site.snapshot_title() {
            return Ok(Some(Base::Head { commit }));
        }
        let call = self.store.refs("reading a commit").args(["rev-parse", "--verify", "--end-of-options"]);
        let head = call.arg(format!("{commit}^1")).line().await?;
        Ok(Some(Base::Snapshot { commit, tree, head }))
    }

    /// The tree of a commit and the first line of its message.
    async fn commit(&self, id: &str) -> Result<(String, String), Error> {
        let text = self.store.refs("reading a commit").args(["cat-file", "commit", id]).run().await?;
        let text = String::from_utf8_lossy(&text);
        let tree = text.lines().next().and_then(|line| line.strip_prefix("tree "));
        let tree = tree.ok_or_else(|| Error::Unreadable { what: format!("commit {id}") })?;
        let title =
            text.split_once("\n\n").and_then(|(_, message)| message.lines().next()).unwrap_or_default();
        Ok((tree.to_owned(), title.to_owned()))
    }

    /// The tree of the base.
    async fn base_tree(&self, base: &Base) -> Result<String, Error> {
        match base {
            Base::Snapshot { tree, .. } => Ok(tree.clone()),
            Base::Head { commit } => Ok(self.commit(commit).await?.0),
        }
    }

    fn unknown(site: &Site) -> WorktreeError {
        WorktreeError::Unknown { run: site.run.clone(), agent: site.agent.clone() }
    }
}
