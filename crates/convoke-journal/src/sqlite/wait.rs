//! A wait of the committer for another process: for which one, since when, and whether that one is provably
//! stopped. Listeners are told of it, because a library prints nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::locks::{AwaitedProcess, StoppedProcess};

/// How long another process is waited for before it is checked for being
/// stopped. Short stops are not worth a copy.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How long a wait is before listeners are told, and how often they are told then.
const TELL: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_secs(1);

/// Where listeners learn of waits.
#[derive(Clone)]
pub(crate) struct Waits(watch::Sender<Option<AwaitedProcess>>);

impl Default for Waits {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Waits {
    pub(crate) fn hear(&self) -> watch::Receiver<Option<AwaitedProcess>> {
        self.0.subscribe()
    }

    pub(super) fn begin(&self) -> Wait<'_> {
        Wait { waits: self, began: Instant::now(), told: None, seen: HashMap::new() }
    }
}

/// One wait. It is over when this is dropped.
pub(super) struct Wait<'a> {
    waits: &'a Waits,
    began: Instant,
    told: Option<Instant>,
    seen: HashMap<u32, StoppedProcess>,
}

impl Wait<'_> {
    pub(super) fn lasted(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether a process that is in the way is stopped, and was at the last look too without having run in
    /// between.
    pub(super) fn is_stopped(&mut self, pid: u32) -> bool {
        self.standstill(pid).is_some()
    }

    pub(super) fn standstill(&mut self, pid: u32) -> Option<StoppedProcess> {
        if self.lasted() < PATIENCE {
            return None;
        }
        let Some(now) = StoppedProcess::of(pid) else {
            self.seen.remove(&pid);
            return None;
        };
        let before = self.seen.insert(pid, now.clone());
        (before.as_ref() == Some(&now)).then_some(now)
    }

    /// Tells listeners which process is in the way, if the wait has lasted long enough to be worth it.
    pub(super) fn tell(&mut self, pid: Option<u32>) {
        if self.lasted() >= TELL && self.told.is_none_or(|told| told.elapsed() >= AGAIN) {
            self.told = Some(Instant::now());
            self.waits.0.send_replace(Some(AwaitedProcess::on(pid, self.lasted())));
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if self.told.is_some() {
            self.waits.0.send_replace(None);
        }
    }
}
