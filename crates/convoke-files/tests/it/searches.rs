//! What `glob` and `grep` find, leave out and say about it.

use std::fs;
use std::time::{Duration, Instant, UNIX_EPOCH};

use convoke_files::{Glob, Grep, Mode, Sort};

use crate::tree::{SHOWN, Tree, check};

fn sample() -> Tree {
    let tree = Tree::new();
    tree.put(".gitignore", "/target\n*.log\n!keep.log\n");
    tree.put("src/.gitignore", "made.rs\n");
    tree.put("src/.ignore", "!made.rs\nother.rs\n");
    tree.put("src/main.rs", "fn main() {\n    needle();\n}\n");
    tree.put("src/made.rs", "needle\n");
    tree.put("src/other.rs", "needle\n");
    tree.put("target/out.rs", "needle\n");
    tree.put("src/target/in.rs", "Needle\r\nno\r\n");
    tree.put("a.log", "needle\n");
    tree.put("keep.log", "needle\n");
    tree.put(".hidden/x.rs", "needle\n");
    tree.put(".git/config", "needle\n");
    tree
}

#[test]
fn glob_finds_by_name_at_any_depth_and_by_path_where_there_is_a_slash() {
    let tree = sample();
    for (pattern, expected) in [
        ("*.rs", "src/made.rs\nsrc/main.rs\nsrc/target/in.rs\n"),
        ("src/*.rs", "src/made.rs\nsrc/main.rs\n"),
        ("src/**/*.rs", "src/made.rs\nsrc/main.rs\nsrc/target/in.rs\n"),
        ("./src/ma[di]*.rs", "src/made.rs\nsrc/main.rs\n"),
        ("*.{log,txt}", "keep.log\n"),
        (&format!("{SHOWN}/src/*.rs"), "src/made.rs\nsrc/main.rs\n"),
        ("**", "keep.log\nsrc/made.rs\nsrc/main.rs\nsrc/target/in.rs\n"),
    ] {
        assert_eq!(tree.glob(pattern).unwrap(), expected, "{pattern}");
    }
    let below = Glob { pattern: "*/*.rs".to_owned(), path: Some("src".to_owned()), ..Glob::default() };
    assert_eq!(tree.glob_with(&below).unwrap(), "src/target/in.rs\n");
}

#[test]
fn hidden_and_ignored_files_are_found_when_asked_for_and_git_never() {
    let tree = sample();
    check(tree.glob("x.rs"), true, &["no file below `.` fits `x.rs`", "hidden or ignored and not looked at"]);
    let all = tree.glob_with(&Glob { pattern: "**".to_owned(), all: true, ..Glob::default() }).unwrap();
    assert!(
        all.contains(".hidden/x.rs\n") && all.contains("target/out.rs\n") && all.contains("a.log\n"),
        "{all}"
    );
    assert!(!all.contains(".git/"), "{all}");
    let named = Grep { pattern: "needle".to_owned(), path: Some("target".to_owned()), ..Grep::default() };
    check(tree.grep_with(&named), true, &["target/out.rs\n     1: needle"]);
    let below = Grep {
        pattern: "needle".to_owned(),
        path: Some("src".to_owned()),
        mode: Mode::Files,
        ..Grep::default()
    };
    assert_eq!(tree.grep_with(&below).unwrap(), "src/made.rs\nsrc/main.rs\n");
}

