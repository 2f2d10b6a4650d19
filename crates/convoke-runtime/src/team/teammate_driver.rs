//! One teammate while a process drives it: it goes on with what was left open, then does what is due, one
//! thing after the other, and lets go of everything it uses when there has been nothing to do for a while.
//! Its identity, its history and its mail stay in the journal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use convoke_kernel::{
    BoardEntry, Claimant, LEAD, Letter, LetterKind, Member, MessageId, Next, RequestState, RosterEntry,
    Standing, Task, TaskId, next,
};
use convoke_trees::{Finished, Worktrees};
use tokio::sync::watch;

use super::shared;
use crate::confine::left_commits;
use crate::drive::DriveMode;
use crate::driver::{CommitExtras, Driver};
use crate::error::Error;
use crate::runtime::Config;
use crate::session::Session;
use crate::stop::{Stop, StopLevel};

/// How often a member that waits for a person looks for the answer.
const PARKED: Duration = Duration::from_millis(500);

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TeammateExit {
    /// Another process drives it.
    Elsewhere,
    /// It sleeps, or this process was asked to stop.
    Rested,
    /// Its work failed with this many letters waiting; more letters take it up again.
    Failed(u32),
    /// It has stopped for good.
    Stopped,
}

/// Drives a teammate until there is nothing to do for it.
pub(crate) async fn live(
    config: Arc<Config>,
    session: Arc<Session>,
    member: Member,
    stop: Stop,
) -> Result<TeammateExit, Error> {
    let owned = Driver::own(
        Arc::clone(&config),
        member.agent.clone(),
        Some(Arc::clone(&session)),
        None,
        stop.clone(),
    )
    .await;
    let driver = match owned {
        Ok(driver) => driver,
        Err(Error::Journal(convoke_journal::Error::Held { .. })) => return Ok(TeammateExit::Elsewhere),
        Err(error) => return Err(error),
    };
    let Some(team_cache) = &session.team_cache else { return Ok(TeammateExit::Elsewhere) };
    let waker = team_cache.listen();
    let mut life = TeammateDriver {
        config,
        session: Arc::clone(&session),
        name: member.name.clone(),
        driver,
        stop,
        waker,
    };
    let lived = life.run().await;
    let lived = match lived {
        // A process that dies tidies nothing up.
        Err(Error::Crashed) => return Err(Error::Crashed),
        Err(Error::Journal(convoke_journal::Error::LostLease { .. })) => Ok(TeammateExit::Elsewhere),
        other => other,
    };
    life.driver.finish().await;
    lived
}

struct TeammateDriver {
    config: Arc<Config>,
    session: Arc<Session>,
    name: String,
    driver: Driver,
    stop: Stop,
    waker: watch::Receiver<u64>,
}

impl TeammateDriver {
    async fn run(&mut self) -> Result<TeammateExit, Error> {
        self.driver.reload_crew().await?;
        let Some(me) = self.me() else { return Ok(TeammateExit::Elsewhere) };
        if self.is_overdue(&me) {
            return self.end("it did not answer in time").await;
        }
        if self.driver.is_under_way() {
            self.work(DriveMode::Resume { changed: Vec::new() }).await?;
        } else if !self.driver.is_started() {
            self.work(DriveMode::New).await?;
        } else if matches!(me.standing, Standing::Failed { .. }) && self.driver.can_go_on() {
            // What stood in its way may be gone: another process, another budget.
            self.work(DriveMode::Resume { changed: Vec::new() }).await?;
        }
        loop {
            let Some(me) = self.me() else { return Ok(TeammateExit::Elsewhere) };
            if self.is_overdue(&me) {
                return self.end("it did not answer in time").await;
            }
            if self.stop.level() > StopLevel::Run {
                return Ok(TeammateExit::Rested);
            }
            if self.driver.is_under_way() {
                return Ok(TeammateExit::Rested);
            }
            if let (Standing::Stopping { .. }, true) = (&me.standing, self.driver.gave_up()) {
                return self.end("it was asked to stop, and its work failed").await;
            }
            // One that failed tries again when a letter comes, and not by itself.
            if let (Standing::Failed { .. }, true) = (&me.standing, self.driver.was_taken_up()) {
                return Ok(TeammateExit::Failed(me.waiting));
            }
            match self.next() {
                Next::Stop => return self.end("it was asked to stop").await,
                Next::Read => {
                    let before = self.driver.seq();
                    self.take_up_and_work().await?;
                    // A letter that is counted and not found is not looked for again before another comes.
                    if self.driver.seq() == before {
                        return Ok(TeammateExit::Failed(me.waiting));
                    }
                }
                Next::GoOn(task) => {
                    self.take_up().await?;
                    if let Some(task) = self.task(&task)
                        && self.driver.offer(&task).await?
                    {
                        self.work(DriveMode::New).await?;
                    }
                }
                Next::GiveBack(task) => {
                    if let Some(task) = self.task(&task) {
                        self.driver.give_back(&task).await?;
                    }
                }
                Next::Claim(_) => {
                    self.take_up().await?;
                    if self.claim().await? {
                        self.work(DriveMode::New).await?;
                    }
                }
                Next::Rest => {
                    if !self.rest().await? {
                        return Ok(TeammateExit::Rested);
                    }
                }
            }
            self.driver.reload_crew().await?;
        }
    }

