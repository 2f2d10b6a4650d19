//! Asking: how an agent gets the places that it is about to write, and how it waits for those that another
//! one has. Every wait is bounded, and one for each other ends at once.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use crate::claims::{Claims, Line, Place};
use crate::error::Error;
use crate::keeper::Keeper;
use crate::parts::{Making, Part};
use crate::places::checked_name;
use crate::steps::StepCause;
use crate::turn::{Actor, Holder, TRIES, Wait};
use crate::window_files::{ALONE, Window};
use crate::windows::{Begun, Claiming};

/// How often a window of this keeper is looked at, beside each time when one is closed.
const OWN_LOOKS: Duration = Duration::from_millis(100);

/// What an agent asks for.
struct Asks<'a> {
    actor: Actor<'a>,
    by: StepCause,
    places: &'a [Place],
    /// The command that asks; `None` if none is under way.
    during: Option<&'a Begun>,
    /// Whether it is not known what will be written, so that no other may write.
    alone: bool,
}

/// What came of asking once.
enum Answer {
    /// It may write; these places were not claimed before.
    Granted(Vec<Place>),
    /// Others have what it wants.
    Blocked(Vec<Blocker>),
    /// A window has to be opened, or those of processes that are gone have to be closed.
    Slow,
}

/// A window that is in the way.
struct Blocker {
    name: String,
    by: StepCause,
    holder: Holder,
    mark: File,
    is_own: bool,
    /// It is the asking agent's, of another process.
    is_mine: bool,
    claims: Claims,
    /// Nothing of it can be taken over.
    is_whole: bool,
    is_idle: bool,
}

/// Says for which agents another one waits, for as long as it does.
struct Waits<'a> {
    keeper: &'a Keeper,
    agent: &'a str,
    during: &'a Begun,
    /// Since when, if it had to.
    began: Option<Instant>,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.keeper.own.get().waiting.remove(self.agent);
        self.during.add_waited(self.waited());
    }
}

impl Waits<'_> {
    fn waited(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Whether agents wait for each other in a circle, and it is this one that ends that: one of them has to,
    /// and one is enough.
    fn ends_circle(&self, blockers: &[Blocker]) -> bool {
        let mut own = self.keeper.own.get();
        let names = blockers.iter().map(|blocker| blocker.name.clone()).collect();
        own.waiting.insert(self.agent.to_owned(), names);
        let reached = |from: &str| {
            let mut found: BTreeSet<&str> = BTreeSet::new();
            let mut open = vec![from];
            while let Some(agent) = open.pop() {
                let next = own.waiting.get(agent).into_iter().flatten().map(String::as_str);
                open.extend(next.filter(|next| found.insert(next)).collect::<Vec<_>>());
            }
            found
        };
        let found = reached(self.agent);
        let mut circle = found.iter().filter(|agent| reached(agent).contains(self.agent));
        found.contains(self.agent) && circle.all(|agent| *agent <= self.agent)
    }
}

impl Keeper {
    /// Gets an agent what it wants to write, and waits for it.
    pub(crate) async fn ask(
        &self,
        actor: Actor<'_>,
        places: &[Place],
        during: Option<Option<&Begun>>,
        alone: bool,
    ) -> Result<Vec<Place>, Error> {
        let name = checked_name(actor.agent)?;
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let by = StepCause::Agent { name: name.to_owned(), interrupted: false };
        let now = Begun::unknown();
        let during = during.unwrap_or(Some(&now));
        let asks = Asks { actor, by, places, during, alone };
        let everything = places.iter().any(|place| *place == Place::everything());
        let mut wait = Wait::new(self.fence.as_deref());
        let mut waits = Waits { keeper: self, agent: name, during: during.unwrap_or(&now), began: None };
        loop {
            let mut changed = pin!(self.own.changed.notified());
            changed.as_mut().enable();
            let answer = match self.try_ask(&asks).await? {
                Answer::Slow => self.ask_slowly(&asks).await?,
                answer => answer,
            };
            let blockers = match answer {
                Answer::Granted(new) => return Ok(new),
                Answer::Slow => continue,
                Answer::Blocked(blockers) => blockers,
            };
            if !alone && self.are_ignored(places, &blockers).await? {
                return Ok(Vec::new());
            }
            waits.began.get_or_insert_with(Instant::now);
            // A command that writes much of what another one has does not wait as long for each of it.
            let waited = waits.during.waited() + waits.waited();
            let ends_circle = waits.ends_circle(&blockers);
            // One that wants everything waits like one of which it is not known what it writes.
            let impatient = !everything && waited >= self.patience || ends_circle && !alone;
            let takes = |blocker: &&Blocker| !blocker.is_whole && (blocker.is_idle || impatient);
            if let Some(blocker) = blockers.iter().find(takes) {
                self.take_places(&asks, blocker).await?;
                continue;
            }
            let Some(blocker) = blockers.first() else { continue };
            if self.fence.is_none() && !blocker.is_own && (everything || blocker.is_whole) {
                return Err(Error::Busy { run: self.run().to_owned() });
            }
            let moment = if blocker.is_own { OWN_LOOKS } else { TRIES };
            if wait.until(&blocker.holder, moment.min(self.patience), changed).await? {
                let turn = self.turn(actor).await?;
                let by = blocker.by.clone().interrupted();
                self.close_as(&blocker.name, &blocker.mark, &by, &turn).await?;
            }
        }
    }

