//! What `create`, `str_replace` and `insert` write, and what they leave alone.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use convoke_files::{Change, Edit, Protected, Root};

use crate::tree::{SHOWN, Tree, check, handle};

#[test]
fn create_makes_the_file_and_the_directories_above_it() {
    for tree in Tree::both() {
        let call = Edit::Create { path: format!("{SHOWN}/a/b/c.txt"), text: "one\ntwo\n".to_owned() };
        let done = tree.edit(&call).unwrap();
        assert_eq!(done.changed, Some(Change { path: PathBuf::from("a/b/c.txt"), created: true }));
        assert!(
            done.text.starts_with(&format!("created `{SHOWN}/a/b/c.txt` with 2 lines.")),
            "{}",
            done.text
        );
        assert_eq!(tree.get("a/b/c.txt"), b"one\ntwo\n");
        tree.assert_nothing_is_left_over("a/b");
    }
}

#[test]
fn create_overwrites_keeps_the_mode_and_says_what_was_there() {
    let tree = Tree::new();
    tree.put("run.sh", "#!/bin/sh\r\nexit 1\r\n");
    fs::set_permissions(tree.path("run.sh"), fs::Permissions::from_mode(0o751)).unwrap();
    let done =
        tree.edit(&Edit::Create { path: "run.sh".to_owned(), text: "#!/bin/sh\n".to_owned() }).unwrap();
    assert_eq!(done.changed, Some(Change { path: PathBuf::from("run.sh"), created: false }));
    check(
        Ok(done.text),
        true,
        &["overwrote `run.sh`: it has 1 line, was 2 lines.", "end in LF now, they ended in CRLF"],
    );
    assert_eq!(fs::metadata(tree.path("run.sh")).unwrap().mode() & 0o7777, 0o751);
    check(tree.create("run.sh", "#!/bin/sh\n"), true, &["already has exactly this content"]);
    check(tree.create("new/", "x"), false, &["ends in a slash"]);
    check(tree.create("run.sh/x", "x"), false, &["no directory"]);
}

