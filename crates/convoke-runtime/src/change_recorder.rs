//! What a run changes in its directory, kept so that it can be shown and taken back, and the worktrees of
//! agents that change things side by side. The doing is `convoke-trees`'; here it is tied to sessions and
//! agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_kernel::AgentId;
use convoke_trees::{Actor, Fence, Finished, HostPlaces, Keeper, Worktree, Worktrees};
use tokio::sync::OnceCell;

use crate::children::Parent;
use crate::confine::left_commits;

/// The record of what one session changes in its directory, opened when something is first written.
pub(crate) struct ChangeRecorder {
    places: HostPlaces,
    dir: PathBuf,
    run: String,
    fence: Arc<dyn Fence>,
    keeper: OnceCell<Keeper>,
}

impl ChangeRecorder {
    pub(crate) fn new(places: HostPlaces, dir: &str, run: &str, fence: Arc<dyn Fence>) -> Self {
        Self { places, dir: PathBuf::from(dir), run: run.to_owned(), fence, keeper: OnceCell::new() }
    }

    /// Whether an agent that works in this directory writes what is kept here.
    pub(crate) fn covers(&self, dir: &str) -> bool {
        Path::new(dir) == self.dir
    }

    /// Marks the state before something is written. With `jobs` what has changed since the agent's last mark
    /// is its own: it left something running. A window that a living process has open is waited for.
    pub(crate) async fn open(&self, agent: Actor<'_>, jobs: bool) -> Result<(), String> {
        let keeper = self.keeper().await?;
        if jobs {
            keeper.claim(agent).await.map_err(|error| error.to_string())?;
        }
        keeper.open_window(agent).await.map_err(|error| error.to_string())
    }

    /// Notes a line for the report.
    pub(crate) async fn note(&self, agent: Actor<'_>, line: &str) -> Result<(), String> {
        self.keeper().await?.note(agent, line).await.map_err(|error| error.to_string())
    }

    /// Marks the state after it: what differs is this agent's.
    pub(crate) async fn close(&self, agent: Actor<'_>, note: &str) -> Result<(), String> {
        let keeper = self.keeper().await?;
        keeper.close_window(agent, note).await.map(drop).map_err(|error| error.to_string())
    }

    /// Marks the state at an agent's end, if something that it left running may have written since its last
    /// mark.
    pub(crate) async fn end(&self, agent: Actor<'_>) {
        if let Some(keeper) = self.keeper.get() {
            // What cannot be recorded now counts at the next look as changed by others.
            let _ = keeper.claim(agent).await;
        }
    }

    async fn keeper(&self) -> Result<&Keeper, String> {
        let open = async || {
            let keeper = Keeper::open(&self.places, &self.dir, &self.run).await?;
            Ok::<_, convoke_trees::Error>(keeper.fenced(Arc::clone(&self.fence)))
        };
        self.keeper.get_or_try_init(open).await.map_err(|error| error.to_string())
    }
}

/// The worktree of one agent.
pub(crate) struct AgentWorktree {
    worktrees: Worktrees,
    worktree: Worktree,
    /// Where the agent's private files are.
    private: PathBuf,
}

impl AgentWorktree {
    /// Makes it, or finds it again.
    pub(crate) async fn make(parent: &Parent, agent: &AgentId) -> Result<Self, String> {
        let Some(places) = &parent.config.trees else {
            return Err("worktrees are not kept here (is git installed?)".to_owned());
        };
        let open = Worktrees::open(places.clone(), Path::new(&parent.spec.dir)).await;
        let worktrees = open.map_err(|error| error.to_string())?;
        let made = worktrees.create(parent.id.as_str(), agent.as_str()).await;
        let private = parent.config.confine.private_of(agent.as_str());
        Ok(Self { worktree: made.map_err(|error| error.to_string())?, worktrees, private })
    }

    pub(crate) fn dir(&self) -> String {
        self.worktree.path.to_string_lossy().into_owned()
    }

    /// Keeps what was changed, and says in one sentence where it is.
    pub(crate) async fn finish(&self) -> String {
        let Worktree { run, agent, base, .. } = &self.worktree;
        let said = match self.worktrees.finish(run, agent).await {
            Ok(finished @ Finished::Kept { .. }) => format!(
                "its worktree {}; the person takes it over with `convoke worktrees apply {run} {agent}`",
                finished.told(base)
            ),
            Ok(finished) => format!("its worktree {}", finished.told(base)),
            Err(error) => format!("its worktree {} is left as it is: {error}", self.dir()),
        };
        said + &left_commits(&self.private)
    }
}
