//! Which agents wait for the server, why, and when the next one tries: folded from events for the eye, of all
//! agents of a session together. Pure; the time is an argument.

use std::collections::HashMap;
use std::time::Duration;

use convoke_kernel::{AgentId, Event, Failure, FailureKind, Limits, backoff_left};

use crate::text::{kind_word, seconds};

/// A wait of all agents that want to ask the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Whether the server has too much to do; otherwise a limit of it is reached.
    pub overloaded: bool,
    /// Until when no agent asks, in UTC milliseconds.
    pub until: u64,
    /// How many wait.
    pub waiting: usize,
}

/// The agents that wait for the server.
#[derive(Debug, Default)]
pub struct Waits {
    /// Agents whose request failed and is to be sent again: not before when, and why.
    again: HashMap<AgentId, (u64, String)>,
    hold: Option<Hold>,
    /// A server that no request reaches, from the first one that did not until something comes from it.
    away: Option<Away>,
    /// How many times there was one.
    spells: usize,
    /// How often a request is tried, as the last agent that began was told.
    attempts: Option<u32>,
}

/// A server that no request reaches.
#[derive(Debug, Default)]
struct Away {
    /// What the last try came to.
    why: String,
    /// The agents that try, and when each tries for the last time, at the latest.
    trying: HashMap<AgentId, u64>,
}

/// What the waiting agents wait for at one time.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    why: String,
    /// When the next one tries; `None`: as soon as one of those under way makes room.
    next: Option<u64>,
    waiting: usize,
}

impl Waits {
    /// Takes in an event of an agent.
    pub fn recorded(&mut self, agent: &AgentId, event: &Event) {
        self.is_it_away(agent, event);
        match event {
            Event::ModelFailed(e) => match e.retry_at {
                Some(until) => drop(self.again.insert(agent.clone(), (until, why(&e.failure)))),
                None => drop(self.again.remove(agent)),
            },
            Event::ModelCalled(_)
            | Event::ModelReplied(_)
            | Event::RoomRefused(_)
            | Event::EndpointLearnt(_)
            | Event::ExchangeStopped(_)
            | Event::ExchangeClosed(_)
            | Event::Resumed(_) => drop(self.again.remove(agent)),
            _ => {}
        }
    }

    fn is_it_away(&mut self, agent: &AgentId, event: &Event) {
        match event {
            Event::AgentStarted(e) => self.attempts = Some(e.spec.limits.max_attempts),
            Event::ModelFailed(e) if e.failure.kind == FailureKind::Transport && e.retry_at.is_some() => {
                let most = self.attempts.unwrap_or(Limits::default().max_attempts);
                let last = e.retry_at.unwrap_or(0).saturating_add(backoff_left(e.attempt, most));
                self.spells += usize::from(self.away.is_none());
                let away = self.away.get_or_insert_default();
                away.why.clone_from(&e.failure.message);
                away.trying.insert(agent.clone(), last);
            }
            // The server has answered.
            Event::ModelReplied(_) => self.reached(),
            Event::ModelFailed(e)
                if matches!(e.failure.kind, FailureKind::Api | FailureKind::RateLimited) =>
            {
                self.reached();
            }
            Event::ModelFailed(_)
            | Event::RoomRefused(_)
            | Event::ExchangeStopped(_)
            | Event::ExchangeClosed(_)
            | Event::Resumed(_) => {
                if let Some(away) = &mut self.away {
                    away.trying.remove(agent);
                }
                self.away.take_if(|away| away.trying.is_empty());
            }
            _ => {}
        }
    }

    /// Something comes from the server.
    pub fn reached(&mut self) {
        self.away = None;
    }

    /// Which time it is that no request reaches the server; `None` while requests do.
    pub fn spell(&self) -> Option<usize> {
        self.away.as_ref().map(|_| self.spells)
    }

    /// What there is to say of a server that no request reaches: why, when the next try is and when the last,
    /// and how many wait. `None` while all of them try.
    pub fn away(&self, now: u64) -> Option<String> {
        let away = self.away.as_ref()?;
        let sleeping: Vec<u64> =
            away.trying.keys().filter_map(|agent| self.again.get(agent)).map(|(until, _)| *until).collect();
        let waiting = sleeping.len();
        let next = sleeping.into_iter().filter(|until| *until > now).min();
        let last = away.trying.values().max().copied().filter(|_| waiting > 0)?;
        let until = match last.saturating_sub(now) {
            _ if next.is_some_and(|next| last <= next) => String::new(),
            left if left < 10_000 => format!(" in at most {} s", left.div_ceil(1_000)),
            left => format!(" in at most {}", seconds(Duration::from_secs(left.div_ceil(1_000)))),
        };
        let next = next.map_or_else(|| "now".to_owned(), |next| self.when(next, now));
        Some(format!("{}: next try {next}, the last one{until}; {waiting} waiting", away.why))
    }

