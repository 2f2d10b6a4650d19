//! One question, one reply: the checks, the steps, the ends. It holds no rule about what programs may do;
//! those are in the check, the outbox and the prelude.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;

use crate::check::{self, Sound};
use crate::compile;
use crate::engine::Engine;
use crate::instrument::Instrumented;
use crate::outbox::{Awaited, CHILD_STEM, MAIN, Outbox, Stop};
use crate::places::Places;
use crate::protocol::{
    CallOutcome, Fault, FaultKind, GuestMessage, HostMessage, Limits, ProgramRemark, ProgramStep,
    SourcePosition, Start, State,
};

/// Runs one program.
pub struct Interpreter {
    running: Option<Running>,
}

struct Running {
    engine: Engine,
    outbox: Rc<RefCell<Outbox>>,
    stop: Stop,
    source: String,
    instrumented: Instrumented,
    limits: Limits,
    children: u32,
    ended: Option<State>,
}

/// What the prelude says of a program's end.
#[derive(Deserialize)]
struct Report {
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    #[serde(default)]
    replaced: Vec<String>,
    threw: Option<String>,
    stack: Option<String>,
    kind: Option<FaultKind>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Default for Interpreter {
    fn default() -> Self {
        Self::new()
    }
}

impl Interpreter {
    /// An interpreter that has been asked nothing yet. Made before the
    /// process is locked, if it is to be locked.
    pub fn new() -> Self {
        check::prepare();
        Self { running: None }
    }

    /// One question, one reply.
    pub fn hear(&mut self, ask: HostMessage) -> GuestMessage {
        match ask {
            HostMessage::Check { source, limits } => match check::check(&source, &limits) {
                Ok(Sound { meta, warnings, slips, .. }) => GuestMessage::Sound { meta, warnings, slips },
                Err(problems) => GuestMessage::Unsound { problems },
            },
            HostMessage::Start(_) if self.running.is_some() => confused("a program was started before"),
            HostMessage::Start(start) => self.start(*start),
            HostMessage::Answer { call, answer, spent } => match &mut self.running {
                None => confused("no program was started"),
                Some(running) => running.answer(call, &answer, spent),
            },
        }
    }

    /// The same, as lines of JSON without a line feed.
    pub fn hear_line(&mut self, line: &str) -> String {
        let told = match serde_json::from_str(line) {
            Ok(ask) => self.hear(ask),
            Err(error) => GuestMessage::Confused { why: error.to_string() },
        };
        serde_json::to_string(&told)
            .unwrap_or_else(|_| r#"{"told":"confused","why":"unwritable"}"#.to_owned())
    }

    /// Bytes of the engine's heap in use, for measurements; nothing before a start.
    pub fn heap_used(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.engine.heap_used())
    }

    fn start(&mut self, start: Start) -> GuestMessage {
        let Sound { instrumented, .. } = match check::check(&start.source, &start.limits) {
            Ok(sound) => sound,
            Err(problems) => return GuestMessage::Unsound { problems },
        };
        let stop = Stop::default();
        let outbox = Rc::new(RefCell::new(Outbox::new(start.limits, stop.clone())));
        let engine = match Engine::new(&start, &outbox, stop.clone()) {
            Ok(engine) => engine,
            Err(message) => {
                let state = unstarted(&message, &start.limits);
                return GuestMessage::Stepped(Box::new(ProgramStep { state, ..ProgramStep::default() }));
            }
        };
        let source = check::unmarked(&start.source).to_owned();
        let limits = start.limits;
        let running =
            Running { engine, outbox, stop, source, instrumented, limits, children: 0, ended: None };
        self.running
            .insert(running)
            .step(|running| running.engine.run(MAIN, &running.instrumented.text, None))
    }
}

impl Running {
    fn answer(&mut self, call: u32, answer: &CallOutcome, spent: u64) -> GuestMessage {
        let awaited = self.outbox.borrow().awaited(call);
        let Some(awaited) = awaited else {
            // A timer that was cleared while its answer was on the way.
            let forgotten = self.outbox.borrow().is_forgotten(call);
            return if forgotten {
                self.step(|_| Ok(()))
            } else {
                confused(&format!("call {call} waits for no answer"))
            };
        };
        if awaited == Awaited::Value && matches!(answer, CallOutcome::Program { .. }) {
            return confused(&format!("call {call} is not a workflow, and a program is no answer to it"));
        }
        self.outbox.borrow_mut().answered(call);
        self.step(|running| {
            running.engine.spend(spent)?;
            match answer {
                CallOutcome::Value { value } => running.engine.settle(call, Ok(&value.to_string())),
                CallOutcome::Throw { message } => running.engine.settle(call, Err(message)),
                CallOutcome::Program { name, source } => running.child(call, name, source),
            }
        })
    }

