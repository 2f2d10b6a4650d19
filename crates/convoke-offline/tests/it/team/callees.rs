//! The offline model as a callee of a program: it fills schemas from what it saw, mends what is sent back,
//! and replaces a text when it is told to word for word. And as a lead that starts a saved workflow.

use serde_json::{Value, json};

use super::harness::{Agent, Move, Tree, offline};

fn small() -> Tree {
    Tree::new(&[
        ("src/a.py", "# TODO: one\ntry:\n    f()\nexcept:\n    g()\n"),
        ("src/b.py", "# FIXME: two\nx = 'colour'\n"),
        ("notes.txt", "the colour of things\n"),
        ("README.md", "# A\n"),
    ])
}

#[track_caller]
fn fits(schema: &Value, value: &Value) {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}\nof {value:#}\nby {schema:#}");
}

/// What a callee gives back for a prompt and a schema; it fits.
async fn value(tree: &Tree, prompt: &str, schema: &Value) -> Value {
    let sim = offline().await;
    let mut callee = Agent::callee(&sim, prompt, Some(schema));
    let value = callee.ends_with("StructuredOutput", tree).await;
    fits(schema, &value);
    value
}

fn object(properties: &Value) -> Value {
    let required: Vec<String> = properties.as_object().expect("properties").keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn findings() -> Value {
    let text = json!({"type": "string"});
    let row = object(&json!({
        "title": text, "file": text, "line": {"type": "integer"}, "evidence": text,
        "severity": {"type": "string", "enum": ["critical", "high", "medium", "low"]}
    }));
    object(&json!({"findings": {"type": "array", "items": row}, "summary": text}))
}

#[tokio::test]
async fn findings_are_filled_from_what_a_command_showed() {
    let tree = small();
    let told =
        value(&tree, "Find leftover TODO and FIXME markers in `src/`\nOne finding per place.", &findings())
            .await;
    let places: Vec<(&str, u64)> = told["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|row| (row["file"].as_str().expect("a file"), row["line"].as_u64().expect("a line")))
        .collect();
    assert_eq!(places, [("src/a.py", 1), ("src/b.py", 1)], "{told:#}");
    assert_eq!(told["findings"][0]["severity"], "low");
    assert!(
        told["findings"][0]["evidence"].as_str().is_some_and(|text| text.contains("# TODO: one")),
        "{told:#}"
    );
    assert!(told["summary"].as_str().is_some_and(|text| text.contains("2 findings")), "{told:#}");
}

#[tokio::test]
async fn somebody_who_asks_for_findings_where_there_are_none_gets_none() {
    let told = value(&small(), "Find unresolved merge conflict markers", &findings()).await;
    assert_eq!(told["findings"], json!([]), "{told:#}");
}

#[tokio::test]
async fn parts_of_the_tree_and_files_are_listed_where_the_schema_asks_for_them() {
    let tree = small();
    let text = json!({"type": "string"});
    let areas =
        object(&json!({"areas": {"type": "array", "items": object(&json!({"path": text, "why": text}))}}));
    let told = value(&tree, "Which areas are worth a review?", &areas).await;
    assert!(told["areas"].as_array().expect("areas").iter().any(|area| area["path"] == "src"), "{told:#}");
    let files = object(&json!({"files": {"type": "array", "items": text}, "count": {"type": "integer"}}));
    let told =
        value(&tree, "Change nothing. Name the files in which to replace `colour` with `color`.", &files)
            .await;
    assert_eq!(told["files"], json!(["notes.txt", "src/b.py"]), "{told:#}");
    assert_eq!(told["count"], 2);
}

#[tokio::test]
async fn a_verdict_follows_from_whether_the_named_place_can_be_read() {
    let tree = small();
    let schema = object(&json!({
        "refuted": {"type": "boolean"}, "reason": {"type": "string"},
        "verdict": {"enum": ["confirmed", "refuted", "uncertain"]}
    }));
    for (place, refuted, verdict) in
        [("src/a.py:1", false, "confirmed"), ("src/a.py:90", true, "refuted"), ("gone.py:1", true, "refuted")]
    {
        let told = value(&tree, &format!("Try to refute: {place}: a TODO was left."), &schema).await;
        assert_eq!(
            (&told["refuted"], &told["verdict"]),
            (&json!(refuted), &json!(verdict)),
            "{place}: {told:#}"
        );
    }
    let told = value(&tree, "Try to refute: src/a.py:1: the sky is green.", &schema).await;
    assert_eq!((&told["refuted"], &told["verdict"]), (&json!(false), &json!("uncertain")), "{told:#}");
    let told = value(&tree, "Try to refute: the sky is green.", &schema).await;
    assert_eq!((&told["refuted"], &told["verdict"]), (&json!(false), &json!("uncertain")), "{told:#}");
}

#[tokio::test]
async fn what_nobody_looked_at_is_never_said_to_be_right_or_done() {
    let tree = small();
    let yes = json!({"type": "boolean"});
    let schema = object(&json!({
        "ok": yes, "passed": yes, "valid": yes, "approved": yes, "tests_passed": yes, "done": yes, "fixed": yes, "tested": yes,
        "verdict": {"enum": ["pass", "fail"]}, "status": {"enum": ["ok", "error"]}, "outcome": {"enum": ["done", "blocked"]},
        "sound": {"enum": [true, false]}, "tests": {"type": "array", "items": {"type": "string"}},
        "commands": {"type": "array", "items": object(&json!({"command": {"type": "string"}, "passed": yes}))}
    }));
    for prompt in [
        "Is the new cache sound? Run the tests.",
        "Find leftover TODO markers and fix them",
        "Discuss zebras",
    ] {
        let told = value(&tree, prompt, &schema).await;
        let expected = json!({
            "ok": false, "passed": false, "valid": false, "approved": false, "tests_passed": false, "done": false, "fixed": false,
            "tested": false, "verdict": "fail", "status": "error", "outcome": "blocked", "sound": false, "tests": [], "commands": []
        });
        assert_eq!(told, expected, "{prompt}");
    }
}

#[tokio::test]
async fn only_what_lies_below_the_named_paths_is_looked_at() {
    let tree = Tree::new(&[
        ("src/a.py", "# TODO: one\n"),
        ("lib/b.py", "# TODO: two\n"),
        ("c.py", "# TODO: three\n"),
    ]);
    let row = object(&json!({"path": {"type": "string"}, "why": {"type": "string"}}));
    let areas = object(&json!({"areas": {"type": "array", "items": row}}));
    for (place, within) in
        [("`lib/`", vec!["lib"]), ("`src/`, `lib/`", vec!["src", "lib"]), ("`c.py`", vec!["c.py"])]
    {
        let told =
            value(&tree, &format!("Leftover TODO markers in {place}.\nBegin with src/, c.py."), &findings())
                .await;
        let files = told["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .map(|row| row["file"].as_str().expect("a file"));
        let outside: Vec<&str> =
            files.filter(|file| !within.iter().any(|path| file.starts_with(path))).collect();
        assert_eq!(
            (outside, told["findings"].as_array().map(Vec::len)),
            (vec![], Some(within.len())),
            "{told:#}"
        );
        let told =
            value(&tree, &format!("Which parts of the code in {place} deserve a review first?"), &areas)
                .await;
        assert_eq!(told["areas"].as_array().map(Vec::len), Some(within.len()), "{told:#}");
    }
    let told = value(&tree, "Leftover TODO markers in `gone/`.", &findings()).await;
    assert_eq!(told["findings"], json!([]));
    assert!(
        told["summary"].as_str().is_some_and(|said| said.contains("Not to be found: 1 path")),
        "{told:#}"
    );
}

#[tokio::test]
async fn every_kind_of_schema_that_people_write_is_filled() {
    let tree = small();
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {"type": ["string", "null"], "minLength": 400}}, "required": ["a", "b"]}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 4}, "x": {"type": "number", "exclusiveMinimum": 0},
            "m": {"type": "integer", "multipleOf": 5, "minimum": 7}}, "required": ["n", "x", "m"]}),
        json!({"type": "object", "properties": {"tags": {"type": "array", "minItems": 4, "maxItems": 5, "uniqueItems": true, "items": {"type": "string", "maxLength": 60}},
            "grid": {"type": "array", "minItems": 2, "items": {"type": "array", "minItems": 1, "items": {"type": "integer"}}}}, "required": ["tags", "grid"]}),
        json!({"type": "object", "properties": {"id": {"type": "string", "pattern": "^[a-z]{3}-\\d+$"}, "day": {"type": "string", "pattern": "^\\d{4}-\\d{2}$"}}, "required": ["id", "day"]}),
        json!({"type": "object", "properties": {"map": {"type": "object", "additionalProperties": {"type": "integer"}}, "level": {"enum": [1, 2, null]},
            "sure": {"type": "boolean"}, "deep": {"type": "object", "properties": {"deeper": {"type": "object", "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}},
            "required": ["score"]}}, "required": ["deeper"]}}, "required": ["map", "level", "sure", "deep"]}),
        json!({"type": "object", "$defs": {"row": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/row"}}, "name": {"type": "string"}},
            "required": ["name"]}}, "properties": {"root": {"$ref": "#/$defs/row"}, "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "only": {"const": "x"}},
            "required": ["root", "either", "only"]}),
    ] {
        for prompt in ["Find leftover TODO markers", "Discuss zebras", "Which is the better plan?"] {
            value(&tree, prompt, &schema).await;
        }
    }
}

