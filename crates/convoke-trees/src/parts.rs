//! Steps: what changed since the last one is parted by what agents have claimed, and recorded. What is
//! claimed by others waits for the end of their windows; what is not claimed comes from outside.

use std::path::{Path, PathBuf};

use crate::claims::{Claims, Hold, Place};
use crate::error::Error;
use crate::keeper::Keeper;
use crate::steps::StepCause;
use crate::store::ObjectId;
use crate::tree::{LeftOut, TreeChange, copy_index};
use crate::turn::Turn;

/// What is recorded of all that has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'a> {
    /// Everything.
    All,
    /// What is in no window.
    Unclaimed,
    /// What a window has claimed, and what is in none as a step from outside before it.
    Window {
        name: &'a str,
        /// What is its too, if no other has claimed it: files that something it left running has open.
        held: &'a [PathBuf],
        /// Only what lies at these places; everything if there are none.
        within: &'a [Place],
    },
}

/// A step that is to be recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Making<'a> {
    pub(crate) by: &'a StepCause,
    pub(crate) note: &'a str,
    pub(crate) part: Part<'a>,
    /// The agent that takes these places over.
    pub(crate) taker: Option<&'a str>,
}

impl<'a> Making<'a> {
    pub(crate) fn new(by: &'a StepCause, note: &'a str, part: Part<'a>) -> Self {
        Self { by, note, part, taker: None }
    }

    /// Of all that a window has claimed.
    pub(crate) fn of_window(by: &'a StepCause, note: &'a str, name: &'a str) -> Self {
        Self::new(by, note, Part::Window { name, held: &[], within: &[] })
    }
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The changes of the step itself, without those from outside.
    pub(crate) changes: Vec<TreeChange>,
    pub(crate) left_out: Vec<LeftOut>,
    /// The commit before the run, and its latest step now.
    pub(crate) before: ObjectId,
    pub(crate) tip: ObjectId,
    /// How long the file of the window was when its claims were read.
    pub(crate) length: usize,
}

/// The claims at one moment, as seen from the step that is made.
struct Claimed<'a> {
    part: Part<'a>,
    windows: Vec<(String, Claims)>,
    length: usize,
}

/// To what a change belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Mine,
    Outside,
    /// It is recorded later, when its window is closed.
    Left,
}

impl Claimed<'_> {
    /// The window to which a path belongs. One that has lost it comes last: it may go on writing there.
    fn window_of(&self, path: &Path) -> Option<&str> {
        let find = |hold: Hold| {
            let found = self.windows.iter().filter(|(_, claims)| claims.of(path) == Some(hold));
            let mut names = found.map(|(name, _)| name.as_str());
            let own = |name: &&str| matches!(self.part, Part::Window { name: own, .. } if own == *name);
            let first = names.next()?;
            Some(std::iter::once(first).chain(names).find(own).unwrap_or(first))
        };
        let held = || match self.part {
            Part::Window { name, held, .. } if held.iter().any(|held| held == path) => Some(name),
            _ => None,
        };
        find(Hold::Held).or_else(held).or_else(|| find(Hold::Lost))
    }

    fn side(&self, path: &Path) -> Side {
        match (self.part, self.window_of(path)) {
            (Part::All, _) | (Part::Unclaimed, None) => Side::Mine,
            (Part::Window { name, within, .. }, Some(owner)) if name == owner => {
                if within.is_empty() || within.iter().any(|place| place.covers(path)) {
                    Side::Mine
                } else {
                    Side::Left
                }
            }
            (_, Some(_)) => Side::Left,
            (Part::Window { .. }, None) => Side::Outside,
        }
    }

    /// The latest step when the command of this window began.
    fn since(&self) -> Option<&str> {
        let Part::Window { name, .. } = self.part else { return None };
        self.windows.iter().find(|(other, _)| other == name)?.1.since.as_deref()
    }
}

