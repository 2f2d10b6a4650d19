//! What stands between a command that is about to write and the tree: it claims the place in the record of
//! changes, and the command waits for that. Where it cannot be claimed the command is ended: nothing is
//! written of which the state before is not kept.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_journal::{Journal, Lease};
use convoke_sandbox::{WriteGate, WritePath};
use convoke_trees::{Actor, Begun, Error, Place};
use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// Claims what the commands of one agent write.
pub(crate) struct Gate {
    session: Arc<Session>,
    journal: Journal,
    lease: Lease,
    agent: String,
    token: String,
    under_way: Mutex<Option<UnderWay>>,
}

/// The command that is under way.
#[derive(Clone)]
struct UnderWay {
    begun: Begun,
    /// Ends it.
    end: CancellationToken,
    /// Why it was ended from here.
    why: Option<String>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Gate {
    pub(crate) fn new(
        session: Arc<Session>,
        journal: Journal,
        lease: Lease,
        agent: &str,
        token: &str,
    ) -> Arc<Self> {
        let (agent, token) = (agent.to_owned(), token.to_owned());
        Arc::new(Self { session, journal, lease, agent, token, under_way: Mutex::default() })
    }

    /// A command begins, which this ends.
    pub(crate) fn begin(&self, end: CancellationToken) {
        let begun = self.session.keep.as_ref().map(|keep| keep.begun());
        *self.under_way() = begun.map(|begun| UnderWay { begun, end, why: None });
    }

    /// It has ended. Says why, if that was done from here.
    pub(crate) fn end(&self) -> Option<String> {
        self.under_way().take()?.why
    }

    fn under_way(&self) -> MutexGuard<'_, Option<UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, places: &[Place]) {
        let Some(keep) = &self.session.keep else { return };
        let begun = self.under_way().as_ref().map(|command| command.begun.clone());
        let actor = Actor { agent: &self.agent, token: &self.token };
        // A store that does not answer proves nothing; the append of the result will say it.
        let is_fenced = async || matches!(self.journal.holds(&self.lease).await, Ok(false));
        let asked = if !keep.has_window(&self.agent) && is_fenced().await {
            Err(Error::Fenced)
        } else {
            keep.before_write(actor, places, begun.as_ref()).await.map(drop)
        };
        let Err(error) = asked else { return };
        let is_fenced = matches!(error, Error::Fenced);
        let ends = match self.under_way().as_mut() {
            Some(command) => {
                command.why.get_or_insert_with(|| error.to_string());
                command.end.cancel();
                true
            }
            // What was left running goes on unless its agent is another process's: its changes count as made
            // by others then, which loses nothing. To hold it still would say nothing.
            None => is_fenced,
        };
        if ends {
            // No leave is given; what asks is killed with its command, or with its shell.
            std::future::pending::<()>().await;
        }
    }
}

/// The gate as a shell has it.
#[derive(Debug)]
pub(crate) struct Asked(pub(crate) Arc<Gate>);

impl WriteGate for Asked {
    fn before_write(&self, paths: Vec<WritePath>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let gate = Arc::clone(&self.0);
        let places: Vec<Place> =
            paths.into_iter().map(|WritePath { path, whole }| Place { path, whole }).collect();
        Box::pin(async move { gate.ask(&places).await })
    }
}