#[tokio::test]
async fn a_value_that_is_sent_back_is_mended_where_the_complaint_says() {
    let tree = small();
    let sim = offline().await;
    let schema = findings();
    let mut callee = Agent::callee(&sim, "Find leftover TODO and FIXME markers", Some(&schema));
    let Move::Call(id, _, first) = callee.go(&tree).await else { panic!("no value") };
    callee.result(
        &id,
        "The value does not fit: /findings/0/title: \"x\" does not match. Call again with the whole value.",
        true,
    );
    let Move::Call(id, _, second) = callee.go(&tree).await else { panic!("no value") };
    assert_ne!(first["findings"][0]["title"], second["findings"][0]["title"]);
    assert_eq!((&first["findings"][1], &first["summary"]), (&second["findings"][1], &second["summary"]));
    fits(&schema, &second);
    callee.result(&id, "No.", true);
    let Move::Call(mut id, _, third) = callee.go(&tree).await else { panic!("no value") };
    assert_eq!(third, json!({"findings": [], "summary": "none"}));
    for _ in 3..5 {
        callee.result(&id, "No.", true);
        let Move::Call(next, ..) = callee.go(&tree).await else { panic!("no value") };
        id = next;
    }
    callee.result(&id, "No.", true);
    assert!(matches!(callee.go(&tree).await, Move::Text(_)), "five are enough");
}