impl Keeper {
    /// Records what changed since the last step; no change is no step.
    pub(crate) async fn step(&self, making: &Making<'_>, turn: &Turn) -> Result<Recorded, Error> {
        turn.check()?;
        // A step may change what is ignored.
        self.own.get().ignored.clear();
        let hidden = self.record().hidden()?;
        // What others are writing is not read: it would be read in vain, and it does not stand still.
        let claimed = self.claimed(making.part, turn).await?;
        let snapshot = self.snapshot(&hidden, |path| claimed.side(path) == Side::Left).await?;
        let Some(chain) = self.chain().await? else {
            return Err(Error::NotKept { run: self.run().to_owned(), dir: self.store().dir().to_owned() });
        };
        // Read again, because a place may have been claimed and written meanwhile.
        let claimed = self.claimed(making.part, turn).await?;
        let mut tree = snapshot.tree;
        let (mut mine, mut outside, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for change in self.store().diff_trees(&chain.tree, &tree).await? {
            match claimed.side(&change.path) {
                Side::Mine => mine.push(change),
                Side::Outside => outside.push(change),
                Side::Left => left.push(change),
            }
        }
        let index = self.record().index();
        self.stops.step().await;
        if !left.is_empty() {
            tree = self.store().put_back(&index, &left).await?;
        }
        if *making.by == StepCause::Outside {
            outside.append(&mut mine);
        }
        self.remember_modes(outside.iter().map(|change| change.path.as_path()))?;
        let seen = self.ignored_before(&chain.tree, &mine).await?;
        if !seen.is_empty() {
            // They may have been there all along, so they are not the agent's: undo must never remove them.
            self.stops.step().await;
            tree = self.store().forget_paths(&index, &seen).await?;
            self.record().set_hidden(&[hidden, seen.clone()].concat())?;
            mine.retain(|change| !seen.contains(&change.path));
        }
        self.stops.step().await;
        let mut tip = chain.tip.clone();
        if !outside.is_empty() {
            let tree = if mine.is_empty() { tree.clone() } else { self.tree_without(&mine).await? };
            tip = self.store().commit_tree(&tree, &[&tip], &StepCause::Outside.message("")).await?;
        }
        self.stops.step().await;
        if !mine.is_empty() {
            tip = self.store().commit_tree(&tree, &[&tip], &making.by.message(making.note)).await?;
            self.stops.step().await;
            // Before the step counts: after a crash in between it is made again and told again.
            self.tell_overlaps(making, claimed.since(), &chain.tip, &tip, &mine, turn).await?;
        }
        if tip != chain.tip {
            let old = (chain.tip != chain.before).then_some(chain.tip.as_str());
            // A process that stood still since it looked has nothing to record any more.
            turn.check()?;
            self.stops.step().await;
            self.record().set_tip(&tip)?;
            self.stops.step().await;
            self.store().update_ref(&self.name("after"), &tip, old).await?;
            self.stops.step().await;
        }
        let changes = if *making.by == StepCause::Outside { outside } else { mine };
        let left_out = snapshot.left_out;
        Ok(Recorded { changes, left_out, before: chain.before, tip, length: claimed.length })
    }

    /// The tree of the index without these changes.
    async fn tree_without(&self, changes: &[TreeChange]) -> Result<ObjectId, Error> {
        let scratch = self.record().scratch()?;
        let index = scratch.path().join("index");
        copy_index(&self.record().index(), &index)?;
        self.store().put_back(&index, changes).await
    }

    async fn claimed<'a>(&self, part: Part<'a>, turn: &Turn) -> Result<Claimed<'a>, Error> {
        let mut claiming = self.claiming(turn.actor()).await?;
        let seen = claiming.look()?;
        let length = match part {
            Part::Window { name, .. } => seen.get(name).map_or(0, |window| window.length()),
            _ => 0,
        };
        let windows = seen.iter().map(|(name, window)| (name.clone(), window.claims.clone())).collect();
        Ok(Claimed { part, windows, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Line;

    fn claims(held: &[&str], lost: &[&str]) -> Claims {
        let mut claims = Claims::default();
        for path in held.iter().chain(lost) {
            claims.apply(Line::Claim(Place::file(path)));
        }
        for path in lost {
            claims.apply(Line::Lose(Place::file(path)));
        }
        claims
    }

    #[track_caller]
    fn check(part: Part<'_>, sides: &[(&str, Side)]) {
        let windows = vec![
            ("a_1".to_owned(), claims(&["one"], &["moved", "left"])),
            ("a_2".to_owned(), claims(&["two", "moved"], &[])),
        ];
        let claimed = Claimed { part, windows, length: 0 };
        for (path, side) in sides {
            assert_eq!(claimed.side(Path::new(path)), *side, "{part:?} {path}");
        }
    }

    #[test]
    fn a_change_belongs_to_the_window_that_has_claimed_its_place() {
        use Side::{Left, Mine, Outside};
        let part = |name| Part::Window { name, held: &[], within: &[] };
        check(part("a_1"), &[("one", Mine), ("two", Left), ("moved", Left), ("left", Mine), ("x", Outside)]);
        check(part("a_2"), &[("one", Left), ("two", Mine), ("moved", Mine), ("left", Left), ("x", Outside)]);
        let all = [("one", Left), ("two", Left), ("moved", Left), ("left", Left), ("x", Mine)];
        check(Part::Unclaimed, &all);
        check(Part::All, &all.map(|(path, _)| (path, Mine)));
    }

    #[test]
    fn what_is_held_open_is_its_windows_unless_another_has_claimed_it() {
        let held = ["two".into(), "log".into()];
        let part = Part::Window { name: "a_1", held: &held, within: &[] };
        check(part, &[("log", Side::Mine), ("two", Side::Left)]);
    }

    #[test]
    fn only_the_places_that_are_asked_for_are_recorded() {
        let within = [Place::file("one")];
        let part = Part::Window { name: "a_1", held: &[], within: &within };
        check(part, &[("one", Side::Mine), ("left", Side::Left), ("x", Side::Outside)]);
    }
}
