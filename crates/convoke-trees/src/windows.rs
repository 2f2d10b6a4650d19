//! Windows: the time in which an agent writes, and the places that it has claimed. Agents write at the same
//! time as long as they claim different places. One that claims everything, because it is not known what it
//! will write, excludes all others.
//!
//! A place that another agent has claimed is waited for. A command that still writes it after a while has
//! what it wrote until then recorded, and the place goes to the one that waits; both are told
//! (`overlaps.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard as StdGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{MutexGuard, Notify};

use crate::claims::{Line, Place};
use crate::error::Error;
use crate::keeper::{Keeper, PERSON};
use crate::parts::{Making, Part, Recorded};
use crate::places::{HostPlaces, checked_name};
use crate::record::Record;
use crate::steps::{ChangedFile, StepCause, how};
use crate::tree::{LeftOut, TreeChange};
use crate::turn::{Actor, Mark, Turn, is_at};
use crate::window_files::{ALONE, Window, WindowFiles};

/// How long a command waits in all for places that other agents' commands are writing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The windows that one keeper has open, each with its mark, which is locked as long as the file is here.
#[derive(Debug, Default)]
pub(crate) struct OwnWindows {
    own: std::sync::Mutex<Own>,
    /// Something has ended that others may wait for.
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Own {
    marks: BTreeMap<String, Mark>,
    /// Which agents wait for which others.
    pub(crate) waiting: BTreeMap<String, BTreeSet<String>>,
    /// What git was found to ignore since the last step.
    pub(crate) ignored: BTreeSet<PathBuf>,
}

impl OwnWindows {
    pub(crate) fn get(&self) -> StdGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get().marks.contains_key(name)
    }

    /// Lets go of a window: others see that it is not open any more.
    fn let_go(&self, name: &str) {
        drop(self.get().marks.remove(name));
        self.changed.notify_waiters();
    }
}

/// The state of a record when a command began, by which it is known what other agents changed since; and for
/// how long the command has waited for them in all.
#[derive(Debug, Clone)]
pub struct Begun {
    moment: Moment,
    waited_ms: Arc<AtomicU64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Moment {
    /// Nothing was recorded yet.
    Fresh,
    At(String),
    Unknown,
}

/// What was found when a window was closed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closed {
    /// The files that the agent changed.
    pub changed: Vec<ChangedFile>,
    /// What is below the directory and cannot be kept, whether it was changed or not.
    pub left_out: Vec<LeftOut>,
}

/// The right to look at claims and to add one; it is had for a moment.
pub(crate) struct Claiming<'a> {
    files: MutexGuard<'a, WindowFiles>,
    turn: Turn,
}

impl Claiming<'_> {
    pub(crate) fn look(&mut self) -> Result<&BTreeMap<String, Window>, Error> {
        self.files.look()
    }

    /// Whether a mark is still the one that its window has.
    pub(crate) fn is_marked_by(&self, name: &str, mark: &File) -> Result<bool, Error> {
        let path = self.files.path(name);
        is_at(mark, &path).map_err(Error::file("looking at", &path))
    }

    pub(crate) fn add(&self, name: &str, lines: &[Line]) -> Result<(), Error> {
        self.turn.check()?;
        self.files.add(name, lines)
    }

    pub(crate) fn make(
        &self,
        name: &str,
        by: &StepCause,
        token: &str,
        lines: &[Line],
    ) -> Result<Mark, Error> {
        self.turn.check()?;
        self.files.make(name, by, token, lines)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        self.turn.check()?;
        self.files.remove(name)
    }
}

/// What is done about the claims of a window when something in it has ended.
#[derive(Debug, Clone, Copy)]
enum Ends<'a> {
    /// The command, and with it all that it may write.
    Command,
    /// The command; something that it left running has these files open for writing.
    Leaving(&'a [PathBuf]),
    /// The writing of these places, of which those in the second list were not claimed before.
    Places(&'a [Place], &'a [Place]),
}