    /// All agents that want to ask the model wait for this; `None`: no longer.
    pub fn held(&mut self, hold: Option<Hold>) {
        self.hold = hold;
    }

    /// No agent is driven, so none waits.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Why the server is waited for, in one or two words; `None` if no agent waits for it.
    pub fn why(&self, now: u64) -> Option<String> {
        self.standing(now).map(|standing| standing.why)
    }

    /// How many wait.
    pub fn waiting(&self, now: u64) -> usize {
        self.standing(now).map_or(0, |standing| standing.waiting)
    }

    /// `overloaded, next try in 43 s; 8 waiting`.
    pub fn words(&self, now: u64) -> Option<String> {
        let Standing { why, next, waiting } = self.standing(now)?;
        Some(format!("{why}, next try {}; {waiting} waiting", when(next.unwrap_or(now), now)))
    }

    /// The same, if another agent than this one waits: what it waits for itself is said where it stands.
    pub fn words_besides(&self, agent: Option<&AgentId>, now: u64) -> Option<String> {
        let itself = usize::from(agent.is_some_and(|agent| self.again.contains_key(agent)));
        self.words(now).filter(|_| self.waiting(now) > itself)
    }

    /// When this agent asks again, in words: `in 12 s`; `None` if its last request did not fail.
    pub fn again(&self, agent: &AgentId, now: u64) -> Option<String> {
        self.again.get(agent).map(|(until, _)| self.when(*until, now))
    }

    /// When an agent asks again that is not to ask before this time, in words.
    pub fn when(&self, until: u64, now: u64) -> String {
        when(until.max(self.holding(now).map_or(0, |hold| hold.until)), now)
    }

    fn holding(&self, now: u64) -> Option<Hold> {
        self.hold.filter(|hold| hold.until > now)
    }

    fn standing(&self, now: u64) -> Option<Standing> {
        let hold = self.holding(now);
        let asleep = self.again.values().filter(|(until, _)| *until > now);
        let first = asleep.clone().min_by_key(|(until, _)| *until);
        let asleep = asleep.count();
        // An agent that may ask again and has not yet stands in line with those that ask for the first time.
        let due = self.again.len() - asleep;
        let in_line = hold.map_or(due, |hold| hold.waiting.max(due));
        if asleep + in_line == 0 {
            return None;
        }
        let next = match hold {
            Some(hold) => Some(hold.until),
            None if due > 0 => None,
            None => first.map(|(until, _)| *until),
        };
        let why = match hold {
            Some(Hold { overloaded: true, .. }) => OVERLOADED.to_owned(),
            Some(_) => LIMITED.to_owned(),
            None => first.or_else(|| self.again.values().min_by_key(|(until, _)| *until))?.1.clone(),
        };
        Some(Standing { why, next, waiting: asleep + in_line })
    }
}

const OVERLOADED: &str = "overloaded";
const LIMITED: &str = "rate limit";

/// `in 43 s`, or what is said when that time has come.
fn when(until: u64, now: u64) -> String {
    match until.saturating_sub(now) {
        0 => "as soon as there is room".to_owned(),
        left => format!("in {} s", left.div_ceil(1_000)),
    }
}

