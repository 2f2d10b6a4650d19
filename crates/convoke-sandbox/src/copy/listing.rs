//! What belongs to a tree: what git knows or does not ignore, and without git everything. Only lists; the
//! copying looks at each thing again through handles. Runs git with nothing of the repository's own that
//! could run a program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{CopyCap, CopyError, read};
use crate::program::{Git, Sight};
use crate::trusted::trusted_program;

/// What an item was when it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A directory that is listed for itself, because nothing below it need be.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
}

/// One thing to copy, by its path relative to the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

/// Everything to copy, sorted so that what lies in one directory is together.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) items: Vec<Item>,
    /// Directories that have a `.git`, and the text of the file that stands for it in the copy.
    pub(super) pointers: BTreeMap<PathBuf, Vec<u8>>,
    pub(super) left_out: Vec<PathBuf>,
}

/// Lists the tree at `root`, which is canonical, and refuses one that passes the cap. Git is taken neither
/// from the tree nor from around the copy.
pub(super) fn of(root: &Path, copy: &Path, cap: CopyCap, sight: &Sight) -> Result<Listing, CopyError> {
    // This runs before anything is confined, so a git that a command has put somewhere must not be the one.
    let path = std::env::var_os("PATH");
    let git = trusted_program("git", path.as_deref(), &[root, copy.parent().unwrap_or(copy)]);
    let git = git.map(|git| Git::new(git, sight.clone()));
    let repositories = Vec::new();
    let listing = Listing::default();
    let mut lister = Lister { root, git, cap, files: 0, bytes: 0, repositories, listing };
    lister.repository(Path::new(""), repository_around(root))?;
    while let Some(directory) = lister.repositories.pop() {
        let inside = root.join(&directory);
        lister.repository(&directory, inside.join(".git").symlink_metadata().is_ok().then_some(&inside))?;
    }
    let mut listing = lister.listing;
    listing.items.sort();
    listing.items.dedup();
    Ok(listing)
}

/// The nearest directory with a repository, from the tree upwards. One above the tree counts only if the same
/// user owns it, since another user's settings are not to say what belongs to this tree.
fn repository_around(root: &Path) -> Option<&Path> {
    let around = root.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok())?;
    let owner = |path: &Path| path.symlink_metadata().ok().map(|metadata| metadata.uid());
    (around == root || owner(&around.join(".git")) == owner(root)).then_some(around)
}

struct Lister<'a> {
    root: &'a Path,
    git: Option<Git>,
    cap: CopyCap,
    files: u64,
    bytes: u64,
    /// Submodules and repositories within, yet to be listed.
    repositories: Vec<PathBuf>,
    listing: Listing,
}

