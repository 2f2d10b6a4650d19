//! The mission's three examples for one-shot sub-agents, and what is said to a team from outside of its
//! session.

use serde_json::Value;

use super::Room;
use crate::repo::repository;
use crate::stage::Stage;

/// What a prompt came to, as an object.
async fn ask(stage: &Stage, prompt: &str) -> Value {
    let report = stage.run(&["--offline", "--output", "json", prompt]).await.exits(0).json();
    let roles: Vec<&str> =
        report["agents"].as_array().unwrap().iter().map(|agent| agent["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["lead", "task"], "a sub-agent does it: {report:#}");
    let answer = report["answer"].as_str().unwrap();
    assert!(answer.contains("Offline model: fixed rules, no intelligence."), "{answer}");
    report
}

#[tokio::test]
async fn a9_a12_a_subtask_finds_the_testing_framework_and_another_summarises_the_files_of_a_language() {
    let stage = Stage::bare();
    let add = "\"\"\"Adds numbers.\"\"\"\n\n\ndef add(a, b):\n    return a + b\n";
    let test = "import pytest\n\nfrom add import add\n";
    repository(&stage, &[("add.py", add), ("test_add.py", test), ("src/main.rs", "fn main() {}\n")]);
    let report = ask(&stage, "Use a subtask to find what testing framework this project uses").await;
    let answer = report["answer"].as_str().unwrap();
    assert!(
        answer.contains("pytest (Python): 1 in 1 file:") && answer.contains("`test_add.py:1`"),
        "{answer}"
    );
    let report = ask(&stage, "Delegate: read all .py files and summarize what each one does").await;
    let answer = report["answer"].as_str().unwrap();
    assert!(
        answer.contains("- `add.py` (5 lines): 1 definition; it says of itself: `\"\"\"Adds numbers.\"\"\"`"),
        "{answer}"
    );
    assert!(answer.contains("`add.py:4`: `def add(a, b):`") && !answer.contains("main.rs"), "{answer}");
}

#[tokio::test]
async fn a12_a_task_creates_a_module_and_the_lead_reads_it_itself_and_it_can_be_taken_back() {
    let room = Room::new();
    let stage = &room.stage;
    let report = ask(stage, "Use a task to create a new module, then verify it from here").await;
    let answer = report["answer"].as_str().unwrap();
    assert!(answer.contains("It says:\n\nCreated `"), "{answer}");
    assert!(
        answer.contains("Verified from here, by a command of my own: `") && !answer.contains("does not hold"),
        "{answer}"
    );
    let path = report["changed"][0]["path"].as_str().unwrap();
    assert!(answer.contains(&format!("`{path}` is there, and its ")), "{answer}");
    assert!(std::fs::read_to_string(stage.work().join(path)).unwrap().contains("describe"));
    stage.run(&["runs", "undo", report["run"].as_str().unwrap()]).await.exits(0);
    assert!(!stage.work().join(path).exists());
}

#[tokio::test]
async fn what_is_said_to_a_team_from_outside_its_run_is_not_begun_and_names_the_run() {
    let room = Room::new();
    let stage = &room.stage;
    let told = room.ask("Spawn carol (reviewer) and dave (tester).").await;
    let finds = "Spawn a coder teammate and let it find work from the task board itself";
    let refused = async |prompt: &str, who: &str| {
        let seen = stage.run(&["--offline", prompt]).await.exits(2);
        let said = seen.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&told.run) && said.contains(who), "{said}");
        assert!(
            said.contains(&format!("convoke resume {} --say", told.run)) && said.contains("--fresh"),
            "{said}"
        );
    };
    refused("Broadcast \"phase 1 complete\" to all teammates", "carol, dave").await;
    refused("Check the lead inbox for any messages", "carol, dave").await;
    // Without a task that is open, a teammate may look for work in a session of its own.
    stage.run(&["tasks", "add", "Find TODO comments", "--role", "coder"]).await.exits(0);
    refused(finds, "1 task open on its board").await;
    let runs = stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "nothing was begun: {runs:#}");
    room.say(&told, finds).await.answers(&["- coder, “Find TODO comments” (t_"]);
    stage.run(&["--offline", "--fresh", "Check the lead inbox for any messages"]).await.exits(0);
}
