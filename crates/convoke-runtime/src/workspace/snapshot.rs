//! Two looks at a directory and what changed between them, without reading a single file.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use convoke_sandbox::Sight;

use super::listing::{WorkspaceError, is_gone, list, off_thread};

/// How the files of a directory looked at one time: the same files that [`fingerprint`](super::fingerprint) counts.
/// The default is that of an empty directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    files: BTreeMap<PathBuf, Stamp>,
}

/// What differs when a file was written to. The time of the last change of status cannot be set by a program, so
/// that restored modification times hide nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Snapshot {
    /// Looks at the directory now.
    pub(crate) async fn take(sight: &Sight, dir: &Path) -> Result<Self, WorkspaceError> {
        let paths = list(sight, dir).await?;
        let dir = dir.to_owned();
        off_thread(move |abandoned| {
            let mut files = BTreeMap::new();
            for path in paths {
                if abandoned.load(Ordering::Relaxed) {
                    break;
                }
                let whole = dir.join(&path);
                match whole.symlink_metadata() {
                    Ok(meta) => drop(files.insert(path, Stamp::of(&meta))),
                    Err(error) if is_gone(&error) => {}
                    Err(error) => return Err(WorkspaceError::unreadable(&whole)(error)),
                }
            }
            Ok(Self { files })
        })
        .await
    }

    /// The relative paths of files that were written to, added or removed between this look and a later one, in order. A
    /// name that is not UTF-8 is shown as well as can be.
    pub(crate) fn changes_to(&self, later: &Self) -> Vec<String> {
        let gone = self.files.keys().filter(|path| !later.files.contains_key(*path));
        let new = later.files.iter().filter(|(path, stamp)| self.files.get(*path) != Some(stamp)).map(|(path, _)| path);
        let mut changed: Vec<String> = gone.chain(new).map(|path| path.to_string_lossy().into_owned()).collect();
        changed.sort();
        changed
    }
}

impl Stamp {
    fn of(meta: &std::fs::Metadata) -> Self {
        Self {
            mode: meta.mode(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}
