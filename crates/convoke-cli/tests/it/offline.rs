//! The offline model plays a whole team with the real binary: on trees with planted facts and decoys, on this
//! repository, and on questions that are worth no team.

#![expect(clippy::print_stdout, reason = "the figures are what these tests are for")]

use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Instant;

use serde_json::{Value, json};

use crate::stage::{Stage, patiently};

/// Copies a planted tree into the stage's directory, as a git repository, and reads what was planted there.
fn plant(stage: &Stage, name: &str) -> Value {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../convoke-offline/tests/fixtures").join(name);
    copy(&source, &stage.work());
    assert!(Program::new("git").args(["init", "-q"]).current_dir(stage.work()).status().unwrap().success());
    serde_json::from_str(&std::fs::read_to_string(source.join("PLANTED.json")).unwrap()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match name.strip_suffix(".planted") {
            _ if path.is_dir() => copy(&path, &to.join(name)),
            Some(name) => drop(std::fs::copy(&path, to.join(name)).unwrap()),
            None => {}
        }
    }
}

/// Whether a citation holds, by the plainest reading: one of the lines holds the quote, blanks aside.
fn holds(dir: &Path, citation: &Value) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |key: &str| citation[key].as_u64().map(|number| number as usize);
    let (Some(path), Some(first), Some(quote)) =
        (citation["path"].as_str(), number("first"), citation["quote"].as_str())
    else {
        return false;
    };
    let text = std::fs::read_to_string(dir.join(path)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = number("last").unwrap_or(first);
    lines
        .get(first - 1..last)
        .is_some_and(|lines| lines.iter().any(|line| plain(line).contains(&plain(quote))))
}

/// Whether a finding is at the place of a planted fact or a decoy.
fn is_at(finding: &Value, fact: &Value) -> bool {
    match finding["citations"].as_array().unwrap().first() {
        Some(citation) => citation["path"] == fact["path"] && citation["first"] == fact["line"],
        None => {
            let evidence = finding["evidence"].as_str().unwrap();
            fact["line"] == 0 && (fact["path"] == "." || evidence.contains(fact["path"].as_str().unwrap()))
        }
    }
}

async fn review(name: &str) {
    let stage = Stage::bare();
    let manifest = plant(&stage, name);
    let begun = Instant::now();
    let seen = stage.run(&["--offline", "--output", "json", "Review this repository"]).await.exits(0);
    let report = seen.json();
    let findings = report["findings"].as_array().unwrap();
    let facts = |list: &str| manifest[list].as_array().unwrap().clone();
    let planted = facts("planted");
    let decoys = facts("decoys");
    for finding in findings {
        for citation in finding["citations"].as_array().unwrap() {
            assert!(holds(&stage.work(), citation), "{name}: the citation fails: {finding:#}");
        }
        assert_eq!(finding["verdict"], "confirmed", "{name}: {finding:#}");
        assert!(!decoys.iter().any(|decoy| is_at(finding, decoy)), "{name}: a decoy: {finding:#}");
    }
    let found = planted.iter().filter(|fact| findings.iter().any(|finding| is_at(finding, fact))).count();
    let right = findings.iter().filter(|finding| planted.iter().any(|fact| is_at(finding, fact))).count();
    let recall = found as f64 / planted.len() as f64;
    let precision = right as f64 / findings.len().max(1) as f64;
    println!(
        "{name}: recall {recall:.2} ({found}/{}), precision {precision:.2} ({right}/{}), {} agents, {:.1} s",
        planted.len(),
        findings.len(),
        report["agents"].as_array().unwrap().len(),
        begun.elapsed().as_secs_f64()
    );
    assert!(recall >= 0.9 && right == findings.len(), "{name}: {findings:#?}");
}

#[tokio::test]
async fn a_review_finds_what_was_planted_in_a_rust_tree_and_no_decoy() {
    review("planted-rust").await;
}