#[test]
fn set_id_bits_do_not_survive_a_write() {
    let tree = Tree::new();
    tree.put("tool", "old\n");
    fs::set_permissions(tree.path("tool"), fs::Permissions::from_mode(0o6755)).unwrap();
    tree.replace("tool", "old", "new").unwrap();
    assert_eq!(fs::metadata(tree.path("tool")).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn replace_changes_the_one_place_and_shows_it() {
    for tree in Tree::both() {
        tree.put("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        let text = tree.replace("a", "5", "five\nfünf").unwrap();
        assert_eq!(
            text,
            "edited `a` at line 5; it now reads:\n     2\t2\n     3\t3\n     4\t4\n     5\tfive\n     \
                6\tfünf\n     7\t6\n     8\t7\n     9\t8\n"
        );
        assert_eq!(tree.get("a"), "1\n2\n3\n4\nfive\nfünf\n6\n7\n8\n9\n".as_bytes());
    }
}

#[test]
fn replace_refuses_what_is_not_there_once() {
    let tree = Tree::new();
    tree.put("a", "x = 1\n\tif x:\nx = 1\n");
    check(
        tree.replace("a", "x = 1", "y"),
        false,
        &["in `a` 2 times, beginning at lines 1, 3", "until it is unique"],
    );
    check(
        tree.replace("a", "    if x:", "y"),
        false,
        &["old_str is not in `a`: only spaces and tabs differ at line 2"],
    );
    check(tree.replace("a", "", "y"), false, &["old_str is empty"]);
    check(tree.replace("a", "x", "x"), false, &["nothing would change"]);
    check(tree.replace("A", "x", "y"), false, &["`A` does not exist", "`.` holds `a`: check the spelling"]);
    assert_eq!(tree.get("a"), b"x = 1\n\tif x:\nx = 1\n");
}

#[test]
fn lines_are_inserted_at_the_top_between_and_at_the_end() {
    let cases: [(&str, u64, &str, &str); 9] = [
        ("a\nb\n", 0, "x\n", "x\na\nb\n"),
        ("a\nb\n", 1, "x", "a\nx\nb\n"),
        ("a\nb\n", 2, "x", "a\nb\nx\n"),
        ("a\nb", 2, "x", "a\nb\nx"),
        ("a\nb", 2, "x\n", "a\nb\nx"),
        ("a\r\nb\r\n", 1, "x\ny\n", "a\r\nx\r\ny\r\nb\r\n"),
        ("a\rb\r", 1, "x\n", "a\rx\rb\r"),
        ("", 0, "x", "x"),
        ("a\nb\r\nc\r\n", 1, "x", "a\nx\r\nb\r\nc\r\n"),
    ];
    let tree = Tree::new();
    for (before, line, text, after) in cases {
        tree.put("a", before);
        tree.insert("a", line, text).unwrap();
        assert_eq!(String::from_utf8(tree.get("a")).unwrap(), after, "{before:?} {line} {text:?}");
    }
    tree.put("a", "1\n2\n");
    check(tree.insert("a", 3, "x"), false, &["has 2 lines", "0 (the top) to 2 (the end), not 3"]);
    check(tree.insert("a", 1, ""), false, &["nothing would change"]);
    check(tree.insert("b", 0, "x"), false, &["`b` does not exist"]);
    assert_eq!(
        tree.insert("a", 1, "x").unwrap(),
        "inserted 1 line after line 1 of `a`; it now reads:\n     1\t1\n     2\tx\n     3\t2\n"
    );
}

#[test]
fn every_encoding_keeps_its_untouched_bytes() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let cases: [(Vec<u8>, Vec<u8>); 5] = [
        (b"\xef\xbb\xbfa old b\r\n\xc3\xa9".to_vec(), "\u{feff}a né\r\nw b\r\né".as_bytes().to_vec()),
        (
            [vec![0xff, 0xfe], wide("ä old b\n😀")].concat(),
            [vec![0xff, 0xfe], wide("ä né\nw b\n😀")].concat(),
        ),
        (b"caf\xe9 old \xff\n".to_vec(), b"caf\xe9 n\xe9\nw \xff\n".to_vec()),
        (b"\xe9 old \xc3\xa9 \x80".to_vec(), b"\xe9 n\xc3\xa9\nw \xc3\xa9 \x80".to_vec()),
        (b"old".to_vec(), "né\nw".as_bytes().to_vec()),
    ];
    let tree = Tree::new();
    for (before, after) in cases {
        tree.put("a", &before);
        tree.replace("a", "old", "né\nw").unwrap();
        assert_eq!(tree.get("a"), after, "{before:x?}");
    }
    tree.put("a", b"caf\xe9\n");
    check(tree.replace("a", "caf", "日"), false, &["written in Latin-1, which has no `日`"]);
    check(tree.replace("a", "café", "thé"), true, &["thé"]);
    assert_eq!(tree.get("a"), b"th\xe9\n");
}

#[test]
fn bytes_around_an_edit_are_the_same_for_every_mixture_of_endings_and_encodings() {
    let tree = Tree::new();
    let mut seed = 7_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let pieces: [&[u8]; 8] =
        [b"\n", b"\r\n", b"\r", b"text", b"\xe9", b"\xc3\xa9", b"\t ", b"\xf0\x9f\x98\x80"];
    for _ in 0..300 {
        let mut some = || (0..next(9)).flat_map(|_| pieces[next(8)].to_vec()).collect::<Vec<u8>>();
        let before = some();
        let after = some();
        tree.put("a", [before.clone(), b"<needle>".to_vec(), after.clone()].concat());
        tree.replace("a", "<needle>", "<other>").unwrap();
        assert_eq!(tree.get("a"), [before, b"<other>".to_vec(), after].concat());
    }
}

#[test]
fn a_write_through_a_link_within_the_tree_replaces_the_real_file_and_says_so() {
    for tree in Tree::both() {
        tree.put("real/f", "old\n");
        std::os::unix::fs::symlink("real", tree.path("dir")).unwrap();
        std::os::unix::fs::symlink("../real/f", tree.path("real/link")).unwrap();
        for path in ["dir/f", "real/link", "dir/link", "dir/../real/f"] {
            tree.put("real/f", "old\n");
            let done = tree
                .edit(&Edit::Replace { path: path.to_owned(), old: "old".to_owned(), new: "new".to_owned() })
                .unwrap();
            assert_eq!(done.changed.unwrap().path, PathBuf::from("real/f"), "{path}");
            assert!(done.text.contains("[the file written is `real/f`]"), "{}", done.text);
            assert_eq!(tree.get("real/f"), b"new\n");
        }
        assert!(fs::symlink_metadata(tree.path("real/link")).unwrap().is_symlink());
        std::os::unix::fs::symlink("made/here", tree.path("dangling")).unwrap();
        tree.create("dangling", "x").unwrap();
        assert_eq!(tree.get("made/here"), b"x");
    }
}

#[test]
fn an_agent_that_only_reads_writes_nothing_and_is_told_so() {
    let tree = Tree::new();
    tree.put("a", "old");
    let root =
        Root::new(handle(&tree.path("")), SHOWN.into(), Protected { writing: false, names: Vec::new() });
    for call in [
        Edit::Create { path: "b".to_owned(), text: "x".to_owned() },
        Edit::Replace { path: "a".to_owned(), old: "old".to_owned(), new: "new".to_owned() },
        Edit::Insert { path: "a".to_owned(), line: 0, text: "x".to_owned() },
    ] {
        assert!(call.writes());
        let refused = convoke_files::edit(&root, &call, &tree.caps).unwrap_err().to_string();
        assert!(refused.contains("only reads") && refused.contains(SHOWN), "{refused}");
    }
    assert_eq!(tree.get("a"), b"old");
    assert!(!tree.path("b").exists());
}

#[test]
fn what_is_guarded_is_read_and_not_written_whether_it_is_there_or_not() {
    let tree = Tree::new();
    tree.put(".husky/_/pre-commit", "old");
    std::os::unix::fs::symlink(".husky/_", tree.path("way")).unwrap();
    let protected = Protected { writing: true, names: Vec::new() };
    let root = Root::new(handle(&tree.path("")), SHOWN.into(), protected);
    let root = root.guarding(vec![".husky/_".into(), "included".into()]);
    for path in [".husky/_/pre-commit", ".husky/_/new", "way/new", "included", "included/x"] {
        let call = Edit::Create { path: path.to_owned(), text: "x".to_owned() };
        let refused = convoke_files::edit(&root, &call, &tree.caps).unwrap_err().to_string();
        assert!(refused.contains("never write"), "{path}: {refused}");
    }
    assert_eq!(tree.get(".husky/_/pre-commit"), b"old");
    let beside = Edit::Create { path: ".husky/other".to_owned(), text: "x".to_owned() };
    convoke_files::edit(&root, &beside, &tree.caps).unwrap();
}

#[test]
fn protected_names_are_not_written_by_whatever_way_they_are_reached() {
    for tree in Tree::both() {
        tree.put(".git/hooks/pre-commit", "old");
        tree.put("sub/.git/config", "old");
        std::os::unix::fs::symlink(".git/hooks", tree.path("innocent")).unwrap();
        std::os::unix::fs::symlink("../.git/new", tree.path("sub/dangling")).unwrap();
        for path in [
            ".git/hooks/pre-commit",
            ".git",
            ".GIT/hooks/pre-commit",
            "sub/../.git/hooks/pre-commit",
            "innocent/pre-commit",
            "innocent/new",
            "sub/dangling",
            "sub/.git/config",
            "fresh/.git/config",
            "fresh/.git",
        ] {
            check(tree.create(path, "evil"), false, &["`.git`", "never write"]);
        }
        assert_eq!(tree.get(".git/hooks/pre-commit"), b"old");
        assert_eq!(tree.get("sub/.git/config"), b"old");
        assert!(!tree.path("fresh").exists() && !tree.path(".git/new").exists());
        check(tree.view(".git/hooks/pre-commit"), true, &["old"]);
        check(tree.create(".gitignore", "x"), true, &["created"]);
    }
}

#[test]
fn a_missing_path_names_what_is_near() {
    for tree in Tree::both() {
        tree.put("src/main.rs", "");
        tree.put("src/lib.rs", "");
        check(
            tree.view("src/mian.rs"),
            false,
            &["`src/mian.rs` does not exist", "`src`; it holds `lib.rs`, `main.rs`."],
        );
        check(tree.view("nowhere/at/all"), false, &["is `.`; it holds `src`."]);
        check(tree.view("src/main.rs/x"), false, &["no directory"]);
        check(tree.view(""), false, &["it is empty"]);
        check(tree.view("a\0b"), false, &["NUL"]);
        check(tree.view(&"x".repeat(5_000)), false, &["longer than the system allows"]);
    }
}
