//! Whether something has to be done at all: results are looked up by content, and equal work is waited for.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_journal::Flight;
use convoke_kernel::{AgentId, AgentSpec, ItemResult, Reused, RunEffect, VoterResult};
use tokio::sync::OwnedSemaphorePermit;

use super::keys::{Remembered, Sound};
use super::runner::AgentJob;
use crate::children::Parent;
use crate::error::Error;
use crate::stop::StopLevel;
use crate::workspace::digests;

/// An agent that is about to be started or at work: its place, and the right to be the only one at this key.
pub(super) struct Ticket {
    pub(super) effect: RunEffect,
    pub(super) agent: AgentId,
    pub(super) spec: AgentSpec,
    pub(super) prompt: String,
    pub(super) key: String,
    pub(super) flight: Flight,
    pub(super) place: OwnedSemaphorePermit,
}

/// What seeking came to.
pub(super) enum Sought {
    /// It has not been done yet: the agent is to be started.
    Free(Box<Ticket>),
    /// An equal one was done before.
    Remembered(RunEffect, Found),
    /// A stop was requested before it could be begun.
    Stopped(RunEffect),
}

pub(super) enum Found {
    Item(Box<ItemResult>),
    Vote(Box<VoterResult>),
}

/// Finds out whether something has to be done at all.
pub(super) struct ResultFinder {
    pub(super) parent: Parent,
    pub(super) fresh: bool,
    pub(super) dir: PathBuf,
}

impl ResultFinder {
    /// Waits for a place and for work under way at the same key, and looks whether that has settled it.
    pub(super) async fn seek<T: Sound + Reusable>(
        self,
        effect: RunEffect,
        job: AgentJob,
        begun: bool,
    ) -> Result<Sought, Error> {
        let AgentJob { agent, spec, prompt, key } = job;
        let places = Arc::clone(&self.parent.session.places);
        let mut stop = self.parent.stop.clone();
        // A task that waits for a place or for equal work has begun nothing: a stop ends it at once.
        let begun_alone = async {
            let place = places.acquire_owned().await.map_err(|_| Error::EffectBroke(agent.clone()))?;
            let flight = self.parent.config.journal.single_flight(&key).await?;
            Ok::<_, Error>((place, flight))
        };
        let (place, flight) = tokio::select! {
            begun = begun_alone => begun?,
            _ = stop.above(StopLevel::Run) => return Ok(Sought::Stopped(effect)),
        };
        // An agent that has begun is gone on with: what it has done so far is paid for.
        let found =
            if begun { None } else { self.look_up::<T>(std::slice::from_ref(&key)).await?.remove(&key) };
        if let Some(result) = found {
            flight.land().await?;
            return Ok(Sought::Remembered(effect, result.found()));
        }
        Ok(Sought::Free(Box::new(Ticket { effect, agent, spec, prompt, key, flight, place })))
    }

    /// What is remembered under these keys, looked up in one query.
    pub(super) async fn look_up<T: Sound + Reusable>(
        &self,
        keys: &[String],
    ) -> Result<HashMap<String, T>, Error> {
        let mut found = HashMap::new();
        if self.fresh {
            return Ok(found);
        }
        for (key, (text, at)) in self.parent.config.journal.results_at(keys).await? {
            let Ok(Remembered { session, result }) = serde_json::from_str::<Remembered<T>>(&text) else {
                continue;
            };
            if result.is_sound() && result.still_stands(&self.dir).await {
                found.insert(key, result.reused(Reused { session, at }));
            }
        }
        Ok(found)
    }
}

/// Whether these changes are still there.
pub(crate) async fn still_stands(changes: &BTreeMap<String, Option<String>>, dir: &Path) -> bool {
    let files: Vec<String> = changes.keys().cloned().collect();
    files.is_empty() || digests(dir, &files).await == *changes
}

/// A result that can stand for an equal one.
pub(super) trait Reusable: Send + 'static {
    /// Whether what it did to the directory is still there.
    fn still_stands(&self, dir: &Path) -> impl Future<Output = bool> + Send;
    fn reused(self, from: Reused) -> Self;
    fn found(self) -> Found;
}

impl Reusable for ItemResult {
    async fn still_stands(&self, dir: &Path) -> bool {
        still_stands(&self.changes, dir).await
    }

    fn reused(mut self, from: Reused) -> Self {
        self.reused = Some(from);
        self
    }

    fn found(self) -> Found {
        Found::Item(Box::new(self))
    }
}

impl Reusable for VoterResult {
    async fn still_stands(&self, _dir: &Path) -> bool {
        true
    }

    fn reused(mut self, from: Reused) -> Self {
        self.reused = Some(from);
        self
    }

    fn found(self) -> Found {
        Found::Vote(Box::new(self))
    }
}
