//! What is asked for, phrase by phrase.

use crate::intent::{Intent, Term, Topic, classify};

fn asks(phrase: &str) -> Vec<Topic> {
    match classify(phrase) {
        Intent::Explore(wanted) => wanted.asks,
        Intent::Cannot { part } | Intent::Unknown { part } => panic!("{phrase:?} was refused for {part:?}"),
    }
}

fn check(phrase: &str, expected: &[Topic]) {
    assert_eq!(asks(phrase), expected, "{phrase:?}");
}

fn check_review(phrase: &str) {
    match classify(phrase) {
        Intent::Explore(wanted) => {
            assert_eq!(wanted.asks.len(), 6, "{phrase:?}: {:?}", wanted.asks);
            assert!(wanted.recognised, "{phrase:?}");
        }
        Intent::Cannot { part } | Intent::Unknown { part } => panic!("{phrase:?} was refused for {part:?}"),
    }
}

fn check_cannot(phrase: &str, expected: &str) {
    assert_eq!(classify(phrase), Intent::Cannot { part: expected.to_owned() }, "{phrase:?}");
}

fn check_unknown(phrase: &str, expected: &str) {
    assert_eq!(classify(phrase), Intent::Unknown { part: expected.to_owned() }, "{phrase:?}");
}

fn words(words: &[&str]) -> Topic {
    Topic::Find(Term::Words(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn exact(text: &str) -> Topic {
    Topic::Find(Term::Exact(text.to_owned()))
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
    check("How many files are there?", &[Topic::Count]);
    check("How many lines of Rust are there?", &[Topic::Count]);
    check("count the lines of code", &[Topic::Count]);
    check("Which languages are used?", &[Topic::Count]);
    check("how big is this?", &[Topic::Count]);
    check("find TODOs", &[Topic::Todos]);
    check("How many TODOs are there?", &[Topic::Todos]);
    check("Do we have any FIXME comments?", &[Topic::Todos]);
    check(
        "What are the largest files and the longest functions?",
        &[Topic::LongFunctions, Topic::LargestFiles],
    );
    check("Which functions are too long?", &[Topic::LongFunctions]);
    check("show the biggest modules", &[Topic::LargestFiles]);
    check("Which source files are without tests?", &[Topic::Tests]);
    check("find untested code", &[Topic::Tests]);
    check("Audit the error handling", &[Topic::Errors]);
    check("look for unhandled errors", &[Topic::Errors]);
    check("List the files", &[Topic::List]);
    check("Find the TODOs and list the files.", &[Topic::Todos, Topic::List]);
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
fn what_only_looks_is_explored_however_it_is_said() {
    for phrase in [
        "look around",
        "Look around here",
        "have a look",
        "Have a quick look around, please",
        "take a look around",
        "Could you take a look at this project?",
        "show me around",
        "Show us around this codebase.",
        "what do we have here",
        "What have we got here?",
        "poke around in the code",
        "Hello! Get an overview of the project, thanks.",
        "Give me a tour of the repository",
        "Walk me through the code",
        "go through everything",
        "go look around",
        "Tell me about this project",
        "Describe the structure",
        "code review",
        "A quick security audit",
        "potential problems",
        "Any bugs?",
        "Report the faults.",
        "Browse the sources",
        "I'd like a summary of this repository",
        "I'm new here. Show me around.",
        "Review the parser, the lexer and its printer",
        "Review how we open and close the journal",
        "review this, be brief and leave every file as it is",
        "src/main.rs",
    ] {
        check_review(phrase);
    }
    check("take a look at the largest files", &[Topic::LargestFiles]);
    check("the longest functions", &[Topic::LongFunctions]);
    check("unhandled errors", &[Topic::Errors]);
    check("I want to know where `parse_date` is used", &[exact("parse_date")]);
    check("look for parse_date", &[exact("parse_date")]);
    check("I need a list of the TODOs", &[Topic::Todos]);
    check("Make a list of the untested files", &[Topic::Tests]);
    check("enumerate the TODO comments", &[Topic::Todos]);
    check("Tell me how many TODOs there are", &[Topic::Todos]);
    check_review("What does this repository contain?");
    check_cannot("Find and fix bugs", "fix bugs");
    check_cannot("Can you see any problem? If so, correct it", "correct it");
}

#[test]
fn an_imperative_that_no_rule_knows_is_refused_and_not_answered_by_a_review() {
    for phrase in [
        "get rid of the warnings",
        "turn the script into a module",
        "put a licence header in each file",
        "sort the imports",
        "prettify the code",
        "Squash the bugs",
        "Eliminate all problems in this repository",
        "iron out the issues",
        "burn down the TODOs",
        "tackle the TODO list",
        "wrap the errors with context",
        "Switch from unittest to pytest",
        "hook the parser up to the CLI",
        "Bring the README up to date",
        "take the dead code out",
        "lower the log level",
        "Review this repository and prettify it",
        "Look around and then modernise everything",
        "review the code, swap the two arguments of f",
        "Review and beautify",
        "give this function a better name",
        "name the variables better",
        "go fix the bug",
        "show a spinner while loading",
        "print a newline after each record",
        "list three ways to speed this up",
        "create a report generator",
        "build a search index",
        "I need a summary function",
        "leave a comment in each file",
        "Empty the cache",
        "file a bug for each TODO",
        "Bitte behebe die Fehler",
        "The parser crashes on empty input",
        "The tests must pass",
        "What is the best way to structure this code?",
        "Which files need refactoring?",
        "sketch an architecture for plugins",
        "Come up with a caching strategy",
        "architect a queue",
        "compare this with the old version",
        "check that all tests pass",
        "check for typos",
        "tell me a joke",
        "Migrate everything to async",
        "src/main.rs needs a docstring",
        "TODO list app in React",
        "error handling rewrite",
        "A plugin system",
        "Read the config from the environment instead of files",
    ] {
        assert!(!matches!(classify(phrase), Intent::Explore(_)), "{phrase:?}: {:?}", classify(phrase));
    }
    check_unknown("get rid of the warnings", "get rid of the warnings");
    check_unknown("Review this repository and prettify it.", "prettify it");
}

/// The task of `convoke` without one, word for word.
const DEFAULT_TASK: &str = "Review this directory: its purpose, its structure and its quality. Report the \
    faults, unhandled errors, untested code, oversized parts and unfinished work, the most serious first, \
    each with file, line and how you know. This is a review: leave every file as it is. End with a list of \
    the parts that were left out";

#[test]
fn the_task_of_a_run_without_one_is_the_plain_review() {
    check_review(DEFAULT_TASK);
    assert_eq!(classify(DEFAULT_TASK), classify(""));
}

#[test]
fn a_greeting_or_a_bare_noun_phrase_gets_a_review_that_says_that_nothing_was_asked() {
    for phrase in ["Guten Tag", "Hello there!", "thank you", "The storage layer", "Do not edit anything."] {
        let Intent::Explore(wanted) = classify(phrase) else { panic!("{phrase:?} was refused") };
        assert!(!wanted.recognised, "{phrase:?}");
        assert_eq!(wanted.asks.len(), 6, "{phrase:?}");
    }
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
