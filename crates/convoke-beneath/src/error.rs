//! What keeps a path from being opened, and the kinds of things that stand at one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe: opening one can wait for ever.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
}

impl Kind {
    /// The kind that a look at a handle or a name showed.
    pub fn of(stat: &Stat) -> Self {
        Self::from_type(FileType::from_raw_mode(stat.st_mode))
    }

    pub(crate) fn from_type(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

/// Why a path was not opened or written. The path is the one that was given, relative to the directory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is absolute or leads out of the directory.
    #[error("{}: {}", .path.display(), self.reason())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// A link stands at the path or on the way to it.
    #[error("{}: {}", .path.display(), self.reason())]
    Link {
        /// The path.
        path: PathBuf,
    },
    /// Something else stands there than what can be opened.
    #[error("{}: {}", .path.display(), self.reason())]
    Kind {
        /// The path.
        path: PathBuf,
        /// What stands there.
        found: Kind,
        /// What can be opened: `file` or `directory`.
        wanted: &'static str,
    },
    /// The file has more bytes than the caller takes.
    #[error("{}: {}", .path.display(), self.reason())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The most bytes that are taken.
        most: u64,
    },
    /// The system refused.
    #[error("{}: {}", .path.display(), self.reason())]
    System {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// The error for what the system said about a path.
    pub(crate) fn system(path: &Path) -> impl Fn(Errno) -> Self + '_ {
        |errno| match errno {
            Errno::XDEV => Self::Outside { path: path.to_owned() },
            Errno::LOOP => Self::Link { path: path.to_owned() },
            errno => Self::System { path: path.to_owned(), source: errno.into() },
        }
    }

    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::System { path: path.to_owned(), source }
    }

    /// The path that it is about, as it was given.
    pub fn path(&self) -> &Path {
        match self {
            Self::Outside { path }
            | Self::Link { path }
            | Self::Kind { path, .. }
            | Self::TooLarge { path, .. }
            | Self::System { path, .. } => path,
        }
    }

    /// The same error with its path put below a directory.
    pub(crate) fn below(self, dir: &Path) -> Self {
        let path = dir.join(self.path());
        self.at(&path)
    }

    /// The same error with another path: the whole path, where only a part of it was opened.
    pub fn at(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Outside { .. } => Self::Outside { path },
            Self::Link { .. } => Self::Link { path },
            Self::Kind { found, wanted, .. } => Self::Kind { path, found, wanted },
            Self::TooLarge { most, .. } => Self::TooLarge { path, most },
            Self::System { source, .. } => Self::System { path, source },
        }
    }

    /// What is wrong, without the path: for a sentence that names the path itself.
    pub fn reason(&self) -> String {
        match self {
            Self::Outside { .. } => "it leads out of the directory".to_owned(),
            Self::Link { .. } => {
                "a symbolic link stands there or on the way, and links are not followed".to_owned()
            }
            Self::Kind { found, wanted, .. } => format!("{found} stands there, where a {wanted} is needed"),
            Self::TooLarge { most, .. } => format!("it is larger than {most} bytes"),
            Self::System { source, .. } => source.to_string(),
        }
    }

    /// Whether nothing stands at the path.
    pub fn is_missing(&self) -> bool {
        let Self::System { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }

    /// Whether something stands at the path already.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }

    /// The kind of the system's error, or the nearest one for what was refused here.
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::System { source, .. } => source.kind(),
            Self::Kind { wanted: "directory", .. } => io::ErrorKind::NotADirectory,
            Self::Kind { found: Kind::Directory, .. } => io::ErrorKind::IsADirectory,
            Self::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Self::Outside { .. } | Self::Link { .. } | Self::Kind { .. } => io::ErrorKind::InvalidInput,
        }
    }
}

/// Without the path, as the errors of the standard library are.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::System { source, .. } => source,
            refused => Self::new(refused.io_kind(), refused.reason()),
        }
    }
}
