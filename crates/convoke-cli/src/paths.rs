//! The places a session writes to beside the journal, and the executable its commands live under.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use convoke_runtime::own_uid;

use crate::failure::Failure;
use crate::settings::Settings;

/// Where replies go that the journal would not take: beside the journal's usual place, else among temporary
/// files, which are often on another disk.
pub(crate) fn spools(settings: &Settings) -> Vec<PathBuf> {
    let mut spools = vec![settings.spool_dir()];
    if let Some(uid) = own_uid() {
        let temporary = std::env::temp_dir().join(format!("convoke-spool-{uid}"));
        if is_private(&temporary, uid) {
            spools.push(temporary);
        }
    }
    spools
}

/// Whether files can be made in a directory, or in the nearest one above it that exists.
pub(crate) fn probe(dir: &Path) -> Result<(), String> {
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(dir);
    let file = existing.join(format!(".convoke-probe-{}", std::process::id()));
    let made = fs::OpenOptions::new().write(true).create_new(true).open(&file).map(drop);
    let gone = made.and_then(|()| fs::remove_file(&file));
    gone.map_err(|error| format!("{} cannot be written to: {error}", existing.display()))
}

/// Checks that a new session can write what it has to. A session that cannot is not begun.
pub(crate) fn check_writable(settings: &Settings) -> Result<(), Failure> {
    let folder = settings.journal.file().and_then(Path::parent);
    let journal = folder.map(|dir| (dir, "the journal", "--journal or ORCH_JOURNAL"));
    let state = (settings.state_dir.as_path(), "the state directory", "XDG_STATE_HOME");
    for (dir, what, how) in std::iter::once(state).chain(journal) {
        probe(dir).map_err(|problem| {
            Failure::usage(format!("there is no place for {what} {}: {problem}", dir.display())).hint(
                format!("make it writable, or name another place with {how}; nothing was started or spent"),
            )
        })?;
    }
    Ok(())
}

/// This executable, with links resolved: a session goes on under the same file when its name is given to
/// another.
pub(crate) fn own_executable() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::failed(format!("cannot find the running executable: {error}")).hint("is /proc mounted?")
    })
}

/// Whether a place is free, or a directory that no other user can write to or read.
fn is_private(path: &Path, uid: u32) -> bool {
    match fs::symlink_metadata(path) {
        Ok(meta) => meta.is_dir() && meta.uid() == uid && meta.mode() & 0o077 == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_spool_that_others_can_reach_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let uid = own_uid().unwrap();
        let place = dir.path().join("spool");
        assert!(is_private(&place, uid));
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!is_private(&place, uid));
        fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(is_private(&place, uid));
        assert!(!is_private(&place, uid + 1));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&place, &link).unwrap();
        assert!(!is_private(&link, uid));
    }
}
