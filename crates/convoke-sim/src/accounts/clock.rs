//! The simulator's own time. Cache entries and rate limits go by it; delays and drips of replies take real
//! time, unless the clock is one that can be waited for.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// Where a simulator gets its time from, in UTC milliseconds.
#[derive(Clone, Default)]
pub enum SimClock {
    /// The machine's clock.
    #[default]
    System,
    /// A clock that a test moves.
    Manual(ManualClock),
    /// A clock from outside, such as the one that the client under test goes by.
    Following(Arc<dyn Fn() -> u64 + Send + Sync>),
    /// A clock from outside that can be waited for: delays and drips of replies go by it too.
    Injected(Arc<dyn Time>),
}

/// A clock that is moved from outside.
pub trait Time: Send + Sync {
    /// The time now, in UTC milliseconds.
    fn now(&self) -> u64;

    /// Waits until this time.
    fn sleep_until(&self, until: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl SimClock {
    /// A clock that shows what this function says.
    pub fn following(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::Following(Arc::new(clock))
    }

    /// The time now.
    pub fn now(&self) -> u64 {
        match self {
            Self::System => system_now(),
            Self::Manual(clock) => clock.now(),
            Self::Following(clock) => clock(),
            Self::Injected(clock) => clock.now(),
        }
    }

    /// Lets this much time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        match self {
            Self::System | Self::Manual(_) | Self::Following(_) => tokio::time::sleep(time).await,
            Self::Injected(clock) => {
                let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                clock.sleep_until(clock.now().saturating_add(milliseconds)).await;
            }
        }
    }
}

impl From<ManualClock> for SimClock {
    fn from(clock: ManualClock) -> Self {
        Self::Manual(clock)
    }
}

/// A clock that stands still until it is moved. Its clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(milliseconds: u64) -> Self {
        Self(Arc::new(AtomicU64::new(milliseconds)))
    }

    /// The time it shows.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

#[expect(clippy::disallowed_methods, reason = "a simulator without an injected clock goes by the machine's")]
fn system_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
