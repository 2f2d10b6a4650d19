//! What becomes of the directory during a run. Results are kept under the fingerprint the directory had at
//! the run's start, so every change since then belongs to a result, whatever made it. Never writes.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use convoke_sandbox::Sight;

use crate::workspace::{Looks, Snapshot, fingerprint, fingerprint_beside};

/// The directory as one life of a run has seen it.
#[derive(Default)]
pub(crate) struct Tree {
    /// When this life began.
    start: Arc<Snapshot>,
    /// When a worker last ended.
    latest: Arc<Snapshot>,
    /// Whether the directory was then as at the run's start.
    as_keyed: bool,
    /// Whether a worker of this life has changed something.
    moved: bool,
}

/// What a worker leaves behind.
pub(crate) struct Trace {
    /// Files that changed while it was at work.
    pub(crate) changed: Vec<String>,
    after: Arc<Snapshot>,
}

impl Trace {
    /// What has changed since this look.
    pub(crate) async fn since(
        looks: &Looks,
        sight: &Sight,
        before: &Snapshot,
        dir: &Path,
    ) -> Result<Self, Error> {
        let after = looks.begun_now(sight, dir).await?;
        Ok(Self { changed: before.changes_to(&after), after })
    }
}

impl Tree {
    /// The directory of a run that starts.
    pub(crate) async fn new(looks: &Looks, sight: &Sight, dir: &Path) -> Result<Self, Error> {
        let start = looks.begun_now(sight, dir).await?;
        Ok(Self { latest: Arc::clone(&start), start, as_keyed: true, moved: false })
    }

    /// The directory of a run whose start has found out whether it is as keyed.
    pub(crate) async fn known(
        looks: &Looks,
        sight: &Sight,
        dir: &Path,
        as_keyed: bool,
    ) -> Result<Self, Error> {
        Ok(Self { as_keyed, ..Self::new(looks, sight, dir).await? })
    }

    /// The directory of a program's run; mending the program is no change of it.
    pub(crate) async fn beside(
        looks: &Looks,
        sight: &Sight,
        dir: &Path,
        base: &str,
        source: &str,
    ) -> Result<Self, Error> {
        let as_keyed = fingerprint_beside(sight, dir, source).await? == base;
        Self::known(looks, sight, dir, as_keyed).await
    }

    /// The directory of a run that is taken up again: what its workers changed before is known only if
    /// nothing did.
    pub(crate) async fn again(looks: &Looks, sight: &Sight, dir: &Path, base: &str) -> Result<Self, Error> {
        let as_keyed = fingerprint(sight, dir).await? == base;
        Self::known(looks, sight, dir, as_keyed).await
    }

    /// How it looked when a worker last ended.
    pub(crate) fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.latest)
    }

    /// Takes in what a worker left behind, and gives everything that has changed since this life began.
    pub(crate) fn moved_by(&mut self, trace: &Trace) -> Vec<String> {
        let all = self.start.changes_to(&trace.after);
        self.moved |= !all.is_empty();
        self.latest = Arc::clone(&trace.after);
        all
    }

    /// Whether everything that has changed since the run's start is known: only then can a result be kept.
    pub(crate) fn began_as_keyed(&self) -> bool {
        self.as_keyed
    }

    /// Whether no change since the run's start has been seen.
    pub(crate) fn is_as_keyed(&self) -> bool {
        self.as_keyed && !self.moved
    }
}
