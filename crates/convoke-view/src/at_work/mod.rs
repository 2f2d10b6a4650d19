//! The agents that work in a session now, folded from notices for the eye: those below the lead, the open
//! workflows, and what all of them have spent. The kernel's own states are the truth; this is a picture of
//! them. An event costs the same however many agents there are, and only as many as fit are ever looked at
//! for drawing.
//!
//! It is what a session shows that is followed without a screen. [`Fleet`](crate::Fleet) keeps every agent
//! for good and is made of events alone; here an agent leaves when the lead goes on, and a session that is
//! taken up again begins with what the journal says of it.

mod agent;
mod programs;

use std::collections::{BTreeMap, HashMap};

use convoke_kernel::{
    AgentId, Caps, Event, Ledger, Piece, Program, ProgramEvent, Role, Run, RunCounts, RunEvent, RunId,
    Status, Summary, VerdictCounts,
};

pub use agent::{WorkPhase, WorkState, WorkingAgent};
use programs::Programs;
pub use programs::{OwnProgram, PhaseCounts};

use crate::reading::Step;
use crate::used::Used;
use crate::waits::Waits;

/// The agents that work in a session.
#[derive(Debug)]
pub struct AgentsAtWork {
    lead: AgentId,
    /// All agents that the lead waits for, and those that have ended since it was last asked.
    agents: HashMap<AgentId, WorkingAgent>,
    /// The same agents by phase and state, in the order in which they came there.
    lanes: Vec<[BTreeMap<u64, AgentId>; 4]>,
    stamp: u64,
    /// The workflows that they belong to.
    runs: Vec<Run>,
    /// The programs' runs that have not ended.
    programs: Programs,
    /// The findings of earlier workflows.
    past: VerdictCounts,
    done: u32,
    failed: u32,
    /// What all agents have used, the lead included.
    used: Used,
    ledger: Option<Box<Ledger>>,
    /// Nothing new starts: an agent that is between two steps has stopped.
    draining: bool,
    /// The agent that last ran a command.
    latest: Option<AgentId>,
    /// The agents that wait for the server, the lead included.
    pub waits: Waits,
}

/// What a session has spent against what was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpentSoFar {
    /// What it costs; `None` where a price is not known.
    pub nano: Option<u64>,
    /// Agents that were started.
    pub agents: u32,
    /// Tokens, in and out.
    pub tokens: u64,
    /// What was granted.
    pub caps: Caps,
}

impl AgentsAtWork {
    /// A session in which the lead is alone.
    pub fn new(lead: AgentId) -> Self {
        Self {
            lead,
            agents: HashMap::new(),
            lanes: std::iter::repeat_with(Default::default).take(WorkPhase::PROGRAMS).collect(),
            stamp: 0,
            runs: Vec::new(),
            programs: Programs::default(),
            past: VerdictCounts::default(),
            done: 0,
            failed: 0,
            used: Used::default(),
            ledger: None,
            draining: false,
            latest: None,
            waits: Waits::default(),
        }
    }

    /// A session that is taken up again, with its agents, its runs and its ledger as the journal has them.
    pub fn known(
        lead: AgentId,
        agents: &[(AgentId, Summary)],
        runs: Vec<Run>,
        programs: Vec<Program>,
        ledger: Ledger,
    ) -> Self {
        let mut work = Self::new(lead);
        work.ledger = Some(Box::new(ledger));
        programs.into_iter().for_each(|program| work.programs.know(program));
        work.make_lanes();
        let (closed, open): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(Run::is_closed);
        closed.iter().for_each(|run| add(&mut work.past, run.counts().findings));
        let shown: Vec<AgentId> = open
            .iter()
            .flat_map(Run::items)
            .flat_map(|item| item.worker.into_iter().chain(item.verifiers))
            .collect();
        work.runs = open;
        for (id, summary) in agents {
            let mut agent = WorkingAgent::known(summary);
            agent.phase = work.programs.phase_of(id).unwrap_or(agent.phase);
            work.used.add(&agent.used);
            if summary.role == Role::Lead {
                continue;
            }
            work.tally(agent.state, 1);
            if summary.status == Status::Open || shown.contains(id) {
                work.place(id, agent);
            }
        }
        work
    }

