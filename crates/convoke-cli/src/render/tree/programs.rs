//! The programs' runs of a session, folded for the tree: which agent stands in which phase, and how the
//! phases stand in numbers.

use std::collections::HashMap;
use std::time::Duration;

use convoke_kernel::{AgentId, CallKind, CallState, ItemStatus, Program, ProgramEvent};

use super::node::Phase;
use convoke_view::{count, flat, seconds};

/// Verifiers of one finding that are looked for, whatever the program says.
const VOTERS: u32 = 9;
/// How much of a name is kept; more than any line shows.
const MOST_CHARS: usize = 80;

/// The programs' runs of a session.
#[derive(Debug, Default)]
pub(super) struct Programs {
    open: Vec<Open>,
    /// Every phase there has been, in the order of the tree; they keep their places.
    groups: Vec<Group>,
    callees: HashMap<AgentId, Phase>,
    /// Whether the session is a person's own program.
    by_person: bool,
}

#[derive(Debug)]
struct Open {
    run: String,
    name: String,
    by_person: bool,
    since: u64,
    program: Program,
}

#[derive(Debug, PartialEq, Eq)]
struct Group {
    run: String,
    within: Option<String>,
    phase: Option<String>,
}

impl Programs {
    /// Takes in a run that began before this process did.
    pub(super) fn know(&mut self, program: Program) {
        let Some(spec) = program.spec() else { return };
        if program.is_closed() && spec.background {
            return;
        }
        let run = spec.run.clone();
        let since = program.summary().map_or(0, |summary| summary.started_at);
        self.begin(&run, &program);
        let calls: Vec<CallState> = program.calls().cloned().collect();
        self.open.retain(|open| open.run != run);
        let name = flat(&spec.name, MOST_CHARS).0;
        let by_person = !spec.background;
        self.by_person |= by_person;
        self.open.push(Open { run: run.clone(), name, by_person, since, program });
        calls.iter().for_each(|call| self.place(&run, call));
    }

    /// Folds an event of a run.
    pub(super) fn heard(&mut self, run: &str, at: u64, event: &ProgramEvent) {
        if !self.open.iter().any(|open| open.run == run) {
            let name = String::new();
            let program = Program::new();
            self.open.push(Open { run: run.to_owned(), name, by_person: false, since: at, program });
        }
        let Some(index) = self.open.iter().position(|open| open.run == run) else { return };
        // What does not fit is a fault of this picture, and the picture is all it costs.
        let _ = self.open[index].program.apply(event, at);
        match event {
            ProgramEvent::ProgramStarted(e) => {
                self.open[index].name = flat(&e.spec.name, MOST_CHARS).0;
                self.open[index].by_person = !e.spec.background;
                let program = self.open[index].program.clone();
                self.by_person |= self.open[index].by_person;
                self.begin(run, &program);
            }
            ProgramEvent::StepTaken(e) => {
                let made: Vec<CallState> = e
                    .calls
                    .iter()
                    .filter_map(|made| self.open[index].program.call(made.call).cloned())
                    .collect();
                made.iter().for_each(|call| self.place(run, call));
            }
            ProgramEvent::ProgramClosed(_) => {
                self.open.remove(index);
            }
            _ => {}
        }
    }

    fn begin(&mut self, run: &str, program: &Program) {
        let phases = program.spec().map(|spec| spec.phases.clone()).unwrap_or_default();
        for phase in phases {
            self.group(run, None, Some(phase));
        }
    }

    fn place(&mut self, run: &str, call: &CallState) {
        let phase = self.group(run, call.made.within.clone(), call.made.phase.clone());
        if call.made.kind.is_agents() {
            let voters = call.made.agents.max(VOTERS);
            // An agent keeps the name it was given in the run where it began.
            let open = self.open.iter().find(|open| open.run == run);
            let origin = open.map_or(run, |open| open.program.origin()).to_owned();
            self.callees.extend((0..=voters).map(|voter| (call.made.agent(&origin, voter), phase)));
        }
    }