#[tokio::test]
async fn a_review_finds_what_was_planted_in_a_python_tree_and_no_decoy() {
    review("planted-python").await;
}

#[tokio::test]
async fn a_review_finds_what_was_planted_in_a_mixed_tree_and_no_decoy() {
    review("planted-mixed").await;
}

#[tokio::test]
async fn a_review_of_this_repository_says_nothing_that_does_not_hold() {
    let stage = Stage::bare();
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let begun = Instant::now();
    let dir = root.to_str().unwrap();
    let report =
        stage.run(&["--offline", "-o", "json", "-C", dir, "Review this repository"]).await.exits(0).json();
    let findings = report["findings"].as_array().unwrap();
    let workers =
        report["agents"].as_array().unwrap().iter().filter(|agent| agent["role"] == "worker").count();
    let took = begun.elapsed().as_secs_f64();
    println!("this repository: {} findings of {workers} workers in {took:.1} s", findings.len());
    assert!(workers >= 4, "{report:#}");
    for finding in findings.iter().filter(|finding| finding["verdict"] == "confirmed") {
        for citation in finding["citations"].as_array().unwrap() {
            assert!(holds(&root, citation), "the citation fails: {finding:#}");
        }
    }
}

#[tokio::test]
async fn d9_3_a_substantive_request_is_scouted_and_fanned_out_unprompted_and_a_trivial_one_stays_solo() {
    let stage = Stage::bare();
    plant(&stage, "planted-rust");
    let seen = stage.run(&["--offline", "--output", "jsonl", "Review this repository"]).await.exits(0);
    let lines = seen.lines();
    let (end, events) = lines.split_last().unwrap();
    let lead = end["agent"].as_str().unwrap();
    let tools: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "tool_started" && event["stream"] == lead)
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    let scouted = tools.iter().take_while(|tool| **tool == "bash").count();
    assert!((1..=3).contains(&scouted) && tools.get(scouted) == Some(&"Workflow"), "{tools:?}");
    assert_eq!(end["status"], "done");
    let answer = end["answer"].as_str().unwrap();
    let first = end["findings"][0]["claim"].as_str().unwrap();
    assert!(answer.contains(first), "the synthesis holds what was found: {answer}");
    let trivial = stage.run(&["--offline", "--output", "json", "What is 2+2?"]).await;
    let report = trivial.json();
    assert_eq!(report["agents"].as_array().unwrap().len(), 1, "{report:#}");
    assert!(!trivial.stderr.contains("[workflow]"), "{}", trivial.stderr);
}

#[tokio::test]
async fn d9_4_one_request_by_hand_comes_back_with_the_first_tool_call() {
    let stage = Stage::bare();
    let mut server = stage.start(&["sim"]);
    let url = patiently("the address", server.first_line()).await;
    let body = json!({
        "model": "claude-opus-4-8",
        "max_tokens": 64_000,
        "messages": [
            {"role": "user", "content": "Review this repository"},
            {"role": "system", "content": "[orchestration mode: on]\nStanding consent: fan out."},
        ],
        "tools": [
            {"type": "bash_20250124", "name": "bash"},
            {
                "name": "Workflow",
                "description": "Runs subtasks in parallel.",
                "input_schema": {
                    "type": "object",
                    "properties": {"subtasks": {"type": "array", "items": {"type": "string"}}},
                    "required": ["subtasks"],
                },
            },
        ],
    });
    let reply = post(url.trim().strip_prefix("http://").unwrap(), &body.to_string()).await;
    let reply: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(reply["stop_reason"], "tool_use", "{reply:#}");
    let last = reply["content"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["type"], &last["name"]), (&json!("tool_use"), &json!("bash")), "{reply:#}");
    server.signal("TERM");
    server.end().await.exits(0);
}

/// One request as curl sends it.
async fn post(host: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: any\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut reply = String::new();
    patiently("the reply", stream.read_to_string(&mut reply)).await.unwrap();
    reply
}
