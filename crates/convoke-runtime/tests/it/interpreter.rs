//! Workflow programs in the real helper: checked and run behind its lock.

use std::time::Duration;

use convoke_runtime::{GuestMessage, HelperPath, check_program};
use convoke_sandbox::{Worker, WorkerEnd, WorkerLimits};
use convoke_script::{CallOutcome, HostMessage, ProgramStep, Start, State, Want};
use serde_json::json;

const META: &str = "export const meta = { name: 'tiny', description: 'asks one agent' }\n";

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn helper() -> HelperPath {
    HelperPath::new(env!("CARGO_BIN_EXE_convoke-helper").into())
}

async fn ask(worker: &mut Worker, ask: &HostMessage) -> GuestMessage {
    let reply = worker.ask(&serde_json::to_string(ask).unwrap(), LONG).await.unwrap();
    serde_json::from_str(&reply).unwrap()
}

fn start(body: &str) -> HostMessage {
    HostMessage::Start(Box::new(Start {
        source: format!("{META}{body}"),
        args: Some(json!({"who": "you"})),
        budget_total: None,
        spent: 0,
        limits: convoke_script::Limits::default(),
    }))
}

fn stepped(told: GuestMessage) -> ProgramStep {
    match told {
        GuestMessage::Stepped(step) => *step,
        other => panic!("no step: {other:?}"),
    }
}

#[tokio::test]
async fn a_program_is_checked_behind_the_lock() {
    let told = check_program(&helper(), &format!("{META}return await agent('hello')")).await.unwrap();
    let GuestMessage::Sound { meta, .. } = &told else { panic!("{told:?}") };
    assert_eq!((meta.name.as_str(), meta.description.as_str()), ("tiny", "asks one agent"));
    let told = check_program(&helper(), &format!("{META}return (")).await.unwrap();
    assert!(matches!(&told, GuestMessage::Unsound { problems } if !problems.is_empty()), "{told:?}");
}

#[tokio::test]
async fn a_program_runs_behind_the_lock_from_wait_to_wait() {
    let mut worker = Worker::start(&helper(), WorkerLimits::default()).await.unwrap();
    let source = "const said = await agent(`greet ${args.who}`, {label: 'greeter'})\nreturn \
        {said, of: [1, 2].map(n => n * 2)}";
    let step = stepped(ask(&mut worker, &start(source)).await);
    assert_eq!(step.state, State::Waiting);
    let [call] = &step.calls[..] else { panic!("{step:?}") };
    assert!(matches!(&call.want, Want::Agent(agent) if agent.prompt == "greet you"), "{call:?}");
    let answer = HostMessage::Answer {
        call: call.call,
        answer: CallOutcome::Value { value: json!("hello") },
        spent: 10,
    };
    let step = stepped(ask(&mut worker, &answer).await);
    let State::Returned { value, .. } = step.state else { panic!("{step:?}") };
    assert_eq!(value, Some(json!({"said": "hello", "of": [2, 4]})));
    worker.stop().await;
}

#[tokio::test]
async fn dates_are_in_utc_and_need_no_file() {
    let mut worker = Worker::start(&helper(), WorkerLimits::default()).await.unwrap();
    let source = "const d = new Date(2024, 0, 2, 3)\nreturn [d.toISOString(), d.getTimezoneOffset(), \
        String(new Date(0)).slice(0, 24)]";
    let State::Returned { value, .. } = stepped(ask(&mut worker, &start(source)).await).state else {
        panic!("no value")
    };
    assert_eq!(value, Some(json!(["2024-01-02T03:00:00.000Z", 0, "Thu Jan 01 1970 00:00:00"])));
}

#[tokio::test]
async fn a_native_loop_that_no_engine_interrupts_ends_at_the_deadline() {
    let mut worker = Worker::start(&helper(), WorkerLimits::default()).await.unwrap();
    let endless = start("const a = []; a.length = 2 ** 32 - 1; return a.join('')");
    let end = worker.ask(&serde_json::to_string(&endless).unwrap(), Duration::from_secs(1)).await;
    // The engine may find its own limit first; in neither case does it hang.
    match end {
        Err(WorkerEnd::Deadline) => assert_eq!(worker.process_id(), None),
        Ok(reply) => {
            assert!(matches!(stepped(serde_json::from_str(&reply).unwrap()).state, State::Failed { .. }))
        }
        other => panic!("{other:?}"),
    }
}
