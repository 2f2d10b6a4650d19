//! Which model requests may be sent now: the state, what changes it, and the decision. Pure: it is told the
//! time, it never waits and wakes no task.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use convoke_claude::RateLimits;

use super::bucket::Bucket;
use super::ramp::{Opening, Ramp};
use super::refusals::{PROBES, Refusal, Refusals};
use super::stagger::{RoundId, Stagger};
use super::{AdmissionRequest, Fate, GivenUp, GovernorHold, GovernorStats, Why};

/// A window larger than this is not opened at once (`ramp.rs`): servers refuse a sharp rise.
const RAMP_FROM: usize = 10;
/// The wait before one more at once is tried than is known to go: the first one, and the longest.
const TRIES: (u64, u64) = (30_000, 120_000);

/// Names one ask from the queue to its end.
pub(super) type Ticket = u64;

/// What may happen now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The requests that may be sent, in this order.
    pub(super) admitted: Vec<Ticket>,
    /// When a request could be admitted although nothing else happens.
    pub(super) wake_at: Option<u64>,
}

/// What the server has shown it can take, and the requests that are under way or wait.
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
    refusals: Refusals,
    /// Refusals by a limit in a row, each in its own episode.
    limited_in_a_row: u32,
    /// Requests admitted before this one belong to an episode that has had its consequences.
    episode: u64,
    /// Only requests from this one on show how many at once can be taken.
    proof_from: u64,
    admitted: u64,
    limited: u64,
    overloaded: u64,
    next_ticket: Ticket,
    waiting: BTreeMap<QueuePosition, Waiting>,
    flights: HashMap<Ticket, Flight>,
    /// The requests that waited when the server was given up.
    given_up: Vec<(Ticket, GivenUp)>,
    /// Why no request went at the last look although there was room, and until when.
    held: Option<(u64, Why)>,
    requests: Option<Bucket>,
    ramp: Ramp,
    stagger: Stagger,
}

/// Where an ask stands: those that go first, and within each kind in order of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueuePosition {
    behind: bool,
    ticket: Ticket,
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    prefix: Option<Arc<str>>,
    conversation: Option<String>,
}

#[derive(Debug)]
struct Flight {
    /// Its number among all that were admitted.
    number: u64,
    sent_at: u64,
    prefix: Option<Arc<str>>,
    conversation: Option<String>,
    round: Option<RoundId>,
    begun: bool,
    allowance: RequestAllowance,
    /// Its headers said that no tokens are left for any request.
    no_tokens: bool,
}

/// What its headers said about requests a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestAllowance {
    /// They have not come.
    NotYet,
    Nothing,
    SomeLeft,
    NoneLeft,
}

/// What a refusal is put down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Too many requests a minute: the bucket knows better now.
    Rate,
    /// Too many at once.
    Crowd,
    /// Anything else that is not about one conversation alone: tokens a minute, an overloaded server.
    Load,
    /// As far as is known, what was said to one conversation.
    One,
}

/// Which request is next.
enum Next {
    Goes(QueuePosition),
    /// Every request for which there is room waits for a sibling, the first of them until then.
    Held(u64),
    NoRoom,
}

impl Pace {
    /// The seed is where chance comes from.
    pub(super) fn new(most: usize, seed: u64) -> Self {
        let most = most.max(1);
        Self {
            most,
            window: most.min(RAMP_FROM),
            earned: 0,
            careful: false,
            ceiling: None,
            probe_wait: TRIES.0,
            probe_at: 0,
            refusals: Refusals::new(seed),
            limited_in_a_row: 0,
            episode: 0,
            proof_from: 0,
            admitted: 0,
            limited: 0,
            overloaded: 0,
            next_ticket: 0,
            waiting: BTreeMap::new(),
            flights: HashMap::new(),
            given_up: Vec::new(),
            held: None,
            requests: None,
            ramp: Ramp::default(),
            stagger: Stagger::default(),
        }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Puts a request into the queue.
    pub(super) fn ask(&mut self, ask: AdmissionRequest) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let waiting = Waiting { prefix: ask.prefix.map(Arc::from), conversation: ask.conversation };
        self.waiting.insert(QueuePosition { behind: !ask.first, ticket }, waiting);
        ticket
    }

    /// Time has passed, and nothing has happened in it: to be told before whatever happens now.
    pub(super) fn pass(&mut self, now: u64) {
        let opening = self.opening(now);
        self.window += self.ramp.pass(opening, now);
    }

    /// The window as it grows by time: while it is full, but not while more are under way than it now lets.
    fn opening(&self, now: u64) -> Opening {
        let fits = (self.window..=self.window + 1).contains(&self.flights.len());
        Opening {
            window: self.window,
            most: self.ceiling.unwrap_or(self.most).min(self.most),
            is_full: fits && !self.waiting.is_empty() && self.refusals.paused(now).is_none(),
            careful: self.careful,
        }
    }