    /// Whether git ignores all that is in the way, so that nothing of it is kept and no turn is needed:
    /// agents build in one directory, and a build's lock is its own affair. Only asked about what is in the
    /// way.
    async fn are_ignored(&self, places: &[Place], blockers: &[Blocker]) -> Result<bool, Error> {
        let met =
            |place: &&Place| blockers.iter().any(|blocker| !blocker.is_mine && blocker.claims.meets(place));
        let blocked: Vec<&Path> = places.iter().filter(met).map(|place| place.path.as_path()).collect();
        if blocked.is_empty() || blocked.iter().any(|path| path.as_os_str().is_empty()) {
            return Ok(false);
        }
        let known = |path: &&&Path| {
            let own = self.own.get();
            path.ancestors().any(|above| own.ignored.contains(above))
        };
        let unknown: Vec<&Path> = blocked.iter().filter(|path| !known(path)).copied().collect();
        if unknown.is_empty() {
            return Ok(true);
        }
        let ignored = self.ignored_now(&unknown).await?;
        self.own.get().ignored.extend(ignored);
        Ok(unknown.iter().all(|path| known(&path)))
    }

    /// Adds to the claims of a window that is open, which takes no look at the tree.
    async fn try_ask(&self, asks: &Asks<'_>) -> Result<Answer, Error> {
        let mut claiming = self.claiming(asks.actor).await?;
        let name = asks.actor.agent;
        let had = self.own.has(name);
        let is_own = self.is_own(&claiming, name)?;
        if had && !is_own && !asks.alone {
            return Err(Error::Fenced);
        }
        match self.blockers(&mut claiming, asks, is_own)? {
            None => return Ok(Answer::Slow),
            Some(blockers) if !blockers.is_empty() => return Ok(Answer::Blocked(blockers)),
            Some(_) if !is_own || asks.alone => return Ok(Answer::Slow),
            Some(_) => {}
        }
        let Some(window) = claiming.look()?.get(name) else { return Err(Error::Fenced) };
        let new: Vec<Place> =
            asks.places.iter().filter(|place| !window.claims.includes(place)).cloned().collect();
        let mut lines: Vec<Line> = Vec::new();
        if let Some(begun) = asks.during.filter(|_| window.claims.idle || window.claims.since.is_none()) {
            let tip = self.record().tip()?.unwrap_or_default();
            lines.extend([Line::Since(begun.step(&tip, &tip)), Line::Busy]);
        }
        lines.extend(new.iter().cloned().map(Line::Claim));
        self.stops.step().await;
        if !lines.is_empty() {
            claiming.add(name, &lines)?;
        }
        self.stops.step().await;
        Ok(Answer::Granted(new))
    }

