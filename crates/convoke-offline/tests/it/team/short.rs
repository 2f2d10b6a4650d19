//! Work that is cut short, and what a worker leaves out: the last reply, the cap on findings, examples,
//! names.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};

use super::harness::{Agent, MODE_ON, Move, Tree, offline, work};

const TURNS: &str = "The turn limit is reached: this is the last reply, and no tool will be run any more. \
    Hand back what you have: the answer as far as it goes, the evidence, and what is left undone.";
const BUDGET: &str = "The budget for this work is used up (0.1 s of 0.06 s): this is the last reply, and no \
    tool will be run any more. Hand back what you have: the answer as far as it goes, the evidence, and \
    what is left undone.";

fn one_file() -> Tree {
    Tree::new(&[("a.py", "x = 1\n")])
}

/// The text a lead ends with at once.
async fn last_words(lead: &mut Agent<'_>) -> String {
    let reply = lead.reply().await;
    assert_eq!(reply["stop_reason"], "end_turn", "{reply}");
    reply["content"][0]["text"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn a_lead_that_is_asked_to_hand_back_says_what_it_counted_and_never_refuses() {
    let tree = one_file();
    let sim = offline().await;
    for note in [TURNS, BUDGET] {
        for beside in [true, false] {
            let mut lead = Agent::new(&sim, "lead", "Review this repository");
            lead.system(MODE_ON);
            let reply = lead.reply().await;
            let call = &reply["content"][1];
            let counts = tree.run(call["input"]["command"].as_str().expect("a command"));
            let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": counts});
            if beside {
                lead.user(json!([result, {"type": "text", "text": note}]));
            } else {
                lead.user(json!([result]));
                lead.user(json!(note));
            }
            let said = last_words(&mut lead).await;
            let cause = note.split(':').next().expect("a cause");
            for part in [
                cause,
                "1 file with 1 line,",
                "- Python: 1 file, 1 line",
                "## Not checked",
                "- TODO comments",
            ] {
                assert!(said.contains(part), "no {part:?} in\n{said}");
            }
            assert!(!said.contains("- file and line counts"), "what was counted is known:\n{said}");
        }
    }
}

#[tokio::test]
async fn before_any_result_and_beyond_its_rules_it_hands_back_in_text_too() {
    let sim = offline().await;
    for (task, part) in [
        ("Review this repository", "Nothing: no command brought a result"),
        ("Fix the bugs in this repository", "It cannot do this part"),
        ("Flurb the wug", "did not understand"),
    ] {
        for role in ["lead", "task"] {
            let mut lead = Agent::new(&sim, role, task);
            lead.user(json!(BUDGET));
            let said = last_words(&mut lead).await;
            assert!(said.contains(part) && said.contains("is used up"), "{task}: {said}");
            let mut lead = Agent::new(&sim, role, task);
            lead.user(json!([{"type": "text", "text": TURNS}]));
            assert!(last_words(&mut lead).await.contains(part), "{task}");
        }
    }
}

#[tokio::test]
async fn a_fan_out_that_was_refused_at_the_end_is_said_in_the_last_reply() {
    let tree = Tree::new(&[("a.py", "x = 1\n"), ("README.md", "# A\n")]);
    let sim = offline().await;
    let mut lead = Agent::new(&sim, "lead", "Review this repository");
    lead.system(MODE_ON);
    let Move::Call(id, ..) = lead.go(&tree).await else { panic!("no fan-out") };
    let refused = json!({"type": "tool_result", "tool_use_id": id, "content": "Workflow error: none \
        left.", "is_error": true});
    lead.user(json!([refused, {"type": "text", "text": TURNS}]));
    let said = last_words(&mut lead).await;
    assert!(said.contains("The fan-out was refused. The reason: Workflow error: none left."), "{said}");
    assert!(said.contains("2 files with 2 lines"), "{said}");
}

fn paths(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings");
    let place = |finding: &Value| {
        let citation = &finding["citations"][0];
        format!("{}:{}", citation["path"].as_str().unwrap_or_default(), citation["first"])
    };
    findings.iter().map(place).collect()
}

#[tokio::test]
async fn what_matters_most_is_listed_first_and_never_behind_the_cap() {
    let tree = Tree::new(&[]);
    for n in 0..9 {
        tree.put(&format!("a{n}.py"), &"x = 1\n".repeat(1_001));
    }
    tree.put("z.py", &format!("def f():\n{}", "    x = 1\n".repeat(90)));
    let sim = offline().await;
    let (report, ballot) = work(&sim, &tree, "Very long functions and files in the whole directory").await;
    let severities: Vec<&str> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|one| one["severity"].as_str())
        .collect();
    assert_eq!((severities.len(), severities[0], severities[1]), (8, "low", "info"), "{report}");
    assert_eq!(paths(&report)[0], "z.py:1");
    assert!(report["summary"].as_str().is_some_and(|said| said.contains("not listed: 2 more")), "{report}");
    let verdicts = ballot["verdicts"].as_array().expect("verdicts");
    assert!(verdicts.iter().all(|vote| vote["verdict"] == "confirmed"), "{ballot}");
}

#[tokio::test]
async fn examples_in_docstrings_and_doc_comments_are_no_secrets_and_what_follows_them_is() {
    let key = "q7Hs8kL2mN4p";
    let python = format!(
        "\"\"\"Example::\n\n    oauth_token=\"{key}\",\n\"\"\"\ndef f():\n    r'''One line: \
         password=\"{key}\".'''\n    s = \"it's\"\n    password = \"{key}\"\n\nTEXT = \"\"\"\n    api_key = \
         \"{key}\"\n\"\"\"\nKEY = \"\"\"-----BEGIN PRIVATE KEY-----\n{}\n\"\"\"\n\
         secret = \"{key}\"\n",
        "MIIE".repeat(12)
    );
    let java = format!(
        "/**\n  password = \"{key}\"\n */\nString password = \"{key}\";\n/* a */ String secret = \"{key}\";\n"
    );
    let tree = Tree::new(&[("src/a.py", &python), ("src/B.java", &java)]);
    let sim = offline().await;
    let (report, _) = work(&sim, &tree, "Hard-coded secrets in the whole directory").await;
    assert_eq!(
        paths(&report),
        ["src/B.java:4", "src/B.java:5", "src/a.py:8", "src/a.py:13", "src/a.py:16"],
        "{report}"
    );
}

#[tokio::test]
async fn what_cargo_leaves_and_what_is_meant_to_stop_is_no_finding() {
    let tree = Tree::new(&[
        ("README", "a\n"),
        ("LICENSE", "a\n"),
        ("Cargo.toml", "[package]\n"),
        ("Cargo.toml.orig", "[package]\n"),
        ("b/Cargo.toml.orig", "[package]\n"),
        (
            "a.py",
            "# Intentional: a hook.\npdb.set_trace()\npdb.set_trace()  # noqa: T100\n\n# \
                unintentional\npdb.set_trace()\n",
        ),
    ]);
    let sim = offline().await;
    let (report, _) =
        work(&sim, &tree, "Missing README or license, stray files in the whole directory").await;
    let evidence: Vec<&str> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|one| one["evidence"].as_str())
        .collect();
    assert_eq!(evidence, ["b/Cargo.toml.orig"], "{report}");
    let (report, _) = work(&sim, &tree, "Leftover debugging aids in the whole directory").await;
    assert_eq!(paths(&report), ["a.py:6"], "{report}");
}

#[tokio::test]
async fn files_whose_names_are_not_utf8_are_left_out_and_counted() {
    let tree = Tree::new(&[("é/ü€𝄞.py", "# TODO: one\n")]);
    for name in [&b"bad\xff.py"[..], b"cut\xe2\x82.py"] {
        fs::write(tree.root.join(std::ffi::OsStr::from_bytes(name)), "# TODO: two\n").expect("a file");
    }
    let sim = offline().await;
    let subtask = "Leftover TODO, FIXME, XXX and HACK markers in the whole directory";
    let (report, ballot) = work(&sim, &tree, subtask).await;
    assert_eq!(
        (paths(&report), ballot["verdicts"][0]["verdict"].as_str()),
        (vec!["é/ü€𝄞.py:1".to_owned()], Some("confirmed"))
    );
    let summary = report["summary"].as_str().expect("a summary");
    assert!(
        summary.contains("looked into 1 file;") && summary.contains("2 files with a name that is not UTF-8"),
        "{summary}"
    );
    let Move::Text(alone) = Agent::new(&sim, "task", "find TODOs").go(&tree).await else {
        panic!("no report")
    };
    assert!(alone.contains("Left out: 2 files with a name that is not UTF-8."), "{alone}");
}
