//! One execution of a workflow program as a pure state machine: [`Program::decide`] turns an input into
//! events, [`Program::apply`] folds an event, [`Program::pending`] lists the calls that want to be done. It
//! interprets nothing: what the program computed comes in as steps, and what it is given goes out in the
//! order in which it was recorded, so that running it again from its beginning comes to the same calls.

mod answer;
mod claim;
mod event;
mod passes;
mod view;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use answer::Breaker;
pub use answer::{answer_to, unverified};
pub use claim::read_finding;
pub use event::{
    CallAnswer, CallEnded, CallKind, CallResult, KeptFrom, MadeCall, PassBegan, ProgramClosed, ProgramEnd,
    ProgramEvent, ProgramSaid, ProgramSpec, ProgramStarted, ProgramStatus, ProgramStopped, StepDeclined,
    StepTaken,
};
use passes::{Earlier, tokens};
pub use view::{ProgramCounts, ProgramSummary};

/// Something that came from outside the kernel.
#[derive(Debug, Clone)]
pub enum ProgramInput {
    /// The run is to exist.
    Start(Box<ProgramSpec>),
    /// The program is to be run from its beginning again.
    Again {
        /// Why.
        why: String,
        /// `budget.total` from now on; absent is as it was.
        budget_total: Option<u64>,
    },
    /// The program took a step.
    Step(Box<StepTaken>),
    /// What a step wanted does not fit the budget.
    Declined {
        /// Agents it needed.
        agents: u32,
        /// Why not.
        reason: String,
    },
    /// A call has its result.
    Ended {
        /// The call.
        call: u32,
        /// The result.
        result: Box<CallResult>,
        /// What `budget.spent()` says from now on.
        spent_total: u64,
    },
    /// A person ends it.
    Stop {
        /// The person who ends it, and how.
        by: String,
    },
}

/// An input or event that cannot follow what has happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal event of a program's run: {what}")]
pub struct IllegalProgramEvent {
    /// What was to happen, and why it cannot.
    pub what: String,
}

fn illegal(what: impl Into<String>) -> IllegalProgramEvent {
    IllegalProgramEvent { what: what.into() }
}

/// A call and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallState {
    /// The call.
    pub made: MadeCall,
    /// What it came to, once it has.
    pub result: Option<CallResult>,
    /// Whether the program wants no answer any more.
    pub cleared: bool,
}

/// One execution of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    spec: Option<Arc<ProgramSpec>>,
    pass: u32,
    why: Option<String>,
    budget_total: Option<u64>,
    // Shared, so that a decision on one call copies that call and not all of them.
    calls: Vec<Arc<CallState>>,
    /// Calls in the order of their answers, with what `budget.spent()` says from each on.
    answers: Vec<(u32, u64)>,
    /// Steps taken in this pass.
    steps: u32,
    /// Answers that have led to a step.
    fed: usize,
    said: Vec<ProgramSaid>,
    end: Option<ProgramEnd>,
    declined: Option<StepDeclined>,
    stopped: Option<String>,
    status: Option<ProgramStatus>,
    /// Which of the equal ones this pass has made, by key.
    taken: BTreeMap<String, BTreeSet<u32>>,
    earlier: BTreeMap<String, Vec<Earlier>>,
    breaker: Breaker,
    started_at: u64,
    closed_at: Option<u64>,
}

impl Program {
    /// A run to which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// What follows from this input; this run is then as if it had happened. For callers that keep a draft: a
    /// copy per decision would copy a thousand calls each time. An error leaves the run as it was.
    pub fn hear(&mut self, input: ProgramInput, at: u64) -> Result<Vec<ProgramEvent>, IllegalProgramEvent> {
        let event: ProgramEvent = match input {
            ProgramInput::Start(spec) => ProgramStarted { spec: *spec }.into(),
            ProgramInput::Again { why, budget_total } => {
                PassBegan { pass: self.pass + 1, why, budget_total }.into()
            }
            ProgramInput::Step(step) => step.as_ref().clone().into(),
            ProgramInput::Declined { agents, reason } => StepDeclined { agents, reason }.into(),
            ProgramInput::Ended { call, result, spent_total } => {
                CallEnded { call, result: *result, spent_total }.into()
            }
            ProgramInput::Stop { by } => ProgramStopped { by }.into(),
        };
        self.apply(&event, at)?;
        let mut events = vec![event];
        if let Some(status) = self.due_status() {
            let closed = ProgramClosed { status }.into();
            self.apply(&closed, at)?;
            events.push(closed);
        }
        Ok(events)
    }

