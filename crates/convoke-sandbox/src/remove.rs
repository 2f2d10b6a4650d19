//! Removing what commands made, among which are directories without the permission to enter or change them.
//! No link is followed.

use std::io;
use std::path::{Path, PathBuf};

use convoke_beneath::Dir;

use crate::confine::{KEPT, with_more};

/// Removes an agent's private directory with its layers, among which are directories without the permission
/// to enter them. What cannot be removed stays.
pub fn remove_private(directory: &Path) {
    // An error is not told: the next shell that needs the place makes it anew, and fails then if it cannot.
    drop(remove_tree(directory));
}

/// The same for an agent that has ended. Its own git dir stays if commits in it may be in no file of its
/// worktree.
pub fn end_private(directory: &Path) {
    if kept_git(directory).is_none() {
        return remove_private(directory);
    }
    let entries = Dir::open(directory).and_then(|directory| directory.entries(Path::new("")));
    let others = entries.into_iter().flatten().filter(|entry| !KEPT.iter().any(|kept| entry.name == *kept));
    others.for_each(|entry| drop(remove_tree(&directory.join(entry.name))));
}

/// That git dir of an agent, in which there are a stash or branches besides what was checked out last.
pub fn kept_git(directory: &Path) -> Option<PathBuf> {
    with_more(directory)
}

/// Removes a directory and all below it; one that is not there is removed already.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else { return Ok(()) };
    match Dir::open(above).and_then(|above| above.remove_tree(Path::new(name))) {
        Err(error) if !error.is_missing() => Err(error.into()),
        _ => Ok(()),
    }
}
