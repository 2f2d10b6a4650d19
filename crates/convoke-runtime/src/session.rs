//! What all agents of one session share in this process: the ledger, the places to work, and the watcher.

use std::sync::Arc;

use convoke_journal::Journal;
use convoke_kernel::{AgentId, AgentSpec, SessionId};
use tokio::sync::{Mutex, Semaphore};

use crate::change_recorder::ChangeRecorder;
use crate::error::Error;
use crate::fence::Leases;
use crate::lessons::Lessons;
use crate::notice::{Notice, Watcher};
use crate::runtime::Config;
use crate::session_ledger::{Entry, SessionLedger};
use crate::team::{self, TeamCache};
use crate::wakers::Wakers;
use crate::workspace::Looks;

/// Commands of programs that run at once.
const COMMANDS_AT_ONCE: usize = 4;

/// What a session is opened with, beside what its lead is made of.
#[derive(Default)]
pub(crate) struct Opening {
    pub(crate) watcher: Option<Watcher>,
    pub(crate) wakers: Wakers,
}

/// A session that this process drives.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    process: String,
    pub(crate) ledger: SessionLedger,
    /// Places for workers and verifiers.
    pub(crate) places: Arc<Semaphore>,
    /// Turns for programs' commands.
    pub(crate) commands: Semaphore,
    /// The directory that its agents share.
    pub(crate) dir: String,
    /// The right to write in the directory where no record is kept, so that nothing can be claimed in it.
    pub(crate) unrecorded: Mutex<()>,
    /// Looks at the directory, which tell what has changed in it.
    pub(crate) looks: Looks,
    /// What was found out about the server.
    pub(crate) lessons: Lessons,
    /// What is changed there, so that it can be shown and taken back.
    pub(crate) keep: Option<ChangeRecorder>,
    pub(crate) watcher: Option<Watcher>,
    /// Wakes the agents that are driven here.
    pub(crate) wakers: Wakers,
    /// Its lead.
    pub(crate) lead: AgentId,
    /// Its team, if it can have one.
    pub(crate) team_cache: Option<TeamCache>,
    journal: Journal,
}

impl Session {
    pub(crate) async fn open(
        config: &Config,
        lead: &AgentId,
        spec: &AgentSpec,
        opening: Option<Opening>,
    ) -> Result<Self, Error> {
        let Opening { watcher, wakers } = opening.unwrap_or_default();
        let ledger = SessionLedger::open(config.journal.clone(), &spec.session, config.clock.clone()).await?;
        let process = config.journal.options().process.id.clone();
        let places = Arc::new(Semaphore::new(config.agents_at_once.max(1)));
        let fence = Arc::new(Leases::new(config.journal.clone(), watcher.clone()));
        let keep = config
            .trees
            .as_ref()
            .map(|trees| ChangeRecorder::new(trees.clone(), &spec.dir, lead.as_str(), fence));
        let id = spec.session.clone();
        let dir = spec.dir.clone();
        let commands = Semaphore::new(COMMANDS_AT_ONCE);
        let team_cache = match &spec.team {
            Some(_) => Some(TeamCache::open(config.journal.clone(), &id).await?),
            None => None,
        };
        let unrecorded = Mutex::new(());
        let lead = lead.clone();
        let journal = config.journal.clone();
        let looks = Looks::default();
        let lessons = Lessons::default();
        Ok(Self {
            id,
            process,
            ledger,
            places,
            commands,
            dir,
            unrecorded,
            looks,
            lessons,
            keep,
            watcher,
            wakers,
            lead,
            team_cache,
            journal,
        })
    }

    /// Starts the session clock. Requests the previous holder had in flight count as lost.
    pub(crate) async fn hold(&self) -> Result<(), Error> {
        let fates = self.ledger.fates(None).await?;
        self.ledger.enter(vec![Entry::Hold { fates }]).await
    }

    /// Stops the session clock. Failing to record that costs minutes, nothing else.
    pub(crate) async fn leave(&self) {
        let _ = self.ledger.enter(vec![Entry::Leave { process: self.process.clone() }]).await;
        self.tell_ledger();
    }

    /// What is left of its team's work.
    pub(crate) async fn left(&self) -> Vec<String> {
        let Some(team_cache) = &self.team_cache else { return Vec::new() };
        // What is known here is old by a moment at most.
        let _ = team_cache.reload().await;
        let (roster, board) = team_cache.team();
        let open = team::open(&self.journal, &roster, &board).await;
        open.into_iter().chain(team::left(&roster, &board)).collect()
    }

    /// Whether anything of a team is there.
    pub(crate) fn has_team(&self) -> bool {
        self.team_cache.as_ref().is_some_and(TeamCache::is_there)
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
            self.ledger.adopt(state)?;
            self.tell_ledger();
        }
        Ok(())
    }

    fn tell_ledger(&self) {
        if self.watcher.is_some() {
            let session = self.id.clone();
            let ledger = Box::new(self.ledger.ledger());
            self.tell(Notice::Ledger { session, ledger });
        }
    }
}