    /// What follows from this input.
    pub fn decide(&self, input: ProgramInput) -> Result<Vec<ProgramEvent>, IllegalProgramEvent> {
        self.clone().hear(input, 0)
    }

    /// Folds an event that is in the journal.
    pub fn apply(&mut self, event: &ProgramEvent, at: u64) -> Result<(), IllegalProgramEvent> {
        if self.spec.is_none() && !matches!(event, ProgramEvent::ProgramStarted(_)) {
            return Err(illegal(format!("{} before program_started", event.kind())));
        }
        match event {
            ProgramEvent::ProgramStarted(e) => {
                if self.spec.is_some() {
                    return Err(illegal("a run starts once"));
                }
                self.spec = Some(Arc::new(e.spec.clone()));
                self.budget_total = e.spec.budget_total;
                self.pass = 1;
                self.started_at = at;
            }
            ProgramEvent::PassBegan(e) => self.begin_pass(e)?,
            ProgramEvent::StepTaken(e) => self.step(e)?,
            ProgramEvent::StepDeclined(e) => self.declined = Some(e.clone()),
            ProgramEvent::CallEnded(e) => self.ended(e)?,
            ProgramEvent::ProgramStopped(e) => self.stopped = Some(e.by.clone()),
            ProgramEvent::ProgramClosed(e) => {
                self.status = Some(e.status);
                self.closed_at = Some(at);
            }
        }
        Ok(())
    }

    fn step(&mut self, e: &StepTaken) -> Result<(), IllegalProgramEvent> {
        let follows = match e.fed {
            None => self.steps == 0,
            Some(call) => self.steps > 0 && self.answers.get(self.fed).is_some_and(|(next, _)| *next == call),
        };
        if !follows || self.status.is_some() {
            return Err(illegal(format!("a step on the answer to {:?} is not due", e.fed)));
        }
        let mut numbered = (self.calls.len() as u32 + 1..).zip(&e.calls);
        if let Some((number, call)) = numbered.find(|(number, call)| call.call != *number) {
            return Err(illegal(format!("call {} came where {number} was due", call.call)));
        }
        for call in &e.calls {
            self.taken.entry(call.key.clone()).or_default().insert(call.occurrence);
            self.calls.push(Arc::new(CallState { made: call.clone(), result: None, cleared: false }));
        }
        for call in &e.cleared {
            if let Some(state) = self.call_mut(*call) {
                state.cleared = true;
            }
        }
        self.steps += 1;
        self.fed += usize::from(e.fed.is_some());
        self.said.extend(e.said.iter().cloned());
        // What it does after its end is heard and changes nothing.
        self.end = self.end.take().or_else(|| e.end.clone());
        self.declined = None;
        Ok(())
    }

    fn ended(&mut self, e: &CallEnded) -> Result<(), IllegalProgramEvent> {
        let Some(state) = self.call_mut(e.call) else {
            return Err(illegal(format!("there is no call {}", e.call)));
        };
        if state.result.is_some() {
            return Err(illegal(format!("call {} has ended before", e.call)));
        }
        state.result = Some(e.result.clone());
        let made = state.made.clone();
        self.answers.push((e.call, e.spent_total));
        self.breaker.count(&made, &e.result);
        Ok(())
    }

    fn call_mut(&mut self, call: u32) -> Option<&mut CallState> {
        self.calls.get_mut(call.checked_sub(1)? as usize).map(Arc::make_mut)
    }

    /// The status that is due: the program has ended, and no agent works for it any more.
    fn due_status(&self) -> Option<ProgramStatus> {
        if self.status.is_some() {
            return None;
        }
        let at_work = self.calls.iter().any(|call| call.result.is_none() && call.made.kind.is_agents());
        if self.stopped.is_some() {
            return Some(ProgramStatus::Stopped);
        }
        if at_work {
            return None;
        }
        match self.end.as_ref()? {
            ProgramEnd::Failed { .. } => Some(ProgramStatus::Failed),
            ProgramEnd::Returned { .. } if self.losses().is_empty() => Some(ProgramStatus::Complete),
            ProgramEnd::Returned { .. } => Some(ProgramStatus::Partial),
        }
    }

