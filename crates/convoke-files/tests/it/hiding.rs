//! What is hidden in a tree is neither read nor written nor found, by whatever way it is reached.

use std::path::PathBuf;

use convoke_files::{Caps, Edit, Glob, Grep, Mode, edit, glob, grep};

use crate::tree::{SHOWN, Tree, root_of};

fn tree() -> Tree {
    let tree = Tree::new();
    let files = [
        ("a.txt", "plain secret\n"),
        (".cargo/credentials", "secret\n"),
        (".cargo/config", "open\n"),
        ("keys/deep/one", "secret\n"),
    ];
    for (name, text) in files {
        std::fs::create_dir_all(tree.path(name).parent().unwrap()).unwrap();
        std::fs::write(tree.path(name), text).unwrap();
    }
    std::os::unix::fs::symlink(".cargo", tree.path("link")).unwrap();
    std::os::unix::fs::symlink("keys/deep/one", tree.path("straight")).unwrap();
    tree
}

fn hidden() -> Vec<PathBuf> {
    vec![".cargo/credentials".into(), "keys".into()]
}

#[test]
fn hidden_files_are_not_shown_or_changed_through_any_name() {
    let tree = tree();
    let root = root_of(&tree.path("")).hiding(hidden());
    for path in [
        ".cargo/credentials",
        "./.cargo/../.cargo/credentials",
        "link/credentials",
        "keys/deep/one",
        "keys",
        "straight",
        "keys/new",
        &format!("{SHOWN}/.cargo/credentials"),
    ] {
        let view = Edit::View { path: path.to_owned(), range: None };
        let create = Edit::Create { path: path.to_owned(), text: "mine".to_owned() };
        for edit_of in [view, create] {
            let refused = edit(&root, &edit_of, &Caps::default()).unwrap_err().to_string();
            assert!(refused.contains("hidden from agents"), "{path}: {refused}");
        }
    }
    assert_eq!(std::fs::read_to_string(tree.path(".cargo/credentials")).unwrap(), "secret\n");
    let open = Edit::View { path: "link/config".to_owned(), range: None };
    assert!(edit(&root, &open, &Caps::default()).unwrap().text.contains("open"));
}

#[test]
fn hidden_files_are_not_found() {
    let tree = tree();
    let root = root_of(&tree.path("")).hiding(hidden());
    for path in [None, Some("link".to_owned()), Some(".cargo".to_owned())] {
        let found = grep(
            &root,
            &Grep {
                pattern: "secret".into(),
                path: path.clone(),
                all: true,
                mode: Mode::Files,
                ..Grep::default()
            },
            &Caps::default(),
        );
        let text = found.unwrap().text;
        assert!(!text.contains("credentials") && !text.contains("keys"), "{path:?}: {text}");
        let listed = glob(
            &root,
            &Glob { pattern: "**/*".into(), path, all: true, ..Glob::default() },
            &Caps::default(),
        );
        let text = listed.unwrap().text;
        assert!(!text.contains("credentials") && !text.contains("deep"), "{text}");
    }
}

#[test]
fn a_real_path_is_told_through_links_and_dots() {
    let tree = tree();
    let root = root_of(&tree.path(""));
    for (said, real) in
        [("link/config", ".cargo/config"), ("keys/../a.txt", "a.txt"), ("new/file", "new/file")]
    {
        assert_eq!(root.real_path(said).unwrap(), PathBuf::from(real));
    }
}
