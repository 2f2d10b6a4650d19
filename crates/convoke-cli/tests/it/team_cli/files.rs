//! `convoke export`: the forms that others know.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::TeamPlace;

fn read(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn b3_b7_a_team_is_exported_as_its_config_its_inboxes_and_its_tasks() {
    let team = TeamPlace::new().await;
    team.ends(0, &["tasks", "add", "first", "--description", "All of it."]);
    team.ends(0, &["tasks", "add", "second", "--blocked-by", "#1"]);
    team.ends(0, &["tasks", "claim", "#1", "--as", "ci"]);
    team.ends(0, &["mail", "send", "alice", "one\ntwo"]);
    let got = team.ends(0, &["export", "--to", "out"]);
    assert!(got.err.contains("6 files of"), "{}", got.err);
    let out = |name: &str| team.place.path("work/out").join(name);
    let config = read(out(".team/config.json"));
    assert_eq!(config["team_name"], "default");
    let members: Vec<_> = config["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| [&it["name"], &it["role"], &it["status"]])
        .collect();
    assert_eq!(members, [["alice", "coder", "working"], ["bob", "tester", "working"]]);
    let first = read(out(".tasks/task_1.json"));
    let told =
        ["id", "subject", "description", "status", "blockedBy", "owner"].map(|member| first[member].clone());
    assert_eq!(
        told,
        [json!(1), json!("first"), json!("All of it."), json!("in_progress"), json!([]), json!("ci")]
    );
    let second = read(out(".tasks/task_2.json"));
    assert_eq!(
        (&second["status"], &second["blockedBy"], &second["owner"]),
        (&json!("pending"), &json!([1]), &Value::Null)
    );
    let inbox = std::fs::read_to_string(out(".team/inbox/alice.jsonl")).unwrap();
    let [line] = inbox.lines().collect::<Vec<_>>()[..] else { panic!("{inbox}") };
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&line["type"], &line["from"], &line["content"]),
        (&json!("message"), &json!("person"), &json!("one\ntwo"))
    );
    assert!(line["timestamp"].as_f64().is_some_and(|seconds| seconds > 1e9 && seconds < 1e11), "{line}");
    assert_eq!(std::fs::read_to_string(out(".team/inbox/lead.jsonl")).unwrap(), "");
    assert_eq!(team.json(&["mail", "list", "alice"])["letters"].as_array().unwrap().len(), 1, "it is a copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_replaces_its_own_files_and_no_others() {
    let team = TeamPlace::new().await;
    team.ends(0, &["tasks", "add", "first"]);
    let written = team.json(&["export", "--to", "out"]);
    assert_eq!(written["files"].as_array().unwrap().len(), 5);
    team.ends(0, &["tasks", "cancel", "#1"]);
    team.ends(0, &["export", "--to", "out"]);
    let task = team.place.path("work/out/.tasks/task_1.json");
    assert_eq!(read(task.clone())["status"], "failed");
    team.place.write(&task, "mine");
    team.refused(1, &["export", "--to", "out"], ".tasks/task_1.json; nothing was written");
    assert_eq!(std::fs::read_to_string(&task).unwrap(), "mine");
    team.ends(0, &["export", "--to", "out", "--force"]);
    assert_eq!(read(task)["status"], "failed");
    team.refused(2, &["export"], "--to");
    team.place.write(&team.place.path("work/file"), "");
    team.refused(1, &["export", "--to", "file/deep"], "cannot write");
}
