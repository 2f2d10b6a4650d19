//! Time as an argument: the machine's, or one that a test holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// Where the runtime gets its time from.
#[derive(Debug, Clone)]
pub struct Clock(Kind);

#[derive(Debug, Clone)]
enum Kind {
    System,
    Jumping(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// A clock that stands still until somebody waits, and then jumps to the end of the wait. Deadlines of real input
    /// and output do not go by it.
    pub fn jumping(start: u64) -> Self {
        Self(Kind::Jumping(Arc::new(AtomicU64::new(start))))
    }

    /// Milliseconds since 1970, UTC.
    pub fn now(&self) -> u64 {
        match &self.0 {
            Kind::System => system_now(),
            Kind::Jumping(at) => at.load(Ordering::SeqCst),
        }
    }

    /// Waits until this time.
    pub async fn sleep_until(&self, until: u64) {
        match &self.0 {
            Kind::System => loop {
                // Asked again after each sleep, because the machine's clock may be set while we sleep.
                let left = until.saturating_sub(system_now());
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left.min(60_000))).await;
            },
            Kind::Jumping(at) => {
                at.fetch_max(until, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
fn system_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