#[tokio::test]
async fn without_a_schema_a_callee_says_in_short_what_it_saw() {
    let tree = small();
    let sim = offline().await;
    let Move::Text(said) = Agent::callee(&sim, "Find leftover TODO markers in `src/`", None).go(&tree).await
    else {
        panic!("no text")
    };
    assert!(
        said.contains("- src/a.py:1: A TODO marker was left in a comment") && said.lines().count() < 5,
        "{said}"
    );
    let Move::Text(said) = Agent::callee(&sim, "Write a poem about zebras", None).go(&tree).await else {
        panic!("no text")
    };
    assert!(said.contains("Listed 4 files") && said.contains("- README.md"), "{said}");
}

#[tokio::test]
async fn a_callee_uses_only_the_tools_it_has_and_says_what_it_could_not_see() {
    let tree = small();
    let sim = offline().await;
    let schema = findings();
    let mut callee = Agent::callee(&sim, "Find leftover TODO markers", Some(&schema));
    callee.narrow(&["StructuredOutput"]);
    let told = callee.ends_with("StructuredOutput", &tree).await;
    fits(&schema, &told);
    assert!(told["summary"].as_str().is_some_and(|text| text.contains("Nothing was looked at")), "{told:#}");
    let mut callee = Agent::callee(&sim, "Name the files", Some(&schema));
    callee.narrow(&["glob", "StructuredOutput"]);
    let Move::Call(id, name, _) = callee.go(&tree).await else { panic!("no call") };
    assert_eq!(name, "glob");
    callee.result(&id, "notes.txt\nsrc/a.py", false);
    let told = callee.ends_with("StructuredOutput", &tree).await;
    assert!(told["summary"].as_str().is_some_and(|text| text.contains("Listed 2 files")), "{told:#}");
    let mut callee = Agent::callee(&sim, "Find leftover TODO markers", Some(&schema));
    let made = callee.go_with(|_| ("bash: awk: command not found".to_owned(), true)).await;
    let Move::Call(_, _, told) = made else { panic!("no value") };
    assert_eq!(callee.commands, 2, "it is tried once more");
    assert!(told["summary"].as_str().is_some_and(|text| text.contains("awk: command not found")), "{told:#}");
}

