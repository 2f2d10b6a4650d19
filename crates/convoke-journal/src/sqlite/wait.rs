//! A wait of the committer for other processes: for whom, since when, and whether that one is provably stopped. It is
//! told to listeners, because a library prints nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::locks::{Standstill, Waiting};

/// How long another process is waited for before it is asked whether it is stopped. Short stops are not worth a copy.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How long a wait is before it is told, and how often then.
const TELL: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_secs(1);

/// Where waits are told.
#[derive(Clone)]
pub(crate) struct Waits(watch::Sender<Option<Waiting>>);

impl Default for Waits {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Waits {
    pub(crate) fn hear(&self) -> watch::Receiver<Option<Waiting>> {
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
    seen: HashMap<u32, Standstill>,
}

impl Wait<'_> {
    pub(super) fn lasted(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether a process that is in the way is stopped, and was at the last look too without having run in between.
    pub(super) fn is_stopped(&mut self, pid: u32) -> bool {
        self.standstill(pid).is_some()
    }

    pub(super) fn standstill(&mut self, pid: u32) -> Option<Standstill> {
        if self.lasted() < PATIENCE {
            return None;
        }
        let Some(now) = Standstill::of(pid) else {
            self.seen.remove(&pid);
            return None;
        };
        let before = self.seen.insert(pid, now.clone());
        (before.as_ref() == Some(&now)).then_some(now)
    }

    /// Tells who is in the way, if that has lasted long enough to be worth telling.
    pub(super) fn tell(&mut self, pid: Option<u32>) {
        if self.lasted() >= TELL && self.told.is_none_or(|told| told.elapsed() >= AGAIN) {
            self.told = Some(Instant::now());
            self.waits.0.send_replace(Some(Waiting::on(pid, self.lasted())));
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
