//! A SARIF report by the rules that GitHub applies when it takes one in: those of the SARIF multitool, which
//! `scripts/test` fetches from npm.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::repo::repository;
use crate::stage::Stage;
use crate::team::{Team, finding, looks_and_reports};

/// The multitool below the target directory; a test without it is said to be skipped.
fn multitool(test: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let tool = target.join("sarif-multitool/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool");
    if tool.exists() {
        return Some(tool);
    }
    let line =
        format!("SKIPPED: {test}: scripts/test fetches the SARIF multitool with npm, and it is not there\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

/// What the multitool says against a report by the rules of the format and of GitHub. Notes are advice, among
/// it what only a build can know.
fn objections(tool: &Path, dir: &Path, file: &str) -> Vec<String> {
    let out = dir.join("objections.sarif");
    let mut command = std::process::Command::new(tool);
    command.args([
        "validate",
        "--rule-kind",
        "Sarif;Ghas",
        "--level",
        "Error;Warning",
        "--log",
        "ForceOverwrite",
        "--output",
    ]);
    command.arg(&out).arg(dir.join(file)).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").env("HOME", dir);
    // It would ask the network whether the schema is still where it says.
    command.env("HTTPS_PROXY", "http://127.0.0.1:9");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let read =
        |path: &Path| -> Value { serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap() };
    let said = |result: &Value| format!("{} {} {}", result["level"], result["ruleId"], result["message"]);
    let mut against: Vec<String> =
        read(&out)["runs"][0]["results"].as_array().unwrap().iter().map(said).collect();
    // The rules pass over a file whose shape they cannot read, so its shape is held against the schema that
    // comes with them.
    let schema = jsonschema::validator_for(&read(&tool.with_file_name("sarif-2.1.0.json"))).unwrap();
    let errors = |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    against.extend(schema.iter_errors(&read(&dir.join(file))).map(errors));
    against
}

#[tokio::test]
async fn what_workers_found_is_taken_in_also_what_has_no_place_in_a_file() {
    let worker = |task: &str| {
        let cites = |claim: &str, citations: Value| {
            let mut found = finding(claim);
            found["citations"] = citations;
            found
        };
        let found = match task {
            "low places" => vec![
                finding("low the second line is odd {0} [a](b)"),
                cites(
                    "high a command says that a test fails",
                    json!([{"command": "cat a.txt", "quote": "second line"}]),
                ),
            ],
            _ => vec![cites("info nothing is cited for it", json!([]))],
        };
        looks_and_reports(task, found)
    };
    let stage = Team::fanning_out(&["low places", "info nothing"]).workers(worker).stage().await;
    stage.run(&["--report", "r.sarif", "review", "it"]).await;
    let log: Value =
        serde_json::from_str(&std::fs::read_to_string(stage.work().join("r.sarif")).unwrap()).unwrap();
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty() && run["properties"]["without_place"].as_u64() > Some(0), "{run:#}");
    assert!(
        results
            .iter()
            .all(|result| result["locations"][0]["physicalLocation"]["region"]["startLine"].is_u64())
    );
    assert!(
        run["invocations"][0]["toolExecutionNotifications"].to_string().contains("a test fails"),
        "{run:#}"
    );
    if let Some(tool) = multitool("what_workers_found_is_taken_in") {
        assert_eq!(objections(&tool, &stage.work(), "r.sarif"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn the_report_of_a_review_is_taken_in_and_knows_its_results_again_when_lines_move() {
    let stage = Stage::bare();
    let main = "fn main() {\n    let x = std::fs::read(\"a\").unwrap();\n    println!(\"{x:?}\");\n}\n";
    repository(
        &stage,
        &[("src/main.rs", main), ("src/a b#1.rs", "// FIXME: later\npub fn f() {}\n"), ("c.json", "{,}\n")],
    );
    let review = async |file: &str| {
        stage.run(&["--offline", "--report", file, "Review this repository"]).await;
        let log: Value =
            serde_json::from_str(&std::fs::read_to_string(stage.work().join(file)).unwrap()).unwrap();
        let known = |result: &Value| {
            let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            format!("{} {uri} {}", result["ruleId"], result["partialFingerprints"]["primaryLocationLineHash"])
        };
        let mut known: Vec<String> =
            log["runs"][0]["results"].as_array().unwrap().iter().map(known).collect();
        known.sort();
        known
    };
    let before = review("before.sarif").await;
    std::fs::write(stage.work().join("src/main.rs"), format!("// One more line.\n\n{main}")).unwrap();
    let after = review("after.sarif").await;
    assert_eq!(before, after);
    let kinds = |kind: &str| before.iter().any(|known| known.contains(&format!("convoke/{kind}")));
    assert!(kinds("error-handling") && kinds("maintainability") && kinds("data"), "{before:#?}");
    if let Some(tool) = multitool("the_report_of_a_review_is_taken_in") {
        for file in ["before.sarif", "after.sarif"] {
            assert_eq!(objections(&tool, &stage.work(), file), Vec::<String>::new(), "{file}");
        }
    }
}
