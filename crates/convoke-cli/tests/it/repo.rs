//! A person's repository in the directory that an agent works in, and what they see of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::Stage;

/// Every file below a directory with its content, without git's own.
pub(crate) type Files = BTreeMap<PathBuf, String>;

/// Runs git as the person would.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Me").env(format!("GIT_{role}_EMAIL"), "me@example.invalid");
    }
    let output = command.args(["-c", "init.defaultBranch=main"]).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a repository with these files in one commit.
pub(crate) fn repository(stage: &Stage, files: &[(&str, &str)]) -> PathBuf {
    let dir = stage.work();
    git(&dir, &["init", "-q"]);
    for (name, text) in files {
        write(&dir, name, text);
    }
    git(&dir, &["add", "-A"]);
    git(&dir, &["commit", "-q", "-m", "first"]);
    dir
}

pub(crate) fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap()
}

/// What lies below a directory.
pub(crate) fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap().flatten() {
            let path = entry.path();
            if entry.file_name() == ".git" {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(dir).unwrap().to_owned(), text);
            }
        }
    }
    found
}

/// The person's side of a repository: files, index, branches and stash.
pub(crate) fn standing(dir: &Path) -> (Files, String) {
    let said = [
        git(dir, &["ls-files", "--stage"]),
        git(dir, &["status", "--porcelain"]),
        git(dir, &["for-each-ref", "refs/heads/main", "refs/tags", "refs/stash"]),
    ];
    (files(dir), said.concat())
}