impl Keeper {
    /// To be called when a command begins that asks before it writes. It goes by a file and starts no git.
    pub fn begun(places: &HostPlaces, dir: &Path, run: &str) -> Begun {
        let look = || {
            let record = Record::new(places, run, &dir.canonicalize().ok()?).ok()?;
            if !record.is_there() {
                return Some(Moment::Fresh);
            }
            record.tip().ok().flatten().map(Moment::At)
        };
        Begun::at(look().unwrap_or(Moment::Unknown))
    }

    /// To be called before a command of `actor` that may write anywhere. What changed since the last window,
    /// and is in none, was changed from outside of the run, or by a command that a crash cut off. Windows
    /// that living agents have open are waited for where there is a fence, or if they are of this keeper, and
    /// closed for a process that is fenced.
    pub async fn open_window(&self, actor: impl Into<Actor<'_>>) -> Result<(), Error> {
        self.ask(actor.into(), &[Place::everything()], None, true).await.map(drop)
    }

    /// To be called before an agent writes at these places; it may write when this returns. `during` is the
    /// command that asks, `None` if it is something that an earlier command left running. Returns what was
    /// not claimed before.
    pub async fn before_write(
        &self,
        actor: impl Into<Actor<'_>>,
        places: &[Place],
        during: Option<&Begun>,
    ) -> Result<Vec<Place>, Error> {
        // What leads out of the directory is nothing that is kept.
        let places: Vec<Place> = places.iter().filter_map(Place::checked).collect();
        self.ask(actor.into(), &places, Some(during), false).await
    }

    /// Whether this keeper has a window of the agent's open.
    pub fn has_window(&self, agent: &str) -> bool {
        self.own.has(agent)
    }

    /// Says that what an agent did has ended and that its window is closed by the next look: a stop does not
    /// wait for that.
    pub fn abandon(&self, agent: &str) {
        self.own.let_go(agent);
    }

    /// To be called after it, with a note for the record such as the command. Returns what changed meanwhile.
    /// A window that was closed for this process, because it was fenced, cannot be closed by it: what changed
    /// since is not its doing, or not alone.
    pub async fn close_window(&self, actor: impl Into<Actor<'_>>, note: &str) -> Result<Closed, Error> {
        self.close(actor.into(), note, Ends::Command).await
    }

    /// The same if the agent left something running, which has files open for writing: they stay claimed. So
    /// does what was asked for since the end of the last command, because the question of what goes on may
    /// have come before the end was heard of.
    pub async fn leave_window(
        &self,
        actor: impl Into<Actor<'_>>,
        note: &str,
        held: &[PathBuf],
    ) -> Result<Closed, Error> {
        self.close(actor.into(), note, Ends::Leaving(held)).await
    }

    /// The same for what was written at these places alone, of which `new` was not claimed before.
    pub async fn close_places(
        &self,
        actor: impl Into<Actor<'_>>,
        note: &str,
        places: &[Place],
        new: &[Place],
    ) -> Result<Closed, Error> {
        let places: Vec<Place> = places.iter().filter_map(Place::checked).collect();
        self.close(actor.into(), note, Ends::Places(&places, new)).await
    }

    async fn close(&self, actor: Actor<'_>, note: &str, ends: Ends<'_>) -> Result<Closed, Error> {
        let name = checked_name(actor.agent)?;
        let by = StepCause::Agent { name: name.to_owned(), interrupted: false };
        let mut state = self.state().lock().await;
        let turn = self.turn(actor).await?;
        self.keep_before(&mut state, &turn).await?;
        if !self.own.has(name) {
            return Ok(Closed::default());
        }
        if !self.is_own(&self.claiming(actor).await?, name)? {
            return Err(Error::Fenced);
        }
        let part = match ends {
            Ends::Command => Part::Window { name, held: &[], within: &[] },
            Ends::Leaving(held) => Part::Window { name, held, within: &[] },
            Ends::Places(places, _) => Part::Window { name, held: &[], within: places },
        };
        let recorded = self.step(&Making::new(&by, note, part), &turn).await?;
        self.stops.step().await;
        self.forget_after()?;
        turn.check()?;
        let mut claiming = self.claiming(actor).await?;
        if !self.is_own(&claiming, name)? {
            return Err(Error::Fenced);
        }
        let lines = after(&mut claiming, name, ends, recorded.length)?;
        match lines {
            Some(lines) => claiming.add(name, &lines)?,
            None => {
                claiming.remove(name)?;
                drop(self.own.get().marks.remove(name));
            }
        }
        drop(claiming);
        self.own.changed.notify_waiters();
        self.stops.step().await;
        let changed = |change: TreeChange| ChangedFile {
            how: how(change.old.as_ref(), change.new.as_ref()),
            path: change.path,
            agents: vec![name.to_owned()],
            mixed: false,
        };
        let Recorded { changes, left_out, .. } = recorded;
        Ok(Closed { changed: changes.into_iter().map(changed).collect(), left_out })
    }

