//! Which file the journal is in. Usually the one it was named by; after a stopped process was left
//! behind with the locks of that file, a copy of it: the next generation.
//! `docs/internals/decisions/0003-sqlite-turns.md` has the whole argument.
//!
//! Generation 0 is the file `journal.db` itself, generation 7 is `journal.db-over/7.db` and then `journal.db`
//! is a link to it, for programs that know nothing of this. The greatest number counts, not the link.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file::beside;

/// Where a journal is, whatever its generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalFiles {
    base: PathBuf,
}

/// One of the files it has been in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

/// What has become of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is the journal.
    Current,
    /// There is a later one.
    Left,
    /// Its file was removed, or another one has taken its name, and not by a process of ours.
    Gone,
}

impl Generation {
    pub(super) fn inode(&self) -> u64 {
        self.id.1
    }
}

impl JournalFiles {
    /// The place of the journal that this path names. Links that a person made are followed; the link to a
    /// generation is not.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..40 {
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            };
            let target = fs::read_link(&path).ok();
            match target {
                Some(target) if !is_generation_of(&path, &target) => path = parent.join(target),
                _ => {
                    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
                    return Ok(Self { base: parent.canonicalize()?.join(name) });
                }
            }
        }
        Err(io::Error::other("too many links"))
    }

    /// The name that a person knows, without that person's links.
    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// The file of a generation.
    pub(super) fn file(&self, number: u64) -> PathBuf {
        if number == 0 { self.base.clone() } else { self.workshop().join(format!("{number}.db")) }
    }

    /// The directory of the later generations, in which a process
    /// that makes the next one leaves a note of it.
    pub(super) fn workshop(&self) -> PathBuf {
        beside(&self.base, "-over")
    }

    /// The generations that have a file of their own, the greatest last.
    pub(super) fn later(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(self.workshop()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            found.extend(number_of(&entry?.file_name()));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// The generation that is the journal now; `None` if there is no journal.
    pub(super) fn current(&self) -> io::Result<Option<Generation>> {
        // A generation may be left between two of these looks; the next look finds the later one.
        for _ in 0..100 {
            let number = self.later()?.last().copied().unwrap_or(0);
            let path = self.file(number);
            let found = match fs::symlink_metadata(&path) {
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::NotFound && number == 0 => return Ok(None),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if found.is_file() {
                return Ok(Some(Generation { number, path, id: (found.dev(), found.ino()) }));
            }
        }
        Err(io::Error::other("its link leads nowhere"))
    }

    /// What has become of a generation. Costs two looks at names.
    pub(super) fn fate(&self, of: &Generation) -> io::Result<Fate> {
        if exists(&self.file(of.number + 1))? {
            return Ok(Fate::Left);
        }
        let here = match fs::symlink_metadata(&of.path) {
            Ok(found) => (found.dev(), found.ino()) == of.id,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        // A person who removes `journal.db` means the journal, also when that is a link.
        if here && (of.number == 0 || exists(&self.base)?) {
            return Ok(Fate::Current);
        }
        // Generations are removed from the first to the last, so of a long one the next one may be gone too.
        let left = self.later()?.last().is_some_and(|last| *last > of.number) && exists(&self.base)?;
        Ok(if left { Fate::Left } else { Fate::Gone })
    }

    /// What the name is a link to when a generation is the journal.
    pub(super) fn target(&self, number: u64) -> io::Result<PathBuf> {
        let workshop = self.workshop();
        let file = self.file(number);
        let parts = workshop.file_name().zip(file.file_name()).ok_or(ErrorKind::InvalidInput)?;
        Ok(Path::new(parts.0).join(parts.1))
    }

    /// Makes the name lead to a generation, and removes what is left of those before it.
    pub(super) fn point_to(&self, number: u64, draft: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(self.target(number)?, draft)?;
        fs::rename(draft, &self.base)?;
        for before in (0..number).filter(|before| *before + 1 == number || self.file(*before).exists()) {
            let file = self.file(before);
            let names = [
                (before > 0).then(|| file.clone()),
                Some(beside(&file, "-wal")),
                Some(beside(&file, "-shm")),
            ];
            for name in names.into_iter().flatten() {
                // It may be gone already, and what stays is in the way of nothing.
                let _ = fs::remove_file(name);
            }
        }
        Ok(())
    }
}

fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn number_of(name: &OsStr) -> Option<u64> {
    let digits = name.to_str()?.strip_suffix(".db")?;
    // `07` is no name of ours.
    digits.parse().ok().filter(|number: &u64| *number > 0 && number.to_string() == digits)
}

fn is_generation_of(base: &Path, target: &Path) -> bool {
    let workshop = beside(Path::new(base.file_name().unwrap_or_default()), "-over");
    target.parent() == Some(&workshop) && target.file_name().and_then(number_of).is_some()
}
