//! Siblings with an equal prefix: one goes ahead and writes the prefix into the server's cache, the others
//! read it. It only says which requests are held and until when.

use std::collections::HashMap;
use std::sync::Arc;

/// How long the server keeps a prefix that no request reads.
const CACHED: u64 = 5 * 60_000;
/// How long a sibling is held at most.
const LONGEST: u64 = 5_000;

/// What is known of each prefix.
#[derive(Debug, Default)]
pub(super) struct Stagger {
    prefixes: HashMap<Arc<str>, Prefix>,
    rounds: u64,
}

#[derive(Debug, Default)]
struct Prefix {
    /// When a reply to a request with this prefix last began.
    begun: Option<u64>,
    /// Requests that went while the prefix was cold.
    round: Option<Round>,
}

/// The number of a round, by which a request that ends knows whether its round is still on.
pub(super) type RoundId = u64;

#[derive(Debug)]
struct Round {
    id: RoundId,
    since: u64,
    flights: usize,
}

impl Prefix {
    fn warm(&self, now: u64) -> bool {
        self.begun.is_some_and(|begun| now < begun.saturating_add(CACHED))
    }

    fn over(&self, now: u64) -> bool {
        !self.warm(now) && self.round.as_ref().is_none_or(|round| round.flights == 0 && !round.holds(now))
    }
}

impl Round {
    fn holds(&self, now: u64) -> bool {
        (self.since..self.since.saturating_add(LONGEST)).contains(&now)
    }
}

impl Stagger {
    /// Until when a request with this prefix is held; `None` if it may go.
    pub(super) fn held_until(&self, prefix: &str, now: u64) -> Option<u64> {
        let known = self.prefixes.get(prefix).filter(|known| !known.warm(now))?;
        let round = known.round.as_ref().filter(|round| round.flights > 0 && round.holds(now))?;
        Some(round.since.saturating_add(LONGEST))
    }

    /// A request with this prefix goes. Says the round it belongs to, if the prefix is cold.
    pub(super) fn sent(&mut self, prefix: &Arc<str>, now: u64) -> Option<RoundId> {
        if !self.prefixes.contains_key(prefix) {
            self.prefixes.retain(|_, known| !known.over(now));
        }
        let known = self.prefixes.entry(Arc::clone(prefix)).or_default();
        if known.warm(now) {
            return None;
        }
        // When the first one failed the next one goes ahead, but the time that siblings are held runs on.
        if known.over(now) {
            known.round = None;
        }
        let rounds = &mut self.rounds;
        let round = known.round.get_or_insert_with(|| {
            *rounds += 1;
            Round { id: *rounds, since: now, flights: 0 }
        });
        round.flights += 1;
        Some(round.id)
    }

    /// A reply to a request with this prefix began: the prefix is in the cache.
    pub(super) fn began(&mut self, prefix: &Arc<str>, now: u64) {
        let known = self.prefixes.entry(Arc::clone(prefix)).or_default();
        known.begun = Some(now);
        known.round = None;
    }

    /// A request of this round ended.
    pub(super) fn ended(&mut self, prefix: &str, round: RoundId) {
        let known = self.prefixes.get_mut(prefix).and_then(|known| known.round.as_mut());
        if let Some(known) = known.filter(|known| known.id == round) {
            known.flights = known.flights.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_of_a_cold_prefix_wait_for_the_first_ones_beginning_or_five_seconds() {
        let mut stagger = Stagger::default();
        let prefix: Arc<str> = "p".into();
        assert_eq!(stagger.held_until("p", 100), None);
        let round = stagger.sent(&prefix, 100);
        assert!(round.is_some());
        assert_eq!(stagger.held_until("p", 100), Some(5_100));
        assert_eq!(stagger.held_until("other", 100), None);
        assert_eq!(stagger.held_until("p", 5_099), Some(5_100));
        assert_eq!(stagger.held_until("p", 5_100), None);
        assert_eq!(stagger.sent(&prefix, 5_100), round, "late ones do not hold the others again");
        assert_eq!(stagger.held_until("p", 5_100), None);
        stagger.began(&prefix, 5_200);
        assert_eq!((stagger.held_until("p", 5_200), stagger.sent(&prefix, 5_200)), (None, None));
    }

    #[test]
    fn a_prefix_is_cold_again_five_minutes_after_it_was_last_begun() {
        let mut stagger = Stagger::default();
        let prefix: Arc<str> = "p".into();
        stagger.sent(&prefix, 0);
        stagger.began(&prefix, 1_000);
        stagger.began(&prefix, 60_000);
        assert_eq!(stagger.sent(&prefix, 359_999), None);
        assert!(stagger.sent(&prefix, 360_000).is_some());
        assert_eq!(stagger.held_until("p", 360_001), Some(365_000));
    }

    #[test]
    fn when_the_first_one_fails_another_goes_ahead_and_nobody_is_held_longer_for_it() {
        let mut stagger = Stagger::default();
        let prefix: Arc<str> = "p".into();
        let round = stagger.sent(&prefix, 0).unwrap();
        stagger.ended("p", round);
        assert_eq!(stagger.held_until("p", 2_000), None);
        assert_eq!(stagger.sent(&prefix, 2_000), Some(round));
        assert_eq!(stagger.held_until("p", 2_000), Some(5_000));
        stagger.ended("p", round);
        let later = stagger.sent(&prefix, 6_000).unwrap();
        assert_ne!(later, round);
        assert_eq!(stagger.held_until("p", 6_000), Some(11_000));
        stagger.ended("p", round);
        assert_eq!(
            stagger.held_until("p", 6_000),
            Some(11_000),
            "a late end of an old round changes nothing"
        );
    }

    #[test]
    fn prefixes_that_no_longer_matter_are_forgotten() {
        let mut stagger = Stagger::default();
        for number in 0..1_000_u64 {
            let prefix: Arc<str> = format!("p{number}").into();
            stagger.sent(&prefix, number * 10_000);
            stagger.began(&prefix, number * 10_000);
        }
        assert!(stagger.prefixes.len() <= 31, "{}", stagger.prefixes.len());
    }
}
