//! Stopping: what is under way is waited for or cut, nothing new starts, and a resume goes on.

use convoke_kernel::{Event, Outcome, Ran};
use convoke_runtime::{Crash, DriveMode, Error, Moment, Notice, Stop, StopLevel, Stopper};
use convoke_sim::{Fault, FaultKind, Script, calls, says};
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::{Rig, within};
use crate::team::Team;

#[tokio::test]
async fn a_drain_waits_for_the_reply_and_starts_nothing_new() {
    let script =
        Script::new().conversation("*", [calls("bash", json!({"command": "echo ran >> log"})), says("done")]);
    let rig = Rig::new(script).await;
    let hold = rig.sim.hold("go", 0, 2);
    let runtime = rig.life(None).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let (stopper, stop) = Stopper::new();
    let drive = runtime.drive(&agent, DriveMode::New, stop, None);
    let ask = async {
        hold.entered().await;
        stopper.ask(StopLevel::Drain);
        hold.release();
    };
    let (ended, ()) = within(async { tokio::join!(drive, ask) }).await;
    assert_eq!(ended.unwrap().outcome, None);
    assert_eq!(rig.read("log"), "", "the command was not started");
    let kinds: Vec<_> = rig.events(&agent).await.iter().map(Event::kind).collect();
    assert_eq!(kinds.last(), Some(&"model_replied"));
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    assert_eq!((rig.read("log").as_str(), rig.sim.requests().len()), ("ran\n", 2));
}

#[tokio::test]
async fn a_cut_records_the_call_as_interrupted_and_a_resume_repeats_it() {
    let rig = Rig::new(Script::new().conversation("*", [says("done")])).await;
    let hold = rig.sim.hold("go", 0, 2);
    let runtime = rig.life(None).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let (stopper, stop) = Stopper::new();
    let ask = async {
        hold.entered().await;
        stopper.ask(StopLevel::Cut);
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&agent, DriveMode::New, stop, None), ask) }).await;
    assert_eq!(ended.unwrap().outcome, None);
    hold.release();
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    assert_eq!(rig.sim.requests().len(), 2);
}

#[tokio::test]
async fn a_cut_kills_the_command_and_tells_the_model() {
    let script = Script::new().conversation(
        "*",
        [calls("bash", json!({"command": "echo begun; echo x > started; sleep 600"})), says("done")],
    );
    let mut rig = Rig::new(script).await;
    rig.limits.bash_timeout_ms = 600_000;
    let runtime = rig.life(None).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let (stopper, stop) = Stopper::new();
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let started = rig.work.path().join("started");
    let ask = async {
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Recorded { event, .. } if event.kind() == "tool_started") {
                break;
            }
        }
        while !started.exists() {
            tokio::task::yield_now().await;
        }
        stopper.ask(StopLevel::Cut);
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&agent, DriveMode::New, stop, Some(watcher)), ask) }).await;
    assert_eq!(ended.unwrap().outcome, None);
    let finished = rig.events(&agent).await.into_iter().find_map(|event| match event {
        Event::ToolFinished(e) => Some(e.result),
        _ => None,
    });
    let result = finished.unwrap();
    assert_eq!(result.ran, Ran::Interrupted);
    assert!(result.text.starts_with("begun\n") && result.text.contains("\n(interrupted"), "{}", result.text);
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
}

#[tokio::test]
async fn a_stop_while_waiting_for_a_retry_ends_at_once_and_the_wait_is_kept() {
    let mut rig = Rig::new(Script::new().conversation("*", [says("done")])).await;
    rig.clock = convoke_runtime::Clock::system();
    rig.sim.push_fault(Fault::new(FaultKind::RateLimited { retry_after: Some(600), headers: true }));
    let runtime = rig.life(None).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let (stopper, stop) = Stopper::new();
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let ask = async {
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Recorded { event, .. } if event.kind() == "model_failed") {
                break;
            }
        }
        stopper.ask(StopLevel::Drain);
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&agent, DriveMode::New, stop, Some(watcher)), ask) }).await;
    assert_eq!(ended.unwrap().outcome, None);
    assert!(matches!(rig.folded(&agent).await.pending()[..], [convoke_kernel::Effect::AskRoom { .. }]));
}

