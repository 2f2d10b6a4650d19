//! Going through a tree from handle to handle, in the order of names. Links are seen and never followed;
//! `.git` is never entered.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::beneath::{self, Opened};
use crate::caps::{Caps, Deadline};
use crate::ignored::Ignored;
use crate::root::{Named, Root};
use crate::show;

/// One entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// The directory it is in.
    pub(crate) directory: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    /// Relative to the tree.
    pub(crate) path: &'a Path,
    /// Relative to where the walk began.
    pub(crate) below: &'a Path,
    pub(crate) kind: FileType,
    /// 1 for entries of the directory the walk began at.
    pub(crate) depth: usize,
}

/// A walk: what it enters, and what it did not see.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Whether hidden entries and ignored ones are seen too.
    all: bool,
    depth: usize,
    deadline: Deadline,
    /// Entries left out because they are hidden or ignored.
    pub(crate) left_out: u64,
    /// Directories that could not be read.
    pub(crate) unreadable: u64,
    /// Directories too far down.
    pub(crate) too_deep: u64,
    /// Whether the time was up.
    pub(crate) late: bool,
    rules: Ignored,
    /// What of the tree is hidden, relative to where the walk began.
    hidden: Vec<PathBuf>,
}

impl Walk {
    pub(crate) fn new(caps: &Caps, all: bool) -> Self {
        let deadline = caps.deadline();
        Self {
            all,
            depth: caps.depth,
            deadline,
            left_out: 0,
            unreadable: 0,
            too_deep: 0,
            late: false,
            rules: Ignored::default(),
            hidden: Vec::new(),
        }
    }

    /// The same walk, down to this depth only and silent about what is further down.
    pub(crate) fn down_to(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Goes through a directory, which `named` names, until `visit` breaks it off. What `visit` is shown, it
    /// may also be in the middle of.
    pub(crate) fn run(
        &mut self,
        root: &Root,
        named: &Named,
        directory: OwnedFd,
        visit: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) {
        let at = if named.path.as_os_str() == "." { PathBuf::new() } else { named.path.clone() };
        if !self.all {
            self.rules_above(root, &at);
        }
        if root.hides_something() {
            self.hidden = root.hidden_below(named);
        }
        let start = at.as_os_str().len();
        let start = if start == 0 { 0 } else { start + 1 };
        let _ = self.directory(directory, &at, start, 1, visit);
    }

    /// Reads the rules of the directories above the one the walk begins at.
    fn rules_above(&mut self, root: &Root, at: &Path) {
        let above: Vec<Component<'_>> = at.components().collect();
        for length in 0..above.len() {
            let path: PathBuf = above[..length].iter().collect();
            let name = if length == 0 { PathBuf::from(".") } else { path.clone() };
            let named = Named { said: show::path(&name), path: name };
            if let Ok(Opened::Directory(directory)) = beneath::open(root, &named) {
                self.rules.enter(directory.as_fd(), &path);
            }
        }
    }

    fn directory(
        &mut self,
        directory: OwnedFd,
        at: &Path,
        start: usize,
        depth: usize,
        visit: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Ok((names, directory)) = self.names(directory) else {
            self.unreadable += 1;
            return ControlFlow::Continue(());
        };
        if !self.all {
            self.rules.enter(directory.as_fd(), at);
        }
        let mut flow = ControlFlow::Continue(());
        for (name, kind) in names {
            if self.late || self.deadline.passed() {
                self.late = true;
                flow = ControlFlow::Break(());
                break;
            }
            let path = at.join(&name);
            let is_directory = kind == FileType::Directory;
            let below =
                Path::new(OsStr::from_bytes(path.as_os_str().as_bytes().get(start..).unwrap_or_default()));
            if name == ".git"
                || self.hidden.iter().any(|hidden| below.starts_with(hidden))
                || !self.all
                    && (name.as_bytes().starts_with(b".") || self.rules.leaves_out(&path, is_directory))
            {
                self.left_out += u64::from(name != ".git");
                continue;
            }
            let entry = Entry { directory: directory.as_fd(), name: &name, path: &path, below, kind, depth };
            flow = visit(&entry);
            if flow.is_continue() && is_directory {
                flow = self.enter(directory.as_fd(), &name, &path, start, depth, visit);
            }
            if flow.is_break() {
                break;
            }
        }
        if !self.all {
            self.rules.leave();
        }
        flow
    }

    fn enter(
        &mut self,
        above: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        start: usize,
        depth: usize,
        visit: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if depth >= self.depth {
            self.too_deep += 1;
            return ControlFlow::Continue(());
        }
        match beneath::open_directory(above, name) {
            Ok(directory) => self.directory(directory, path, start, depth + 1, visit),
            // It went away or became something else since its name was read.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => ControlFlow::Continue(()),
            Err(_) => {
                self.unreadable += 1;
                ControlFlow::Continue(())
            }
        }
    }

    /// The entries of a directory in the order of their names, and its handle again.
    fn names(&mut self, directory: OwnedFd) -> Result<(Vec<(OsString, FileType)>, OwnedFd), Errno> {
        let mut names = Vec::new();
        for entry in Dir::new(beneath::open_directory(directory.as_fd(), OsStr::new("."))?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            // A directory can be so large that reading it alone takes the time.
            if names.len() % 1024 == 1023 && self.deadline.passed() {
                self.late = true;
                break;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let stat = rustix::fs::statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                kind = stat.map_or(FileType::Unknown, |stat| beneath::kind(&stat));
            }
            names.push((OsString::from_vec(name.to_vec()), kind));
        }
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok((names, directory))
    }

    /// What the walk did not see, as remarks for the answer.
    pub(crate) fn remarks(&self, caps: &Caps) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.late {
            remarks.push(format!(
                "cut off after {:?}: there may be more; search a smaller part of the tree",
                caps.time
            ));
        }
        if self.unreadable > 0 {
            remarks.push(format!(
                "{} could not be read",
                show::count(self.unreadable, "directory", "directories")
            ));
        }
        if self.too_deep > 0 {
            remarks.push(format!(
                "{} more than {} levels down",
                show::count(self.too_deep, "directory is", "directories are"),
                self.depth
            ));
        }
        remarks
    }
}
