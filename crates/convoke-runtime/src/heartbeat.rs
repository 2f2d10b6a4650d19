//! The sign of life of this process, on which all its leases hang.

use std::sync::Arc;
use std::time::Duration;

use convoke_journal::Lease;
use tokio::time::MissedTickBehavior;

use crate::error::Error;
use crate::runtime::Config;

/// Well below the lease's lifetime, so that a few lost heartbeats do no harm.
const HEARTBEAT: Duration = Duration::from_secs(4);

/// Keeps saying that this process lives, apart from the driver, so that a slow store holds nothing up. Ends
/// when another process has the lease, which a process that was suspended for long only learns by asking.
pub(crate) async fn keep_the_lease(config: Arc<Config>, lease: Lease) -> Error {
    let mut beats = tokio::time::interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats.reset();
    loop {
        beats.tick().await;
        // A store that does not answer is asked again; if the lease is lost meanwhile, the next append says
        // so.
        let _ = config.journal.heartbeat().await;
        if let Ok(false) = config.journal.holds(&lease).await {
            return Error::Journal(convoke_journal::Error::LostLease { stream: lease.stream().clone() });
        }
    }
}

/// The same for a process that leads nothing: it runs until its caller ends it.
pub(crate) async fn keep_alive(config: Arc<Config>) {
    let mut beats = tokio::time::interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let _ = config.journal.heartbeat().await;
    }
}

/// Waits for a moment, or for ever if there is none.
pub(crate) async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
