//! What an older binary began, this one goes on with: a journal that the binary of commit 3a238d3 left behind
//! when it was killed in a fan-out, and what that binary printed as `--output jsonl` of the same session
//! uncut.
//!
//! Both are in `tests/fixtures/3a238d3`. To make them anew, build that commit and name its binary:
//! `CONVOKE_OLDER_BINARY=…/target/debug/convoke cargo test -p convoke-cli --test it older`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::stage::{Stage, Started, patiently};
use crate::team::Team;

const SUBTASKS: [&str; 3] = ["high one", "medium wrong", "low three"];
const TASK: [&str; 2] = ["review", "it"];

/// Two replies of the lead, of each worker and of each verifier.
const REPLIES: usize = 14;

/// How the names of members end whose value is a count of tokens or a price.
const COUNTED: [&str; 6] = ["tokens", "nano", "usd", "read", "written", "prompt"];

/// Stands in the fixtures for the directory of the test.
const ROOT: &str = "@ROOT@";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/3a238d3").join(name)
}

fn keep(name: &str, text: &str) {
    std::fs::create_dir_all(fixture("")).unwrap();
    std::fs::write(fixture(name), text).unwrap();
}

fn older_binary() -> Option<PathBuf> {
    std::env::var_os("CONVOKE_OLDER_BINARY").map(PathBuf::from)
}

fn root(stage: &Stage) -> String {
    stage.work().canonicalize().unwrap().parent().unwrap().to_str().unwrap().to_owned()
}

/// Every table of a journal as SQL, with the root of its test's directory made out.
fn dump(journal: &Path, root: &str) -> String {
    let from = Connection::open(journal).unwrap();
    let number = |pragma: &str| from.query_row(pragma, [], |row| row.get::<_, i64>(0)).unwrap();
    let mut sql = format!(
        "PRAGMA application_id = {};\nPRAGMA user_version = {};\n",
        number("PRAGMA application_id"),
        number("PRAGMA user_version")
    );
    let mut made = from.prepare("SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL").unwrap();
    let made: Vec<(String, String, String)> = made
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (kind, name, create) in made {
        sql.push_str(&format!("{create};\n"));
        if kind == "table" {
            let mut rows = from.prepare(&format!("SELECT * FROM {name}")).unwrap();
            let columns: Vec<String> = rows.column_names().map(|it| format!("quote({it})")).collect();
            rows = from
                .prepare(&format!("SELECT {} FROM {name} ORDER BY 1", columns.join(" || ',' || ")))
                .unwrap();
            for row in rows.query_map([], |row| row.get::<_, String>(0)).unwrap() {
                sql.push_str(&format!("INSERT INTO {name} VALUES ({});\n", row.unwrap()));
            }
        }
    }
    sql.replace(root, ROOT)
}

/// Has the older binary begin the session, kills it while a worker's second reply is on its way, and keeps
/// its journal.
async fn make_journal(binary: &Path) {
    let stage = Team::fanning_out(&SUBTASKS).stage().await;
    let hold = stage.sim().hold("<subtask>", 1, 3);
    let mut command = stage.prepare(binary);
    command.args(TASK);
    let run = Started::of(command);
    patiently("the reply to be held", hold.entered()).await;
    // The two others are judged by then: two replies of each worker and verifier, one of the lead, two of
    // this worker.
    patiently("the others' replies", stage.sim().wait_for_requests(11)).await;
    run.signal("KILL");
    assert_eq!(run.end().await.code, None);
    hold.release();
    let sql = dump(&stage.state().join("journal.db"), &root(&stage));
    keep("journal.sql", &sql);
}

#[tokio::test]
async fn a_session_that_an_older_binary_began_is_resumed_and_nothing_is_asked_twice() {
    if let Some(binary) = older_binary() {
        make_journal(&binary).await;
    }
    let stage = Team::fanning_out(&SUBTASKS).stage().await;
    let journal = stage.state().join("journal.db");
    std::fs::create_dir_all(stage.state()).unwrap();
    let sql = std::fs::read_to_string(fixture("journal.sql")).unwrap();
    let replied = sql.matches("\"type\":\"model_replied\"").count();
    assert!((3..REPLIES).contains(&replied), "the fixture ends in the middle: {replied}");
    Connection::open(&journal).unwrap().execute_batch(&sql.replace(ROOT, &root(&stage))).unwrap();
    let seen = stage.run(&["resume", "--output", "json"]).await.exits(0);
    let report = seen.json();
    assert_eq!(report["answer"], "The synthesis.", "{report:#}");
    let verdicts: Vec<String> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["claim"], it["verdict"]).replace('"', ""))
        .collect();
    assert_eq!(verdicts, ["high one confirmed", "medium wrong refuted", "low three confirmed"]);
    assert_eq!(stage.sim().requests().len(), REPLIES - replied, "what was recorded is not asked for again");
}

