//! A repository of a person's, for the tests of worktrees: made afresh, with its own state directory beside
//! it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_trees::{Finished, HostPlaces, Worktree, Worktrees};

use crate::world::like_commands;

/// Every file below a directory, but what git keeps there: its content, or the target of a link, and whether
/// it runs.
pub(crate) type Files = BTreeMap<PathBuf, (Vec<u8>, bool)>;

pub(crate) const RUN: &str = "wf_1";

pub(crate) struct Repo {
    pub(crate) root: PathBuf,
    pub(crate) top: PathBuf,
    _dir: tempfile::TempDir,
}

impl Repo {
    /// With one commit of a few files.
    pub(crate) fn new() -> Self {
        Self::with(&["init", "-q", "-b", "main"])
    }

    pub(crate) fn with(init: &[&str]) -> Self {
        let repo = Self::empty(init);
        for (name, text) in [
            ("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            ("b", "b\n"),
            ("sub/c", "c\n"),
            (".gitignore", "target/\n*.o\n"),
        ] {
            repo.write(name, text);
        }
        repo.commit("first");
        repo
    }

    pub(crate) fn empty(init: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let top = root.join("repo");
        fs::create_dir(&top).unwrap();
        let repo = Self { root, top, _dir: dir };
        repo.git(init);
        repo
    }

    pub(crate) fn places(&self) -> HostPlaces {
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        HostPlaces { path, state: self.root.join("state"), sight: like_commands() }
    }

    pub(crate) async fn worktrees(&self) -> Worktrees {
        Worktrees::open(self.places(), &self.top).await.unwrap()
    }

    pub(crate) async fn create(&self, agent: &str) -> Worktree {
        self.worktrees().await.create(RUN, agent).await.unwrap()
    }

    pub(crate) async fn finish(&self, agent: &str) -> Finished {
        self.worktrees().await.finish(RUN, agent).await.unwrap()
    }

    pub(crate) fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        git_in(&self.top, args)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        write(&self.top, name, text);
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// All that is the person's: files, index, HEAD, logs of refs, and refs but ours.
    pub(crate) fn person(&self) -> (Files, Vec<u8>, String, Files) {
        let refs = self.git(&["for-each-ref"]);
        let ours = |line: &str| line.contains("refs/convoke/") || line.contains("refs/heads/convoke/");
        let refs: String = refs.lines().filter(|line| !ours(line)).collect();
        let head = fs::read_to_string(self.top.join(".git/HEAD")).unwrap();
        let index = fs::read(self.top.join(".git/index")).unwrap();
        (files(&self.top), index, refs + &head, files(&self.top.join(".git/logs")))
    }
}

pub(crate) fn git_in<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> String {
    let mut git = Command::new("git");
    for name in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{name}_NAME"), "person")
            .env(format!("GIT_{name}_EMAIL"), "person@example.invalid");
    }
    let git =
        git.args(args).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.output().unwrap();
    let args: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn write(top: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = top.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn files(top: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if entry.file_name() == ".git" {
                continue;
            }
            if kind.is_dir() {
                open.push(path);
                continue;
            }
            let content = if kind.is_symlink() {
                (fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(), false)
            } else {
                (fs::read(&path).unwrap(), entry.metadata().unwrap().permissions().mode() & 0o100 != 0)
            };
            found.insert(path.strip_prefix(top).unwrap().to_owned(), content);
        }
    }
    found
}

/// The names of files, for comparing.
pub(crate) fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}
