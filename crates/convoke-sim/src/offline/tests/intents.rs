//! What is asked for, phrase by phrase.

use crate::offline::intent::{Ask, Intent, Term, classify};

fn asks(phrase: &str) -> Vec<Ask> {
    match classify(phrase) {
        Intent::Explore(wanted) => wanted.asks,
        Intent::Cannot { part } => panic!("{phrase:?} was refused for {part:?}"),
    }
}

fn check(phrase: &str, expected: &[Ask]) {
    assert_eq!(asks(phrase), expected, "{phrase:?}");
}

fn check_review(phrase: &str) {
    match classify(phrase) {
        Intent::Explore(wanted) => {
            assert_eq!(wanted.asks.len(), 6, "{phrase:?}: {:?}", wanted.asks);
            assert!(wanted.recognised, "{phrase:?}");
        }
        Intent::Cannot { part } => panic!("{phrase:?} was refused for {part:?}"),
    }
}

fn check_cannot(phrase: &str, expected: &str) {
    assert_eq!(classify(phrase), Intent::Cannot { part: expected.to_owned() }, "{phrase:?}");
}

fn words(words: &[&str]) -> Ask {
    Ask::Find(Term::Words(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn exact(text: &str) -> Ask {
    Ask::Find(Term::Exact(text.to_owned()))
}

#[test]
fn reviews_are_reviews_whatever_verbs_their_objects_hold() {
    for phrase in [
        "",
        "Review this repository",
        "review this directory",
        "Please explore this repository.",
        "Could you audit the code?",
        "What is in here?",
        "What's this project about?",
        "review the code that writes files",
        "Review how we read and write files",
        "Check the code that deletes and renames branches.",
        "Review, don't change anything.",
        "Review this repository. Do not edit any file!",
        "Find bugs",
        "Look for problems in the code that fixes dates",
        "Review the repository and write a short summary",
        "Do a review of this repository",
        "Run a quick audit",
        "Design review of the storage layer",
        "Is there anything wrong here?",
        "Summarize this repository",
        "I'd like you to review this repo, please",
        "Give me an overview of the repository and report what you find",
    ] {
        check_review(phrase);
    }
}

#[test]
fn questions_become_the_probes_that_answer_them() {
    check("How many files are there?", &[Ask::Count]);
    check("How many lines of Rust are there?", &[Ask::Count]);
    check("count the lines of code", &[Ask::Count]);
    check("Which languages are used?", &[Ask::Count]);
    check("how big is this?", &[Ask::Count]);
    check("find TODOs", &[Ask::Todos]);
    check("How many TODOs are there?", &[Ask::Todos]);
    check("Do we have any FIXME comments?", &[Ask::Todos]);
    check("What are the largest files and the longest functions?", &[Ask::LongFunctions, Ask::LargestFiles]);
    check("Which functions are too long?", &[Ask::LongFunctions]);
    check("show the biggest modules", &[Ask::LargestFiles]);
    check("Which source files are without tests?", &[Ask::Tests]);
    check("find untested code", &[Ask::Tests]);
    check("Audit the error handling", &[Ask::Errors]);
    check("look for unhandled errors", &[Ask::Errors]);
    check("List the files", &[Ask::List]);
    check("Find the TODOs and list the files.", &[Ask::Todos, Ask::List]);
}

#[test]
fn searches_take_what_is_quoted_or_named_and_else_the_words() {
    check("find where we fix dates", &[words(&["fix", "date"])]);
    check("where is \"delete all\" used?", &[exact("delete all")]);
    check("Where is `parse_date` defined?", &[exact("parse_date")]);
    check("where is parse_date used", &[exact("parse_date")]);
    check("Where is Store::open() called?", &[exact("Store::open")]);
    check("which files mention serde?", &[words(&["serde"])]);
    check("grep for 'fix me'", &[exact("fix me")]);
    check("find where we add and remove users", &[words(&["add", "remove", "user"])]);
}

#[test]
fn what_asks_for_a_change_or_a_judgement_is_refused_with_that_part() {
    check_cannot("Fix the bug in main.rs", "Fix the bug in main.rs");
    check_cannot("Review this repository and fix the bugs", "fix the bugs");
    check_cannot("review and refactor this", "refactor this");
    check_cannot("Find the TODOs, then implement them.", "implement them");
    check_cannot("Please rename `Foo` to `Bar`", "Please rename Foo to Bar");
    check_cannot("can you delete the old tests?", "can you delete the old tests");
    check_cannot("I want you to write tests for this", "I want you to write tests for this");
    check_cannot("Review it. Afterwards write a report to REPORT.md", "write a report to REPORT.md");
    check_cannot("Explain why the build is slow", "Explain why the build is slow");
    check_cannot("Why is this slow?", "Why is this slow");
    check_cannot("How does the journal work?", "How does the journal work");
    check_cannot("How many functions are there?", "How many functions are there");
    check_cannot("translate the README into German", "translate the README into German");
    check_cannot("Design a plugin system", "Design a plugin system");
    check_cannot("Review the code and suggest improvements", "suggest improvements");
    check_cannot("run the tests", "run the tests");
    check_cannot("Check whether the tests pass", "Check whether the tests pass");
    check_cannot("find out why it fails", "find out why it fails");
    check_cannot("We need the parser fixed", "We need the parser fixed");
    check_cannot("What should we do first?", "What should we do first");
    check_cannot("Look around, and, if possible, tidy up", "tidy up");
    check_cannot("Who wrote this?", "Who wrote this");
}

#[test]
fn a_task_that_no_rule_knows_is_a_review_that_says_so() {
    let Intent::Explore(wanted) = classify("Guten Tag") else { panic!("refused") };
    assert!(!wanted.recognised);
    assert_eq!(wanted.asks.len(), 6);
}

#[test]
fn paths_and_languages_narrow_the_view_and_outside_paths_are_named() {
    let check = |phrase: &str, scope: Option<&str>, language: Option<&str>, outside: &[&str]| {
        let Intent::Explore(wanted) = classify(phrase) else { panic!("{phrase:?} was refused") };
        assert_eq!((wanted.scope.as_deref(), wanted.language), (scope, language), "{phrase:?}");
        assert_eq!(wanted.out_of_reach, outside, "{phrase:?}");
    };
    check("review crates/convoke-sim/", Some("crates/convoke-sim"), None, &[]);
    check("Review `./src/my file.rs`.", Some("src/my file.rs"), None, &[]);
    check("find TODOs in Python files", None, Some("Python"), &[]);
    check("how many lines of Go code are in src/, and/or files?", Some("src"), Some("Go"), &[]);
    check("go through the repository", None, None, &[]);
    check("review /etc/passwd and ../other", None, None, &["/etc/passwd", "../other"]);
}