    /// Runs a child inside the program that asked for it.
    fn child(&mut self, call: u32, name: &str, source: &str) -> Result<(), String> {
        match check::check(source, &self.limits) {
            Ok(Sound { instrumented, .. }) => {
                self.children += 1;
                // The number is put behind the stem so that the line of a call is found by the stem alone.
                let file = format!("{}-{CHILD_STEM}", self.children);
                self.engine.run(&file, &instrumented.text, Some((call, name)))
            }
            Err(problems) => {
                let first = problems.first();
                let line = first
                    .and_then(|problem| problem.place.as_ref())
                    .map(|place| format!(" line {}:", place.line));
                let message = first.map_or("it cannot be run", |problem| &problem.message);
                self.engine
                    .settle(call, Err(&format!("workflow '{name}':{} {message}", line.unwrap_or_default())))
            }
        }
    }

    /// One step: what is given, then everything that follows from it. Nothing is run after the end.
    fn step(&mut self, first: impl FnOnce(&mut Self) -> Result<(), String>) -> GuestMessage {
        if let Some(state) = &self.ended {
            return GuestMessage::Stepped(Box::new(ProgramStep {
                state: state.clone(),
                ..ProgramStep::default()
            }));
        }
        self.engine.begin();
        self.outbox.borrow_mut().begin();
        let began = first(self);
        if began.is_ok() {
            self.engine.pump();
        }
        let state = self.state(began.err());
        if !matches!(state, State::Waiting) {
            self.close(&state);
        }
        let mut outbox = self.outbox.borrow_mut();
        let step = ProgramStep {
            calls: std::mem::take(&mut outbox.calls),
            cleared: std::mem::take(&mut outbox.cleared),
            said: std::mem::take(&mut outbox.said),
            state,
        };
        GuestMessage::Stepped(Box::new(step))
    }

    /// How the program stands, now that nothing is left to run.
    fn state(&mut self, failed: Option<String>) -> State {
        if let Some(kind) = self.stop.get() {
            return self.limit(kind);
        }
        if let Some(message) = failed {
            return fault(FaultKind::Thrown, message, None);
        }
        let report = self.engine.report();
        // Reading the result runs the program's own getters, which may hit a limit as well.
        if let Some(kind) = self.stop.get() {
            return self.limit(kind);
        }
        let text = match report {
            Err(message) => return fault(FaultKind::Thrown, message, None),
            Ok(Some(text)) => text,
            Ok(None) if !self.outbox.borrow().is_idle() => return State::Waiting,
            Ok(None) if self.engine.is_full() => return self.limit(FaultKind::Heap),
            Ok(None) => {
                let message = "the program waits for something that is never answered: a promise in it is \
                    never settled";
                return fault(FaultKind::Deadlock, message.to_owned(), None);
            }
        };
        if text.len() > self.limits.value_bytes.saturating_add(64) {
            return self.limit(FaultKind::Value);
        }
        match serde_json::from_str(&crate::crossing::mend_surrogates(text)) {
            Ok(Report { threw: None, value, replaced, .. }) => State::Returned { value, replaced },
            Ok(Report { threw: Some(message), stack, kind, .. }) => {
                self.thrown(message, stack.as_deref(), kind)
            }
            Err(error) => {
                fault(FaultKind::Value, format!("the result cannot be written as JSON: {error}"), None)
            }
        }
    }

