//! Writing beneath a directory: beside the place first, then renamed, so that a reader sees the old file or the new one and a link at
//! the place is never followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::dir::Dir;
use crate::error::{Error, Kind};

/// The name of a file that is to be written, in a directory held open since before the first command. Whatever happens to the
/// path meanwhile, the file is written into that directory and under that name.
#[derive(Debug)]
pub struct Place {
    dir: Dir,
    name: OsString,
    /// The path as a person gave it, for messages.
    path: PathBuf,
}

impl Place {
    /// Finds the place of a file that a person named. Links that stand on the way now are the person's own and are followed; one that stands
    /// at the end is refused, because what it names is another file than the one that was asked for.
    pub fn find(path: &Path) -> Result<Self, Error> {
        let name = path.file_name().ok_or_else(|| Error::Outside { path: path.to_owned() })?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = Self { dir: Dir::open(parent)?, name, path: path.to_owned() };
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

    /// That a file can be made there now; nothing is left behind by the asking.
    pub fn check_writable(&self) -> Result<(), Error> {
        let beside = Beside::new(&self.dir, 0o600).map_err(|error| error.at(&self.path))?;
        drop(beside);
        Ok(())
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

    /// Puts a file at a path in the place of the one that may stand there, whose permissions it keeps; a new one gets `mode`. Anything
    /// but a file that stands there is refused.
    pub fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
        let (dir, name) = self.parent(path)?;
        let old = match dir.look(name) {
            Ok(stat) => match Kind::of(&stat) {
                Kind::File => Some(stat),
                Kind::Link => return Err(Error::Link { path: path.to_owned() }),
                found => return Err(Error::Kind { path: path.to_owned(), found, wanted: "file" }),
            },
            Err(error) if error.is_missing() => None,
            Err(error) => return Err(error.at(path)),
        };
        let mut beside = Beside::new(&dir, mode).map_err(|error| error.at(path))?;
        if let Some(old) = old {
            let kept = Mode::from_raw_mode(old.st_mode & 0o777);
            rustix::fs::fchmod(&beside.file, kept).map_err(Error::system(path))?;
        }
        beside.fill(bytes).map_err(Error::io(path))?;
        // A link that came meanwhile is replaced as a name; a directory refuses.
        beside.rename(name, RenameFlags::empty()).map_err(Error::system(path))?;
        dir.sync(path)
    }

    /// Puts a file at a path where nothing stands.
    pub fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
        let (dir, name) = self.parent(path)?;
        let mut beside = Beside::new(&dir, mode).map_err(|error| error.at(path))?;
        beside.fill(bytes).map_err(Error::io(path))?;
        beside.rename(name, RenameFlags::NOREPLACE).map_err(Error::system(path))?;
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

    /// Removes a directory and all below it, links as themselves. Nothing beyond a link is touched. A directory that its owner may not
    /// enter is made enterable first.
    pub fn remove_tree(&self, path: &Path) -> Result<(), Error> {
        let (above, name) = self.parent(path)?;
        if above.kind(name).map_err(|error| error.at(path))? != Some(Kind::Directory) {
            return self.remove_file(path);
        }
        let dir = match above.dir(name) {
            Err(error) if error.io_kind() == std::io::ErrorKind::PermissionDenied => {
                let all = Mode::from_raw_mode(0o700);
                rustix::fs::chmodat(&above, name, all, AtFlags::empty()).map_err(Error::system(path))?;
                above.dir(name)
            }
            other => other,
        };
        let dir = dir.map_err(|error| error.at(path))?;
        for entry in dir.entries(Path::new(""))? {
            let below = Path::new(&entry.name);
            match entry.kind {
                Kind::Directory => dir.remove_tree(below),
                _ => dir.remove_file(below),
            }
            .map_err(|error| error.at(&path.join(below)))?;
        }
        rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR).map_err(Error::system(path))
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
struct Beside<'a> {
    dir: &'a Dir,
    name: OsString,
    file: File,
    placed: bool,
}

impl<'a> Beside<'a> {
    fn new(dir: &'a Dir, mode: u32) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!(".convoke-{}-{number}", std::process::id()));
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
        let (dir, beside): (&Dir, &OsStr) = (self.dir, &self.name);
        match rustix::fs::renameat_with(dir, beside, dir, name, flags) {
            // Not every file system can keep what stands there; a second name cannot take another's place either.
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

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
        }
    }
}
