//! Which files belong to a directory: what git knows or would add, else all of them. It looks at names and
//! kinds, never into files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke_beneath::{Dir, Error, Kind};
use convoke_sandbox::{Git, ProgramOutput, Sight, trusted_program};

/// How long git may take to list a large tree.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where it is looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The most that its names may take.
const NAMES: usize = 64 << 20;

/// Why a directory could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Something in it cannot be read.
    #[error("{} cannot be read: {source}; check that it is there and that you may read it", .path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There are too many files.
    #[error("{} holds more files than can be listed; start in a directory with fewer", .0.display())]
    TooManyFiles(PathBuf),
    /// Git was there and could not be used.
    #[error("git could not list {}: {source}; try again, or start in a smaller directory", .dir.display())]
    Git {
        /// The directory.
        dir: PathBuf,
        /// Why.
        #[source]
        source: convoke_sandbox::Error,
    },
}

impl WorkspaceError {
    pub(super) fn refused(path: &Path) -> impl FnOnce(Error) -> Self + '_ {
        |error| Self::Unreadable { path: path.to_owned(), source: error.into() }
    }
}

/// The files below `dir`, by their names relative to it. Repositories inside are listed by their own rules.
/// Names of files that are gone may be among them.
pub(super) async fn list(sight: &Sight, dir: &Path) -> Result<BTreeSet<PathBuf>, WorkspaceError> {
    let top = Arc::new(Dir::open(dir).map_err(WorkspaceError::refused(dir))?);
    let mut files = BTreeSet::new();
    let mut queue = vec![PathBuf::new()];
    while let Some(below) = queue.pop() {
        let here = dir.join(&below);
        let names = git_list(sight, &here).await?;
        let top = Arc::clone(&top);
        let (found, repositories) = off_thread(move |abandoned| {
            let found = match names {
                Some(names) => sort(&top, names, &below, abandoned),
                None => walk(&top, &below, abandoned),
            };
            found.map_err(|error| WorkspaceError::refused(&here)(error))
        })
        .await?;
        files.extend(found);
        queue.extend(repositories);
    }
    Ok(files)
}

/// What `git ls-files` lists with these arguments; `None` where there is no git or no work tree.
pub(super) async fn git_names(
    sight: &Sight,
    dir: &Path,
    args: &[&str],
    patience: Duration,
) -> Result<Option<Vec<PathBuf>>, WorkspaceError> {
    let args: Vec<&str> = ["ls-files", "-z"].iter().chain(args).copied().collect();
    let Some(output) = git(sight, dir, &args, patience).await? else { return Ok(None) };
    if output.code != 0 {
        return Ok(None);
    }
    if output.truncated {
        return Err(WorkspaceError::TooManyFiles(dir.to_owned()));
    }
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    // Going through the components takes off the slash that git puts behind directories.
    Ok(Some(names.map(|name| Path::new(OsStr::from_bytes(name)).components().collect()).collect()))
}

/// The tree that HEAD names; nothing where there is none.
pub(super) async fn head_tree(sight: &Sight, dir: &Path) -> Result<Vec<u8>, WorkspaceError> {
    if !is_top(dir) {
        return Ok(Vec::new());
    }
    let output = git(sight, dir, &["rev-parse", "--verify", "--quiet", "HEAD^{tree}"], PATIENCE).await?;
    Ok(output.filter(|output| output.code == 0).map(|output| output.stdout).unwrap_or_default())
}

async fn git_list(sight: &Sight, dir: &Path) -> Result<Option<Vec<PathBuf>>, WorkspaceError> {
    let Some(names) =
        git_names(sight, dir, &["--cached", "--others", "--exclude-standard"], PATIENCE).await?
    else {
        return Ok(None);
    };
    // In a directory that its repository ignores git sees nothing that is not tracked, but agents do.
    let ignored = git(sight, dir, &["check-ignore", "-q", "--", "."], PATIENCE).await?;
    Ok(Some(names).filter(|_| ignored.is_none_or(|output| output.code != 0)))
}

