//! From a relative path to a handle, beneath a directory and nowhere else. It opens and changes nothing.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::Error;

/// What is done about symbolic links on the way and at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// None is followed.
    Refused,
    /// Those that stay beneath the directory are followed. On a kernel before 5.6 they are refused.
    Inside,
}

/// The kernel gives up on a path while something on its way is renamed; asking again soon helps.
const MOST_TRIES: usize = 256;

/// Opens a path beneath a directory with these flags.
pub(crate) fn open(dir: BorrowedFd<'_>, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Error> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    if !is_relative(path) {
        return Err(Error::Outside { path: path.to_owned() });
    }
    let flags = flags | OFlags::CLOEXEC;
    let opened = match by_kernel(dir, path, flags, links) {
        // An old kernel does not know the call, and some container runtimes forbid it.
        Err(Errno::NOSYS | Errno::PERM) => by_walking(dir, path, flags),
        other => other,
    };
    opened.map_err(Error::system(path))
}

fn by_kernel(dir: BorrowedFd<'_>, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let (flags, resolve) = match links {
        Links::Refused => (flags | OFlags::NOFOLLOW, resolve | ResolveFlags::NO_SYMLINKS),
        Links::Inside => (flags, resolve),
    };
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < MOST_TRIES => tries += 1,
            other => return other,
        }
    }
}

/// Opens each component from the handle of the one before it, following no link.
fn by_walking(dir: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names = path.components().peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let above = at.as_ref().map_or(dir, AsFd::as_fd);
        let flags = if names.peek().is_some() { step } else { flags | OFlags::NOFOLLOW };
        at = Some(rustix::fs::openat(above, name.as_os_str(), flags, Mode::empty()).map_err(|errno| {
            // With O_DIRECTORY the kernel reports a link as "not a directory";
            // the caller has to learn that it is a link.
            let is_link = || {
                let found = rustix::fs::statat(above, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
                found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
            };
            if errno == Errno::NOTDIR && is_link() { Errno::LOOP } else { errno }
        })?);
    }
    at.ok_or(Errno::NOENT)
}

/// Whether a path consists of names alone: no `..`, which could lead out while directories are moved, and no
/// root.
fn is_relative(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    /// What the two ways answer for a path that is opened for reading.
    fn both(top: &Path, path: &str) -> [Result<String, Errno>; 2] {
        let dir = fs::File::open(top).unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let read = |fd: OwnedFd| {
            let mut text = String::new();
            fs::File::from(fd).read_to_string(&mut text).map(|_| text).map_err(|_| Errno::ISDIR)
        };
        let path = Path::new(path);
        [
            by_walking(dir.as_fd(), path, flags).and_then(read),
            by_kernel(dir.as_fd(), path, flags, Links::Refused).and_then(read),
        ]
    }

    #[test]
    fn without_openat2_the_same_is_opened_and_the_same_refused() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path();
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/b/file"), "text").unwrap();
        symlink("a", top.join("link")).unwrap();
        symlink("b/file", top.join("a/end")).unwrap();
        let check = |path: &str, expected: Result<&str, Errno>| {
            let expected = expected.map(str::to_owned);
            assert_eq!(both(top, path), [expected.clone(), expected], "{path}");
        };
        check("a/b/file", Ok("text"));
        check("./a/./b/file", Ok("text"));
        check("link/b/file", Err(Errno::LOOP));
        check("a/end", Err(Errno::LOOP));
        check("a/end/below", Err(Errno::LOOP));
        check("a/b", Err(Errno::ISDIR));
        check("a/missing/file", Err(Errno::NOENT));
        check("a/b/file/below", Err(Errno::NOTDIR));
    }
}