    fn group(&mut self, run: &str, within: Option<String>, phase: Option<String>) -> Phase {
        let group = Group { run: run.to_owned(), within, phase };
        let index = self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        });
        Phase(Phase::PROGRAMS + index)
    }

    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the session is a person's own program, and has no lead that does anything.
    pub(super) fn by_person(&self) -> bool {
        self.by_person
    }

    /// Where an agent of a program stands.
    pub(super) fn phase_of(&self, agent: &AgentId) -> Option<Phase> {
        self.callees.get(agent).copied()
    }

    fn of(&self, phase: Phase) -> Option<(&Open, &Group)> {
        let group = self.groups.get(phase.0.checked_sub(Phase::PROGRAMS)?)?;
        Some((self.open.iter().find(|open| open.run == group.run)?, group))
    }

    fn calls(&self, phase: Phase) -> impl Iterator<Item = &CallState> {
        let found = self.of(phase);
        let calls = found.into_iter().flat_map(|(open, _)| open.program.calls());
        calls.filter(move |call| {
            found.is_some_and(|(_, group)| call.made.within == group.within && call.made.phase == group.phase)
        })
    }

    /// Whether a phase of an open run has had anything to do.
    pub(super) fn shows(&self, phase: Phase) -> bool {
        self.calls(phase).next().is_some()
    }

    /// Whether every call of a phase has its answer.
    pub(super) fn is_over(&self, phase: Phase) -> bool {
        self.calls(phase).all(|call| call.result.is_some() || call.cleared)
    }

    /// A phase in numbers: its head, what may follow, and what was done without agents, behind a dot.
    pub(super) fn heading(&self, phase: Phase, running: u32) -> (String, Vec<(u32, &'static str)>, String) {
        let mut all = 0u32;
        let mut done = 0u32;
        let mut failed = 0u32;
        let mut served = 0u32;
        let mut asked = 0u32;
        let mut skipped = 0u32;
        let mut not_done = 0u32;
        for call in self.calls(phase) {
            if !call.made.kind.is_agents() {
                asked += u32::from(waits(call));
                continue;
            }
            all += 1;
            let Some(result) = &call.result else { continue };
            served += u32::from(result.reused.is_some() || result.kept.is_some());
            match &result.status {
                ItemStatus::Ok => done += 1,
                ItemStatus::Failed { .. } => failed += 1,
                ItemStatus::Skipped { .. } if result.by_person => skipped += 1,
                ItemStatus::Skipped { .. } => not_done += 1,
            }
        }
        let rest = self.without_agents(phase);
        if all == 0 {
            let asks = if asked > 0 { format!(": {asked} waiting for you") } else { String::new() };
            return (format!("{}{asks}", self.title(phase, "workflow")), Vec::new(), rest);
        }
        let waiting = all.saturating_sub(done + failed + skipped + not_done).saturating_sub(running);
        let others = vec![
            (asked, "waiting for you"),
            (running, "running"),
            (failed, "failed"),
            (waiting, "waiting"),
            (not_done, "not done"),
            (skipped, "skipped"),
            (served, "served from before"),
        ];
        (format!("{}: {done} of {all} done", self.title(phase, "agents")), others, rest)
    }

    /// What a phase did without agents: ` · 14 timers · 2 commands`.
    fn without_agents(&self, phase: Phase) -> String {
        let mut kinds: Vec<(u32, &str)> = Vec::new();
        let others = self.calls(phase).filter(|call| !call.made.kind.is_agents() && !waits(call));
        for noun in others.map(|call| noun(call.made.kind)) {
            match kinds.iter_mut().find(|(_, known)| *known == noun) {
                Some((many, _)) => *many += 1,
                None => kinds.push((1, noun)),
            }
        }
        kinds.into_iter().map(|(many, noun)| format!(" · {}", count(many, noun))).collect()
    }

    /// What a phase is called; `unnamed` where the program gave no name.
    fn title(&self, phase: Phase, unnamed: &str) -> String {
        let Some((open, group)) = self.of(phase) else { return unnamed.to_owned() };
        let phase = group.phase.as_deref().unwrap_or(unnamed);
        let own =
            group.within.as_ref().map_or_else(|| phase.to_owned(), |within| format!("▸ {within}: {phase}"));
        // Several programs may have phases of the same name.
        let named = if open.by_person { own } else { format!("{} · {own}", open.name) };
        flat(&named, MOST_CHARS).0
    }

    /// A person's own program in a line.
    pub(super) fn own(&self, now: u64) -> Option<String> {
        let open = self.open.iter().find(|open| open.by_person)?;
        // Agents may be asked for in a phase that the program never said it began.
        let latest = open.program.calls().filter(|call| call.made.kind.is_agents()).last();
        let phase = latest.and_then(|call| call.made.phase.as_deref()).or_else(|| open.program.phase());
        let phase = phase.map(|phase| format!(" · {}", flat(phase, MOST_CHARS).0)).unwrap_or_default();
        let took = seconds(Duration::from_millis(now.saturating_sub(open.since)));
        Some(format!("workflow {}{phase} · {took}", open.name))
    }
}

/// Whether it is a question that waits for a person.
fn waits(call: &CallState) -> bool {
    call.made.kind == CallKind::Checkpoint && call.result.is_none() && !call.cleared
}

/// What people call a call of this kind.
fn noun(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Agent | CallKind::Verify => "agent",
        CallKind::Sh => "command",
        CallKind::Checkpoint => "question",
        CallKind::Workflow => "workflow",
        CallKind::Timer => "timer",
    }
}
