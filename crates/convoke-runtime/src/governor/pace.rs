//! Who may send a model request now: the state, what changes it, and the decision. Pure: it is told the time, it never
//! waits and wakes nobody.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use convoke_claude::RateLimits;

use super::bucket::Bucket;
use super::stagger::{RoundId, Stagger};
use super::{Ask, Fate, GovernorStats};

/// A window larger than this is not opened at once: servers refuse a sharp rise.
const RAMP_FROM: usize = 10;
/// The pauses of a server that does not say how long: the first, and the longest it doubles to.
const PAUSES: (u64, u64) = (1_000, 60_000);
/// How long nobody tries one more at once than is known to go: the first time, and the longest it doubles to.
const PROBES: (u64, u64) = (30_000, 120_000);

/// Names one ask from the queue to its end.
pub(super) type Ticket = u64;

/// What may happen now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Those who may send, in this order.
    pub(super) admitted: Vec<Ticket>,
    /// When somebody could be admitted although nothing else happens.
    pub(super) wake_at: Option<u64>,
}

/// What the server has shown it can take, who is under way and who waits.
#[derive(Debug)]
pub(super) struct Pace {
    /// The most at once that a person allows, and the most at once that we dare now.
    most: usize,
    window: usize,
    /// Replies since the window last changed, while it was full.
    earned: usize,
    /// Whether the window grows by one a round of replies instead of one a reply.
    careful: bool,
    /// The most at once that is not known to be too many, once something was.
    ceiling: Option<usize>,
    probe_wait: u64,
    probe_at: u64,
    pause: Option<Pause>,
    /// Refusals in a row, each in its own episode.
    limited_in_a_row: u32,
    overloaded_in_a_row: u32,
    /// Requests admitted before this one belong to an episode that has had its consequences.
    episode: u64,
    /// Only requests from this one on show how many at once can be taken.
    proof_from: u64,
    admitted: u64,
    limited: u64,
    overloaded: u64,
    next_ticket: Ticket,
    waiting: BTreeMap<Place, Option<Arc<str>>>,
    flights: HashMap<Ticket, Flight>,
    requests: Option<Bucket>,
    stagger: Stagger,
}

/// Where an ask stands: those that go first, and within each kind in order of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    behind: bool,
    ticket: Ticket,
}

#[derive(Debug)]
struct Flight {
    /// Its number among all that were admitted.
    number: u64,
    sent_at: u64,
    prefix: Option<Arc<str>>,
    round: Option<RoundId>,
    begun: bool,
    heard: Heard,
}

/// What its headers said about requests a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// They have not come.
    NotYet,
    Nothing,
    SomeLeft,
    NoneLeft,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    from: u64,
    until: u64,
}

/// What a refusal is put down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Too many requests a minute: the bucket knows better now.
    Rate,
    /// Too many at once.
    Crowd,
    /// Anything else: tokens a minute, an overloaded server.
    Load,
}

/// Who is next.
enum Next {
    Goes(Place),
    /// Everybody for whom there is room waits for a sibling, the first of them until then.
    Held(u64),
    NoRoom,
}

