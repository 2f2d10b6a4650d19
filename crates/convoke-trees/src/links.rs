//! Where a repository's git dir may be written by agents, a link in it could lead what we write there to
//! another place. Such a link is refused. What git reads by itself, such as the stores that
//! `objects/info/alternates` names, is git's own business: nothing is ever written there.
//!
//! And a pipe or a device in the place of a file blocks the program that opens it. It is looked for where git
//! always looks; if git meets one elsewhere, it is waited for no longer than any program that stands still.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use convoke_beneath::{Dir, Kind};

use crate::error::Error;

/// What we, or git for us, write to.
const WRITTEN: &[&str] =
    &["objects/info", "objects/pack", "refs/convoke", "packed-refs", "logs/refs", "reftable", "worktrees"];

/// Files of a git dir that git opens whatever it is asked.
const OPENED: &[&str] = &[
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "index",
    "info/attributes",
    "info/exclude",
    "info/sparse-checkout",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
];

/// Files that git opens in every directory.
const RULES: [&str; 2] = [".gitignore", ".gitattributes"];

/// Refuses a git dir in which a pipe stands in a file's place.
pub(crate) fn refuse_pipes(git_dir: &Path) -> Result<(), Error> {
    let files = OPENED.iter().map(|name| git_dir.join(name));
    files.map(|file| (file.metadata(), file)).try_for_each(|(found, file)| refuse_pipe(found, &file))
}

/// The same for the rules of what git ignores, in a directory of a work tree and above it, and for files of
/// the tree that the repository's settings include: git would wait at each of them, and so each time that it
/// is run.
pub(crate) fn refuse_pipes_of_rules(top: &Path, dir: &Path) -> Result<(), Error> {
    for file in convoke_sandbox::named_by_git(top, None) {
        refuse_pipe(file.metadata(), &file)?;
    }
    let places = dir.ancestors().take_while(|place| place.starts_with(top));
    let rules = places.flat_map(|place| RULES.map(|name| place.join(name)));
    // Git follows no link there.
    rules.map(|file| (file.symlink_metadata(), file)).try_for_each(|(found, file)| refuse_pipe(found, &file))
}

fn refuse_pipe(found: io::Result<fs::Metadata>, file: &Path) -> Result<(), Error> {
    // Devices are kept from git by its sight, but for the one that is empty.
    let is_pipe = found.is_ok_and(|found| found.file_type().is_fifo());
    if is_pipe { Err(Error::Pipe { path: file.to_owned() }) } else { Ok(()) }
}

/// The longest that a list of rules, or a file that names a place, may be.
pub(crate) const LONGEST: u64 = 64 << 20;

/// Reads a file; what is none is an error and is not waited for.
pub(crate) fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let (file, _) = convoke_beneath::named_file(path, None)?;
    Ok(convoke_beneath::read_whole(file, path, LONGEST)?)
}

/// Refuses a git dir with a link where objects or refs are written. It must be given without links.
pub(crate) fn refuse_links(git_dir: &Path) -> Result<(), Error> {
    if git_dir.canonicalize().is_ok_and(|real| real != git_dir) {
        return Err(refusal(git_dir));
    }
    for path in WRITTEN {
        refuse_links_to(git_dir, Path::new(path))?;
    }
    let objects = git_dir.join("objects");
    let entries = Dir::open(git_dir).and_then(|dir| dir.entries(Path::new("objects"))).unwrap_or_default();
    match entries.iter().find(|entry| entry.kind == Kind::Link) {
        Some(link) => Err(refusal(&objects.join(&link.name))),
        None => Ok(()),
    }
}

/// Refuses a ref, or the log of one, that would be written through a link.
pub(crate) fn refuse_links_of_ref(git_dir: &Path, name: &str) -> Result<(), Error> {
    refuse_links_to(git_dir, Path::new(name))?;
    refuse_links_to(git_dir, &Path::new("logs").join(name))
}

/// Refuses a link on the way from the git dir to a path below it, and at its end.
pub(crate) fn refuse_links_to(git_dir: &Path, path: &Path) -> Result<(), Error> {
    let mut place = git_dir.to_owned();
    for part in path {
        place.push(part);
        if place.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return Err(refusal(&place));
        }
    }
    Ok(())
}

fn refusal(path: &Path) -> Error {
    let why = "it is a symbolic link, which could lead what is written there to another place".to_owned();
    Error::BadRepository { path: path.to_owned(), why }
}
