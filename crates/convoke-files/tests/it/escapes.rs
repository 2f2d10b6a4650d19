//! Ways out of a tree, none of which leads anywhere.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use convoke_files::{Caps, Edit, Grep, Root};
use rustix::fs::{CWD, FileType, Mode};

use crate::tree::{SECRET, SHOWN, Tree, check, root_of};

/// Every tool that takes a path refuses this one, and neither reads nor writes what lies outside.
fn check_refused(tree: &Tree, path: &str, part: &str) {
    let below =
        |path: &str| Grep { pattern: "secret".to_owned(), path: Some(path.to_owned()), ..Grep::default() };
    let outcomes = [
        tree.view(path),
        tree.create(path, "written from inside"),
        tree.replace(path, "secret", "x"),
        tree.insert(path, 0, "x\n"),
        tree.grep_with(&below(path)),
    ];
    for outcome in outcomes {
        check(outcome, false, &[part]);
    }
    tree.assert_outside_is_as_it_was();
}

#[test]
fn paths_that_lead_outside_are_refused_and_the_refusal_names_the_tree() {
    for tree in Tree::both() {
        fs::create_dir(tree.path("d")).unwrap();
        for path in [
            "../outside/secret",
            "d/../../outside/secret",
            "/etc/passwd",
            "/",
            "d/../..",
            "../tree/d/x",
            &format!("{SHOWN}/../x"),
            &format!("{SHOWN}2/x"),
        ] {
            check_refused(&tree, path, "outside the tree");
            check(tree.view(path), false, &[&format!("Reachable is what lies below `{SHOWN}`")]);
        }
    }
}

#[test]
fn links_that_lead_outside_are_not_followed() {
    for tree in Tree::both() {
        fs::create_dir(tree.path("d")).unwrap();
        symlink("../outside", tree.path("relative")).unwrap();
        symlink("../../outside/secret", tree.path("d/file")).unwrap();
        symlink(tree.outside("secret"), tree.path("absolute")).unwrap();
        symlink(tree.outside("new"), tree.path("dangling")).unwrap();
        symlink("../outside/new", tree.path("dangling_relative")).unwrap();
        symlink("relative/secret", tree.path("chained")).unwrap();
        for path in [
            "relative/secret",
            "relative/new",
            "d/file",
            "absolute",
            "dangling",
            "dangling_relative",
            "chained",
            "d/../relative/secret",
        ] {
            check_refused(&tree, path, "outside the tree");
        }
        check(tree.grep("secret"), true, &["no match"]);
        check(
            tree.grep_with(&Grep { pattern: "secret".to_owned(), all: true, ..Grep::default() }),
            true,
            &["no match"],
        );
        check(tree.glob("**/secret"), true, &["no file"]);
        symlink("round", tree.path("round")).unwrap();
        check_refused(&tree, "round", "too many links");
    }
}

#[test]
fn the_links_of_proc_lead_nowhere() {
    for root in [root_of(Path::new("/proc/self")), root_of(Path::new("/proc/self")).by_walking()] {
        for path in ["root/etc/hostname", "cwd/Cargo.toml", "root", "exe", "../self/root/etc/hostname"] {
            let view = Edit::View { path: path.to_owned(), range: None };
            convoke_files::edit(&root, &view, &Caps::default()).unwrap_err();
            let create = Edit::Create { path: path.to_owned(), text: "x".to_owned() };
            convoke_files::edit(&root, &create, &Caps::default()).unwrap_err();
        }
    }
    for tree in Tree::both() {
        symlink("/proc/self/root", tree.path("root")).unwrap();
        symlink("/proc/self/cwd", tree.path("cwd")).unwrap();
        for path in ["root/etc/hostname", "cwd/Cargo.toml", "root", "cwd"] {
            check_refused(&tree, path, "outside the tree");
        }
    }
}

#[test]
fn a_write_to_a_hard_link_leaves_its_other_names_alone() {
    let tree = Tree::new();
    fs::hard_link(tree.outside("secret"), tree.path("linked")).unwrap();
    for (number, outcome) in [
        tree.replace("linked", "secret", "text"),
        tree.insert("linked", 0, "top\n"),
        tree.create("linked", "all new"),
    ]
    .into_iter()
    .enumerate()
    {
        // The first edit makes it a file of its own, so later ones have nothing to say about links.
        check(
            outcome,
            true,
            if number == 0 { &["1 other name (hard links)", "keep the old content"] } else { &[] },
        );
        tree.assert_outside_is_as_it_was();
    }
    assert_eq!(tree.get("linked"), b"all new");
    assert_eq!(fs::metadata(tree.outside("secret")).unwrap().nlink(), 1);
}