#[test]
fn glob_can_put_the_newest_first() {
    let tree = Tree::new();
    for (name, age) in [("old", 100), ("newest", 300), ("middle", 200)] {
        tree.put(name, "needle");
        let file = fs::File::options().write(true).open(tree.path(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(age)).unwrap();
    }
    let newest = Glob { pattern: "**".to_owned(), sort: Sort::Newest, ..Glob::default() };
    assert_eq!(tree.glob_with(&newest).unwrap(), "newest\nmiddle\nold\n");
    let newest =
        Grep { pattern: "needle".to_owned(), sort: Sort::Newest, mode: Mode::Files, ..Grep::default() };
    assert_eq!(tree.grep_with(&newest).unwrap(), "newest\nmiddle\nold\n");
}

#[test]
fn answers_that_are_too_long_say_how_much_is_missing() {
    let mut tree = Tree::new();
    for number in 0..30 {
        tree.put(&format!("{number:02}"), "needle 1\nneedle 2\nneedle 3\n");
    }
    tree.caps.results = 10;
    check(tree.glob("*"), true, &["09\n[20 more fit"]);
    check(
        tree.glob_with(&Glob { pattern: "*".to_owned(), sort: Sort::Newest, ..Glob::default() }),
        true,
        &["[20 more fit"],
    );
    check(
        tree.grep("needle"),
        true,
        &["03\n     1: needle 1\n[80 more matching lines, some of them in 26 more files, not listed"],
    );
    for mode in [Mode::Files, Mode::Count] {
        let call = Grep { pattern: "needle".to_owned(), mode, ..Grep::default() };
        check(tree.grep_with(&call), true, &["[20 more files not listed"]);
    }
    tree.caps.results = 1_000;
    tree.caps.view_chars = 100;
    check(tree.grep("needle"), true, &["     1: needle 1", "more matching lines"]);
    assert!(tree.grep("needle").unwrap().len() < 300);
    assert!(tree.glob("*").unwrap().len() < 300);
}

#[test]
fn grep_shows_lines_with_numbers_and_context() {
    let tree = Tree::new();
    tree.put("a", "1\n2\nneedle\n4\n5\n6\n7\nneedle\n9\n");
    tree.put("b", "nothing\n");
    assert_eq!(tree.grep("needle").unwrap(), "a\n     3: needle\n     8: needle\n");
    let call = Grep { pattern: "needle".to_owned(), context: 1, ..Grep::default() };
    assert_eq!(
        tree.grep_with(&call).unwrap(),
        "a\n     2- 2\n     3: needle\n     4- 4\n    --\n     7- 7\n     8: needle\n     9- 9\n"
    );
}

#[test]
fn grep_takes_case_plain_text_name_filters_and_modes() {
    let tree = sample();
    let call = |change: fn(&mut Grep)| {
        let mut call = Grep { pattern: "needle".to_owned(), ..Grep::default() };
        change(&mut call);
        tree.grep_with(&call).unwrap()
    };
    assert_eq!(
        call(|call| call.glob = Some("*.rs".to_owned())),
        "src/made.rs\n     1: needle\nsrc/main.rs\n     2:     needle();\n"
    );
    assert_eq!(call(|call| call.mode = Mode::Files), "keep.log\nsrc/made.rs\nsrc/main.rs\n");
    assert_eq!(call(|call| call.mode = Mode::Count), "keep.log: 1\nsrc/made.rs: 1\nsrc/main.rs: 1\n");
    let any_case = call(|call| {
        call.ignore_case = true;
        call.pattern = "needle$".to_owned();
    });
    assert!(any_case.contains("src/target/in.rs\n     1: Needle\n"), "`$` fits before CRLF: {any_case}");
    let fixed = call(|call| {
        call.fixed = true;
        call.pattern = "needle();".to_owned();
    });
    assert_eq!(fixed, "src/main.rs\n     2:     needle();\n");
    let spanning = call(|call| {
        call.multiline = true;
        call.pattern = r"main\(\) \{\s+needle".to_owned();
    });
    assert_eq!(spanning, "src/main.rs\n     1: fn main() {\n     2:     needle();\n");
}

#[test]
fn grep_searches_one_file_and_wide_text_and_notes_binary_files() {
    let tree = Tree::new();
    tree.put("wide", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    tree.put("binary", b"\0\0needle\n\0");
    tree.put("late", [b"needle\n".repeat(20_000), b"\0".to_vec()].concat());
    tree.put("latin", b"caf\xe9 needle\n");
    let one = Grep { pattern: "needle".to_owned(), path: Some("latin".to_owned()), ..Grep::default() };
    assert_eq!(tree.grep_with(&one).unwrap(), "latin\n     1: caf\\xE9 needle\n");
    check(
        tree.grep("needle"),
        true,
        &["wide\n     1: needle\n", "binary files that match, not shown: `binary`, `late`"],
    );
}

#[test]
fn a_match_far_along_a_long_line_is_shown_with_what_is_around_it() {
    let mut tree = Tree::new();
    tree.caps.line_chars = 200;
    tree.put("min.js", format!("{}needle{}\n", "x".repeat(10_000), "y".repeat(10_000)));
    let text = tree.grep("needle").unwrap();
    assert!(
        text.contains("[9940 characters] …xxx") && text.contains("xneedley") && text.len() < 400,
        "{text}"
    );
}

#[test]
fn patterns_that_cannot_be_used_say_why() {
    let tree = sample();
    check(tree.grep("a{"), false, &["the pattern `a{` cannot be used", "Escape what is meant literally"]);
    check(tree.grep("(unclosed"), false, &["unclosed group"]);
    check(tree.grep(r"a\nb"), false, &["Set multiline"]);
    check(tree.grep("((a{100}){100}){100}"), false, &["size limit"]);
    check(tree.grep(""), false, &["every line"]);
    check(tree.glob("a["), false, &["the pattern `a[` cannot be used"]);
    check(tree.glob("/etc/*"), false, &[&format!("not with `{SHOWN}/`")]);
    check(tree.glob("../*"), false, &["`..`"]);
    check(tree.glob(" "), false, &["`**` fits everything"]);
    check(tree.glob(&"*".repeat(3_000)), false, &["more than 2000 bytes"]);
    let file = Glob { pattern: "*".to_owned(), path: Some("keep.log".to_owned()), ..Glob::default() };
    check(tree.glob_with(&file), false, &["a file", "glob looks in directories"]);
}

#[test]
fn patterns_made_to_take_for_ever_do_not() {
    let tree = Tree::new();
    tree.put(&format!("{}/{}", "a".repeat(200), "a".repeat(200)), "a".repeat(100_000));
    let started = Instant::now();
    check(tree.glob(&format!("{}b", "*a".repeat(400))), true, &["no file"]);
    check(tree.glob(&format!("{}b", "**/".repeat(400))), true, &["no file"]);
    let nested = tree.glob(&format!("{}b", "{a,aa}".repeat(200)));
    assert!(nested.is_ok() || nested.unwrap_err().contains("cannot be used"));
    check(tree.grep("(a*)*b"), true, &["no match"]);
    check(tree.grep("(a|aa)+$x"), true, &["no match"]);
    println!("pathological patterns: {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_search_that_takes_too_long_is_cut_off_and_says_so() {
    let mut tree = sample();
    tree.caps.time = Duration::ZERO;
    check(tree.glob("**"), true, &["cut off after 0ns: there may be more"]);
    check(tree.grep("needle"), true, &["cut off after 0ns"]);
    let one = Grep { pattern: "needle".to_owned(), path: Some("keep.log".to_owned()), ..Grep::default() };
    check(tree.grep_with(&one), true, &["cut off after 0ns"]);
}

#[test]
fn a_tree_deeper_than_is_gone_down_says_so() {
    let mut tree = Tree::new();
    tree.put(&format!("{}f", "d/".repeat(40)), "needle");
    check(tree.glob("f"), true, &[&format!("{}f\n", "d/".repeat(40))]);
    tree.caps.depth = 10;
    check(tree.glob("f"), true, &["1 directory is more than 10 levels down"]);
}

#[test]
fn a_line_longer_than_is_held_is_noted_and_the_search_goes_on() {
    let mut tree = Tree::new();
    tree.caps.search_bytes = 100_000;
    tree.put("a", vec![b'x'; 1 << 20]);
    tree.put("b", "needle\n");
    check(tree.grep("needle"), true, &["b\n     1: needle\n", "could not be searched to the end", "`a`"]);
}

#[test]
fn ten_thousand_files_are_searched_in_order_and_the_time_is_printed() {
    let tree = Tree::new();
    for directory in 0..100 {
        fs::create_dir(tree.path(&format!("{directory:02}"))).unwrap();
        for file in 0..100 {
            fs::write(
                tree.path(&format!("{directory:02}/{file:02}.txt")),
                format!("line\nneedle {file}\nline\n"),
            )
            .unwrap();
        }
    }
    let started = Instant::now();
    check(tree.glob("**/07.txt"), true, &["00/07.txt\n01/07.txt\n", "99/07.txt\n"]);
    let globbed = started.elapsed();
    let started = Instant::now();
    let call = Grep { pattern: r"needle 42\b".to_owned(), mode: Mode::Files, ..Grep::default() };
    let text = tree.grep_with(&call).unwrap();
    println!("10,000 files: glob {globbed:?}, grep {:?}", started.elapsed());
    assert_eq!(text.lines().count(), 100);
    assert!(text.lines().is_sorted());
}
