//! Questions that files answer by themselves (which testing framework, what each file defines) and the one
//! file that is made: a module from a template.

use serde_json::{Value, json};

use super::harness::{Tree, request};
use crate::policy::answer;

const FRAMEWORK: &str = "Testing framework";
const OUTLINE: &str = "What each file defines";

/// What is named, and where, in a tree of one file beside another one.
#[track_caller]
fn named(files: &[(&str, &str)], expected: &str, places: &[&str]) {
    let tree = Tree::new(files);
    for task in
        ["find what testing framework this project uses", "What testing framework does this project use?"]
    {
        let played = tree.play(task);
        let section = played.section(FRAMEWORK);
        assert!(section.trim_start().starts_with(expected), "{section}");
        assert_eq!(played.places(FRAMEWORK), places, "{section}");
        tree.check_evidence(played.report());
    }
}

#[test]
fn a_testing_framework_is_told_from_the_files_that_say_so() {
    named(
        &[(
            "pyproject.toml",
            "[project]\n# pytest-cov is not used\ndependencies = []\n[dependency-groups]\ndev = \
                [\"pytest>=8\"]\n",
        )],
        "pytest (Python): 1 in 1 file:",
        &["pyproject.toml:5"],
    );
    named(
        &[("test_a.py", "\"\"\"import pytest\"\"\"\nimport unittest\n"), ("conftest.py", "X = 1\n")],
        "Named are pytest (Python); unittest (Python, built in).",
        &["conftest.py:1", "test_a.py:2"],
    );
    named(
        &[
            ("src/lib.rs", "// #[test]\nfn a() {}\n    #[tokio::test]\nasync fn b() {}\n"),
            ("Cargo.toml", "[dev-dependencies]\nproptest = \"1\"\n"),
        ],
        "Named are Rust's built-in tests (`cargo test`); proptest (Rust).",
        &["src/lib.rs:3", "Cargo.toml:2"],
    );
    named(
        &[(
            "package.json",
            "{\n  \"devDependencies\": {\"vitest\": \"^2\"},\n  \"scripts\": {\"test\": \"vitest\"}\n}\n",
        )],
        "Vitest (JavaScript): 1 in 1 file:",
        &["package.json:2"],
    );
    named(&[("a_test.go", "package a\n\nimport \"testing\"\n")], "Go's built-in tests", &["a_test.go:3"]);
    named(
        &[("ATest.java", "import org.junit.jupiter.api.Test;\n")],
        "JUnit (Java): 1 in 1 file:",
        &["ATest.java:1"],
    );
}

#[test]
fn no_framework_is_claimed_where_no_file_names_one() {
    let tree = Tree::new(&[
        ("README.md", "We test with pytest.\n"),
        ("add.py", "# import pytest\ndef add(a, b):\n    return a + b\n"),
    ]);
    let played = tree.play("Which test framework is used here?");
    let said = played.section(FRAMEWORK);
    assert!(
        said.contains("No file here names a testing framework that the rules know")
            && said.contains("There may be another one."),
        "{said}"
    );
}

#[test]
fn every_file_is_told_by_what_it_defines_and_says_of_itself() {
    let tree = Tree::new(&[
        (
            "add.py",
            "\"\"\"Adds numbers.\"\"\"\nimport os\n\ndef add(a, b):\n    def inner():\n        pass\n    \
                return a + b\n\nclass Sum:\n    def total(self):\n        return 0\n",
        ),
        ("empty.py", "X = \"\"\"\ndef not_me():\n\"\"\"\n"),
        ("main.rs", "fn main() {}\n"),
    ]);
    let played = tree.play("read all .py files and summarize what each one does");
    let said = played.section(OUTLINE);
    assert!(
        said.contains("- `add.py` (11 lines): 2 definitions; it says of itself: `\"\"\"Adds numbers.\"\"\"`"),
        "{said}"
    );
    assert!(said.contains("  - `add.py:4`: `def add(a, b):`\n  - `add.py:9`: `class Sum:`\n"), "{said}");
    assert!(said.contains("- `empty.py` (3 lines): nothing at the top level"), "{said}");
    assert!(!said.contains("main.rs") && !said.contains("inner") && !said.contains("not_me"), "{said}");
    assert!(
        said.contains("the rules do not see") && played.report().starts_with("Offline model: fixed rules"),
        "{said}"
    );
    let all = tree.play("What does each file do?");
    assert!(all.section(OUTLINE).contains("  - `main.rs:1`: `fn main() {}`"), "{}", all.report());
}

