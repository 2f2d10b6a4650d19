//! Finds the session that a person means by the id of a session, of one of its agents or of one of its
//! workflows. It changes nothing.

use convoke_journal::{Filter, Journal, StreamId};
use convoke_kernel::{AgentId, RunId, SessionId};

use super::no_journal;
use crate::catalog::{self, Catalog, ListedSession};
use crate::failure::Failure;
use crate::settings::Settings;

/// A session that was named.
pub(super) struct Target {
    pub(super) journal: Journal,
    catalog: Catalog,
    pub(super) session: SessionId,
    /// The workflow program by which it was named, if it was.
    pub(super) workflow: Option<RunId>,
}

impl Target {
    pub(super) async fn find(settings: &Settings, given: &str) -> Result<Self, Failure> {
        let Some(journal) = catalog::open_existing(settings).await? else {
            return Err(no_journal(settings, given));
        };
        let catalog = Catalog::load(settings, Some(&journal)).await?;
        let listed = catalog.find(given)?;
        let by_workflow = given.starts_with(RunId::PREFIX);
        let workflow = by_workflow.then(|| listed.program(given).ok()?.run.parse().ok()).flatten();
        let mut target = Self { journal, session: listed.session.clone(), workflow, catalog };
        target.look_for_questions().await;
        Ok(target)
    }

    /// Looks again where it stands.
    pub(super) async fn look(&mut self, settings: &Settings) -> Result<(), Failure> {
        self.catalog = Catalog::load(settings, Some(&self.journal)).await?;
        self.look_for_questions().await;
        Ok(())
    }

    async fn look_for_questions(&mut self) {
        let session = self.session.clone();
        self.catalog.look_for_questions(&self.journal, |listed| listed.session == session).await;
    }

    pub(super) fn listed(&self) -> Result<&ListedSession, Failure> {
        self.catalog.find(self.session.as_str())
    }

    /// Whether a live process drives it.
    pub(super) async fn is_driven(&self, lead: &AgentId) -> Result<bool, Failure> {
        let filter = Filter { prefix: Some(StreamId::from(lead).as_str().to_owned()), limit: Some(1) };
        Ok(self.journal.list(&filter).await?.iter().any(|listing| listing.owner.is_some()))
    }
}
