//! What refusals say about the server beyond the one request that was refused: whether all requests are to
//! leave it alone for a while, and when it is given up. Pure: it is told the time, and its chance comes from
//! a seed.
//!
//! A refusal is about one conversation. That conversation waits as its kernel decides (`retry_at`), and no
//! other does. Only when a whole round of different conversations was refused and nothing was taken in
//! between do all of them pause.

use std::collections::BTreeSet;

use super::{GivenUp, Why};

/// At least so many different conversations make a round: so many probes go between two pauses.
pub(super) const PROBES: usize = 3;
/// The pauses of all requests: the first, and the longest it doubles to. Up to a quarter is added by chance.
const PAUSES: (u64, u64) = (1_000, 8_000);
/// The longest pause of all requests when the server has told each of a round how long to wait, or its
/// headers say it of all.
pub(super) const LONGEST_TOLD: u64 = 60_000;
/// A server that has taken nothing for this long is given up. What waits or sleeps then ends within the
/// minute after it, so that a lasting overload ends within five minutes.
const LASTING: u64 = 4 * 60_000;
/// After this long without a refusal a new one is a new beginning. No request waits so long between two
/// tries.
const QUIET: u64 = 90_000;

/// A request that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The conversation.
    pub(super) who: String,
    pub(super) why: Why,
    /// How long the server wants to be left alone by it, if it says.
    pub(super) told: Option<u64>,
}

/// The refusals since the server last took something, and the pause that follows from them.
#[derive(Debug)]
pub(super) struct Refusals {
    spell: Option<RefusalPeriod>,
    pause: Option<Pause>,
    dice: Dice,
}

/// A time in which everything was refused.
#[derive(Debug)]
struct RefusalPeriod {
    /// Since when the server has refused without saying for how long.
    since: Option<u64>,
    last: u64,
    refused: u64,
    pauses: u32,
    /// The conversations of this round, and how many of them make it whole.
    round: BTreeSet<String>,
    whole: usize,
    /// The earliest time that the server told one of them, while it has told all of them one.
    told: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    from: u64,
    until: u64,
    why: Why,
    /// Whether the server's headers said it of all requests: then a reply that begins does not lift it.
    by_headers: bool,
}

impl Refusals {
    /// Nothing has been refused. The seed is where chance comes from.
    pub(super) fn new(seed: u64) -> Self {
        Self { spell: None, pause: None, dice: Dice(seed) }
    }

    /// The server has taken a request.
    pub(super) fn took_one(&mut self) {
        self.spell = None;
        self.pause = self.pause.filter(|pause| pause.by_headers);
    }

    /// The server has refused one. `window`: how many were allowed at once when it went.
    pub(super) fn refused(&mut self, refusal: Refusal, window: usize, now: u64) -> Option<GivenUp> {
        let Refusal { who, why, told } = refusal;
        // A machine's clock may be set back; then it is a new beginning too.
        let spell =
            self.spell.take().filter(|spell| (spell.last..spell.last.saturating_add(QUIET)).contains(&now));
        let mut spell = spell.unwrap_or_else(|| RefusalPeriod::new(window, now));
        spell.last = now;
        spell.refused += 1;
        // A limit that says when is no reason to give up; a server that has too much to do may say anything.
        spell.since = match (why, told) {
            (Why::Limited, Some(_)) => None,
            _ => Some(spell.since.unwrap_or(now)),
        };
        let told = told.map(|wait| now.saturating_add(wait));
        spell.told = if spell.round.is_empty() { told } else { spell.told.zip(told).map(|(a, b)| a.min(b)) };
        spell.round.insert(who);
        let lasted = spell.since.map_or(0, |since| now.saturating_sub(since));
        let given_up = (lasted >= LASTING).then_some(GivenUp { ms: lasted, refused: spell.refused, why });
        if spell.round.len() >= spell.whole {
            let own = self.dice.more(doubled(PAUSES, spell.pauses));
            let told = spell.told.map_or(0, |until| until.saturating_sub(now)).min(LONGEST_TOLD);
            spell.pauses = spell.pauses.saturating_add(1);
            spell.round.clear();
            spell.whole = window.max(PROBES);
            self.spell = Some(spell);
            self.leave_alone(own.max(told), why, false, now);
        } else {
            self.spell = Some(spell);
        }
        given_up
    }

    /// Headers have said of all requests that nothing is left for this long.
    pub(super) fn told_all(&mut self, wait: u64, now: u64) {
        self.leave_alone(wait.min(LONGEST_TOLD), Why::Limited, true, now);
    }

    /// Whether more than one conversation was refused since the server last took something.
    pub(super) fn of_several(&self) -> bool {
        self.spell.as_ref().is_some_and(|spell| spell.round.len() > 1 || spell.pauses > 0)
    }

    /// How many whole rounds were refused since the server last took something; `None` if nothing was
    /// refused.
    pub(super) fn rounds(&self) -> Option<u32> {
        self.spell.as_ref().map(|spell| spell.pauses)
    }

    /// Until when no request goes, and why.
    pub(super) fn paused(&self, now: u64) -> Option<(u64, Why)> {
        // A machine's clock may be set back; a pause that has not begun yet is one of those that are over.
        self.pause
            .filter(|pause| (pause.from..pause.until).contains(&now))
            .map(|pause| (pause.until, pause.why))
    }

    fn leave_alone(&mut self, wait: u64, why: Why, by_headers: bool, now: u64) {
        let until = now.saturating_add(wait);
        let current = self.pause.filter(|_| self.paused(now).is_some());
        self.pause = Some(match current {
            Some(longer) if longer.until >= until => Pause { from: now, ..longer },
            _ => Pause { from: now, until, why, by_headers },
        });
    }
}

