//! A reply that came and could not be recorded: it is kept in a file, recorded by the next resume, and never
//! asked for again; a file that does not fit is left alone.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::sync::{Arc, Mutex};

use convoke_kernel::{AgentId, Event, Outcome};
use convoke_runtime::{Crash, DriveMode, Error, Moment, Stop};
use convoke_sim::{Script, calls, says};
use serde_json::{Value, json};

use crate::support::{Rig, within};

/// A run that died with its first reply in hand, and that reply as the spool would hold it.
async fn cut_off() -> (Rig, AgentId, Value) {
    let script =
        Script::new().conversation("*", [calls("bash", json!({"command": "echo x >> log"})), says("done")]);
    let rig = Rig::new(script).await;
    let reply = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&reply);
    let crash = Crash::when(move |moment, events| {
        let replied = events.iter().find(|event| matches!(event, Event::ModelReplied(_)));
        match replied {
            Some(event) if moment == Moment::BeforeCommit => {
                *seen.lock().unwrap() = Some(event.encode().unwrap());
                true
            }
            _ => false,
        }
    });
    let runtime = rig.life(Some(crash)).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let driven = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await;
    assert!(matches!(driven, Err(Error::Crashed)));
    let event = reply.lock().unwrap().clone().unwrap();
    let expected = rig.events(&agent).await.len();
    (rig, agent, json!({"expected": expected, "at": 1, "events": [event], "acks": []}))
}

fn keep(rig: &Rig, agent: &AgentId, text: &str) {
    let dir = rig.scratch.path().join("spool");
    std::fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
    std::fs::write(dir.join(format!("{agent}.json")), text).unwrap();
}

async fn check(spooled: impl Fn(Value) -> String, requests: usize, stays: bool) {
    let (rig, agent, value) = cut_off().await;
    keep(&rig, &agent, &spooled(value));
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    assert_eq!(rig.sim.requests().len(), requests);
    assert_eq!(rig.read("log"), "x\n");
    assert_eq!(rig.scratch.path().join("spool").join(format!("{agent}.json")).exists(), stays);
}

#[tokio::test]
async fn d6_4_a_kept_reply_is_recorded_and_not_asked_for_again() {
    check(|value| value.to_string(), 2, false).await;
}

#[tokio::test]
async fn a_kept_reply_that_comes_too_late_is_left_alone() {
    let stale = |mut value: Value| {
        value["expected"] = json!(1);
        value.to_string()
    };
    check(stale, 3, true).await;
}

#[tokio::test]
async fn a_kept_reply_that_cannot_follow_or_be_read_is_left_alone() {
    check(|_| "{\"expected\":".to_owned(), 3, true).await;
    let unknown = |mut value: Value| {
        value["events"] = json!([r#"{"type":"moon_landed"}"#]);
        value.to_string()
    };
    check(unknown, 3, true).await;
    let twice = |mut value: Value| {
        let event = value["events"][0].clone();
        value["events"] = json!([event, event]);
        value.to_string()
    };
    check(twice, 3, true).await;
}

#[tokio::test]
async fn a_spool_that_others_may_write_to_is_not_believed() {
    let (rig, agent, value) = cut_off().await;
    keep(&rig, &agent, &value.to_string());
    let shared = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(rig.scratch.path().join("spool"), shared).unwrap();
    rig.resume(&agent).await.unwrap();
    assert_eq!(rig.sim.requests().len(), 3, "the reply was asked for again");
}
