//! The board from outside: tasks written, claimed, finished, cancelled and tried again, by people and
//! scripts.

use serde_json::{Value, json};

use super::Crew;

/// Writes a task, and returns its id.
#[track_caller]
fn add(crew: &Crew, args: &[&str]) -> String {
    let got = crew.ends(0, &[&["tasks", "add"], args].concat());
    let id = got.out.trim_end().to_owned();
    assert!(id.starts_with("t_") && id.len() == 18, "{}", got.out);
    id
}

#[track_caller]
fn task(crew: &Crew, id: &str) -> Value {
    crew.json(&["tasks", "show", id])["task"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn c21_tasks_are_listed_with_their_owners_and_what_they_wait_for() {
    let crew = Crew::new().await;
    let first =
        add(&crew, &["Write the parser", "--role", "coder", "--priority", "-2", "--criteria", "It parses."]);
    let second = add(&crew, &["Test it", "--blocked-by", &first, "--description", "All of it."]);
    let listed = crew.json(&["tasks", "list"])["tasks"].clone();
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
    crew.ends(0, &["tasks", "claim", &first, "--as", "ci", "--role", "coder"]);
    let text = crew.ends(0, &["tasks", "list"]).out;
    let row = |number: usize| text.lines().nth(number).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row(1)[..5], ["1", &first[..10], "claimed", "ci", "coder"]);
    assert_eq!(row(2), ["2", &second[..10], "pending", "0", "#1", "Test", "it"]);
    let lines = crew.ends(0, &["tasks", "list", "--output", "jsonl"]).out;
    assert_eq!(lines.lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_claims_a_task_and_finishes_it_under_its_token() {
    let crew = Crew::new().await;
    let id = add(&crew, &["Build"]);
    let got = crew.ends(0, &["tasks", "claim", &id, "--as", "ci", "--lease", "10m"]);
    let token = got.out.trim_end().to_owned();
    assert!(token.parse::<u64>().is_ok(), "the token is alone on stdout: {:?}", got.out);
    assert!(got.err.contains("claimed as ci until"), "{}", got.err);
    crew.refused(1, &["tasks", "claim", &id, "--as", "other"], "ci");
    let late = (token.parse::<u64>().unwrap() + 1).to_string();
    crew.refused(1, &["tasks", "finish", &id, "--as", "ci", "--token", &late, "--result", "x"], &id);
    crew.refused(1, &["tasks", "finish", &id, "--as", "other", "--token", &token], &id);
    crew.ends(0, &["tasks", "finish", &id, "--as", "ci", "--token", &token, "--result", "All green."]);
    let done = task(&crew, &id);
    assert_eq!(
        (&done["state"], &done["owner"], &done["result"]),
        (&json!("done"), &json!("ci"), &json!("All green."))
    );
    let types: Vec<&str> =
        done["history"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["task_created", "task_claimed", "task_finished"]);
    let shown = crew.ends(0, &["tasks", "show", "#1"]).out;
    assert!(
        shown.contains("result:\n    All green.\nhistory:\n") && shown.contains("UTC done by ci\n"),
        "{shown}"
    );
    crew.refused(1, &["tasks", "cancel", &id], &id);
}

#[tokio::test(flavor = "multi_thread")]
async fn c20_a_task_with_open_dependencies_cannot_be_claimed_and_finishing_them_opens_it() {
    let crew = Crew::new().await;
    let first = add(&crew, &["first"]);
    let second = add(&crew, &["second", "--blocked-by", "#1"]);
    crew.refused(1, &["tasks", "claim", &second, "--as", "ci"], &first);
    let token = crew.ends(0, &["tasks", "claim", &first, "--as", "ci"]).out;
    crew.ends(0, &["tasks", "finish", &first, "--as", "ci", "--token", token.trim_end()]);
    crew.ends(0, &["tasks", "claim", &second, "--as", "ci"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_is_tried_again_and_a_cancelled_one_has_failed() {
    let crew = Crew::new().await;
    let id = add(&crew, &["Build"]);
    let token = crew.ends(0, &["tasks", "claim", &id, "--as", "ci"]).out;
    crew.ends(0, &["tasks", "finish", &id, "--as", "ci", "--token", token.trim_end(), "--failed", "no disk"]);
    assert_eq!((&task(&crew, &id)["state"], &task(&crew, &id)["why"]), (&json!("failed"), &json!("no disk")));
    crew.ends(0, &["tasks", "retry", &id]);
    assert_eq!(task(&crew, &id)["state"], "pending");
    crew.ends(0, &["tasks", "retry", &id]);
    let history = task(&crew, &id)["history"].clone();
    let retried = history.as_array().unwrap().iter().filter(|event| event["type"] == "task_retried").count();
    assert_eq!(retried, 1, "a task that is pending already stays as it is: {history}");
    let cancelled = crew.json(&["tasks", "cancel", &id]);
    assert_eq!(cancelled["task"]["state"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_told_with_what_there_is() {
    let crew = Crew::new().await;
    crew.refused(1, &["tasks", "show", "t_zz"], "the board is empty");
    let id = add(&crew, &["Build", "--role", "coder"]);
    crew.refused(1, &["tasks", "show", "t_zz"], &id);
    crew.refused(1, &["tasks", "add", "x", "--blocked-by", "t_zz"], &id);
    crew.refused(1, &["tasks", "claim", &id, "--as", "ci"], "coder");
    crew.refused(1, &["tasks", "claim", &id, "--as", "alice"], "alice is a member of the team (coder)");
    crew.refused(2, &["tasks", "claim", &id, "--as", "../x"], "is no name");
    crew.refused(2, &["tasks", "claim", &id], "--as");
    crew.refused(2, &["tasks", "add", "x", "--description-file", "nowhere.md"], "nowhere.md");
    crew.refused(1, &["tasks", "add", " "], "subject");
    crew.refused(2, &["tasks", "add", "x", "--output", "jsonl"], "has no jsonl form");
    crew.refused(2, &["--model", "m", "tasks", "list"], "--model has no meaning for this command");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_comes_from_a_file_or_from_stdin() {
    let crew = Crew::new().await;
    let file = crew.place.path("work/task.md");
    crew.place.write(&file, "From a file.\nTwo lines.\n");
    let id = add(&crew, &["one", "--description-file", "task.md"]);
    assert_eq!(task(&crew, &id)["description"], "From a file.\nTwo lines.\n");
    let mut command = crew.place.command(&["tasks", "add", "two", "--description", "-"]);
    let got = crate::support::ran(command.stdin(std::fs::File::open(&file).unwrap()));
    assert_eq!(task(&crew, got.out.trim_end())["description"], "From a file.\nTwo lines.");
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_claim_at_once_get_different_tasks_and_never_the_same() {
    let crew = Crew::new().await;
    add(&crew, &["only one"]);
    let claims: Vec<_> = (0..4)
        .map(|number| {
            let name = format!("ci-{number}");
            let mut command = crew.place.command(&["tasks", "claim", "#1", "--as", &name]);
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