#[test]
fn fifos_sockets_and_devices_are_refused_at_once() {
    for tree in Tree::both() {
        rustix::fs::mknodat(CWD, tree.path("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        symlink("fifo", tree.path("link")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(tree.path("socket")).unwrap();
        let (sender, receiver) = mpsc::channel();
        let worker = thread::spawn(move || {
            for path in ["fifo", "link"] {
                check_refused(&tree, path, "a fifo; the file tools take regular files");
            }
            check_refused(&tree, "socket", "a socket");
            check(tree.grep("x"), true, &["no match", "0 files searched"]);
            check(tree.glob("*"), true, &["fifo\nlink\nsocket\n"]);
            check(tree.view("."), true, &["fifo (no regular file)"]);
            sender.send(()).unwrap();
        });
        receiver.recv_timeout(Duration::from_secs(60)).expect("nothing waits for the other end of a fifo");
        worker.join().unwrap();
        drop(socket);
    }
    let devices = root_of(Path::new("/dev"));
    for path in ["null", "zero", "full"] {
        let refused = convoke_files::edit(
            &devices,
            &Edit::View { path: path.to_owned(), range: None },
            &Caps::default(),
        )
        .unwrap_err();
        assert!(refused.to_string().contains("a device"), "{refused}");
        let refused = convoke_files::edit(
            &devices,
            &Edit::Create { path: path.to_owned(), text: "x".to_owned() },
            &Caps::default(),
        );
        assert!(refused.unwrap_err().to_string().contains("a device"));
    }
}

#[test]
fn a_tree_is_its_handle_wherever_it_is_moved() {
    for tree in Tree::both() {
        tree.put("a", "inside");
        let moved = tree.outside("../moved");
        fs::rename(tree.path(""), &moved).unwrap();
        // What stands where the tree stood is not the tree.
        fs::create_dir(tree.path("")).unwrap();
        tree.put("a", "an impostor");
        check(tree.view("a"), true, &["inside"]);
        check(tree.replace("a", "inside", "edited"), true, &[]);
        assert_eq!(fs::read(moved.join("a")).unwrap(), b"edited");
        assert_eq!(tree.get("a"), b"an impostor");
    }
}

#[test]
fn a_directory_that_was_moved_out_of_the_tree_is_not_reached_any_more() {
    for tree in Tree::both() {
        tree.put("d/f", "inside");
        fs::rename(tree.path("d"), tree.outside("../gone")).unwrap();
        check(tree.view("d/f"), false, &["does not exist"]);
        check(tree.replace("d/f", "inside", "x"), false, &["does not exist"]);
        assert_eq!(fs::read(tree.outside("../gone/f")).unwrap(), b"inside");
        symlink("../gone", tree.path("d")).unwrap();
        check_refused(&tree, "d/f", "outside the tree");
    }
}

#[test]
fn names_cannot_forge_lines_of_an_answer() {
    let tree = Tree::new();
    tree.put("a\nforged: 1", "needle");
    check(tree.glob("**"), true, &["a\\nforged: 1\n"]);
    check(tree.grep("needle"), true, &["a\\nforged: 1\n     1: needle"]);
    check(tree.view("."), true, &["a\\nforged: 1  6 bytes"]);
}

#[test]
fn rules_for_ignoring_are_not_read_through_links() {
    let tree = Tree::new();
    fs::write(tree.outside("secret"), "*.rs\n").unwrap();
    symlink(tree.outside("secret"), tree.path(".gitignore")).unwrap();
    tree.put("a.rs", "");
    check(tree.glob("*.rs"), true, &["a.rs\n"]);
    fs::write(tree.outside("secret"), SECRET).unwrap();
}

#[test]
fn a_handle_that_is_no_directory_refuses_everything() {
    let tree = Tree::new();
    tree.put("f", "x");
    let file = fs::File::open(tree.path("f")).unwrap();
    let root =
        Root::new(file.into(), SHOWN.into(), convoke_files::Protected { writing: true, names: Vec::new() });
    for call in [
        Edit::View { path: "f".to_owned(), range: None },
        Edit::View { path: ".".to_owned(), range: None },
        Edit::Create { path: "g".to_owned(), text: "x".to_owned() },
    ] {
        convoke_files::edit(&root, &call, &Caps::default()).unwrap_err();
    }
    assert_eq!(fs::read_dir(tree.path("")).unwrap().count(), 1);
}
