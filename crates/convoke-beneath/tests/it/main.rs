//! What is opened and written beneath a handle, and what is refused.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod races;
mod reading;
mod removing;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use convoke_beneath::Dir;
use tempfile::TempDir;

/// A tree with a file, a directory and a secret beside it, and the tree's handle.
struct Setting {
    dir: Dir,
    tree: PathBuf,
    /// A directory outside of the tree, with a file `key`.
    out: PathBuf,
    _place: TempDir,
}

fn setting() -> Setting {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().canonicalize().unwrap();
    let tree = top.join("tree");
    let out = top.join("out");
    fs::create_dir_all(tree.join("real")).unwrap();
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("key"), "secret").unwrap();
    fs::write(tree.join("real/key"), "open").unwrap();
    Setting { dir: Dir::open(&tree).unwrap(), tree, out, _place: place }
}

fn mkfifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The names in a directory, which hold nothing that a write left behind.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
