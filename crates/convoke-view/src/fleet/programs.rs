//! Programs' runs: the kernel's own program is the truth. What a program asked for stands in the phase it
//! asked in, whether it has not begun, an agent is at it, or it was served from before.

use std::collections::HashMap;

use convoke_kernel::{
    CallEnded, CallKind, ItemStatus, MadeCall, Program, ProgramEvent, ProgramSpec, Role, RunId,
};

use super::labels::line;
use super::lists::Other;
use super::rows::RunRow;
use super::{AgentOrigin, Fleet};
use crate::callees::{agents_of, phase_title};

/// The programs' runs of a session.
pub(super) type Programs = HashMap<RunId, Shown>;

/// One program's run.
#[derive(Debug, Default)]
pub(super) struct Shown {
    program: Program,
    /// Its place among all runs.
    number: usize,
    /// How the calls for agents of this pass stand in their phases, by number.
    calls: HashMap<u32, Asked>,
}

/// A call for agents, as far as its phase counts it beside the agents themselves.
#[derive(Debug)]
struct Asked {
    phase: String,
    /// Agents that it still waits for.
    waiting: usize,
    /// Whether any agent here has begun it.
    is_begun: bool,
    /// That it ended without one.
    ended: Option<Other>,
}

impl Fleet {
    /// Folds an event of a program's run; says whether anything looks different now.
    pub(super) fn hear_program(&mut self, id: &RunId, at: u64, event: &ProgramEvent) -> bool {
        let shown = self.programs.entry(id.clone()).or_default();
        if shown.program.apply(event, at).is_err() {
            // Something before it was not heard: what is known stays, and it is said that not all of it is.
            self.streams.mark(id.as_str());
            return false;
        }
        let number = shown.number;
        match event {
            ProgramEvent::ProgramStarted(e) => self.program_started(id, at, &e.spec),
            ProgramEvent::PassBegan(_) => {
                for asked in std::mem::take(&mut shown.calls).into_values() {
                    self.lists.count_other(&asked.phase, Other::Waiting, asked.waiting, false);
                    if let Some(ended) = asked.ended {
                        self.lists.count_other(&asked.phase, ended, 1, false);
                    }
                }
                self.lists.findings.forget(number);
                if let Some(row) = self.lists.runs.get_mut(number) {
                    (row.total, row.done, row.failed, row.end, row.ended_at) = (0, 0, 0, None, None);
                }
            }
            ProgramEvent::StepTaken(e) => e.calls.iter().for_each(|made| self.call_made(id, at, made)),
            ProgramEvent::CallEnded(e) => self.call_ended(id, at, e),
            ProgramEvent::ProgramClosed(e) => {
                self.lists.findings.close(number);
                if let Some(row) = self.lists.runs.get_mut(number) {
                    (row.end, row.ended_at) = (Some(e.status.word().to_owned()), Some(at));
                }
            }
            ProgramEvent::StepDeclined(_) | ProgramEvent::ProgramStopped(_) => {}
        }
        true
    }

    fn program_started(&mut self, id: &RunId, at: u64, spec: &ProgramSpec) {
        let number = self.lists.runs.len();
        self.lists.runs.push(RunRow::begun(id, spec.name.clone(), true, 0, at));
        for phase in &spec.phases {
            self.lists.begin_phase(&title(spec, None, Some(phase)));
        }
        self.lead.get_or_insert_with(|| spec.lead.clone());
        if let Some(shown) = self.programs.get_mut(id) {
            shown.number = number;
        }
        // What a later run takes up counts as it comes out there.
        for earlier in self.programs.iter().filter(|(other, _)| *other != id).map(|(_, earlier)| earlier) {
            let is_taken_up = |old: &ProgramSpec| {
                spec.from.as_ref() == Some(&old.run) || (!spec.background && !old.background)
            };
            if earlier.program.spec().is_some_and(is_taken_up) {
                self.lists.findings.forget(earlier.number);
            }
        }
    }

