//! From the program's answers to its next calls: the interpreter is brought to where the journal is, given
//! what it has not had, and what it wants is admitted and recorded step by step.

use std::collections::{BTreeMap, BTreeSet};

use convoke_kernel::{
    CallAnswer, CallKind, CallResult, ItemStatus, MadeCall, ProgramEnd, ProgramInput, ProgramSaid, Segment,
    StepTaken,
};
use convoke_script::{
    Call, CallOutcome, GuestMessage, HostMessage, ProgramRemark, ProgramStep, Start, State, Want,
};
use serde_json::Value;

use super::Runner;
use crate::error::Error;
use crate::interpreter::{Interpreter, InterpreterError};
use crate::program::prepare::prepare;
use crate::program::step_results::StepResults;
use crate::session_ledger::Entry;

impl Runner {
    pub(super) async fn restart_interpreter(&mut self) {
        if let Some(interpreter) = self.interpreter.take() {
            interpreter.stop().await;
        }
    }

    async fn ask(&mut self, ask: &HostMessage) -> Result<GuestMessage, InterpreterError> {
        if self.interpreter.is_none() {
            let config = &self.parent.config;
            let wall = self.parent.config.programs.wall();
            self.interpreter = Some(Interpreter::start(&config.helper, wall).await?);
        }
        match &mut self.interpreter {
            Some(interpreter) => interpreter.ask(ask).await,
            None => Ok(GuestMessage::Confused { why: "there is no interpreter".to_owned() }),
        }
    }

    /// The question that leads to this step: the first one starts the program, every other one answers a
    /// call.
    fn question(&self, step: usize) -> Result<Option<(Option<u32>, HostMessage)>, Error> {
        let parse = |text: &Segment| serde_json::from_str::<Value>(text.as_str());
        let Some(spec) = self.program.spec() else { return Ok(None) };
        let Some(before) = step.checked_sub(1) else {
            let start = Start {
                source: spec.source.clone(),
                args: spec.args.as_ref().map(parse).transpose()?,
                budget_total: self.program.budget_total(),
                spent: spec.spent_before,
                limits: self.parent.config.programs.limits,
            };
            return Ok(Some((None, HostMessage::Start(Box::new(start)))));
        };
        let Some((call, spent)) = self.program.answers().get(before).copied() else { return Ok(None) };
        let Some(result) = self.program.call(call).and_then(|state| state.result.as_ref()) else {
            return Ok(None);
        };
        let answer = match &result.answer {
            CallAnswer::Value(value) => CallOutcome::Value { value: parse(value)? },
            CallAnswer::Throw(message) => CallOutcome::Throw { message: message.clone() },
            CallAnswer::Program { name, source } => {
                CallOutcome::Program { name: name.clone(), source: source.clone() }
            }
        };
        Ok(Some((Some(call), HostMessage::Answer { call, answer, spent })))
    }

    /// Brings the interpreter to where the journal is. False when the program does not make the same calls
    /// any more.
    pub(super) async fn replay(&mut self) -> Result<bool, Error> {
        if self.program.end().is_some() {
            // Nothing is asked of a program that has ended.
            return Ok(true);
        }
        let mut made = 0;
        for step in 0..self.program.steps() as usize {
            let Some((_, ask)) = self.question(step)? else { return Ok(false) };
            let told = match self.ask(&ask).await {
                Ok(GuestMessage::Stepped(told)) => told,
                Ok(_) | Err(InterpreterError::Deadline { .. } | InterpreterError::Died { .. }) => {
                    return Ok(false);
                }
                Err(error) => return Err(Error::Interpreter(error)),
            };
            let recorded = |call: &Call| {
                self.program.call(call.call).is_some_and(|state| state.made.want == want_text(call))
            };
            if told.state != State::Waiting || !told.calls.iter().all(recorded) {
                return Ok(false);
            }
            made += told.calls.len();
        }
        Ok(made == self.program.calls().count())
    }

    /// Gives the program every answer it has not had, and records what comes of it.
    pub(super) async fn advance(&mut self) -> Result<(), Error> {
        while self.has_answers() && !self.program.is_closed() {
            let Some((fed, ask)) = self.question(self.program.steps() as usize)? else { break };
            let mut told = self.ask(&ask).await;
            if matches!(told, Err(InterpreterError::Died { .. })) {
                // It may have been killed for a reason outside of the program: it is brought back once.
                self.restart_interpreter().await;
                if self.replay().await? {
                    told = self.ask(&ask).await;
                }
            }
            let failed = |kind: &str, message: String| ProgramEnd::Failed { kind: kind.to_owned(), message };
            let (step, end) = match told {
                Ok(GuestMessage::Stepped(step)) => (*step, None),
                Ok(GuestMessage::Unsound { problems }) => {
                    let first = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
                    (ProgramStep::default(), Some(failed("unsound", first)))
                }
                Ok(GuestMessage::Confused { why }) => (ProgramStep::default(), Some(failed("confused", why))),
                Ok(GuestMessage::Sound { .. }) => (
                    ProgramStep::default(),
                    Some(failed("confused", "it was checked and not run".to_owned())),
                ),
                Err(error @ InterpreterError::Deadline { .. }) => {
                    (ProgramStep::default(), Some(failed("deadline", error.to_string())))
                }
                Err(error @ InterpreterError::Died { .. }) => {
                    (ProgramStep::default(), Some(failed("died", error.to_string())))
                }
                Err(error) => return Err(Error::Interpreter(error)),
            };
            if !self.step(fed, step, end).await? {
                self.declined = true;
            }
        }
        self.save(Vec::new()).await.map(drop)
    }

