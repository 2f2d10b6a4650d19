//! Writes a set of files into a directory: each of them whole or not at all, and none over a file that no
//! export wrote or that was changed since, unless that was asked for. What was written is remembered by its
//! digest in a list beside the files. The directory is held by its handle, and no link in it is followed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Error, Kind, Links};
use convoke_runtime::source_digest;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The list of what was written.
const LIST: &str = ".team/export.json";
/// The directories below, which must be real ones: nothing is written through a link.
const DIRS: [&str; 3] = [".team", ".team/inbox", ".tasks"];

/// More than any file that an export reads back.
const MOST: u64 = 64 << 20;

/// Files that are to be written.
pub(super) struct Files {
    path: PathBuf,
    dir: Dir,
    force: bool,
    texts: BTreeMap<String, String>,
}

/// What was written.
pub(super) struct Written {
    pub(super) dir: PathBuf,
    pub(super) files: Vec<String>,
    /// Files of an earlier export that are no longer among them.
    pub(super) removed: Vec<String>,
    /// Those of them that were changed since, and that stay.
    pub(super) left: Vec<String>,
}

/// What earlier exports wrote: the digests that each file may have.
#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    schema_version: u32,
    run: String,
    files: BTreeMap<String, Vec<String>>,
}

impl List {
    fn has(&self, name: &str, digest: &str) -> bool {
        self.files.get(name).is_some_and(|digests| digests.iter().any(|one| one == digest))
    }
}

impl Files {
    /// The directory is opened here, or made. No link leads to it within `tree`, which commands and strangers
    /// fill.
    pub(super) fn new(path: &Path, tree: &Path, force: bool) -> Result<Self, Failure> {
        let first = path.join(DIRS[0]);
        let dir = Dir::make_named(path, Some(tree), 0o777).map_err(|error| cannot(&first, error))?;
        Ok(Self { path: path.to_owned(), dir, force, texts: BTreeMap::new() })
    }

    /// One more, by its path below the directory.
    pub(super) fn add(&mut self, name: impl Into<String>, text: String) {
        self.texts.insert(name.into(), text);
    }

    /// Writes all of them, or says why none was touched.
    pub(super) fn write(self, run: &str) -> Result<Written, Failure> {
        self.check_dirs()?;
        let old = self.read_list()?;
        self.check_files(&old)?;
        for dir in DIRS {
            self.dir.make_dirs(Path::new(dir), 0o777).map_err(|error| cannot(&self.path.join(dir), error))?;
        }
        // Before the first file: an export that is cut off finds its own files in the list the next time.
        let both = |name: &String, text: &String| {
            let mut digests = old.files.get(name).cloned().unwrap_or_default();
            digests.push(source_digest(text));
            (name.clone(), digests)
        };
        let mut files = old.files.clone();
        files.extend(self.texts.iter().map(|(name, text)| both(name, text)));
        self.put_list(run, files)?;
        for (name, text) in &self.texts {
            self.put(name, text)?;
        }
        let (removed, left) = self.remove_old(&old)?;
        let only = self.texts.iter().map(|(name, text)| (name.clone(), vec![source_digest(text)])).collect();
        self.put_list(run, only)?;
        let dir = self.path.canonicalize().unwrap_or(self.path);
        Ok(Written { dir, files: self.texts.into_keys().collect(), removed, left })
    }

    fn check_dirs(&self) -> Result<(), Failure> {
        for name in DIRS {
            let found =
                self.dir.kind(Path::new(name)).map_err(|error| cannot(&self.path.join(name), error))?;
            if found.is_some_and(|found| found != Kind::Directory) {
                let message =
                    format!("{} is no directory; nothing was written", self.path.join(name).display());
                return Err(Failure::failed(message).hint("name another directory with --to"));
            }
        }
        Ok(())
    }

    fn read_list(&self) -> Result<List, Failure> {
        let path = self.path.join(LIST);
        let text = match self.dir.read(Path::new(LIST), Links::Refused, MOST) {
            Ok(text) => text,
            Err(error) if error.is_missing() => return Ok(List::default()),
            Err(_) if self.force => return Ok(List::default()),
            Err(error) => return Err(cannot(&path, error)),
        };
        match serde_json::from_slice(&text) {
            Ok(list) => Ok(list),
            Err(_) if self.force => Ok(List::default()),
            Err(_) => {
                let message = format!("{} is not what an export writes; nothing was written", path.display());
                Err(Failure::failed(message)
                    .hint("name another directory with --to, or replace it with --force"))
            }
        }
    }