async fn git(
    sight: &Sight,
    dir: &Path,
    args: &[&str],
    patience: Duration,
) -> Result<Option<ProgramOutput>, WorkspaceError> {
    let Ok(dir) = dir.canonicalize() else { return Ok(None) };
    let Some(top) = dir.ancestors().find(|place| is_top(place)) else { return Ok(None) };
    let Some(program) = trusted_program("git", Some(OsStr::new(PATH)), &[&dir, top]) else { return Ok(None) };
    // The repository is not trusted: git sees what commands see, and runs nothing that its configuration
    // names.
    let call = Git::new(program, sight.clone()).call().repository(top, &dir).at_most(patience, NAMES);
    // One of the commands refuses to take names literally, and none is given a name that comes from
    // elsewhere.
    match call.env("GIT_LITERAL_PATHSPECS", "0").args(args).run().await {
        Ok(output) => Ok(Some(output)),
        Err(convoke_sandbox::Error::ProgramStart { .. }) => Ok(None),
        Err(source) => Err(WorkspaceError::Git { dir, source }),
    }
}

/// Whether a repository's work tree begins at this directory.
fn is_top(dir: &Path) -> bool {
    Dir::open(dir).is_ok_and(|dir| is_repository(&dir, Path::new("")))
}

fn is_repository(top: &Dir, path: &Path) -> bool {
    top.look(&path.join(".git")).is_ok()
}

/// Files and the repositories that were not entered, by their names relative to the directory that was asked
/// for.
type Found = (Vec<PathBuf>, Vec<PathBuf>);

/// Tells files from directories in git's list: those are other repositories, or the places for them.
fn sort(top: &Dir, names: Vec<PathBuf>, prefix: &Path, abandoned: &AtomicBool) -> Result<Found, Error> {
    let mut files = Vec::new();
    let mut repositories = Vec::new();
    for name in names {
        let path = prefix.join(&name);
        match top.kind(&path) {
            Ok(Some(Kind::Directory)) if is_repository(top, &path) => repositories.push(path),
            Ok(Some(Kind::Directory)) => {
                let (found, inside) = walk(top, &path, abandoned)?;
                files.extend(found);
                repositories.extend(inside);
            }
            _ => files.push(path),
        }
    }
    Ok((files, repositories))
}

/// Every file at or below `from` but git's own.
fn walk(top: &Dir, from: &Path, abandoned: &AtomicBool) -> Result<Found, Error> {
    let mut files = Vec::new();
    let mut repositories = Vec::new();
    let mut queue = vec![from.to_owned()];
    while let Some(here) = queue.pop() {
        let entries = match top.entries(&here) {
            Ok(entries) => entries,
            Err(error) if is_gone(&error) => continue,
            // What cannot be looked into is named, so that it makes a difference whether it is there.
            Err(error) if error.io_kind() == io::ErrorKind::PermissionDenied => {
                files.push(here);
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            if abandoned.load(Ordering::Relaxed) {
                return Ok((files, repositories));
            }
            if entry.name == ".git" {
                continue;
            }
            let path = here.join(&entry.name);
            match entry.kind {
                Kind::Directory if is_repository(top, &path) => repositories.push(path),
                Kind::Directory => queue.push(path),
                _ => files.push(path),
            }
        }
    }
    Ok((files, repositories))
}

/// Whether this says that there is nothing, which may have become true since the name was listed: what lies
/// behind a link is nothing of the directory.
pub(super) fn is_gone(error: &Error) -> bool {
    error.is_missing() || matches!(error, Error::Link { .. } | Error::Kind { wanted: "directory", .. })
}

/// Does work that blocks where it holds up no other task. The work is told when its caller has gone.
pub(super) async fn off_thread<T: Send + 'static>(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> T {
    let abandoned = Arc::new(AtomicBool::new(false));
    let _guard = SetOnDrop(Arc::clone(&abandoned));
    match tokio::task::spawn_blocking(move || work(&abandoned)).await {
        Ok(value) => value,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The program is coming to its end, and the result is not used any more.
            Err(_) => std::future::pending().await,
        },
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