fn why(failure: &Failure) -> String {
    let overloaded = failure.message.contains("529") || failure.message.to_lowercase().contains("overloaded");
    match failure.kind {
        FailureKind::RateLimited => LIMITED.to_owned(),
        FailureKind::Api if overloaded => OVERLOADED.to_owned(),
        FailureKind::Api => "server error".to_owned(),
        FailureKind::Transport => "no connection".to_owned(),
        kind => kind_word(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use convoke_kernel::{ModelCalled, ModelFailed, Purpose, Retry};

    fn id(number: u8) -> AgentId {
        AgentId::from_bits([number; 10])
    }

    fn failed(kind: FailureKind, message: &str, retry_at: Option<u64>) -> Event {
        let failure = Failure {
            kind,
            message: message.into(),
            retry: Retry::Soon,
            request_id: None,
            unbilled: true,
            refused: None,
        };
        ModelFailed { call: 1, attempt: 1, failure, retry_at }.into()
    }

    fn called() -> Event {
        ModelCalled {
            call: 1,
            attempt: 1,
            segments: 1,
            max_tokens: 1,
            digest: String::new(),
            purpose: Purpose::Turn,
        }
        .into()
    }

    #[test]
    fn a_wait_is_told_with_its_reason_its_end_and_how_many_wait() {
        let mut waits = Waits::default();
        assert_eq!(waits.words(0), None);
        for number in 1..=8 {
            let until = 42_500 + u64::from(number);
            waits.recorded(
                &id(number),
                &failed(FailureKind::Api, "the API answered 529 (overloaded_error)", Some(until)),
            );
        }
        assert_eq!(waits.words(0).unwrap(), "overloaded, next try in 43 s; 8 waiting");
        assert_eq!(waits.words(41_502).unwrap(), "overloaded, next try in 1 s; 8 waiting");
        assert_eq!(waits.again(&id(1), 0).unwrap(), "in 43 s");
        waits.recorded(&id(1), &called());
        assert_eq!(waits.words(0).unwrap(), "overloaded, next try in 43 s; 7 waiting");
        for number in 2..=8 {
            waits.recorded(&id(number), &failed(FailureKind::Api, "no", None));
        }
        assert_eq!((waits.words(0), waits.waiting(0)), (None, 0));
    }

    #[test]
    fn nobody_asks_again_in_no_seconds() {
        let mut waits = Waits::default();
        waits.recorded(&id(1), &failed(FailureKind::Api, "Overloaded", Some(1_000)));
        assert_eq!(waits.words(1_000).unwrap(), "overloaded, next try as soon as there is room; 1 waiting");
        waits.held(Some(Hold { overloaded: true, until: 9_000, waiting: 5 }));
        assert_eq!(waits.words(1_000).unwrap(), "overloaded, next try in 8 s; 5 waiting");
        assert_eq!(waits.again(&id(1), 1_000).unwrap(), "in 8 s", "the true next try");
        waits.recorded(&id(2), &failed(FailureKind::Api, "Overloaded", Some(30_000)));
        assert_eq!(waits.words(1_000).unwrap(), "overloaded, next try in 8 s; 6 waiting");
        assert_eq!(waits.words(10_000).unwrap(), "overloaded, next try as soon as there is room; 2 waiting");
    }

    #[test]
    fn a_server_that_is_away_is_told_with_its_next_and_its_last_try_until_something_comes_from_it() {
        let lost = |attempt: u32, retry_at: Option<u64>| {
            let Event::ModelFailed(mut e) = failed(FailureKind::Transport, "cannot connect", retry_at) else {
                panic!()
            };
            e.attempt = attempt;
            Event::ModelFailed(e)
        };
        let mut waits = Waits::default();
        waits.recorded(&id(1), &lost(1, Some(500)));
        waits.recorded(&id(2), &lost(2, Some(1_200)));
        let said = "cannot connect: next try in 1 s, the last one in at most 2 min 8 s; 2 waiting";
        assert_eq!(waits.away(0).unwrap(), said);
        assert_eq!(waits.spell(), Some(1));
        waits.recorded(&id(1), &called());
        assert!(waits.away(0).unwrap().ends_with("; 1 waiting"));
        waits.recorded(&id(2), &called());
        assert_eq!((waits.away(0), waits.spell()), (None, Some(1)), "both try");
        waits.recorded(&id(1), &lost(9, Some(30_000)));
        waits.recorded(&id(2), &lost(10, None));
        assert_eq!(waits.away(0).unwrap(), "cannot connect: next try in 30 s, the last one; 1 waiting");
        waits.reached();
        assert_eq!((waits.away(0), waits.spell()), (None, None));
        waits.recorded(&id(1), &lost(1, Some(40_000)));
        assert_eq!(waits.spell(), Some(2));
        waits.recorded(&id(1), &failed(FailureKind::Api, "the API answered 529", Some(50_000)));
        assert_eq!(waits.spell(), None, "it answers");
    }

    #[test]
    fn reasons_are_told_apart() {
        let check = |kind: FailureKind, message: &str, expected: &str| {
            let mut waits = Waits::default();
            waits.recorded(&id(1), &failed(kind, message, Some(1_000)));
            assert_eq!(waits.why(0).unwrap(), expected);
        };
        check(FailureKind::RateLimited, "the API answered 429", "rate limit");
        check(FailureKind::Api, "the API answered 529 (no error type)", "overloaded");
        check(FailureKind::Api, "the API answered 500", "server error");
        check(FailureKind::Transport, "reset", "no connection");
        check(FailureKind::Deadline, "late", "deadline");
        let mut waits = Waits::default();
        waits.held(Some(Hold { overloaded: false, until: 9_000, waiting: 5 }));
        assert_eq!(waits.words(0).unwrap(), "rate limit, next try in 9 s; 5 waiting");
    }
}
