//! A directory held open, and reading beneath it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::error::{Error, Kind};
use crate::resolve::{Links, open};

/// Opening neither waits for the other end of a pipe nor makes a terminal the controlling one.
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
    /// What kind of thing the name stands for.
    pub kind: Kind,
}

impl Dir {
    /// Opens a directory by a path that a person or the host chose. Links on the way are followed, so this
    /// belongs before the first command, or to a path above what commands can write.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = READ | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(Error::system(path))?;
        Ok(Self { fd })
    }

    /// Opens a directory by an absolute path that must hold no link, such as one that was canonical when it
    /// was recorded.
    pub fn open_real(path: &Path) -> Result<Self, Error> {
        let below = path.strip_prefix("/").map_err(|_| Error::Outside { path: path.to_owned() })?;
        Self::open(Path::new("/"))?.dir(below)
    }

    /// Opens a directory that a person named, before the first command. Links outside of `tree` are the
    /// person's own and are followed; links in the tree, which may come from strangers, are not.
    pub fn open_named(path: &Path, tree: Option<&Path>) -> Result<Self, Error> {
        Self::open_real(&resolved(path, tree)?).map_err(|error| error.at(path))
    }

    /// The same, and makes the directories that are missing on the way.
    pub fn make_named(path: &Path, tree: Option<&Path>, mode: u32) -> Result<Self, Error> {
        match (Self::open_named(path, tree), path.parent(), path.file_name()) {
            (Err(error), Some(parent), Some(name)) if error.is_missing() => {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                let above = Self::make_named(parent, tree, mode)?;
                above.make_dirs(Path::new(name), mode).map_err(|error| error.at(path))
            }
            (opened, ..) => opened,
        }
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

    /// The same for a name in this directory itself, in one call of the system.
    pub fn look_here(&self, name: &OsStr) -> Result<Stat, Error> {
        let path = Path::new(name);
        let mut parts = path.components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name) {
            return Err(Error::Outside { path: path.to_owned() });
        }
        rustix::fs::statat(&self.fd, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).map_err(Error::system(path))
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
        read_whole(self.file(path, links)?.0, path, most)
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
                // Some file systems do not list the kind.
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

impl From<Dir> for OwnedFd {
    fn from(dir: Dir) -> Self {
        dir.fd
    }
}

/// Opens a regular file for reading that a person named. Links are the person's own and are followed; in
/// `tree`, which may come from strangers, they are followed only as far as they stay in it.
pub fn named_file(path: &Path, tree: Option<&Path>) -> Result<(File, Stat), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let (Some(tree), Some(name)) = (tree.and_then(|tree| tree.canonicalize().ok()), path.file_name())
        && let Ok(below) = resolved(parent, Some(&tree))?.strip_prefix(&tree)
    {
        let opened = Dir::open_real(&tree)?.file(&below.join(name), Links::Inside);
        return opened.map_err(|error| error.at(path));
    }
    let open =
        |flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).map_err(Error::system(path));
    must_be_file(path, &rustix::fs::fstat(open(LOOK)?).map_err(Error::system(path))?)?;
    let fd = open(READ)?;
    let stat = rustix::fs::fstat(&fd).map_err(Error::system(path))?;
    must_be_file(path, &stat)?;
    Ok((File::from(fd), stat))
}

/// Reads an opened file whole, if it has at most `most` bytes.
pub fn read_whole(file: File, path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(Error::io(path))?;
    if bytes.len() as u64 > most {
        return Err(Error::TooLarge { path: path.to_owned(), most });
    }
    Ok(bytes)
}

/// Where a path leads, with the links outside of a tree resolved and those in it left as they are.
fn resolved(path: &Path, tree: Option<&Path>) -> Result<PathBuf, Error> {
    // Nothing lies in a tree that is not there.
    let tree = tree.and_then(|tree| tree.canonicalize().ok());
    let mut at = PathBuf::new();
    for part in std::path::absolute(path).map_err(Error::io(path))?.components() {
        match part {
            Component::ParentDir => drop(at.pop()),
            part => at.push(part),
        }
        if !tree.as_ref().is_some_and(|tree| at != *tree && at.starts_with(tree)) {
            at = at.canonicalize().map_err(Error::io(path))?;
        }
    }
    Ok(at)
}

fn must_be_file(path: &Path, stat: &Stat) -> Result<(), Error> {
    match Kind::of(stat) {
        Kind::File => Ok(()),
        Kind::Link => Err(Error::Link { path: path.to_owned() }),
        found => Err(Error::Kind { path: path.to_owned(), found, wanted: "file" }),
    }
}