#[tokio::test]
async fn a_text_is_replaced_word_for_word_where_the_prompt_names_the_file_and_the_patch_is_judged() {
    let tree = small();
    let goal = "replace `colour` with `col&or's`";
    let text = json!({"type": "string"});
    let schema = object(&json!({"changed": {"type": "boolean"}, "summary": text, "patch": text}));
    let told = value(&tree, &format!("Migrate `notes.txt`.\nGoal: {goal}"), &schema).await;
    assert_eq!(told["changed"], true, "{told:#}");
    assert_eq!(tree.run("cat notes.txt src/b.py"), "the col&or's of things\n# FIXME: two\nx = 'colour'\n");
    let check = object(
        &json!({"ok": {"type": "boolean"}, "why": text, "ran": text, "tests_passed": {"type": "boolean"}}),
    );
    let fits =
        "--- a/src/b.py\n+++ b/src/b.py\n@@ -1,2 +1,2 @@\n # FIXME: two\n-x = 'colour'\n+x = 'col&or's'";
    let wrong = fits.replace("col&or's", "colours");
    let elsewhere = fits.replace(" # FIXME: two", " # FIXME: three");
    for (patch, ok, why) in [
        (fits, true, "it fits, and `colour` is gone from its files"),
        (&wrong, false, "but `colour` still stands in 1 line of its files"),
        (&elsewhere, false, "cannot be put on"),
    ] {
        let told =
            value(&tree, &format!("Change nothing. Goal: {goal}\n<patch>\n{patch}\n</patch>"), &check).await;
        assert_eq!(
            (&told["ok"], &told["ran"], &told["tests_passed"]),
            (&json!(ok), &json!(""), &json!(false)),
            "{told:#}"
        );
        assert!(
            told["why"].as_str().is_some_and(|said| said.contains(why) && said.contains("No test was run")),
            "{told:#}"
        );
    }
    assert!(tree.run("cat src/b.py").contains("x = 'colour'"), "whoever judges changes nothing");
    let told = value(&tree, "Migrate `notes.txt` to the new style.", &schema).await;
    assert_eq!(
        (&told["changed"], &told["patch"]),
        (&json!(false), &json!("")),
        "nothing is changed by guessing"
    );
}

