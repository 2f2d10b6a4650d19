//! From a path as a process names it to a place in the tree. The process waits in its call, so what it sees
//! is looked at by way of its own entries in `/proc`, with links followed as its call would follow them. What
//! the kernel will refuse anyway need not be asked for, and says so here.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::calls::{From, Named};
use crate::confine;
use crate::helper::gate;
use crate::sys::Pid;

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// What the kernel writes behind the path of something that has no name any more.
const NAMELESS: &[u8] = b" (deleted)";

/// Under which paths the tree is seen here, and which part of it at each.
pub(super) struct Views(Vec<(PathBuf, PathBuf)>);

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// Nothing of the tree.
    Elsewhere,
    /// Nothing that the kernel finds either: it will refuse the call.
    Nowhere,
    /// A place of the tree, relative to it.
    Here { path: PathBuf, stands: Stands },
    /// It cannot be told: the process does not let itself be looked into.
    Unknown,
}

/// What is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    Nothing,
    Directory,
    /// A file, a link, or anything else that has nothing below it.
    Other,
}

impl Views {
    /// The paths under which this tree is seen.
    pub(super) fn of(tree: &Path) -> Self {
        Self::with(tree, confine::views(&confine::listed(), tree))
    }

    fn with(tree: &Path, mut views: Vec<(PathBuf, PathBuf)>) -> Self {
        views.push((tree.to_owned(), PathBuf::new()));
        // The longest first: the nearest mount above a path is the one that shows it.
        views.sort_by_key(|(at, _)| std::cmp::Reverse(at.as_os_str().len()));
        views.dedup();
        Self(views)
    }

    /// Where in the tree a path without links is.
    pub(super) fn relative(&self, path: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        self.0.iter().find_map(|(at, below)| path.strip_prefix(at).ok().map(|rest| below.join(rest)))
    }

    /// The place that a descriptor of a process leads to.
    pub(super) fn open(&self, thread: Pid, descriptor: i32) -> Spot {
        let link = format!("/proc/{thread}/fd/{descriptor}");
        match readlinkat(CWD, link.as_str(), Vec::new()) {
            Ok(target) => self.behind(Path::new(&link), target.as_bytes()),
            Err(Errno::NOENT) => Spot::Nowhere,
            Err(_) => Spot::Unknown,
        }
    }

    /// The place that a process names. With `follow`, a link at the end leads on.
    pub(super) fn named(&self, thread: Pid, name: Named, follow: bool) -> Spot {
        let Ok(text) = gate::text(thread, name.address) else { return Spot::Unknown };
        // A path that cannot be read to its end is refused by the kernel, and so is an empty one.
        let Some(mut path) = text.filter(|path| !path.is_empty()) else { return Spot::Nowhere };
        // By far the most of what is written, and never a link.
        if path == b"/dev/null" || path == b"/dev/tty" {
            return Spot::Elsewhere;
        }
        let mut from = match name.from {
            From::Directory => format!("/proc/{thread}/cwd").into_bytes(),
            From::Descriptor(descriptor) => format!("/proc/{thread}/fd/{descriptor}").into_bytes(),
        };
        for _ in 0..MOST_LINKS {
            match self.step(thread, &from, &path, follow) {
                Ok(Step::At(spot)) => return spot,
                Ok(Step::On { above, target }) => (from, path) = (above, target),
                Err(error) => return given_up(error),
            }
        }
        Spot::Nowhere
    }

