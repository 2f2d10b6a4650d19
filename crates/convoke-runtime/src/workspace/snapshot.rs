//! Two looks at a directory and what changed between them, without reading a single file.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use convoke_beneath::{Dir, Error, Stat};
use convoke_sandbox::Sight;

use super::listing::{WorkspaceError, is_gone, list, off_thread};

/// How the files of a directory looked at one time: the same files that [`fingerprint`](super::fingerprint)
/// counts. The default is that of an empty directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// In the order of their names.
    files: Vec<(Box<Path>, Stamp)>,
}

/// What differs when a file was written to. The time of the last change of status cannot be set by a program,
/// so that restored modification times hide nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    mode: u32,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Snapshot {
    /// Looks at the directory now.
    pub(crate) async fn take(sight: &Sight, dir: &Path) -> Result<Self, WorkspaceError> {
        let paths = list(sight, dir).await?;
        let top = dir.to_owned();
        off_thread(move |abandoned| {
            let dir = Dir::open(&top).map_err(WorkspaceError::refused(&top))?;
            let mut files = Vec::with_capacity(paths.len());
            let mut above: Option<(PathBuf, Dir)> = None;
            for path in paths {
                if abandoned.load(Ordering::Relaxed) {
                    break;
                }
                match look(&dir, &mut above, &path) {
                    Ok(stat) => files.push((path.into_boxed_path(), Stamp::of(&stat))),
                    Err(error) if is_gone(&error) => {}
                    Err(error) => return Err(WorkspaceError::refused(&top.join(&path))(error)),
                }
            }
            Ok(Self { files })
        })
        .await
    }

    /// The relative paths of files that were written to, added or removed between this look and a later one,
    /// in order. A name that is not UTF-8 is shown as well as can be.
    pub(crate) fn changes_to(&self, later: &Self) -> Vec<String> {
        let gone = self.files.iter().map(|(path, _)| path).filter(|path| later.stamp(path).is_none());
        let new =
            later.files.iter().filter(|(path, stamp)| self.stamp(path) != Some(stamp)).map(|(path, _)| path);
        let mut changed: Vec<String> =
            gone.chain(new).map(|path| path.to_string_lossy().into_owned()).collect();
        changed.sort();
        changed
    }

    fn stamp(&self, path: &Path) -> Option<&Stamp> {
        self.files.binary_search_by(|(known, _)| (**known).cmp(path)).ok().map(|at| &self.files[at].1)
    }
}

/// Looks at a file by the handle of the directory that holds it, which is kept for its neighbours: one call
/// of the system for each file.
fn look(top: &Dir, above: &mut Option<(PathBuf, Dir)>, path: &Path) -> Result<Stat, Error> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return top.look(path) };
    if above.as_ref().is_none_or(|(known, _)| known != parent) {
        *above = Some((parent.to_owned(), top.dir(parent)?));
    }
    match above {
        Some((_, dir)) => dir.look_here(name).map_err(|error| error.at(path)),
        None => top.look(path),
    }
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode,
            size: narrow(stat.st_size),
            modified: (narrow(stat.st_mtime), narrow(stat.st_mtime_nsec)),
            changed: (narrow(stat.st_ctime), narrow(stat.st_ctime_nsec)),
        }
    }
}

/// The types of these figures differ between machines.
fn narrow(figure: impl TryInto<i64>) -> i64 {
    figure.try_into().unwrap_or(i64::MAX)
}
