//! One execution of a workflow program as a pure state machine: [`Program::decide`] turns an input into events,
//! [`Program::apply`] folds an event, [`Program::pending`] lists the calls that want to be done. It interprets nothing: what the
//! program computed comes in as steps, and what it is given goes out in the order in which it was recorded, so that running it
//! again from its beginning comes to the same calls.

mod answer;
mod event;
mod view;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use answer::Breaker;
pub use answer::{answer_to, unverified};
pub use event::{
    CallAnswer, CallEnded, CallKind, CallResult, KeptFrom, MadeCall, PassBegan, ProgramClosed, ProgramEnd,
    ProgramEvent, ProgramSaid, ProgramSpec, ProgramStarted, ProgramStatus, ProgramStopped, StepDeclined, StepTaken,
};
pub use view::{ProgramCounts, ProgramSummary};

use crate::run::{ItemStatus, Reused};

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
    /// What a step wanted does not fit the envelope.
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
        /// Who, and how.
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

/// A call that earlier passes made: a call of this pass with the same content may stand for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Earlier {
    occurrence: u32,
    path: String,
    /// What it came to, if that can be served again.
    result: Option<CallResult>,
    /// How often an agent for it was given up.
    attempt: u32,
    /// Whether its agent was turned away from outside, and can go on where it stands.
    turned_away: bool,
    /// Whether this run paid for it.
    own: bool,
}

