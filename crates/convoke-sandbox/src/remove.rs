//! Removing what commands made, among which are directories that nobody may enter or change. No link is followed.

use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes an agent's private directory with its layers, among which are directories that nobody may enter. What cannot be
/// removed stays.
pub fn remove_private(directory: &Path) {
    // Whoever needs the place makes its own anew, and hears then if it cannot be had.
    drop(remove_tree(directory));
}

/// Removes a directory and all below it; one that is not there is removed already.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    let absent = |error: io::Error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) };
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_up(directory);
            std::fs::remove_dir_all(directory).or_else(absent)
        }
        other => other.or_else(absent),
    }
}

/// Gives the owner all rights to every directory. Where that fails the removal says so.
fn open_up(directory: &Path) {
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        // Only what is listed as a directory is entered, so no link is.
        let _ = std::fs::set_permissions(&directory, Permissions::from_mode(0o700));
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(directories.map(|entry| entry.path()));
    }
}
