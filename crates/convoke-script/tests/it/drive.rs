//! Drives one program in this process: asks, answers in an order that can be chosen, and keeps everything
//! that was said.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use convoke_script::{
    Call, CallOutcome, GuestMessage, HostMessage, Interpreter, Limits, Problem, ProgramRemark, Start, State,
};
use serde_json::Value;

use crate::mutate::Dice;
use crate::stub::{self, Mode};

/// Which of the calls that wait is answered next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// The oldest.
    First,
    /// The newest.
    Last,
    /// Any, by a seed.
    Shuffled(u64),
}

/// Everything that came out of one program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) end: End,
    /// Every call, in order.
    pub(crate) calls: Vec<Call>,
    /// Everything it said, in order.
    pub(crate) said: Vec<ProgramRemark>,
    /// Timers it cleared.
    pub(crate) cleared: Vec<u32>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// It was never started.
    Unsound(Vec<Problem>),
    /// It ran; `Waiting` means that the host had enough of it.
    State(State),
}

impl Ran {
    /// The value it returned.
    pub(crate) fn value(&self) -> Value {
        match &self.end {
            End::State(State::Returned { value, .. }) => value.clone().unwrap_or(Value::Null),
            other => panic!("it did not return: {other:?}"),
        }
    }

    /// The lines of its log.
    pub(crate) fn logs(&self) -> Vec<&str> {
        self.said
            .iter()
            .filter_map(
                |said| if let ProgramRemark::Log { text } = said { Some(text.as_str()) } else { None },
            )
            .collect()
    }
}

/// A program around a body.
pub(crate) fn program(body: &str) -> String {
    format!("export const meta = {{ name: 'test', description: 'a test' }}\n{body}\n")
}

/// A start with nothing but a source.
pub(crate) fn start(source: &str) -> Start {
    Start { source: source.to_owned(), args: None, budget_total: None, spent: 0, limits: Limits::default() }
}

/// Runs a program to its end, or until `most` answers were given.
pub(crate) fn run(
    start: Start,
    order: Order,
    most: usize,
    mut answer: impl FnMut(&Call) -> CallOutcome,
) -> Ran {
    let mut interpreter = Interpreter::new();
    let mut ran =
        Ran { end: End::State(State::Waiting), calls: Vec::new(), said: Vec::new(), cleared: Vec::new() };
    let mut dice = Dice::new(if let Order::Shuffled(seed) = order { seed } else { 0 });
    let mut waiting: Vec<Call> = Vec::new();
    let mut spent = start.spent;
    let mut told = interpreter.hear(HostMessage::Start(Box::new(start)));
    for _ in 0..=most {
        let step = match told {
            GuestMessage::Stepped(step) => *step,
            GuestMessage::Unsound { problems } => {
                ran.end = End::Unsound(problems);
                return ran;
            }
            other => panic!("no step: {other:?}"),
        };
        ran.calls.extend(step.calls.iter().cloned());
        ran.said.extend(step.said);
        waiting.extend(step.calls);
        waiting.retain(|call| !step.cleared.contains(&call.call));
        ran.cleared.extend(step.cleared);
        ran.end = End::State(step.state.clone());
        if step.state != State::Waiting {
            late_answers_change_nothing(&mut interpreter, &waiting, &step.state);
            return ran;
        }
        assert!(!waiting.is_empty(), "it waits, and no call is open");
        let at = match order {
            Order::First => 0,
            Order::Last => waiting.len() - 1,
            Order::Shuffled(_) => dice.below(waiting.len()),
        };
        let call = waiting.remove(at);
        if matches!(call.want, convoke_script::Want::Agent(_)) {
            spent += 1_000;
        }
        let answer = answer(&call);
        told = interpreter.hear(HostMessage::Answer { call: call.call, answer, spent });
    }
    ran
}

/// Answers to calls that the program no longer waits for may still come; they are taken and change nothing.
fn late_answers_change_nothing(interpreter: &mut Interpreter, waiting: &[Call], state: &State) {
    for call in waiting.iter().take(5) {
        let answer = CallOutcome::Value { value: Value::Null };
        match interpreter.hear(HostMessage::Answer { call: call.call, answer, spent: 0 }) {
            GuestMessage::Stepped(step) => {
                assert_eq!(step.state, *state, "a late answer changed the end");
                assert_eq!(step.calls, [], "a program that has ended made a call");
            }
            other => panic!("a late answer: {other:?}"),
        }
    }
}

/// Runs a body with agents that all do their work.
pub(crate) fn run_body(body: &str) -> Ran {
    run(start(&program(body)), Order::First, 5_000, |call| stub::answer(call, Mode::Ok))
}

/// Runs a body whose agents answer with what they were asked.
pub(crate) fn run_echo(body: &str) -> Ran {
    run(start(&program(body)), Order::First, 5_000, echo)
}

/// Answers an agent with its own prompt, everything else as the stub does.
pub(crate) fn echo(call: &Call) -> CallOutcome {
    match &call.want {
        convoke_script::Want::Agent(agent) => {
            CallOutcome::Value { value: Value::String(agent.prompt.clone()) }
        }
        _ => stub::answer(call, Mode::Ok),
    }
}

/// Does something in a thread of its own with the stack that the worker process has, and fails if it does not
/// end.
pub(crate) fn guarded<T: Send + 'static>(
    what: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (done, heard) = mpsc::channel();
    let handle = thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || {
            let _ = done.send(f());
        })
        .unwrap();
    match heard.recv_timeout(Duration::from_secs(120)) {
        Ok(value) => Ok(value),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(format!("{what}: did not end in this process within 120 s"))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let panic = handle.join().err().and_then(|panic| panic.downcast_ref::<String>().cloned());
            Err(format!("{what}: panicked: {}", panic.unwrap_or_default()))
        }
    }
}
