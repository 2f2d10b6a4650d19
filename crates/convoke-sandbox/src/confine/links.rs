//! Hard links that lead out of the workspace: package managers link files of a tree to a cache that all
//! projects share, and a command that writes such a file in place changes it for all of them. They are found
//! before a shell starts and made private: a copy takes the name's place, and what is linked elsewhere stays
//! as it is. It never follows a symbolic link and never changes what a file holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use convoke_beneath::Dir;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};

use crate::policy::LayerSet;
use crate::survey::{Bounds, Met, open_beneath, survey};

/// How much of a tree is looked at.
const LOOKED_AT: Bounds = Bounds { entries: 1_000_000, time: Duration::from_millis(1500) };

/// The most that is copied, and how long that may take.
const COPIED: Most = Most { files: 20_000, bytes: 256 << 20, time: Duration::from_secs(10) };

/// The most places that are mounted read-only because their files are too many or too large to be copied.
const MOUNTED: usize = 16;

/// How long what was found about a tree is believed: shells that start together look once. Commands cannot
/// make such links, and one that another process makes while a shell runs is not seen by that shell either.
const BELIEVED: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
struct Most {
    files: usize,
    bytes: u64,
    time: Duration,
}

/// What is to be done about a tree, and what a person is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Links {
    /// Files and directories that commands must not write.
    pub(crate) read_only: Vec<PathBuf>,
    /// One line, the first time; nothing if there was nothing to do.
    pub(crate) note: Option<String>,
}

/// A file that has names elsewhere.
struct Shared {
    path: PathBuf,
    stat: Stat,
}

/// What was found of the same file within the tree.
struct Names {
    paths: Vec<PathBuf>,
    stat: Stat,
}

/// Makes the files of a workspace private that have names elsewhere, or says where that was not possible.
/// `closed` are places in it that commands do not see or cannot write. Blocks.
pub(crate) fn part(workspace: &Path, closed: &[PathBuf], set: LayerSet) -> Links {
    static KNOWN: Mutex<BTreeMap<PathBuf, (Instant, Links)>> = Mutex::new(BTreeMap::new());
    // Held while looking, so that shells which start at the same time wait for one look.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|_, (since, _)| since.elapsed() < BELIEVED);
    if let Some((_, links)) = known.get(workspace) {
        return Links { note: None, ..links.clone() };
    }
    let links = part_now(workspace, closed, set, LOOKED_AT, COPIED);
    known.insert(workspace.to_owned(), (Instant::now(), links.clone()));
    links
}

fn part_now(workspace: &Path, closed: &[PathBuf], set: LayerSet, bounds: Bounds, most: Most) -> Links {
    let Ok(root) = Dir::open_real(workspace) else { return Links::default() };
    let root = File::from(OwnedFd::from(root));
    let closed: BTreeSet<&Path> =
        closed.iter().filter_map(|path| path.strip_prefix(workspace).ok()).collect();
    let (shared, whole) = shared(&root, &closed, bounds);
    let (private, left) = make_private(&root, shared, most);
    let read_only = if set == LayerSet::Namespaces { to_mount(&left) } else { Vec::new() };
    let open = left.iter().filter(|path| !read_only.iter().any(|above| path.starts_with(above))).count();
    let note = note(private, left.len() - open, open, whole);
    Links { read_only: read_only.into_iter().map(|path| workspace.join(path)).collect(), note }
}

/// The files of the tree with a name elsewhere, the smallest first, and whether the whole tree was looked at.
/// Where it was not, a file of which not all names were met may have them further down; it counts as shared,
/// which costs a copy and nothing else.
fn shared(root: &File, closed: &BTreeSet<&Path>, bounds: Bounds) -> (Vec<Shared>, bool) {
    let mut files: HashMap<(u64, u64), Names> = HashMap::new();
    let whole = survey(root, bounds, &mut |met| {
        if let Met::File(path, stat) = met
            && stat.st_nlink > 1
            && !closed.contains(path)
        {
            let names = files.entry((stat.st_dev, stat.st_ino));
            names.or_insert_with(|| Names { paths: Vec::new(), stat: *stat }).paths.push(path.to_owned());
        }
        matches!(met, Met::Directory(path) if !closed.contains(path))
    });
    let count = |names: &Names| u64::try_from(names.paths.len()).unwrap_or(u64::MAX);
    #[expect(clippy::useless_conversion, reason = "the number of links has another type on other machines")]
    let outside = files.into_values().filter(|names| count(names) < u64::from(names.stat.st_nlink));
    let mut shared: Vec<Shared> = outside
        .flat_map(|Names { paths, stat }| paths.into_iter().map(move |path| Shared { path, stat }))
        .collect();
    shared.sort_by(|one, other| (one.stat.st_size, &one.path).cmp(&(other.stat.st_size, &other.path)));
    (shared, whole)
}

