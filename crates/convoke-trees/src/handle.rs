//! Files by handle: a path is followed from one open directory to the next and never through a symbolic link,
//! and a file is replaced only if it is what it is expected to be at that moment. It knows nothing of runs or
//! of git.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use convoke_beneath::Dir;
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::modes::Modes;

/// A directory below which files are exchanged.
pub(crate) struct Root {
    dir: OwnedFd,
    /// The name under which a new file is written beside its place.
    temporary: String,
    /// Directories that stay even if they are empty.
    staying: BTreeSet<PathBuf>,
    many: bool,
    /// The permissions with which files come back that are not there now.
    modes: Modes,
}

/// What a path holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    File { bytes: Vec<u8>, executable: bool },
    Link(PathBuf),
}

/// What was found at a path, with what is needed to see that it still is the same.
enum Found {
    Nothing,
    Something {
        content: Content,
        stat: Stat,
        file: Option<File>,
    },
    Directory,
    /// A device, a pipe or a socket.
    Other,
}

type Why = String;

impl Root {
    pub(crate) fn open(dir: &Path, temporary: String, staying: BTreeSet<PathBuf>) -> io::Result<Self> {
        let dir = Dir::open(dir).map_err(io::Error::from)?.into();
        Ok(Self { dir, temporary, staying, many: false, modes: Modes::new() })
    }

    /// Makes `path` hold `wanted` if it holds `expected` now; `None` stands for no file. Directories are made
    /// as needed, and those that are empty after a removal go. `dry` looks and changes nothing. Says why it
    /// was left alone.
    pub(crate) fn exchange(
        &self,
        path: &Path,
        expected: Option<&Content>,
        wanted: Option<&Content>,
        dry: bool,
    ) -> Result<(), Why> {
        let (parents, name) = split(path)?;
        let dirs = match self.enter(&parents, !dry && expected.is_none() && wanted.is_some()) {
            Ok(dirs) => dirs,
            Err(Blocked::Missing) if expected.is_none() => return Ok(()),
            Err(Blocked::Missing) => return Err("it is not there any more".to_owned()),
            Err(Blocked::Because(why)) => return Err(why),
        };
        let dir = dirs.last().unwrap_or(&self.dir);
        let found = look(dir, name).map_err(|error| format!("it cannot be read: {error}"))?;
        let (stat, file) = match (found, expected) {
            (Found::Nothing, None) => (None, None),
            (Found::Nothing, Some(_)) => return Err("it is not there any more".to_owned()),
            (Found::Directory, Some(_)) => return Err("a directory is in its place now".to_owned()),
            (Found::Other, _) => return Err("it is no ordinary file any more".to_owned()),
            (Found::Directory, None) => return Err("something else is in its place now".to_owned()),
            (Found::Something { content, .. }, expected)
                if Some(&content) == wanted && Some(&content) != expected =>
            {
                return Err("it is already as it was before the run".to_owned());
            }
            (Found::Something { .. }, None) => return Err("something else is in its place now".to_owned()),
            (Found::Something { content, stat, file }, Some(expected)) if content == *expected => {
                (Some(stat), file)
            }
            (Found::Something { .. }, Some(_)) => {
                return Err("it was changed after the run's last change".to_owned());
            }
        };
        if dry {
            return Ok(());
        }
        let failed = |error: io::Error| format!("it could not be written: {error}");
        match (wanted, stat) {
            (None, None) => Ok(()),
            (None, Some(stat)) => {
                self.unchanged(dir, name, &stat)?;
                sys::unlinkat(dir, name, AtFlags::empty()).map_err(|error| failed(error.into()))?;
                self.remove_empty(&dirs, &parents);
                Ok(())
            }
            (Some(wanted), stat) => {
                if let (Some(stat), Some(file)) = (&stat, &file)
                    && let (Some(Content::File { bytes: old, .. }), Content::File { bytes, executable }) =
                        (expected, wanted)
                    && old == bytes
                {
                    self.unchanged(dir, name, stat)?;
                    return sys::fchmod(file, mode(stat, *executable)).map_err(|error| failed(error.into()));
                }
                let known = self.modes.get(path).copied().filter(|_| stat.is_none());
                self.write(dir, wanted, stat.as_ref(), known).map_err(failed)?;
                let placed = self.unchanged_or_none(dir, name, stat.as_ref()).and_then(|()| {
                    match self.place(dir, name, stat.is_some()) {
                        Err(Errno::EXIST) => Err("something else is in its place now".to_owned()),
                        other => other.map_err(|error| failed(error.into())),
                    }
                });
                if placed.is_err() {
                    let _ = sys::unlinkat(dir, &self.temporary, AtFlags::empty());
                }
                placed
            }
        }
    }

