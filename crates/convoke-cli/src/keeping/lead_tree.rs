//! The worktree of a lead: made before anything is asked of a model, found again by a resume, and stored when
//! the session has ended. There is no way from here to the main checkout: what cannot be made is a failure.

use std::path::{Path, PathBuf};

use convoke_kernel::AgentId;
use convoke_runtime::{Ids, left_commits};
use convoke_trees::{Finished, Worktree, Worktrees};

use super::checkout::{Checkout, LEAD};
use super::places::places;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;

/// A lead's worktree.
pub(crate) struct LeadTree {
    checkout: Checkout,
    worktrees: Worktrees,
    worktree: Worktree,
}

impl LeadTree {
    /// Makes one for a new session in the directory of these settings.
    pub(crate) async fn make(settings: &Settings) -> Result<Self, Failure> {
        let worktrees = Worktrees::open(places(settings), &settings.dir).await.map_err(refused)?;
        // It is named before its session is: what the session is written down with holds the directory.
        let id = AgentId::from_bits(Ids::random().bits()?).to_string();
        let name = format!("w_{}", id.trim_start_matches(AgentId::PREFIX).trim_start_matches('_'));
        let checkout = Checkout { name, dir: settings.dir.clone() };
        checkout.write(settings)?;
        match worktrees.create(&checkout.name, LEAD).await {
            Ok(worktree) => Ok(Self { checkout, worktrees, worktree }),
            Err(error) => {
                // A record without a worktree does no harm; the failure is what counts.
                let _ = checkout.forget(settings);
                Err(refused(error))
            }
        }
    }

    /// Finds that of a session again, with all that was done in it; none if its lead works in the directory
    /// itself.
    pub(crate) async fn again(settings: &Settings, dir: &Path) -> Result<Option<Self>, Failure> {
        let Some(checkout) = Checkout::of(settings, dir) else { return Ok(None) };
        let worktrees = Worktrees::open(places(settings), &checkout.dir).await.map_err(refused)?;
        let worktree = worktrees.create(&checkout.name, LEAD).await.map_err(refused)?;
        Ok(Some(Self { checkout, worktrees, worktree }))
    }

    /// Where the lead works.
    pub(crate) fn dir(&self) -> PathBuf {
        self.worktree.path.clone()
    }

    /// What a person is told at the start.
    pub(crate) fn line(&self) -> String {
        format!(
            "works in a worktree of its own, cut from {}: {}",
            self.worktree.base,
            self.worktree.path.display()
        )
    }

    /// What a person should know about it.
    pub(crate) fn remarks(&self) -> &[String] {
        &self.worktree.remarks
    }

    /// Gives it up before any work was done in it.
    pub(crate) async fn give_up(self, settings: &Settings) {
        // Whatever stays is listed by `convoke worktrees list`.
        if let Ok(Finished::Removed) = self.worktrees.finish(&self.checkout.name, LEAD).await {
            let _ = self.checkout.forget(settings);
        }
    }

    /// Leaves it as it is, for a session that is to go on, and says so.
    pub(crate) fn left(&self) -> String {
        format!(
            "the worktree of this session stays as it is until the session goes on: {}",
            self.dir().display()
        )
    }

    /// Stores what the lead and the agents that worked beside it changed, and says where it is. `private` is
    /// where the lead's private files are.
    pub(crate) async fn end(&self, private: &Path) -> String {
        let said = match self.worktrees.finish(&self.checkout.name, LEAD).await {
            Ok(finished) => format!("the worktree of this session {}", finished.told(&self.worktree.base)),
            Err(error) => {
                format!("the worktree of this session stays as it is, {}: {error}", self.dir().display())
            }
        };
        said + &left_commits(private)
    }
}

/// Without a worktree there is no session: nothing was started and nothing spent.
fn refused(error: convoke_trees::WorktreeError) -> Failure {
    let failure = Failure { code: Exit::Usage, ..Failure::from(error) };
    Failure {
        message: format!("no worktree could be made, so nothing was started: {}", failure.message),
        ..failure
    }
    .hint("leave --isolation out to work in the directory itself; `convoke sessions undo` takes changes back")
}
