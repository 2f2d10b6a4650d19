//! Two looks at a directory and what changed between them, without reading a single file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use convoke_beneath::{Dir, Stat};
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
    size: i128,
    modified: (i128, i128),
    changed: (i128, i128),
}

impl Snapshot {
    /// Looks at the directory now.
    pub(crate) async fn take(sight: &Sight, dir: &Path) -> Result<Self, WorkspaceError> {
        let paths = list(sight, dir).await?;
        let top = dir.to_owned();
        off_thread(move |abandoned| {
            let dir = Dir::open(&top).map_err(WorkspaceError::refused(&top))?;
            let mut files = BTreeMap::new();
            for path in paths {
                if abandoned.load(Ordering::Relaxed) {
                    break;
                }
                match dir.look(&path) {
                    Ok(stat) => drop(files.insert(path, Stamp::of(&stat))),
                    Err(error) if is_gone(&error) => {}
                    Err(error) => return Err(WorkspaceError::refused(&top.join(&path))(error)),
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
    fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode,
            size: stat.st_size.into(),
            modified: (stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed: (stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        }
    }
}
