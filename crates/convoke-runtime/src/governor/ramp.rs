//! How fast the window is opened: by the time for which it was full without a refusal, and by what the
//! headers say is left. It grows by a share of itself, so that a thousand requests are under way within a
//! minute although no reply has ended yet. It never waits.

use convoke_claude::{Bucket, RateLimits};

/// The milliseconds in which a full window grows by its own size, if it went on by the same steps: it doubles
/// in seven tenths of that.
const GROWS_IN: u64 = 10_000;
/// The same where the headers say that most of what a minute allows is left.
const GROWS_IN_PLENTY: u64 = 5_000;
/// The same after a refusal that was about the window.
const RECOVERS_IN: u64 = 60_000;
/// The window is not looked at more often than this only because time has passed.
const LOOKS: u64 = 25;

/// What headers say of what is left, of everything that they tell about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Left {
    /// Nothing was told, or neither of the others.
    #[default]
    Some,
    /// At least half of each.
    Most,
    /// Less than a fifth of one: more at once would only be refused sooner.
    Little,
}

/// How long the window has been full, and what is left.
#[derive(Debug, Default)]
pub(super) struct Ramp {
    /// Up to when time has been counted.
    since: u64,
    left: Left,
}

/// The window, as far as its growth depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    /// How many may be under way at once.
    pub(super) window: usize,
    /// Up to where it may grow by time.
    pub(super) most: usize,
    /// Whether it is full, and more requests wait for it to open.
    pub(super) is_full: bool,
    /// Whether it was cut by a refusal.
    pub(super) careful: bool,
}

impl Ramp {
    /// The headers of a response, whatever its status.
    pub(super) fn hear(&mut self, limits: &RateLimits) {
        let told = [&limits.requests, &limits.tokens, &limits.input_tokens, &limits.output_tokens];
        let told = || told.into_iter().flatten().filter(|bucket| bucket.limit > 0);
        let share = |bucket: &Bucket, parts: u64| bucket.remaining.saturating_mul(parts) >= bucket.limit;
        self.left = if !told().all(|bucket| share(bucket, 5)) {
            Left::Little
        } else if told().next().is_some() && told().all(|bucket| share(bucket, 2)) {
            Left::Most
        } else {
            Left::Some
        };
    }

    /// Whether headers rule out that more go at once.
    pub(super) fn is_held(&self) -> bool {
        self.left == Left::Little
    }

    /// A refusal: the time that counts begins anew.
    pub(super) fn refused(&mut self, now: u64) {
        self.since = now;
    }

    /// By how many the window grows for the time that has passed while it was like this.
    pub(super) fn pass(&mut self, opening: Opening, now: u64) -> usize {
        let mut grown = 0;
        while let Some(due) = self.due(Opening { window: opening.window + grown, ..opening }) {
            if due > now {
                return grown;
            }
            self.since = due;
            grown += 1;
        }
        self.since = now;
        grown
    }

    /// When to look again, if the window grows by time and nothing else happens.
    pub(super) fn looks_at(&self, opening: Opening, now: u64) -> Option<u64> {
        self.due(opening).map(|due| due.max(now.saturating_add(LOOKS)))
    }

    /// When the window is one larger, if it grows by time.
    fn due(&self, opening: Opening) -> Option<u64> {
        let Opening { window, most, is_full, careful } = opening;
        if !is_full || window >= most || self.is_held() {
            return None;
        }
        let grows_in = match (careful, self.left) {
            (true, _) => RECOVERS_IN,
            (false, Left::Most) => GROWS_IN_PLENTY,
            (false, Left::Some | Left::Little) => GROWS_IN,
        };
        Some(self.since.saturating_add((grows_in / window.max(1) as u64).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Opening = Opening { window: 10, most: 1_000, is_full: true, careful: false };

    fn told(remaining: u64) -> Option<Bucket> {
        Some(Bucket { limit: 1_000, remaining, reset_at: None })
    }

    #[test]
    fn a_full_window_grows_by_a_share_of_itself_and_one_that_is_not_full_does_not() {
        // From ten on: the window after so many seconds.
        let check = |limits: RateLimits, opening: Opening, seconds: u64, expected: std::ops::Range<usize>| {
            let mut ramp = Ramp::default();
            ramp.hear(&limits);
            let grown = ramp.pass(opening, seconds * 1_000);
            assert!(expected.contains(&(opening.window + grown)), "{limits:?} {opening:?}: {grown}");
            assert_eq!(ramp.pass(opening, seconds * 1_000), 0, "no time has passed");
        };
        let none = RateLimits::default;
        check(none(), FULL, 7, 19..22);
        check(none(), FULL, 14, 38..43);
        check(none(), FULL, 50, 1_000..1_001);
        check(none(), Opening { careful: true, ..FULL }, 42, 19..22);
        check(none(), Opening { is_full: false, ..FULL }, 600, 10..11);
        check(none(), Opening { most: 10, ..FULL }, 600, 10..11);
        check(RateLimits { requests: told(900), tokens: told(500), ..none() }, FULL, 7, 38..43);
        check(RateLimits { requests: told(900), tokens: told(499), ..none() }, FULL, 7, 19..22);
        check(RateLimits { requests: told(900), output_tokens: told(199), ..none() }, FULL, 600, 10..11);
        check(RateLimits { requests: told(200), ..none() }, FULL, 7, 19..22);
    }

    #[test]
    fn time_in_which_the_window_was_not_full_or_was_refused_is_not_made_up_for() {
        let mut ramp = Ramp::default();
        assert_eq!(ramp.pass(Opening { is_full: false, ..FULL }, 60_000), 0);
        assert_eq!(ramp.looks_at(FULL, 60_000), Some(61_000), "ten grow to twenty in ten such steps");
        assert_eq!(ramp.pass(FULL, 60_999), 0);
        ramp.refused(60_999);
        assert_eq!((ramp.pass(FULL, 61_998), ramp.pass(FULL, 61_999)), (0, 1));
        assert_eq!(ramp.looks_at(Opening { window: 900, ..FULL }, 61_999), Some(61_999 + LOOKS));
        assert_eq!(ramp.looks_at(Opening { is_full: false, ..FULL }, 61_999), None);
    }
}