    /// To be called before [`Self::open_window`], and when the agent's shell is closed, if background jobs of
    /// that shell, which ask nothing, were alive since the agent's last window: what changed since then and
    /// is in no window is this agent's, and does not come from outside.
    pub async fn claim(&self, actor: impl Into<Actor<'_>>) -> Result<(), Error> {
        let actor = actor.into();
        let by = StepCause::Agent { name: checked_name(actor.agent)?.to_owned(), interrupted: false };
        let mut state = self.state().lock().await;
        let turn = self.turn(actor).await?;
        self.keep_before(&mut state, &turn).await?;
        let all = self.claiming(actor).await?.look()?.values().any(|window| window.claims.is_everything());
        if !all {
            self.step(&Making::new(&by, "background jobs", Part::Unclaimed), &turn).await?;
            self.forget_after()?;
        }
        Ok(())
    }

    /// The right to look at claims; to be had after the turn, if that is needed too, and not for long.
    pub(crate) async fn claiming(&self, actor: Actor<'_>) -> Result<Claiming<'_>, Error> {
        let files = self.files.lock().await;
        let turn = self.record().claims(actor, self.fence.as_deref()).await?;
        Ok(Claiming { files, turn })
    }

    /// Whether the window of this name is this keeper's. One that was closed for it is not any more.
    pub(crate) fn is_own(&self, claiming: &Claiming<'_>, name: &str) -> Result<bool, Error> {
        let mut own = self.own.get();
        let Some(mark) = own.marks.get(name) else { return Ok(false) };
        let is_own = claiming.is_marked_by(name, mark.file())?;
        if !is_own {
            own.marks.remove(name);
        }
        Ok(is_own)
    }

    /// Opens a window of this keeper.
    pub(crate) fn open_own(
        &self,
        claiming: &Claiming<'_>,
        by: &StepCause,
        actor: Actor<'_>,
        lines: &[Line],
    ) -> Result<(), Error> {
        let mark = claiming.make(actor.agent, by, actor.token, lines)?;
        self.own.get().marks.insert(actor.agent.to_owned(), mark);
        Ok(())
    }

    /// Whether a living process has a window of this run open, this one included.
    pub(crate) async fn is_open(&self) -> Result<bool, Error> {
        if !self.record().is_there() {
            return Ok(false);
        }
        Ok(self.claiming(PERSON).await?.look()?.values().any(|window| window.is_open))
    }

    pub(crate) async fn refuse_open(&self) -> Result<(), Error> {
        if self.is_open().await? { Err(Error::Busy { run: self.run().to_owned() }) } else { Ok(()) }
    }

    /// Opens the window that excludes all others. No other may be open.
    pub(crate) async fn open_alone(&self, by: &StepCause) -> Result<Mark, Error> {
        self.claiming(PERSON).await?.make(ALONE, by, "", &[])
    }

    pub(crate) async fn is_alone(&self, mark: &Mark) -> Result<bool, Error> {
        self.claiming(PERSON).await?.is_marked_by(ALONE, mark.file())
    }

    pub(crate) async fn close_alone(&self) -> Result<(), Error> {
        self.claiming(PERSON).await?.remove(ALONE)
    }

    /// Closes the windows of processes that are gone, one by one, each as a step of its agent.
    pub(crate) async fn close_gone(&self, turn: &Turn) -> Result<(), Error> {
        loop {
            let mut claiming = self.claiming(turn.actor()).await?;
            let mut windows = claiming.look()?.iter();
            let Some((name, window)) = windows.find(|(_, window)| !window.is_open) else { return Ok(()) };
            let (name, by) = (name.clone(), window.by(name).interrupted());
            let mark = window.handle().map_err(Error::file("opening", Path::new(&name)))?;
            drop(claiming);
            self.close_as(&name, &mark, &by, turn).await?;
        }
    }

    /// Closes a window for its process, which has not done it.
    pub(crate) async fn close_as(
        &self,
        name: &str,
        mark: &File,
        by: &StepCause,
        turn: &Turn,
    ) -> Result<(), Error> {
        if !self.claiming(turn.actor()).await?.is_marked_by(name, mark)? {
            return Ok(());
        }
        self.step(&Making::of_window(by, "", name), turn).await?;
        turn.check()?;
        self.stops.step().await;
        let claiming = self.claiming(turn.actor()).await?;
        if claiming.is_marked_by(name, mark)? {
            claiming.remove(name)?;
        }
        self.own.changed.notify_waiters();
        Ok(())
    }

    /// Records what changed and is in no open window, by an agent that was cut off or from outside of the
    /// run.
    pub(crate) async fn settle(&self, turn: &Turn) -> Result<Recorded, Error> {
        self.close_gone(turn).await?;
        self.step(&Making::new(&StepCause::Outside, "", Part::Unclaimed), turn).await
    }
}

impl Begun {
    /// A moment of which nothing is known but that it is now.
    pub(crate) fn unknown() -> Self {
        Self::at(Moment::Unknown)
    }

