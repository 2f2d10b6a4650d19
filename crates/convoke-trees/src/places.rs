//! Where things are: the program git and the state directory. It names places, looks for git, and writes
//! nowhere.

use std::path::{Path, PathBuf};

use convoke_sandbox::Sight;

use crate::error::Error;

/// What this crate is told about the machine it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlaces {
    /// The `PATH` on which `git` is looked for, outside of what agents write. Git itself is not given it.
    pub path: String,
    /// Convoke's state directory; everything of ours that is not in a repository lies below it.
    pub state: PathBuf,
    /// How much git sees: no more than commands do, where those are confined.
    pub sight: Sight,
}

impl HostPlaces {
    /// The git that is used for a directory in which agents work, if there is one.
    pub fn git(&self, dir: &Path) -> Option<PathBuf> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let never_below = [dir.to_owned(), real(dir), self.state.clone(), real(&self.state)];
        crate::git::find(&self.path, &never_below, &self.sight)
    }
}

/// Refuses what cannot be a part of a ref's name and of a file's name alike.
pub(crate) fn checked_name(name: &str) -> Result<&str, Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 128 || name.starts_with('-') || !name.bytes().all(plain) {
        return Err(Error::BadName { name: name.to_owned() });
    }
    Ok(name)
}
