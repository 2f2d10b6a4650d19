//! What is in the journal, as the command line names it: sessions, each with its agents. It reads; it changes
//! nothing.

mod naming;
mod state;

use std::collections::{HashMap, HashSet};

use convoke_journal::{Filter, Journal, Listing, LiveOwner, StreamId};
use convoke_kernel::{
    AgentId, EndFacts, FailureKind, LeadEnd, Ledger, OwnProgram, ProgramStatus, ProgramSummary, Role,
    RunCounts, RunId, RunSummary, SessionId, Status, Summary, ending,
};
use convoke_runtime::{Clock, Ids, TeamClient, summary_of_waiting};
use convoke_view::Losses;

use self::naming::{ambiguous, from_the_end, ids, names};
pub(crate) use self::state::State;
use crate::again::Naming;
use crate::checkpoints;
use crate::failure::{Exit, Failure};
use crate::keeping::Checkout;
use crate::open;
use crate::questions;
use crate::render::raised;
use crate::report::{LostItem, Spend, lost_words};
use crate::settings::Settings;
use crate::work;

/// The sessions of a journal, newest first.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// The sessions.
    pub(crate) sessions: Vec<ListedSession>,
    /// Streams of agents that this version cannot make sense of.
    pub(crate) unreadable: Vec<StreamId>,
    /// Where each session is among them.
    places: HashMap<SessionId, usize>,
    journal: String,
    /// The sessions of this directory, newest first, as places among the sessions.
    here: Vec<usize>,
    dir: String,
}

/// One session of the journal, with its agents and its workflows.
#[derive(Debug)]
pub(crate) struct ListedSession {
    /// The session.
    pub(crate) session: SessionId,
    /// Its agents, the lead first, then in the order they were started.
    pub(crate) agents: Vec<Entry>,
    /// Its workflows, in the order they were started.
    pub(crate) workflows: Vec<RunSummary>,
    /// Its programs' runs, in the order they were started.
    pub(crate) programs: Vec<ProgramSummary>,
    /// The program that a person ran last by a command, among them.
    pub(crate) own: Option<usize>,
    /// How many of its calls wait for a person; 0 until they have been looked up.
    pub(crate) questions: usize,
    /// What was lost.
    pub(crate) losses: Losses,
    /// How much of its team's work is left.
    pub(crate) left: u32,
    /// What it spent, where the budget had no room for something.
    pub(crate) spend: Option<Spend>,
    /// What its requests that were cut off may have cost beside what is known, in nano-dollars; as far as it
    /// was looked up.
    pub(crate) unconfirmed_nano: u64,
}

/// One agent.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The agent.
    pub(crate) agent: AgentId,
    /// What it stands for. An agent that no process has driven yet has the summary it would begin with.
    pub(crate) summary: Summary,
    /// When it was last written to.
    pub(crate) updated_at: u64,
    /// The process that drives it.
    pub(crate) owner: Option<LiveOwner>,
}

impl ListedSession {
    /// A session of which only the agents are known so far.
    pub(crate) fn of_agents(session: SessionId, agents: Vec<Entry>) -> Self {
        Self {
            session,
            agents,
            workflows: Vec::new(),
            programs: Vec::new(),
            own: None,
            questions: 0,
            losses: Losses::default(),
            left: 0,
            spend: None,
            unconfirmed_nano: 0,
        }
    }

    /// The agent that talks to the person.
    pub(crate) fn lead(&self) -> &Entry {
        // A session is made together with its first agent, so there always is one.
        &self.agents[0]
    }

    /// How many agents were started below the lead: what the budget counts.
    pub(crate) fn started(&self) -> usize {
        self.agents.len() - 1
    }

    /// Where the session stands.
    pub(crate) fn state(&self) -> State {
        if self.agents.iter().any(|entry| entry.owner.is_some()) {
            return State::Running;
        }
        let summary = &self.lead().summary;
        let kind = summary.failure.unwrap_or(FailureKind::Internal);
        let lead = match summary.status {
            Status::Open if self.questions > 0 => return State::Waiting,
            Status::Open => return State::Open,
            Status::Done => LeadEnd::Answered,
            Status::Partial => LeadEnd::Failed { kind, says: true },
            Status::Failed => LeadEnd::Failed { kind, says: false },
        };
        // What a program came to is said by its run: to the lead's stream a part is a failure.
        let own = self.own_program().map(|program| match program.status {
            None => OwnProgram::Open,
            Some(ProgramStatus::Complete) => OwnProgram::Complete,
            Some(ProgramStatus::Partial) => OwnProgram::Partial,
            Some(ProgramStatus::Failed) => OwnProgram::Failed,
            Some(ProgramStatus::Stopped) => OwnProgram::Stopped,
        });
        let losses = match self.own_program() {
            Some(own) => self.losses.of_own(&own.run),
            None => self.losses.clone(),
        };
        State::Ended(ending(&losses.enter(EndFacts { lead, own, left: self.left, ..EndFacts::default() })))
    }

