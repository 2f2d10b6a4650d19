//! Looks over a directory that model-written commands have filled, before git does: finds what git must not
//! be led into (nested repositories, whose configuration names programs) and what it cannot store. Follows no
//! link, opens nothing but directories and files whose mode makes it doubtful that they can be read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Error, Kind, Links};

/// What git is to be kept away from, relative to the top.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Directories with a `.git` of their own, and entries called `.git` in another case.
    pub(super) nested: Vec<PathBuf>,
    /// Files and directories that cannot be read, sockets, pipes, devices.
    pub(super) unstorable: Vec<PathBuf>,
}

impl Scan {
    /// Everything that git is kept away from.
    pub(super) fn left_out(&self) -> impl Iterator<Item = &PathBuf> {
        self.nested.iter().chain(&self.unstorable)
    }
}

/// Walks everything below `top`, whose own `.git` is not looked at.
pub(super) fn scan(top: &Path) -> Result<Scan, Error> {
    let top = Dir::open(top)?;
    let mut found = Scan::default();
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        let entries = match top.entries(&dir) {
            Ok(entries) => entries,
            // The top itself must be readable; what vanished meanwhile needs no care.
            Err(error) if dir.as_os_str().is_empty() => return Err(error),
            Err(error) if error.is_missing() => continue,
            Err(_) => {
                found.unstorable.push(dir);
                continue;
            }
        };
        let mut below = Vec::new();
        let mut unstorable = Vec::new();
        let mut nested = false;
        for entry in entries {
            let path = dir.join(&entry.name);
            if is_dot_git(&entry.name) {
                let exact = entry.name == ".git";
                match (exact, dir.as_os_str().is_empty()) {
                    (true, true) => {}
                    (true, false) => nested = true,
                    (false, _) => found.nested.push(path),
                }
                continue;
            }
            match entry.kind {
                Kind::Directory => below.push(path),
                Kind::Fifo | Kind::Socket | Kind::Device => unstorable.push(path),
                Kind::File if !readable(&top, &path) => unstorable.push(path),
                Kind::File | Kind::Link => {}
            }
        }
        if nested {
            found.nested.push(dir);
        } else {
            open.append(&mut below);
            found.unstorable.append(&mut unstorable);
        }
    }
    found.nested.sort();
    found.unstorable.sort();
    Ok(found)
}

/// Git refuses to store any spelling of this name.
fn is_dot_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

fn readable(top: &Dir, path: &Path) -> bool {
    let Ok(found) = top.look(path) else { return true };
    found.st_mode & 0o400 != 0 || top.file(path, Links::Refused).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nested_repositories_pipes_and_odd_spellings_are_found_and_links_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        for made in [".git", "a/b/.git", "a/b/c/.git", "plain/deep", "x/.GIT"] {
            fs::create_dir_all(top.join(made)).unwrap();
        }
        fs::write(top.join("plain/deep/file"), "1").unwrap();
        std::os::unix::fs::symlink("..", top.join("plain/up")).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(top.join("plain/socket")).unwrap();
        let found = scan(top).unwrap();
        assert_eq!(found.nested, [PathBuf::from("a/b"), PathBuf::from("x/.GIT")]);
        assert_eq!(found.unstorable, [PathBuf::from("plain/socket")]);
    }
}
