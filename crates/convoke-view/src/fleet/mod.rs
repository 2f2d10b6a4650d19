//! Everything in a session, folded from its events for the eye: agents by phase, runs, tasks, letters,
//! findings. What a model or a command wrote is made harmless and cut here, once per event, so that drawing
//! costs nothing but the drawing. What is kept of an agent is a row; its turns and outputs are read again
//! when the person looks at them ([`Page`]).

mod agents;
mod findings;
mod labels;
mod lists;
mod page;
mod programs;
mod rows;
mod runs;
#[cfg(any(test, feature = "samples"))]
mod samples;
mod streams;
mod team;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use convoke_kernel::{AgentId, Event, Ledger, Reused, Role, RunId, Usage};

use crate::session_event::SessionEvent;
use crate::used::Used;
use crate::waits::Waits;
use agents::{ASKS_AGAIN, Track};
use lists::Lists;
pub use page::{Entry, Page};
use programs::Programs;
pub use rows::{
    AgentRow, AgentState, FindingRow, LetterRow, PhaseRow, RowFilter, RunRow, TaskRow, VerdictWord,
};
use runs::Flows;
pub use streams::Streams;
use team::Team;

/// All agents of a session, and all that they do.
#[derive(Debug, Default)]
pub struct Fleet {
    lists: Lists,
    streams: Streams,
    tracks: HashMap<AgentId, Track>,
    /// Where agents belong that were asked for and have not been heard of.
    posts: HashMap<AgentId, AgentOrigin>,
    flows: Flows,
    programs: Programs,
    team: Team,
    lead: Option<AgentId>,
    ledger: Option<Ledger>,
    /// What all agents together have used.
    used: Used,
    /// Nothing new starts: an agent that is between two steps has stopped there.
    is_draining: bool,
    waits: Waits,
}

/// Where an agent belongs, as the run, program or team that asked for it says.
#[derive(Debug, Clone)]
struct AgentOrigin {
    phase: String,
    run: Option<RunId>,
    label: String,
    role: Role,
    /// The call of a program that it does.
    call: Option<u32>,
}

impl AgentOrigin {
    fn of(phase: &str, label: &str, role: Role) -> Self {
        Self { phase: phase.to_owned(), run: None, label: labels::line(label), role, call: None }
    }

    fn new(phase: &str, run: &RunId, label: &str, role: Role) -> Self {
        Self { run: Some(run.clone()), ..Self::of(phase, label, role) }
    }
}

impl Fleet {
    /// Nothing has been heard yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in what has happened; says whether anything looks different now.
    pub fn hear(&mut self, heard: &SessionEvent) -> bool {
        if heard.source().is_some_and(|(stream, seq)| !self.streams.is_new(stream, seq)) {
            return false;
        }
        match heard {
            SessionEvent::Agent { agent, at, event, .. } => self.hear_agent(agent, *at, event),
            SessionEvent::Run { run, at, event, .. } => self.hear_run(run, *at, event),
            SessionEvent::Program { run, at, event, .. } => self.hear_program(run, *at, event),
            SessionEvent::Roster { at, event, .. } => self.hear_roster(*at, event),
            SessionEvent::Board { at, event, .. } => self.hear_board(*at, event),
            SessionEvent::Ledger(ledger) => self.hear_ledger(ledger),
            SessionEvent::Live { agent, piece } => {
                // Pieces come in great numbers and nearly none of them changes the word.
                let is_other = self.tracks.get_mut(agent).is_some_and(|track| track.piece(piece));
                is_other && self.change_at(agent, None, |_, _| {})
            }
            SessionEvent::Held(hold) => {
                self.waits.held(*hold);
                true
            }
            SessionEvent::Draining => {
                self.is_draining = true;
                self.settle_all(|_| {})
            }
        }
    }

    /// No agent is driven now, because all that was heard is of before or because the session has stopped:
    /// agents that have not ended wait until they are heard of again.
    pub fn leave_all(&mut self) -> bool {
        self.waits.clear();
        self.settle_all(Track::leave)
    }

