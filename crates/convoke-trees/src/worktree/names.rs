//! Names and places of one worktree: its refs, its branch, its directories. Pure: nothing is looked up.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::places::checked_name;

/// The directories of one worktree tell how far its life has come, so that no record beside them can
/// disagree: `making-*` is being made and holds nothing of an agent, `tree` is complete and verified,
/// `removing` holds nothing that is not stored elsewhere.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) run: String,
    pub(super) agent: String,
    /// `<state>/worktrees/<run>/<agent>`: ours; the agent writes only below `tree`.
    pub(super) home: PathBuf,
    pub(super) tree: PathBuf,
    pub(super) removing: PathBuf,
    /// The admin directory of the linked worktree in the repository.
    pub(super) admin: PathBuf,
}

impl Site {
    pub(super) fn new(state: &Path, common: &Path, run: &str, agent: &str) -> Result<Self, Error> {
        checked_name(run)?;
        checked_name(agent)?;
        // The keeper's own refs lie at this level, and git cannot hold both a ref and a directory of that
        // name.
        if matches!(agent, "before" | "after") {
            return Err(Error::BadName { name: agent.to_owned() });
        }
        let home = state.join("worktrees").join(run).join(agent);
        Ok(Self {
            run: run.to_owned(),
            agent: agent.to_owned(),
            tree: home.join("tree"),
            removing: home.join("removing"),
            home,
            admin: common.join("worktrees").join(format!("convoke-{run}-{agent}")),
        })
    }

    pub(super) fn base_ref(&self) -> String {
        self.reference("base")
    }

    pub(super) fn work_ref(&self) -> String {
        self.reference("work")
    }

    pub(super) fn applied_ref(&self) -> String {
        self.reference("applied")
    }

    fn reference(&self, last: &str) -> String {
        format!("refs/convoke/{}/{}/{last}", self.run, self.agent)
    }

    pub(super) fn branch(&self) -> String {
        format!("convoke/{}/{}", self.run, self.agent)
    }

    pub(super) fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch())
    }

    /// The first line of a base snapshot's message. It names the worktree, so that no other commit is taken
    /// for one.
    pub(super) fn snapshot_title(&self) -> String {
        format!("convoke: the checkout before {} {}", self.run, self.agent)
    }

    pub(super) fn work_title(&self) -> String {
        format!("convoke: the work of {} {}", self.run, self.agent)
    }

    /// Held while something is done with this worktree.
    pub(super) fn lock(&self) -> PathBuf {
        self.home.with_file_name(format!("{}.lock", self.agent))
    }

    /// Where an apply keeps its plan while it is being done.
    pub(super) fn plan(&self) -> PathBuf {
        self.home.join("apply.json")
    }
}

/// The run and agent of `refs/convoke/<run>/<agent>/base`.
pub(super) fn from_base_ref(reference: &str) -> Option<(&str, &str)> {
    let mut parts = reference.strip_prefix("refs/convoke/")?.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(run), Some(agent), Some("base"), None) => Some((run, agent)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_its_directory_or_its_ref_is_refused() {
        for name in ["", ".", "..", "a/b", "a b", "a\n", "-x", "a.lock", "é", "before", "after"] {
            let site = Site::new(Path::new("/s"), Path::new("/c"), "wf_1", name);
            assert!(matches!(site, Err(Error::BadName { .. })), "{name:?} was taken");
        }
        assert!(Site::new(Path::new("/s"), Path::new("/c"), "../x", "a_1").is_err());
    }

    #[test]
    fn names_lead_to_refs_and_back() {
        let site = Site::new(Path::new("/s"), Path::new("/c"), "wf_1", "a-2").unwrap();
        assert_eq!(from_base_ref(&site.base_ref()), Some(("wf_1", "a-2")));
        assert_eq!(from_base_ref(&site.work_ref()), None);
        assert_eq!(from_base_ref("refs/convoke/wf_1/before"), None);
        assert_eq!(site.branch_ref(), "refs/heads/convoke/wf_1/a-2");
    }
}