impl Pace {
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            most,
            window: most.min(RAMP_FROM),
            earned: 0,
            careful: false,
            ceiling: None,
            probe_wait: PROBES.0,
            probe_at: 0,
            pause: None,
            limited_in_a_row: 0,
            overloaded_in_a_row: 0,
            episode: 0,
            proof_from: 0,
            admitted: 0,
            limited: 0,
            overloaded: 0,
            next_ticket: 0,
            waiting: BTreeMap::new(),
            flights: HashMap::new(),
            requests: None,
            stagger: Stagger::default(),
        }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Somebody wants to send.
    pub(super) fn ask(&mut self, ask: Ask) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.insert(Place { behind: !ask.first, ticket }, ask.prefix.map(Arc::from));
        ticket
    }

    /// Admits everybody who may go now.
    pub(super) fn step(&mut self, now: u64) -> Step {
        let mut admitted = Vec::new();
        let wake_at = loop {
            if self.waiting.is_empty() {
                break None;
            }
            if let Some(until) = self.paused_until(now) {
                break Some(until);
            }
            let place = match self.next(now) {
                Next::Goes(place) => place,
                Next::Held(until) => break Some(until),
                Next::NoRoom => break None,
            };
            let ready_at = self.requests.as_mut().map_or(now, |bucket| bucket.ready_at(now));
            if ready_at > now {
                break Some(ready_at);
            }
            self.admit(place, now);
            admitted.push(place.ticket);
        };
        Step { admitted, wake_at }
    }

    /// The first in the queue.
    pub(super) fn front(&self) -> Option<Ticket> {
        self.waiting.first_key_value().map(|(place, _)| place.ticket)
    }

    /// Whether this one may send.
    pub(super) fn is_admitted(&self, ticket: Ticket) -> bool {
        self.flights.contains_key(&ticket)
    }

    /// Whoever asked no longer wants to, and has sent nothing.
    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        for behind in [false, true] {
            self.waiting.remove(&Place { behind, ticket });
        }
        if self.leave(ticket).is_some()
            && let Some(bucket) = &mut self.requests
        {
            bucket.put_back();
        }
    }

    /// The headers of a response, whatever its status.
    pub(super) fn limits(&mut self, ticket: Ticket, limits: &RateLimits, now: u64) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        let age = now.saturating_sub(flight.sent_at);
        flight.heard = match &limits.requests {
            None => Heard::Nothing,
            Some(requests) if requests.remaining == 0 => Heard::NoneLeft,
            Some(_) => Heard::SomeLeft,
        };
        let Some(requests) = &limits.requests else { return };
        let pending = self.flights.values().filter(|flight| flight.heard == Heard::NotYet && !flight.begun).count();
        match &mut self.requests {
            Some(bucket) => bucket.hear(requests, now, pending, age),
            None => self.requests = Some(Bucket::new(requests, now, pending)),
        }
    }

    /// The reply's stream began: the server has taken this one.
    pub(super) fn began(&mut self, ticket: Ticket, now: u64) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        if let Some(prefix) = &flight.prefix {
            self.stagger.began(prefix, now);
        }
        if std::mem::replace(&mut flight.begun, true) {
            return;
        }
        if flight.number >= self.episode {
            self.limited_in_a_row = 0;
        }
        // A server that takes a request and tells of no limit has none. What it refuses need not tell of it.
        if flight.heard == Heard::Nothing {
            self.requests = None;
        }
        // How many at once the server can take is only asked once it has refused for that reason.
        let proven = self.proven();
        if let Some(ceiling) = self.ceiling {
            self.window = self.window.max(proven.min(self.most));
            if proven > ceiling {
                self.ceiling = Some(proven);
                (self.probe_wait, self.probe_at) = (PROBES.0, now);
            }
        }
    }

    /// A request is over. `None`: nobody says how.
    pub(super) fn end(&mut self, ticket: Ticket, fate: Option<Fate>, now: u64) {
        match fate {
            Some(Fate::Replied) => {
                self.began(ticket, now);
                self.replied(ticket, now);
            }
            Some(Fate::Limited { retry_after_ms }) => {
                self.limited += 1;
                self.refused_by_limit(ticket, retry_after_ms.filter(|wait| *wait > 0), now);
            }
            Some(Fate::Overloaded { retry_after_ms }) => {
                self.overloaded += 1;
                let fresh = self.flights.get(&ticket).is_some_and(|flight| flight.number >= self.episode);
                let wait = retry_after_ms.filter(|wait| *wait > 0);
                if fresh {
                    let row = self.overloaded_in_a_row;
                    self.overloaded_in_a_row = row.saturating_add(1);
                    self.pause(wait.unwrap_or(doubled(PAUSES, row)), now);
                    self.shrink(Cause::Load, now);
                } else if let Some(wait) = wait {
                    self.pause(wait, now);
                }
            }
            Some(Fate::OtherFailure) | None => {}
        }
        self.leave(ticket);
    }

    pub(super) fn stats(&self, now: u64) -> GovernorStats {
        GovernorStats {
            admitted: self.admitted,
            limited: self.limited,
            overloaded: self.overloaded,
            window: self.window,
            in_flight: self.flights.len(),
            waiting: self.waiting.len(),
            paused_until: self.paused_until(now),
            looks_again_at: None,
        }
    }

    fn paused_until(&self, now: u64) -> Option<u64> {
        // A machine's clock may be set back; a pause that has not begun yet is one of those that are over.
        self.pause.filter(|pause| (pause.from..pause.until).contains(&now)).map(|pause| pause.until)
    }

    fn next(&self, now: u64) -> Next {
        let flying = self.flights.len();
        // The lead may go one beyond the window, but not where that is known to be refused.
        let room_for_first = flying <= self.window && self.ceiling.is_none_or(|ceiling| flying < ceiling);
        let room = flying < self.window;
        let mut held: Option<u64> = None;
        for (place, prefix) in &self.waiting {
            if !room && (place.behind || !room_for_first) {
                break;
            }
            match prefix.as_ref().and_then(|prefix| self.stagger.held_until(prefix, now)) {
                None => return Next::Goes(*place),
                Some(until) => held = Some(held.map_or(until, |earlier| earlier.min(until))),
            }
        }
        held.map_or(Next::NoRoom, Next::Held)
    }

    fn admit(&mut self, place: Place, now: u64) {
        let prefix = self.waiting.remove(&place).flatten();
        let round = prefix.as_ref().and_then(|prefix| self.stagger.sent(prefix, now));
        if let Some(bucket) = &mut self.requests {
            bucket.take(now);
        }
        let number = self.admitted;
        self.admitted += 1;
        let flight = Flight { number, sent_at: now, prefix, round, begun: false, heard: Heard::NotYet };
        self.flights.insert(place.ticket, flight);
    }

    fn leave(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.flights.remove(&ticket)?;
        if let (Some(prefix), Some(round)) = (&flight.prefix, flight.round) {
            self.stagger.ended(prefix, round);
        }
        Some(flight)
    }

    /// How many the server is writing replies to at once.
    fn proven(&self) -> usize {
        self.flights.values().filter(|flight| flight.begun && flight.number >= self.proof_from).count()
    }

    /// A reply shows that there is room only if the window was full, and nothing about what was refused after it went.
    fn replied(&mut self, ticket: Ticket, now: u64) {
        if self.flights.get(&ticket).is_none_or(|flight| flight.number < self.episode) {
            return;
        }
        (self.limited_in_a_row, self.overloaded_in_a_row) = (0, 0);
        if self.flights.len() < self.window || self.window >= self.most {
            return;
        }
        self.earned += 1;
        let known_good = self.ceiling.is_none_or(|ceiling| self.window < ceiling);
        let needed = if self.careful { self.window } else { 1 };
        if self.earned >= needed && (known_good || now >= self.probe_at) {
            self.window += 1;
            self.earned = 0;
        }
    }

    fn refused_by_limit(&mut self, ticket: Ticket, retry_after: Option<u64>, now: u64) {
        let Some(flight) = self.flights.get(&ticket) else { return };
        let (fresh, dry) = (flight.number >= self.episode, flight.heard == Heard::NoneLeft);
        if let Some(bucket) = &mut self.requests {
            bucket.put_back();
            if dry {
                bucket.was_empty(now, retry_after);
            }
        }
        // What went before the window was cut says nothing about the new window, but what it was told holds.
        if !fresh {
            if let Some(wait) = retry_after {
                self.pause(wait, now);
            }
            return;
        }
        let row = self.limited_in_a_row;
        self.limited_in_a_row = row.saturating_add(1);
        self.pause(retry_after.unwrap_or(doubled(PAUSES, row)), now);
        let cause = match retry_after {
            _ if dry => Cause::Rate,
            // One alone is no crowd, and a server that has taken nothing since its last refusal refuses for another reason.
            None if row == 0 && self.flights.len() > 1 => Cause::Crowd,
            _ => Cause::Load,
        };
        self.shrink(cause, now);
    }

    fn pause(&mut self, wait: u64, now: u64) {
        let until = now.saturating_add(wait);
        let longest = self.paused_until(now).map_or(until, |earlier| earlier.max(until));
        self.pause = Some(Pause { from: now, until: longest });
    }

    fn shrink(&mut self, cause: Cause, now: u64) {
        self.episode = self.admitted;
        self.earned = 0;
        match cause {
            Cause::Rate => self.window = (self.window * 3 / 4).max(1),
            Cause::Load => {
                self.window = (self.window / 2).max(1);
                self.careful = true;
                self.proof_from = self.admitted;
            }
            Cause::Crowd => {
                let tried = self.window.min(self.flights.len()).max(2);
                let known = self.ceiling.replace(tried - 1);
                self.window = (tried / 2).max(self.proven().min(tried - 1));
                self.careful = true;
                self.probe_wait = known.map_or(PROBES.0, |_| (self.probe_wait * 2).min(PROBES.1));
                self.probe_at = now.saturating_add(self.probe_wait);
            }
        }
    }
}

fn doubled((first, longest): (u64, u64), times: u32) -> u64 {
    first.saturating_mul(1_u64.checked_shl(times.min(32)).unwrap_or(u64::MAX)).min(longest)
}
