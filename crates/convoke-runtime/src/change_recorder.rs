//! What a run changes in its directory, kept so that it can be shown and taken back, and the worktrees of
//! agents that change things side by side. The doing is `convoke-trees`'; here it is tied to sessions and
//! agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_kernel::AgentId;
use convoke_trees::{
    Actor, Begun, Error, Fence, Finished, HostPlaces, Keeper, Overlap, Place, Worktree, Worktrees,
};
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

    /// Marks the state before something is written of which it is not known what that will be. With `jobs`
    /// what has changed since the agent's last mark is its own: it left something running. Whatever another
    /// agent has claimed is waited for.
    pub(crate) async fn open(&self, agent: Actor<'_>, jobs: bool) -> Result<(), String> {
        let keeper = self.keeper().await.map_err(|error| error.to_string())?;
        if jobs {
            keeper.claim(agent).await.map_err(|error| error.to_string())?;
        }
        keeper.open_window(agent).await.map_err(|error| error.to_string())
    }

    /// To be called when a command begins that asks before it writes. It starts no git.
    pub(crate) fn begun(&self) -> Begun {
        Keeper::begun(&self.places, &self.dir, &self.run)
    }

    /// Claims places, and waits for those that another agent has; returns what was not claimed before.
    /// Without a command it is something that an earlier one left running that asks.
    pub(crate) async fn before_write(
        &self,
        agent: Actor<'_>,
        places: &[Place],
        during: Option<&Begun>,
    ) -> Result<Vec<Place>, Error> {
        self.keeper().await?.before_write(agent, places, during).await
    }

    /// Whether the agent has claimed anything.
    pub(crate) fn has_window(&self, agent: &str) -> bool {
        self.keeper.get().is_some_and(|keeper| keeper.has_window(agent))
    }

    /// Lets go of what the agent has claimed; what it changed is recorded by the next look.
    pub(crate) fn abandon(&self, agent: &str) {
        if let Some(keeper) = self.keeper.get() {
            keeper.abandon(agent);
        }
    }

    /// Notes a line for the report.
    pub(crate) async fn note(&self, agent: Actor<'_>, line: &str) -> Result<(), String> {
        let keeper = self.keeper().await.map_err(|error| error.to_string())?;
        keeper.note(agent, line).await.map_err(|error| error.to_string())
    }

    /// Marks the state after it: what differs at the agent's places is its own. If it left something running,
    /// that has `held` open still.
    pub(crate) async fn close(
        &self,
        agent: Actor<'_>,
        note: &str,
        held: Option<&[PathBuf]>,
    ) -> Result<(), String> {
        let keeper = self.keeper().await.map_err(|error| error.to_string())?;
        let closed = match held {
            Some(held) => keeper.leave_window(agent, note, held).await,
            None => keeper.close_window(agent, note).await,
        };
        closed.map(drop).map_err(|error| error.to_string())
    }

    /// The same for places that were claimed for one call, of which `new` were not claimed before.
    pub(crate) async fn close_places(
        &self,
        agent: Actor<'_>,
        note: &str,
        places: &[Place],
        new: &[Place],
    ) -> Result<(), String> {
        let keeper = self.keeper().await.map_err(|error| error.to_string())?;
        keeper.close_places(agent, note, places, new).await.map(drop).map_err(|error| error.to_string())
    }

    /// Marks the state at an agent's end, if something that it left running may have written since its last
    /// mark: without asking (`jobs`), or what it had claimed.
    pub(crate) async fn end(&self, agent: Actor<'_>, jobs: bool) {
        let Some(keeper) = self.keeper.get() else { return };
        // What cannot be recorded now is recorded at the next look, or counts there as changed by others.
        if keeper.has_window(agent.agent) {
            let _ = keeper.close_window(agent, "background jobs").await;
            keeper.abandon(agent.agent);
        } else if jobs {
            let _ = keeper.claim(agent).await;
        }
    }

    /// What the agent has not been told yet of files that another one wrote at the same time.
    pub(crate) fn overlaps(&self, agent: &str) -> Vec<Overlap> {
        // What cannot be read now is told with a later result.
        Keeper::overlaps(&self.places, &self.dir, &self.run, agent).unwrap_or_default()
    }

    /// Forgets what the agent has been told.
    pub(crate) async fn were_told(&self, agent: Actor<'_>, told: &[Overlap]) {
        if let Ok(keeper) = self.keeper().await {
            // It is told once more if that fails.
            let _ = keeper.were_told(agent, told).await;
        }
    }

    async fn keeper(&self) -> Result<&Keeper, Error> {
        let open = async || {
            let keeper = Keeper::open(&self.places, &self.dir, &self.run).await?;
            Ok::<_, Error>(keeper.fenced(Arc::clone(&self.fence)))
        };
        self.keeper.get_or_try_init(open).await
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