    /// Checks that no file is in the way that no export wrote or that was changed since.
    fn check_files(&self, old: &List) -> Result<(), Failure> {
        let mut foreign = Vec::new();
        for (name, text) in &self.texts {
            let Ok(Some(found)) = self.dir.kind(Path::new(name)) else { continue };
            if found == Kind::Directory {
                let path = self.path.join(name);
                return Err(Failure::failed(format!(
                    "{} is a directory; nothing was written",
                    path.display()
                )));
            }
            let ours = self.text(name).is_some_and(|now| now == *text || old.has(name, &source_digest(&now)));
            if !ours && !self.force {
                foreign.push(name.as_str());
            }
        }
        if foreign.is_empty() {
            return Ok(());
        }
        const SHOWN: usize = 5;
        let more = foreign.len().saturating_sub(SHOWN);
        foreign.truncate(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!(
            "in {} there are files that no export wrote, or that were changed since: {}{more}; nothing was \
                written",
            self.path.display(),
            foreign.join(", ")
        );
        Err(Failure::failed(message).hint("name another directory with --to, or replace them with --force"))
    }

    /// Removes files of an earlier export that are no longer among these, if they are unchanged.
    fn remove_old(&self, old: &List) -> Result<(Vec<String>, Vec<String>), Failure> {
        let mut removed = Vec::new();
        let mut left = Vec::new();
        for name in old.files.keys().filter(|name| !self.texts.contains_key(*name) && is_ours(name)) {
            let Some(now) = self.text(name) else { continue };
            if !old.has(name, &source_digest(&now)) {
                left.push(name.clone());
                continue;
            }
            self.dir.remove_file(Path::new(name)).map_err(|error| cannot(&self.path.join(name), error))?;
            removed.push(name.clone());
        }
        Ok((removed, left))
    }

    fn put_list(&self, run: &str, files: BTreeMap<String, Vec<String>>) -> Result<(), Failure> {
        let list = List { schema_version: 1, run: run.to_owned(), files };
        let text = serde_json::to_string_pretty(&list).unwrap_or_default();
        self.put(LIST, &format!("{text}\n"))
    }

    /// What stands in a file, if it is one and text.
    fn text(&self, name: &str) -> Option<String> {
        self.dir
            .read(Path::new(name), Links::Refused, MOST)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// Puts a file into its place in one step. It is private like the journal, because it holds the same.
    fn put(&self, name: &str, text: &str) -> Result<(), Failure> {
        let put = self.dir.put(Path::new(name), text.as_bytes(), 0o600);
        put.map_err(|error| cannot(&self.path.join(name), error))
    }
}

/// Whether a name in a list is one that an export can have written: a forged list must not lead anywhere
/// else.
fn is_ours(name: &str) -> bool {
    let plain = |part: &str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        !part.is_empty() && part.chars().all(legal)
    };
    let inbox = name.strip_prefix(".team/inbox/").and_then(|name| name.strip_suffix(".jsonl"));
    let task = name.strip_prefix(".tasks/task_").and_then(|name| name.strip_suffix(".json"));
    inbox.or(task).is_some_and(plain)
}

fn cannot(path: &Path, error: Error) -> Failure {
    let failure = Failure::failed(format!("cannot write {}: {}", path.display(), error.reason()));
    match error.io_kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            failure.hint("make room and export again: what is there already is replaced")
        }
        _ => failure.hint("name a directory that you can write to with --to"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn files(dir: &Path, force: bool, all: &[(&str, &str)]) -> Files {
        let mut files = Files::new(dir, dir, force).unwrap();
        all.iter().for_each(|(name, text)| files.add(*name, (*text).to_owned()));
        files
    }

    const CONFIG: &str = ".team/config.json";
    const TASK: &str = ".tasks/task_1.json";

    #[test]
    fn files_are_replaced_as_long_as_nobody_else_touched_them() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("out");
        let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
        files(&dir, false, &[(CONFIG, "1"), (TASK, "2")]).write("s_1").unwrap();
        let again = files(&dir, false, &[(CONFIG, "3")]).write("s_1").unwrap();
        assert_eq!((again.files, again.removed), (vec![CONFIG.to_owned()], vec![TASK.to_owned()]));
        assert!(!dir.join(TASK).exists() && read(CONFIG) == "3");
        fs::write(dir.join(CONFIG), "mine").unwrap();
        let refused = files(&dir, false, &[(CONFIG, "4"), (TASK, "5")]).write("s_1").err().unwrap();
        assert!(
            refused.message.contains("changed since: .team/config.json; nothing was written"),
            "{refused:?}"
        );
        assert!(!dir.join(TASK).exists() && read(CONFIG) == "mine");
        files(&dir, true, &[(CONFIG, "4")]).write("s_1").unwrap();
        assert_eq!(read(CONFIG), "4");
    }

    #[test]
    fn what_an_export_was_cut_off_at_is_known_as_its_own() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        files(dir, false, &[(CONFIG, "1"), (TASK, "1")]).write("s_1").unwrap();
        // The list of both, and one of the two files: as if it had ended in between.
        let digests = |text: &str| vec![source_digest("1"), source_digest(text)];
        let both = BTreeMap::from([(CONFIG.to_owned(), digests("2")), (TASK.to_owned(), digests("2"))]);
        files(dir, false, &[]).put_list("s_1", both).unwrap();
        fs::write(dir.join(CONFIG), "2").unwrap();
        files(dir, false, &[(CONFIG, "3"), (TASK, "3")]).write("s_1").unwrap();
        assert_eq!(fs::read_to_string(dir.join(TASK)).unwrap(), "3");
    }

    #[test]
    fn nothing_is_written_or_removed_through_a_link_or_a_made_up_list() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("out");
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir_all(&dir).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.join(".tasks")).unwrap();
        let refused = files(&dir, true, &[(TASK, "1")]).write("s_1").err().unwrap();
        assert!(refused.message.contains(".tasks is no directory"), "{refused:?}");
        std::os::unix::fs::symlink(&elsewhere, place.path().join("planted")).unwrap();
        for path in ["planted", "planted/out"] {
            let refused = Files::new(&place.path().join(path), place.path(), true).err().unwrap();
            assert!(refused.message.contains("a symbolic link stands there or on the way"), "{refused:?}");
        }
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        for name in
            ["../x", ".team/inbox/../../x.jsonl", "/etc/passwd", ".team/config.json", ".tasks/task_.json"]
        {
            assert!(!is_ours(name), "{name}");
        }
        assert!(is_ours(TASK) && is_ours(".team/inbox/alice.jsonl"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = Files::new(&file, place.path(), false).err().unwrap();
        assert!(
            refused.message.starts_with(&format!("cannot write {}/.team: ", file.display())),
            "{refused:?}"
        );
    }
}