/// The lines of `--output jsonl` by stream (one worker and one verifier: with more, their order is another in
/// every run), without what is different in every run: ids, times, the test's directory, and digests of
/// requests, which that directory is part of.
fn by_stream(lines: &str, root: &str) -> Vec<String> {
    let lines: Vec<Value> =
        lines.replace(root, ROOT).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut names = BTreeMap::new();
    for line in &lines {
        if line["type"] == "agent_started" {
            let role = line["spec"]["role"].as_str().unwrap();
            let label = line["spec"]["label"].as_str().unwrap_or_default();
            names.insert(line["stream"].as_str().unwrap().to_owned(), format!("<{role} {label}>"));
            names.insert(line["spec"]["session"].as_str().unwrap().to_owned(), "<session>".to_owned());
        }
        if line["type"] == "run_started" {
            names.insert(line["stream"].as_str().unwrap().to_owned(), "<run>".to_owned());
        }
    }
    let mut plain: Vec<(String, u64, String)> = lines
        .iter()
        .map(|line| {
            let mut text = cleaned(line).to_string();
            for (id, name) in &names {
                text = text.replace(id, name);
            }
            let stream = line["stream"].as_str().unwrap_or_default();
            let stream = names.get(stream).cloned().unwrap_or_default();
            (stream, line["seq"].as_u64().unwrap_or_default(), text)
        })
        .collect();
    plain.sort();
    plain.into_iter().map(|(_, _, text)| text).collect()
}

fn cleaned(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match name.as_str() {
                "at" | "started_at" | "ended_at" | "ms" | "wall_ms" => (name.clone(), Value::Null),
                "digest" | "base" | "request_id" => (name.clone(), Value::Null),
                // Counts of tokens and what they cost: the length of the directory's name is part of them.
                _ if value.is_number() && COUNTED.iter().any(|end| name.ends_with(end)) => {
                    (name.clone(), Value::Null)
                }
                _ => (name.clone(), cleaned(value)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(cleaned).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn what_is_printed_as_jsonl_is_what_an_older_binary_printed() {
    let args = [&["--output", "jsonl"], &TASK[..]].concat();
    if let Some(binary) = older_binary() {
        let stage = Team::fanning_out(&SUBTASKS[..1]).stage().await;
        let mut command = stage.prepare(&binary);
        command.args(&args);
        let seen = crate::stage::to_its_end(command).await.exits(0);
        keep("session.jsonl", &(by_stream(&seen.stdout, &root(&stage)).join("\n") + "\n"));
    }
    let expected = std::fs::read_to_string(fixture("session.jsonl")).unwrap();
    let stage = Team::fanning_out(&SUBTASKS[..1]).stage().await;
    let seen = stage.run(&args).await.exits(0);
    let found = by_stream(&seen.stdout, &root(&stage));
    let expected: Vec<Value> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<Value> = found.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    let differ: Vec<String> = found
        .iter()
        .zip(&expected)
        .flat_map(|(found, expected)| differences(expected, found, &expected["type"].to_string()))
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    let mut added = BTreeSet::new();
    for (found, expected) in found.iter().zip(&expected) {
        added.extend(additions(expected, found, expected["type"].as_str().unwrap_or_default()));
    }
    assert_eq!(added.iter().map(String::as_str).collect::<Vec<_>>(), ADDED);
}

/// Members that 3a238d3 did not print: all answers, and what the gate decided.
const ADDED: [&str; 2] = ["run_ended.answers", "run_ended.gate"];

/// The members of what is found that are not in what is expected.
fn additions(expected: &Value, found: &Value, at: &str) -> Vec<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => found
            .iter()
            .flat_map(|(name, value)| match expected.get(name) {
                Some(expected) => additions(expected, value, &format!("{at}.{name}")),
                None => vec![format!("{at}.{name}")],
            })
            .collect(),
        (Value::Array(expected), Value::Array(found)) => {
            expected.iter().zip(found).flat_map(|(expected, found)| additions(expected, found, at)).collect()
        }
        _ => Vec::new(),
    }
}

/// Where something that was printed is not printed any more, or is another value.
fn differences(expected: &Value, found: &Value, at: &str) -> Vec<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .flat_map(|(name, value)| {
                differences(value, found.get(name).unwrap_or(&Value::Null), &format!("{at}.{name}"))
            })
            .collect(),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
            .iter()
            .zip(found)
            .enumerate()
            .flat_map(|(number, (expected, found))| differences(expected, found, &format!("{at}[{number}]")))
            .collect(),
        _ if expected == found => Vec::new(),
        _ => vec![format!("{at}: {expected} became {found}")],
    }
}
