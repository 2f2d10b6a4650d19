//! A look over all files below a directory, by handle: no link is followed, whatever is exchanged meanwhile,
//! and it ends when it has seen enough or taken too long. It opens directories alone and changes nothing.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Names, of whatever they are.
    pub entries: u64,
    /// How long it may take.
    pub time: Duration,
}

/// Something that was met.
#[derive(Debug)]
pub enum Met<'a> {
    /// A directory; whether it is entered is the answer.
    Directory(&'a Path),
    /// A regular file with what is known of it.
    File(&'a Path, &'a Stat),
    /// A symbolic link.
    Link(&'a Path),
}

/// Shows everything below a directory to `visit`, what is nearest to the top first, with paths relative to
/// it. Directories are entered where `visit` says so; its answer about files means nothing. Says whether all
/// of it was seen: what cannot be read counts as seen, because the user that runs this cannot write it
/// either.
pub fn survey(root: impl AsFd, bounds: Bounds, visit: &mut dyn FnMut(Met<'_>) -> bool) -> bool {
    let until = Instant::now() + bounds.time;
    let mut open = VecDeque::from([PathBuf::new()]);
    let mut met = 0_u64;
    while let Some(directory) = open.pop_front() {
        if Instant::now() > until {
            return false;
        }
        let Ok(handle) = open_beneath(&root, &directory, OFlags::RDONLY | OFlags::DIRECTORY) else {
            continue;
        };
        let Ok(entries) = Dir::read_from(&handle) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            met += 1;
            if met > bounds.entries || (met.is_multiple_of(1024) && Instant::now() > until) {
                return false;
            }
            let path = directory.join(Path::new(std::ffi::OsStr::from_bytes(name)));
            let mut kind = entry.file_type();
            let mut stat = None;
            if matches!(kind, FileType::RegularFile | FileType::Unknown) {
                let Ok(found) = rustix::fs::statat(&handle, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                else {
                    continue;
                };
                kind = FileType::from_raw_mode(found.st_mode);
                stat = Some(found);
            }
            match (kind, &stat) {
                (FileType::Directory, _) => {
                    let entered = visit(Met::Directory(&path));
                    open.extend(entered.then_some(path));
                }
                (FileType::RegularFile, Some(stat)) => drop(visit(Met::File(&path, stat))),
                (FileType::Symlink, _) => drop(visit(Met::Link(&path))),
                _ => {}
            }
        }
    }
    true
}

/// Opens something below a directory without following any link on the way. An empty path is the directory
/// itself.
pub fn open_beneath(root: impl AsFd, path: &Path, flags: OFlags) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    // What is opened to be read or written must not block, as a pipe would; a handle takes no such flags.
    let waiting =
        if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NONBLOCK | OFlags::NOCTTY };
    let flags = flags | waiting | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let ways = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(root, path, flags, Mode::empty(), ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(entries: u64) -> Bounds {
        Bounds { entries, time: Duration::from_secs(60) }
    }

    #[test]
    fn everything_below_is_met_once_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::create_dir(dir.path().join("closed")).unwrap();
        for file in ["top", "a/b/deep", "closed/unseen"] {
            std::fs::write(dir.path().join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink("closed", dir.path().join("way")).unwrap();
        let root = std::fs::File::open(dir.path()).unwrap();
        let mut met = Vec::new();
        let whole = survey(&root, bounds(100), &mut |one| {
            let (sign, path) = match one {
                Met::Directory(path) => ("d", path),
                Met::File(path, stat) => (if stat.st_size == 1 { "f" } else { "?" }, path),
                Met::Link(path) => ("l", path),
            };
            met.push(format!("{sign} {}", path.display()));
            path != Path::new("closed")
        });
        met.sort();
        assert_eq!(met, ["d a", "d a/b", "d closed", "f a/b/deep", "f top", "l way"]);
        assert!(whole);
        assert!(!survey(&root, bounds(3), &mut |_| true), "a bound that was met is said");
    }
}
