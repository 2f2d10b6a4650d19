//! A model with a small window behind a plain server: what its lead carries before its first word, and that a
//! resume sends the same bytes.

use convoke_sim::{Fault, FaultKind, SimConfig};
use serde_json::{Value, json};

use crate::output::two_turns;
use crate::stage::Stage;

const HANDS: [&str; 2] = ["bash", "str_replace_based_edit_tool"];

/// Tokens are not known here: with three bytes for each, which is fewer than any text has, this is 2,000 of
/// them.
const MOST_BYTES: usize = 6_000;

/// A server that understands the oldest form of the API, and knows a model that no table has.
async fn plain() -> Stage {
    let mut server = SimConfig::from(two_turns());
    let stated = serde_json::from_value(json!({"window": 32_768, "max_output": 8_192})).unwrap();
    server.models.extend([("small-local".to_owned(), stated)]).unwrap();
    let stage = Stage::with(server).await;
    let text = format!("[endpoints.\"{}\"]\nprofile = \"generic\"\n", stage.sim().url());
    std::fs::write(stage.home().join(".config/convoke/config.toml"), text).unwrap();
    stage
}

fn bodies(stage: &Stage) -> Vec<Value> {
    stage.sim().requests().iter().map(|request| serde_json::from_slice(&request.raw).unwrap()).collect()
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_small_window_gets_a_lean_lead_and_one_line_of_assumptions() {
    let stage = plain().await;
    let seen = stage
        .run(&["--model", "small-local", "--price", "0", "Which", "files", "are", "here?"])
        .await
        .exits(0);
    let bodies = bodies(&stage);
    assert_eq!(tools(&bodies[0]), HANDS);
    let carried = bodies[0]["system"].to_string().len() + bodies[0]["tools"].to_string().len();
    assert!(carried <= MOST_BYTES, "{carried} bytes before the first word");
    let warnings: Vec<&str> = seen.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert!(
        matches!(warnings[..], [line] if line.contains("its server says of `small-local`: window \
            32768") && line.contains("; lean: ")),
        "{}",
        seen.stderr
    );
    assert!(
        seen.stderr.contains(" · mode off · ") && seen.stderr.contains(" · $0.00 of $10.00 · "),
        "{}",
        seen.stderr
    );
}

#[tokio::test]
async fn a_lean_lead_has_the_tools_that_flags_and_words_ask_for_and_no_others() {
    let small = ["--model", "small-local", "--price", "0.5/2"];
    let check = async |flags: &[&str], task: &str, with: &[&str], without: &[&str]| {
        let stage = plain().await;
        stage.run(&[flags, &[task][..]].concat()).await.exits(0);
        let bodies = bodies(&stage);
        let names = tools(&bodies[0]);
        assert!(with.iter().chain(&HANDS).all(|name| names.contains(name)), "{flags:?} {task}: {names:?}");
        assert!(without.iter().all(|name| !names.contains(name)), "{flags:?} {task}: {names:?}");
    };
    let look = "Look around";
    check(
        &[&small[..], &["--lean=off"]].concat(),
        look,
        &["Workflow", "task", "spawn_teammate", "grep"],
        &[],
    )
    .await;
    check(&[&small[..], &["--mode", "on"]].concat(), look, &["Workflow", "task"], &["spawn_teammate"]).await;
    check(&[&small[..], &["--team"]].concat(), look, &["spawn_teammate"], &["grep"]).await;
    check(&small, "Use a subtask to look around", &["task"], &["spawn_teammate"]).await;
    check(&small, "Spawn a teammate that looks around", &["spawn_teammate"], &["grep"]).await;
    check(&[&small[..], &["--window", "64k"]].concat(), look, &["Workflow", "spawn_teammate"], &[]).await;
    check(&["--lean"], look, &[], &["Workflow", "spawn_teammate", "glob"]).await;
}

#[tokio::test]
async fn a_resume_of_a_lean_lead_sends_the_same_bytes_and_knows_the_price() {
    let stage = plain().await;
    let refused =
        FaultKind::Status { status: 403, error_type: "permission_error".to_owned(), retry_after: None };
    stage.sim().push_fault(Fault::new(refused).at(1));
    let flags = ["--model", "small-local", "--price", "0.5/2", "--window", "16k", "--reply", "2k"];
    stage.run(&[&flags[..], &["Look around"]].concat()).await.exits(1);
    let report = stage.run(&["resume", "--output", "json"]).await.exits(0).json();
    let bodies = bodies(&stage);
    assert!(bodies.len() >= 3, "{}", bodies.len());
    let same = |name: &str| bodies.iter().all(|body| body[name] == bodies[0][name] && !body[name].is_null());
    assert!(same("system") && same("tools") && same("model"));
    assert!(bodies.iter().all(|body| body["max_tokens"] == 2_048), "{}", bodies[0]["max_tokens"]);
    assert!(report["cost_nano"].as_u64().is_some_and(|cost| cost > 0), "{}", report["cost_nano"]);
}

#[tokio::test]
async fn a_run_that_began_with_a_price_is_booked_by_it_after_a_resume_without_the_flag() {
    // The table has a price for this model, and it is not what the person said.
    let stage = Stage::with(two_turns()).await;
    let refused =
        FaultKind::Status { status: 403, error_type: "permission_error".to_owned(), retry_after: None };
    stage.sim().push_fault(Fault::new(refused).at(1));
    let begun = stage.run(&["--price", "0", "--output", "json", "Look", "around"]).await.exits(1).json();
    let report = stage.run(&["resume", "--output", "json"]).await.exits(0).json();
    assert_eq!((&begun["cost_nano"], &report["cost_nano"]), (&json!(0), &json!(0)), "{report:#}");
    assert_eq!(report["spend"]["nano"].as_u64().unwrap_or(0), 0, "{}", report["spend"]);
}
