//! Metadata of repositories in the workspace, git's above all: what a command leaves there is run when the
//! repositories are used afterwards, so what is there when the shell starts is mounted read-only. It says
//! where metadata is and holds it by handle; it never looks into a repository further than to see that it is
//! one, and it cannot keep a command from making a new one.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::places::Places;
use super::plan::Mount;
use crate::policy::Access;

/// How deep below the workspace repositories are looked for.
const DEPTH: usize = 6;

/// The most directories that are entered from one directory, and altogether.
const NEIGHBOURS: usize = 200;
const DIRECTORIES: usize = 20_000;

/// The most places that are protected besides the `.git` at the top; each needs a few descriptors.
const PLACES: usize = 64;

/// How long looking may take.
const LOOKING: Duration = Duration::from_millis(500);

/// Directories that programs fill by the thousand, in which people keep no repository of their own.
const FILLED: [&str; 7] = ["node_modules", "target", ".venv", "venv", "__pycache__", ".tox", ".cache"];

/// Where other programs keep what they keep of a repository.
const OTHERS: [&str; 4] = [".hg", ".jj", ".sl", ".svn"];

/// Metadata in the workspace besides the `.git` at its top: those of repositories nested in it, the nearest
/// first, and the directories that `.git` files lead to. Nothing in `closed` is looked at. Links are not
/// followed.
pub(crate) fn nested(workspace: &Path, closed: &[&Path]) -> Vec<PathBuf> {
    let until = Instant::now() + LOOKING;
    let top = workspace.join(".git");
    let mut found: Vec<PathBuf> = Vec::new();
    let find = |git: &Path, found: &mut Vec<PathBuf>| {
        let led = leads_to(git).filter(|to| to.starts_with(workspace) && !to.starts_with(&top));
        let itself = (git != top).then(|| git.to_owned());
        for place in itself.into_iter().chain(led) {
            if !closed.iter().any(|closed| place.starts_with(closed)) && !found.contains(&place) {
                found.push(place);
            }
        }
    };
    find(&top, &mut found);
    let mut open = VecDeque::from([(workspace.to_owned(), 0)]);
    let mut entered = 0;
    while let Some((directory, depth)) = open.pop_front() {
        entered += 1;
        if entered > DIRECTORIES || found.len() >= PLACES || Instant::now() > until {
            break;
        }
        let git = directory.join(".git");
        if depth > 0 && git.symlink_metadata().is_ok_and(|about| !about.is_symlink()) {
            find(&git, &mut found);
        }
        for other in OTHERS.map(|name| directory.join(name)) {
            let is_there = other.symlink_metadata().is_ok_and(|about| about.is_dir());
            if is_there && !closed.iter().any(|closed| other.starts_with(closed)) {
                found.push(other);
            }
        }
        if depth == DEPTH {
            continue;
        }
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let wanted = directories.map(|entry| entry.path()).filter(|path| {
            let passed_over = |name: &std::ffi::OsStr| FILLED.iter().chain(&OTHERS).any(|own| name == *own);
            let filled = path.file_name().is_some_and(|name| name == ".git" || passed_over(name));
            !filled && !closed.contains(&path.as_path())
        });
        open.extend(wanted.take(NEIGHBOURS).map(|path| (path, depth + 1)));
    }
    found.truncate(PLACES);
    found
}

/// Where a `.git` that is a file leads, if there is a repository.
fn leads_to(git: &Path) -> Option<PathBuf> {
    if !git.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    convoke_beneath::named_file(git, None).ok()?.0.take(8192).read_to_end(&mut text).ok()?;
    let path = text.strip_prefix(b"gitdir:")?.trim_ascii();
    let to = git.parent()?.join(Path::new(std::ffi::OsStr::from_bytes(path))).canonicalize().ok()?;
    // One that holds the file itself would be the whole tree.
    (to.join("HEAD").is_file() && !git.starts_with(&to)).then_some(to)
}

