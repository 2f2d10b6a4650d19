//! Where a repository's git dir may be written by agents, a link in it could lead what we write there to another place. Such a
//! link is refused. What git reads by itself, such as the stores that `objects/info/alternates` names, is git's own business:
//! nothing is ever written there.

use std::fs;
use std::path::Path;

use crate::error::Error;

/// What we, or git for us, write to.
const WRITTEN: &[&str] =
    &["objects/info", "objects/pack", "refs/convoke", "packed-refs", "logs/refs", "reftable", "worktrees"];

/// Refuses a git dir with a link where objects or refs are written. It must be given without links.
pub(crate) fn refuse_links(git_dir: &Path) -> Result<(), Error> {
    if git_dir.canonicalize().is_ok_and(|real| real != git_dir) {
        return Err(refusal(git_dir));
    }
    for path in WRITTEN {
        refuse_links_to(git_dir, Path::new(path))?;
    }
    let objects = git_dir.join("objects");
    for entry in fs::read_dir(&objects).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            return Err(refusal(&entry.path()));
        }
    }
    Ok(())
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
