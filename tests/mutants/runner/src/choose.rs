//! The order in which mutants are run, and the tenth of them that runs in CI.

use crate::Mutant;

/// Sorts mutants so that neighbours build as much alike as can be: by what is tested, then by the files they
/// change.
pub fn in_order(mutants: &mut [Mutant]) {
    mutants.sort_by_cached_key(|mutant| {
        let paths: Vec<String> = mutant.edits.iter().map(|edit| edit.path.clone()).collect();
        (mutant.test.selection.clone(), mutant.postgres, paths, mutant.name.clone())
    });
}

/// The ordered mutants are cut into this many slices, and [`CHOSEN`] of them make a tenth.
const SLICES: usize = 20;

/// One for each of the two that work at the same time by default.
const CHOSEN: usize = 2;

/// About a tenth of the mutants: two slices of neighbours, drawn with the seed. Each mutant is drawn as
/// likely as any other. Neighbours rather than single ones, because the time goes into building what a mutant
/// changed and what depends on it, and neighbours share most of that.
#[must_use]
pub fn tenth(mut mutants: Vec<Mutant>, seed: u64) -> Vec<Mutant> {
    in_order(&mut mutants);
    let count = mutants.len();
    let slice_of = |index: usize| index * SLICES / count.max(1);
    let mut random = Random(seed);
    let mut slices: Vec<usize> = (0..SLICES).collect();
    let chosen: Vec<usize> = (0..CHOSEN).map(|_| slices.swap_remove(random.below(slices.len()))).collect();
    let numbered = mutants.into_iter().enumerate();
    numbered.filter(|(index, _)| chosen.contains(&slice_of(*index))).map(|(_, mutant)| mutant).collect()
}

/// splitmix64: a few lines instead of a dependency, and the same draw from the same seed on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit.max(1) as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn mutant(name: &str, package: &str, path: &str) -> Mutant {
        let text =
            format!("# breaks: b\n# test: -p {package} --lib t\nin: {path}\nfind:\n    a\nput:\n    b\n");
        Mutant::parse(name, &text).unwrap()
    }

    fn many() -> Vec<Mutant> {
        (0..212)
            .map(|n| mutant(&format!("m{n}"), ["one", "two"][n % 2], ["x.rs", "y.rs", "z.rs"][n % 3]))
            .collect()
    }

    #[test]
    fn neighbours_share_their_test_and_their_file() {
        let mut mutants = vec![
            mutant("a", "two", "x.rs"),
            mutant("b", "one", "y.rs"),
            mutant("d", "two", "x.rs"),
            mutant("c", "one", "x.rs"),
        ];
        in_order(&mut mutants);
        assert_eq!(
            mutants.iter().map(|mutant| mutant.name.as_str()).collect::<Vec<_>>(),
            ["c", "b", "a", "d"]
        );
    }

    #[test]
    fn a_seed_draws_the_same_tenth_again() {
        let names = |seed| tenth(many(), seed).into_iter().map(|mutant| mutant.name).collect::<Vec<_>>();
        assert_eq!(names(7), names(7));
        assert!((1..9).map(names).collect::<BTreeSet<_>>().len() > 4);
        assert!((20..=22).contains(&names(7).len()), "{}", names(7).len());
        assert_eq!(names(7).iter().collect::<BTreeSet<_>>().len(), names(7).len());
    }

    #[test]
    fn every_mutant_is_drawn_about_as_often_as_any_other() {
        let mut drawn: BTreeMap<String, u32> = BTreeMap::new();
        for seed in 0..500 {
            for mutant in tenth(many(), seed) {
                *drawn.entry(mutant.name).or_default() += 1;
            }
        }
        assert_eq!(drawn.len(), 212);
        assert!(
            drawn.values().all(|times| (20..90).contains(times)),
            "{:?}",
            drawn.values().collect::<BTreeSet<_>>()
        );
    }

    #[test]
    fn few_mutants_have_a_tenth_too() {
        assert!(tenth(Vec::new(), 1).is_empty());
        assert!(tenth(vec![mutant("a", "one", "x.rs")], 1).len() <= 1);
    }
}