    /// What an agent did last; of one that asks again, also when.
    pub fn last(&self, row: &AgentRow, now: u64) -> String {
        match self.waits.again(&row.id, now) {
            Some(when) => row.last.replacen(ASKS_AGAIN, &format!("{ASKS_AGAIN} {when}"), 1),
            None => row.last.clone(),
        }
    }

    /// The agents that wait for the server.
    pub fn waits(&self) -> &Waits {
        &self.waits
    }

    fn hear_agent(&mut self, agent: &AgentId, at: u64, event: &Event) -> bool {
        self.waits.recorded(agent, event);
        self.introduce(agent, at, event);
        // Nothing new starts in a session that drains, so when something does it goes on.
        let goes_on = matches!(
            event,
            Event::Resumed(_)
                | Event::ExchangeOpened(_)
                | Event::ExchangeReopened(_)
                | Event::CallMade(_)
                | Event::ModelCalled(_)
        );
        self.is_draining &= !goes_on;
        if is_quiet(event) {
            return self.change_at(agent, None, |track, _| track.take_up());
        }
        self.used.heard(event);
        self.letters_in(event) | self.change(agent, at, |track, row| track.fold(row, at, event))
    }

    /// Makes the row of an agent that is heard of for the first time, and puts it where its role belongs,
    /// unless a run, program or team asked for it.
    fn introduce(&mut self, agent: &AgentId, at: u64, event: &Event) {
        let role = match event {
            Event::AgentStarted(e) => Some(e.spec.role),
            _ => self.lead.as_ref().filter(|lead| *lead == agent).map(|_| Role::Lead),
        };
        if role == Some(Role::Lead) {
            self.lead = Some(agent.clone());
        }
        let is_known = self.tracks.contains_key(agent);
        let post = self.posts.remove(agent);
        if let Some(post) = post {
            if let (Some(run), Some(call)) = (post.run.clone(), post.call) {
                self.callee_begins(&run, call);
            }
            self.post(agent, at, post);
        } else if !is_known {
            self.enter(
                agent,
                at,
                AgentOrigin::of(phase_of(role.unwrap_or(Role::Task)), "", role.unwrap_or(Role::Task)),
            );
        } else if let Some(role) = role {
            self.lists.change_agent(agent, |row| {
                if row.run.is_none() {
                    row.phase = phase_of(role).to_owned();
                }
            });
        }
    }

    /// A run, program or team asked for an agent: it belongs there from now on.
    fn post(&mut self, agent: &AgentId, at: u64, post: AgentOrigin) {
        if !self.tracks.contains_key(agent) {
            return self.enter(agent, at, post);
        }
        self.lists.change_agent(agent, |row| {
            if row.label == UNNAMED && !post.label.is_empty() {
                row.label = post.label;
            }
            (row.phase, row.run) = (post.phase, post.run);
        });
    }

    fn enter(&mut self, agent: &AgentId, at: u64, post: AgentOrigin) {
        let label = Some(post.label).filter(|label| !label.is_empty()).unwrap_or_else(|| UNNAMED.to_owned());
        self.tracks.insert(agent.clone(), Track::default());
        self.lists.add_agent(AgentRow {
            id: agent.clone(),
            role: post.role,
            label: if post.role == Role::Lead { "lead".to_owned() } else { label },
            phase: post.phase,
            run: post.run,
            state: AgentState::Waiting,
            act: AgentState::Waiting.word(),
            last: String::new(),
            since: at,
            started_at: at,
            turns: 0,
            commands: 0,
            tokens: 0,
            cost_nano: Some(0),
            model: String::new(),
        });
    }

    /// A result was reused: its agent, which worked in another session, gets a row that says how old it is.
    fn serve(&mut self, agent: &AgentId, at: u64, post: AgentOrigin, (from, came_to): (&Reused, &str)) {
        self.enter(agent, at, post);
        let last = labels::from_when(from, at, came_to);
        self.change(agent, at, |track, row| {
            track.serve();
            row.last = last;
        });
    }

    /// Changes what is known of an agent, and its row accordingly. Says whether that looks different.
    fn change(&mut self, agent: &AgentId, at: u64, how: impl FnOnce(&mut Track, &mut AgentRow)) -> bool {
        self.change_at(agent, Some(at), how)
    }

