//! A directory held open, and reading beneath it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::error::{Error, Kind};
use crate::resolve::{Links, open};

/// Opening waits for no other end of a pipe and takes no terminal.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const LOOK: OFlags = OFlags::PATH;

/// A directory held open by its handle.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// What stands there, as far as the directory tells.
    pub kind: Kind,
}

impl Dir {
    /// Opens a directory by a path that a person or the host chose. Links on the way are followed, so this belongs before the first command,
    /// or to a path above what commands can write.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = READ | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(Error::system(path))?;
        Ok(Self { fd })
    }

    /// Opens a directory by an absolute path that must hold no link, such as one that was canonical when it was recorded.
    pub fn open_real(path: &Path) -> Result<Self, Error> {
        let below = path.strip_prefix("/").map_err(|_| Error::Outside { path: path.to_owned() })?;
        Self::open(Path::new("/"))?.dir(below)
    }

    /// Takes over a handle of a directory.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Opens a directory beneath this one; the empty path is this one.
    pub fn dir(&self, path: &Path) -> Result<Self, Error> {
        let fd = open(self.fd.as_fd(), path, READ | OFlags::DIRECTORY, Links::Refused);
        Ok(Self { fd: fd.map_err(|error| self.not_a_directory(path, error))? })
    }

    /// Looks at what stands at a path, a link as itself. Nothing is opened.
    pub fn look(&self, path: &Path) -> Result<Stat, Error> {
        let fd = open(self.fd.as_fd(), path, LOOK | OFlags::NOFOLLOW, Links::Refused)?;
        rustix::fs::fstat(fd).map_err(Error::system(path))
    }

    /// What stands at a path; `None` if nothing does.
    pub fn kind(&self, path: &Path) -> Result<Option<Kind>, Error> {
        match self.look(path) {
            Ok(stat) => Ok(Some(Kind::of(&stat))),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file for reading, with what it is.
    pub fn file(&self, path: &Path, links: Links) -> Result<(File, Stat), Error> {
        let look = open(self.fd.as_fd(), path, LOOK, links)?;
        must_be_file(path, &rustix::fs::fstat(look).map_err(Error::system(path))?)?;
        let fd = open(self.fd.as_fd(), path, READ, links)?;
        let stat = rustix::fs::fstat(&fd).map_err(Error::system(path))?;
        must_be_file(path, &stat)?;
        Ok((File::from(fd), stat))
    }

    /// Reads a regular file whole, if it has at most `most` bytes.
    pub fn read(&self, path: &Path, links: Links, most: u64) -> Result<Vec<u8>, Error> {
        let (file, _) = self.file(path, links)?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(Error::io(path))?;
        if bytes.len() as u64 > most {
            return Err(Error::TooLarge { path: path.to_owned(), most });
        }
        Ok(bytes)
    }

    /// The text of a symbolic link.
    pub fn link_target(&self, path: &Path) -> Result<PathBuf, Error> {
        let fd = open(self.fd.as_fd(), path, LOOK | OFlags::NOFOLLOW, Links::Refused)?;
        let target = rustix::fs::readlinkat(fd, "", Vec::new()).map_err(Error::system(path))?;
        Ok(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
    }

    /// The names in a directory, without `.` and `..`, in the order of their bytes.
    pub fn entries(&self, path: &Path) -> Result<Vec<Entry>, Error> {
        let dir = self.dir(path)?;
        let listed = rustix::fs::Dir::new(dir.fd).map_err(Error::system(path))?;
        let mut entries = Vec::new();
        for entry in listed {
            let entry = entry.map_err(Error::system(path))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not tell.
                FileType::Unknown => match self.kind(&path.join(&name))? {
                    Some(kind) => kind,
                    None => continue,
                },
                known => Kind::from_type(known),
            };
            entries.push(Entry { name, kind });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    fn not_a_directory(&self, path: &Path, error: Error) -> Error {
        match self.look(path) {
            Ok(stat) if Kind::of(&stat) == Kind::Link => Error::Link { path: path.to_owned() },
            Ok(stat) if Kind::of(&stat) != Kind::Directory => {
                Error::Kind { path: path.to_owned(), found: Kind::of(&stat), wanted: "directory" }
            }
            _ => error,
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn must_be_file(path: &Path, stat: &Stat) -> Result<(), Error> {
    match Kind::of(stat) {
        Kind::File => Ok(()),
        Kind::Link => Err(Error::Link { path: path.to_owned() }),
        found => Err(Error::Kind { path: path.to_owned(), found, wanted: "file" }),
    }
}
