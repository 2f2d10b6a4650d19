//! Files and directories of our own below the state directory and in the repository's admin directory.
//! Nothing here looks into what an agent wrote, except to take it away.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_beneath::Dir;

use super::error::WorktreeError;
use super::names::Site;
use crate::error::Error;
use crate::stops::Steps;
use crate::store::replace_file;

/// How often, and after which pause, a directory is removed that another process is still filling.
const PATIENCE: usize = 200;
/// How many such pauses what a killed process left may take to go.
const LEAVING: usize = 40;
const PAUSE: Duration = Duration::from_millis(25);

/// The right to do something with one worktree; given back when it is dropped, or when the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    pub(super) async fn take(site: &Site) -> Result<Self, WorktreeError> {
        let path = site.lock();
        make_private_dir(path.parent().unwrap_or(&path))?;
        let mut tries = 0;
        loop {
            let file = File::create(&path).map_err(Error::file("making", &path))?;
            match file.try_lock() {
                Ok(()) => {}
                // A process that was killed while it started git leaves a child that holds the lock until it
                // notices.
                Err(TryLockError::WouldBlock) if tries < LEAVING => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(WorktreeError::Busy { run: site.run.clone(), agent: site.agent.clone() });
                }
                Err(TryLockError::Error(error)) => return Err(Error::file("locking", &path)(error).into()),
            }
            // The last holder may have taken the file away, and then the lock on it means nothing.
            let same = |found: &fs::Metadata, held: &fs::Metadata| {
                found.ino() == held.ino() && found.dev() == held.dev()
            };
            let held = file.metadata().map_err(Error::file("looking at", &path))?;
            if fs::metadata(&path).is_ok_and(|found| same(&found, &held)) {
                return Ok(Self { file, path });
            }
        }
    }

    /// Takes the lock's file away with it, when nothing is left that it could guard.
    pub(super) fn remove(self) -> Result<(), Error> {
        remove_file(&self.path)?;
        // The directory of the run goes with its last worktree.
        if let Some(run) = self.path.parent() {
            let _still_used = fs::remove_dir(run);
        }
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not do: a child that is being started elsewhere may hold it open for a
        // moment.
        let _closed_anyway = self.file.unlock();
    }
}

/// A directory that only we can read, with those above it.
pub(super) fn make_private_dir(path: &Path) -> Result<(), Error> {
    // A process that drops a run's last worktree can take its directory away after it was found here.
    let mut tries = 0;
    loop {
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 8 => tries += 1,
            other => return other.map_err(Error::file("making", path)),
        }
    }
}

/// Makes `prefix` below `top` where it is missing, and follows no link that an agent may have put there.
pub(super) fn make_below(top: &Path, prefix: &Path) -> Result<PathBuf, Error> {
    // Joined to nothing it would end with a slash, and be taken for another directory where paths are
    // compared as text.
    let path = if prefix.as_os_str().is_empty() { top.to_owned() } else { top.join(prefix) };
    Dir::open(top).and_then(|top| top.make_dirs(prefix, 0o777)).map_err(Error::opening("making", &path))?;
    Ok(path)
}

/// Whether something is there, a dangling link included.
pub(super) fn exists(path: &Path) -> Result<bool, Error> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::file("looking at", path)(error)),
    }
}

/// The names in a directory of ours; none if it is not there.
pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(Error::file("renaming", from))
}

pub(super) fn remove_file(path: &Path) -> Result<(), Error> {
    crate::tree::remove_if_there(path)
}

/// Takes a directory away with all that is in it, also where the agent left read-only directories.
pub(super) async fn remove_tree(path: &Path) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        let tree = path.to_owned();
        let removed = blocking(move || {
            let (Some(above), Some(name)) = (tree.parent(), tree.file_name()) else { return Ok(Ok(())) };
            let removed = Dir::open(above).and_then(|above| above.remove_tree(Path::new(name)));
            Ok(removed.map_err(io::Error::from))
        });
        match removed.await? {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // The git of a process that was killed may still be filling what that process began to make.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && tries < PATIENCE => tries += 1,
            other => return other.map_err(Error::file("removing", path)),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Runs work that walks a whole tree on a thread of its own, where it holds up no other task.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}

/// What the `.git` file of a worktree says.
pub(super) fn pointer(site: &Site) -> Vec<u8> {
    let mut text = b"gitdir: ".to_vec();
    text.extend_from_slice(site.admin.as_os_str().as_encoded_bytes());
    text.push(b'\n');
    text
}

/// Makes git know the worktree: the few files of its admin directory, as gitrepository-layout(5) has them.
/// `git worktree add` would do the same, but it picks the directory's name itself and leaves a locked half
/// behind when it is killed.
///
/// `tables` says that the repository keeps its refs in tables; then HEAD is still to be set.
pub(super) async fn write_admin(
    site: &Site,
    head: &str,
    index: &Path,
    tables: bool,
    steps: &Steps,
) -> Result<(), Error> {
    let admin = &site.admin;
    fs::create_dir_all(admin).map_err(Error::file("making", admin))?;
    // The lock comes first: without it a `git worktree prune` could take the directory for a leftover.
    let why = format!("in use by convoke; `convoke worktrees drop {} {}` removes it\n", site.run, site.agent);
    let mut back = site.tree.join(".git").into_os_string().into_encoded_bytes();
    back.push(b'\n');
    let head = format!("{head}\n");
    let mut files: Vec<(&str, &[u8])> = vec![("locked", why.as_bytes()), ("commondir", b"../..\n")];
    if tables {
        // Here HEAD is in a table, and git itself has to put it there; the files only say so.
        for dir in ["refs", "reftable"] {
            fs::create_dir_all(admin.join(dir)).map_err(Error::file("making", admin))?;
        }
        files.extend([("HEAD", b"ref: refs/heads/.invalid\n".as_slice()), ("refs/heads", b"see reftable\n")]);
        files.push(("reftable/tables.list", b""));
    } else {
        files.push(("HEAD", head.as_bytes()));
    }
    // What makes it a worktree for git comes last.
    files.push(("gitdir", &back));
    for (name, text) in files {
        steps.step().await;
        replace_file(&admin.join(name), text)?;
        if name == "locked" {
            steps.step().await;
            crate::tree::copy_index(index, &admin.join("index"))?;
        }
    }
    Ok(())
}
