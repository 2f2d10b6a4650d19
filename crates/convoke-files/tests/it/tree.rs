//! A tree to work in, with something outside of it that must stay as it is.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use convoke_files::{Caps, Done, Edit, Glob, Grep, Protected, Refused, Root, edit, glob, grep};
use rustix::fs::{CWD, Mode, OFlags};

/// The path the model knows every test's tree by. It exists nowhere, so a tool that opened it would find
/// nothing.
pub(crate) const SHOWN: &str = "/shown/to/the/model";
pub(crate) const SECRET: &str = "the secret outside";

pub(crate) struct Tree {
    outer: tempfile::TempDir,
    pub(crate) root: Root,
    pub(crate) caps: Caps,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("tree")).unwrap();
        fs::create_dir(outer.path().join("outside")).unwrap();
        fs::write(outer.path().join("outside/secret"), SECRET).unwrap();
        let root = root_of(&outer.path().join("tree"));
        Self { outer, root, caps: Caps::default() }
    }

    /// The same kind of tree where names are walked instead of resolved by the kernel.
    pub(crate) fn walked() -> Self {
        let mut tree = Self::new();
        tree.root = tree.root.by_walking();
        tree
    }

    pub(crate) fn both() -> [Self; 2] {
        [Self::new(), Self::walked()]
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join("tree").join(name)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.outer.path().join("outside").join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn edit(&self, call: &Edit) -> Result<Done, Refused> {
        edit(&self.root, call, &self.caps)
    }

    pub(crate) fn view(&self, path: &str) -> Result<String, String> {
        said(self.edit(&Edit::View { path: path.to_owned(), range: None }))
    }

    pub(crate) fn view_range(&self, path: &str, first: i64, last: i64) -> Result<String, String> {
        said(self.edit(&Edit::View { path: path.to_owned(), range: Some((first, last)) }))
    }

    pub(crate) fn create(&self, path: &str, text: &str) -> Result<String, String> {
        said(self.edit(&Edit::Create { path: path.to_owned(), text: text.to_owned() }))
    }

    pub(crate) fn replace(&self, path: &str, old: &str, new: &str) -> Result<String, String> {
        said(self.edit(&Edit::Replace { path: path.to_owned(), old: old.to_owned(), new: new.to_owned() }))
    }

    pub(crate) fn insert(&self, path: &str, line: u64, text: &str) -> Result<String, String> {
        said(self.edit(&Edit::Insert { path: path.to_owned(), line, text: text.to_owned() }))
    }

    pub(crate) fn glob(&self, pattern: &str) -> Result<String, String> {
        self.glob_with(&Glob { pattern: pattern.to_owned(), ..Glob::default() })
    }

    pub(crate) fn glob_with(&self, call: &Glob) -> Result<String, String> {
        said(glob(&self.root, call, &self.caps))
    }

    pub(crate) fn grep(&self, pattern: &str) -> Result<String, String> {
        self.grep_with(&Grep { pattern: pattern.to_owned(), ..Grep::default() })
    }

    pub(crate) fn grep_with(&self, call: &Grep) -> Result<String, String> {
        said(grep(&self.root, call, &self.caps))
    }

    /// Everything outside, which no test may change.
    pub(crate) fn assert_outside_is_as_it_was(&self) {
        let names: Vec<_> =
            fs::read_dir(self.outside("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(fs::read_to_string(self.outside("secret")).unwrap(), SECRET);
    }

    /// No temporary file is left in a directory of the tree.
    pub(crate) fn assert_nothing_is_left_over(&self, name: &str) {
        for entry in fs::read_dir(self.path(name)).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().starts_with(".convoke-"), "{name:?} is left over");
        }
    }
}

pub(crate) fn root_of(path: &Path) -> Root {
    root_at(handle(path))
}

pub(crate) fn root_at(fd: OwnedFd) -> Root {
    Root::new(fd, SHOWN.into(), Protected { writing: true, names: vec![".git".to_owned()] })
}

/// A handle that can be used for nothing but opening things beneath it.
pub(crate) fn handle(path: &Path) -> OwnedFd {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

fn said(outcome: Result<Done, Refused>) -> Result<String, String> {
    outcome.map(|done| done.text).map_err(|refused| refused.to_string())
}

/// The text of an outcome, whichever it is, must hold each of these.
pub(crate) fn check(outcome: Result<String, String>, ok: bool, parts: &[&str]) {
    assert_eq!(outcome.is_ok(), ok, "{outcome:?}");
    let text = outcome.unwrap_or_else(|refused| refused);
    for part in parts {
        assert!(text.contains(part), "{text:?} says {part:?}");
    }
}
