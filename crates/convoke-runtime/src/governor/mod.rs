//! When a model request may be sent: one governor per API key and process. It admits; it sends nothing,
//! repeats nothing and counts no attempts.
//!
//! The rules are in `pace.rs`, `ramp.rs` and `refusals.rs`, which are pure. Here they meet the clock and the
//! waiting requests: the one that stands first in the queue also keeps the time for all, so that there is no
//! task in the background and a thousand waiting agents have one timer.

mod bucket;
#[cfg(test)]
mod growth_tests;
mod pace;
mod ramp;
mod refusals;
mod stagger;
#[cfg(test)]
mod storm_tests;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_claude::RateLimits;
use tokio::sync::{Notify, watch};

use crate::clock::Clock;
use pace::{Pace, Ticket};

/// Decides when model requests may be sent. Its clones are the same governor.
///
/// * At most `max_concurrent` are under way at once. Above ten the window starts at ten. While it is full and
///   nothing is refused it doubles every seven seconds, in half of that where the headers say that at least
///   half of everything is left, and not at all where they say that less than a fifth of something is; and
///   it grows by one a reply.
/// * A refusal is about one conversation, which waits by itself: the governor lets the others go on. When a
///   whole round of different conversations (as many as the window, at least three) was refused and the
///   server has taken nothing in between, all of them pause: 1 s, doubling up to 8 s, and up to a quarter
///   more by chance; or as long as all of them were told, up to a minute. After a pause as many go as the
///   window lets, at least three.
/// * A server that has taken nothing for four minutes is given up: waiting requests are told so, and so is
///   one that is refused after that. So a lasting overload ends within five minutes.
/// * The window is halved by refusals that are not about one conversation alone (where the headers' limit a
///   minute explains one, it loses a quarter), and grows again with replies and with time, doubling in forty
///   seconds. How many at once a server takes without saying so is learned from its refusals and tried again
///   seldom.
/// * Requests are paced by the limit a minute that the headers tell.
/// * The lead's requests go first, and may go one beyond the window. All others go in order of asking.
/// * Siblings with an equal prefix wait until the first one's reply begins, at most 5 s.
#[derive(Clone)]
pub struct Governor {
    shared: Arc<Shared>,
}

/// A request that is to be sent, as far as the governor has to know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionRequest {
    /// Whether it goes before all others: the lead's.
    pub first: bool,
    /// What names the beginning that it shares with its siblings, if that is long enough to be cached.
    pub prefix: Option<String>,
    /// The conversation it belongs to: what one is told is not what all are told.
    pub conversation: Option<String>,
}

/// Why requests wait for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The server has too much to do.
    Overloaded,
    /// A limit of the server is reached.
    Limited,
}

/// A wait of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GovernorHold {
    /// Why.
    pub why: Why,
    /// Until when no request goes, in UTC milliseconds.
    pub until: u64,
    /// How many wait.
    pub waiting: usize,
}

/// The server has taken nothing for so long that it is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// For how long, in milliseconds.
    pub ms: u64,
    /// How many requests it has refused meanwhile.
    pub refused: u64,
    /// Why it refused the last of them.
    pub why: Why,
}

impl std::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.ms / 1_000;
        let refused = self.refused;
        let answer = match self.why {
            Why::Overloaded => "it is overloaded (529 or the like)",
            Why::Limited => "too many requests (429)",
        };
        write!(f, "the server has taken no request for {seconds} s and refused {refused}: {answer}")?;
        write!(f, "; it is given up for now, take the run up again later with `convoke resume`")
    }
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
    /// Until when no request is admitted, in UTC milliseconds, if there is a pause.
    pub paused_until: Option<u64>,
    /// When the first waiting request looks again by itself, in UTC milliseconds; else it waits for others.
    pub looks_again_at: Option<u64>,
}

/// The right to send one request. Dropping it gives its slot back.
#[derive(Debug)]
#[must_use = "the slot is given back as soon as the permit is dropped"]
pub struct Permit {
    governor: Governor,
    /// `None` once it is over.
    ticket: Option<Ticket>,
}

struct Shared {
    clock: Clock,
    inner: Mutex<Inner>,
    /// Told when waiting requests begin to wait for a time, or for another one.
    holds: watch::Sender<Option<GovernorHold>>,
}