    fn call_made(&mut self, id: &RunId, at: u64, made: &MadeCall) {
        let Some(shown) = self.programs.get_mut(id).filter(|_| made.kind.is_agents()) else { return };
        let Some(spec) = shown.program.spec() else { return };
        let phase = title(spec, made.within.as_deref(), made.phase.as_deref());
        let origin = shown.program.origin().to_owned();
        let number = shown.number;
        let role = if made.kind == CallKind::Verify { Role::Verifier } else { Role::Callee };
        let agents = agents_of(made, &origin);
        // An agent that goes on where it stood in an earlier pass is counted as the agent it is.
        let known = agents.iter().filter(|agent| self.tracks.contains_key(*agent)).count();
        let wanted = usize::try_from(made.agents.max(1)).unwrap_or(1).min(agents.len());
        let waiting = wanted.saturating_sub(known);
        let asked = Asked { phase: phase.clone(), waiting, is_begun: known > 0, ended: None };
        shown.calls.insert(made.call, asked);
        if let Some(call) = shown.program.call(made.call).filter(|_| made.kind == CallKind::Verify) {
            self.lists.findings.call((number, made.call), id, call);
        }
        self.lists.count_other(&phase, Other::Waiting, waiting, true);
        if let Some(row) = self.lists.runs.get_mut(number) {
            row.total += 1;
        }
        for agent in agents {
            let post =
                AgentOrigin { call: Some(made.call), ..AgentOrigin::new(&phase, id, &made.label, role) };
            if self.tracks.contains_key(&agent) {
                self.post(&agent, at, post);
            } else {
                self.posts.insert(agent, post);
            }
        }
    }

    fn call_ended(&mut self, id: &RunId, at: u64, event: &CallEnded) {
        let Some(shown) = self.programs.get_mut(id) else { return };
        let is_well = event.result.status == ItemStatus::Ok;
        if let Some(call) = shown.program.call(event.call).filter(|call| call.made.kind == CallKind::Verify) {
            self.lists.findings.call((shown.number, event.call), id, call);
        }
        let label = shown.program.call(event.call).map(|call| call.made.label.clone()).unwrap_or_default();
        let Some(asked) = shown.calls.get_mut(&event.call) else { return };
        self.lists.count_other(&asked.phase, Other::Waiting, std::mem::take(&mut asked.waiting), false);
        let served = event.result.agents.first().zip(event.result.reused.as_ref()).filter(|_| is_well);
        let served = served.filter(|(agent, _)| !asked.is_begun && !self.tracks.contains_key(*agent));
        if served.is_some() {
            asked.is_begun = true;
        }
        let phase = asked.phase.clone();
        if !asked.is_begun {
            let ended = if is_well { Other::Done } else { Other::Failed };
            asked.ended = Some(ended);
            self.lists.count_other(&asked.phase, ended, 1, true);
        }
        if let Some(row) = self.lists.runs.get_mut(shown.number) {
            *if is_well { &mut row.done } else { &mut row.failed } += 1;
        }
        if let Some((agent, from)) = served {
            self.serve(agent, at, AgentOrigin::new(&phase, id, &label, Role::Callee), (from, "answered"));
        }
        // Agents of a result that was reused worked elsewhere, not here.
        let here = event.result.agents.iter().filter(|_| event.result.reused.is_none());
        for agent in here.cloned().collect::<Vec<_>>() {
            self.change(&agent, at, |track, _| track.end(is_well));
        }
    }

    /// An agent that a program asked for has begun: it is counted as itself from now on.
    pub(super) fn callee_begins(&mut self, id: &RunId, call: u32) {
        let shown = self.programs.get_mut(id);
        let Some(asked) = shown.and_then(|shown| shown.calls.get_mut(&call)) else { return };
        asked.is_begun = true;
        if let Some(ended) = asked.ended.take() {
            self.lists.count_other(&asked.phase, ended, 1, false);
        }
        if asked.waiting > 0 {
            asked.waiting -= 1;
            self.lists.count_other(&asked.phase, Other::Waiting, 1, false);
        }
    }
}

/// What a phase of a program is called.
fn title(spec: &ProgramSpec, within: Option<&str>, phase: Option<&str>) -> String {
    let program = spec.background.then_some(spec.name.as_str());
    line(&phase_title(program, within, phase.unwrap_or("agents")))
}
