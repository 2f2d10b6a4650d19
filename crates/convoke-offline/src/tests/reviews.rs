//! Reviews and questions on planted trees: the exact findings, and none of the decoys.

use super::harness::{Tree, rust_function};
use crate::probes::quoted;

const CODE: &str = r##"// TODO: the first real one
use std::fs;
/* A block
   FIXME in a block comment */
pub fn f(path: &str) -> String {
    let a = "TODO in a string"; // not one
    let b = "// TODO after slashes in a string";
    let c = r#"
// TODO inside a raw string
"#;
    let q = '"'; // HACK behind a quote character
    let todo = "a \" // TODO escaped";
    let s = fs::read_to_string(path).unwrap();
    s.expect("a reason");
    self.expect(Token::Todo);
    // let x = y.unwrap();
    if s.is_empty() {
        panic!("empty");
    }
    "calls .unwrap() in a string".to_owned()
}

#[cfg(not(test))]
fn real() { g().unwrap(); }

#[cfg(test)]
mod tests {
    #[test]
    fn t() {
        super::f("x").unwrap();
    }
}

fn after_tests() {
    h().unwrap();
}
"##;

fn planted() -> Tree {
    Tree::new(&[
        ("src/code.rs", CODE),
        ("src/lib.rs", "mod code;\n"),
        ("src/with space.rs", "// XXX spaced\nfn spaced() {}\n"),
        ("src/quote's.py", "# TODO quoted\nx = 1\n"),
        ("src/new\nline.py", "# FIXME broken name\n"),
        (
            "src/sizes.rs",
            &[rust_function("a79", 79), rust_function("b80", 80), rust_function("c81", 81)].concat(),
        ),
        ("src/parser.rs", "pub fn parse() {}\n"),
        ("src/lonely.rs", "//! Words.\n\npub fn lonely() {}\n"),
        ("tests/parsing.rs", "use x::parser;\nfn t() { parser::parse().unwrap(); }\n"),
        ("vendor/dep/src/lib.rs", "// TODO vendored\nfn v() { x.unwrap(); }\n"),
        ("node_modules/m/index.js", "// TODO vendored too\n"),
        ("target/debug/out.rs", "// TODO built\n"),
        ("web/app.min.js", "// TODO minified\n"),
        ("Cargo.lock", "# TODO lock\n"),
        ("README.md", "TODO in prose\n"),
        ("gen.rs", "// @generated\n// TODO generated\n"),
        ("data.bin", "\u{1}TODO\n"),
    ])
}

#[test]
fn a_review_finds_what_was_planted_and_no_decoy() {
    let tree = planted();
    tree.git();
    let played = tree.play("Review this repository");
    let report = played.report();
    assert!(report.starts_with("Offline model: fixed rules, no intelligence. Checked"), "{report}");
    assert_eq!(
        played.places("TODO, FIXME, XXX, HACK"),
        [
            "src/code.rs:1",
            "src/code.rs:4",
            "src/code.rs:11",
            "src/new\\nline.py:1",
            "src/quote's.py:1",
            "src/with space.rs:1"
        ]
    );
    assert_eq!(played.places("Functions of more than 80 lines"), ["src/sizes.rs:160-240"]);
    assert_eq!(
        played.places("Unhandled errors"),
        ["src/code.rs:13", "src/code.rs:24", "src/code.rs:35", "src/code.rs:14", "src/code.rs:18"]
    );
    let untested = played.places("Source files that no test mentions");
    assert_eq!(untested, ["src/sizes.rs:1", "src/lonely.rs:3", "src/quote's.py:2", "src/with space.rs:2"]);
    assert_eq!(played.places("Largest files")[0], "src/sizes.rs:1-240");
    let here = played.section("What is here");
    assert!(here.contains("- Rust: 8 files"), "{here}");
    assert!(
        here.contains("2 vendored") && here.contains("2 generated or built") && here.contains("1 lock file."),
        "{here}"
    );
    assert!(tree.check_evidence(report) >= 20, "{report}");
    for decoy in ["vendored too", "in a string", "minified", "prose", "raw string", "escaped", "dep/src"] {
        assert!(!report.contains(decoy), "{decoy}: {report}");
    }
    assert!(report.contains("Every quoted line was read a second time"), "{report}");
    assert!((5..=8).contains(&played.replies()), "{} replies", played.replies());
    assert!(report.len() < 6_000, "{}", report.len());
}

#[test]
fn without_git_the_same_is_found_by_walking() {
    let with = planted();
    let without = planted();
    with.git();
    let a = with.play("Review this");
    let b = without.play("Review this");
    assert!(b.report().contains("found by walking") && !a.report().contains("found by walking"));
    assert_eq!(a.report().replace("tracked or not ignored by git", "found by walking"), b.report());
}

#[test]
fn a_review_of_our_own_sources_holds() {
    let tree = Tree::new(&[]);
    tree.run(&format!("cp -r {}/src .", quoted(env!("CARGO_MANIFEST_DIR"))));
    let played = tree.play("Review this");
    assert!(tree.check_evidence(played.report()) >= 8, "{}", played.report());
    assert!(played.section("Unhandled errors").contains("None of these was found"), "{}", played.report());
}

#[test]
fn tests_outside_a_scope_still_count() {
    let tree = Tree::new(&[
        ("src/a/known.py", "x = 1\n"),
        ("src/a/lone.py", "x = 1\n"),
        ("src/b/other.py", "x = 1\n"),
        ("src/a/only.go", "package a\n"),
        ("tests/test_it.js", "use(known);\n"),
    ]);
    let untested = |task| tree.play(task).places("Source files that no test mentions");
    assert_eq!(untested("review src/a"), ["src/a/lone.py:1", "src/a/only.go:1"]);
    assert_eq!(untested("which Python files in src/a are untested?"), ["src/a/lone.py:1"]);
}