/// Mounts within the workspace are made by handle, those of git metadata above all: another agent may write
/// the workspace at this moment, and what it puts in their place must not be followed. What cannot be held is
/// an error, because then the shell must not start. The files are to be kept until the mounts are made.
pub(crate) fn hold(
    mounts: &mut Vec<Mount>,
    places: &Places,
    access: Access,
    tree: &Path,
) -> Result<Vec<File>, String> {
    let workspace = &places.workspace;
    let git = workspace.join(".git");
    let copied = tree == places.private.join("copy");
    let failed = |path: &Path, error: io::Error| {
        format!("{} cannot be protected from commands, so none is started: {error}", path.display())
    };
    mounts.retain(|mount| !matches!(mount, Mount::Read { from, .. } if *from == git));
    let mut held = Vec::new();
    if !(copied || access == Access::Workspace) {
        return Ok(held);
    }
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let root = File::options().read(true).custom_flags(flags).open(workspace);
    let root = root.map_err(|error| failed(workspace, error))?;
    let mut take = |at: &Path| -> io::Result<PathBuf> {
        let rest = at.strip_prefix(workspace).map_err(io::Error::other)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let ways = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = File::from(rustix::fs::openat2(&root, rest, flags, Mode::empty(), ways)?);
        let from = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        held.push(file);
        Ok(from)
    };
    if tree == workspace {
        let mut problem = None;
        mounts.retain_mut(|mount| {
            let (Mount::Read { from, at } | Mount::Write { from, at }) = mount else { return true };
            if from != at || at == workspace || !at.starts_with(workspace) {
                return true;
            }
            match take(at) {
                Ok(handle) => *from = handle,
                // What has just gone needs no mount.
                Err(error) if error.kind() == ErrorKind::NotFound => return false,
                Err(error) => problem = Some(failed(at, error)),
            }
            true
        });
        problem.map_or(Ok(()), Err)?;
    }
    match git.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(&git, error)),
        // In a copy the link itself is a copy.
        Ok(about) if about.is_symlink() => {
            if access == Access::Workspace && git.join("HEAD").try_exists().unwrap_or(true) {
                return Err(format!(
                    "{} is a symbolic link, which commands could exchange; put the directory itself there \
                     or a file that says `gitdir: PATH`, or use the read-only policy",
                    git.display()
                ));
            }
        }
        Ok(about) => {
            let from = match &places.own_git {
                // Commands cannot write where the other pointer is, so that it needs no handle.
                Some(own) if about.is_file() => super::own_git::pointer(own),
                _ => take(&git).map_err(|error| failed(&git, error))?,
            };
            // Its own mounts, if something below it is covered, come after it.
            let after = mounts.iter().position(|mount| mount.at().starts_with(&git)).unwrap_or(mounts.len());
            mounts.insert(after, Mount::Read { from, at: git });
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(workspace: &Path) -> Places {
        Places {
            workspace: workspace.to_owned(),
            private: "/state/a1".into(),
            hidden: Vec::new(),
            readable: Vec::new(),
            caches: Vec::new(),
            masked: Vec::new(),
            home: None,
            git: true,
            nested: Vec::new(),
            temporary: Vec::new(),
            run: false,
            own_git: None,
        }
    }

    /// A workspace with these directories, of which those that end with `.git` get a `HEAD`.
    fn workspace(directories: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        for directory in directories {
            std::fs::create_dir_all(at.join(directory)).unwrap();
            if directory.ends_with("git") {
                std::fs::write(at.join(directory).join("HEAD"), "ref: refs/heads/main\n").unwrap();
            }
        }
        (dir, at)
    }

    fn check(at: &Path, closed: &[&Path], expected: &[&str]) {
        let mut found: Vec<PathBuf> = nested(at, closed);
        found.sort();
        assert_eq!(found, expected.iter().map(|path| at.join(path)).collect::<Vec<_>>());
    }

    #[test]
    fn repositories_are_found_down_to_a_depth_and_not_in_what_programs_fill() {
        let deep = ["1/2/3/4/5/6/.git", "1/2/3/4/5/6/7/.git"];
        let (_dir, at) =
            workspace(&[".git", "a/.git", "a/b/.git", "node_modules/x/.git", "h/x/.git", deep[0], deep[1]]);
        check(&at, &[&at.join("h")], &[deep[0], "a/.git", "a/b/.git"]);
    }

    #[test]
    fn metadata_of_other_programs_is_found_too() {
        let (_dir, at) = workspace(&[".hg/store", "a/.jj", "a/.svn/x/.svn", "b/.sl", "c/.hgx"]);
        std::os::unix::fs::symlink("../.hg", at.join("c/.hg")).unwrap();
        check(&at, &[&at.join("b")], &[".hg", "a/.jj", "a/.svn"]);
    }

    #[test]
    fn where_a_git_file_leads_is_found_too_unless_that_is_the_tree_itself() {
        let (_dir, at) = workspace(&["meta-git", "sub", "odd"]);
        std::fs::write(at.join(".git"), "gitdir: meta-git\n").unwrap();
        std::fs::write(at.join("sub/.git"), "gitdir: ../meta-git\n").unwrap();
        std::fs::write(at.join("HEAD"), "").unwrap();
        std::fs::write(at.join("odd/.git"), "gitdir: ..\n").unwrap();
        check(&at, &[], &["meta-git", "odd/.git", "sub/.git"]);
    }

    #[test]
    fn links_are_not_followed_in_looking() {
        let (_other, other) = workspace(&["r/.git"]);
        let (_dir, at) = workspace(&["s"]);
        std::os::unix::fs::symlink(other.join("r"), at.join("r")).unwrap();
        std::os::unix::fs::symlink(other.join("r/.git"), at.join("s/.git")).unwrap();
        check(&at, &[], &[]);
    }

    #[test]
    fn a_link_to_a_repository_cannot_be_held_and_is_refused() {
        let (_dir, at) = workspace(&["real.git", "none"]);
        std::os::unix::fs::symlink("real.git", at.join(".git")).unwrap();
        let error = hold(&mut Vec::new(), &places(&at), Access::Workspace, &at).unwrap_err();
        assert!(error.contains("is a symbolic link"), "{error}");
        std::fs::remove_file(at.join(".git")).unwrap();
        std::os::unix::fs::symlink("none", at.join(".git")).unwrap();
        assert!(
            hold(&mut Vec::new(), &places(&at), Access::Workspace, &at).unwrap().is_empty(),
            "no repository"
        );
    }

    #[test]
    fn what_became_a_link_meanwhile_is_refused_and_what_has_gone_is_not_mounted() {
        let (_dir, at) = workspace(&["a/.git", "elsewhere"]);
        let mount = |path: &str| Mount::Read { from: at.join(path), at: at.join(path) };
        let mut mounts = vec![mount("a/.git"), mount("gone/.git")];
        let held = hold(&mut mounts, &places(&at), Access::Workspace, &at).unwrap();
        let from = PathBuf::from(format!("/proc/self/fd/{}", held[0].as_raw_fd()));
        assert_eq!(mounts, [Mount::Read { from, at: at.join("a/.git") }]);
        std::fs::rename(at.join("a"), at.join("b")).unwrap();
        std::os::unix::fs::symlink("b", at.join("a")).unwrap();
        let error = hold(&mut vec![mount("a/.git")], &places(&at), Access::Workspace, &at).unwrap_err();
        assert!(error.contains("cannot be protected"), "{error}");
    }
}
