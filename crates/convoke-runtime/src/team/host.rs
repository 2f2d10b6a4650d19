//! Drives a session's teammates in this process: a member that has something to do is taken
//! up, if no other process has it. Any number of processes can host one team; leases decide
//! which process drives which member.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use convoke_journal::Record;
use convoke_kernel::{AgentId, BoardEntry, Claimant, LEAD, Member, Next, Standing, Status, Summary, next};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::shared;
use super::team_cache::Version;
use super::teammate_driver::{TeammateExit, live};
use crate::error::Error;
use crate::notice::{Notice, TeamEvent};
use crate::runtime::Config;
use crate::session::Session;
use crate::stop::{Stop, StopLevel, Stopper};
use crate::team::TeamCache;

/// How often a store that does not answer is asked again before the host gives up, and after how long.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(500);

/// How often the ledger is looked at while an agent waits for money.
const LEDGER: Duration = Duration::from_millis(500);

/// How long a member that another process drives is left alone.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// The host of one session's team.
pub(crate) struct Host {
    config: Arc<Config>,
    session: Arc<Session>,
    stop: Stop,
    /// The only members it drives; absent is all of them.
    only: Option<Vec<String>>,
    /// Whether the lead is driven by this process.
    with_lead: bool,
    lives: JoinSet<(String, Result<TeammateExit, Error>)>,
    /// The members that are driven here, and how to stop each of them.
    here: HashMap<String, (AgentId, Stopper)>,
    /// Letters that waited when a member failed.
    failed: HashMap<String, u32>,
    /// Since when another process was found to drive a member.
    elsewhere: HashMap<String, tokio::time::Instant>,
    /// Agents that may have been left in the middle of something, or that another process may be driving.
    unsettled: HashSet<AgentId>,
    /// All that were ever seen here.
    seen: HashSet<AgentId>,
    /// Whether what members of an earlier process held has been renewed.
    took_over: bool,
    /// How often members broke down in a row.
    broken: u32,
    /// The last events of roster and board that the watcher was told of.
    told: Version,
}

impl Host {
    pub(crate) fn new(
        config: Arc<Config>,
        session: Arc<Session>,
        stop: Stop,
        only: Option<Vec<String>>,
        with_lead: bool,
    ) -> Self {
        let here = HashMap::new();
        let failed = HashMap::new();
        let elsewhere = HashMap::new();
        let told = session.team_cache.as_ref().map(TeamCache::version).unwrap_or_default();
        let lives = JoinSet::new();
        let unsettled = HashSet::new();
        let seen = HashSet::new();
        let broken = 0;
        let took_over = false;
        Self {
            config,
            session,
            stop,
            only,
            with_lead,
            lives,
            here,
            failed,
            elsewhere,
            unsettled,
            seen,
            took_over,
            broken,
            told,
        }
    }

