//! The board from outside: tasks written, claimed, finished, cancelled and tried again, by people and
//! scripts.

use serde_json::{Value, json};

use super::TeamPlace;

/// Writes a task, and returns its id.
#[track_caller]
fn add(team: &TeamPlace, args: &[&str]) -> String {
    let got = team.ends(0, &[&["tasks", "add"], args].concat());
    let id = got.out.trim_end().to_owned();
    assert!(id.starts_with("t_") && id.len() == 18, "{}", got.out);
    id
}

#[track_caller]
fn task(team: &TeamPlace, id: &str) -> Value {
    team.json(&["tasks", "show", id])["task"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn c21_tasks_are_listed_with_their_owners_and_what_they_wait_for() {
    let team = TeamPlace::new().await;
    let first =
        add(&team, &["Write the parser", "--role", "coder", "--priority", "-2", "--criteria", "It parses."]);
    let second = add(&team, &["Test it", "--blocked-by", &first, "--description", "All of it."]);
    let listed = team.json(&["tasks", "list"])["tasks"].clone();
    let members = [
        "task",
        "number",
        "subject",
        "description",
        "criteria",
        "state",
        "owner",
        "role",
        "priority",
        "waits_for",
        "by",
    ];
    let told = |task: &Value| members.map(|member| task[member].clone());
    assert_eq!(
        told(&listed[0]),
        [
            json!(first),
            json!(1),
            json!("Write the parser"),
            json!(""),
            json!("It parses."),
            json!("pending"),
            Value::Null,
            json!("coder"),
            json!(-2),
            json!([]),
            json!("person"),
        ]
    );
    assert_eq!((&listed[1]["waits_for"], &listed[1]["description"]), (&json!([first]), &json!("All of it.")));
    team.ends(0, &["tasks", "claim", &first, "--as", "ci", "--role", "coder"]);
    let text = team.ends(0, &["tasks", "list"]).out;
    let row = |number: usize| text.lines().nth(number).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row(1)[..5], ["1", &first[..10], "claimed", "ci", "coder"]);
    assert_eq!(row(2), ["2", &second[..10], "pending", "0", "#1", "Test", "it"]);
    let lines = team.ends(0, &["tasks", "list", "--output", "jsonl"]).out;
    assert_eq!(lines.lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_claims_a_task_and_finishes_it_under_its_token() {
    let team = TeamPlace::new().await;
    let id = add(&team, &["Build"]);
    let got = team.ends(0, &["tasks", "claim", &id, "--as", "ci", "--for", "10m"]);
    let token = got.out.trim_end().to_owned();
    assert!(token.parse::<u64>().is_ok(), "the token is alone on stdout: {:?}", got.out);
    assert!(got.err.contains("claimed as ci until"), "{}", got.err);
    team.refused(1, &["tasks", "claim", &id, "--as", "other"], "ci");
    let late = (token.parse::<u64>().unwrap() + 1).to_string();
    team.refused(1, &["tasks", "finish", &id, "--as", "ci", "--token", &late, "--result", "x"], &id);
    team.refused(1, &["tasks", "finish", &id, "--as", "other", "--token", &token], &id);
    team.ends(0, &["tasks", "finish", &id, "--as", "ci", "--token", &token, "--result", "All green."]);
    let done = task(&team, &id);
    assert_eq!(
        (&done["state"], &done["owner"], &done["result"]),
        (&json!("done"), &json!("ci"), &json!("All green."))
    );
    let types: Vec<&str> =
        done["history"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["task_created", "task_claimed", "task_finished"]);
    let shown = team.ends(0, &["tasks", "show", "#1"]).out;
    assert!(
        shown.contains("result:\n    All green.\nhistory:\n") && shown.contains("UTC done by ci\n"),
        "{shown}"
    );
    team.refused(1, &["tasks", "cancel", &id], &id);
}

#[tokio::test(flavor = "multi_thread")]
async fn c20_a_task_with_open_dependencies_cannot_be_claimed_and_finishing_them_opens_it() {
    let team = TeamPlace::new().await;
    let first = add(&team, &["first"]);
    let second = add(&team, &["second", "--blocked-by", "#1"]);
    team.refused(1, &["tasks", "claim", &second, "--as", "ci"], &first);
    let token = team.ends(0, &["tasks", "claim", &first, "--as", "ci"]).out;
    team.ends(0, &["tasks", "finish", &first, "--as", "ci", "--token", token.trim_end()]);
    team.ends(0, &["tasks", "claim", &second, "--as", "ci"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_is_tried_again_and_a_cancelled_one_has_failed() {
    let team = TeamPlace::new().await;
    let id = add(&team, &["Build"]);
    let token = team.ends(0, &["tasks", "claim", &id, "--as", "ci"]).out;
    team.ends(0, &["tasks", "finish", &id, "--as", "ci", "--token", token.trim_end(), "--failed", "no disk"]);
    assert_eq!((&task(&team, &id)["state"], &task(&team, &id)["why"]), (&json!("failed"), &json!("no disk")));
    team.ends(0, &["tasks", "retry", &id]);
    assert_eq!(task(&team, &id)["state"], "pending");
    team.ends(0, &["tasks", "retry", &id]);
    let history = task(&team, &id)["history"].clone();
    let retried = history.as_array().unwrap().iter().filter(|event| event["type"] == "task_retried").count();
    assert_eq!(retried, 1, "a task that is pending already stays as it is: {history}");
    let cancelled = team.json(&["tasks", "cancel", &id]);
    assert_eq!(cancelled["task"]["state"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_told_with_what_there_is() {
    let team = TeamPlace::new().await;
    team.refused(1, &["tasks", "show", "t_zz"], "the board is empty");
    let id = add(&team, &["Build", "--role", "coder"]);
    team.refused(1, &["tasks", "show", "t_zz"], &id);
    team.refused(1, &["tasks", "add", "x", "--blocked-by", "t_zz"], &id);
    team.refused(1, &["tasks", "claim", &id, "--as", "ci"], "coder");
    team.refused(1, &["tasks", "claim", &id, "--as", "alice"], "alice is a member of the team (coder)");
    team.refused(2, &["tasks", "claim", &id, "--as", "../x"], "is no name");
    team.refused(2, &["tasks", "claim", &id], "--as");
    team.refused(2, &["tasks", "add", "x", "--description-file", "nowhere.md"], "nowhere.md");
    team.refused(1, &["tasks", "add", " "], "subject");
    team.refused(2, &["tasks", "add", "x", "--output", "jsonl"], "has no jsonl form");
    team.refused(2, &["--model", "m", "tasks", "list"], "--model has no meaning for this command");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_comes_from_a_file_or_from_stdin() {
    let team = TeamPlace::new().await;
    let file = team.place.path("work/task.md");
    team.place.write(&file, "From a file.\nTwo lines.\n");
    let id = add(&team, &["one", "--description-file", "task.md"]);
    assert_eq!(task(&team, &id)["description"], "From a file.\nTwo lines.\n");
    let mut command = team.place.command(&["tasks", "add", "two", "--description", "-"]);
    let got = crate::support::ran(command.stdin(std::fs::File::open(&file).unwrap()));
    assert_eq!(task(&team, got.out.trim_end())["description"], "From a file.\nTwo lines.");
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_claim_at_once_get_different_tasks_and_never_the_same() {
    let team = TeamPlace::new().await;
    add(&team, &["only one"]);
    let claims: Vec<_> = (0..4)
        .map(|number| {
            let name = format!("ci-{number}");
            let mut command = team.place.command(&["tasks", "claim", "#1", "--as", &name]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let codes: Vec<i32> =
        claims.into_iter().map(|child| child.wait_with_output().unwrap().status.code().unwrap()).collect();
    let won = codes.iter().filter(|code| **code == 0).count();
    assert_eq!((won, codes.iter().filter(|code| **code == 1).count()), (1, 3), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_commands_work_on_postgres() {
    let Some(url) = std::env::var_os("CONVOKE_TEST_POSTGRES") else {
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: the_same_commands_work_on_postgres: CONVOKE_TEST_POSTGRES is not set"
        );
        return;
    };
    let place = crate::support::TestHome::new();
    let url = url.into_string().unwrap();
    let run = |args: &[&str]| {
        let got = place.convoke(&[&["--journal", url.as_str()], args].concat());
        assert_eq!(got.code, 0, "{args:?}: {}", got.err);
        got.out
    };
    run(&["--offline", "hello there"]);
    let id = run(&["tasks", "add", "Build"]);
    let token = run(&["tasks", "claim", id.trim_end(), "--as", "ci"]);
    run(&["tasks", "finish", id.trim_end(), "--as", "ci", "--token", token.trim_end(), "--result", "ok"]);
    run(&["mail", "send", "lead", "Hello."]);
    assert!(run(&["mail", "list", "lead"]).contains("Hello."));
    assert!(run(&["tasks", "list"]).contains("done"));
    assert!(run(&["team", "list"]).contains("lead"));
    run(&["export", "--to", "out"]);
    assert!(place.path("work/out/.tasks/task_1.json").exists());
}
