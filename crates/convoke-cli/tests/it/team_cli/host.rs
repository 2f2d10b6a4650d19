//! A team that outlives its lead's process: a person writes to a teammate, another process drives it, and the
//! lead goes on when it is resumed. The simulator answers for all members.

use convoke_sim::{Script, calls, says};
use serde_json::{Value, json};

use crate::stage::{Seen, Stage};

/// A session whose lead made a teammate, alice, heard from her and ended.
async fn ended_team() -> (Stage, String) {
    let spawn =
        calls("spawn_teammate", json!({"name": "alice", "role": "coder", "prompt": "Count the files."}));
    let lead = [spawn, says("Spawned."), says("Alice counted two."), says("Still two, she says.")];
    let alice = [says("Two files."), says("Still two.")];
    let stage = Stage::with(Script::new().conversation("lead the team", lead).conversation("*", alice)).await;
    let seen = stage.run(&["run", "--output", "json", "lead the team"]).await.exits(0);
    let session = seen.json()["run"].as_str().unwrap().to_owned();
    (stage, session)
}

async fn members(stage: &Stage) -> Vec<Value> {
    let listed: Seen = stage.run(&["team", "list", "--output", "json"]).await.exits(0);
    listed.json()["members"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_drives_a_teammate_and_a_resumed_lead_hears_of_it() {
    let (stage, session) = ended_team().await;
    let before = members(&stage).await;
    assert_eq!(
        (&before[1]["name"], &before[1]["state"], &before[0]["unread"]),
        (&json!("alice"), &json!("idle"), &json!(0))
    );
    let nothing = stage.run(&["team", "host", &session]).await.exits(0);
    assert!(nothing.stderr.contains("hosting the team of"), "{}", nothing.stderr);
    stage.run(&["mail", "send", "alice", "Count again."]).await.exits(0);
    let hosted = stage
        .run(&["team", "host", &session, "--only", "alice", "--idle", "1s", "--output", "json"])
        .await
        .exits(0);
    let told = hosted.json();
    assert_eq!((&told["members"][1]["unread"], &told["stopped_by"]), (&json!(0), &Value::Null), "{told}");
    let shown = stage.run(&["team", "show", "alice", "--output", "json"]).await.exits(0).json();
    assert_eq!(shown["member"]["last"]["text"], "Still two.");
    let letters = stage.run(&["mail", "list", "lead", "--output", "json"]).await.exits(0).json();
    assert_eq!(
        (&letters["letters"][0]["kind"], &letters["letters"][0]["from"]),
        (&json!("result"), &json!("alice"))
    );
    let resumed = stage.run(&["resume"]).await.exits(0);
    assert!(
        resumed.stderr.contains("its lead had ended, but its team has not: 1 letter waits for lead"),
        "{}",
        resumed.stderr
    );
    assert!(resumed.stdout.ends_with("Still two, she says.\n"), "{}", resumed.stdout);
    let read = stage.run(&["mail", "list", "lead", "--all", "--output", "json"]).await.exits(0).json();
    assert_eq!(
        read["letters"].as_array().unwrap().iter().filter(|letter| letter["state"] == "read").count(),
        2,
        "{read}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_cannot_be_is_told_why() {
    let (stage, session) = ended_team().await;
    let refused = stage.run(&["team", "host", &session, "--only", "carol"]).await.exits(1);
    assert!(
        refused.stderr.contains("there is no teammate 'carol'") && refused.stderr.contains("alice"),
        "{}",
        refused.stderr
    );
    stage.run(&["team", "host", "zz"]).await.exits(2);
    stage.run(&["--no-team", "team", "host", &session]).await.exits(2);
    let alone = stage.run(&["run", "--no-team", "--output", "json", "something else"]).await.exits(0);
    let alone = alone.json()["run"].as_str().unwrap().to_owned();
    let refused = stage.run(&["team", "host", &alone]).await.exits(1);
    assert!(refused.stderr.contains("without a team"), "{}", refused.stderr);
}
