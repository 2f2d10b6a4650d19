//! What `view` shows.

use std::fs;
use std::io::Write;
use std::time::Instant;

use convoke_files::Edit;

use crate::tree::{SHOWN, Tree, check};

#[test]
fn a_file_is_shown_with_numbered_lines() {
    let tree = Tree::new();
    tree.put("a.txt", "one\ntwo\n");
    assert_eq!(tree.view("a.txt").unwrap(), "     1\tone\n     2\ttwo\n");
    assert_eq!(tree.view(&format!("{SHOWN}/a.txt")).unwrap(), "     1\tone\n     2\ttwo\n");
    assert_eq!(tree.view("./a.txt").unwrap(), "     1\tone\n     2\ttwo\n");
}

#[test]
fn a_range_shows_only_its_lines_and_minus_one_is_the_end() {
    let tree = Tree::new();
    tree.put("a", "1\n2\n3\n4\n");
    assert_eq!(tree.view_range("a", 2, 3).unwrap(), "     2\t2\n     3\t3\n[lines 2 to 3 of 4 (8 bytes)]\n");
    assert_eq!(tree.view_range("a", 3, -1).unwrap(), "     3\t3\n     4\t4\n[lines 3 to 4 of 4 (8 bytes)]\n");
    assert_eq!(tree.view_range("a", 4, 99).unwrap(), "     4\t4\n[lines 4 to 4 of 4 (8 bytes)]\n");
    check(tree.view_range("a", 0, 2), false, &["counted from 1"]);
    check(tree.view_range("a", 3, 2), false, &["at or after the first one, or -1"]);
    check(tree.view_range("a", 2, -2), false, &["-1 for the end"]);
    check(tree.view_range("a", 5, -1), false, &["`a` has 4 lines", "begins at 5"]);
}

#[test]
fn a_file_that_does_not_fit_says_how_to_go_on_and_paging_shows_every_line_once() {
    let mut tree = Tree::new();
    tree.caps.view_chars = 600;
    let lines: Vec<String> = (1..=100).map(|number| format!("line {number}")).collect();
    tree.put("a", lines.join("\n"));
    let mut seen = Vec::new();
    let mut next = 1;
    while next <= 100 {
        let page = tree.view_range("a", next, -1).unwrap();
        let numbers: Vec<i64> =
            page.lines().filter_map(|line| line.split_once('\t')?.0.trim().parse().ok()).collect();
        assert!(page.contains("go on with view_range [") || numbers.last() == Some(&100), "{page}");
        next = numbers.last().unwrap() + 1;
        seen.extend(numbers);
    }
    assert_eq!(seen, (1..=100).collect::<Vec<i64>>());
}

#[test]
fn a_long_line_is_cut_and_says_so() {
    let mut tree = Tree::new();
    tree.caps.line_chars = 10;
    tree.put("a", "x".repeat(25));
    check(tree.view("a"), true, &["     1\txxxxxxxxxx… [+15 characters]\n"]);
}

#[test]
fn encodings_and_endings_that_are_not_the_usual_ones_are_named() {
    let tree = Tree::new();
    tree.put("empty", "");
    tree.put("crlf", "a\r\nb\r\n");
    tree.put("mark", b"\xef\xbb\xbfa\n");
    tree.put("wide", b"\xff\xfea\0\r\0\n\0");
    tree.put("latin", b"caf\xe9\n");
    tree.put("open", "a\nb");
    tree.put("mac", "a\rb\r");
    check(tree.view("empty"), true, &["[the file is empty]"]);
    check(tree.view("crlf"), true, &["     1\ta\n     2\tb\n[lines end in CRLF]\n"]);
    check(tree.view("mark"), true, &["     1\ta\n[UTF-8 with a byte-order mark]\n"]);
    check(tree.view("wide"), true, &["     1\ta\n[UTF-16, little-endian; lines end in CRLF]\n"]);
    check(tree.view("latin"), true, &["     1\tcafé\n", "read as Latin-1"]);
    check(tree.view("open"), true, &["[no newline at the end]"]);
    check(tree.view("mac"), true, &["     1\ta\n     2\tb\n[lines end in CR]"]);
}

#[test]
fn what_is_no_text_is_named_and_not_shown() {
    let tree = Tree::new();
    tree.put("p.png", b"\x89PNG\r\n\x1a\n....");
    tree.put("b", b"a\0b");
    check(tree.view("p.png"), true, &["is an image (PNG) of 12 bytes", "text only"]);
    check(tree.view("b"), true, &["is a binary file of 3 bytes"]);
    check(tree.replace("b", "a", "c"), false, &["`b` is a binary file", "Nothing was changed"]);
    assert_eq!(tree.get("b"), b"a\0b");
}

