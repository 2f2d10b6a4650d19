//! Which process may go on writing a run's record: the holder of the lease that its token names. A process
//! that was stopped for longer than its lease holds is fenced when another process has its agent, and the
//! process that waits for something of it sees to that.

use convoke_journal::{Filter, Journal, Lease, StreamId};
use convoke_kernel::AgentId;
use convoke_trees::{Fence, FenceAnswer, Holder};

use crate::notice::{Notice, Watcher};

/// Asks the journal's leases.
pub(crate) struct Leases {
    journal: Journal,
    watcher: Option<Watcher>,
}

impl std::fmt::Debug for Leases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Leases")
    }
}

impl Leases {
    pub(crate) fn new(journal: Journal, watcher: Option<Watcher>) -> Self {
        Self { journal, watcher }
    }
}

/// What a process that holds a lease is known by in the record of a run.
pub(crate) fn token(journal: &Journal, lease: &Lease) -> String {
    let process = &journal.options().process;
    format!("{} {} {} {}", process.id, lease.stream(), lease.epoch(), process.pid)
}

impl Fence for Leases {
    fn is_fenced(&self, token: &str) -> FenceAnswer {
        let journal = self.journal.clone();
        let token = token.to_owned();
        Box::pin(async move { is_fenced(&journal, &token).await })
    }

    fn waits_for(&self, holder: &Holder) {
        if let Some(watcher) = &self.watcher {
            let (agent, pid) = match holder.token.split(' ').collect::<Vec<_>>().as_slice() {
                [_, stream, _, pid] => (stream.parse::<AgentId>().ok(), pid.parse().ok()),
                _ => (None, None),
            };
            // Of agents of one process it is seen in them what each of them does.
            if holder.token.split(' ').next() == Some(self.journal.options().process.id.as_str()) {
                return;
            }
            // A watcher that is gone is no reason to stop working.
            let _ = watcher.send(Notice::Waiting { agent, pid });
        }
    }
}

/// Whether the lease of this token has ended. A silent process could wake and go on as long as no other
/// process has its agent, so its lease is taken away here first.
async fn is_fenced(journal: &Journal, token: &str) -> bool {
    let [process, stream, ..] = token.split(' ').collect::<Vec<_>>()[..] else { return false };
    if process == journal.options().process.id {
        return false;
    }
    let filter = Filter { prefix: Some(stream.to_owned()), limit: Some(1) };
    // A store that does not answer proves nothing.
    let Ok(rows) = journal.list(&filter).await else { return false };
    match rows.into_iter().next().and_then(|row| row.owner) {
        Some(owner) => owner.process.id != process,
        None => match stream.parse::<AgentId>() {
            Ok(agent) => match journal.own(&StreamId::from(&agent)).await {
                Ok(lease) => {
                    // Released at once: the host of this agent takes it up.
                    let _ = journal.release(&lease).await;
                    true
                }
                Err(_) => false,
            },
            Err(_) => false,
        },
    }
}
