//! Every program that attacks, in the real worker process: each ends in a way that has a type, at the latest
//! when its time is up, and a program that runs beside them notices nothing. `CONVOKE_SOAK_HOSTILE=1` runs
//! all of them twice and gives each its full time.

#[path = "../../../convoke-script/tests/it/attacks.rs"]
mod attacks;
#[expect(dead_code, reason = "attacks are answered in one of its modes")]
#[path = "../../../convoke-script/tests/it/stub.rs"]
pub(crate) mod stub;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use convoke_sandbox::{HelperPath, Worker, WorkerEnd, WorkerLimits};
use convoke_script::{Call, GuestMessage, HostMessage, Limits, Start, State};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use attacks::{Attack, Expected, families, limits};
use stub::{Mode, SCRIPTS};

/// How long a step of an attack may compute, and of one that is known to be killed.
const STEP: Duration = Duration::from_secs(5);
const NATIVE_STEP: Duration = Duration::from_millis(600);
/// An honest program is never in a hurry.
const LONG: Duration = Duration::from_secs(60);
/// Answers that are given to one attack at most.
const MOST: usize = 1_500;

fn helper() -> HelperPath {
    HelperPath::new(env!("CARGO_BIN_EXE_convoke-helper").into())
}

/// How a program ended.
enum DriveOutcome {
    Unsound,
    State(State),
    Killed(WorkerEnd),
    Confused(GuestMessage),
}

impl DriveOutcome {
    fn shown(&self) -> String {
        let mut shown = match self {
            Self::Unsound => "unsound".to_owned(),
            Self::State(state) => format!("{state:?}"),
            Self::Killed(end) => format!("killed: {end}"),
            Self::Confused(told) => format!("{told:?}"),
        };
        shown.truncate(shown.floor_char_boundary(400));
        shown
    }
}

fn begin(source: &str, limits: Limits) -> HostMessage {
    let args = Some(json!({"modules": ["a", "b"], "lenses": ["x"]}));
    HostMessage::Start(Box::new(Start {
        source: source.to_owned(),
        args,
        budget_total: None,
        spent: 0,
        limits,
    }))
}

/// Runs a program to its end in a process of its own.
async fn run(source: &str, limits: Limits, step: Duration) -> DriveOutcome {
    let mut worker = Worker::start(&helper(), WorkerLimits::default()).await.unwrap();
    let mut ask = begin(source, limits);
    let mut open: Vec<Call> = Vec::new();
    for _ in 0..=MOST {
        let reply = match worker.ask(&serde_json::to_string(&ask).unwrap(), step).await {
            Ok(reply) => reply,
            Err(end) => {
                assert_eq!(worker.process_id(), None, "what cannot answer is gone");
                return DriveOutcome::Killed(end);
            }
        };
        let step = match serde_json::from_str(&reply).unwrap() {
            GuestMessage::Stepped(step) => *step,
            GuestMessage::Unsound { .. } => return DriveOutcome::Unsound,
            other => return DriveOutcome::Confused(other),
        };
        open.extend(step.calls);
        open.retain(|call| !step.cleared.contains(&call.call));
        if step.state != State::Waiting || open.is_empty() {
            worker.stop().await;
            return DriveOutcome::State(step.state);
        }
        let call = open.remove(0);
        ask = HostMessage::Answer { call: call.call, answer: stub::answer(&call, Mode::Ok), spent: 0 };
    }
    worker.stop().await;
    DriveOutcome::State(State::Waiting)
}

/// What is wrong with how an attack ended.
async fn complaint(attack: &Attack, step: Duration) -> Option<String> {
    let ended = run(&attack.source, limits(), step).await;
    let right = match &ended {
        DriveOutcome::Unsound => attack.allows(None),
        DriveOutcome::State(state) => attack.allows(Some(state)),
        // Time is one of the limits, and on a busy machine the first that is met.
        DriveOutcome::Killed(WorkerEnd::Deadline) => true,
        // A process that breaks down is contained as well, but only what is said to break it may.
        DriveOutcome::Killed(_) => attack.ends.contains(&Expected::Any),
        DriveOutcome::Confused(_) => false,
    };
    (!right).then(|| format!("{}: {}, not one of {:?}", attack.name, ended.shown(), attack.ends))
}

/// An honest program, which is to come to the same end however busy the machine is with others.
async fn honest() -> Value {
    let source = fs::read_to_string(format!("{SCRIPTS}/nested_fan.js")).unwrap();
    match run(&source, Limits::default(), LONG).await {
        DriveOutcome::State(State::Returned { value: Some(value), .. }) => value,
        other => panic!("an honest program: {}", other.shown()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attack_ends_in_its_own_process_and_the_others_do_not_notice() {
    let soak = std::env::var_os("CONVOKE_SOAK_HOSTILE").is_some();
    let expected = honest().await;
    let attacks: Vec<Attack> = families().into_iter().flat_map(|(_, attacks)| attacks).collect();
    let count = attacks.len();
    let mut wrong = Vec::new();
    for _ in 0..if soak { 2 } else { 1 } {
        let room = Arc::new(Semaphore::new(4));
        let mut running = JoinSet::new();
        for (n, attack) in attacks.iter().cloned().enumerate() {
            let room = Arc::clone(&room);
            let expected = expected.clone();
            let step = if attack.needs_process && !soak { NATIVE_STEP } else { STEP };
            running.spawn(async move {
                let _place = room.acquire().await.unwrap();
                let complaint = complaint(&attack, step).await;
                if n % 10 == 0 {
                    assert_eq!(honest().await, expected, "beside {}", attack.name);
                }
                complaint
            });
        }
        while let Some(done) = running.join_next().await {
            wrong.extend(done.unwrap());
        }
    }
    assert_eq!(honest().await, expected);
    println!("{count} attacks");
    assert!(wrong.is_empty(), "\n{}\n{} of {count}", wrong.join("\n"), wrong.len());
}