    /// Whether a resume would go on with something.
    pub(crate) fn can_go_on(&self) -> bool {
        self.lead().summary.can_go_on || self.left > 0 || (self.own.is_none() && self.losses.can_go_on())
    }

    /// The command that goes on with it, with what it lacks, if there is anything to go on with.
    pub(crate) fn way_on(&self, naming: &Naming) -> Option<String> {
        let resume = naming.resume(self.session.as_str()).filter(|_| self.can_go_on())?;
        let short = self.state().ending().is_some_and(|end| end.code == Exit::Budget as u8);
        let raise = self.spend.as_ref().filter(|_| short).map(|spend| {
            let said: Vec<&str> = self.losses.want_of_room().collect();
            raised(&[], &said, spend)
        });
        Some(resume + &raise.unwrap_or_default())
    }

    /// What a session that ended in part has not done, in words.
    pub(crate) fn not_done(&self) -> String {
        let lost: Vec<LostItem> = self.losses.lost.iter().map(LostItem::from).collect();
        match (&self.losses.refused, lost.is_empty()) {
            (Some(_), _) => "a fan-out was refused whole".to_owned(),
            (None, false) => format!("lost: {}", lost_words(&lost.iter().collect::<Vec<_>>())),
            (None, true) => self.state().words(),
        }
    }

    /// Looks up what was lost. That reads whole sessions, and none where the rows say that nothing was lost.
    async fn look_for_losses(&mut self, journal: &Journal, has_team: bool) -> Result<(), Failure> {
        if has_team && self.lead().summary.status != Status::Open {
            self.left = u32::try_from(
                TeamClient::new(journal.clone(), Clock::system(), Ids::random())
                    .left(&self.session)
                    .await?
                    .len(),
            )
            .unwrap_or(u32::MAX);
        }
        let is_whole = |summary: &RunSummary| {
            let RunCounts { failed, skipped, degraded, findings, .. } = summary.counts;
            failed + skipped + degraded == 0 && (summary.voters == 0 || findings.unverified == 0)
        };
        let is_complete = |summary: &ProgramSummary| summary.status == Some(ProgramStatus::Complete);
        let refused = self.lead().summary.refused.is_some();
        if !refused && self.workflows.iter().all(is_whole) && self.programs.iter().all(is_complete) {
            return Ok(());
        }
        let mut flows = Vec::new();
        let mut programs = Vec::new();
        for summary in &self.workflows {
            flows.push(work::flow(journal, &summary.run).await?);
        }
        for summary in &self.programs {
            programs.push(work::program(journal, &summary.run).await?);
        }
        self.losses = work::losses(self, &flows, &programs);
        if self.losses.is_short() {
            self.spend = work::spent(journal, self).await?;
        }
        Ok(())
    }

    /// Where the session stands, in words. What became of a person's own program is said in the program's
    /// words.
    pub(crate) fn words(&self) -> String {
        match (self.state(), self.own_program().and_then(|program| program.status)) {
            (State::Ended(_), Some(status)) => status.word().to_owned(),
            (State::Open, Some(ProgramStatus::Stopped)) => ProgramStatus::Stopped.word().to_owned(),
            (state, _) => state.words(),
        }
    }

    /// The program that a person ran by a command, if the session is one; the last of several.
    pub(crate) fn own_program(&self) -> Option<&ProgramSummary> {
        self.programs.get(self.own?)
    }

    /// Finds the program that a person ran last.
    async fn look_for_own(&mut self, journal: &Journal) -> Result<(), Failure> {
        let first = RunId::derived(&["workflow", self.lead().agent.as_str(), "person_1"]);
        let Some(first) = self.programs.iter().position(|program| program.run == first.as_str()) else {
            return Ok(());
        };
        self.own = Some(first);
        // A row does not say whether a person started its run. A person has several only where a script was
        // edited, and then the runs themselves say it.
        for at in (first + 1..self.programs.len()).rev() {
            let program = work::program(journal, &self.programs[at].run).await?;
            if program.spec().is_some_and(|spec| !spec.background) {
                self.own = Some(at);
                break;
            }
        }
        Ok(())
    }

    /// The program's run that is meant: the one that is named, a person's last, or the only one.
    pub(crate) fn program(&self, given: &str) -> Result<&ProgramSummary, Failure> {
        let named: Vec<&ProgramSummary> =
            self.programs.iter().filter(|program| names(given, &program.run)).collect();
        let meant = match (named.is_empty(), self.own_program()) {
            (true, Some(own)) => vec![own],
            (true, None) => self.programs.iter().collect(),
            (false, _) => named,
        };
        match meant.as_slice() {
            [program] => Ok(program),
            [] => Err(Failure::usage(format!("{} ran no workflow program", self.session))),
            several => Err(ambiguous(given, "programs", several.iter().map(|program| program.run.as_str()))),
        }
    }