#[test]
fn a_name_of_several_words_is_judged_word_by_word_and_the_rest_with_its_true_reason() {
    let tree = Tree::new(&[
        ("src/with space.py", "x = 1\n"),
        ("src/half-known.js", "f();\n"),
        ("src/both-known.js", "f();\n"),
        ("src/é.py", "x = 1\n"),
        ("src/main.py", "x = 1\n"),
        ("run.sh", "true\n"),
        ("tests/test_it.py", "use(known, both)\n"),
    ]);
    let played = tree.play("which files have no tests?");
    let title = "Source files that no test mentions";
    assert_eq!(played.places(title), ["src/half-known.js:1", "src/with space.py:1"]);
    let said = "Judged: 3 source files, against 1 test file; not judged: 1 called mod, lib, main, index and \
        the like, 1 in Shell, 1 without a letter (a-z) or digit in the name; not listed: 1 named by several \
        words, all of which stand in tests, perhaps apart.";
    assert!(played.section(title).contains(said), "{}", played.report());
}

#[test]
fn what_git_ignores_is_not_looked_at() {
    let tree = Tree::new(&[("a.py", "# TODO one\n"), ("out/b.py", "# TODO two\n"), (".gitignore", "out/\n")]);
    tree.git();
    assert_eq!(tree.play("find TODOs").places("TODO, FIXME, XXX, HACK"), ["a.py:1"]);
}

#[test]
fn an_empty_directory_is_said_to_be_empty_in_two_replies() {
    let played = Tree::new(&[]).play("Review this directory");
    assert!(played.report().contains("There are no files here"), "{}", played.report());
    assert_eq!(played.replies(), 2);
}

#[test]
fn a_directory_without_source_is_counted_and_not_looked_into() {
    let tree = Tree::new(&[("notes.txt", "TODO\nmore\n"), ("photo.png", "x")]);
    let played = tree.play("Review this directory");
    let report = played.report();
    assert!(report.contains("- Text: 1 file, 2 lines") && report.contains("- other: 1 file"), "{report}");
    assert!(report.contains("None is in a language that is looked into"), "{report}");
    assert!(!report.contains("## TODO"), "{report}");
}

#[test]
fn counts_of_one_language_are_exact() {
    let tree = planted();
    let played = tree.play("How many lines of Rust are there?");
    let rust =
        ["src/code.rs", "src/lib.rs", "src/with space.rs", "src/sizes.rs", "src/parser.rs", "src/lonely.rs"];
    let rust = rust.iter().chain(&["tests/parsing.rs", "gen.rs"]);
    let lines: usize =
        rust.map(|p| std::fs::read_to_string(tree.path().join(p)).unwrap().lines().count()).sum();
    assert!(played.report().contains(&format!("Rust: 8 files, {lines} lines.")), "{}", played.report());
    assert_eq!(played.replies(), 2);
}

#[test]
fn totals_are_counted_by_the_command_when_the_list_is_cut() {
    let many: String = (0..137).map(|n| format!("# TODO number {n}\n")).collect();
    let tree = Tree::new(&[("many.py", &many)]);
    let played = tree.play("find all TODOs");
    let section = played.section("TODO, FIXME, XXX, HACK");
    assert!(
        section.contains("137 in 1 file:") && section.contains("- and 127 more, not listed"),
        "{section}"
    );
}

#[test]
fn a_search_gives_the_lines_with_definitions_first() {
    let tree = Tree::new(&[
        ("a.rs", "fn main() { parse_it(); }\n"),
        ("b.rs", "// x\nfn parse_it() {}\n"),
        ("notes.md", "about parse_it `here`\n"),
        ("vendor/c.rs", "parse_it();\n"),
    ]);
    let played = tree.play("Where is `parse_it` used?");
    assert_eq!(played.places("Search"), ["b.rs:2", "a.rs:1", "notes.md:1"]);
    assert!(
        played.section("Search").contains("3 lines in 3 files hold the text `parse_it`"),
        "{}",
        played.report()
    );
    assert_eq!(tree.check_evidence(played.report()), 3);
    let odd = tree.play("where is \"it's $(touch pwned) \\n\" used?");
    assert!(odd.section("Search").contains("0 lines in 0 files"), "{}", odd.report());
    assert!(!tree.path().join("pwned").exists());
}

#[test]
fn a_scope_narrows_everything_and_a_missing_one_is_said() {
    let tree = Tree::new(&[("src/a.py", "# TODO a\n"), ("lib/b.py", "# TODO b\n")]);
    let played = tree.play("review src/");
    assert_eq!(played.places("TODO, FIXME, XXX, HACK"), ["src/a.py:1"]);
    assert!(played.report().contains("Only `src` was looked at."));
    let played = tree.play("find TODOs in nowhere/x.py");
    assert_eq!(played.places("TODO, FIXME, XXX, HACK"), ["lib/b.py:1", "src/a.py:1"]);
    assert!(played.report().contains("There is no `nowhere/x.py` here"), "{}", played.report());
}

#[test]
fn the_files_are_listed_with_their_lines() {
    let tree = Tree::new(&[("b.py", "1\n2\n"), ("a.txt", "x"), ("c.bin", "\u{1}")]);
    let played = tree.play("List the files");
    assert_eq!(played.places("Files"), ["a.txt:1-1", "b.py:1-2", "c.bin"]);
    assert_eq!(tree.check_evidence(played.report()), 2);
}
