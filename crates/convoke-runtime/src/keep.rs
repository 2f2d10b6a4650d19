//! What a run changes in its directory, kept so that it can be shown and taken back, and the worktrees of agents that
//! change things side by side. The doing is `convoke-trees`'; here it is tied to sessions and agents.

use std::path::{Path, PathBuf};

use convoke_kernel::AgentId;
use convoke_trees::{Finished, Keeper, Places, Worktree, Worktrees};
use tokio::sync::OnceCell;

use crate::children::Parent;

/// The record of what one session changes in its directory, opened when something is first written.
pub(crate) struct Keep {
    places: Places,
    dir: PathBuf,
    run: String,
    keeper: OnceCell<Keeper>,
}

impl Keep {
    pub(crate) fn new(places: Places, dir: &str, run: &str) -> Self {
        Self { places, dir: PathBuf::from(dir), run: run.to_owned(), keeper: OnceCell::new() }
    }

    /// Whether an agent that works in this directory writes what is kept here.
    pub(crate) fn covers(&self, dir: &str) -> bool {
        Path::new(dir) == self.dir
    }

    /// Marks the state before something is written.
    pub(crate) async fn open(&self, agent: &str) -> Result<(), String> {
        self.keeper().await?.open_window(agent).await.map_err(|error| error.to_string())
    }

    /// Marks the state after it: what differs is this agent's.
    pub(crate) async fn close(&self, agent: &str, note: &str) -> Result<(), String> {
        let keeper = self.keeper().await?;
        keeper.close_window(agent, note).await.map(drop).map_err(|error| error.to_string())
    }

    async fn keeper(&self) -> Result<&Keeper, String> {
        let open = || Keeper::open(&self.places, &self.dir, &self.run);
        self.keeper.get_or_try_init(open).await.map_err(|error| error.to_string())
    }
}

/// The worktree of one agent.
pub(crate) struct Place {
    worktrees: Worktrees,
    worktree: Worktree,
}

impl Place {
    /// Makes it, or finds it again.
    pub(crate) async fn make(parent: &Parent, agent: &AgentId) -> Result<Self, String> {
        let Some(places) = &parent.config.trees else {
            return Err("worktrees are not kept here (is git installed?)".to_owned());
        };
        let open = Worktrees::open(places.clone(), Path::new(&parent.spec.dir)).await;
        let worktrees = open.map_err(|error| error.to_string())?;
        let made = worktrees.create(parent.id.as_str(), agent.as_str()).await;
        Ok(Self { worktree: made.map_err(|error| error.to_string())?, worktrees })
    }

    pub(crate) fn dir(&self) -> String {
        self.worktree.path.to_string_lossy().into_owned()
    }

    /// Keeps what was changed, and says in one sentence where it is.
    pub(crate) async fn finish(&self) -> String {
        let Worktree { run, agent, base, .. } = &self.worktree;
        match self.worktrees.finish(run, agent).await {
            Ok(Finished::Removed) => format!("its worktree, cut from {base}, is unchanged and was removed"),
            Ok(Finished::Unchanged { path, .. }) => {
                format!("its worktree {}, cut from {base}, is unchanged but for files that git ignores", path.display())
            }
            Ok(Finished::Kept { branch, commit, files, remarks, .. }) => {
                let place =
                    branch.map_or(format!("in the commit {commit}"), |branch| format!("on the branch {branch}"));
                let remarks: String = remarks.iter().map(|remark| format!(". {remark}")).collect();
                format!(
                    "its worktree was cut from {base}; {} changed files are kept {place}; the person takes them over with \
`convoke worktrees apply {run} {agent}`{remarks}",
                    files.len()
                )
            }
            Err(error) => format!("its worktree {} is left as it is: {error}", self.dir()),
        }
    }
}
