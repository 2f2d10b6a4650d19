//! The chapters of the report that answer one question each: by which framework is this tested, and what does
//! each file define.

use std::fmt::Write as _;

use super::Report;
use super::phrases::{code, evidence, many, none_found, shown, unread};
use crate::read::{Facts, Item};

/// The frameworks that are known, by what the commands call them.
const FRAMEWORKS: [(&str, &str); 31] = [
    ("cargo_test", "Rust's built-in tests (`cargo test`)"),
    ("rstest", "rstest (Rust)"),
    ("proptest", "proptest (Rust)"),
    ("quickcheck", "quickcheck (Rust)"),
    ("insta", "insta (Rust, snapshots)"),
    ("pytest", "pytest (Python)"),
    ("unittest", "unittest (Python, built in)"),
    ("doctest", "doctest (Python, built in)"),
    ("hypothesis", "Hypothesis (Python)"),
    ("jest", "Jest (JavaScript)"),
    ("vitest", "Vitest (JavaScript)"),
    ("mocha", "Mocha (JavaScript)"),
    ("ava", "AVA (JavaScript)"),
    ("jasmine", "Jasmine (JavaScript)"),
    ("cypress", "Cypress (browser)"),
    ("playwright", "Playwright (browser)"),
    ("node_test", "Node's built-in runner (`node --test`)"),
    ("go_test", "Go's built-in tests (`go test`)"),
    ("testify", "testify (Go)"),
    ("ginkgo", "Ginkgo (Go)"),
    ("junit", "JUnit (Java)"),
    ("testng", "TestNG (Java)"),
    ("spock", "Spock (Groovy)"),
    ("kotest", "Kotest (Kotlin)"),
    ("rspec", "RSpec (Ruby)"),
    ("minitest", "minitest (Ruby)"),
    ("phpunit", "PHPUnit (PHP)"),
    ("pest", "Pest (PHP)"),
    ("googletest", "GoogleTest (C++)"),
    ("catch2", "Catch2 (C++)"),
    ("bats", "Bats (Shell)"),
];

/// Those that only manifests name.
const MORE_FRAMEWORKS: [(&str, &str); 4] =
    [("xunit", "xUnit (C#)"), ("nunit", "NUnit (C#)"), ("mstest", "MSTest (C#)"), ("ctest", "CTest (CMake)")];

/// The frameworks that files name: what the commands call them and what people do.
pub(crate) fn frameworks_named(facts: &Facts) -> Vec<&'static (&'static str, &'static str)> {
    FRAMEWORKS.iter().chain(&MORE_FRAMEWORKS).filter(|(kind, _)| facts.kind(kind).0 > 0).collect()
}

impl Report {
    /// Which frameworks are named, and where.
    pub(super) fn frameworks(&mut self, facts: &Facts) {
        let named = frameworks_named(facts);
        if named.is_empty() {
            let none = none_found(facts, "No file here names a testing framework that the rules know");
            let sources = many(facts.count("scanned"), "source file");
            let manifests = many(facts.count("manifests"), "manifest or setting");
            let _ = writeln!(
                self.text,
                "{none}: looked into {sources} and {manifests}. There may be another one."
            );
            return;
        }
        if named.len() > 1 {
            let names: Vec<&str> = named.iter().map(|(_, name)| *name).collect();
            let _ = write!(self.text, "Named are {}.\n\n", names.join("; "));
        }
        for (kind, name) in &named {
            self.items(facts, &[kind], name);
        }
        if let Some(unread) = unread(facts) {
            let _ = writeln!(self.text, "\nNot known for {unread}.");
        }
    }

    /// The files one by one: what each says of itself and what it defines.
    pub(super) fn outline(&mut self, facts: &Facts) {
        let of = |kind: &'static str| facts.items.iter().filter(move |item| item.kind == kind);
        let (files, _) = facts.kind("file");
        if files == 0 {
            let none = none_found(facts, "There is no source file to look into");
            return self.line(&format!("{none}."));
        }
        self.line(
            "Read are definitions at the top level and the first comment. What the code does with \
            them, the rules do not see.\n",
        );
        let mut listed = 0;
        for file in of("file") {
            listed += 1;
            let here = |item: &&Item| item.path == file.path;
            let defines = if file.first == 0 {
                "nothing at the top level".to_owned()
            } else {
                many(file.first, "definition")
            };
            let _ =
                write!(self.text, "- {} ({}): {defines}", code(&shown(&file.path)), many(file.last, "line"));
            if let Some(doc) = of("doc").filter(here).find(|item| self.quotes.keeps(item)) {
                let _ = write!(self.text, "; it says of itself: {}", code(&doc.text));
            }
            self.text.push('\n');
            let defs: Vec<&Item> = of("def").filter(here).filter(|item| self.quotes.keeps(item)).collect();
            for def in &defs {
                let entry = evidence(def);
                let _ = writeln!(self.text, "  {entry}");
            }
            let rest = file.first.saturating_sub(defs.len() as u64);
            if rest > 0 {
                let _ = writeln!(self.text, "  - and {rest} more, not listed");
            }
        }
        if files > listed {
            let _ = writeln!(self.text, "- and {} more, not listed", many(files - listed, "file"));
        }
        if let Some(unread) = unread(facts) {
            let _ = writeln!(self.text, "\nNot known for {unread}.");
        }
    }
}
