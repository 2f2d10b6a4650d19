//! Permissions that git does not know: it tells only whether a file can be executed. A file that a run
//! deletes comes back with those that it had, so that a private one is not open to others afterwards. It
//! reads files' modes, never changes one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Kind};

use crate::error::Error;
use crate::keeper::Keeper;

/// The permissions of files by path, where they are not what a tree says.
pub(crate) type Modes = BTreeMap<PathBuf, u32>;

impl Keeper {
    /// Remembers the permissions of all files of a tree that lies below the directory now.
    pub(crate) async fn remember_modes_of(&self, tree: &str) -> Result<(), Error> {
        let call =
            self.store().content("listing files").args(["ls-tree", "-r", "-z", "--name-only", "--full-tree"]);
        let listed = call.arg(tree).run().await?;
        let dir = self.store().dir().to_owned();
        let work = move || {
            let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            let mut modes = Modes::new();
            look(&dir, names.map(|name| Path::new(OsStr::from_bytes(name))), &mut modes);
            modes
        };
        let modes = tokio::task::spawn_blocking(work).await;
        let modes =
            modes.map_err(std::io::Error::other).map_err(Error::file("looking over", self.store().dir()))?;
        self.record().set_modes(&modes)
    }

    /// Remembers the permissions of files that were changed from outside of the run.
    pub(crate) fn remember_modes<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Result<(), Error> {
        let before = self.record().modes()?;
        let mut modes = before.clone();
        look(self.store().dir(), paths, &mut modes);
        if modes == before { Ok(()) } else { self.record().set_modes(&modes) }
    }
}

fn look<'a>(dir: &Path, paths: impl Iterator<Item = &'a Path>, modes: &mut Modes) {
    let dir = Dir::open(dir);
    for path in paths {
        let found = dir.as_ref().ok().and_then(|dir| dir.look(path).ok());
        let mode = found.filter(|found| Kind::of(found) == Kind::File).map(|found| found.st_mode & 0o777);
        match mode {
            Some(mode) if mode != 0o644 && mode != 0o755 => modes.insert(path.to_owned(), mode),
            _ => modes.remove(path),
        };
    }
}

/// How they are written down: `MODE SPACE PATH`, with a zero byte between two.
pub(crate) fn to_bytes(modes: &Modes) -> Vec<u8> {
    let parts = modes
        .iter()
        .map(|(path, mode)| [format!("{mode:o} ").as_bytes(), path.as_os_str().as_bytes()].concat());
    parts.collect::<Vec<_>>().join(&0)
}

/// Reads what [`to_bytes`] wrote; what cannot be read is passed over, for then the person's defaults hold.
pub(crate) fn from_bytes(bytes: &[u8]) -> Modes {
    let read = |part: &[u8]| {
        let space = part.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&part[..space]).ok()?, 8).ok()?;
        Some((PathBuf::from(OsStr::from_bytes(&part[space + 1..])), mode & 0o777))
    };
    bytes.split(|byte| *byte == 0).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_down_is_read_again() {
        let modes: Modes =
            [("a b", 0o600), ("c\nd", 0o7), ("e", 0o750)].map(|(path, mode)| (path.into(), mode)).into();
        assert_eq!(from_bytes(&to_bytes(&modes)), modes);
        assert_eq!(from_bytes(b""), Modes::new());
    }
}