struct Inner {
    pace: Pace,
    waiters: HashMap<Ticket, Arc<Notify>>,
    /// The requests that are to be told that the server is given up.
    given_up: HashMap<Ticket, GivenUp>,
    /// The waiting request that keeps the time for all, and until when it sleeps.
    keeper: Option<Ticket>,
    wake_at: Option<u64>,
}

impl Governor {
    /// A governor for one API key.
    pub fn new(clock: Clock, max_concurrent: usize) -> Self {
        Self::seeded(clock, max_concurrent, 0)
    }

    /// A governor whose chance comes from this seed: governors of many processes should not have the same.
    pub fn seeded(clock: Clock, max_concurrent: usize, seed: u64) -> Self {
        let pace = Pace::new(max_concurrent, seed);
        let waiters = HashMap::new();
        let given_up = HashMap::new();
        let inner = Mutex::new(Inner { pace, waiters, given_up, keeper: None, wake_at: None });
        Self { shared: Arc::new(Shared { clock, inner, holds: watch::Sender::new(None) }) }
    }

    /// Waits until a request may be sent, or until the server is given up. Dropping the future takes the ask
    /// back without a trace.
    pub async fn admit(&self, ask: AdmissionRequest) -> Result<Permit, GivenUp> {
        let notify = Arc::new(Notify::new());
        let ticket = self.change(|inner, _| {
            let ticket = inner.pace.ask(ask);
            inner.waiters.insert(ticket, Arc::clone(&notify));
            ticket
        });
        let queued = Queued { governor: self, ticket: Some(ticket) };
        loop {
            let (admitted, given_up, wake_at) = self.look(|inner, _| {
                let keeps_time = inner.keeper == Some(ticket);
                let given_up = inner.given_up.remove(&ticket);
                (inner.pace.is_admitted(ticket), given_up, inner.wake_at.filter(|_| keeps_time))
            });
            if let Some(given_up) = given_up {
                return Err(given_up);
            }
            if admitted {
                return Ok(queued.into_permit(ticket));
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

    /// The time that requests wait for, and every change of it.
    pub fn holds(&self) -> watch::Receiver<Option<GovernorHold>> {
        self.shared.holds.subscribe()
    }

    fn look<T>(&self, read: impl FnOnce(&mut Inner, u64) -> T) -> T {
        let now = self.shared.clock.now();
        read(&mut self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner), now)
    }

    /// Changes something, and then admits every request that may go after it.
    fn change<T>(&self, change: impl FnOnce(&mut Inner, u64) -> T) -> T {
        self.look(|inner, now| {
            inner.pace.pass(now);
            let result = change(inner, now);
            inner.settle(now);
            let hold = inner.pace.hold();
            self.shared.holds.send_if_modified(|told| {
                let changes = *told != hold;
                *told = hold;
                changes
            });
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
        for (ticket, given_up) in self.pace.take_given_up() {
            if let Some(notify) = self.waiters.remove(&ticket) {
                self.given_up.insert(ticket, given_up);
                notify.notify_one();
            }
        }
        let keeper = self.pace.front();
        if (self.keeper, self.wake_at) != (keeper, step.wake_at) {
            self.keeper = keeper;
            self.wake_at = step.wake_at;
            if let Some(notify) = keeper.and_then(|ticket| self.waiters.get(&ticket)) {
                notify.notify_one();
            }
        }
    }
}

impl Permit {
    /// The response's headers are there, whatever its status.
    pub fn limits(&self, limits: &RateLimits) {
        if let Some(ticket) = self.ticket {
            self.governor.change(|inner, now| inner.pace.limits(ticket, limits, now));
        }
    }

    /// The reply's stream began: siblings with an equal prefix may go.
    pub fn began(&self) {
        if let Some(ticket) = self.ticket {
            self.governor.change(|inner, now| inner.pace.began(ticket, now));
        }
    }

    /// The request is over, and how it came out. Says whether the server is given up: then repeating it does
    /// not help.
    pub fn done(mut self, fate: Fate) -> Option<GivenUp> {
        let ticket = self.ticket.take()?;
        self.governor.change(|inner, now| inner.pace.end(ticket, Some(fate), now))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.governor.change(|inner, now| inner.pace.end(ticket, None, now));
        }
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
        Permit { governor: self.governor.clone(), ticket: Some(ticket) }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        self.governor.change(|inner, _| {
            inner.waiters.remove(&ticket);
            inner.given_up.remove(&ticket);
            inner.pace.withdraw(ticket);
        });
    }
}
