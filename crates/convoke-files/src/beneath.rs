//! Opening things beneath a handle, and nowhere else.
//!
//! Two ways lead from a name to a handle. For reading the kernel resolves the whole name beneath the tree
//! (`openat2`). For writing, and where the kernel cannot do that, the name is walked: every component is
//! opened from the handle of the one before it without following links, a relative link's text takes its
//! place in the name, and `..` goes back to the handle the walk came from. Both can only ever reach what lies
//! below the tree's handle, whatever is swapped meanwhile; the walk also tells the real path. Nothing here
//! makes or changes anything.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::refused::{BELOW_A_FILE, Refused};
use crate::root::{Named, Root};
use crate::show;

/// Something opened for reading.
#[derive(Debug)]
pub(crate) enum Opened {
    File(File, Stat),
    Directory(OwnedFd),
}

/// Where a name leads, by walking.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    /// The real path relative to the tree; empty for the tree itself.
    pub(crate) path: PathBuf,
    /// The directory that holds it, or that would hold the first missing directory.
    pub(crate) parent: Rc<OwnedFd>,
    /// Directories on the way that do not exist.
    pub(crate) missing: Vec<OsString>,
    /// Its name in its directory.
    pub(crate) name: OsString,
    /// What it is, if it exists.
    pub(crate) found: Option<Stat>,
}

/// Opening never waits for the other end of a fifo and never takes a terminal.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
/// The kernel gives up on a name with `..` in it while something is being renamed; asking again soon helps.
const MOST_TRIES: usize = 256;
/// Entries of a directory that a refusal names.
const MOST_NEAR: usize = 12;

/// Whether names can be resolved by the kernel beneath this handle.
pub(crate) fn kernel_resolves(fd: BorrowedFd<'_>) -> bool {
    !matches!(open_beneath(fd, Path::new("."), LOOK), Err(Errno::NOSYS | Errno::PERM))
}

/// Opens a file or a directory for reading. The kind is checked twice: before anything is opened for real, so
/// that no device or fifo is touched, and on the handle that is used, so that nothing can be put in its
/// place.
pub(crate) fn open(root: &Root, named: &Named) -> Result<Opened, Refused> {
    let look = open_as(root, named, LOOK)?;
    let seen = stat(look.as_fd()).map_err(|errno| Refused::reading(&named.said, errno))?;
    match kind(&seen) {
        FileType::RegularFile => {
            let fd = open_as(root, named, READ)?;
            let stat = stat(fd.as_fd()).map_err(|errno| Refused::reading(&named.said, errno))?;
            if kind(&stat) != FileType::RegularFile {
                return Err(Refused::Changed { path: named.said.clone() });
            }
            Ok(Opened::File(File::from(fd), stat))
        }
        FileType::Directory => open_as(root, named, READ | OFlags::DIRECTORY).map(Opened::Directory),
        other => Err(special(&named.said, other)),
    }
}

