//! Recall and precision of the whole loop on the planted trees.

#![expect(clippy::print_stdout, reason = "the figures are what these tests are for")]

use std::fs;

use serde_json::Value;

use super::harness::{Agent, MODE_ON, Move, Tree, digest, fixture, offline, work};

/// A word that a claim of this kind must hold: the test shares no table with the model.
fn sign(kind: &str) -> &'static str {
    match kind {
        "comment" => "marker was left in a comment",
        "conflict" => "merge conflict",
        "secret" => "literal",
        "rust_unwrap" => "`.unwrap()`",
        "rust_expect" => "`.expect(…)`",
        "rust_panic" => "`panic!`",
        "rust_todo" => "`todo!`",
        "py_bare_except" => "bare `except:`",
        "py_except_pass" => "only passes",
        "empty_catch" => "`catch` with nothing",
        "go_dropped" => "go to `_`",
        "go_empty_if" => "`if err != nil` with nothing",
        "sh_no_errexit" => "without `set -e`",
        "debug" => "aid for debugging",
        "invalid_json" => "not valid JSON",
        "invalid_toml" => "not valid TOML",
        "invalid_yaml" => "not valid YAML",
        "broken_link" => "leads nowhere",
        "long_function" => "A function of 81 lines",
        "test_only" => "run alone",
        "test_skipped" => "switched off",
        "missing_readme" => "no README",
        "missing_license" => "no license",
        "stray_file" => "left behind",
        "untested" => "No test mentions",
        other => panic!("no sign for {other}"),
    }
}

struct Score {
    planted: usize,
    found: usize,
    reported: usize,
    right: usize,
}

async fn review(name: &str) -> Score {
    let tree = Tree::planted(name);
    let sim = offline().await;
    let mut lead = Agent::new(&sim, "lead", "Review this repository");
    lead.system(MODE_ON);
    let Move::Call(id, tool, input) = lead.go(&tree).await else { panic!("no fan-out") };
    assert_eq!(tool, "Workflow");
    assert!((1..=3).contains(&lead.commands), "{} commands of scouting", lead.commands);
    let subtasks: Vec<String> = serde_json::from_value(input["subtasks"].clone()).expect("texts");
    assert!((4..=12).contains(&subtasks.len()), "{subtasks:?}");
    let mut results = Vec::new();
    for subtask in &subtasks {
        results.push(work(&sim, &tree, subtask).await);
    }
    lead.result(&id, &digest(&subtasks, &results), false);
    let Move::Text(answer) = lead.go(&tree).await else { panic!("no synthesis") };

    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(fixture(name).join("PLANTED.json")).expect("a manifest"))
            .expect("JSON");
    let facts = |list: &str| manifest[list].as_array().expect("a list").clone();
    let planted = facts("planted");
    let decoys = facts("decoys");
    let mut seen = vec![false; planted.len()];
    let mut score = Score { planted: planted.len(), found: 0, reported: 0, right: 0 };
    for (report, ballot) in &results {
        let findings = report["findings"].as_array().expect("findings");
        for (finding, verdict) in findings.iter().zip(ballot["verdicts"].as_array().expect("verdicts")) {
            let claim = finding["claim"].as_str().expect("a claim");
            let citations = finding["citations"].as_array().cloned().unwrap_or_default();
            assert!(
                citations.iter().all(|citation| tree.holds(citation)),
                "{name}: the citation fails: {finding}"
            );
            assert_eq!(verdict["verdict"], "confirmed", "{name}: {finding}\n{verdict}");
            let evidence = finding["evidence"].as_str().expect("evidence");
            assert!(
                answer.contains(claim) && answer.contains(evidence),
                "{name}: not in the answer: {finding}\n{answer}"
            );
            let at = |fact: &Value| match citations.first() {
                Some(citation) => citation["path"] == fact["path"] && citation["first"] == fact["line"],
                None => {
                    fact["line"] == 0
                        && (fact["path"] == "." || evidence.contains(fact["path"].as_str().expect("a path")))
                }
            };
            assert!(!decoys.iter().any(at), "{name}: a decoy was reported: {finding}");
            score.reported += 1;
            let fits =
                |fact: &Value| at(fact) && claim.contains(sign(fact["kind"].as_str().expect("a kind")));
            match planted.iter().position(fits) {
                Some(index) => {
                    score.right += usize::from(!seen[index]);
                    seen[index] = true;
                }
                None => println!("{name}: not planted: {finding}"),
            }
        }
    }
    for (fact, _) in planted.iter().zip(&seen).filter(|(_, seen)| !**seen) {
        println!("{name}: not found: {fact}");
    }
    score.found = seen.iter().filter(|seen| **seen).count();
    assert!(answer.contains("## Confirmed findings") && answer.contains("## Not checked"), "{answer}");
    score
}

async fn check(name: &str) {
    let begun = std::time::Instant::now();
    let score = review(name).await;
    let recall = score.found as f64 / score.planted as f64;
    let precision = score.right as f64 / score.reported.max(1) as f64;
    println!(
        "planted-{name}: recall {recall:.2} ({}/{}), precision {precision:.2} ({}/{}), {:.1} s",
        score.found,
        score.planted,
        score.right,
        score.reported,
        begun.elapsed().as_secs_f64()
    );
    assert!(recall >= 0.9 && score.right == score.reported, "planted-{name}: see above");
}

#[tokio::test]
async fn a_team_finds_what_was_planted_in_a_rust_tree_and_no_decoy() {
    check("rust").await;
}

#[tokio::test]
async fn a_team_finds_what_was_planted_in_a_python_tree_and_no_decoy() {
    check("python").await;
}

#[tokio::test]
async fn a_team_finds_what_was_planted_in_a_mixed_tree_and_no_decoy() {
    check("mixed").await;
}