#[test]
fn a_directory_is_listed_two_levels_deep_without_what_is_hidden_or_ignored() {
    let tree = Tree::new();
    tree.put(".gitignore", "target/\n*.log\n");
    tree.put("src/main.rs", "x".repeat(2048));
    tree.put("src/deep/further.rs", "");
    tree.put("target/debug/x", "");
    tree.put("a.log", "");
    tree.put("README", "hi");
    std::os::unix::fs::symlink("README", tree.path("link")).unwrap();
    assert_eq!(
        tree.view(".").unwrap(),
        "`.`, two levels deep:\nREADME  2 bytes\nlink -> README\nsrc/\nsrc/deep/\nsrc/main.rs  2.0 KiB\n[3 \
            hidden or ignored]\n"
    );
    check(tree.view("src"), true, &["src/deep/further.rs  0 bytes"]);
    check(tree.view("target"), true, &["target/debug/"]);
    check(tree.view_range(".", 1, 2), false, &["a directory", "without view_range"]);
}

#[test]
fn a_large_directory_is_listed_in_part_and_says_how_much_is_missing() {
    let mut tree = Tree::new();
    for number in 0..80 {
        tree.put(&format!("many/{number:02}"), "");
    }
    tree.put("z", "");
    check(tree.view("."), true, &["many/49", "  … 30 more here\nz  0 bytes"]);
    tree.caps.results = 10;
    check(tree.view("many"), true, &["many/09", "[70 more not listed"]);
}

#[test]
fn a_file_of_a_hundred_megabytes_is_paged_searched_and_not_edited() {
    let tree = Tree::new();
    let mut file = std::io::BufWriter::new(fs::File::create(tree.path("big")).unwrap());
    for number in 1..=2_000_000 {
        writeln!(file, "line {number:07} {:-<40}", "").unwrap();
    }
    drop(file);
    let size = fs::metadata(tree.path("big")).unwrap().len();
    assert!(size >= 100 << 20);
    let started = Instant::now();
    check(
        tree.view("big"),
        true,
        &["     1\tline 0000001", "go on with view_range [", "of 2000000 (102.", ", 2000000]"],
    );
    let viewed = started.elapsed();
    check(
        tree.view_range("big", 1_999_999, -1),
        true,
        &["1999999\tline 1999999", "2000000\tline 2000000", "lines 1999999 to 2000000"],
    );
    check(tree.view_range("big", 2_000_001, -1), false, &["has 2000000 lines"]);
    let started = Instant::now();
    check(tree.grep("line 1500000 "), true, &["big\n1500000: line 1500000"]);
    println!("view of {size} bytes: {viewed:?}; grep: {:?}", started.elapsed());
    check(
        tree.replace("big", "line 0000001", "x"),
        false,
        &["102.", "more than the 16.0 MiB", "with a command"],
    );
    fs::File::create(tree.path("zeros")).unwrap().set_len(100 << 20).unwrap();
    check(tree.view("zeros"), true, &["is a binary file of 100.0 MiB"]);
    check(tree.create("zeros", "small\n"), true, &["overwrote `zeros`: it has 1 line, was 100.0 MiB"]);
}

#[test]
fn the_declared_input_of_the_tool_is_read_as_it_comes() {
    let read = |json: &str| serde_json::from_str::<Edit>(json).unwrap();
    let path = || "a".to_owned();
    assert_eq!(read(r#"{"command":"view","path":"a"}"#), Edit::View { path: path(), range: None });
    assert_eq!(
        read(r#"{"command":"view","path":"a","view_range":[2,-1]}"#),
        Edit::View { path: path(), range: Some((2, -1)) }
    );
    assert_eq!(
        read(r#"{"command":"create","path":"a","file_text":"t"}"#),
        Edit::Create { path: path(), text: "t".to_owned() }
    );
    assert_eq!(
        read(r#"{"command":"str_replace","path":"a","old_str":"t"}"#),
        Edit::Replace { path: path(), old: "t".to_owned(), new: String::new() }
    );
    assert_eq!(
        read(r#"{"command":"insert","path":"a","insert_line":0,"insert_text":"t"}"#),
        Edit::Insert { path: path(), line: 0, text: "t".to_owned() }
    );
}