/// Copies as many as may be. Says how many that were, and which are left.
fn make_private(root: &File, shared: Vec<Shared>, most: Most) -> (usize, Vec<PathBuf>) {
    let until = Instant::now() + most.time;
    let mut done = 0;
    let mut bytes = 0_u64;
    let mut left = Vec::new();
    for Shared { path, stat } in shared {
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let fits = done < most.files && bytes.saturating_add(size) <= most.bytes && Instant::now() < until;
        if fits && copy_in_place(root, &path, &stat).is_ok() {
            done += 1;
            bytes += size;
        } else {
            left.push(path);
        }
    }
    (done, left)
}

/// Puts a copy of a file in the place of its name. A file that is written meanwhile is left as it is.
fn copy_in_place(root: &File, path: &Path, seen: &Stat) -> io::Result<()> {
    let changed = || io::Error::other("it is being changed");
    let name = path.file_name().ok_or_else(changed)?;
    let above = path.parent().unwrap_or(Path::new(""));
    let directory = open_beneath(root, above, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut from = File::from(open_beneath(&directory, Path::new(name), OFlags::RDONLY)?);
    let first = rustix::fs::fstat(&from)?;
    let is = |stat: &Stat| {
        (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
    };
    // Another name of the same file may just have been parted from it, so that its change time is no longer
    // what was seen.
    if is(&first) != is(seen) || FileType::from_raw_mode(first.st_mode) != FileType::RegularFile {
        return Err(changed());
    }
    let same = |now: &Stat| {
        is(now) == is(&first) && (now.st_ctime, now.st_ctime_nsec) == (first.st_ctime, first.st_ctime_nsec)
    };
    let beside = format!(".convoke-private-{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut to = File::from(rustix::fs::openat(&directory, &beside, flags, Mode::RUSR | Mode::WUSR)?);
    let made = (|| {
        io::copy(&mut from, &mut to)?;
        rustix::fs::fchown(&to, Some(Uid::from_raw(seen.st_uid)), Some(Gid::from_raw(seen.st_gid)))?;
        rustix::fs::fchmod(&to, Mode::from_raw_mode(seen.st_mode & 0o7777))?;
        let time =
            |seconds, nanoseconds: u64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds.cast_signed() };
        let times = Timestamps {
            last_access: time(seen.st_atime, seen.st_atime_nsec),
            last_modification: time(seen.st_mtime, seen.st_mtime_nsec),
        };
        rustix::fs::futimens(&to, &times)?;
        let still = same(&rustix::fs::fstat(&from)?)
            && same(&rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?);
        if !still {
            return Err(changed());
        }
        Ok(rustix::fs::renameat(&directory, &beside, &directory, name)?)
    })();
    if made.is_err() {
        let _ = rustix::fs::unlinkat(&directory, &beside, AtFlags::empty());
    }
    made
}

/// What is mounted read-only for files that stay shared: the files themselves if they are few, else the
/// directories that hold them, as far down as few are enough. Never the whole tree.
fn to_mount(left: &[PathBuf]) -> Vec<PathBuf> {
    if left.len() <= MOUNTED {
        return left.to_vec();
    }
    let directories: BTreeSet<&Path> = left.iter().filter_map(|path| path.parent()).collect();
    let deepest = directories.iter().map(|path| path.components().count()).max().unwrap_or(0);
    let cut = |depth: usize| -> BTreeSet<PathBuf> {
        let short = |path: &&Path| path.components().take(depth).collect::<PathBuf>();
        directories.iter().map(short).filter(|path| !path.as_os_str().is_empty()).collect()
    };
    let few = (1..=deepest).rev().map(cut).find(|places| places.len() <= MOUNTED);
    let mut places: Vec<PathBuf> = few.unwrap_or_else(|| cut(1)).into_iter().take(MOUNTED).collect();
    let covered = places.clone();
    places.retain(|path| !covered.iter().any(|other| path != other && path.starts_with(other)));
    places
}

fn note(private: usize, mounted: usize, open: usize, whole: bool) -> Option<String> {
    let mut said = Vec::new();
    if private > 0 {
        said.push(format!("{private} {} private copies", if private == 1 { "is now a" } else { "are now" }));
    }
    if mounted > 0 {
        said.push(format!("{mounted} cannot be written by commands"));
    }
    if open > 0 {
        said.push(format!(
            "{open} can be changed by commands where else they are linked, which no diff shows"
        ));
    }
    if !whole {
        said.push("not all of the tree was looked at in time".to_owned());
    }
    let said = said.join("; ").replace("is now a private copies", "is now a private copy");
    (!said.is_empty()).then(|| format!("files with hard links to places outside of the tree: {said}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    const ALL: Most = Most { files: 100, bytes: 1000, time: Duration::from_secs(60) };

    /// A tree with files of which some are linked elsewhere, beside it.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(at.join("w/lib/deep")).unwrap();
        std::fs::create_dir(at.join("cache")).unwrap();
        for (cached, name) in [("one", "w/lib/one"), ("two", "w/lib/deep/two")] {
            std::fs::write(at.join("cache").join(cached), format!("{cached}\n")).unwrap();
            std::fs::hard_link(at.join("cache").join(cached), at.join(name)).unwrap();
        }
        std::fs::write(at.join("w/inside"), "in\n").unwrap();
        std::fs::hard_link(at.join("w/inside"), at.join("w/lib/inside")).unwrap();
        (dir, at)
    }

    fn bounds() -> Bounds {
        Bounds { entries: 1000, time: Duration::from_secs(60) }
    }

    #[test]
    fn files_with_names_elsewhere_become_copies_and_those_within_the_tree_stay_links() {
        let (_dir, at) = tree();
        let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000);
        File::options().write(true).open(at.join("cache/one")).unwrap().set_modified(old).unwrap();
        std::fs::set_permissions(at.join("cache/one"), PermissionsExt::from_mode(0o555)).unwrap();
        let links = part_now(&at.join("w"), &[], LayerSet::Landlock, bounds(), ALL);
        assert_eq!(links.read_only, Vec::<PathBuf>::new());
        let note = links.note.unwrap();
        assert!(note.contains("2 are now private copies") && !note.contains("in time"), "{note}");
        for (cached, name) in [("one", "w/lib/one"), ("two", "w/lib/deep/two")] {
            let there = at.join("cache").join(cached);
            let here = at.join(name);
            let about = here.metadata().unwrap();
            let of = there.metadata().unwrap();
            assert_ne!(about.ino(), of.ino());
            assert_eq!((about.nlink(), about.mode(), about.mtime()), (1, of.mode(), of.mtime()));
            assert_eq!(std::fs::read(here).unwrap(), std::fs::read(there).unwrap());
        }
        assert_eq!(at.join("w/inside").metadata().unwrap().nlink(), 2);
        assert_eq!(part_now(&at.join("w"), &[], LayerSet::Landlock, bounds(), ALL), Links::default(), "once");
        assert_eq!(std::fs::read_dir(at.join("w/lib")).unwrap().count(), 3, "nothing is left beside them");
    }

    #[test]
    fn what_is_too_much_to_copy_is_mounted_read_only_or_named() {
        let (_dir, at) = tree();
        let little = Most { files: 1, ..ALL };
        let links = part_now(&at.join("w"), &[], LayerSet::Namespaces, bounds(), little);
        assert_eq!(links.read_only, [at.join("w/lib/one")]);
        let note = links.note.unwrap();
        assert!(note.contains("1 is now a private copy; 1 cannot be written"), "{note}");
        let none = Most { bytes: 0, ..ALL };
        let links = part_now(&at.join("w"), &[], LayerSet::Landlock, bounds(), none);
        assert!(links.read_only.is_empty() && links.note.unwrap().contains("1 can be changed by commands"));
    }

    #[test]
    fn what_is_closed_is_left_alone_and_a_look_that_was_cut_short_says_so() {
        let (_dir, at) = tree();
        assert_eq!(
            part_now(&at.join("w"), &[at.join("w/lib")], LayerSet::Landlock, bounds(), ALL).note.unwrap(),
            {
                // One of the two names of this one is in what is closed.
                "files with hard links to places outside of the tree: 1 is now a private copy"
            }
        );
        let short = Bounds { entries: 1, ..bounds() };
        let links = part_now(&at.join("w"), &[], LayerSet::Landlock, short, ALL);
        assert!(links.note.unwrap().contains("not all of the tree was looked at"));
    }

    #[test]
    fn many_files_are_mounted_by_few_directories_and_never_by_the_whole_tree() {
        let check = |files: &[String], expected: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            assert_eq!(to_mount(&files), expected.iter().map(PathBuf::from).collect::<Vec<_>>());
        };
        let of = |text: &dyn Fn(usize) -> String| (0..40).map(text).collect::<Vec<_>>();
        check(&["a/b".to_owned(), "c".to_owned()], &["a/b", "c"]);
        check(&of(&|n| format!("node_modules/p{n}/lib/x")), &["node_modules"]);
        check(
            &of(&|n| format!(".venv/lib/p{}/x{n}", n % 3)),
            &[".venv/lib/p0", ".venv/lib/p1", ".venv/lib/p2"],
        );
        check(&of(&|n| format!("x{n}")), &[]);
    }
}