    fn at(moment: Moment) -> Self {
        Self { moment, waited_ms: Arc::default() }
    }

    /// For how long it has waited, this time not counted.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_millis(self.waited_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn add_waited(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.waited_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// The latest step at that moment, if it has to be told from these: the commit before the run, and the
    /// latest one now.
    pub(crate) fn step(&self, before: &str, now: &str) -> String {
        match &self.moment {
            Moment::Fresh => before.to_owned(),
            Moment::At(commit) => commit.clone(),
            Moment::Unknown => now.to_owned(),
        }
    }
}

/// What is written down of a window when something in it has ended; `None` if nothing is claimed any more.
fn after(
    claiming: &mut Claiming<'_>,
    name: &str,
    ends: Ends<'_>,
    length: usize,
) -> Result<Option<Vec<Line>>, Error> {
    let windows = claiming.look()?;
    let lines = match ends {
        Ends::Places(_, new) => {
            let ended = new.iter().map(|place| Line::Drop(place.path.clone()));
            ended.chain([Line::Idle]).collect::<Vec<_>>()
        }
        Ends::Command | Ends::Leaving(_) => {
            let held = if let Ends::Leaving(held) = ends { held } else { &[] };
            let others = || windows.iter().filter(|(other, _)| *other != name);
            let of_others = |place: &Place| others().any(|(_, window)| window.claims.meets(place));
            let held = held.iter().filter_map(|path| Place::file(path).checked());
            let held: Vec<Line> = held.filter(|place| !of_others(place)).map(Line::Claim).collect();
            let asked = match ends {
                Ends::Leaving(_) => claiming.files.since_idle(name)?,
                // What was claimed while this was recorded is not in it.
                _ => claiming.files.since(name, length)?,
            };
            let asked = asked.into_iter().filter(|line| matches!(line, Line::Claim(_) | Line::Lose(_)));
            [Line::Closed].into_iter().chain(held).chain(asked).chain([Line::Idle]).collect()
        }
    };
    let mut claims = match claiming.look()?.get(name) {
        Some(window) => window.claims.clone(),
        None => return Ok(None),
    };
    lines.iter().cloned().for_each(|line| claims.apply(line));
    Ok((!claims.is_empty()).then_some(lines))
}