#[tokio::test]
async fn a_stop_during_a_commit_leaves_nothing_decided_and_never_begun() {
    let script =
        Script::new().conversation("*", [calls("bash", json!({"command": "echo ran >> log"})), says("done")]);
    let rig = Rig::new(script).await;
    let (stopper, stop) = Stopper::new();
    let crash = Crash::when(move |moment, events| {
        if moment == Moment::AfterCommit && events.iter().any(|event| event.kind() == "tool_started") {
            stopper.ask(StopLevel::Drain);
        }
        false
    });
    let runtime = rig.life(Some(crash)).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let ended = within(runtime.drive(&agent, DriveMode::New, stop, None)).await.unwrap();
    assert_eq!(ended.outcome, None);
    assert_eq!(rig.read("log"), "ran\n", "what was decided was done and waited for");
    rig.resume(&agent).await.unwrap();
    assert!(
        !rig.events(&agent)
            .await
            .iter()
            .any(|e| matches!(e, Event::ToolFinished(e) if e.result.ran == Ran::Interrupted))
    );
}

#[tokio::test]
async fn whoever_loses_the_lease_stops_at_once_and_records_nothing_more() {
    let script =
        Script::new().conversation("*", [calls("bash", json!({"command": "sleep 600"})), says("done")]);
    let mut rig = Rig::new(script).await;
    rig.limits.bash_timeout_ms = 600_000;
    let runtime = rig.life(None).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let take_over = async {
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Recorded { event, .. } if event.kind() == "tool_started") {
                break;
            }
        }
        rig.take_over(&agent).await;
    };
    let drive = runtime.drive(&agent, DriveMode::New, Stop::never(), Some(watcher));
    let (driven, ()) = within(async { tokio::join!(drive, take_over) }).await;
    assert!(matches!(driven, Err(Error::Journal(convoke_journal::Error::LostLease { .. }))), "{driven:?}");
    assert_eq!(rig.events(&agent).await.last().unwrap().kind(), "tool_started");
}

#[tokio::test]
async fn cancelling_64_agents_with_running_commands_leaves_nothing_and_takes_little_time() {
    const AGENTS: usize = 64;
    let subtasks: Vec<String> = (0..AGENTS).map(|number| format!("wait {number}")).collect();
    let wait = "echo x >> $TMPDIR/begun; (setsid sleep 4711 &) ; sleep 4712";
    let lead = [calls("Workflow", json!({"subtasks": subtasks})), says("done")];
    let team = Team::new(lead).workers(move |_| vec![calls("bash", json!({"command": wait}))]);
    let mut rig = crate::workers::rig(team).await.confined(convoke_kernel::Sandbox::Workspace);
    rig.max_concurrent = AGENTS;
    rig.limits.bash_timeout_ms = 600_000;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let (stopper, stop) = Stopper::new();
    let private = rig.scratch.path().join("private");
    let asked = async {
        let begun = || {
            let agents = std::fs::read_dir(&private).into_iter().flatten().flatten();
            agents.filter(|agent| agent.path().join("tmp/begun").exists()).count()
        };
        while begun() < AGENTS {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        stopper.ask(StopLevel::Cut);
        std::time::Instant::now()
    };
    let drive = runtime.drive(&lead, DriveMode::New, stop, None);
    let (ended, since) = within(async { tokio::join!(drive, asked) }).await;
    let took = since.elapsed();
    assert_eq!(ended.unwrap().outcome, None);
    let line = format!("cancelling {AGENTS} agents with running commands took {} ms\n", took.as_millis());
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    let sleeping = std::process::Command::new("pgrep").args(["-f", "^sleep 471[12]"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&sleeping.stdout), "", "everything they started is gone");
}