impl RefusalPeriod {
    fn new(window: usize, now: u64) -> Self {
        let round = BTreeSet::new();
        let whole = window.max(PROBES);
        Self { since: None, last: now, refused: 0, pauses: 0, round, whole, told: None }
    }
}

/// Numbers that look random and follow from a seed: agents of many processes do not come back together, and a
/// test knows when.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    /// This much, and up to a quarter more.
    fn more(&mut self, least: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33;
        least + mixed % (least / 4 + 1)
    }
}

fn doubled((first, longest): (u64, u64), times: u32) -> u64 {
    first.saturating_mul(1_u64.checked_shl(times.min(32)).unwrap_or(u64::MAX)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(who: usize, why: Why, told: Option<u64>) -> Refusal {
        Refusal { who: format!("c{who}"), why, told }
    }

    /// Refuses this many different conversations at once; says for how long all pause after it.
    fn refuse(refusals: &mut Refusals, many: usize, why: Why, told: Option<u64>, now: u64) -> Option<u64> {
        for who in 0..many {
            refusals.refused(refusal(who, why, told), 4, now);
        }
        refusals.paused(now).map(|(until, _)| until - now)
    }

    #[test]
    fn one_conversation_pauses_nobody_else_however_often_it_is_refused() {
        let mut refusals = Refusals::new(1);
        for now in (0..100_000).step_by(1_000) {
            refusals.refused(refusal(7, Why::Overloaded, None), 4, now);
            refusals.refused(refusal(7, Why::Limited, Some(3_600_000)), 4, now);
            assert_eq!(refusals.paused(now), None);
        }
        assert!(!refusals.of_several());
    }

    #[test]
    fn a_whole_round_of_refusals_pauses_everybody_and_a_reply_lifts_it() {
        let mut refusals = Refusals::new(1);
        assert_eq!(refuse(&mut refusals, 3, Why::Overloaded, None, 0), None, "the window was four");
        let pause = refuse(&mut refusals, 4, Why::Overloaded, None, 0).unwrap();
        assert!((1_000..=1_250).contains(&pause), "{pause}");
        assert_eq!(refusals.paused(0).unwrap().1, Why::Overloaded);
        refusals.took_one();
        assert_eq!(refusals.paused(0), None);
        assert_eq!(refuse(&mut refusals, 3, Why::Overloaded, None, 0), None, "it begins anew");
    }

    #[test]
    fn pauses_double_up_to_eight_seconds_with_up_to_a_quarter_more_by_chance() {
        let pauses = |seed: u64| {
            let mut refusals = Refusals::new(seed);
            let mut now = 0;
            let mut pauses = Vec::new();
            for _ in 0..6 {
                let pause = refuse(&mut refusals, 4, Why::Overloaded, None, now).unwrap();
                pauses.push(pause);
                now += pause;
            }
            pauses
        };
        for seed in 0..50 {
            for (pause, least) in pauses(seed).into_iter().zip([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]) {
                assert!((least..=least * 5 / 4).contains(&pause), "{pause} instead of {least}");
            }
        }
        assert_eq!(pauses(3), pauses(3));
        assert_ne!(pauses(3), pauses(4));
    }

    #[test]
    fn what_a_whole_round_was_told_is_obeyed_by_all_up_to_a_minute() {
        let check = |told: u64, expected: u64| {
            let mut refusals = Refusals::new(1);
            refusals.refused(refusal(9, Why::Limited, Some(told + 5_000)), 4, 0);
            assert_eq!(refuse(&mut refusals, 3, Why::Limited, Some(told), 0), Some(expected), "{told}");
        };
        check(20_000, 20_000);
        check(3_600_000, 60_000);
        let mut refusals = Refusals::new(1);
        refusals.refused(refusal(9, Why::Limited, None), 4, 0);
        let pause = refuse(&mut refusals, 3, Why::Limited, Some(20_000), 0).unwrap();
        assert!(pause <= 1_250, "not all were told: {pause}");
    }

    #[test]
    fn headers_that_speak_of_all_pause_all_for_at_most_a_minute_whatever_begins_meanwhile() {
        let mut refusals = Refusals::new(1);
        refusals.told_all(9_000, 0);
        refusals.told_all(4_000, 0);
        refusals.took_one();
        assert_eq!(refusals.paused(0), Some((9_000, Why::Limited)));
        refusals.told_all(3_600_000, 0);
        assert_eq!((refusals.paused(59_999).is_some(), refusals.paused(60_000)), (true, None));
    }

    #[test]
    fn a_server_that_takes_nothing_for_four_minutes_is_given_up_unless_it_says_when() {
        // How often it refuses, what it says, and when it is given up.
        let check = |every: u64, why: Why, told: Option<u64>, expected: Option<u64>| {
            let mut refusals = Refusals::new(1);
            let refused = |now: &u64| refusals.refused(refusal(0, why, told), 4, *now).is_some();
            assert_eq!((0..20).map(|number| number * every).find(refused), expected, "{why:?} {told:?}");
        };
        check(32_000, Why::Overloaded, None, Some(256_000));
        check(30_000, Why::Overloaded, Some(30_000), Some(240_000));
        check(30_000, Why::Limited, None, Some(240_000));
        check(60_000, Why::Limited, Some(60_000), None);
        check(95_000, Why::Overloaded, None, None);
        let mut refusals = Refusals::new(1);
        for now in [0, 60_000, 120_000] {
            refusals.refused(refusal(0, Why::Overloaded, None), 4, now);
        }
        refusals.took_one();
        for now in [180_000, 250_000] {
            assert_eq!(
                refusals.refused(refusal(0, Why::Overloaded, None), 4, now),
                None,
                "it took one in between"
            );
        }
    }
}
