//! What all agents of one session share in this process: the purse, the places to work, and whom to tell.

use std::sync::Arc;

use convoke_journal::Journal;
use convoke_kernel::{AgentId, AgentSpec, SessionId};
use tokio::sync::{Mutex, Semaphore};

use crate::bells::Bells;
use crate::error::Error;
use crate::fence::Leases;
use crate::keep::Keep;
use crate::notice::{Notice, Watcher};
use crate::purse::{Entry, Purse};
use crate::runtime::Config;
use crate::team::{self, Crew};
use crate::workspace::Looks;

/// Commands of programs that run at once.
const COMMANDS_AT_ONCE: usize = 4;

/// What a session is opened with, beside what its lead is made of.
#[derive(Default)]
pub(crate) struct Opening {
    pub(crate) watcher: Option<Watcher>,
    pub(crate) bells: Bells,
}

/// A session that this process drives.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    process: String,
    pub(crate) purse: Purse,
    /// Places for workers and verifiers.
    pub(crate) places: Arc<Semaphore>,
    /// Turns for programs' commands.
    pub(crate) commands: Semaphore,
    /// The directory that those who take turns share.
    pub(crate) dir: String,
    /// Who writes in the directory, among those that take turns.
    pub(crate) pen: Mutex<()>,
    /// Looks at the directory, for those who want to know what became of it.
    pub(crate) looks: Looks,
    /// What is changed there, so that it can be shown and taken back.
    pub(crate) keep: Option<Keep>,
    pub(crate) watcher: Option<Watcher>,
    /// By which those that are driven here are woken.
    pub(crate) bells: Bells,
    /// Who leads it.
    pub(crate) lead: AgentId,
    /// Its team, if it can have one.
    pub(crate) crew: Option<Crew>,
    journal: Journal,
}

impl Session {
    pub(crate) async fn open(
        config: &Config,
        lead: &AgentId,
        spec: &AgentSpec,
        opening: Option<Opening>,
    ) -> Result<Self, Error> {
        let Opening { watcher, bells } = opening.unwrap_or_default();
        let purse = Purse::open(config.journal.clone(), &spec.session, config.clock.clone()).await?;
        let process = config.journal.options().process.id.clone();
        let places = Arc::new(Semaphore::new(config.agents_at_once.max(1)));
        let fence = Arc::new(Leases::new(config.journal.clone(), watcher.clone()));
        let keep = config.trees.as_ref().map(|trees| Keep::new(trees.clone(), &spec.dir, lead.as_str(), fence));
        let (id, dir) = (spec.session.clone(), spec.dir.clone());
        let commands = Semaphore::new(COMMANDS_AT_ONCE);
        let crew = match &spec.team {
            Some(_) => Some(Crew::open(config.journal.clone(), &id).await?),
            None => None,
        };
        let (pen, lead) = (Mutex::new(()), lead.clone());
        let journal = config.journal.clone();
        let looks = Looks::default();
        Ok(Self { id, process, purse, places, commands, dir, pen, looks, keep, watcher, bells, lead, crew, journal })
    }

    /// The minutes count from here, and what the last holder had in flight is lost.
    pub(crate) async fn hold(&self) -> Result<(), Error> {
        let fates = self.purse.fates(None).await?;
        self.purse.enter(vec![Entry::Hold { fates }]).await
    }

    /// The minutes stop here. Failing to say so costs minutes, nothing else.
    pub(crate) async fn leave(&self) {
        let _ = self.purse.enter(vec![Entry::Leave { process: self.process.clone() }]).await;
        self.tell_ledger();
    }

    /// What is left of its team's work.
    pub(crate) async fn left(&self) -> Vec<String> {
        let Some(crew) = &self.crew else { return Vec::new() };
        // What is known here is old by a moment at most.
        let _ = crew.reload().await;
        let (roster, board) = crew.team();
        let open = team::open(&self.journal, &roster, &board).await;
        open.into_iter().chain(team::left(&roster, &board)).collect()
    }

    /// Whether anything of a team is there.
    pub(crate) fn has_team(&self) -> bool {
        self.crew.as_ref().is_some_and(Crew::is_there)
    }

    pub(crate) fn tell(&self, notice: Notice) {
        if let Some(watcher) = &self.watcher {
            // A watcher that is gone is no reason to stop working.
            let _ = watcher.send(notice);
        }
    }

    /// Takes over the ledger an append led to, and shows it.
    pub(crate) fn adopt(&self, ledger: Option<&String>) -> Result<(), Error> {
        if let Some(state) = ledger {
            self.purse.adopt(state)?;
            self.tell_ledger();
        }
        Ok(())
    }

    fn tell_ledger(&self) {
        if self.watcher.is_some() {
            let (session, ledger) = (self.id.clone(), Box::new(self.purse.ledger()));
            self.tell(Notice::Ledger { session, ledger });
        }
    }
}