    /// Hosts until a stop is requested; without the lead here, also until nothing is left to do.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let session = Arc::clone(&self.session);
        let Some(team_cache) = &session.team_cache else { return Ok(()) };
        let hosted = self.host(team_cache).await;
        self.tell_the_rest().await;
        // However it ended, no member is left behind: what is under way is finished, or cut off.
        let level = if hosted.is_ok() { self.stop.level().max(StopLevel::Drain) } else { StopLevel::Cut };
        self.pass_on(level);
        let mut stop = self.stop.clone();
        while !self.lives.is_empty() {
            let heard = self.stop.level();
            tokio::select! {
                Some(_) = self.lives.join_next() => {}
                harder = stop.above(heard) => self.pass_on(harder),
            }
        }
        hosted
    }

    async fn host(&mut self, team_cache: &TeamCache) -> Result<(), Error> {
        let mut waker = team_cache.listen();
        let mut stop = self.stop.clone();
        let ttl = self.config.team.claim_ttl;
        let mut beats = tokio::time::interval((ttl / 4).max(Duration::from_millis(50)));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ledger = tokio::time::interval(LEDGER);
        ledger.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tries = 0;
        loop {
            waker.borrow_and_update();
            if stop.level() > StopLevel::Run {
                return Ok(());
            }
            match self.look(team_cache).await {
                Ok(done) if done => return Ok(()),
                Ok(_) => tries = 0,
                // A store that does not answer is never "no work".
                Err(error) if tries < TRIES && !matches!(error, Error::Crashed) => {
                    tries += 1;
                    tokio::time::sleep(PAUSE * tries).await;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let (roster_seq, board_seq) = self.told;
            let roster = shared::roster_stream(&self.session.id);
            let board = shared::board_stream(&self.session.id);
            let journal = self.config.journal.clone();
            let clock = self.config.clock.clone();
            let due = self.next_deadline(team_cache);
            tokio::select! {
                // What cannot be read now is found by the next look.
                Ok(moved) = journal.tail(&roster, roster_seq) => {
                    self.told.0 = self.tell(&moved).max(roster_seq);
                }
                Ok(moved) = journal.tail(&board, board_seq) => {
                    self.told.1 = self.tell(&moved).max(board_seq);
                }
                _ = waker.changed() => {}
                Some(ended) = self.lives.join_next() => self.ended(ended)?,
                _ = stop.above(StopLevel::Run) => return Ok(()),
                () = async {
                    match due {
                        Some(at) => clock.sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                } => {}
                () = tokio::time::sleep(ELSEWHERE), if !self.elsewhere.is_empty() => {}
                _ = beats.tick() => self.renew(team_cache).await,
                // Others spend from the same budget, and what they give back is heard of only by looking.
                _ = ledger.tick(), if self.session.ledger.is_asked() => {
                    drop(self.session.ledger.reload().await);
                }
            }
        }
    }

    /// Tells what happened at the very end.
    async fn tell_the_rest(&mut self) {
        for (stream, after) in [
            (shared::roster_stream(&self.session.id), self.told.0),
            (shared::board_stream(&self.session.id), self.told.1),
        ] {
            if let Ok(records) = self.config.journal.load(&stream, after).await {
                self.tell(&records);
            }
        }
    }

    /// Tells the watcher what has happened, and says how far that is.
    fn tell(&self, records: &[Record]) -> u64 {
        for Record { stream, seq, at, event } in records {
            if let Some(event) = TeamEvent::read(stream.as_str(), event) {
                let stream = stream.to_string();
                let event = Box::new(event);
                self.session.tell(Notice::Team { stream, seq: *seq, at: *at, event });
            }
        }
        records.last().map_or(0, |record| record.seq)
    }

    /// Renews what members of an earlier process hold, before any member looks for work: it is still theirs.
    async fn take_over_claims(&self, team_cache: &TeamCache) -> Result<(), Error> {
        let (roster, _) = team_cache.team();
        let mine = roster
            .members()
            .filter(|member| self.drives(member))
            .map(|member| member.agent.clone())
            .collect();
        self.enter_renewal(team_cache, mine).await
    }

    /// Says for all that are driven here that they live.
    async fn renew(&self, team_cache: &TeamCache) {
        let (roster, _) = team_cache.team();
        // Those that sleep while they hold something (a plan of theirs waits for its answer, say) live too,
        // as long as this process would wake them.
        let lives = |member: &&Member| {
            let alive = !matches!(member.standing, Standing::Failed { .. })
                && !self.elsewhere.contains_key(&member.name);
            alive && self.drives(member)
        };
        let agents = roster.members().filter(lives).map(|member| member.agent.clone()).collect();
        // What cannot be renewed now is renewed by the next beat, or runs out.
        let _ = self.enter_renewal(team_cache, agents).await;
    }

    async fn enter_renewal(&self, team_cache: &TeamCache, agents: Vec<AgentId>) -> Result<(), Error> {
        let (_, board) = team_cache.team();
        let agents: Vec<AgentId> =
            agents.into_iter().filter(|agent| board.held_by(agent).is_some()).collect();
        if agents.is_empty() {
            return Ok(());
        }
        let ttl = u64::try_from(self.config.team.claim_ttl.as_millis()).unwrap_or(u64::MAX);
        self.enter_board(BoardEntry::Renew { agents, ttl }).await
    }

    async fn enter_board(&self, entry: BoardEntry) -> Result<(), Error> {
        let at = self.config.clock.now();
        let update = shared::board_update(&self.session.id, vec![entry], at);
        self.config.journal.update(&update.stream, at, &update.change).await?;
        Ok(())
    }

    /// Looks what there is to do, and has it done. True if a host without a lead has nothing left to wait
    /// for.
    async fn look(&mut self, team_cache: &TeamCache) -> Result<bool, Error> {
        team_cache.reload().await?;
        if !self.took_over {
            self.take_over_claims(team_cache).await?;
            self.took_over = true;
        }
        let at = self.config.clock.now();
        if team_cache.team().1.next_expiry().is_some_and(|until| until <= at) {
            // The store may have been away for longer than claims hold: what is held here is renewed before
            // it could be called silent.
            self.renew(team_cache).await;
            self.enter_board(BoardEntry::Expire).await?;
            team_cache.reload().await?;
        }
        // Taken before anything is looked at: what moves meanwhile has not been looked at.
        let version = team_cache.version();
        let (roster, _) = team_cache.team();
        self.elsewhere.retain(|_, since| since.elapsed() < ELSEWHERE);
        let members: Vec<Member> = roster.members().filter(|member| member.name != LEAD).cloned().collect();
        for member in &members {
            if self.seen.insert(member.agent.clone()) {
                self.unsettled.insert(member.agent.clone());
            }
            self.enforce(member, at);
            if self.drives(member)
                && !self.here.contains_key(&member.name)
                && self.has_something(team_cache, member).await?
            {
                self.take_up(member.clone());
            }
        }
        let rests = self.rests(team_cache, &members).await?;
        let lead_reads = self.with_lead
            && !team_cache.is_deaf()
            && roster.member(LEAD).is_some_and(|lead| lead.waiting > 0);
        team_cache.set_quiet((rests && !lead_reads).then_some(version));
        Ok(!self.with_lead && rests && !self.is_led().await?)
    }

    /// Whether this process drives the member, should there be something to do for it.
    fn drives(&self, member: &Member) -> bool {
        let asked = self.only.as_ref().is_none_or(|only| only.contains(&member.name));
        asked && member.name != LEAD && !matches!(member.standing, Standing::Stopped { .. })
    }

    /// One that was asked to stop and did not answer in time is cut off.
    fn enforce(&self, member: &Member, at: u64) {
        if let (Standing::Stopping { deadline, .. }, Some((_, stopper))) =
            (&member.standing, self.here.get(&member.name))
            && at >= *deadline
        {
            stopper.ask(StopLevel::Cut);
        }
    }

    async fn has_something(&mut self, team_cache: &TeamCache, member: &Member) -> Result<bool, Error> {
        if self.elsewhere.contains_key(&member.name) {
            return Ok(false);
        }
        if let Standing::Failed { .. } = member.standing {
            let known = self.failed.get(&member.name).copied();
            return Ok(match known {
                Some(waiting) => member.waiting > waiting,
                // A new process tries once what an earlier one could not do.
                None => member.waiting > 0 || self.can_go_on(member).await?,
            });
        }
        if due(team_cache, member, self.config.clock.now()) {
            return Ok(true);
        }
        // Asked of the journal only where the answer is not known: a look at every member for every change
        // would be too many.
        let open = self.unsettled.contains(&member.agent) && self.is_open(member).await?;
        if !open {
            self.unsettled.remove(&member.agent);
        }
        Ok(open)
    }

    /// Whether the member was left in the middle of something, or was never driven.
    async fn is_open(&self, member: &Member) -> Result<bool, Error> {
        Ok(self.listed(&member.agent).await?.0.is_none_or(|summary| summary.status == Status::Open))
    }

    /// Whether the member was left in the middle of something, or failed for a reason that may be gone.
    async fn can_go_on(&self, member: &Member) -> Result<bool, Error> {
        Ok(self.listed(&member.agent).await?.0.is_none_or(|summary| summary.can_go_on))
    }

    /// How an agent's row stands, and whether a live process drives it.
    async fn listed(&self, agent: &AgentId) -> Result<(Option<Summary>, bool), Error> {
        let filter = convoke_journal::Filter { prefix: Some(agent.to_string()), limit: Some(1) };
        let row = self.config.journal.list(&filter).await?.into_iter().next();
        let driven = row.as_ref().is_some_and(|row| row.owner.is_some());
        let summary =
            row.and_then(|row| row.summary).and_then(|text| serde_json::from_str::<Summary>(&text).ok());
        Ok((summary, driven))
    }

    async fn is_led(&self) -> Result<bool, Error> {
        Ok(self.listed(&self.session.lead).await?.1)
    }

    fn take_up(&mut self, member: Member) {
        let (stopper, stop) = Stopper::new();
        let name = member.name.clone();
        self.failed.remove(&name);
        self.here.insert(name.clone(), (member.agent.clone(), stopper));
        let config = Arc::clone(&self.config);
        let session = Arc::clone(&self.session);
        if let Some(team_cache) = &session.team_cache {
            // Until it says otherwise: the team is not at rest while a member is being taken up.
            team_cache.set_working(&name, true);
        }
        self.lives.spawn(async move {
            let lived = Box::pin(live(config, session, member, stop)).await;
            (name, lived)
        });
    }

    fn ended(
        &mut self,
        ended: Result<(String, Result<TeammateExit, Error>), tokio::task::JoinError>,
    ) -> Result<(), Error> {
        let Ok((name, lived)) = ended else { return Err(Error::EffectBroke(self.session.lead.clone())) };
        let agent = self.here.remove(&name).map(|(agent, _)| agent);
        // Not before it has left the list of those that are driven here: in between it would look like one
        // that waits for a person.
        if let Some(team_cache) = &self.session.team_cache {
            team_cache.set_working(&name, false);
        }
        if let (Ok(TeammateExit::Elsewhere | TeammateExit::Rested) | Err(_), Some(agent)) = (&lived, agent) {
            self.unsettled.insert(agent);
        }
        match lived {
            Ok(TeammateExit::Elsewhere) => drop(self.elsewhere.insert(name, tokio::time::Instant::now())),
            Ok(TeammateExit::Failed(waiting)) => drop(self.failed.insert(name, waiting)),
            Ok(TeammateExit::Rested | TeammateExit::Stopped) => self.broken = 0,
            Err(Error::Crashed) => return Err(Error::Crashed),
            Err(error) => {
                self.broken += 1;
                if self.broken >= TRIES {
                    return Err(error);
                }
                self.elsewhere.insert(name, tokio::time::Instant::now());
            }
        }
        Ok(())
    }

    /// Whether no member works, here or elsewhere, and nothing is there that one of them would do.
    async fn rests(&self, team_cache: &TeamCache, members: &[Member]) -> Result<bool, Error> {
        if team_cache.anybody_works() {
            return Ok(false);
        }
        let at = self.config.clock.now();
        let failed = |member: &Member| matches!(member.standing, Standing::Failed { .. });
        let live = || members.iter().filter(|member| !matches!(member.standing, Standing::Stopped { .. }));
        // One that waits for a person does nothing before the answer, whatever there is for it to do.
        let waits = |member: &Member| team_cache.is_parked(&member.name);
        if live().any(|member| !failed(member) && !waits(member) && due(team_cache, member, at)) {
            return Ok(false);
        }
        for member in live() {
            let failed = failed(member);
            let (summary, driven) = self.listed(&member.agent).await?;
            let open = summary.is_none_or(|summary| summary.status == Status::Open);
            // A member that no process drives and that this process may not drive is left to other processes.
            if open && (driven || self.drives(member)) && !failed && !waits(member) {
                return Ok(false);
            }
        }
        Ok(!team_cache.anybody_works())
    }

    fn next_deadline(&self, team_cache: &TeamCache) -> Option<u64> {
        let (roster, board) = team_cache.team();
        let now = self.config.clock.now();
        let stopping = roster.members().filter_map(|member| match member.standing {
            Standing::Stopping { deadline, .. } if deadline > now => Some(deadline),
            _ => None,
        });
        stopping.chain(board.next_expiry()).min()
    }

    fn pass_on(&self, level: StopLevel) {
        self.here.values().for_each(|(_, stopper)| stopper.ask(level));
    }
}

/// Whether the kernel knows something that this member should do.
fn due(team_cache: &TeamCache, member: &Member, at: u64) -> bool {
    let (roster, board) = team_cache.team();
    let name = member.name.clone();
    let role = member.role.clone();
    let claimant = Claimant { name, agent: Some(member.agent.clone()), role };
    next(&roster, &board, &claimant, at) != Next::Rest
}
