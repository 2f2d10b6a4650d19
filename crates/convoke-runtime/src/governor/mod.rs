//! When a model request may be sent: one governor per API key and process. It admits; it sends nothing, repeats nothing
//! and counts no attempts.
//!
//! The rules are in `pace.rs`, which is pure. Here they meet the clock and those who wait: whoever stands first in
//! the queue also keeps the time for all, so that there is no task in the background and a thousand waiting agents
//! have one timer.

mod bucket;
mod pace;
mod stagger;
#[cfg(test)]
mod storm_tests;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_claude::RateLimits;
use tokio::sync::Notify;

use crate::clock::Clock;
use pace::{Pace, Ticket};

/// Decides when model requests may be sent. Its clones are the same governor.
///
/// * At most `max_concurrent` are under way at once. Above ten the window starts at ten and grows by one a reply.
/// * After a 429 nobody is admitted before its `retry-after` (without one: 1 s, doubling up to 60 s) and the window
///   shrinks; it grows again with replies. How many at once a server takes without saying so is learned from its
///   refusals and tried again seldom. A 529 has a pause of its own.
/// * Requests are paced by the limit a minute that the headers tell.
/// * The lead goes before all who wait, and may go one beyond the window. Everybody else goes in order of asking.
/// * Siblings with an equal prefix wait until the first one's reply begins, at most 5 s.
#[derive(Clone)]
pub struct Governor {
    shared: Arc<Shared>,
}

/// What somebody wants to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Whether it goes before all others: the lead's.
    pub first: bool,
    /// What names the beginning that it shares with its siblings, if that is long enough to be cached.
    pub prefix: Option<String>,
}

/// How a request that was admitted came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The reply came.
    Replied,
    /// 429: too much was asked.
    Limited {
        /// How long the server wants to be left alone, if it says.
        retry_after_ms: Option<u64>,
    },
    /// 529: the server has too much to do.
    Overloaded {
        /// How long the server wants to be left alone, if it says.
        retry_after_ms: Option<u64>,
    },
    /// Anything that says nothing about how much the server can take.
    OtherFailure,
}

/// Where a governor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GovernorStats {
    /// Requests admitted so far.
    pub admitted: u64,
    /// How many of them got a 429.
    pub limited: u64,
    /// How many of them got a 529.
    pub overloaded: u64,
    /// How many may be under way at once now.
    pub window: usize,
    /// How many are under way.
    pub in_flight: usize,
    /// How many wait.
    pub waiting: usize,
    /// Until when nobody is admitted, in UTC milliseconds, if there is a pause.
    pub paused_until: Option<u64>,
    /// When the first of those who wait looks again by itself, in UTC milliseconds; without it, it waits for others.
    pub looks_again_at: Option<u64>,
}

/// The right to send one request. Dropping it gives its slot back.
#[derive(Debug)]
#[must_use = "the slot is given back as soon as the permit is dropped"]
pub struct Permit {
    governor: Governor,
    ticket: Ticket,
    fate: Option<Fate>,
}

struct Shared {
    clock: Clock,
    inner: Mutex<Inner>,
}

struct Inner {
    pace: Pace,
    waiters: HashMap<Ticket, Arc<Notify>>,
    /// Who keeps the time, and until when he sleeps.
    keeper: Option<Ticket>,
    wake_at: Option<u64>,
}

impl Governor {
    /// A governor for one API key.
    pub fn new(clock: Clock, max_concurrent: usize) -> Self {
        let pace = Pace::new(max_concurrent);
        let inner = Inner { pace, waiters: HashMap::new(), keeper: None, wake_at: None };
        Self { shared: Arc::new(Shared { clock, inner: Mutex::new(inner) }) }
    }

    /// Waits until a request may be sent. Dropping the future takes the ask back without a trace.
    pub async fn admit(&self, ask: Ask) -> Permit {
        let notify = Arc::new(Notify::new());
        let ticket = self.change(|inner, _| {
            let ticket = inner.pace.ask(ask);
            inner.waiters.insert(ticket, Arc::clone(&notify));
            ticket
        });
        let queued = Queued { governor: self, ticket: Some(ticket) };
        loop {
            let (admitted, wake_at) = self.look(|inner, _| {
                let keeps_time = inner.keeper == Some(ticket);
                (inner.pace.is_admitted(ticket), inner.wake_at.filter(|_| keeps_time))
            });
            if admitted {
                return queued.into_permit(ticket);
            }
            match wake_at {
                None => notify.notified().await,
                Some(until) => {
                    tokio::select! {
                        biased;
                        () = notify.notified() => {}
                        () = self.shared.clock.sleep_until(until) => self.change(|_, _| ()),
                    }
                }
            }
        }
    }

    /// The most at once that a person allows.
    pub fn max_concurrent(&self) -> usize {
        self.look(|inner, _| inner.pace.most())
    }

    /// Where it stands now.
    pub fn stats(&self) -> GovernorStats {
        self.look(|inner, now| GovernorStats { looks_again_at: inner.wake_at, ..inner.pace.stats(now) })
    }

    fn look<T>(&self, read: impl FnOnce(&mut Inner, u64) -> T) -> T {
        let now = self.shared.clock.now();
        read(&mut self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner), now)
    }

    /// Changes something, and then lets everybody go who may go after it.
    fn change<T>(&self, change: impl FnOnce(&mut Inner, u64) -> T) -> T {
        self.look(|inner, now| {
            let result = change(inner, now);
            inner.settle(now);
            result
        })
    }
}

impl std::fmt::Debug for Governor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Governor").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Inner {
    fn settle(&mut self, now: u64) {
        let step = self.pace.step(now);
        for ticket in step.admitted {
            if let Some(notify) = self.waiters.remove(&ticket) {
                notify.notify_one();
            }
        }
        let keeper = self.pace.front();
        if (self.keeper, self.wake_at) != (keeper, step.wake_at) {
            (self.keeper, self.wake_at) = (keeper, step.wake_at);
            if let Some(notify) = keeper.and_then(|ticket| self.waiters.get(&ticket)) {
                notify.notify_one();
            }
        }
    }
}

impl Permit {
    /// The response's headers are there, whatever its status.
    pub fn limits(&self, limits: &RateLimits) {
        self.governor.change(|inner, now| inner.pace.limits(self.ticket, limits, now));
    }

    /// The reply's stream began: siblings with an equal prefix may go.
    pub fn began(&self) {
        self.governor.change(|inner, now| inner.pace.began(self.ticket, now));
    }

    /// The request is over, and how it came out.
    pub fn done(mut self, fate: Fate) {
        self.fate = Some(fate);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.governor.change(|inner, now| inner.pace.end(self.ticket, self.fate, now));
    }
}

/// An ask that has not become a permit yet.
struct Queued<'a> {
    governor: &'a Governor,
    ticket: Option<Ticket>,
}

impl Queued<'_> {
    fn into_permit(mut self, ticket: Ticket) -> Permit {
        self.ticket = None;
        Permit { governor: self.governor.clone(), ticket, fate: None }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        self.governor.change(|inner, _| {
            inner.waiters.remove(&ticket);
            inner.pace.withdraw(ticket);
        });
    }
}
