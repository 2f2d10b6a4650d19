//! The programs' runs of a session, folded for the agents at work: which agent stands in which phase, and how
//! the phases stand in numbers.

use std::collections::HashMap;

use convoke_kernel::{AgentId, CallKind, CallState, ItemStatus, Program, ProgramEvent};

use super::agent::WorkPhase;
use crate::callees::{agents_of, phase_title};
use crate::text::flat;

/// How much of a name is kept; more than any line shows.
const MOST_CHARS: usize = 80;

/// The programs' runs of a session.
#[derive(Debug, Default)]
pub(super) struct Programs {
    open: Vec<Open>,
    /// Every phase there has been, in their order; they keep their places.
    groups: Vec<Group>,
    callees: HashMap<AgentId, WorkPhase>,
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

/// How a phase of a program stands: its calls for agents in numbers, and what else it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    /// Calls for agents.
    pub all: u32,
    /// Those that ended well.
    pub done: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that a person left out.
    pub skipped: u32,
    /// Those that could not be done, or were never started.
    pub not_done: u32,
    /// Those that were served with a result from before.
    pub served: u32,
    /// Questions that wait for a person.
    pub asked: u32,
    /// What was done without agents: how many calls of each kind, in the order the kinds came.
    pub others: Vec<(CallKind, u32)>,
}

/// A person's own program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnProgram {
    /// What it is called.
    pub name: String,
    /// The phase it is in, if it is in any.
    pub phase: Option<String>,
    /// When it began.
    pub since: u64,
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
            let open = self.open.iter().find(|open| open.run == run);
            let origin = open.map_or(run, |open| open.program.origin()).to_owned();
            self.callees.extend(agents_of(&call.made, &origin).into_iter().map(|agent| (agent, phase)));
        }
    }

    fn group(&mut self, run: &str, within: Option<String>, phase: Option<String>) -> WorkPhase {
        let group = Group { run: run.to_owned(), within, phase };
        let index = self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        });
        WorkPhase(WorkPhase::PROGRAMS + index)
    }

    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn by_person(&self) -> bool {
        self.by_person
    }

    /// Where an agent of a program stands.
    pub(super) fn phase_of(&self, agent: &AgentId) -> Option<WorkPhase> {
        self.callees.get(agent).copied()
    }

    fn of(&self, phase: WorkPhase) -> Option<(&Open, &Group)> {
        let group = self.groups.get(phase.0.checked_sub(WorkPhase::PROGRAMS)?)?;
        Some((self.open.iter().find(|open| open.run == group.run)?, group))
    }

    fn calls(&self, phase: WorkPhase) -> impl Iterator<Item = &CallState> {
        let found = self.of(phase);
        let calls = found.into_iter().flat_map(|(open, _)| open.program.calls());
        calls.filter(move |call| {
            found.is_some_and(|(_, group)| call.made.within == group.within && call.made.phase == group.phase)
        })
    }

    /// Whether a phase of an open run has had anything to do.
    pub(super) fn shows(&self, phase: WorkPhase) -> bool {
        self.calls(phase).next().is_some()
    }

    /// Whether every call of a phase has its answer.
    pub(super) fn is_over(&self, phase: WorkPhase) -> bool {
        self.calls(phase).all(|call| call.result.is_some() || call.cleared)
    }

    /// A phase in numbers.
    pub(super) fn counts(&self, phase: WorkPhase) -> PhaseCounts {
        let mut counts = PhaseCounts::default();
        for call in self.calls(phase) {
            if waits(call) {
                counts.asked += 1;
                continue;
            }
            if !call.made.kind.is_agents() {
                match counts.others.iter_mut().find(|(kind, _)| *kind == call.made.kind) {
                    Some((_, many)) => *many += 1,
                    None => counts.others.push((call.made.kind, 1)),
                }
                continue;
            }
            counts.all += 1;
            let Some(result) = &call.result else { continue };
            counts.served += u32::from(result.reused.is_some() || result.kept.is_some());
            match &result.status {
                ItemStatus::Ok => counts.done += 1,
                ItemStatus::Failed { .. } => counts.failed += 1,
                ItemStatus::Skipped { .. } if result.by_person => counts.skipped += 1,
                ItemStatus::Skipped { .. } => counts.not_done += 1,
            }
        }
        counts
    }

    /// What a phase is called; `unnamed` where the program gave no name.
    pub(super) fn title(&self, phase: WorkPhase, unnamed: &str) -> String {
        let Some((open, group)) = self.of(phase) else { return unnamed.to_owned() };
        let program = (!open.by_person).then_some(open.name.as_str());
        let phase = group.phase.as_deref().unwrap_or(unnamed);
        flat(&phase_title(program, group.within.as_deref(), phase), MOST_CHARS).0
    }

    /// A person's own program.
    pub(super) fn own(&self) -> Option<OwnProgram> {
        let open = self.open.iter().find(|open| open.by_person)?;
        // Agents may be asked for in a phase that the program never said it began.
        let latest = open.program.calls().filter(|call| call.made.kind.is_agents()).last();
        let phase = latest.and_then(|call| call.made.phase.as_deref()).or_else(|| open.program.phase());
        let phase = phase.map(|phase| flat(phase, MOST_CHARS).0);
        Some(OwnProgram { name: open.name.clone(), phase, since: open.since })
    }
}

/// Whether it is a question that waits for a person.
fn waits(call: &CallState) -> bool {
    call.made.kind == CallKind::Checkpoint && call.result.is_none() && !call.cleared
}