#[tokio::test]
async fn a_lead_starts_a_workflow_that_is_named_ends_its_turn_and_tells_of_its_end() {
    let tree = small();
    let sim = offline().await;
    let mut lead = Agent::new(&sim, "lead", "Run the review workflow on src/");
    let Move::Call(id, name, input) = lead.go(&tree).await else { panic!("no call") };
    assert_eq!((name.as_str(), input), ("Workflow", json!({"name": "review", "args": "src/"})));
    lead.result(&id, "Launched: wf_abcdefghij in the background.", false);
    let Move::Text(said) = lead.go(&tree).await else { panic!("no text") };
    assert!(said.contains("runs in the background"), "{said}");
    lead.user(json!(
        "[run wf_abcdefghij has ended]\nTold by Convoke.\n| partial: one agent died\n| \
        {\"summary\": \"One held.\", \"confirmed\": [{}]}"
    ));
    let Move::Text(said) = lead.go(&tree).await else { panic!("no text") };
    assert!(
        said.contains("partial") && said.contains("One held.") && said.contains("- confirmed: 1"),
        "{said}"
    );
    let mut lead = Agent::new(&sim, "lead", "run the nope workflow");
    let Move::Call(id, ..) = lead.go(&tree).await else { panic!("no call") };
    lead.result(&id, "There is no workflow of the name nope.", true);
    let Move::Text(said) = lead.go(&tree).await else { panic!("no text") };
    assert!(said.contains("was not started") && said.contains("no workflow of the name nope"), "{said}");
}

/// The lenses of the shipped review, as its source lists them.
fn lenses() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../convoke-runtime/workflows/review.js");
    let source = std::fs::read_to_string(path).expect("the shipped review");
    let list = source.split_once("const LENSES = [").expect("lenses").1.split_once("\n]").expect("an end").0;
    list.lines()
        .map(|line| line.trim().trim_matches(['\'', ',']))
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn every_lens_of_the_shipped_review_finds_what_is_planted_for_it_and_a_verifier_confirms_it() {
    let tree = Tree::new(&[
        ("src/a.py", "# TODO: this loses the last line\ntry:\n    f()\nexcept:\n    g()\nbreakpoint()\n"),
        ("src/b.rs", "pub fn f(x: Option<u8>) -> u8 {\n    x.unwrap()\n}\n"),
        ("conf/c.py", "aws = \"AKIA2E0A8F3B244C9986\"\n"),
    ]);
    let row = object(&json!({
        "claim": {"type": "string"}, "evidence": {"type": "string"}, "severity": {"enum": ["high", "medium", "low", "info"]},
        "path": {"type": "string"}, "first": {"type": "integer"}, "last": {"type": "integer"}, "quote": {"type": "string"}
    }));
    let schema = object(
        &json!({"findings": {"type": "array", "maxItems": 8, "items": row}, "summary": {"type": "string"}}),
    );
    let sim = offline().await;
    let planted = ["src/a.py:4", "src/b.rs:2", "conf/c.py:1", "src/a.py:6", "src/a.py:1"];
    let lenses = lenses();
    assert_eq!(lenses.len(), planted.len());
    for (lens, place) in lenses.iter().zip(planted) {
        let prompt = format!(
            "{lens} in the whole directory.\nLook for this alone; others look for the rest. Change nothing."
        );
        let told = value(&tree, &prompt, &schema).await;
        let rows = told["findings"].as_array().expect("findings");
        let places: Vec<String> = rows
            .iter()
            .map(|row| format!("{}:{}", row["path"].as_str().expect("a path"), row["first"]))
            .collect();
        assert_eq!(places, [place], "{lens}: {told:#}");
        let row = &rows[0];
        let citation =
            json!({"path": row["path"], "first": row["first"], "last": row["last"], "quote": row["quote"]});
        let finding = json!({"claim": row["claim"], "evidence": row["evidence"], "severity": row["severity"], "citations": [citation]});
        let ballot = Agent::verifier(&sim, &[finding]).ends_with("report_verdicts", &tree).await;
        assert_eq!(ballot["verdicts"][0]["verdict"], "confirmed", "{lens}: {ballot:#}");
    }
}