    /// Folds an event of an agent, the lead's too.
    pub fn recorded(&mut self, id: &AgentId, at: u64, event: &Event) {
        self.waits.recorded(id, event);
        self.used.heard(event);
        if *id == self.lead {
            // Once the lead goes on, the agents it waited for have ended.
            if matches!(event, Event::ResultsAppended(_) | Event::ModelCalled(_) | Event::ExchangeClosed(_)) {
                self.forget_ended();
            }
            return;
        }
        let step = Step::of(event);
        let mut agent = match (self.agents.remove(id), step) {
            (Some(agent), _) => agent,
            (None, Step::Started(e)) => self.agent(id, e.spec.role, &e.spec.label),
            // An agent whose start was not seen is shown all the same.
            (None, _) => self.agent(id, Role::Task, ""),
        };
        let before = agent.state;
        let after = agent.apply(at, event);
        if matches!(step, Step::CallStarted(_)) {
            self.latest = Some(id.clone());
        }
        if before == after && agent.stamp > 0 {
            self.agents.insert(id.clone(), agent);
            return;
        }
        self.lanes[agent.phase.0][before as usize].remove(&agent.stamp);
        self.tally(before, -1);
        self.tally(after, 1);
        agent.state = after;
        self.place(id, agent);
    }

    /// Takes in a piece of a reply of an agent below the lead; says whether anything looks different now.
    pub fn piece(&mut self, agent: &AgentId, piece: &Piece) -> bool {
        self.agents.get_mut(agent).is_some_and(|agent| agent.piece(piece))
    }

    /// Folds an event of a workflow.
    pub fn run(&mut self, run: &str, at: u64, event: &RunEvent) {
        if let RunEvent::RunStarted(_) = event {
            self.runs.push(Run::new());
        }
        let known = |shown: &&mut Run| shown.spec().is_none_or(|spec| spec.run == run);
        if let Some(shown) = self.runs.iter_mut().find(known) {
            // What does not fit is a fault of this picture, and the picture is all it costs.
            let _ = shown.apply(event, at);
        }
    }

    /// Folds an event of a program's run.
    pub fn program(&mut self, run: &str, at: u64, event: &ProgramEvent) {
        self.programs.heard(run, at, event);
        self.make_lanes();
    }

    /// Takes over the ledger as it stands.
    pub fn ledger(&mut self, ledger: Box<Ledger>) {
        self.ledger = Some(ledger);
    }

    /// Takes in that nothing new starts.
    pub fn drains(&mut self) {
        self.draining = true;
    }

    /// Whether nothing new starts.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Whether there is anything beside the lead to be shown.
    pub fn is_at_work(&self) -> bool {
        !self.agents.is_empty() || !self.runs.is_empty() || self.has_programs()
    }

    /// Whether a program's run has not ended.
    pub fn has_programs(&self) -> bool {
        self.programs.are_open()
    }

    /// Whether there are workflows of flat subtasks among what is shown.
    pub fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether the session is a person's own program, and has no lead that does anything.
    pub fn is_by_person(&self) -> bool {
        self.programs.by_person()
    }

    /// The person's own program, while it runs.
    pub fn own_program(&self) -> Option<OwnProgram> {
        self.programs.own()
    }

    /// Agents below the lead that are at work now.
    pub fn running(&self) -> usize {
        self.phases().map(|phase| self.count(phase, WorkState::Running)).sum()
    }

    /// Agents below the lead that have ended well, those of earlier workflows too.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Agents below the lead that have failed, those of earlier workflows too.
    pub fn failed(&self) -> u32 {
        self.failed
    }

    /// What the session has spent; `None` while the lead is alone.
    pub fn spent(&self) -> Option<SpentSoFar> {
        let others = self.done > 0 || self.failed > 0 || self.is_at_work();
        others.then(|| {
            let caps = self.ledger.as_ref().map(|ledger| ledger.caps()).unwrap_or_default();
            // The ledger also counts attempts whose bill never came.
            let (nano, tokens, agents) = match &self.ledger {
                Some(ledger) => (ledger.spent().nano, ledger.spent().tokens, ledger.agents()),
                None => (0, 0, u32::try_from(self.agents.len()).unwrap_or(u32::MAX)),
            };
            let nano = self.used.cost_nano.map(|sum| sum.max(nano));
            SpentSoFar { nano, agents, tokens: self.used.tokens().max(tokens), caps }
        })
    }

    /// How long the session has been at work by this time, in milliseconds, as its ledger has it.
    pub fn ms_used(&self, now: u64) -> Option<u64> {
        self.ledger.as_ref().map(|ledger| ledger.ms_used(now))
    }

    /// The agent that ran a command last, if it is still shown.
    pub fn latest(&self) -> Option<&WorkingAgent> {
        self.agents.get(self.latest.as_ref()?)
    }

    /// The workflow of this run, while it is shown.
    pub fn run_of(&self, run: &RunId) -> Option<&Run> {
        self.runs.iter().find(|shown| shown.spec().is_some_and(|spec| spec.run == run.as_str()))
    }