    fn change_at(
        &mut self,
        agent: &AgentId,
        at: Option<u64>,
        how: impl FnOnce(&mut Track, &mut AgentRow),
    ) -> bool {
        let Some(track) = self.tracks.get_mut(agent) else { return false };
        let is_draining = self.is_draining;
        self.lists.change_agent(agent, |row| {
            let state = row.state;
            let act = row.act;
            let last = row.last.clone();
            how(track, row);
            track.settle(row, is_draining);
            let is_other = (state, act) != (row.state, row.act) || last != row.last;
            row.since = at.filter(|_| is_other).unwrap_or(row.since);
        })
    }

    fn settle_all(&mut self, how: impl Fn(&mut Track)) -> bool {
        let ids = self.lists.ids();
        ids.iter().fold(false, |is_changed, id| self.change_at(id, None, |track, _| how(track)) | is_changed)
    }

    fn hear_ledger(&mut self, ledger: &Ledger) -> bool {
        let is_newer =
            self.ledger.as_ref().is_none_or(|known| known.count() <= ledger.count() && known != ledger);
        if is_newer {
            self.ledger = Some(ledger.clone());
        }
        is_newer
    }

    /// The lead, once there is one.
    pub fn lead(&self) -> Option<&AgentId> {
        self.lead.as_ref()
    }

    /// The row of an agent.
    pub fn agent(&self, id: &AgentId) -> Option<&AgentRow> {
        self.lists.agent(id)
    }

    /// The agents that pass this filter, phase by phase, within a phase the most interesting first (asks,
    /// running, failed, waiting, done), then in the order they came. Fast for 1,000 agents: called once a
    /// frame.
    pub fn agents(&self, only: &RowFilter) -> Vec<&AgentRow> {
        self.lists.agents(only)
    }

    /// How each phase stands, in the order they began.
    pub fn phases(&self) -> Vec<PhaseRow> {
        self.lists.phases()
    }

    /// The runs of workflows, in the order they began.
    pub fn runs(&self) -> &[RunRow] {
        &self.lists.runs
    }

    /// The tasks of the board that pass this filter: claimed, open, blocked, failed, done.
    pub fn tasks(&self, only: &RowFilter) -> Vec<&TaskRow> {
        self.lists.tasks(only)
    }

    /// The letters that pass this filter, the newest last.
    pub fn letters(&self, only: &RowFilter) -> Vec<&LetterRow> {
        self.lists.letters(only)
    }

    /// The findings that pass this filter, the most serious first.
    pub fn findings(&self, only: &RowFilter) -> Vec<&FindingRow> {
        self.lists.findings(only)
    }

    /// How many agents are at work.
    pub fn running(&self) -> usize {
        self.lists.running()
    }

    /// The ledger as it stands.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// The tokens of all agents together.
    pub fn usage(&self) -> Usage {
        self.used.usage
    }

    /// What all agents have cost together, attempts whose bill never came included; `None` if a price is not
    /// known.
    pub fn cost_nano(&self) -> Option<u64> {
        let settled = self.ledger.as_ref().map_or(0, |ledger| ledger.spent().nano);
        self.used.cost_nano.map(|sum| sum.max(settled))
    }

    /// Whether every event of every stream that was heard of was heard.
    pub fn is_whole(&self) -> bool {
        self.streams.are_whole()
    }

    /// How long something has been so, at this time.
    pub fn since(now: u64, at: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(at))
    }
}

/// The label of an agent without a name.
const UNNAMED: &str = "(agent)";

/// The phase of an agent that no run asked for.
fn phase_of(role: Role) -> &'static str {
    match role {
        Role::Lead => "lead",
        Role::Worker => "working",
        Role::Verifier => "verifying",
        Role::Task | Role::Callee => "tasks",
        Role::Teammate => "team",
    }
}

/// Whether an event says anything about an agent beyond its own page. Kept here so that rows and pages agree.
pub fn is_quiet(event: &Event) -> bool {
    matches!(event, Event::Resumed(_) | Event::InputRejected(_))
}