    fn step(&self, thread: Pid, from: &[u8], path: &[u8], follow: bool) -> Result<Step, Errno> {
        let full = match path {
            [b'/', ..] => own(thread, path),
            _ => [from, b"/", path].concat(),
        };
        let trimmed = full.len() - full.iter().rev().take_while(|byte| **byte == b'/').count();
        let as_directory = trimmed < full.len();
        let cut = full[..trimmed].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (above, last) = (&full[..cut], &full[cut..trimmed]);
        if matches!(last, b"" | b"." | b"..") {
            let (_, at) = directory(&full)?;
            return Ok(Step::At(self.place(&at, Stands::Directory)));
        }
        let (handle, above) = directory(above)?;
        let link = match readlinkat(&handle, OsStr::from_bytes(last), Vec::new()) {
            Ok(target) => Some(target.into_bytes()),
            Err(Errno::INVAL) => None,
            Err(Errno::NOENT) => return Ok(Step::At(self.place(&join(&above, last), Stands::Nothing))),
            Err(error) => return Err(error),
        };
        match link {
            // What these links lead to is no text that could be looked up.
            Some(target) if above.starts_with(b"/proc/") => {
                let link = join(&above, last);
                Ok(Step::At(self.behind(Path::new(OsStr::from_bytes(&link)), &target)))
            }
            Some(target) if follow || as_directory => Ok(Step::On { above, target }),
            Some(_) => Ok(Step::At(self.place(&join(&above, last), Stands::Other))),
            None => {
                let spot = self.place(&join(&above, last), Stands::Other);
                let Spot::Here { path, .. } = spot else { return Ok(Step::At(spot)) };
                let about = statat(&handle, OsStr::from_bytes(last), AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(Step::At(Spot::Here { path, stands: stands(about.st_mode) }))
            }
        }
    }

    /// What a link of the kernel's own leads to: it says where that stands, if it still has a name.
    fn behind(&self, link: &Path, target: &[u8]) -> Spot {
        let spot = if target.starts_with(b"/") { self.place(target, Stands::Other) } else { Spot::Elsewhere };
        let Spot::Here { path, .. } = spot else { return spot };
        match statat(CWD, link, AtFlags::empty()) {
            Ok(about) if about.st_nlink > 0 => Spot::Here { path, stands: stands(about.st_mode) },
            _ => Spot::Elsewhere,
        }
    }

    fn place(&self, path: &[u8], stands: Stands) -> Spot {
        self.relative(path).map_or(Spot::Elsewhere, |path| Spot::Here { path, stands })
    }
}

enum Step {
    At(Spot),
    /// A link, from the directory in which it stands.
    On {
        above: Vec<u8>,
        target: Vec<u8>,
    },
}

/// Where the kernel refuses the path to the process as well, there is nothing to ask.
fn given_up(error: Errno) -> Spot {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG => Spot::Nowhere,
        _ => Spot::Unknown,
    }
}

fn stands(mode: rustix::fs::RawMode) -> Stands {
    match FileType::from_raw_mode(mode) {
        FileType::Directory => Stands::Directory,
        _ => Stands::Other,
    }
}

fn join(above: &[u8], last: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if above.ends_with(b"/") { b"" } else { b"/" };
    [above, slash, last].concat()
}

/// A handle of a directory and its path without links.
fn directory(path: &[u8]) -> Result<(OwnedFd, Vec<u8>), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = openat(CWD, OsStr::from_bytes(path), flags, Mode::empty())?;
    let text = readlinkat(CWD, format!("/proc/self/fd/{}", handle.as_raw_fd()), Vec::new())?.into_bytes();
    // A directory may be called so; only one that was removed has no name.
    if text.ends_with(NAMELESS) && fstat(&handle)?.st_nlink == 0 {
        return Err(Errno::NOENT);
    }
    Ok((handle, text))
}

/// The same path where `self` is the process that names it and not the one that looks.
fn own(thread: Pid, path: &[u8]) -> Vec<u8> {
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let instead: String = match (names.next(), names.next()) {
        (Some(b"proc"), Some(b"self" | b"thread-self")) => format!("/proc/{thread}"),
        (Some(b"dev"), Some(b"fd")) => format!("/proc/{thread}/fd"),
        (Some(b"dev"), Some(b"stdin")) => format!("/proc/{thread}/fd/0"),
        (Some(b"dev"), Some(b"stdout")) => format!("/proc/{thread}/fd/1"),
        (Some(b"dev"), Some(b"stderr")) => format!("/proc/{thread}/fd/2"),
        _ => return path.to_owned(),
    };
    names.fold(instead.into_bytes(), |path, name| join(&path, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_meant_by_what_names_itself() {
        for (path, expected) in [
            ("/proc/self/fd/3", "/proc/7/fd/3"),
            ("//proc//self//cwd/a", "/proc/7/cwd/a"),
            ("/proc/thread-self/fd/1", "/proc/7/fd/1"),
            ("/dev/fd/9", "/proc/7/fd/9"),
            ("/dev/stdout", "/proc/7/fd/1"),
            ("/proc/8/fd/3", "/proc/8/fd/3"),
            ("/dev/null", "/dev/null"),
            ("/home/dev/fd/1", "/home/dev/fd/1"),
        ] {
            assert_eq!(own(7, path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_tree_is_recognised_under_each_path_that_shows_it() {
        let tree = Path::new("/home/me/p");
        let views = vec![
            ("/home/me/p/.git".into(), ".git".into()),
            ("/mnt/p".into(), "".into()),
            ("/srv/out".into(), "build/out".into()),
        ];
        let views = Views::with(tree, views);
        for (path, expected) in [
            ("/home/me/p/a/b", Some("a/b")),
            ("/home/me/p", Some("")),
            ("/home/me/p/.git/config", Some(".git/config")),
            ("/mnt/p/a", Some("a")),
            ("/srv/out/x", Some("build/out/x")),
            ("/home/me/pp", None),
            ("/tmp/x", None),
        ] {
            assert_eq!(views.relative(path.as_bytes()), expected.map(PathBuf::from), "{path}");
        }
    }
}