    /// Everything of it that is in the journal: its agents, its workflows, its ledger and its team.
    pub(crate) fn streams(&self) -> Vec<StreamId> {
        let sessions = self.workflows.iter().map(|summary| &summary.run);
        let sessions = sessions.chain(self.programs.iter().map(|summary| &summary.run));
        let workflows = sessions.filter_map(|listed| StreamId::new(listed.as_str()).ok());
        let agents = self.agents.iter().map(|entry| StreamId::from(&entry.agent));
        agents
            .chain(workflows)
            .chain([StreamId::from(&self.session)])
            .chain(TeamClient::streams(&self.session))
            .collect()
    }

    /// When anything of it was last written to.
    pub(crate) fn updated_at(&self) -> u64 {
        self.agents.iter().map(|entry| entry.updated_at).max().unwrap_or_default()
    }

    /// The agent that an id or a prefix names.
    pub(crate) fn agent(&self, given: &str) -> Result<&Entry, Failure> {
        let found: Vec<&Entry> =
            self.agents.iter().filter(|entry| names(given, entry.agent.as_str())).collect();
        match found.as_slice() {
            [entry] => Ok(entry),
            [] => Err(Failure::usage(format!("there is no agent '{given}' in session {}", self.session))
                .hint(format!("its agents: {}", ids(self.agents.iter().map(|entry| entry.agent.as_str()))))),
            several => Err(ambiguous(given, "agents", several.iter().map(|entry| entry.agent.as_str()))),
        }
    }
}

/// Opens the journal if there is one: looking must not leave an empty journal behind.
pub(crate) async fn open_existing(settings: &Settings) -> Result<Option<Journal>, Failure> {
    if settings.journal.file().is_some_and(|file| !file.exists()) {
        return Ok(None);
    }
    let journal = open::journal(settings).await?;
    tokio::spawn(open::tell_outage(journal.outage(), settings.postgres.1));
    Ok(Some(journal))
}

impl Catalog {
    /// Reads the sessions of a journal; without a journal there are none.
    pub(crate) async fn load(settings: &Settings, journal: Option<&Journal>) -> Result<Self, Failure> {
        let mut catalog = Self { journal: settings.journal.to_string(), ..Self::default() };
        let Some(journal) = journal else { return Ok(catalog) };
        let filter = Filter { prefix: Some(AgentId::PREFIX.to_owned()), limit: None };
        for listing in journal.list(&filter).await? {
            match read(journal, &listing).await? {
                Some(entry) => catalog.add(entry),
                None => catalog.unreadable.push(listing.stream),
            }
        }
        for listed in &mut catalog.sessions {
            // Those made in the same millisecond stand in any order.
            listed.agents.sort_by_key(|entry| entry.summary.role != Role::Lead);
        }
        let filter = Filter { prefix: Some(RunId::PREFIX.to_owned()), limit: None };
        for listing in journal.list(&filter).await? {
            // A session is recorded together with its summary; a stream that was only owned is none yet.
            let Some(text) = listing.summary else { continue };
            if let Ok(summary) = serde_json::from_str::<ProgramSummary>(&text) {
                if let Some(&place) = catalog.places.get(&summary.session) {
                    catalog.sessions[place].programs.insert(0, summary);
                }
            } else if let Ok(summary) = serde_json::from_str::<RunSummary>(&text)
                && let Some(&place) = catalog.places.get(&summary.session)
            {
                catalog.sessions[place].workflows.insert(0, summary);
            }
        }
        let teams = teams(journal).await?;
        for listed in &mut catalog.sessions {
            listed.look_for_own(journal).await?;
            listed.look_for_losses(journal, teams.contains(listed.session.as_str())).await?;
        }
        let here = |(at, listed): (usize, &ListedSession)| {
            (Checkout::of_listed(settings, listed) == settings.dir).then_some(at)
        };
        catalog.here = catalog.sessions.iter().enumerate().filter_map(here).collect();
        catalog.dir = settings.dir.display().to_string();
        Ok(catalog)
    }

    fn add(&mut self, entry: Entry) {
        let session = entry.summary.session.clone();
        match self.places.get(&session) {
            // The list is newest first and a lead is older than its children.
            Some(&place) => self.sessions[place].agents.insert(0, entry),
            None => {
                self.places.insert(session.clone(), self.sessions.len());
                self.sessions.push(ListedSession::of_agents(session, vec![entry]));
            }
        }
    }

