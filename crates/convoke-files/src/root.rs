//! The tree an agent works in: its handle, the path the model knows it by, and the paths that
//! no tool writes. It opens nothing itself.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::beneath::{self, Opened};
use crate::refused::Refused;
use crate::show;

/// A tree, held by a handle of its directory.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    shown: PathBuf,
    protected: Protected,
    /// What is neither read nor written, by its real path relative to the tree.
    hidden: Vec<PathBuf>,
    /// What is not written, by its real path relative to the tree.
    guarded: Vec<PathBuf>,
    kernel_resolves: bool,
}

/// What no tool writes in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// Whether anything may be written at all.
    pub writing: bool,
    /// Components of a path, such as `.git`, that are neither written nor written below, in whatever case
    /// they are spelt.
    pub names: Vec<String>,
}

/// A path the model said, and what it is relative to the tree.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// As the model said it, for texts.
    pub(crate) said: String,
    /// Relative to the tree; `.` for the tree itself. It may hold `..`, which only the kernel or the walk by
    /// handle resolves.
    pub(crate) path: PathBuf,
}

impl Root {
    /// A tree by the handle of its directory (`O_PATH` is enough). `shown` is the absolute path the model
    /// knows it by; it is only compared and printed, never opened.
    pub fn new(fd: OwnedFd, shown: PathBuf, protected: Protected) -> Self {
        let kernel_resolves = beneath::kernel_resolves(fd.as_fd());
        Self { fd, shown, protected, hidden: Vec::new(), guarded: Vec::new(), kernel_resolves }
    }

    /// The same tree without what lies at or below these paths, which are relative to it. Names are then
    /// walked, because only that tells where a name really leads.
    #[must_use]
    pub fn hiding(mut self, hidden: Vec<PathBuf>) -> Self {
        self.kernel_resolves &= hidden.is_empty();
        self.hidden = hidden;
        self
    }

    /// The same tree, in which nothing is written at or below these paths, which are relative to it.
    #[must_use]
    pub fn guarding(mut self, guarded: Vec<PathBuf>) -> Self {
        self.guarded = guarded;
        self
    }

    /// Where a path of the model's really leads, relative to the tree: links are followed and `..` is
    /// resolved.
    pub fn real_path(&self, said: &str) -> Result<PathBuf, Refused> {
        beneath::walk(self, &self.named(said)?).map(|place| place.path)
    }

    /// Reads a file whole, if it has at most `cap` bytes.
    pub fn read(&self, said: &str, cap: u64) -> Result<Vec<u8>, Refused> {
        let named = self.named(said)?;
        let (file, stat) = match beneath::open(self, &named)? {
            Opened::File(file, stat) => (file, stat),
            Opened::Directory(_) => {
                let advice = "name a file in it";
                return Err(Refused::Kind { path: named.said, kind: "a directory", advice });
            }
        };
        let mut bytes = Vec::new();
        let read = file.take(cap.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| Refused::reading_io(&named.said, &error))?;
        if bytes.len() as u64 > cap {
            let size = show::size(beneath::length(&stat).max(bytes.len() as u64));
            return Err(Refused::Large {
                path: named.said,
                size,
                cap: show::size(cap),
                advice: "Read a part of it.",
            });
        }
        Ok(bytes)
    }

    /// Whether something of the tree is hidden.
    pub(crate) fn hides(&self, real: &Path) -> bool {
        self.hidden.iter().any(|hidden| real.starts_with(hidden))
    }

    /// What is hidden below a directory, relative to it.
    pub(crate) fn hidden_below(&self, named: &Named) -> Vec<PathBuf> {
        let real = beneath::walk(self, named).map(|place| place.path).unwrap_or_default();
        self.hidden.iter().filter_map(|hidden| Some(hidden.strip_prefix(&real).ok()?.to_owned())).collect()
    }

    /// Whether the tree hides anything.
    pub(crate) fn hides_something(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// The same tree as it is used where the kernel cannot resolve names beneath a handle (`openat2` is
    /// missing or filtered out): names are then walked one component after the other. [`Root::new`] finds
    /// this out by itself.
    #[must_use]
    pub fn by_walking(mut self) -> Self {
        self.kernel_resolves = false;
        self
    }

    /// The absolute path the model knows the tree by.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Whether the kernel resolves names beneath the handle, or they are walked.
    pub fn kernel_resolves(&self) -> bool {
        self.kernel_resolves
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The tree's path for texts.
    pub(crate) fn tree(&self) -> String {
        show::path(&self.shown)
    }

    /// What a path of the model's is relative to the tree. Nothing is looked up; a
    /// `..` is resolved when the path is opened.
    pub(crate) fn named(&self, said: &str) -> Result<Named, Refused> {
        let bad = |why| Err(Refused::Path { path: said.escape_debug().to_string(), why });
        if said.is_empty() {
            return bad("it is empty; `.` is the tree itself");
        }
        if said.contains('\0') {
            return bad("it holds a NUL character");
        }
        let path = Path::new(said);
        let path = match path.strip_prefix(&self.shown) {
            Ok(below) => below,
            Err(_) if path.is_absolute() => return Err(self.outside(said)),
            Err(_) => path,
        };
        let mut path: PathBuf = path.components().collect();
        if path.as_os_str().is_empty() {
            path.push(".");
        }
        Ok(Named { said: said.to_owned(), path })
    }

    /// The refusal of a path that leads out of the tree.
    pub(crate) fn outside(&self, said: &str) -> Refused {
        Refused::Outside { path: said.to_owned(), tree: self.tree() }
    }

    /// Whether the real path of something to be written lies where it may be.
    pub(crate) fn may_write(&self, said: &str, real: &Path) -> Result<(), Refused> {
        if !self.protected.writing {
            return Err(Refused::ReadOnly { tree: self.tree() });
        }
        let protected = real.components().find_map(|component| {
            let component = component.as_os_str().to_string_lossy();
            self.protected.names.iter().find(|name| component.eq_ignore_ascii_case(name))
        });
        let guarded = self.guarded.iter().find(|path| real.starts_with(path));
        match protected.cloned().or_else(|| guarded.map(|path| show::path(path))) {
            Some(name) => Err(Refused::Protected { path: said.to_owned(), name }),
            None => Ok(()),
        }
    }
}
