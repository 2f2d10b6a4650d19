//! Removing what commands made, among which are directories that nobody may enter or change. No link is followed.

use std::io;
use std::path::Path;

use convoke_beneath::Dir;

/// Removes an agent's private directory with its layers, among which are directories that nobody may enter. What cannot be
/// removed stays.
pub fn remove_private(directory: &Path) {
    // Whoever needs the place makes its own anew, and hears then if it cannot be had.
    drop(remove_tree(directory));
}

/// Removes a directory and all below it; one that is not there is removed already.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else { return Ok(()) };
    match Dir::open(above).and_then(|above| above.remove_tree(Path::new(name))) {
        Err(error) if !error.is_missing() => Err(error.into()),
        _ => Ok(()),
    }
}