    /// Looks up what these sessions may have cost that no usage confirmed. That reads a ledger for each.
    pub(crate) async fn look_for_unconfirmed(
        &mut self,
        journal: &Journal,
        shown: impl Fn(&ListedSession) -> bool,
    ) {
        for listed in self.sessions.iter_mut().filter(|listed| shown(listed)) {
            // A ledger that cannot be read is shown as none; `doctor` says what is wrong with the journal.
            let state = journal.shared(&StreamId::from(&listed.session)).await.ok().flatten();
            let ledger = state.and_then(|state| serde_json::from_str::<Ledger>(&state).ok());
            listed.unconfirmed_nano = ledger.map_or(0, |ledger| ledger.unconfirmed().nano);
        }
    }

    /// Looks up which of these sessions wait for a person. That reads the streams of every open agent, so it
    /// is done for what is shown and not for all.
    pub(crate) async fn look_for_questions(
        &mut self,
        journal: &Journal,
        shown: impl Fn(&ListedSession) -> bool,
    ) {
        for listed in self.sessions.iter_mut().filter(|listed| listed.state() == State::Open && shown(listed))
        {
            // One that cannot be read is shown all the same.
            let calls = questions::open(journal, listed).await.map_or(0, |open| open.len());
            let asked = checkpoints::open(journal, &listed.session).await.map_or(0, |open| open.len());
            listed.questions = calls + asked;
        }
    }

    /// The sessions of this directory, newest first.
    pub(crate) fn of_this_directory(&self) -> impl Iterator<Item = &ListedSession> {
        self.here.iter().map(|at| &self.sessions[*at])
    }

    /// The session that an id or a prefix names: its session's, or that of one of its agents or workflows.
    /// `last` and `@1` are the newest of this directory, `@2` the one before it.
    pub(crate) fn find(&self, given: &str) -> Result<&ListedSession, Failure> {
        if let Some(number) = from_the_end(given) {
            let found = number.checked_sub(1).and_then(|at| self.here.get(at));
            return found.map(|at| &self.sessions[*at]).ok_or_else(|| {
                let all = self.here.len();
                let what = format!("there is no session '{given}': {} has {all} of them", self.dir);
                Failure::usage(what).hint("`convoke sessions list --all` shows those of every directory")
            });
        }
        let named = |listed: &&ListedSession| {
            names(given, listed.session.as_str())
                || listed.agents.iter().any(|entry| names(given, entry.agent.as_str()))
                || listed.workflows.iter().any(|workflow| names(given, &workflow.run))
                || listed.programs.iter().any(|program| names(given, &program.run))
        };
        let found: Vec<&ListedSession> = self.sessions.iter().filter(named).collect();
        match found.as_slice() {
            [listed] => Ok(listed),
            [] => Err(Failure::usage(format!("there is no session '{given}' in {}", self.journal))
                .hint("`convoke sessions list --all` shows every session")),
            several => {
                Err(ambiguous(given, "sessions", several.iter().map(|listed| listed.session.as_str())))
            }
        }
    }

    /// How many characters of an id tell these sessions apart, with some to spare for the ones to come.
    pub(crate) fn id_length(&self) -> usize {
        const SHORT: usize = 10;
        let mut sessions: Vec<&str> = self.sessions.iter().map(|listed| listed.session.as_str()).collect();
        sessions.sort_unstable();
        let common = |pair: &[&str]| {
            pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count()
        };
        sessions.windows(2).map(|pair| common(pair) + 1).max().unwrap_or(0).max(SHORT)
    }
}

/// The sessions that have members or tasks.
pub(crate) async fn teams(journal: &Journal) -> Result<HashSet<String>, Failure> {
    let mut sessions = HashSet::new();
    for prefix in ["roster:", "board:"] {
        let filter = Filter { prefix: Some(prefix.to_owned()), limit: None };
        let listed = journal.list(&filter).await?;
        sessions.extend(
            listed.iter().filter_map(|row| Some(row.stream.as_str().strip_prefix(prefix)?.to_owned())),
        );
    }
    Ok(sessions)
}

async fn read(journal: &Journal, listing: &Listing) -> Result<Option<Entry>, Failure> {
    let Ok(agent) = listing.stream.as_str().parse::<AgentId>() else { return Ok(None) };
    let summary = match &listing.summary {
        Some(text) => serde_json::from_str(text).ok(),
        None => waiting(journal, listing).await?,
    };
    let owner = listing.owner.clone();
    Ok(summary.map(|summary| Entry { agent, summary, updated_at: listing.updated_at, owner }))
}

/// An agent that was written down and never driven is as resumable as any other, so it is listed.
async fn waiting(journal: &Journal, listing: &Listing) -> Result<Option<Summary>, Failure> {
    let inputs = journal.inputs(&listing.stream).await?;
    Ok(inputs.iter().find_map(|input| summary_of_waiting(input, listing.created_at)))
}
