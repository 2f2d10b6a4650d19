//! What this process knows of a session's team: the roster and the board as of the last look, the members at
//! work here, and whether everything has come to rest. A cache that wakes members; the truth is the
//! journal's.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_journal::Journal;
use convoke_kernel::{Board, Roster, SessionId};
use tokio::sync::watch;

use super::shared;
use crate::error::Error;

/// How far roster and board have come: the counts of both.
pub(crate) type Version = (u64, u64);

/// A session's team in this process.
pub(crate) struct TeamCache {
    journal: Journal,
    session: SessionId,
    inner: Mutex<Inner>,
    waker: watch::Sender<u64>,
    /// Held by the member that claims: members of one process do not run after the same task.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Inner {
    roster: Arc<Roster>,
    board: Arc<Board>,
    /// The members that have an exchange open here.
    working: BTreeSet<String>,
    /// Whether the lead reads no letters any more.
    deaf: bool,
    /// The members that wait here for a person's answer.
    parked: BTreeSet<String>,
    /// The version at which nothing was left to do.
    quiet: Option<Version>,
    /// The states as they were read last, so that the same text is not read twice.
    texts: [String; 2],
}

impl TeamCache {
    pub(crate) async fn open(journal: Journal, session: &SessionId) -> Result<Self, Error> {
        let (waker, _) = watch::channel(0);
        let team_cache = Self {
            journal,
            session: session.clone(),
            inner: Mutex::default(),
            waker,
            turn: Default::default(),
        };
        team_cache.reload().await?;
        Ok(team_cache)
    }

    /// Looks what others have made of the team.
    pub(crate) async fn reload(&self) -> Result<(), Error> {
        let roster = self.journal.shared(&shared::roster_stream(&self.session)).await?;
        let board = self.journal.shared(&shared::board_stream(&self.session)).await?;
        self.adopt(roster.as_deref(), board.as_deref())
    }

    /// Takes over the states of roster and board that are newer than what is known here.
    pub(crate) fn adopt(&self, roster: Option<&str>, board: Option<&str>) -> Result<(), Error> {
        let is_new = |which: usize, state: &&str| self.lock().texts[which] != *state;
        let mut moved = false;
        if let Some(state) = roster.filter(|state| is_new(0, state)) {
            let roster: Roster = serde_json::from_str(state)?;
            let mut inner = self.lock();
            if roster.count() > inner.roster.count() {
                inner.roster = Arc::new(roster);
                state.clone_into(&mut inner.texts[0]);
                moved = true;
            }
        }
        if let Some(state) = board.filter(|state| is_new(1, state)) {
            let board: Board = serde_json::from_str(state)?;
            let mut inner = self.lock();
            if board.count() > inner.board.count() {
                inner.board = Arc::new(board);
                state.clone_into(&mut inner.texts[1]);
                moved = true;
            }
        }
        if moved {
            self.wake();
        }
        Ok(())
    }

    /// The roster and the board as of the last look.
    pub(crate) fn team(&self) -> (Arc<Roster>, Arc<Board>) {
        let inner = self.lock();
        (Arc::clone(&inner.roster), Arc::clone(&inner.board))
    }

    /// Whether anything of a team is there at all: a teammate, a task, or a letter.
    pub(crate) fn is_there(&self) -> bool {
        self.lock().version() != (0, 0)
    }

    /// Says whether a member has an exchange open here.
    pub(crate) fn set_working(&self, name: &str, works: bool) {
        self.change(|inner| put(&mut inner.working, name, works));
    }

    /// Says whether a member waits for a person's answer here.
    pub(crate) fn set_parked(&self, name: &str, waits: bool) {
        self.change(|inner| put(&mut inner.parked, name, waits));
    }

    /// Says whether the lead has failed, and reads no letters before it is taken up again.
    pub(crate) fn set_deaf(&self, deaf: bool) {
        self.change(|inner| std::mem::replace(&mut inner.deaf, deaf) != deaf);
    }

    pub(crate) fn is_deaf(&self) -> bool {
        self.lock().deaf
    }

    pub(crate) fn is_parked(&self, name: &str) -> bool {
        self.lock().parked.contains(name)
    }

    pub(crate) fn anybody_works(&self) -> bool {
        !self.lock().working.is_empty()
    }

    /// Says that nothing was left to do at this version, or that something is.
    pub(crate) fn set_quiet(&self, quiet: Option<Version>) {
        self.change(|inner| std::mem::replace(&mut inner.quiet, quiet) != quiet);
    }

    /// Changes what is known here, and rings if that changed anything.
    fn change(&self, change: impl FnOnce(&mut Inner) -> bool) {
        let changed = change(&mut self.lock());
        if changed {
            self.wake();
        }
    }

    /// Whether nothing is left to do, as far as is known here: a change since that was found undoes it.
    pub(crate) fn is_quiet(&self) -> bool {
        let inner = self.lock();
        inner.quiet == Some(inner.version())
    }

    pub(crate) fn version(&self) -> Version {
        self.lock().version()
    }

    /// Hears when any of this changes.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.waker.subscribe()
    }

    pub(crate) fn wake(&self) {
        self.waker.send_modify(|woken| *woken += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn version(&self) -> Version {
        (self.roster.count(), self.board.count())
    }
}

/// Puts a name into a set or takes it out; says whether that changed it.
fn put(names: &mut BTreeSet<String>, name: &str, there: bool) -> bool {
    if there { names.insert(name.to_owned()) } else { names.remove(name) }
}
