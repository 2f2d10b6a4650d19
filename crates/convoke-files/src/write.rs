//! Putting new content where a name leads, all at once or not at all.
//!
//! The content goes to a new file beside the old one, is synced, and changes places with it. The old file is
//! removed if it is still the one that was read; if another process has written it meanwhile, it gets its
//! name back. So a reader sees either the old or the new content, a full disk leaves the old one, and a file
//! with further names elsewhere keeps its content under those: the name written to becomes a file of its own.
//! The mode is kept (set-id bits are dropped, as every write drops them); extended attributes are not.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::beneath::{self, ResolvedPath};
use crate::refused::{Refused, errno_of};
use crate::root::{Named, Root};
use crate::show;

/// A file that may be written: it exists, or its place does.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    root: &'a Root,
    named: &'a Named,
    place: ResolvedPath,
    old: Option<(File, Stat)>,
}

/// What came of a write.
#[derive(Debug)]
pub(crate) struct Written {
    /// The real path relative to the tree.
    pub(crate) path: PathBuf,
    pub(crate) created: bool,
    /// Other names the old file had, which still hold the old content.
    pub(crate) other_names: u64,
}

impl<'a> Target<'a> {
    /// Finds where a name leads and opens what is there. Refuses what may not be written before anything is
    /// changed.
    pub(crate) fn find(root: &'a Root, named: &'a Named) -> Result<Self, Refused> {
        // Checked first, so that an agent that may only read gets that answer for every path.
        root.may_write(&named.said, &PathBuf::new())?;
        let place = beneath::walk(root, named)?;
        root.may_write(&named.said, &place.path)?;
        let old = match &place.found {
            None => None,
            Some(found) => match beneath::kind(found) {
                FileType::RegularFile => Some(open_old(named, &place, found)?),
                FileType::Directory => {
                    let advice = "name a file in it";
                    return Err(Refused::Kind { path: named.said.clone(), kind: "a directory", advice });
                }
                other => return Err(beneath::special(&named.said, other)),
            },
        };
        Ok(Self { root, named, place, old })
    }

    /// The content as it is, or nothing if the file does not exist.
    pub(crate) fn read(&mut self, cap: u64) -> Result<Option<Vec<u8>>, Refused> {
        let Some((file, stat)) = &mut self.old else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = file.take(cap.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| Refused::reading_io(&self.named.said, &error))?;
        if bytes.len() as u64 > cap {
            return Err(Refused::Large {
                path: self.named.said.clone(),
                size: show::size(beneath::length(stat).max(bytes.len() as u64)),
                cap: show::size(cap),
                advice: "Edit it with a command.",
            });
        }
        Ok(Some(bytes))
    }

    /// Whether there is a file, and how large it is.
    pub(crate) fn length(&self) -> Option<u64> {
        self.old.as_ref().map(|(_, stat)| beneath::length(stat))
    }

    /// The refusal of an edit that needs a file, if there is none.
    pub(crate) fn must_exist(&self) -> Result<(), Refused> {
        beneath::missing(self.named, &self.place)
    }

    /// Writes the content. Whatever fails leaves the file, and the directories above it, as they were.
    pub(crate) fn put(self, content: &[u8]) -> Result<Written, Refused> {
        let failed = |errno| Refused::writing(&self.named.said, errno);
        let mut parents = vec![Rc::clone(&self.place.parent)];
        let mut made = 0;
        let mut outcome = Ok(());
        for name in &self.place.missing {
            let above = parents.last().map_or_else(|| Rc::clone(&self.place.parent), Rc::clone);
            match make_directory(&above, name) {
                Ok((directory, new)) => {
                    parents.push(Rc::new(directory));
                    made += usize::from(new);
                }
                Err(errno) => {
                    outcome = Err(failed(errno));
                    break;
                }
            }
        }
        let parent = parents.last().map_or_else(|| Rc::clone(&self.place.parent), Rc::clone);
        let outcome = outcome.and_then(|()| self.put_in(&parent, content));
        if outcome.is_err() {
            // Only directories that were made here go again, and only while they are empty.
            let names = self.place.missing.iter().take(parents.len() - 1);
            for (above, name) in parents.iter().zip(names).rev().take(made) {
                let _ = rustix::fs::unlinkat(&**above, name, AtFlags::REMOVEDIR);
            }
        }
        outcome?;
        let other_names = self
            .old
            .as_ref()
            .map_or(0, |(_, stat)| u64::try_from(i128::from(stat.st_nlink) - 1).unwrap_or(0));
        Ok(Written { path: self.place.path, created: self.old.is_none(), other_names })
    }

