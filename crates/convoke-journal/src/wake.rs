//! Tells waiters in this process that a stream has something new. A hint only: what other processes write is
//! found by looking again after a while, so nothing depends on a wake arriving.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::{Error, StreamId};

/// How long a waiter sleeps at first, and at most, before it looks for what other processes wrote.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// The waiters of this process, by stream.
#[derive(Default)]
pub(crate) struct Wakers(Mutex<HashMap<StreamId, Weak<Notify>>>);

impl Wakers {
    /// Looks again and again, after every wake of the stream and every so often, until `look` finds
    /// something.
    pub(crate) async fn until<T, F>(&self, stream: &StreamId, look: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Option<T>, Error>>,
    {
        let notify = self.waiter(stream);
        let mut pause = FIRST_LOOK;
        loop {
            // Enlist before looking: what is committed after the look then wakes us.
            let mut woken = std::pin::pin!(notify.notified());
            woken.as_mut().enable();
            if let Some(found) = look().await? {
                return Ok(found);
            }
            // The answer is the same whether we were woken or it is simply time: look again.
            let _ = tokio::time::timeout(pause, woken).await;
            pause = (pause + pause / 4).min(LAST_LOOK);
        }
    }

    /// Wakes every task that waits for this stream.
    pub(crate) fn wake(&self, stream: &StreamId) {
        let waiter = self.lock().get(stream).and_then(Weak::upgrade);
        if let Some(notify) = waiter {
            notify.notify_waiters();
        }
    }

    fn waiter(&self, stream: &StreamId) -> Arc<Notify> {
        let mut waiters = self.lock();
        if let Some(notify) = waiters.get(stream).and_then(Weak::upgrade) {
            return notify;
        }
        waiters.retain(|_, waiter| waiter.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        waiters.insert(stream.clone(), Arc::downgrade(&notify));
        notify
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, Weak<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
