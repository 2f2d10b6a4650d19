//! `convoke sessions fork`: a session of its own that begins with what another one said, and that costs
//! nothing until it is spoken to.

use convoke_sim::{Script, says};
use serde_json::{Value, json};

use crate::stage::Stage;

async fn stage() -> Stage {
    let replies = [says("first"), says("second"), says("third"), says("fourth")];
    Stage::with(Script::new().conversation("*", replies)).await
}

async fn runs(stage: &Stage) -> Vec<Value> {
    let listed = stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json();
    listed["runs"].as_array().unwrap().clone()
}

/// A session of two exchanges, by its id.
async fn two_exchanges(stage: &Stage) -> String {
    stage.run(&["run", "look around"]).await.exits(0);
    let id = runs(stage).await[0]["run"].as_str().unwrap().to_owned();
    assert_eq!(stage.run(&["resume", &id, "--say", "and then?"]).await.exits(0).stdout, "second\n");
    id
}

#[tokio::test]
async fn a_fork_prints_its_id_and_how_to_go_on_and_pays_for_nothing_before() {
    let stage = stage().await;
    let id = two_exchanges(&stage).await;
    let seen = stage.run(&["runs", "fork", &id]).await.exits(0);
    let fork = seen.stdout.trim().to_owned();
    assert!(fork.starts_with("s_") && fork != id, "{}", seen.stdout);
    assert!(seen.stderr.contains(&format!("forked {id}: look around\n")), "{}", seen.stderr);
    assert!(seen.stderr.contains(&format!("go on: convoke session {fork}\n")), "{}", seen.stderr);
    assert_eq!(stage.sim().requests().len(), 2, "nothing was sent");

    let listed = runs(&stage).await;
    let row = listed.iter().find(|run| run["run"] == json!(fork)).unwrap();
    let of = |name: &str| row[name].clone();
    assert_eq!((of("task"), of("forked_from"), of("turns")), (json!("look around"), json!(id), json!(0)));
    assert_eq!((of("status"), of("can_go_on"), of("cost_nano")), (json!("open"), json!(false), json!(0)));
    let text = stage.run(&["runs", "list"]).await.exits(0);
    assert!(!text.stderr.contains("no process drives it"), "there is nothing to go on with: {}", text.stderr);

    assert_eq!(stage.run(&["resume", &fork, "--say", "another way?"]).await.exits(0).stdout, "third\n");
    let requests = stage.sim().requests();
    let messages = |index: usize| requests[index].body["messages"].as_array().unwrap().clone();
    assert_eq!(messages(2)[..3], messages(1)[..3], "what was said stands in front of it");
    assert_eq!(requests.len(), 3);
    let told = stage.run(&["runs", "show", &fork]).await.exits(0);
    assert!(
        told.stdout.contains(&format!("begins with the history of {id} up to exchange 2")),
        "{}",
        told.stdout
    );
    let row = runs(&stage).await.into_iter().find(|run| run["run"] == json!(fork)).unwrap();
    assert_eq!((&row["status"], &row["turns"]), (&json!("done"), &json!(1)));
}

#[tokio::test]
async fn a_fork_is_data_for_programs_and_outlives_what_it_was_forked_from() {
    let stage = stage().await;
    let id = two_exchanges(&stage).await;
    let object = stage.run(&["runs", "fork", &id, "--at", "2", "--output", "json"]).await.exits(0).json();
    let fork = object["run"].as_str().unwrap();
    let expected = (json!(id), json!(2), json!(format!("convoke session {fork}")));
    assert_eq!((object["forked_from"].clone(), object["at"].clone(), object["go_on"].clone()), expected);
    let line = stage.run(&["runs", "fork", fork, "--output", "jsonl"]).await.exits(0);
    assert_eq!(line.lines()[0]["forked_from"], json!(fork), "a fork that was never driven can be forked");
    stage.run(&["runs", "prune", &id, "--yes"]).await.exits(0);
    assert_eq!(stage.run(&["resume", fork, "--say", "go on"]).await.exits(0).stdout, "third\n");
}

#[tokio::test]
async fn what_cannot_be_forked_is_wrong_usage_and_says_what_can() {
    let stage = stage().await;
    let id = two_exchanges(&stage).await;
    let check = async |args: &[&str], expected: &str| {
        let seen = stage.run(&[&["runs", "fork"], args].concat()).await.exits(2);
        assert!(seen.stderr.contains(expected), "{}", seen.stderr);
    };
    check(&[&id, "--at", "7"], "has no exchange 7 (the last one is 2)").await;
    check(&["s_nothing"], "there is no session 's_nothing'").await;
    assert_eq!(runs(&stage).await.len(), 1, "nothing is left behind");
}

#[tokio::test]
async fn a_fork_of_an_offline_session_goes_on_too() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("main.py"), "print('hello')  # TODO: more\n").unwrap();
    stage.run(&["--offline", "Review this repository"]).await.exits(0);
    let id = runs(&stage).await[0]["run"].as_str().unwrap().to_owned();
    let fork = stage.run(&["runs", "fork", &id]).await.exits(0).stdout.trim().to_owned();
    let again = stage.run(&["resume", &fork, "--say", "Review this repository"]).await.exits(0);
    assert!(again.stdout.contains("main.py"), "{}", again.stdout);
}