/// Which call of earlier passes a new one stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// Which of the equal ones it is.
    pub occurrence: u32,
    /// How often an agent for it was given up.
    pub attempt: u32,
    /// What it came to before, if that can be served.
    pub served: Option<CallResult>,
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

    /// What follows from this input; this run is then as if it had happened. For whoever keeps a draft: deciding on a copy would
    /// copy a thousand calls for every one of them. An error leaves the run as it was.
    pub fn hear(&mut self, input: ProgramInput, at: u64) -> Result<Vec<ProgramEvent>, IllegalProgramEvent> {
        let event: ProgramEvent = match input {
            ProgramInput::Start(spec) => ProgramStarted { spec: *spec }.into(),
            ProgramInput::Again { why, budget_total } => PassBegan { pass: self.pass + 1, why, budget_total }.into(),
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
                (self.pass, self.started_at) = (1, at);
            }
            ProgramEvent::PassBegan(e) => self.begin_pass(e)?,
            ProgramEvent::StepTaken(e) => self.step(e)?,
            ProgramEvent::StepDeclined(e) => self.declined = Some(e.clone()),
            ProgramEvent::CallEnded(e) => self.ended(e)?,
            ProgramEvent::ProgramStopped(e) => self.stopped = Some(e.by.clone()),
            ProgramEvent::ProgramClosed(e) => (self.status, self.closed_at) = (Some(e.status), Some(at)),
        }
        Ok(())
    }

    fn begin_pass(&mut self, e: &PassBegan) -> Result<(), IllegalProgramEvent> {
        if e.pass != self.pass + 1 {
            return Err(illegal(format!("pass {} cannot follow pass {}", e.pass, self.pass)));
        }
        for call in std::mem::take(&mut self.calls) {
            let CallState { made, result, .. } = Arc::unwrap_or_clone(call);
            if made.kind.is_kept() {
                self.remember(made, result);
            }
        }
        (self.pass, self.why) = (e.pass, Some(e.why.clone()));
        self.budget_total = e.budget_total.or(self.budget_total);
        (self.answers, self.steps, self.fed, self.said) = (Vec::new(), 0, 0, Vec::new());
        (self.end, self.declined, self.stopped, self.status, self.closed_at) = (None, None, None, None, None);
        (self.taken, self.breaker) = (BTreeMap::new(), Breaker::default());
        Ok(())
    }

    /// Keeps what a call of the pass that is over came to.
    fn remember(&mut self, made: MadeCall, result: Option<CallResult>) {
        let all = self.earlier.entry(made.key).or_default();
        let at = all.iter().position(|earlier| earlier.occurrence == made.occurrence);
        let earlier = match at.and_then(|at| all.get_mut(at)) {
            Some(earlier) => earlier,
            None => {
                let fresh = Earlier {
                    occurrence: made.occurrence,
                    path: String::new(),
                    result: None,
                    attempt: 0,
                    turned_away: false,
                    own: true,
                };
                all.push(fresh);
                let last = all.len() - 1;
                &mut all[last]
            }
        };
        (earlier.path, earlier.attempt, earlier.turned_away) = (made.path, made.attempt, false);
        let Some(mut result) = result else { return };
        if result.is_sound() {
            // What was served before is still what it was.
            result.kept.get_or_insert(KeptFrom { pass: self.pass, call: made.call });
            earlier.own = result.reused.is_none();
            earlier.result = Some(result);
            return;
        }
        match &result.status {
            ItemStatus::Failed { kind, .. } if answer::goes_on(*kind) => earlier.turned_away = true,
            ItemStatus::Failed { .. } | ItemStatus::Ok => earlier.attempt += 1,
            ItemStatus::Skipped { .. } => {}
        }
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
        let Some(state) = self.call_mut(e.call) else { return Err(illegal(format!("there is no call {}", e.call))) };
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

    /// The status that is due: the program has ended, and nobody is at work for it any more.
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

    /// The calls that have an answer, in the order in which the program is given them, and what `budget.spent()` says then.
    pub fn answers(&self) -> &[(u32, u64)] {
        &self.answers
    }

    /// Steps taken in this pass: the first one, and one for every answer that was given.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The calls that want to be done. Once the program has ended only agents that began stay: `began` says which.
    pub fn pending(&self) -> Vec<u32> {
        if self.status.is_some() {
            return Vec::new();
        }
        let open = self.calls.iter().filter(|call| call.result.is_none() && !call.cleared);
        let wanted = open.filter(|call| self.end.is_none() || call.made.kind.is_agents());
        wanted.map(|call| call.made.call).collect()
    }

    /// Which earlier call a new one with this content, made at this place, stands for. `beside` are those that the same step has
    /// taken. The one from the same place comes first, then one that can be served, then one that cannot, then a new one: so
    /// nothing that was done is done again, and nothing is served twice.
    pub fn stand(&self, key: &str, path: &str, beside: &BTreeSet<u32>) -> Stand {
        let taken = self.taken.get(key);
        let is_free =
            |occurrence: u32| !beside.contains(&occurrence) && taken.is_none_or(|taken| !taken.contains(&occurrence));
        let all = self.earlier.get(key).map(Vec::as_slice).unwrap_or_default();
        let free = || all.iter().filter(|earlier| is_free(earlier.occurrence));
        let found = free()
            .find(|earlier| earlier.path == path)
            .or_else(|| free().find(|earlier| earlier.result.is_some()))
            .or_else(|| free().next());
        match found {
            Some(earlier) => {
                let Earlier { occurrence, attempt, .. } = *earlier;
                Stand { occurrence, attempt, served: earlier.result.clone() }
            }
            None => {
                let known = all.iter().map(|earlier| earlier.occurrence);
                let used = beside.iter().chain(taken.into_iter().flatten()).copied();
                let occurrence = known.chain(used).max().map_or(0, |last| last + 1);
                Stand { occurrence, attempt: 0, served: None }
            }
        }
    }

    /// Whether an agent for this call ended in an earlier pass only because it was turned away, and goes on where it stands.
    pub fn goes_on(&self, key: &str, occurrence: u32) -> bool {
        let all = self.earlier.get(key).into_iter().flatten();
        all.filter(|earlier| earlier.occurrence == occurrence).any(|earlier| earlier.turned_away)
    }

    /// Has what another run came to served in this one, behind what this one did itself.
    pub fn serve_from(&mut self, other: &Program, at: u64) {
        let session = other.spec().map(|spec| spec.session.to_string()).unwrap_or_default();
        let same_agents = self.origin() == other.origin();
        for (key, theirs) in &other.earlier {
            let ours = self.earlier.entry(key.clone()).or_default();
            for earlier in theirs {
                if ours.iter().any(|own| own.occurrence == earlier.occurrence) {
                    continue;
                }
                let mut result = earlier.result.clone();
                if let Some(result) = &mut result {
                    result.reused.get_or_insert(Reused { session: session.clone(), at });
                    result.kept = None;
                }
                let theirs = Earlier { result, own: false, ..earlier.clone() };
                // Agents that are not this run's cannot go on: what they gave up is begun anew.
                let begun_anew = Earlier { attempt: 0, turned_away: false, ..theirs.clone() };
                ours.push(if same_agents { theirs } else { begun_anew });
            }
        }
    }

    /// What this run paid in earlier passes for what this pass has not asked for yet.
    pub fn kept_tokens(&self) -> u64 {
        let mut sum = 0u64;
        for (key, all) in &self.earlier {
            let taken = self.taken.get(key);
            let open =
                |earlier: &&Earlier| earlier.own && taken.is_none_or(|taken| !taken.contains(&earlier.occurrence));
            let kept = all.iter().filter(open).filter_map(|earlier| earlier.result.as_ref());
            sum = kept.map(tokens).fold(sum, u64::saturating_add);
        }
        sum
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

    /// How many agents of this pass count against the envelope: those that worked, and those that may have begun when somebody
    /// skipped them or stopped the run.
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

/// What a result cost, as the envelope counts.
fn tokens(result: &CallResult) -> u64 {
    result.spent.usage.prompt_tokens().saturating_add(result.spent.usage.output_tokens)
}