    /// The calls that agents were to do and that did not end well, a person's skips left out.
    pub fn losses(&self) -> Vec<&CallState> {
        let lost = |call: &&CallState| {
            let result = call.result.as_ref();
            let well = result.is_some_and(|result| result.is_sound() || result.by_person);
            call.made.kind.is_agents() && !well
        };
        self.calls.iter().map(Arc::as_ref).filter(lost).collect()
    }

    /// What the run is made of; `None` before it started.
    pub fn spec(&self) -> Option<&ProgramSpec> {
        self.spec.as_deref()
    }

    /// `budget.total` in this pass.
    pub fn budget_total(&self) -> Option<u64> {
        self.budget_total
    }

    /// The run under whose name its agents are known.
    pub fn origin(&self) -> &str {
        self.spec().map_or("", |spec| spec.origin.as_deref().unwrap_or(&spec.run))
    }

    /// The number of this pass.
    pub fn pass(&self) -> u32 {
        self.pass
    }

    /// The calls of this pass, in the order they were made.
    pub fn calls(&self) -> impl Iterator<Item = &CallState> {
        self.calls.iter().map(Arc::as_ref)
    }

    /// One call of this pass.
    pub fn call(&self, call: u32) -> Option<&CallState> {
        self.calls.get(call.checked_sub(1)? as usize).map(Arc::as_ref)
    }

    /// The calls that have an answer, in the order in which the program is given them, and what
    /// `budget.spent()` says then.
    pub fn answers(&self) -> &[(u32, u64)] {
        &self.answers
    }

    /// Steps taken in this pass: the first one, and one for every answer that was given.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The calls that want to be done. Once the program has ended only agents that began stay: `began` says
    /// which.
    pub fn pending(&self) -> Vec<u32> {
        if self.status.is_some() {
            return Vec::new();
        }
        let open = self.calls.iter().filter(|call| call.result.is_none() && !call.cleared);
        let wanted = open.filter(|call| self.end.is_none() || call.made.kind.is_agents());
        wanted.map(|call| call.made.call).collect()
    }

    /// What becomes of a call instead of being started, because those before it all failed in the same way.
    pub fn refuses(&self, call: u32) -> Option<CallResult> {
        self.breaker.refuses(&self.call(call)?.made)
    }

    /// Whether no further agent is sent at all.
    pub fn is_broken(&self) -> bool {
        self.breaker.is_open()
    }

    /// How the program itself ended, once it has.
    pub fn end(&self) -> Option<&ProgramEnd> {
        self.end.as_ref()
    }

    /// How the run ended, once it has.
    pub fn status(&self) -> Option<ProgramStatus> {
        self.status
    }

    /// Whether nothing more will happen in this pass.
    pub fn is_closed(&self) -> bool {
        self.status.is_some()
    }

    /// What the last step wanted and could not have.
    pub fn declined(&self) -> Option<&StepDeclined> {
        self.declined.as_ref()
    }

    /// How many agents of this pass count against the budget: those that worked, and those that may have
    /// begun when a person skipped them or stopped the run.
    pub fn agents_used(&self) -> u32 {
        let used = |call: &CallState| match &call.result {
            None => call.made.agents,
            Some(result) if result.by_person => call.made.agents,
            Some(result) if result.reused.is_some() || result.kept.is_some() => 0,
            Some(result) => result.agents.len() as u32,
        };
        let calls = self.calls().filter(|call| call.made.kind.is_agents());
        calls.map(used).fold(0, u32::saturating_add)
    }

    /// The questions a person has not answered: the call, and what is asked.
    pub fn questions(&self) -> Vec<&MadeCall> {
        let pending = self.pending();
        let asked = self.calls().filter(|call| call.made.kind == CallKind::Checkpoint);
        asked.filter(|call| pending.contains(&call.made.call)).map(|call| &call.made).collect()
    }
}
