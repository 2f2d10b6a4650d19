//! The agents that work in a session, folded from notices for the eye: those below the lead, the open
//! workflows, and what all of them have spent. The kernel's own states are the truth; this is a picture of
//! them. An event costs the same however many agents there are, and only as many as fit are ever looked at
//! for drawing.

mod lines;
mod node;
mod programs;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use convoke_kernel::{
    AgentId, Event, Ledger, Piece, Program, ProgramEvent, Role, Run, RunCounts, RunEvent, Status, Summary,
    VerdictCounts,
};

pub(super) use lines::{Line, Tone, cut};
use node::{Node, Phase, State};
use programs::Programs;
#[cfg(test)]
pub(super) use tests::worker;

use convoke_view::{Used, Waits, count, dollars, tokens};

/// The agents that work in a session.
#[derive(Debug)]
pub(crate) struct Tree {
    lead: AgentId,
    /// The agents of this wave: all that the lead waits for, and those that have ended since it was last
    /// asked.
    nodes: HashMap<AgentId, Node>,
    /// The same agents by phase and state, in the order in which they came there.
    lanes: Vec<[BTreeMap<u64, AgentId>; 4]>,
    stamp: u64,
    /// The workflows of this wave.
    runs: Vec<Run>,
    /// The programs' runs that have not ended.
    programs: Programs,
    /// The findings of earlier ones.
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
    pub(super) waits: Waits,
}

