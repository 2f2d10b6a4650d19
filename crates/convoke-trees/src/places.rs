//! Where things are: the program git and the state directory. It names places and touches none of them.

use std::path::PathBuf;

use crate::error::Error;

/// What this crate is told about the machine it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The `PATH` on which `git` is looked for, and the only variable of the host's environment that git is given.
    pub path: String,
    /// Convoke's state directory; everything of ours that is not in a repository lies below it.
    pub state: PathBuf,
}

/// Refuses what cannot be a part of a ref's name and of a file's name alike.
pub(crate) fn checked_name(name: &str) -> Result<&str, Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 128 || name.starts_with('-') || !name.bytes().all(plain) {
        return Err(Error::BadName { name: name.to_owned() });
    }
    Ok(name)
}
