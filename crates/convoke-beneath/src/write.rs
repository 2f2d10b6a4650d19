//! Writing beneath a directory: beside the place first, then renamed, so that a reader sees the old file or
//! the new one and a link at the place is never followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::dir::Dir;
use crate::error::{Error, Kind};

/// The most nested directories that are held open while a tree is removed.
const DEEPEST: usize = 64;

/// The name of a file that is to be written, in a directory held open since before the first command.
/// Whatever happens to the path meanwhile, the file is written into that directory and under that name.
#[derive(Debug)]
pub struct WriteTarget {
    dir: Dir,
    name: OsString,
    /// The path as a person gave it, for messages.
    path: PathBuf,
}

impl WriteTarget {
    /// Finds the place of a file that a person named, before the first command. Links outside of
    /// `tree` are the person's own and are followed; in the tree, which may come from strangers, a
    /// link on the way is refused. A link at the end is refused everywhere, because it names
    /// another file than the one that was asked for.
    pub fn find(path: &Path, tree: Option<&Path>) -> Result<Self, Error> {
        let name = path.file_name().ok_or_else(|| Error::Outside { path: path.to_owned() })?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = Dir::open_named(parent, tree)?;
        let place = Self { dir, name, path: path.to_owned() };
        place.kind()?;
        Ok(place)
    }

    /// The path as a person gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file stands there. Anything else that stands there is refused.
    pub fn kind(&self) -> Result<Option<Kind>, Error> {
        let found = self.dir.kind(Path::new(&self.name)).map_err(|error| error.at(&self.path))?;
        match found {
            None | Some(Kind::File) => Ok(found),
            Some(Kind::Link) => Err(Error::Link { path: self.path.clone() }),
            Some(found) => Err(Error::Kind { path: self.path.clone(), found, wanted: "file" }),
        }
    }

    /// Puts a file there in the place of the one that may stand there, whose permissions it keeps.
    pub fn replace(&self, bytes: &[u8], mode: u32) -> Result<(), Error> {
        self.dir.replace(Path::new(&self.name), bytes, mode).map_err(|error| error.at(&self.path))
    }

    /// Puts a file there if nothing stands there.
    pub fn create(&self, bytes: &[u8], mode: u32) -> Result<(), Error> {
        self.dir.create(Path::new(&self.name), bytes, mode).map_err(|error| error.at(&self.path))
    }

    /// Checks that a file can be made there now, and leaves nothing behind.
    pub fn check_writable(&self) -> Result<(), Error> {
        TemporaryFile::new(&self.dir, 0o600).map(drop).map_err(|error| error.at(&self.path))
    }
}