impl Tree {
    /// A session in which the lead is alone.
    pub(crate) fn new(lead: AgentId) -> Self {
        Self {
            lead,
            nodes: HashMap::new(),
            lanes: std::iter::repeat_with(Default::default).take(Phase::PROGRAMS).collect(),
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
    pub(crate) fn known(
        lead: AgentId,
        agents: &[(AgentId, Summary)],
        runs: Vec<Run>,
        programs: Vec<Program>,
        ledger: Ledger,
    ) -> Self {
        let mut tree = Self::new(lead);
        tree.ledger = Some(Box::new(ledger));
        programs.into_iter().for_each(|program| tree.programs.know(program));
        tree.make_lanes();
        let (closed, open): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(Run::is_closed);
        closed.iter().for_each(|run| add(&mut tree.past, run.counts().findings));
        let shown: Vec<AgentId> = open
            .iter()
            .flat_map(Run::items)
            .flat_map(|item| item.worker.into_iter().chain(item.verifiers))
            .collect();
        tree.runs = open;
        for (id, summary) in agents {
            let mut node = Node::known(summary);
            node.phase = tree.programs.phase_of(id).unwrap_or(node.phase);
            tree.used.add(&node.used);
            if summary.role == Role::Lead {
                continue;
            }
            tree.tally(node.state, 1);
            if summary.status == Status::Open || shown.contains(id) {
                tree.place(id, node);
            }
        }
        tree
    }

    /// Folds an event of an agent, the lead's too.
    pub(crate) fn recorded(&mut self, agent: &AgentId, at: u64, event: &Event) {
        self.waits.recorded(agent, event);
        self.used.heard(event);
        if *agent == self.lead {
            // Once the lead goes on, the agents it waited for have ended.
            if matches!(event, Event::ResultsAppended(_) | Event::ModelCalled(_) | Event::ExchangeClosed(_)) {
                self.wave_over();
            }
            return;
        }
        let mut node = match (self.nodes.remove(agent), event) {
            (Some(node), _) => node,
            (None, Event::AgentStarted(e)) => self.node(agent, e.spec.role, &e.spec.label),
            // An agent whose start was not seen is shown all the same.
            (None, _) => self.node(agent, Role::Task, ""),
        };
        let before = node.state;
        let after = node.apply(at, event);
        if matches!(event, Event::ToolStarted(_)) {
            self.latest = Some(agent.clone());
        }
        if before == after && node.stamp > 0 {
            self.nodes.insert(agent.clone(), node);
            return;
        }
        self.lanes[node.phase.0][before as usize].remove(&node.stamp);
        self.tally(before, -1);
        self.tally(after, 1);
        node.state = after;
        self.place(agent, node);
    }

    /// Takes in a piece of a reply of an agent below the lead; says whether anything looks different now.
    pub(crate) fn piece(&mut self, agent: &AgentId, piece: &Piece) -> bool {
        self.nodes.get_mut(agent).is_some_and(|node| node.piece(piece))
    }

    /// Folds an event of a workflow.
    pub(crate) fn run(&mut self, run: &str, at: u64, event: &RunEvent) {
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
    pub(crate) fn program(&mut self, run: &str, at: u64, event: &ProgramEvent) {
        self.programs.heard(run, at, event);
        self.make_lanes();
    }

    /// Whether the session is a person's own program.
    pub(crate) fn is_by_person(&self) -> bool {
        self.programs.by_person()
    }

    /// A person's own program, in a line: its name, its phase and how long it has been at work.
    pub(crate) fn own_program(&self, now: u64) -> Option<String> {
        self.programs.own(now)
    }

    /// Takes over the ledger as it stands.
    pub(crate) fn ledger(&mut self, ledger: Box<Ledger>) {
        self.ledger = Some(ledger);
    }

    /// Takes in that nothing new starts.
    pub(crate) fn drains(&mut self) {
        self.draining = true;
    }

    /// Whether there is anything beside the lead to be shown.
    pub(crate) fn is_at_work(&self) -> bool {
        !self.nodes.is_empty() || !self.runs.is_empty() || self.programs.are_open()
    }

    /// Agents below the lead that are at work now.
    pub(crate) fn running(&self) -> usize {
        self.phases().map(|phase| self.count(phase, State::Running)).sum()
    }

    /// What the session has spent against what was granted, the most important first; `None` while the lead
    /// is alone.
    pub(crate) fn spent(&self) -> Option<Vec<String>> {
        let others = self.done > 0 || self.failed > 0 || self.is_at_work();
        others.then(|| {
            let of = |cap: Option<String>| cap.map(|cap| format!(" of {cap}")).unwrap_or_default();
            let caps = self.ledger.as_ref().map(|ledger| ledger.caps()).unwrap_or_default();
            // The ledger also counts attempts whose bill never came.
            let (nano, all, agents) = match &self.ledger {
                Some(ledger) => (ledger.spent().nano, ledger.spent().tokens, ledger.agents()),
                None => (0, 0, 0),
            };
            let nano = self.used.cost_nano.map(|sum| sum.max(nano));
            let started = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
            let agents = if self.ledger.is_some() { agents } else { started };
            let cap = caps.agents.map(|cap| format!(" of {cap} agents")).unwrap_or_default();
            vec![
                format!("{}{}", dollars(nano), of(caps.nano.map(|cap| dollars(Some(cap))))),
                if cap.is_empty() { count(agents, "agent") } else { format!("{agents}{cap}") },
                format!("{}{} tokens", tokens(self.used.tokens().max(all)), of(caps.tokens.map(tokens))),
            ]
        })
    }

    /// How the agents of the session stand, and which ran a command last: for a line in a log.
    pub(crate) fn brief(&self, now: u64) -> Option<String> {
        if !self.is_at_work() {
            return None;
        }
        let waiting = self.waits.waiting(now).min(self.running());
        let many = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let running = many(self.running() - waiting);
        let waiting = many(waiting);
        let counts =
            [(running, "running"), (waiting, "waiting"), (self.failed, "failed"), (self.done, "done")];
        let mut brief = format!("agents: {}", lines::listed(&counts));
        let at_it = self
            .latest
            .as_ref()
            .and_then(|id| self.nodes.get(id))
            .filter(|node| node.word(false) == "running");
        if let Some(node) = at_it {
            brief.push_str(&format!(
                " · {}: {}",
                cut(&node.label, 40),
                cut(&node.action(now, &self.waits), 60)
            ));
        }
        Some(brief)
    }

    /// What the workflow of this call came to, once it has ended.
    pub(crate) fn came_to(&self, call: &str) -> Option<String> {
        let asked = |run: &&Run| run.is_closed() && run.spec().is_some_and(|spec| spec.call == call);
        let counts = self.runs.iter().find(asked)?.counts();
        let ended = [
            (counts.ok, "ok"),
            (counts.degraded, "degraded"),
            (counts.failed, "failed"),
            (counts.skipped, "skipped"),
            (counts.reused, "reused"),
        ];
        let items = count(counts.items, "subtask");
        Some(format!("{items}: {} · {}", lines::listed(&ended), lines::findings(counts.findings)))
    }

    /// The workflows of this wave in numbers.
    fn counts(&self) -> RunCounts {
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

    fn node(&self, agent: &AgentId, role: Role, label: &str) -> Node {
        let mut node = Node::new(role, label);
        node.phase = self.programs.phase_of(agent).unwrap_or(node.phase);
        node
    }

    /// Every phase has its lanes.
    fn make_lanes(&mut self) {
        let most = Phase::PROGRAMS + self.programs.groups();
        self.lanes.resize_with(most.max(self.lanes.len()), Default::default);
    }

    fn phases(&self) -> impl Iterator<Item = Phase> + use<> {
        (0..self.lanes.len()).map(Phase)
    }

    fn count(&self, phase: Phase, state: State) -> usize {
        self.lanes[phase.0][state as usize].len()
    }

    /// Puts an agent behind those that are in its state already.
    fn place(&mut self, agent: &AgentId, mut node: Node) {
        self.stamp += 1;
        node.stamp = self.stamp;
        self.lanes[node.phase.0][node.state as usize].insert(node.stamp, agent.clone());
        self.nodes.insert(agent.clone(), node);
    }

    fn tally(&mut self, state: State, by: i32) {
        let sum = match state {
            State::Done => &mut self.done,
            State::Failed => &mut self.failed,
            State::Running | State::Waiting => return,
        };
        *sum = sum.saturating_add_signed(by);
    }

    fn wave_over(&mut self) {
        for lanes in &mut self.lanes {
            for state in [State::Failed, State::Done] {
                for agent in std::mem::take(&mut lanes[state as usize]).into_values() {
                    self.nodes.remove(&agent);
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