    /// Admits every request that may go now.
    pub(super) fn step(&mut self, now: u64) -> Step {
        let mut admitted = Vec::new();
        self.held = None;
        let wake_at = loop {
            if self.waiting.is_empty() {
                break None;
            }
            if let Some((until, why)) = self.refusals.paused(now) {
                self.held = Some((until, why));
                break Some(until);
            }
            let place = match self.next(now) {
                Next::Goes(place) => place,
                Next::Held(until) => break Some(until),
                Next::NoRoom => break self.ramp.looks_at(self.opening(now), now),
            };
            let ready_at = self.requests.as_mut().map_or(now, |bucket| bucket.ready_at(now));
            if ready_at > now {
                self.held = Some((ready_at, Why::Limited));
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

    /// The requests that waited when the server was given up; each is returned once.
    pub(super) fn take_given_up(&mut self) -> Vec<(Ticket, GivenUp)> {
        std::mem::take(&mut self.given_up)
    }

    /// Takes back a request that was not sent.
    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        for behind in [false, true] {
            self.waiting.remove(&QueuePosition { behind, ticket });
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
        flight.allowance = match &limits.requests {
            None => RequestAllowance::Nothing,
            Some(requests) if requests.remaining == 0 => RequestAllowance::NoneLeft,
            Some(_) => RequestAllowance::SomeLeft,
        };
        let tokens = [&limits.tokens, &limits.input_tokens, &limits.output_tokens];
        flight.no_tokens = tokens.into_iter().flatten().any(|bucket| bucket.remaining == 0);
        self.ramp.hear(limits);
        let Some(requests) = &limits.requests else { return };
        let pending = self
            .flights
            .values()
            .filter(|flight| flight.allowance == RequestAllowance::NotYet && !flight.begun)
            .count();
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
        self.refusals.took_one();
        if flight.number >= self.episode {
            self.limited_in_a_row = 0;
        }
        // A server that takes a request and tells of no limit has none. What it refuses need not tell of it.
        if flight.allowance == RequestAllowance::Nothing {
            self.requests = None;
        }
        // How many at once the server can take is only asked once it has refused for that reason.
        let proven = self.proven();
        if let Some(ceiling) = self.ceiling {
            self.window = self.window.max(proven.min(self.most));
            if proven > ceiling {
                self.ceiling = Some(proven);
                self.probe_wait = TRIES.0;
                self.probe_at = now;
            }
        }
    }

    /// A request is over. `None`: it is not known how. Says whether the server is given up by it.
    pub(super) fn end(&mut self, ticket: Ticket, fate: Option<Fate>, now: u64) -> Option<GivenUp> {
        let given_up = match fate {
            Some(Fate::Replied) => {
                self.began(ticket, now);
                self.replied(ticket, now);
                None
            }
            Some(Fate::Limited { retry_after_ms }) => {
                self.limited += 1;
                self.refused_by_limit(ticket, retry_after_ms.filter(|wait| *wait > 0), now)
            }
            Some(Fate::Overloaded { retry_after_ms }) => {
                self.overloaded += 1;
                self.overloaded(ticket, retry_after_ms.filter(|wait| *wait > 0), now)
            }
            Some(Fate::OtherFailure) | None => None,
        };
        self.leave(ticket);
        if let Some(given_up) = &given_up {
            // Each waiting request would be told the same, one after the other.
            let waiting = std::mem::take(&mut self.waiting);
            self.given_up.extend(waiting.into_keys().map(|place| (place.ticket, given_up.clone())));
        }
        given_up
    }

    pub(super) fn stats(&self, now: u64) -> GovernorStats {
        GovernorStats {
            admitted: self.admitted,
            limited: self.limited,
            overloaded: self.overloaded,
            window: self.window,
            in_flight: self.flights.len(),
            waiting: self.waiting.len(),
            paused_until: self.refusals.paused(now).map(|(until, _)| until),
            looks_again_at: None,
        }
    }

    /// Why requests wait for a time, as of the last look; `None` if they wait for others or none waits.
    pub(super) fn hold(&self) -> Option<GovernorHold> {
        self.held.map(|(until, why)| GovernorHold { why, until, waiting: self.waiting.len() })
    }

    fn next(&self, now: u64) -> Next {
        let flying = self.flights.len();
        // The lead may go one beyond the window, but not where that is known to be refused.
        let room_for_first = flying <= self.window && self.ceiling.is_none_or(|ceiling| flying < ceiling);
        let room = flying < self.window;
        let mut held: Option<u64> = None;
        for (place, waiting) in &self.waiting {
            if !room && (place.behind || !room_for_first) {
                break;
            }
            match waiting.prefix.as_ref().and_then(|prefix| self.stagger.held_until(prefix, now)) {
                None => return Next::Goes(*place),
                Some(until) => held = Some(held.map_or(until, |earlier| earlier.min(until))),
            }
        }
        held.map_or(Next::NoRoom, Next::Held)
    }

    fn admit(&mut self, place: QueuePosition, now: u64) {
        let Some(Waiting { prefix, conversation }) = self.waiting.remove(&place) else { return };
        let round = prefix.as_ref().and_then(|prefix| self.stagger.sent(prefix, now));
        if let Some(bucket) = &mut self.requests {
            bucket.take(now);
        }
        let number = self.admitted;
        self.admitted += 1;
        let begun = false;
        let allowance = RequestAllowance::NotYet;
        let no_tokens = false;
        let flight =
            Flight { number, sent_at: now, prefix, conversation, round, begun, allowance, no_tokens };
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

    /// A reply shows that there is room only if the window was full, and nothing about what was refused after
    /// it went.
    fn replied(&mut self, ticket: Ticket, now: u64) {
        if self.flights.get(&ticket).is_none_or(|flight| flight.number < self.episode) {
            return;
        }
        self.limited_in_a_row = 0;
        if self.flights.len() < self.window || self.window >= self.most || self.ramp.is_held() {
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

    fn refused_by_limit(&mut self, ticket: Ticket, told: Option<u64>, now: u64) -> Option<GivenUp> {
        let flight = self.flights.get(&ticket)?;
        let fresh = flight.number >= self.episode;
        let dry = flight.allowance == RequestAllowance::NoneLeft;
        let no_tokens = flight.no_tokens;
        let mut paced = false;
        if let Some(bucket) = &mut self.requests {
            bucket.put_back();
            if dry {
                paced = bucket.was_empty(now, told);
            }
        }
        let refusal = Refusal { who: flight.who(ticket), why: Why::Limited, told };
        // What the bucket explains it also mends. What headers say of all holds for all.
        let given_up = match (no_tokens, told) {
            _ if paced => None,
            (true, Some(wait)) => {
                self.refusals.told_all(wait, now);
                None
            }
            _ => self.refusals.refused(refusal, self.window, now),
        };
        // What went before the window was cut says nothing about the new window.
        if !fresh {
            return given_up;
        }
        let row = self.limited_in_a_row;
        self.limited_in_a_row = row.saturating_add(1);
        let cause = match told {
            _ if paced => Cause::Rate,
            // One alone is no crowd, and a server that has taken nothing since its last refusal refuses for
            // another reason.
            None if row == 0 && self.flights.len() > 1 => Cause::Crowd,
            Some(_) if !no_tokens && !self.refusals.of_several() => Cause::One,
            _ => Cause::Load,
        };
        self.shrink(cause, now);
        given_up
    }

    fn overloaded(&mut self, ticket: Ticket, told: Option<u64>, now: u64) -> Option<GivenUp> {
        let flight = self.flights.get(&ticket)?;
        let fresh = flight.number >= self.episode;
        let refusal = Refusal { who: flight.who(ticket), why: Why::Overloaded, told };
        let before = self.refusals.rounds();
        let given_up = self.refusals.refused(refusal, self.window, now);
        // Once a round: siblings that go one after the other say no more about the window than those that go
        // together.
        if fresh && self.refusals.rounds() != before {
            self.shrink(Cause::Load, now);
        }
        given_up
    }

    fn shrink(&mut self, cause: Cause, now: u64) {
        if cause == Cause::One {
            return;
        }
        self.episode = self.admitted;
        self.earned = 0;
        self.ramp.refused(now);
        match cause {
            Cause::One => {}
            Cause::Rate => self.window = (self.window * 3 / 4).max(1),
            Cause::Load => {
                // Several go on trying, unless a person or what is known of the server allows fewer.
                self.window = (self.window / 2).max(PROBES.min(self.window));
                self.careful = true;
                self.proof_from = self.admitted;
            }
            Cause::Crowd => {
                let tried = self.window.min(self.flights.len()).max(2);
                let known = self.ceiling.replace(tried - 1);
                self.window = (tried / 2).max(self.proven().min(tried - 1));
                self.careful = true;
                self.probe_wait = known.map_or(TRIES.0, |_| (self.probe_wait * 2).min(TRIES.1));
                self.probe_at = now.saturating_add(self.probe_wait);
            }
        }
    }
}

impl Flight {
    /// The conversation of the request; a request without one counts as a conversation of its own.
    fn who(&self, ticket: Ticket) -> String {
        self.conversation.clone().unwrap_or_else(|| format!("#{ticket}"))
    }
}
