//! The throwaway copy of a tree, for machines where neither an overlay nor a mount can be had. The tree is
//! read through directory handles and no symbolic link is followed, so that a process that changes it
//! meanwhile cannot have something else copied. Never a hard link, and never a write to the tree itself.

mod listing;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::program::Sight;
use crate::remove::remove_tree;
use listing::{Item, Kind, Listing};

/// How much may be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyCap {
    /// Files and symbolic links.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
}

/// What a copy holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Files and symbolic links in it.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// What the tree has and the copy has not, relative to the tree: what git ignores (a directory stands for
    /// all below it), what could not be read, sockets, pipes and devices.
    pub left_out: Vec<PathBuf>,
}

/// Why there is no copy. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The tree passes the cap.
    #[error(
        "{} is too large for a throwaway copy: {files} files with {bytes} bytes were counted, and {} files \
         with {} bytes are allowed; install bubblewrap, which needs no copy, or let git ignore what \
         commands do not need",
        tree.display(), cap.files, cap.bytes
    )]
    TooLarge {
        /// The tree.
        tree: PathBuf,
        /// Files counted until the cap was passed.
        files: u64,
        /// Bytes counted until the cap was passed.
        bytes: u64,
        /// The cap.
        cap: CopyCap,
    },
    /// The copy would have to hold itself.
    #[error("a copy of {} cannot be kept below it, at {}; choose a state directory outside of the \
        tree", tree.display(), copy.display())]
    Inside {
        /// The tree.
        tree: PathBuf,
        /// Where the copy was to be.
        copy: PathBuf,
    },
    /// Something in the tree could not be read.
    #[error("{} could not be read for a throwaway copy; check its permissions", path.display())]
    Read {
        /// What was read.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something in the copy could not be written.
    #[error("{} could not be written for a throwaway copy; check that the disk has room", path.display())]
    Write {
        /// What was written.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Copies the tree `from` to `to`, whose parent exists: tracked and untracked files, not what git ignores,
/// with their modes and times; `.git` becomes a file that points to the original. `sight` is how much git
/// sees when it is asked what belongs to the tree. Blocks.
///
/// A finished copy has a marker beside it and is left as it is, so that what an agent wrote into it is there
/// for the agent's next shell. An unfinished one is removed and made anew.
pub fn make(from: &Path, to: &Path, cap: CopyCap, sight: &Sight) -> Result<Copied, CopyError> {
    if let Some(copied) = finished(to) {
        return Ok(copied);
    }
    let tree = from.canonicalize().map_err(read(from))?;
    let parent = to.parent().unwrap_or(to).canonicalize().map_err(write(to))?;
    if parent.starts_with(&tree) {
        return Err(CopyError::Inside { tree, copy: to.to_owned() });
    }
    remove(to).map_err(write(to))?;
    let made =
        fill(&tree, to, cap, sight).and_then(|copied| mark(to, &copied).map(|()| copied).map_err(write(to)));
    if made.is_err() {
        // The first error is the one to tell; what could not be removed is removed by the next call.
        drop(remove(to));
    }
    made
}

/// Errors of reading and of writing at a path.
fn read<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> CopyError {
    move |source| CopyError::Read { path: path.to_owned(), source: source.into() }
}

fn write<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> CopyError {
    move |source| CopyError::Write { path: path.to_owned(), source: source.into() }
}

/// What the marker of a finished copy says.
#[derive(Serialize, Deserialize)]
struct Marker {
    files: u64,
    bytes: u64,
    left_out: Vec<String>,
}

/// The marker's place: beside the copy, where the agent cannot write.
fn marker(to: &Path) -> PathBuf {
    let mut path = OsString::from(to);
    path.push(".complete");
    path.into()
}

fn finished(to: &Path) -> Option<Copied> {
    let text = std::fs::read(marker(to)).ok()?;
    let Marker { files, bytes, left_out } = serde_json::from_slice(&text).ok()?;
    to.is_dir().then(|| Copied { files, bytes, left_out: left_out.into_iter().map(PathBuf::from).collect() })
}

/// Written under another name first, so that a marker is whole or not there.
fn mark(to: &Path, copied: &Copied) -> io::Result<()> {
    let left_out = copied.left_out.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let text = serde_json::to_vec(&Marker { files: copied.files, bytes: copied.bytes, left_out })?;
    let path = marker(to);
    let mut unfinished = OsString::from(to);
    unfinished.push(".unmarked");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(unfinished, path)
}

/// Removes a copy, marker first, also where it has directories that may not be written.
fn remove(to: &Path) -> io::Result<()> {
    match std::fs::remove_file(marker(to)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => remove_tree(to),
    }
}

fn fill(tree: &Path, to: &Path, cap: CopyCap, sight: &Sight) -> Result<Copied, CopyError> {
    let Listing { items, pointers, mut left_out } = listing::of(tree, to, cap, sight)?;
    let mode = Mode::from_raw_mode(0o700);
    rustix::fs::mkdir(to, mode).map_err(write(to))?;
    let reflinks = AtomicBool::new(true);
    let files = AtomicU64::new(0);
    let bytes = AtomicU64::new(0);
    let copier = || -> Result<Copier<'_>, CopyError> {
        let source = open_directory(CWD, tree).map_err(read(tree))?;
        let target = open_directory(CWD, to).map_err(write(to))?;
        Ok(Copier {
            tree,
            to,
            cap,
            entered: vec![Entered { name: OsString::new(), source, target }],
            reflinks: &reflinks,
            files: &files,
            bytes: &bytes,
            left_out: Vec::new(),
        })
    };
    // Neighbours stay together, so that each worker opens a directory once.
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
    let share = items.len().div_ceil(workers).max(256);
    let outcomes: Vec<Result<Vec<PathBuf>, CopyError>> = std::thread::scope(|scope| {
        let running: Vec<_> = items.chunks(share).map(|items| scope.spawn(|| copier()?.all(items))).collect();
        running
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    for outcome in outcomes {
        left_out.append(&mut outcome?);
    }
    for (directory, text) in pointers {
        let place = to.join(directory);
        std::fs::create_dir_all(&place).map_err(write(&place))?;
        std::fs::write(place.join(".git"), text).map_err(write(&place))?;
    }
    dress_directories(tree, to, &items)?;
    left_out.sort();
    left_out.dedup();
    Ok(Copied { files: files.into_inner(), bytes: bytes.into_inner(), left_out })
}

/// Gives the directories their modes and times, now that nothing more is written into them: the deepest
/// first, because a directory that may not be entered hides those below it.
fn dress_directories(tree: &Path, to: &Path, items: &[Item]) -> Result<(), CopyError> {
    let mut directories = BTreeSet::from([PathBuf::new()]);
    for item in items {
        let mut next =
            if item.kind == Kind::Directory { Some(item.path.as_path()) } else { item.path.parent() };
        while let Some(directory) = next.filter(|directory| !directories.contains(*directory)) {
            directories.insert(directory.to_owned());
            next = directory.parent();
        }
    }
    for directory in directories.iter().rev() {
        let place = to.join(directory);
        let Ok(metadata) = std::fs::symlink_metadata(tree.join(directory)) else { continue };
        if !metadata.is_dir() || !place.is_dir() {
            continue;
        }
        let times = Timestamps {
            last_access: Timespec { tv_sec: metadata.atime(), tv_nsec: metadata.atime_nsec() as _ },
            last_modification: Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() as _ },
        };
        rustix::fs::utimensat(CWD, &place, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(write(&place))?;
        let mode = Permissions::from_mode(metadata.mode() & 0o777);
        std::fs::set_permissions(&place, mode).map_err(write(&place))?;
    }
    Ok(())
}

/// Opens a directory only to look things up below it, for which the right to list it is not needed.
fn open_directory<P: rustix::path::Arg>(at: impl std::os::fd::AsFd, name: P) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// A directory of the tree and its counterpart in the copy.
struct Entered {
    name: OsString,
    source: OwnedFd,
    target: OwnedFd,
}

/// One worker.
struct Copier<'a> {
    tree: &'a Path,
    to: &'a Path,
    cap: CopyCap,
    /// From the top down to the directory of the last item; never empty.
    entered: Vec<Entered>,
    /// Whether the file system may yet turn out to share blocks between files.
    reflinks: &'a AtomicBool,
    files: &'a AtomicU64,
    bytes: &'a AtomicU64,
    left_out: Vec<PathBuf>,
}

impl Copier<'_> {
    fn all(mut self, items: &[Item]) -> Result<Vec<PathBuf>, CopyError> {
        for item in items {
            self.one(item)?;
        }
        Ok(self.left_out)
    }

    fn one(&mut self, item: &Item) -> Result<(), CopyError> {
        let (parent, name) = match (item.path.parent(), item.path.file_name()) {
            (Some(parent), Some(name)) if item.kind != Kind::Directory => (parent, name),
            _ => return self.enter(&item.path).map(drop),
        };
        if !self.enter(parent)? {
            return Ok(());
        }
        let copied = match item.kind {
            Kind::Link => self.link(name, &item.path),
            _ => self.file(name, &item.path),
        };
        match copied {
            Ok(true) => drop(self.files.fetch_add(1, Ordering::Relaxed)),
            Ok(false) => self.left_out.push(item.path.clone()),
            // What has vanished, or has become something else, since it was listed is no longer part of the
            // tree.
            Err(CopyError::Read { source, .. }) if is_gone(&source) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes `directory` the last entered one. `false` if it has vanished or may not be entered.
    fn enter(&mut self, directory: &Path) -> Result<bool, CopyError> {
        let wanted: Vec<&OsStr> = directory.iter().collect();
        let known = self.entered[1..]
            .iter()
            .zip(&wanted)
            .take_while(|(entered, name)| entered.name == **name)
            .count();
        self.entered.truncate(known + 1);
        for name in &wanted[known..] {
            let Some(above) = self.entered.last() else { return Ok(false) };
            let source = match open_directory(&above.source, *name) {
                Ok(source) => source,
                Err(Errno::ACCESS) => {
                    self.left_out.push(directory.to_owned());
                    return Ok(false);
                }
                Err(error) if is_gone(&error.into()) => return Ok(false),
                Err(error) => return Err(read(&self.tree.join(directory))(error)),
            };
            match rustix::fs::mkdirat(&above.target, *name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(write(&self.to.join(directory))(error)),
            }
            let target = open_directory(&above.target, *name).map_err(write(&self.to.join(directory)))?;
            self.entered.push(Entered { name: name.to_os_string(), source, target });
        }
        Ok(true)
    }

    /// The directory of the current item.
    fn here(&self) -> &Entered {
        &self.entered[self.entered.len() - 1]
    }

    fn link(&self, name: &OsStr, path: &Path) -> Result<bool, CopyError> {
        let here = self.here();
        let place = self.to.join(path);
        let failed = |error: Errno| read(&self.tree.join(path))(error);
        let content = rustix::fs::readlinkat(&here.source, name, Vec::new()).map_err(failed)?;
        let stat = rustix::fs::statat(&here.source, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        rustix::fs::symlinkat(content, &here.target, name).map_err(write(&place))?;
        let times = times(&stat);
        rustix::fs::utimensat(&here.target, name, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(write(&place))?;
        Ok(true)
    }

    fn file(&self, name: &OsStr, path: &Path) -> Result<bool, CopyError> {
        let here = self.here();
        let origin = self.tree.join(path);
        let place = self.to.join(path);
        // Without NONBLOCK a pipe put in the file's place would hold us up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let source = match rustix::fs::openat(&here.source, name, flags, Mode::empty()) {
            Ok(source) => File::from(source),
            Err(Errno::ACCESS | Errno::PERM) => return Ok(false),
            Err(error) => return Err(read(&origin)(error)),
        };
        let stat = rustix::fs::fstat(&source).map_err(read(&origin))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(false);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = rustix::fs::openat(&here.target, name, flags, Mode::from_raw_mode(0o600))
            .map_err(write(&place))?;
        let target = File::from(target);
        self.content(&source, &target, stat.st_size.try_into().unwrap_or(0), path)?;
        rustix::fs::fchmod(&target, Mode::from_raw_mode(stat.st_mode & 0o777)).map_err(write(&place))?;
        rustix::fs::futimens(&target, &times(&stat)).map_err(write(&place))?;
        Ok(true)
    }

    /// The bytes: shared with the original where the file system can do that, else copied by the kernel.
    fn content(&self, source: &File, mut target: &File, size: u64, path: &Path) -> Result<(), CopyError> {
        let count = if size > 0 && self.reflinks.load(Ordering::Relaxed) && self.share(source, target) {
            size
        } else {
            // A file that grows while it is copied must not pass the cap either.
            let room = self.cap.bytes.saturating_sub(self.bytes.load(Ordering::Relaxed)).saturating_add(1);
            io::copy(&mut source.take(room), &mut target).map_err(write(&self.to.join(path)))?
        };
        let bytes = self.bytes.fetch_add(count, Ordering::Relaxed) + count;
        if bytes > self.cap.bytes {
            let files = self.files.load(Ordering::Relaxed);
            return Err(CopyError::TooLarge { tree: self.tree.to_owned(), files, bytes, cap: self.cap });
        }
        Ok(())
    }

    /// Whether the target now shares the source's blocks. Once a file system has said no it is not asked
    /// again.
    fn share(&self, source: &File, target: &File) -> bool {
        let shared = rustix::fs::ioctl_ficlone(target, source).is_ok();
        if !shared {
            self.reflinks.store(false, Ordering::Relaxed);
        }
        shared
    }
}

fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime as _, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: stat.st_mtime as _, tv_nsec: stat.st_mtime_nsec as _ },
    }
}

/// Whether an error says that a name no longer means what it meant when the tree was listed.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOENT
                | libc::ENOTDIR
                | libc::ELOOP
                | libc::EINVAL
                | libc::EISDIR
                | libc::ENXIO
                | libc::ESTALE
        )
    )
}
