//! How the answers of one way through a program are drawn, and what drawing them showed. Pure.

use super::bill::Assumed;

/// How many options of one choice are gone through.
const MOST_CHOICES: usize = 8;
/// Seeds of the ways on which every answer draws for itself, so that branches that several answers open
/// together are seen too.
const SEEDS: u64 = 4;

/// Items of a list that may have any number of them.
pub(super) const PLENTY: u64 = 3;

/// How the answers of one way are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Draw {
    /// Whether lists, numbers and texts are long.
    pub(super) long: bool,
    /// How many items or lines a long list or text has where nothing sets a limit.
    pub(super) plenty: u64,
    /// Which of several.
    pub(super) choice: Choice,
    /// What a boolean is, unless it is drawn by chance.
    pub(super) yes: bool,
    /// What a person says to a question.
    pub(super) agrees: bool,
    /// Whether agents are dear.
    pub(super) dear: bool,
}

/// Which of several options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The same one every time, by its place.
    At(usize),
    /// Another one every time, as chance with this seed would have it.
    Drawn(u64),
}

impl Draw {
    /// As little as there can be.
    pub(super) const SHORT: Self =
        Self { long: false, plenty: PLENTY, choice: Choice::At(0), yes: false, agrees: true, dear: false };
    /// Plenty.
    pub(super) const LONG: Self = Self { long: true, yes: true, dear: true, ..Self::SHORT };

    /// What every agent is assumed to take.
    pub(super) fn assumed(self) -> Assumed {
        if self.dear { Assumed::HIGH } else { Assumed::LOW }
    }

    /// Which of so many options; `nth` counts what was drawn so far.
    pub(super) fn pick(self, options: usize, nth: u64) -> usize {
        match self.choice {
            Choice::At(place) => place % options.max(1),
            Choice::Drawn(seed) => (scattered(seed, nth) % options.max(1) as u64) as usize,
        }
    }

    /// What a boolean is; `nth` counts what was drawn so far.
    pub(super) fn flag(self, nth: u64) -> bool {
        match self.choice {
            Choice::At(_) => self.yes,
            Choice::Drawn(seed) => scattered(seed, nth).is_multiple_of(2),
        }
    }
}

fn scattered(seed: u64, nth: u64) -> u64 {
    let mut mixed =
        (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (nth + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^= mixed >> 31;
    mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
}

/// What there was to draw on the ways so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The most options of one choice.
    pub(super) choices: usize,
    /// Whether there was a boolean.
    pub(super) flags: bool,
    /// Whether a person was asked.
    pub(super) questions: bool,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.choices = self.choices.max(other.choices);
        self.flags |= other.flags;
        self.questions |= other.questions;
    }

    /// Whether there were more options than are gone through.
    pub(super) fn is_too_much(self) -> bool {
        self.choices > MOST_CHOICES
    }

    /// Every way that could come to another number of agents, by what was seen so far.
    pub(super) fn ways(self, has_budget: bool) -> Vec<Draw> {
        let mut ways = vec![Draw::SHORT, Draw::LONG];
        let both = |change: &dyn Fn(Draw) -> Draw| [Draw::SHORT, Draw::LONG].map(change);
        for place in 0..self.choices.min(MOST_CHOICES) {
            ways.extend(both(&|draw| Draw { choice: Choice::At(place), ..draw }));
            if self.flags {
                ways.extend(both(&|draw| Draw { choice: Choice::At(place), yes: !draw.yes, ..draw }));
            }
        }
        if self.flags {
            ways.extend(both(&|draw| Draw { yes: !draw.yes, ..draw }));
        }
        if self.flags || self.choices > 1 {
            ways.extend((0..SEEDS).map(|seed| Draw { choice: Choice::Drawn(seed), ..Draw::LONG }));
        }
        if self.questions {
            ways.extend(both(&|draw| Draw { agrees: false, ..draw }));
        }
        if has_budget {
            ways.extend(both(&|draw| Draw { dear: !draw.dear, ..draw }));
        }
        ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_ways_as_what_was_seen_can_open() {
        let count = |seen: Seen, budget: bool| {
            let mut ways = seen.ways(budget);
            let mut different: Vec<Draw> = Vec::new();
            ways.retain(|way| {
                let new = !different.contains(way);
                different.extend(new.then_some(*way));
                new
            });
            ways.len()
        };
        assert_eq!(count(Seen::default(), false), 2);
        assert_eq!(count(Seen { choices: 3, ..Seen::default() }, false), 2 * 3 + 4);
        assert_eq!(count(Seen { choices: 3, flags: true, questions: false }, false), 4 * 3 + 4);
        assert_eq!(count(Seen { flags: true, ..Seen::default() }, false), 4 + 4);
        assert_eq!(count(Seen { questions: true, ..Seen::default() }, true), 2 + 2 + 2);
        assert!(Seen { choices: 9, ..Seen::default() }.is_too_much());
    }

    #[test]
    fn chance_comes_to_every_option_and_to_the_same_one_again() {
        let draw = Draw { choice: Choice::Drawn(1), ..Draw::LONG };
        let drawn: Vec<usize> = (0..40).map(|nth| draw.pick(4, nth)).collect();
        assert!((0..4).all(|option| drawn.contains(&option)), "{drawn:?}");
        assert_eq!(drawn, (0..40).map(|nth| draw.pick(4, nth)).collect::<Vec<_>>());
        assert!((0..20).any(|nth| draw.flag(nth)) && !(0..20).all(|nth| draw.flag(nth)));
        assert_eq!(Draw { choice: Choice::At(5), ..Draw::SHORT }.pick(3, 9), 2);
    }
}