impl Lister<'_> {
    /// Lists what is at and below `directory` by the git of `work_tree`, if there is one that answers.
    fn repository(&mut self, directory: &Path, work_tree: Option<&Path>) -> Result<(), CopyError> {
        let place = self.root.join(directory);
        if let Some(text) = pointer(&place) {
            self.listing.pointers.insert(directory.to_owned(), text);
        }
        self.listing.items.push(Item { path: directory.to_owned(), kind: Kind::Directory });
        // A tree that the repository around it ignores as a whole is none of that repository's business.
        let whole = |ignored: &[u8]| paths(ignored).any(|path| path == Path::new("."));
        let answer = work_tree.and_then(|work_tree| self.ask_git(&place, work_tree));
        let Some((known, ignored)) = answer.filter(|(_, ignored)| !whole(ignored)) else {
            return self.walk(directory);
        };
        self.listing.left_out.extend(paths(&ignored).map(|path| directory.join(path)));
        let mut known: Vec<&Path> = paths(&known).collect();
        // A file in conflict is listed once for each of its sides.
        known.sort();
        known.dedup();
        for path in known {
            self.item(&directory.join(path), Self::found_by_git)?;
        }
        Ok(())
    }

    /// Git lists a directory only where another repository begins.
    fn found_by_git(&mut self, directory: &Path) {
        self.repositories.push(directory.to_owned());
    }

    fn walk(&mut self, top: &Path) -> Result<(), CopyError> {
        let mut directories = vec![top.to_owned()];
        while let Some(directory) = directories.pop() {
            let place = self.root.join(&directory);
            let entries = match std::fs::read_dir(&place) {
                Ok(entries) => entries,
                Err(error) if directory.as_os_str().is_empty() => return Err(read(&place)(error)),
                Err(error) => {
                    if error.kind() == io::ErrorKind::PermissionDenied {
                        self.listing.left_out.push(directory);
                    }
                    continue;
                }
            };
            if let Some(text) = pointer(&place) {
                self.listing.pointers.insert(directory.clone(), text);
            }
            self.listing.items.push(Item { path: directory.clone(), kind: Kind::Directory });
            for entry in entries.flatten().filter(|entry| entry.file_name() != ".git") {
                let mut below = Vec::new();
                self.item(&directory.join(entry.file_name()), |_, found| below.push(found.to_owned()))?;
                directories.append(&mut below);
            }
        }
        Ok(())
    }

    /// Adds one thing by what it is now; directories are for the caller.
    fn item(&mut self, path: &Path, mut directory: impl FnMut(&mut Self, &Path)) -> Result<(), CopyError> {
        let Ok(metadata) = self.root.join(path).symlink_metadata() else { return Ok(()) };
        let kind = metadata.file_type();
        // Joining to nothing takes the slash away with which git ends a repository's name.
        let path: PathBuf = path.components().collect();
        if kind.is_dir() {
            directory(self, &path);
        } else if kind.is_file() || kind.is_symlink() {
            self.files += 1;
            let link = kind.is_symlink();
            self.bytes += if link { 0 } else { metadata.len() };
            if self.files > self.cap.files || self.bytes > self.cap.bytes {
                let tree = self.root.to_owned();
                let cap = self.cap;
                return Err(CopyError::TooLarge { tree, files: self.files, bytes: self.bytes, cap });
            }
            self.listing.items.push(Item { path, kind: if link { Kind::Link } else { Kind::File } });
        } else {
            self.listing.left_out.push(path);
        }
        Ok(())
    }
}

/// The text of the `.git` file that leads from a copy of `directory` to the original's repository.
fn pointer(directory: &Path) -> Option<Vec<u8>> {
    let git = directory.join(".git");
    let target = if git.metadata().ok()?.is_dir() {
        git
    } else {
        let mut text = Vec::new();
        // A pipe in its place is not waited for.
        convoke_beneath::named_file(&git, None).ok()?.0.take(8192).read_to_end(&mut text).ok()?;
        let path = text.strip_prefix(b"gitdir:")?.trim_ascii();
        directory.join(OsStr::from_bytes(path))
    };
    // A relative pointer would lead elsewhere from the copy.
    let target = target.canonicalize().unwrap_or(target);
    Some([b"gitdir: ", target.as_os_str().as_bytes(), b"\n"].concat())
}

fn paths(listed: &[u8]) -> impl Iterator<Item = &Path> {
    listed
        .split(|&byte| byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| Path::new(OsStr::from_bytes(path)))
}

impl Lister<'_> {
    /// What git knows or does not ignore below `directory`, and what it ignores.
    fn ask_git(&self, directory: &Path, work_tree: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
        let git = self.git.as_ref()?;
        let list = |which: &[&str]| {
            let call = git.call().repository(work_tree, directory).setting("core.quotePath=false");
            let output =
                call.args(["ls-files", "-z", "--exclude-standard"]).args(which).run_blocking().ok()?;
            (output.code == 0 && !output.truncated).then_some(output.stdout)
        };
        Some((list(&["--cached", "--others"])?, list(&["--others", "--ignored", "--directory"])?))
    }
}
