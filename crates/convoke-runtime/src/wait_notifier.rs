//! Tells a watcher that all requests to the model wait for a time, and for how long. What one
//! agent waits for is in its own events.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::notice::{Notice, Watcher};
use crate::runtime::Config;

/// A wait that is shorter than this is over before a person has read of it.
const WORTH_TELLING: u64 = 1_000;

/// Tells until it is dropped.
pub(crate) struct WaitNotifier(JoinHandle<()>);

impl WaitNotifier {
    pub(crate) fn start(config: &Arc<Config>, watcher: Watcher) -> Self {
        let mut holds = config.governor.holds();
        let clock = config.clock.clone();
        Self(tokio::spawn(async move {
            let mut told = None;
            loop {
                let worth = |until: u64| until >= clock.now().saturating_add(WORTH_TELLING);
                let hold = holds.borrow_and_update().filter(|hold| worth(hold.until));
                if hold != told {
                    told = hold;
                    if watcher.send(Notice::Held { hold }).is_err() {
                        return;
                    }
                }
                if holds.changed().await.is_err() {
                    return;
                }
            }
        }))
    }
}

impl Drop for WaitNotifier {
    fn drop(&mut self) {
        self.0.abort();
    }
}