impl Dir {
    /// Makes the directories of a path that are missing, and opens the last.
    pub fn make_dirs(&self, path: &Path, mode: u32) -> Result<Dir, Error> {
        let mut at = self.dir(Path::new(""))?;
        for name in path.components() {
            let name = Path::new(name.as_os_str());
            match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(Error::system(path)(errno)),
            }
            at = at.dir(name).map_err(|error| error.at(path))?;
        }
        Ok(at)
    }

    /// Puts a file at a path in the place of the one that may stand there, whose permissions it keeps; a new
    /// one gets `mode`. Anything but a file that stands there is refused.
    pub fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
        let kept = match self.look(path) {
            Ok(stat) => match Kind::of(&stat) {
                Kind::File => Some(stat.st_mode & 0o777),
                Kind::Link => return Err(Error::Link { path: path.to_owned() }),
                found => return Err(Error::Kind { path: path.to_owned(), found, wanted: "file" }),
            },
            Err(error) if error.is_missing() => None,
            Err(error) => return Err(error),
        };
        self.write(path, bytes, mode, kept, RenameFlags::empty())
    }

    /// Puts a new file at a path with these permissions, whatever stands there; a link is replaced as itself,
    /// a directory is refused.
    pub fn put(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
        self.write(path, bytes, mode, None, RenameFlags::empty())
    }

    /// Puts a file at a path where nothing stands.
    pub fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
        self.write(path, bytes, mode, None, RenameFlags::NOREPLACE)
    }

    /// Writes beside the path and renames: a link that comes meanwhile is replaced as a name, and a directory
    /// refuses.
    fn write(
        &self,
        path: &Path,
        bytes: &[u8],
        mode: u32,
        kept: Option<u32>,
        flags: RenameFlags,
    ) -> Result<(), Error> {
        let (dir, name) = self.parent(path)?;
        let mut beside = TemporaryFile::new(&dir, mode).map_err(|error| error.at(path))?;
        if let Some(kept) = kept {
            rustix::fs::fchmod(&beside.file, Mode::from_raw_mode(kept)).map_err(Error::system(path))?;
        }
        beside.fill(bytes).map_err(Error::io(path))?;
        beside.rename(name, flags).map_err(Error::system(path))?;
        dir.sync(path)
    }

    /// Removes a file, or a link as itself.
    pub fn remove_file(&self, path: &Path) -> Result<(), Error> {
        let (dir, name) = self.parent(path)?;
        rustix::fs::unlinkat(dir, name, AtFlags::empty()).map_err(Error::system(path))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, path: &Path) -> Result<(), Error> {
        let (dir, name) = self.parent(path)?;
        rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR).map_err(Error::system(path))
    }

    /// Removes a directory and all below it, links as themselves. Nothing beyond a link is touched. A
    /// directory that its owner may not enter or change gets the rights first, and one that lies too deep for
    /// the number of handles is moved up.
    pub fn remove_tree(&self, path: &Path) -> Result<(), Error> {
        let (above, name) = self.parent(path)?;
        if above.kind(name).map_err(|error| error.at(path))? != Some(Kind::Directory) {
            return self.remove_file(path);
        }
        let top = above.opened_up(name).map_err(|error| error.at(path))?;
        while top.clear(&top, 0).map_err(|error| error.below(path))? {}
        rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR).map_err(Error::system(path))
    }

    /// Removes what stands in this directory; says whether something was moved up to `top`.
    fn clear(&self, top: &Dir, depth: usize) -> Result<bool, Error> {
        let mut moved = false;
        for entry in self.entries(Path::new(""))? {
            let name = Path::new(&entry.name);
            match entry.kind {
                Kind::Directory if depth < DEEPEST => {
                    moved |=
                        self.opened_up(name)?.clear(top, depth + 1).map_err(|error| error.below(name))?;
                    self.remove_dir(name)?;
                }
                Kind::Directory => {
                    self.opened_up(name)?;
                    rustix::fs::renameat(self, name, top, unused()).map_err(Error::system(name))?;
                    moved = true;
                }
                _ => self.remove_file(name)?,
            }
        }
        Ok(moved)
    }

    /// Opens a directory in this one, with all rights of its owner.
    fn opened_up(&self, name: &Path) -> Result<Dir, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(self, name, flags, Mode::empty()).map_err(Error::system(name))?;
        let mode = rustix::fs::fstat(&found).map_err(Error::system(name))?.st_mode;
        if mode & 0o700 != 0o700 {
            // By its handle: the name could be a link by now. Where this fails the removal says so.
            let handle = format!("/proc/self/fd/{}", found.as_raw_fd());
            let _ = rustix::fs::chmod(handle, Mode::from_raw_mode(mode & 0o777 | 0o700));
        }
        Dir::from_fd(found).dir(Path::new("")).map_err(|error| error.at(name))
    }

    /// The directory that holds a path, and the name in it.
    fn parent<'a>(&self, path: &'a Path) -> Result<(Dir, &'a Path), Error> {
        let outside = || Error::Outside { path: path.to_owned() };
        let name = path.file_name().ok_or_else(outside)?;
        let dir = self.dir(path.parent().unwrap_or(Path::new(""))).map_err(|error| error.at(path))?;
        Ok((dir, Path::new(name)))
    }

    /// Waits until a new name is on the disk. A file system that cannot sync a directory is no error.
    fn sync(&self, path: &Path) -> Result<(), Error> {
        match rustix::fs::fsync(self.as_fd()) {
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            Err(errno) => Err(Error::system(path)(errno)),
        }
    }
}

/// A new file beside its place. It is removed again unless it was given a name.
struct TemporaryFile<'a> {
    dir: &'a Dir,
    name: OsString,
    file: File,
    placed: bool,
}

impl<'a> TemporaryFile<'a> {
    fn new(dir: &'a Dir, mode: u32) -> Result<Self, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = unused();
            match rustix::fs::openat(dir, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(fd) => return Ok(Self { dir, name, file: File::from(fd), placed: false }),
                // A process that was killed may have left it.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(Error::system(Path::new(&name))(errno)),
            }
        }
    }

    fn fill(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_all()
    }

    fn rename(&mut self, name: &Path, flags: RenameFlags) -> Result<(), Errno> {
        let dir: &Dir = self.dir;
        let beside: &OsStr = &self.name;
        match rustix::fs::renameat_with(dir, beside, dir, name, flags) {
            // Not every file system knows NOREPLACE; a hard link does not replace a file either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if flags == RenameFlags::NOREPLACE => {
                rustix::fs::linkat(dir, beside, dir, name, AtFlags::empty())?;
                return Ok(());
            }
            other => other?,
        }
        self.placed = true;
        Ok(())
    }
}

/// A name that no other file of this process has.
fn unused() -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(".convoke-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
        }
    }
}
