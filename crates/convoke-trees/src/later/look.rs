//! The looking: one walk over a directory for files that are run later, by handle and bounded, and what is in
//! those that are small. It writes nothing.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_beneath::Dir;
use convoke_sandbox::{Bounds, Met, open_beneath, survey};
use rustix::fs::{AtFlags, OFlags, Stat, StatxFlags};
use serde::{Deserialize, Serialize};

use super::rule::{Kind, is_entered, runs_later};

/// How much of a directory is looked at.
const BOUNDS: Bounds = Bounds { entries: 1_000_000, time: Duration::from_millis(1500) };

/// The most files that are remembered, and of which the content is kept: the largest one, how many, and all
/// together.
const ENTRIES: usize = 50_000;
const KEPT: (u64, usize, usize) = (64 << 10, 2_000, 16 << 20);

/// A file that is run later, as it was at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    /// Size, place, and the times of the last change of content and of anything; whatever changes a file
    /// changes one of them.
    pub(crate) signature: (i64, u64, i64, u64, i64, u64),
    /// Where it leads, if it is a symbolic link.
    pub(crate) link: Option<String>,
    /// Where in the file of contents its own is, and how long that is.
    pub(crate) content: Option<(usize, usize)>,
}

/// What one walk found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    /// By path; one that is no text is not among them.
    pub(crate) entries: BTreeMap<String, Entry>,
    /// Whether everything was looked at.
    pub(crate) whole: bool,
    /// The contents, one after the other.
    #[serde(skip)]
    pub(crate) contents: Vec<u8>,
}

impl Found {
    /// What was in an entry, if that was kept.
    pub(crate) fn bytes(&self, entry: &Entry) -> Option<&[u8]> {
        let (at, length) = entry.content?;
        self.contents.get(at..at.checked_add(length)?)
    }
}

/// Walks over a directory. Nothing that `covered` holds is looked at, but for metadata.
pub(crate) fn look(dir: &Path, named: &[PathBuf], covered: &HashSet<PathBuf>) -> io::Result<Found> {
    let root = File::from(OwnedFd::from(Dir::open_real(dir)?));
    let mut entries = BTreeMap::new();
    let mut full = false;
    let seen_whole = survey(&root, BOUNDS, &mut |met| {
        let (path, stat) = match met {
            Met::Directory(path) => return is_entered(path),
            Met::File(path, stat) => (path, Some(stat)),
            Met::Link(path) => (path, None),
        };
        let Some(kind) = runs_later(path, stat.map(|stat| stat.st_mode), named) else { return false };
        if kind != Kind::Metadata && covered.contains(path) {
            return false;
        }
        let Some(name) = path.to_str() else { return false };
        if entries.len() >= ENTRIES {
            full = true;
            return false;
        }
        let entry = match stat {
            Some(stat) => Some(Entry {
                kind,
                mode: stat.st_mode & 0o7777,
                signature: signature(stat),
                link: None,
                content: None,
            }),
            None => link(&root, path).map(|link| Entry {
                kind,
                mode: 0,
                signature: Default::default(),
                link: Some(link),
                content: None,
            }),
        };
        entries.extend(entry.map(|entry| (name.to_owned(), entry)));
        false
    });
    let mut found = Found { entries, whole: seen_whole && !full, contents: Vec::new() };
    keep(&root, &mut found);
    Ok(found)
}

/// Keeps what is in the small ones, the worst kinds first.
fn keep(root: &File, found: &mut Found) {
    let (largest, most, together) = KEPT;
    let mut kept = 0;
    for kind in [Kind::Metadata, Kind::Named, Kind::Program] {
        for (path, entry) in
            found.entries.iter_mut().filter(|(_, entry)| entry.kind == kind && entry.link.is_none())
        {
            let size = u64::try_from(entry.signature.0).unwrap_or(u64::MAX);
            if size > largest || kept >= most || found.contents.len() >= together {
                continue;
            }
            if let Some((bytes, stat)) = read(root, Path::new(path), largest) {
                // What was written meanwhile is remembered as it was read.
                entry.mode = stat.st_mode & 0o7777;
                entry.signature = signature(&stat);
                entry.content = Some((found.contents.len(), bytes.len()));
                found.contents.extend(bytes);
                kept += 1;
            }
        }
    }
}

fn read(root: &File, path: &Path, largest: u64) -> Option<(Vec<u8>, Stat)> {
    let file = File::from(open_beneath(root, path, OFlags::RDONLY).ok()?);
    let stat = rustix::fs::fstat(&file).ok()?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes).ok()?;
    (u64::try_from(bytes.len()).ok()? <= largest).then_some((bytes, stat))
}

fn signature(stat: &Stat) -> (i64, u64, i64, u64, i64, u64) {
    (stat.st_size, stat.st_ino, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec)
}

fn link(root: &File, path: &Path) -> Option<String> {
    let handle = open_beneath(root, path, OFlags::PATH).ok()?;
    let target = rustix::fs::readlinkat(&handle, "", Vec::new()).ok()?;
    OsStr::from_bytes(target.as_bytes()).to_str().map(str::to_owned)
}

/// Whether something stands at a path.
pub(crate) fn is_there(root: &File, path: &Path) -> bool {
    open_beneath(root, path, OFlags::PATH).is_ok()
}

/// When a file came to be, in nanoseconds, where the filesystem knows.
pub(crate) fn born(root: &File, path: &Path) -> Option<i128> {
    let handle = open_beneath(root, path, OFlags::PATH).ok()?;
    let about = rustix::fs::statx(handle.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let known = StatxFlags::from_bits_retain(about.stx_mask).contains(StatxFlags::BTIME);
    known.then(|| i128::from(about.stx_btime.tv_sec) * 1_000_000_000 + i128::from(about.stx_btime.tv_nsec))
}