    fn put_in(&self, parent: &OwnedFd, content: &[u8]) -> Result<(), Refused> {
        let failed = |errno| Refused::writing(&self.named.said, errno);
        let (mut file, beside) =
            new_file(parent, if self.old.is_some() { 0o600 } else { 0o666 }).map_err(failed)?;
        let put = self.fill(&mut file, parent, content).map_err(failed).and_then(|()| {
            self.unchanged(parent)?;
            self.take_name(parent, &beside, &file).map_err(|errno| match errno {
                Errno::EXIST | Errno::ISDIR | Errno::NOTDIR => {
                    Refused::Changed { path: self.named.said.clone() }
                }
                other => failed(other),
            })
        });
        if put.is_err() {
            let _ = rustix::fs::unlinkat(parent, &beside, AtFlags::empty());
            return put;
        }
        // The new name is made to last too. The content is in place already, so a failure here is no failure
        // of the edit.
        if let Ok(directory) = beneath::open_directory(parent.as_fd(), OsStr::new(".")) {
            let _ = rustix::fs::fsync(directory);
        }
        Ok(())
    }

    fn fill(&self, file: &mut File, parent: &OwnedFd, content: &[u8]) -> Result<(), Errno> {
        file.write_all(content).map_err(|error| errno_of(&error))?;
        let owner = match &self.old {
            Some((_, stat)) => *stat,
            // A file that a privileged host makes gets the owner of its directory, so
            // that the agent's commands can change it.
            None => beneath::stat(parent.as_fd())?,
        };
        let own = beneath::stat(file.as_fd())?;
        if own.st_uid != owner.st_uid {
            let user = rustix::fs::Uid::from_raw(owner.st_uid);
            let group = rustix::fs::Gid::from_raw(owner.st_gid);
            // Where the owner may not be changed it stays ours, as with
            // any program that writes beside and renames.
            let _ = rustix::fs::fchown(&*file, Some(user), Some(group));
        }
        if let Some((_, stat)) = &self.old {
            rustix::fs::fchmod(&*file, Mode::from_raw_mode(stat.st_mode & 0o777))?;
        }
        rustix::fs::fsync(&*file)
    }

    /// Whether the name still leads to what was read, by whatever directories and links it goes.
    fn unchanged(&self, parent: &OwnedFd) -> Result<(), Refused> {
        let changed = || Refused::Changed { path: self.named.said.clone() };
        let now = beneath::walk(self.root, self.named)?;
        let here =
            beneath::stat(parent.as_fd()).and_then(|here| Ok((here, beneath::stat(now.parent.as_fd())?)));
        let (here, there) = here.map_err(|errno| Refused::writing(&self.named.said, errno))?;
        if !now.missing.is_empty() || !beneath::same(&here, &there) || now.path != self.place.path {
            return Err(changed());
        }
        match (&self.old, &now.found) {
            (None, None) => Ok(()),
            (Some((_, old)), Some(found)) if as_read(old, found) => Ok(()),
            _ => Err(changed()),
        }
    }