    /// Takes one step of the program in: what it wants is admitted whole, or none of it begins. False when it
    /// does not fit.
    async fn step(
        &mut self,
        fed: Option<u32>,
        step: ProgramStep,
        failed: Option<ProgramEnd>,
    ) -> Result<bool, Error> {
        let (base, voters) =
            self.program.spec().map(|spec| (spec.base.clone(), spec.voters)).unwrap_or_default();
        let mut taken = StepTaken {
            fed,
            calls: Vec::new(),
            cleared: step.cleared,
            said: step.said.into_iter().map(said).collect(),
            end: failed.or_else(|| end(step.state)),
        };
        let mut beside: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        let mut at_once = Vec::new();
        let mut agents = 0u32;
        // The calls for which nothing of an earlier pass stands.
        let mut open = Vec::new();
        let fresh = self.fresh();
        // Only what wants agents can be declined and taken back.
        let wants_agents =
            step.calls.iter().any(|call| matches!(call.want, Want::Agent(_) | Want::Verify { .. }));
        let before = wants_agents.then(|| self.program.clone());
        for call in step.calls {
            let want = want_text(&call);
            let (mut made, ready) = match prepare(&self.parent, &call.want, &base, voters).await {
                Ok(ready) => {
                    for warning in ready.warnings.iter().cloned().map(ProgramSaid::Log) {
                        // A hundred agents of one make are no hundred warnings.
                        if !self.program.said().contains(&warning) && !taken.said.contains(&warning) {
                            taken.said.push(warning);
                        }
                    }
                    (made(&call, ready.kind, ready.label.clone(), ready.key.clone(), want), Some(ready))
                }
                Err(unready) => {
                    let status = ItemStatus::Skipped { reason: unready.why.clone() };
                    at_once.push((call.call, CallResult::bare(status, CallAnswer::Throw(unready.why))));
                    (made(&call, unready.kind, unready.label, unready.key, want), None)
                }
            };
            let beside = beside.entry(made.key.clone()).or_default();
            let stand = self.program.stand(&made.key, &made.path, beside);
            beside.insert(stand.occurrence);
            made.occurrence = stand.occurrence;
            made.attempt = stand.attempt;
            if let Some(ready) = ready {
                made.agents = ready.agents;
                made.schema = ready.schema;
                match stand.served.filter(|_| made.kind.is_kept()) {
                    Some(result) => at_once.push((made.call, result)),
                    None => open.push(taken.calls.len()),
                }
            }
            taken.calls.push(made);
        }
        // What is not served by an earlier pass may be remembered of an equal call over the same directory:
        // one query for the whole step.
        let asked = open.iter().filter(|_| !fresh).filter_map(|at| taken.calls.get(*at));
        let mut found = StepResults::look_up(&self.parent, asked).await?;
        for at in open {
            let Some(made) = taken.calls.get_mut(at) else { continue };
            if !fresh && let Some(result) = found.result(&self.parent, made).await {
                at_once.push((made.call, result));
                continue;
            }
            if !fresh && made.kind == CallKind::Verify {
                made.agents = found.missing_votes(made);
            }
            agents = agents.saturating_add(made.agents);
        }
        at_once.sort_by_key(|(call, _)| *call);
        let unsaved = self.unsaved.len();
        self.hear(ProgramInput::Step(Box::new(taken)))?;
        for (call, result) in at_once {
            self.end(call, result, Vec::new())?;
        }
        if agents == 0 {
            return Ok(true);
        }
        let admit = Entry::Admit { run: self.id.to_string(), count: agents };
        let Some(reason) = self.save(vec![admit]).await? else { return Ok(true) };
        // What stood before the step is recorded, the step is not: the next drive comes to it again.
        self.program = before.unwrap_or_default();
        self.unsaved.truncate(unsaved);
        self.hear(ProgramInput::Declined { agents, reason })?;
        self.save(Vec::new()).await?;
        Ok(false)
    }
}

fn want_text(call: &Call) -> Segment {
    Segment::encode(&serde_json::to_value(&call.want).unwrap_or_default())
}

fn made(call: &Call, kind: CallKind, label: String, key: String, want: Segment) -> MadeCall {
    MadeCall {
        call: call.call,
        kind,
        label,
        phase: call.phase.clone(),
        within: call.within.clone(),
        path: call.path.clone(),
        key,
        occurrence: 0,
        agents: 0,
        schema: None,
        attempt: 0,
        want,
    }
}

fn said(said: ProgramRemark) -> ProgramSaid {
    match said {
        ProgramRemark::Phase { title, within: None } => ProgramSaid::Phase(title),
        ProgramRemark::Phase { title, within: Some(child) } => {
            ProgramSaid::Phase(format!("▸ {child}: {title}"))
        }
        ProgramRemark::Log { text } => ProgramSaid::Log(text),
    }
}

fn end(state: State) -> Option<ProgramEnd> {
    match state {
        State::Waiting => None,
        State::Returned { value, replaced } => {
            Some(ProgramEnd::Returned { value: Segment::encode(&value.unwrap_or(Value::Null)), replaced })
        }
        State::Failed { fault } => {
            let kind =
                serde_json::to_value(fault.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            let place = fault
                .place
                .map(|place| format!("\nline {}, column {}: {}", place.line, place.column, place.text));
            let message = format!("{}{}", fault.message, place.unwrap_or_default());
            Some(ProgramEnd::Failed { kind: kind.unwrap_or_default(), message })
        }
    }
}
