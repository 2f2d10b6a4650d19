//! `DOC_TEST_MODE`: tiny limits, a sample to look at, a journal of its own, and nothing left behind.

use convoke_sim::{Script, calls, says};
use serde_json::{Value, json};

use crate::stage::{Stage, to_its_end};
use crate::support::{TestHome, ran};

#[test]
fn d1_3_doc_test_mode_makes_every_limit_small() {
    let place = TestHome::new();
    let value = |env: &str, args: &[&str], key: &str| {
        let mut command = place.command(&["config", "show", "--output", "json"]);
        let got = ran(command.args(args).env("DOC_TEST_MODE", env));
        let shown: Value = serde_json::from_str(&got.out).unwrap();
        let row = shown["settings"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap().clone();
        (row["value"].as_str().unwrap().to_owned(), row["origin"].as_str().unwrap().to_owned())
    };
    let by_mode = |value: &str| (value.to_owned(), "environment DOC_TEST_MODE".to_owned());
    assert_eq!(value("1", &[], "max_subtasks"), by_mode("2"));
    assert_eq!(value("1", &[], "worker.turns"), by_mode("1"));
    assert_eq!(value("1", &[], "max_turns"), by_mode("1"));
    assert_eq!(value("", &[], "max_turns"), ("30".to_owned(), "default".to_owned()), "empty is not set");
    assert_eq!(
        value("1", &["--max-turns", "2"], "max_turns"),
        ("2".to_owned(), "flag --max-turns".to_owned())
    );
}

#[tokio::test]
async fn d4_9_commands_run_beside_a_sample_in_a_directory_that_is_gone_afterwards() {
    let look = calls("bash", json!({"command": "pwd; ls; echo made > made.txt; cat sample.py"}));
    let script = Script::new().conversation("*", [look, says("Seen.")]);
    let stage = Stage::with(script).await;
    let mut command = stage.command(&["--max-turns", "2", "--output", "jsonl", "look", "around"]);
    command.env("DOC_TEST_MODE", "1").env("ORCH_JOURNAL", stage.work().join("real.db"));
    let seen = to_its_end(command).await.exits(0);
    let lines = seen.lines();
    let finished = lines.iter().find(|line| line["type"] == "tool_finished").unwrap();
    let text = finished["result"]["text"].as_str().unwrap();
    assert!(
        text.contains("/orchestration-") && text.contains("sample.py") && text.contains("def average"),
        "{text}"
    );
    let end = lines.last().unwrap();
    assert_eq!((&end["status"], &end["resume"]), (&json!("done"), &Value::Null));
    let dir = end["dir"].as_str().unwrap();
    assert!(dir.contains("/orchestration-") && !std::path::Path::new(dir).exists(), "{dir}");
    assert_eq!(
        std::fs::read_dir(stage.work()).unwrap().count(),
        0,
        "neither the project nor the real journal is touched"
    );
    assert!(!stage.state().exists(), "W47: the usual journal is not touched");
    let left: Vec<String> = std::fs::read_dir(stage.work().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("orchestration-") || name.starts_with("convoke-doc-test-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_run_in_doc_test_mode_that_is_cut_short_offers_no_resume() {
    let look = calls("bash", json!({"command": "true"}));
    let stage = Stage::with(Script::new().conversation("*", [look, says("Half.")])).await;
    let mut command = stage.command(&["look", "around"]);
    command.env("DOC_TEST_MODE", "1");
    let seen = to_its_end(command).await.exits(3);
    assert_eq!(seen.stdout, "Half.\n");
    assert!(!seen.stderr.contains("resume: "), "{}", seen.stderr);
}
