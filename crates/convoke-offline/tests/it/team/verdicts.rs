//! A verifier against fabrications: what is not so is never confirmed, and what is so is.

use serde_json::{Value, json};

use super::harness::{Agent, Move, Tree, offline};

const RUST: &str = "// TODO: real\nfn f() {\n    let s = \"// TODO: text\";\n    \
    x().unwrap();\n}\n\n#[cfg(test)]\nmod tests {\n    fn t() { y().unwrap(); }\n}\n";
const MARKER: &str = "A TODO marker was left in a comment";
const UNWRAP: &str = "`.unwrap()` outside tests: it may panic, if this can fail";

fn tree() -> Tree {
    Tree::new(&[("src/a.rs", RUST), ("vendor/b/src/lib.rs", "// TODO: vendored\n"), ("README.md", "# A\n")])
}

fn finding(claim: &str, path: &str, line: u64, quote: &str) -> Value {
    let citations = json!([{"path": path, "first": line, "last": line, "quote": quote}]);
    json!({"claim": claim, "evidence": format!("{path}:{line}"), "severity": "low", "citations": citations})
}

#[track_caller]
fn check(ballot: &Value, expected: &[(&str, &str)]) {
    let verdicts = ballot["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts.len(), expected.len(), "{ballot}");
    for (index, (vote, (verdict, why))) in verdicts.iter().zip(expected).enumerate() {
        let evidence = vote["evidence"].as_str().expect("evidence");
        assert_eq!(
            (vote["finding"].as_u64(), vote["verdict"].as_str()),
            (Some(index as u64 + 1), Some(*verdict)),
            "{vote}"
        );
        assert!(evidence.contains(why), "{why:?} in {vote}");
    }
}

#[tokio::test]
async fn fabrications_are_refuted_and_true_findings_confirmed() {
    let tree = tree();
    let sim = offline().await;
    let findings = [
        finding(MARKER, "src/a.rs", 1, "// TODO: real"),
        finding(UNWRAP, "src/a.rs", 4, "x().unwrap();"),
        finding(MARKER, "src/none.rs", 1, "// TODO: real"),
        finding(MARKER, "src/a.rs", 2, "// TODO: real"),
        finding(MARKER, "src/a.rs", 99, "// TODO: real"),
        finding(MARKER, "src/a.rs", 3, "// TODO: text"),
        finding(MARKER, "vendor/b/src/lib.rs", 1, "// TODO: vendored"),
        finding(UNWRAP, "src/a.rs", 9, "fn t() { y().unwrap(); }"),
        finding(UNWRAP, "src/a.rs", 1, "// TODO: real"),
        finding("A HACK marker was left in a comment", "src/a.rs", 1, "// TODO: real"),
        finding(MARKER, "/etc/passwd", 1, "root"),
        finding(MARKER, "../a.rs", 1, "x"),
        finding("This function loses money", "src/a.rs", 2, "fn f() {"),
        finding("TODO comment left behind", "src/a.rs", 1, "TODO: real"),
        json!({"claim": "There is no license at the top of this directory", "evidence": "ls", "severity": "low"}),
        json!({"claim": "There is no README at the top of this directory", "evidence": "ls", "severity": "low"}),
        json!({"claim": "The sky is green", "evidence": "look", "severity": "low", "citations": [{"command": "date", "quote": "x"}]}),
    ];
    let ballot = Agent::verifier(&sim, &findings).ends_with("report_verdicts", &tree).await;
    check(
        &ballot,
        &[
            ("confirmed", "src/a.rs:1"),
            ("confirmed", "src/a.rs:4"),
            ("refuted", "no file src/none.rs"),
            ("refuted", "there stands: fn f() {"),
            ("refuted", "ends before line 99"),
            ("refuted", "does not find it there"),
            ("refuted", "does not find it there"),
            ("refuted", "does not find it there"),
            ("refuted", "does not find it there"),
            ("refuted", "does not find it there"),
            ("refuted", "no lines of a file in this directory"),
            ("refuted", "no lines of a file in this directory"),
            ("undecided", "no rule can tell"),
            ("confirmed", "finds it again"),
            ("confirmed", "the files were listed"),
            ("refuted", "does not find it there"),
            ("undecided", "Nothing is cited"),
        ],
    );
}

#[tokio::test]
async fn a_verifier_that_cannot_look_decides_nothing() {
    let sim = offline().await;
    let findings = [finding(MARKER, "src/a.rs", 1, "// TODO: real")];
    let mut verifier = Agent::verifier(&sim, &findings);
    let made = verifier.go_with(|_| ("Not run: the sandbox cannot be had.".to_owned(), true)).await;
    let Move::Call(_, name, ballot) = made else { panic!("no ballot") };
    assert_eq!(name, "report_verdicts");
    check(&ballot, &[("undecided", "the sandbox cannot be had")]);
}

#[tokio::test]
async fn findings_that_cannot_be_read_are_not_judged() {
    let tree = tree();
    let sim = offline().await;
    let mut verifier = Agent::new(&sim, "verifier", "<findings>[{</findings>");
    assert!(matches!(verifier.go(&tree).await, Move::Text(_)));
}