/// Opens an entry of a directory for reading, if it is a regular file. No link is followed.
pub(crate) fn open_file(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(File, Stat), Errno> {
    let fd = rustix::fs::openat(dir, name, READ | OFlags::NOFOLLOW, Mode::empty())?;
    let stat = stat(fd.as_fd())?;
    if kind(&stat) == FileType::RegularFile { Ok((File::from(fd), stat)) } else { Err(Errno::INVAL) }
}

/// Opens a directory within a directory for reading. No link is followed.
pub(crate) fn open_directory(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, name, READ | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// Walks to where a name leads, if that is not hidden. Only the last components may be missing.
pub(crate) fn walk(root: &Root, named: &Named) -> Result<ResolvedPath, Refused> {
    let place = walk_to(root, named)?;
    if root.hides(&place.path) { Err(Refused::Hidden { path: named.said.clone() }) } else { Ok(place) }
}

fn walk_to(root: &Root, named: &Named) -> Result<ResolvedPath, Refused> {
    let failed = |errno| Refused::reading(&named.said, errno);
    let base = rustix::fs::openat(root.fd(), ".", LOOK | OFlags::DIRECTORY, Mode::empty()).map_err(failed)?;
    let mut stack: Vec<(OsString, Rc<OwnedFd>)> = vec![(OsString::new(), Rc::new(base))];
    let mut queue: VecDeque<OsString> = VecDeque::new();
    if !prepend(&mut queue, &named.path) {
        return Err(root.outside(&named.said));
    }
    let mut links = 0;
    while let Some(name) = queue.pop_front() {
        let Some((_, top)) = stack.last() else { return Err(root.outside(&named.said)) };
        if name == ".." {
            if stack.len() == 1 {
                return Err(root.outside(&named.said));
            }
            stack.pop();
            continue;
        }
        let top = Rc::clone(top);
        let entry = match rustix::fs::openat(&*top, &name, LOOK | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(entry) => entry,
            Err(Errno::NOENT) => return unmade(root, named, &stack, top, name, queue),
            Err(errno) => return Err(failed(errno)),
        };
        let found = stat(entry.as_fd()).map_err(failed)?;
        match kind(&found) {
            FileType::Directory => stack.push((name, Rc::new(entry))),
            FileType::Symlink => {
                links += 1;
                let target = rustix::fs::readlinkat(&entry, "", Vec::new()).map_err(failed)?;
                if links > MOST_LINKS {
                    return Err(Refused::Links { path: named.said.clone() });
                }
                if !prepend(&mut queue, Path::new(OsStr::from_bytes(target.to_bytes()))) {
                    return Err(root.outside(&named.said));
                }
            }
            _ if queue.is_empty() => {
                let path = real(&stack).join(&name);
                return Ok(ResolvedPath { path, parent: top, missing: Vec::new(), name, found: Some(found) });
            }
            _ => {
                let advice = "nothing can lie below it";
                return Err(Refused::Kind { path: named.said.clone(), kind: BELOW_A_FILE, advice });
            }
        }
    }
    let path = real(&stack);
    let Some((name, last)) = stack.pop() else { return Err(root.outside(&named.said)) };
    let found = stat(last.as_fd()).map_err(failed)?;
    let parent = stack.pop().map_or(last, |(_, parent)| parent);
    Ok(ResolvedPath { path, parent, missing: Vec::new(), name, found: Some(found) })
}

/// The refusal of a thing that is neither a file nor a directory.
pub(crate) fn special(said: &str, kind: FileType) -> Refused {
    let kind = match kind {
        FileType::Fifo => "a fifo",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a link",
        _ => "neither a file nor a directory",
    };
    Refused::Kind { path: said.to_owned(), kind, advice: "the file tools take regular files and directories" }
}

/// What a handle is.
pub(crate) fn stat(fd: BorrowedFd<'_>) -> Result<Stat, Errno> {
    rustix::fs::fstat(fd)
}

/// The kind within.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether two looks were at the same thing.
pub(crate) fn same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// The size of a file.
pub(crate) fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn open_beneath(fd: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(fd, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < MOST_TRIES => tries += 1,
            other => return other,
        }
    }
}

fn open_as(root: &Root, named: &Named, flags: OFlags) -> Result<OwnedFd, Refused> {
    let opened = if root.kernel_resolves() {
        open_beneath(root.fd(), &named.path, flags)
    } else {
        open_walked(root, named, flags)?
    };
    opened.map_err(|errno| match errno {
        Errno::XDEV => root.outside(&named.said),
        // The walk tells better what is missing, and where.
        Errno::NOENT | Errno::NOTDIR => walk(root, named)
            .and_then(|place| missing(named, &place))
            .map_or_else(|refused| refused, |()| Refused::Changed { path: named.said.clone() }),
        Errno::AGAIN => Refused::Changed { path: named.said.clone() },
        other => Refused::reading(&named.said, other),
    })
}

fn open_walked(root: &Root, named: &Named, flags: OFlags) -> Result<Result<OwnedFd, Errno>, Refused> {
    let place = walk(root, named)?;
    missing(named, &place)?;
    let name = if place.name.is_empty() { OsStr::new(".") } else { &place.name };
    Ok(rustix::fs::openat(&*place.parent, name, flags | OFlags::NOFOLLOW, Mode::empty()))
}

/// Puts the components of a path before what is left of a name; false for an absolute one.
fn prepend(queue: &mut VecDeque<OsString>, path: &Path) -> bool {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => queue.push_front(name.to_owned()),
            Component::ParentDir => queue.push_front(OsString::from("..")),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

fn real(stack: &[(OsString, Rc<OwnedFd>)]) -> PathBuf {
    stack.iter().map(|(name, _)| name).filter(|name| !name.is_empty()).collect()
}

/// The place of something that does not exist, unless the rest of its name makes no sense then.
fn unmade(
    root: &Root,
    named: &Named,
    stack: &[(OsString, Rc<OwnedFd>)],
    parent: Rc<OwnedFd>,
    name: OsString,
    rest: VecDeque<OsString>,
) -> Result<ResolvedPath, Refused> {
    let mut path = real(stack).join(&name);
    let mut missing_names = vec![name];
    let climbs = rest.iter().any(|name| name == "..");
    path.extend(&rest);
    missing_names.extend(rest);
    let name = missing_names.pop().unwrap_or_default();
    let place = ResolvedPath { path, parent, missing: missing_names, name, found: None };
    if climbs {
        missing(named, &place)?;
        return Err(root.outside(&named.said));
    }
    Ok(place)
}

/// The refusal of a place that does not exist, with what exists instead.
pub(crate) fn missing(named: &Named, place: &ResolvedPath) -> Result<(), Refused> {
    if place.found.is_some() {
        return Ok(());
    }
    let mut above = place.path.as_path();
    for _ in 0..=place.missing.len() {
        above = above.parent().unwrap_or(Path::new(""));
    }
    let wanted = place.missing.first().unwrap_or(&place.name).to_string_lossy().to_lowercase();
    let shown = if above.as_os_str().is_empty() { ".".to_owned() } else { show::path(above) };
    let near = match entries(place.parent.as_fd()) {
        Ok(names) if names.is_empty() => {
            format!("The nearest directory that exists is `{shown}`, which is empty.")
        }
        Ok(names) => match names.iter().find(|name| name.to_lowercase() == wanted) {
            Some(name) => format!("`{shown}` holds `{name}`: check the spelling."),
            None => {
                let listed = names
                    .iter()
                    .take(MOST_NEAR)
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ");
                let more = names.len().saturating_sub(MOST_NEAR);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                format!("The nearest directory that exists is `{shown}`; it holds {listed}{more}.")
            }
        },
        Err(_) => format!("The nearest directory that exists is `{shown}`."),
    };
    Err(Refused::Missing { path: named.said.clone(), near })
}

/// The names in a directory, sorted; of a very large one only some.
fn entries(dir: BorrowedFd<'_>) -> Result<Vec<String>, Errno> {
    const ENOUGH: usize = 10_000;
    let mut names = Vec::new();
    for entry in Dir::new(open_directory(dir, OsStr::new("."))?)?.take(ENOUGH) {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(show::path(Path::new(OsStr::from_bytes(name))));
        }
    }
    names.sort();
    Ok(names)
}