    /// Opens a window, after everything was recorded that is in none.
    async fn ask_slowly(&self, asks: &Asks<'_>) -> Result<Answer, Error> {
        let name = asks.actor.agent;
        let mut state = self.state().lock().await;
        let turn = self.turn(asks.actor).await?;
        self.keep_before(&mut state, &turn).await?;
        let claiming = self.claiming(asks.actor).await?;
        let is_own = self.is_own(&claiming, name)?;
        drop(claiming);
        if is_own && asks.alone {
            // What the agent wrote until now is its own already.
            self.step(&Making::of_window(&asks.by, "", name), &turn).await?;
        }
        let settled = self.settle(&turn).await?;
        self.forget_after()?;
        turn.check()?;
        let mut claiming = self.claiming(asks.actor).await?;
        let is_own = self.is_own(&claiming, name)?;
        match self.blockers(&mut claiming, asks, is_own)? {
            None => return Ok(Answer::Slow),
            Some(blockers) if !blockers.is_empty() => return Ok(Answer::Blocked(blockers)),
            Some(_) if is_own && !asks.alone => return Ok(Answer::Slow),
            Some(_) => {}
        }
        let begun = asks.during.map(|begun| begun.step(&settled.before, &settled.tip));
        let since = Line::Since(begun.unwrap_or(settled.tip));
        let state = if asks.during.is_some() { Line::Busy } else { Line::Idle };
        let claims = asks.places.iter().cloned().map(Line::Claim);
        self.stops.step().await;
        if is_own {
            let lines: Vec<Line> = [Line::Closed, since, state].into_iter().chain(claims).collect();
            claiming.add(name, &lines)?;
        } else {
            let lines: Vec<Line> = [since, state].into_iter().chain(claims).collect();
            self.open_own(&claiming, &asks.by, asks.actor, &lines)?;
        }
        self.stops.step().await;
        Ok(Answer::Granted(asks.places.to_vec()))
    }

    /// The windows that are in the way; `None` if one of them is of a process that is gone.
    fn blockers(
        &self,
        claiming: &mut Claiming<'_>,
        asks: &Asks<'_>,
        has_own: bool,
    ) -> Result<Option<Vec<Blocker>>, Error> {
        let me = asks.actor.agent;
        let mut found = Vec::new();
        for (name, window) in claiming.look()? {
            // A window of this agent that another process has opened is in the way whatever it claims.
            let is_mine = name == me;
            let meets = || {
                // A command may go on writing what it has lost.
                let writes = asks.alone && !window.claims.idle;
                writes || asks.places.iter().any(|place| window.claims.meets(place))
            };
            if is_mine && has_own || !is_mine && !meets() {
                continue;
            }
            if !window.is_open {
                return Ok(None);
            }
            found.push(self.blocker(name, window, is_mine)?);
        }
        Ok(Some(found))
    }

    fn blocker(&self, name: &str, window: &Window, is_mine: bool) -> Result<Blocker, Error> {
        let mark = window.handle().map_err(Error::file("opening", Path::new(name)))?;
        Ok(Blocker {
            name: name.to_owned(),
            by: window.by(name),
            holder: window.holder(name),
            mark,
            is_own: self.own.has(name),
            is_mine,
            claims: window.claims.clone(),
            is_whole: is_mine || name == ALONE || window.claims.is_everything() && !window.claims.idle,
            is_idle: window.claims.idle,
        })
    }

    /// Takes places over: what their agent has written there until now is recorded as its step.
    async fn take_places(&self, asks: &Asks<'_>, blocker: &Blocker) -> Result<(), Error> {
        let mut state = self.state().lock().await;
        let turn = self.turn(asks.actor).await?;
        self.keep_before(&mut state, &turn).await?;
        if !self.claiming(asks.actor).await?.is_marked_by(&blocker.name, &blocker.mark)? {
            return Ok(());
        }
        let part = Part::Window { name: &blocker.name, held: &[], within: asks.places };
        let note = format!("taken over by {}", asks.actor.agent);
        let making = Making { taker: Some(asks.actor.agent), ..Making::new(&blocker.by, &note, part) };
        let recorded = self.step(&making, &turn).await?;
        let mut claiming = self.claiming(asks.actor).await?;
        if !claiming.is_marked_by(&blocker.name, &blocker.mark)? {
            return Ok(());
        }
        let Some(window) = claiming.look()?.get(&blocker.name) else { return Ok(()) };
        if !window.claims.idle {
            // It may write there later, because it was told once that it may.
            let wanted = asks.places.iter().filter(|place| !place.whole && window.claims.holds(&place.path));
            let unwritten =
                wanted.filter(|place| recorded.changes.iter().all(|change| change.path != place.path));
            let news = unwritten
                .flat_map(|place| self.taken_over(&place.path, &blocker.name, asks.actor.agent, None));
            self.tell(news.collect(), &turn)?;
        }
        self.stops.step().await;
        let lines: Vec<Line> = asks.places.iter().cloned().map(Line::Lose).collect();
        claiming.add(&blocker.name, &lines)?;
        drop(claiming);
        self.own.changed.notify_waiters();
        self.stops.step().await;
        Ok(())
    }
}