    /// Gives the name to the new file. `EXIST` means that another process
    /// wrote first; its file keeps the name then.
    fn take_name(&self, parent: &OwnedFd, beside: &OsStr, new: &File) -> Result<(), Errno> {
        let name = &self.place.name;
        let rename = |flags| rustix::fs::renameat_with(parent, beside, parent, name, flags);
        let plainly = || rustix::fs::renameat(parent, beside, parent, name);
        let look = || rustix::fs::statat(parent, beside, AtFlags::SYMLINK_NOFOLLOW);
        let Some((_, old)) = &self.old else {
            return match rename(RenameFlags::NOREPLACE) {
                // Some file systems cannot promise not to replace; there the check just before has to do.
                Err(Errno::INVAL | Errno::NOSYS) => plainly(),
                other => other,
            };
        };
        // The two files change places, so that what is displaced can be looked at before it is gone.
        match rename(RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS) => return plainly(),
            other => other?,
        }
        if as_read(old, &look()?) {
            let _ = rustix::fs::unlinkat(parent, beside, AtFlags::empty());
            return Ok(());
        }
        rename(RenameFlags::EXCHANGE)?;
        if !beneath::same(&beneath::stat(new.as_fd())?, &look()?) {
            // Another process wrote between the two exchanges; the file that was written last keeps the name.
            rename(RenameFlags::EXCHANGE)?;
        }
        Err(Errno::EXIST)
    }
}

/// Whether a file is the one that was read, with the content it had.
fn as_read(old: &Stat, now: &Stat) -> bool {
    let content = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    beneath::same(old, now) && content(old) == content(now)
}

/// Opens a file that is to be replaced. It is opened for writing, although nothing is written to it, so that
/// the system says now whether that is allowed.
fn open_old(named: &Named, place: &ResolvedPath, found: &Stat) -> Result<(File, Stat), Refused> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |flags| rustix::fs::openat(&*place.parent, &place.name, flags, Mode::empty());
    let fd = match open(flags | OFlags::RDWR) {
        // A running program cannot be opened for writing, but its name can be given to another file.
        Err(Errno::TXTBSY) => open(flags | OFlags::RDONLY),
        other => other,
    };
    let changed = || Refused::Changed { path: named.said.clone() };
    let fd =
        fd.map_err(
            |errno| if errno == Errno::LOOP { changed() } else { Refused::writing(&named.said, errno) },
        )?;
    let stat = beneath::stat(fd.as_fd()).map_err(|errno| Refused::writing(&named.said, errno))?;
    if beneath::same(&stat, found) && beneath::kind(&stat) == FileType::RegularFile {
        Ok((File::from(fd), stat))
    } else {
        Err(changed())
    }
}

/// Makes a directory, or opens the one another process has just made; says which.
fn make_directory(above: &OwnedFd, name: &OsStr) -> Result<(OwnedFd, bool), Errno> {
    let new = match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let directory = beneath::open_directory(above.as_fd(), name)?;
    if new {
        let own = beneath::stat(directory.as_fd())?;
        let owner = beneath::stat(above.as_fd())?;
        if own.st_uid != owner.st_uid {
            let user = rustix::fs::Uid::from_raw(owner.st_uid);
            let group = rustix::fs::Gid::from_raw(owner.st_gid);
            let _ = rustix::fs::fchown(&directory, Some(user), Some(group));
        }
    }
    Ok((directory, new))
}

/// A new, empty file in a directory, under a name that is not taken.
fn new_file(parent: &OwnedFd, mode: u32) -> Result<(File, OsString), Errno> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    const MOST_TRIES: usize = 1_000;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut last = Errno::EXIST;
    for _ in 0..MOST_TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".convoke-{}-{number}.tmp", std::process::id()));
        match rustix::fs::openat(parent, &name, flags, Mode::from_raw_mode(mode)) {
            Ok(fd) => return Ok((File::from(fd), name)),
            Err(Errno::EXIST) => {}
            Err(errno) => {
                last = errno;
                break;
            }
        }
    }
    Err(last)
}