    /// Claims what is best for it now, one member of this process after the other.
    async fn claim(&mut self) -> Result<bool, Error> {
        let session = Arc::clone(&self.session);
        let Some(team_cache) = &session.team_cache else { return Ok(false) };
        let _turn = team_cache.turn.lock().await;
        team_cache.reload().await?;
        let Next::Claim(task) = self.next() else { return Ok(false) };
        match self.task(&task) {
            Some(task) => self.driver.claim(&task).await,
            None => Ok(false),
        }
    }

    fn me(&self) -> Option<Member> {
        let (roster, _) = self.session.team_cache.as_ref()?.team();
        roster.member(&self.name).filter(|member| member.agent == *self.driver.id()).cloned()
    }

    fn claimant(&self) -> Option<Claimant> {
        self.driver.claimant().or_else(|| {
            let me = self.me()?;
            Some(Claimant { name: me.name, agent: Some(me.agent), role: me.role })
        })
    }

    fn next(&self) -> Next {
        let (Some(team_cache), Some(claimant)) = (&self.session.team_cache, self.claimant()) else {
            return Next::Rest;
        };
        let (roster, board) = team_cache.team();
        next(&roster, &board, &claimant, self.config.clock.now())
    }

    fn task(&self, id: &TaskId) -> Option<Task> {
        let (_, board) = self.session.team_cache.as_ref()?.team();
        board.task(id).cloned()
    }

    fn is_overdue(&self, me: &Member) -> bool {
        matches!(me.standing, Standing::Stopping { deadline, .. } if self.config.clock.now() >= deadline)
    }

    /// An agent that a process before this one drove is told who it is, before it hears anything else.
    async fn take_up(&mut self) -> Result<(), Error> {
        self.mark(true);
        if !self.driver.was_taken_up() {
            self.driver.take_up().await?;
        }
        Ok(())
    }

    async fn take_up_and_work(&mut self) -> Result<(), Error> {
        let mode = if self.driver.was_taken_up() {
            DriveMode::New
        } else {
            DriveMode::Resume { changed: Vec::new() }
        };
        self.work(mode).await
    }

    async fn work(&mut self, mode: DriveMode) -> Result<(), Error> {
        self.mark(true);
        let mut worked = self.driver.drive(mode).await;
        // One that waits for a person's answer does nothing else, and hears nothing else.
        while worked.is_ok() && self.driver.is_under_way() && self.stop.level() == StopLevel::Run {
            self.driver.rests();
            self.park(true);
            self.mark(false);
            let answered = self.answer().await;
            if answered.as_ref().is_ok_and(|answered| *answered) {
                self.mark(true);
            }
            self.park(false);
            match answered {
                Ok(true) => worked = self.driver.drive(DriveMode::New).await,
                Ok(false) => break,
                Err(error) => worked = Err(error),
            }
        }
        self.driver.rests();
        if worked.is_ok() {
            self.mark(false);
        }
        worked
    }

    /// Waits for a person's answer. False if none came before a stop, or before the member was overdue.
    async fn answer(&mut self) -> Result<bool, Error> {
        loop {
            if self.driver.is_answered().await? {
                return Ok(true);
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                () = tokio::time::sleep(PARKED) => {}
                _ = stop.above(StopLevel::Run) => return Ok(false),
            }
            if self.me().is_none_or(|me| self.is_overdue(&me)) {
                return Ok(false);
            }
        }
    }

    fn park(&self, waits: bool) {
        if let Some(team_cache) = &self.session.team_cache {
            team_cache.set_parked(&self.name, waits);
        }
    }

    fn mark(&self, works: bool) {
        if let Some(team_cache) = &self.session.team_cache {
            team_cache.set_working(&self.name, works);
        }
    }