#[test]
fn a_large_tree_is_told_in_part_and_says_so() {
    let text: String = (0..40).map(|n| format!("def function_{n}():\n    pass\n")).collect();
    let files: Vec<(String, String)> = (0..30).map(|n| (format!("m{n:02}.py"), text.clone())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let played = Tree::new(&files).play("Summarize what each file does");
    let said = played.section(OUTLINE);
    assert!(
        said.contains("more, not listed") && said.contains("- `m00.py` (80 lines): 40 definitions"),
        "{said}"
    );
    for n in 0..30 {
        assert!(said.contains(&format!("- `m{n:02}.py` (80 lines)")), "{said}");
    }
}

#[test]
fn a_module_is_written_from_the_template_of_the_most_used_language_and_nothing_is_overwritten() {
    let check = |files: &[(&str, &str)], task: &str, path: &str, function: &str| {
        let tree = Tree::new(files);
        let before: Vec<Vec<u8>> =
            files.iter().map(|(path, _)| std::fs::read(tree.path().join(path)).unwrap()).collect();
        let played = tree.play(task);
        let said = played.report();
        assert!(
            said.starts_with(&format!("Created `{path}` (")) && said.contains("no intelligence"),
            "{said}"
        );
        let text = std::fs::read_to_string(tree.path().join(path)).unwrap();
        assert!(
            text.contains(function) && text.contains("made from a template by Convoke's offline model"),
            "{text}"
        );
        let after: Vec<Vec<u8>> =
            files.iter().map(|(path, _)| std::fs::read(tree.path().join(path)).unwrap()).collect();
        assert_eq!(before, after);
        // A command that is run again because it was cut off makes no second file.
        let again = tree.play(task);
        assert_eq!(again.report(), said);
    };
    check(&[("add.py", "x = 1\n")], "Create a new module", "example_module.py", "def describe():");
    check(
        &[("src/main.rs", "fn main() {}\n")],
        "create a new module called greeting",
        "src/greeting.rs",
        "pub fn describe()",
    );
    check(&[("a.js", "x\n")], "Add a new module", "example_module.mjs", "export function describe()");
    check(
        &[("a.py", "x = 1\n"), ("example_module.py", "mine\n")],
        "create a new module",
        "example_module_2.py",
        "def describe():",
    );
    check(
        &[("README.md", "# A\n")],
        "create a Go module",
        "example_module/example_module.go",
        "func Describe()",
    );
}

#[test]
fn a_module_that_is_to_do_something_is_declined() {
    let tree = Tree::new(&[("a.py", "x = 1\n")]);
    let why = tree.play("Create a new module that parses dates").refusal().to_owned();
    assert!(why.contains("cannot do this part: \"Create a new module that parses dates\""), "{why}");
    assert_eq!(std::fs::read_dir(tree.path()).unwrap().count(), 1);
}

/// A lead with the tools it has beside `bash`.
fn lead(messages: Value) -> Value {
    let mut request = request(messages);
    request["tools"] =
        json!([{"type": "bash_20250124", "name": "bash"}, {"name": "Workflow"}, {"name": "task"}]);
    request
}

#[test]
fn delegated_work_goes_to_a_task_and_its_answer_is_handed_on() {
    let asked =
        json!({"role": "user", "content": "Use a subtask to find what testing framework this project uses"});
    let called = answer(&lead(json!([asked])));
    assert_eq!(called.content[1]["name"], "task");
    assert_eq!(
        called.content[1]["input"],
        json!({"prompt": "find what testing framework this project uses"})
    );
    let result = json!({"type": "tool_result", "tool_use_id": called.content[1]["id"], "content": "Behind \
        the bars stands what it said.\n| It is\n| pytest."});
    let history = json!([asked, {"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]);
    let told = answer(&lead(history));
    assert_eq!(told.stop_reason, "end_turn");
    assert!(told.content[0]["text"].as_str().unwrap().ends_with("It says:\n\nIt is\npytest."), "{told:?}");
}

#[test]
fn what_no_rule_knows_is_not_delegated_but_declined() {
    let tree = Tree::new(&[("a.py", "x = 1\n")]);
    for task in [
        "Use a subtask to prove the theorem",
        "Delegate: rename every variable",
        "Use a task to count the lines, then verify it from here",
    ] {
        let reply = answer(&lead(json!([{"role": "user", "content": task}])));
        assert_eq!(reply.stop_reason, "refusal", "{task}: {reply:?}");
        assert!(!tree.play(task).refusal().is_empty());
    }
}

#[test]
fn a_build_script_may_panic_and_what_tests_reach_by_another_name_is_not_called_untested() {
    let tree = Tree::new(&[
        ("build.rs", "fn main() {\n    run().unwrap();\n}\n"),
        ("src/build.rs", "fn f() {\n    g().unwrap();\n}\n"),
    ]);
    let played = tree.play("find unhandled errors");
    assert_eq!(played.places("Unhandled errors"), ["src/build.rs:2"]);
    assert!(played.section("Unhandled errors").contains("They may panic"), "{}", played.report());
    let tree = Tree::new(&[
        ("pkg/dates.py", "def parse_date(text):\n    return text\n"),
        ("pkg/sums.py", "\"\"\"\n>>> add_up(1)\n1\n\"\"\"\ndef add_up(a):\n    return a\n"),
        ("pkg/alone.py", "def nobody_calls_it():\n    pass\n"),
        ("tests/test_all.py", "from pkg import parse_date\n"),
    ]);
    let played = tree.play("find untested files");
    let title = "Source files that no test mentions";
    assert_eq!(played.places(title), ["pkg/alone.py:1"], "{}", played.report());
    assert!(played.section(title).contains("It may be tested all the same."), "{}", played.report());
    assert!(
        played.section(title).contains("1 of which tests mention what they define"),
        "{}",
        played.report()
    );
}
