//! What an attempt is, what it came to, and the table of all of them. It knows nothing of how one is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::pin::Pin;

/// One thing that an opponent tries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    /// What it does, in a few words. Names are unique.
    pub(crate) name: &'static str,
    /// What of Convoke's own doing is under attack.
    pub(crate) family: &'static str,
    /// What is seen when it has won.
    pub(crate) wins: &'static str,
}

/// The side that has to withstand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Plain git and plain files by path, as one would write it without an opponent in mind.
    Twin,
    /// The binary that was built with this test.
    Now,
    /// The binary from before the doors were closed.
    Old,
}

/// Where an attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) side: Side,
    /// What `--sandbox-layers` says. The twin has none, and is tried once.
    pub(crate) layers: &'static str,
    /// How many times a race is tried.
    pub(crate) tries: u32,
    pub(crate) seed: u64,
}

/// What an attempt came to.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) name: &'static str,
    pub(crate) tries: u32,
    pub(crate) won: u32,
    /// What was seen, for a person who has to find out why.
    pub(crate) seen: String,
}

impl Came {
    /// One try.
    pub(crate) fn once(name: &'static str, won: bool, seen: impl Into<String>) -> Self {
        Self { name, tries: 1, won: u32::from(won), seen: seen.into() }
    }
}

type Playing = Pin<Box<dyn Future<Output = Vec<Came>> + Send>>;

/// One place in which several attempts are made that do not disturb each other.
pub(crate) struct Scene {
    pub(crate) attempts: Vec<Attempt>,
    /// How many others it is not played beside: what is a matter of microseconds needs a processor.
    pub(crate) weight: u32,
    play: Box<dyn Fn(Cell) -> Playing + Send + Sync>,
}

impl Scene {
    pub(crate) fn new<F>(attempts: Vec<Attempt>, play: impl Fn(Cell) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<Came>> + Send + 'static,
    {
        Self { attempts, weight: 1, play: Box::new(move |cell| Box::pin(play(cell))) }
    }

    /// One that needs a processor to itself.
    pub(crate) fn alone<F>(attempts: Vec<Attempt>, play: impl Fn(Cell) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<Came>> + Send + 'static,
    {
        Self { weight: 4, ..Self::new(attempts, play) }
    }

    /// Plays it, and insists that every attempt came to something.
    pub(crate) async fn play(&self, cell: Cell) -> Vec<Came> {
        let came = (self.play)(cell).await;
        let names: BTreeSet<&str> = came.iter().map(|came| came.name).collect();
        let wanted: BTreeSet<&str> = self.attempts.iter().map(|attempt| attempt.name).collect();
        assert_eq!(names, wanted, "{cell:?}: every attempt of a scene comes to something");
        came
    }
}

/// Everything that was tried in one session.
#[derive(Debug, Default)]
pub(crate) struct Book {
    came: BTreeMap<(&'static str, Cell), Came>,
}

impl Book {
    pub(crate) fn note(&mut self, cell: Cell, came: Vec<Came>) {
        self.came.extend(came.into_iter().map(|came| ((came.name, cell), came)));
    }

    fn sum(&self, name: &str, side: Side) -> (u32, u32) {
        let of = self.came.iter().filter(|((other, cell), _)| *other == name && cell.side == side);
        of.fold((0, 0), |(won, tries), (_, came)| (won + came.won, tries + came.tries))
    }

    /// A line for each attempt, then a line for each family.
    pub(crate) fn table(&self, attempts: &[Attempt]) -> String {
        let mut text = String::new();
        let mut families: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
        for attempt in attempts {
            families.entry(attempt.family).or_default().push(attempt);
            let [twin, now, old] =
                [Side::Twin, Side::Now, Side::Old].map(|side| self.sum(attempt.name, side));
            let _ = write!(text, "{}/{}: {} of {} won", attempt.family, attempt.name, now.0, now.1);
            let _ = write!(text, ", twin {} of {}", twin.0, twin.1);
            if old.1 > 0 {
                let _ = write!(text, ", old binary {} of {}", old.0, old.1);
            }
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "\n{:<12} {:>8} {:>6} {:>6} {:>9} {:>10} {:>9}",
            "family", "attempts", "tries", "won", "twin won", "old tries", "old won"
        );
        let mut total = [0; 6];
        for (family, attempts) in &families {
            let sums = |side| {
                let all = attempts.iter().map(|attempt| self.sum(attempt.name, side));
                all.fold((0, 0, 0), |(won, tries, any), one| {
                    (won + one.0, tries + one.1, any + u32::from(one.0 > 0))
                })
            };
            let twin = sums(Side::Twin);
            let now = sums(Side::Now);
            let old = sums(Side::Old);
            let row = [u32::try_from(attempts.len()).unwrap(), now.1, now.2, twin.2, old.1, old.2];
            total.iter_mut().zip(row).for_each(|(sum, one)| *sum += one);
            push_row(&mut text, family, row);
        }
        push_row(&mut text, "all", total);
        text.push_str("won, twin won and old won count attempts that won at least one try\n");
        text
    }

    /// What must not be: an attempt that won, and one that does not even win against the twin.
    pub(crate) fn wrong(&self, attempts: &[Attempt]) -> Vec<String> {
        let mut wrong = Vec::new();
        for attempt in attempts {
            let twin = self.sum(attempt.name, Side::Twin);
            if twin.0 == 0 {
                let seen = self
                    .came
                    .iter()
                    .find(|((name, cell), _)| *name == attempt.name && cell.side == Side::Twin);
                let seen = seen.map_or("it was not tried", |(_, came)| came.seen.as_str());
                wrong.push(format!(
                    "{}: does not count, it does not win against its twin: {seen}",
                    attempt.name
                ));
            }
            for ((_, cell), came) in self.came.iter().filter(|((name, cell), came)| {
                *name == attempt.name && cell.side == Side::Now && came.won > 0
            }) {
                let won = came.won;
                let tries = came.tries;
                let layers = cell.layers;
                wrong.push(format!(
                    "{} won {won} of {tries} with {layers} ({}): {}",
                    attempt.name, attempt.wins, came.seen
                ));
            }
        }
        wrong
    }
}

fn push_row(text: &mut String, family: &str, row: [u32; 6]) {
    let [attempts, tries, won, twin, old_tries, old] = row;
    let _ =
        writeln!(text, "{family:<12} {attempts:>8} {tries:>6} {won:>6} {twin:>9} {old_tries:>10} {old:>9}");
}