    /// Waits until there is something to do. False if nothing came in time, or a stop was requested.
    async fn rest(&mut self) -> Result<bool, Error> {
        self.driver.rests();
        self.mark(false);
        let idle = u64::try_from(self.config.team.idle.as_millis()).unwrap_or(u64::MAX);
        let until = self.config.clock.now().saturating_add(idle);
        loop {
            self.waker.borrow_and_update();
            let due = self.next() != Next::Rest;
            if due || self.me().is_none_or(|me| self.is_overdue(&me)) {
                return Ok(true);
            }
            let mut stop = self.stop.clone();
            let clock = self.config.clock.clone();
            tokio::select! {
                woken = self.waker.changed() => if woken.is_err() { return Ok(false) },
                _ = stop.above(StopLevel::Run) => return Ok(false),
                () = clock.sleep_until(until) => {
                    let roster = vec![RosterEntry::Sleep { name: self.name.clone() }];
                    self.driver.enter(CommitExtras { roster, ..CommitExtras::default() }).await?;
                    return Ok(false);
                }
            }
        }
    }

    /// Ends the teammate for good: its task goes back to the board, and the lead is told.
    async fn end(&mut self, why: &str) -> Result<TeammateExit, Error> {
        let Some(me) = self.me() else { return Ok(TeammateExit::Elsewhere) };
        let at = self.config.clock.now();
        let mut text = format!("{} has stopped: {why}.", self.name);
        if let Some(task) = self
            .session
            .team_cache
            .as_ref()
            .and_then(|team_cache| team_cache.team().1.held_by(&me.agent).cloned())
        {
            text.push_str(&format!(" Its task {} \"{}\" is back on the board.", task.id, task.subject));
        }
        let mut roster = Vec::new();
        let mut acks = Vec::new();
        let mut unread = me.waiting;
        // The request itself is answered by stopping, whether it was read or not.
        if let Standing::Stopping { request, .. } = &me.standing
            && let waiting = shared::waiting_letters(&self.config.journal, &me.agent).await?
            && waiting.iter().any(|letter| letter.id == *request)
        {
            acks.push(request.to_string());
            roster
                .push(RosterEntry::Take { name: self.name.clone(), letters: vec![(request.clone(), false)] });
            unread = unread.saturating_sub(1);
        }
        if unread > 0 {
            let letters =
                if unread == 1 { "1 letter to it was" } else { &format!("{unread} letters to it were") };
            text.push_str(&format!(" {letters} not read; the journal keeps them."));
        }
        if let Some(told) = self.close_worktree().await {
            text.push_str(&format!(" ({told})"));
        }
        let request = match &me.standing {
            Standing::Stopping { request, .. } => Some(request.clone()),
            _ => None,
        };
        let overdue = self.is_overdue(&me);
        let answered = request.as_ref().is_some_and(|id| {
            let team_cache = self.session.team_cache.as_ref();
            team_cache.and_then(|team_cache| team_cache.team().0.request(id).map(|r| r.state))
                == Some(RequestState::Approved)
        });
        let letter = Letter {
            id: MessageId::derived(&["stopped", me.agent.as_str()]),
            from: self.name.clone(),
            to: LEAD.to_owned(),
            // It agreed by having nothing to do, or said so itself before, or did not say anything.
            kind: if answered || overdue { LetterKind::Notice } else { LetterKind::ShutdownAnswer },
            text,
            urgent: false,
            order: self.driver.order(),
            at,
            request,
            approve: (!answered && !overdue).then_some(true),
            task: None,
        };
        roster.push(RosterEntry::Stop { name: self.name.clone(), why: why.to_owned() });
        let board =
            vec![BoardEntry::ReleaseAll { agent: me.agent.clone(), why: format!("{} stopped", self.name) }];
        // One that was cut off in the middle of something holds money for it.
        let releases = self.driver.is_under_way();
        self.driver
            .enter(CommitExtras {
                acks,
                roster,
                board,
                letters: vec![letter],
                releases,
                ..CommitExtras::default()
            })
            .await?;
        self.driver.ends_for_good();
        Ok(TeammateExit::Stopped)
    }

    /// What a teammate changed in a worktree of its own is kept on its branch.
    async fn close_worktree(&self) -> Option<String> {
        let dir = self.driver.dir().filter(|dir| *dir != self.session.dir)?;
        let places = self.config.trees.as_ref()?;
        let worktrees = Worktrees::open(places.clone(), Path::new(&self.session.dir)).await.ok()?;
        let lead = self.session.lead.as_str();
        let me = self.driver.id().as_str();
        let more = left_commits(&self.config.confine.private_of(me));
        let said = match worktrees.finish(lead, me).await {
            Ok(Finished::Kept { .. }) => {
                format!(
                    "what it changed in {dir} is kept: `convoke worktrees apply {lead} {me}` takes it over"
                )
            }
            Ok(_) => format!("its worktree {dir} held no changes"),
            Err(error) => format!("its worktree {dir} is left as it is: {error}"),
        };
        Some(said + &more)
    }
}