    /// Says which permissions files had; all others are made as the person's `umask` has it.
    pub(crate) fn with_modes(self, modes: Modes) -> Self {
        Self { modes, ..self }
    }

    /// Says that many files will follow, which reach the disk together at [`Self::sync`] and not one by one.
    pub(crate) fn many(self) -> Self {
        Self { many: true, ..self }
    }

    /// Waits until everything that was written is on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.many { Ok(sys::syncfs(&self.dir)?) } else { Ok(sys::fsync(&self.dir)?) }
    }

    /// Writes the new file beside its place. One that a crash left there is removed first.
    fn write(
        &self,
        dir: &OwnedFd,
        content: &Content,
        old: Option<&Stat>,
        known: Option<u32>,
    ) -> io::Result<()> {
        let name = self.temporary.as_str();
        match sys::unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        match content {
            Content::Link(target) => sys::symlinkat(target, dir, name)?,
            Content::File { bytes, executable } => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fresh = if *executable { 0o777 } else { 0o666 };
                // The tree knows better whether it could be executed.
                let known = known.map(|mode| if *executable { mode | 0o100 } else { mode & 0o666 });
                let fresh = Mode::from_raw_mode(known.unwrap_or(fresh));
                let mut file = File::from(sys::openat(dir, name, flags, fresh)?);
                if known.is_some() {
                    sys::fchmod(&file, fresh)?;
                }
                file.write_all(bytes)?;
                if let Some(old) =
                    old.filter(|old| FileType::from_raw_mode(old.st_mode) == FileType::RegularFile)
                {
                    // The owner may be another than ours if we are root; if we may not give it away it stays
                    // ours.
                    let _ = sys::fchown(
                        &file,
                        Some(sys::Uid::from_raw(old.st_uid)),
                        Some(sys::Gid::from_raw(old.st_gid)),
                    );
                    sys::fchmod(&file, mode(old, *executable))?;
                }
                if !self.many {
                    file.sync_all()?;
                }
            }
        }
        Ok(())
    }

    /// Gives the new file its name. Where nothing is expected, nothing that came meanwhile is written over.
    fn place(&self, dir: &OwnedFd, name: &Path, replace: bool) -> Result<(), Errno> {
        if replace {
            return sys::renameat(dir, &self.temporary, dir, name);
        }
        match sys::renameat_with(dir, &self.temporary, dir, name, RenameFlags::NOREPLACE) {
            // Not every file system can do that; a second name for a file cannot take another's place either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                sys::linkat(dir, &self.temporary, dir, name, AtFlags::empty())?;
                sys::unlinkat(dir, &self.temporary, AtFlags::empty())
            }
            other => other,
        }
    }

    fn unchanged_or_none(&self, dir: &OwnedFd, name: &Path, stat: Option<&Stat>) -> Result<(), Why> {
        stat.map_or(Ok(()), |stat| self.unchanged(dir, name, stat))
    }

    /// Whether the name still means the file that was compared, and the file was not written to since.
    fn unchanged(&self, dir: &OwnedFd, name: &Path, stat: &Stat) -> Result<(), Why> {
        let same = |now: Stat| {
            let key = |stat: &Stat| {
                (
                    stat.st_dev,
                    stat.st_ino,
                    stat.st_size,
                    stat.st_mode,
                    stat.st_mtime,
                    stat.st_mtime_nsec,
                    stat.st_ctime,
                )
            };
            key(&now) == key(stat) && now.st_ctime_nsec == stat.st_ctime_nsec
        };
        match sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if same(now) => Ok(()),
            _ => Err("it is being changed right now".to_owned()),
        }
    }

    /// Opens the directories on the way, each in the one before it.
    fn enter(&self, parents: &[&Path], make: bool) -> Result<Vec<OwnedFd>, Blocked> {
        let mut dirs: Vec<OwnedFd> = Vec::new();
        for name in parents {
            let above = dirs.last().unwrap_or(&self.dir);
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            let mut opened = sys::openat(above, *name, flags, Mode::empty());
            if make && matches!(opened, Err(Errno::NOENT)) {
                match sys::mkdirat(above, *name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => opened = sys::openat(above, *name, flags, Mode::empty()),
                    Err(error) => {
                        return Err(Blocked::Because(format!("its directory could not be made: {error}")));
                    }
                }
            }
            dirs.push(opened.map_err(|error| match error {
                Errno::NOENT => Blocked::Missing,
                Errno::NOTDIR | Errno::LOOP => {
                    Blocked::Because("a file or a link is in the place of its directory now".to_owned())
                }
                error => Blocked::Because(format!("its directory cannot be entered: {error}")),
            })?);
        }
        Ok(dirs)
    }

    /// Removes the directories that a removal left empty, from the bottom up. A directory in use refuses to
    /// go.
    fn remove_empty(&self, dirs: &[OwnedFd], parents: &[&Path]) {
        for (depth, name) in parents.iter().enumerate().rev() {
            if self.staying.contains(&parents[..=depth].iter().collect::<PathBuf>()) {
                return;
            }
            let above = depth.checked_sub(1).map_or(&self.dir, |above| &dirs[above]);
            if sys::unlinkat(above, *name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }
}

enum Blocked {
    Missing,
    Because(Why),
}

/// What is at a name now, read through one handle.
fn look(dir: &OwnedFd, name: &Path) -> io::Result<Found> {
    let stat = match sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        other => other?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(Found::Directory),
        FileType::Symlink => {
            let target = sys::readlinkat(dir, name, Vec::new())?;
            let target = PathBuf::from(std::ffi::OsStr::from_bytes(target.as_bytes()));
            Ok(Found::Something { content: Content::Link(target), stat, file: None })
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let mut file = File::from(sys::openat(dir, name, flags, Mode::empty())?);
            // The times are those before the content was read, so that a write meanwhile is seen later.
            let stat = sys::fstat(&file)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let executable = stat.st_mode & 0o100 != 0;
            Ok(Found::Something { content: Content::File { bytes, executable }, stat, file: Some(file) })
        }
        _ => Ok(Found::Other),
    }
}

/// The permissions that a file had; if it is to be executable, every user that may read it may execute it.
fn mode(old: &Stat, executable: bool) -> Mode {
    let old = old.st_mode & 0o7777;
    let bits = if executable { old | ((old & 0o444) >> 2) } else { old & !0o111 };
    Mode::from_raw_mode(bits)
}

/// The directories on the way to a file, and its name. Nothing may lead out of the root.
fn split(path: &Path) -> Result<(Vec<&Path>, &Path), Why> {
    let parts: Option<Vec<&Path>> = path
        .components()
        .map(|part| match part {
            Component::Normal(name) => Some(Path::new(name)),
            _ => None,
        })
        .collect();
    let refused = || "its path leads out of the directory".to_owned();
    let (name, parents) = parts.as_deref().and_then(<[_]>::split_last).ok_or_else(refused)?;
    Ok((parents.to_vec(), name))
}