    fn thrown(&self, message: String, stack: Option<&str>, kind: Option<FaultKind>) -> State {
        let kind = kind.unwrap_or(match message.as_str() {
            "InternalError: out of memory" => FaultKind::Heap,
            "RangeError: Maximum call stack size exceeded" => FaultKind::Stack,
            "null" if self.engine.is_full() => FaultKind::Heap,
            _ => FaultKind::Thrown,
        });
        if kind == FaultKind::Heap {
            return self.limit(kind);
        }
        let inside = stack.and_then(|stack| compile::place(stack, CHILD_STEM));
        let place = stack.and_then(|stack| self.place(stack));
        let message = match (inside, &place) {
            (Some((line, _)), None) => format!("{message} (in a child workflow, line {line})"),
            _ => message,
        };
        fault(kind, message, place)
    }

    fn place(&self, stack: &str) -> Option<SourcePosition> {
        let (line, column) = compile::place(stack, MAIN)?;
        let places = Places::new(&self.source);
        Some(places.at(self.instrumented.offset(&self.source, &places, line, column)?))
    }

    fn limit(&self, kind: FaultKind) -> State {
        let Limits { heap_bytes, stack_bytes, ticks, pending, calls, log_lines, value_bytes, .. } =
            self.limits;
        let message = match kind {
            FaultKind::Ticks => {
                format!(
                    "the program computed for {ticks} ticks without waiting for anything, and was stopped"
                )
            }
            FaultKind::Heap => {
                format!(
                    "the program needed more than its {heap_bytes} bytes of memory: keep less of it at once"
                )
            }
            FaultKind::Stack => {
                format!("the program recursed deeper than its {stack_bytes} bytes of stack allow")
            }
            FaultKind::Pending if self.outbox.borrow().is_used_up() => {
                format!("more than {calls} calls in one run: do it in fewer calls, or in several runs")
            }
            FaultKind::Pending => format!("more than {pending} calls waited at once: make them in batches"),
            FaultKind::Logs => format!("the program logged more than {log_lines} lines"),
            FaultKind::Value => {
                format!("a value that crosses the border is larger than {value_bytes} bytes: hand over less")
            }
            FaultKind::Thrown
            | FaultKind::Deadlock
            | FaultKind::Deadline
            | FaultKind::Died
            | FaultKind::Unsound => "the program ended".to_owned(),
        };
        fault(kind, message, None)
    }

    /// The program has ended: logs the rejections that no handler took, and remembers the end.
    fn close(&mut self, state: &State) {
        self.ended = Some(state.clone());
        // After a limit the engine is not entered again.
        if self.stop.get().is_some() {
            return;
        }
        let unhandled = self.engine.unhandled();
        let mut outbox = self.outbox.borrow_mut();
        for reason in unhandled {
            let text = format!("a promise was rejected and its error not handled: {reason}");
            outbox
                .said
                .push(ProgramRemark::Log { text: crate::crossing::line(&text, self.limits.log_chars) });
        }
    }
}

/// The names around a program, or its arguments, did not fit.
fn unstarted(message: &str, limits: &Limits) -> State {
    let Limits { heap_bytes, stack_bytes, .. } = limits;
    // Without room for an error object the engine throws null, which is no text for a message.
    if message.contains("Maximum call stack") {
        let message = format!("the engine cannot start with {stack_bytes} bytes of stack: allow it more");
        return fault(FaultKind::Stack, message, None);
    }
    let why = match message {
        "" | "null" | "out of memory" => String::new(),
        other => format!(" ({other})"),
    };
    let message = format!(
        "the engine cannot start with {heap_bytes} bytes of memory{why}: hand over smaller arguments, or a \
            path to read"
    );
    fault(FaultKind::Heap, message, None)
}

fn fault(kind: FaultKind, message: String, place: Option<SourcePosition>) -> State {
    State::Failed { fault: Fault { kind, message, place } }
}

fn confused(why: &str) -> GuestMessage {
    GuestMessage::Confused { why: why.to_owned() }
}

#[cfg(test)]
mod tests;