    /// What the workflow of this call came to, once it has ended.
    pub fn came_to(&self, call: &str) -> Option<RunCounts> {
        let asked = |run: &&Run| run.is_closed() && run.spec().is_some_and(|spec| spec.call == call);
        Some(self.runs.iter().find(asked)?.counts())
    }

    /// The workflows that are shown in numbers.
    pub fn counts(&self) -> RunCounts {
        let mut sum = RunCounts::default();
        for counts in self.runs.iter().map(Run::counts) {
            sum.items += counts.items;
            sum.ok += counts.ok;
            sum.degraded += counts.degraded;
            sum.failed += counts.failed;
            sum.skipped += counts.skipped;
            sum.reused += counts.reused;
            sum.reused_votes += counts.reused_votes;
            add(&mut sum.findings, counts.findings);
        }
        sum
    }

    /// The findings of all workflows of the session in numbers.
    pub fn findings(&self) -> VerdictCounts {
        let mut found = self.past;
        add(&mut found, self.counts().findings);
        found
    }

    /// The phases, in the order in which they are shown.
    pub fn phases(&self) -> impl Iterator<Item = WorkPhase> + use<> {
        (0..self.lanes.len()).map(WorkPhase)
    }

    /// Whether there is anything to be said of a phase.
    pub fn has(&self, phase: WorkPhase) -> bool {
        WorkState::ALL.iter().any(|state| self.count(phase, *state) > 0)
            || (phase == WorkPhase::WORKING && self.has_runs())
            || self.programs.shows(phase)
    }

    /// Whether everything of a program's phase has ended.
    pub fn is_over(&self, phase: WorkPhase) -> bool {
        let at_it = self.count(phase, WorkState::Running) + self.count(phase, WorkState::Waiting);
        phase.0 >= WorkPhase::PROGRAMS && at_it == 0 && self.programs.is_over(phase)
    }

    /// A program's phase in numbers; `None` for one that every session has.
    pub fn program_counts(&self, phase: WorkPhase) -> Option<PhaseCounts> {
        (phase.0 >= WorkPhase::PROGRAMS).then(|| self.programs.counts(phase))
    }

    /// What a program's phase is called; `unnamed` where the program gave no name.
    pub fn program_title(&self, phase: WorkPhase, unnamed: &str) -> String {
        self.programs.title(phase, unnamed)
    }

    /// How many agents of a phase are in this state.
    pub fn count(&self, phase: WorkPhase, state: WorkState) -> usize {
        self.lanes[phase.0][state as usize].len()
    }

    /// The agents of a phase that are in this state, in the order in which they came to it. Whether there are
    /// ten or ten thousand, the first and the last are at hand.
    pub fn agents(
        &self,
        phase: WorkPhase,
        state: WorkState,
    ) -> impl DoubleEndedIterator<Item = &WorkingAgent> {
        self.lanes[phase.0][state as usize].values().filter_map(|id| self.agents.get(id))
    }

    fn agent(&self, id: &AgentId, role: Role, label: &str) -> WorkingAgent {
        let mut agent = WorkingAgent::new(role, label);
        agent.phase = self.programs.phase_of(id).unwrap_or(agent.phase);
        agent
    }

    /// Every phase has its lanes.
    fn make_lanes(&mut self) {
        let most = WorkPhase::PROGRAMS + self.programs.groups();
        self.lanes.resize_with(most.max(self.lanes.len()), Default::default);
    }

    /// Puts an agent behind those that are in its state already.
    fn place(&mut self, id: &AgentId, mut agent: WorkingAgent) {
        self.stamp += 1;
        agent.stamp = self.stamp;
        self.lanes[agent.phase.0][agent.state as usize].insert(agent.stamp, id.clone());
        self.agents.insert(id.clone(), agent);
    }

    fn tally(&mut self, state: WorkState, by: i32) {
        let sum = match state {
            WorkState::Done => &mut self.done,
            WorkState::Failed => &mut self.failed,
            WorkState::Running | WorkState::Waiting => return,
        };
        *sum = sum.saturating_add_signed(by);
    }

    fn forget_ended(&mut self) {
        for lanes in &mut self.lanes {
            for state in [WorkState::Failed, WorkState::Done] {
                for agent in std::mem::take(&mut lanes[state as usize]).into_values() {
                    self.agents.remove(&agent);
                }
            }
        }
        for run in self.runs.extract_if(.., |run| run.is_closed()) {
            add(&mut self.past, run.counts().findings);
        }
    }
}

fn add(sum: &mut VerdictCounts, more: VerdictCounts) {
    sum.confirmed += more.confirmed;
    sum.refuted += more.refuted;
    sum.uncertain += more.uncertain;
    sum.unverified += more.unverified;
}
