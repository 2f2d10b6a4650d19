//! What a worktree holds now, as a tree of git's, and what git cannot or must not hold. Reads the directory
//! and believes nothing in it; writes objects, and refs of our own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Kind, Links};

use super::Worktrees;
use super::disk;
use super::names::Site;
use super::types::Base;
use crate::error::Error;
use crate::store::{Location, Store};
use crate::tree::{GITLINK, TreeChange};

/// What lies in a worktree.
#[derive(Debug)]
pub(super) struct Content {
    /// Every tracked and untracked file.
    pub(super) tree: String,
    /// In which files it differs from the base.
    pub(super) changes: Vec<TreeChange>,
    /// What is not in the tree.
    pub(super) ignored: Vec<PathBuf>,
    /// Those of them that git does not ignore, so that they are stored nowhere although they may be work.
    pub(super) not_stored: Vec<PathBuf>,
}

impl Content {
    pub(super) fn files(&self) -> Vec<String> {
        shown(&self.changes)
    }
}

/// The paths of changes as they are shown to people.
pub(super) fn shown(changes: &[TreeChange]) -> Vec<String> {
    changes.iter().map(|change| change.path.to_string_lossy().into_owned()).collect()
}

impl Worktrees {
    /// The store through which the files of a worktree are read: our git dir, the repository's objects.
    pub(super) fn files_of(&self, site: &Site) -> Store {
        let location = Location {
            dir: site.tree.clone().into(),
            top: site.tree.clone().into(),
            git_dir: Some(self.git_dir.clone().into()),
            ..self.store.location().clone()
        };
        Store::at(&self.places, location)
    }

    /// Reads the whole directory. `index` is a file of ours; if it is there from the last time, only what
    /// changed since is read again.
    pub(super) async fn content(&self, site: &Site, base: &Base, index: &Path) -> Result<Content, Error> {
        let store = self.files_of(site);
        self.steps.step().await;
        store.prepare().await?;
        let scan = self.scan(site).await?;
        let base_tree = self.base_tree(base).await?;
        if !disk::exists(index)? {
            self.steps.step().await;
            let call = store.content("reading a worktree").work_tree(&site.tree).index(index)?;
            call.args(["read-tree", &base_tree]).run().await?;
        }
        self.steps.step().await;
        let hidden = |path: &Path| scan.left_out().any(|out| path.starts_with(out));
        let taken = store.snapshot(index, hidden).await?;
        let left_out: Vec<&Path> = taken
            .left_out
            .iter()
            .map(|out| out.path.as_path())
            .chain(scan.left_out().map(PathBuf::as_path))
            .collect();
        let mut changes = store.diff_trees(&base_tree, &taken.tree).await?;
        let mut tree = taken.tree;
        let top = Dir::open(&site.tree).map_err(Error::opening("opening", &site.tree))?;
        let wrong: Vec<Wrong> = changes.iter().filter_map(|change| wrong(&top, change, &left_out)).collect();
        if !wrong.is_empty() {
            self.steps.step().await;
            tree = self.put_right(&store, site, index, &changes, &wrong).await?;
            changes = store.diff_trees(&base_tree, &tree).await?;
        }
        let (ignored, not_stored) = self.ignored(&store, site, index, &left_out, base).await?;
        Ok(Content { tree, changes, ignored, not_stored })
    }

    async fn put_right(
        &self,
        store: &Store,
        site: &Site,
        index: &Path,
        changes: &[TreeChange],
        wrong: &[Wrong],
    ) -> Result<String, Error> {
        let git = || store.content("reading a worktree").work_tree(&site.tree).index(index);
        for some in wrong.chunks(500) {
            let mut call = git()?.args(["update-index", "--add", "--replace"]);
            for wrong in some.iter().filter(|wrong| !wrong.read) {
                let change = changes.iter().find(|change| change.path == wrong.path);
                if let Some(old) = change.and_then(|change| change.old.as_ref()) {
                    let mut entry = std::ffi::OsString::from(format!("{:o},{},", old.mode, old.id));
                    entry.push(&wrong.path);
                    call = call.arg("--cacheinfo").arg(entry);
                }
            }
            call = call.arg("--");
            call.args(some.iter().filter(|wrong| wrong.read).map(|wrong| &wrong.path)).run().await?;
        }
        git()?.arg("write-tree").line().await
    }

    /// What lies in the directory and not in the tree: what git ignores, what it cannot store, repositories,
    /// whatever lies where a submodule would be, and a `.git` that is not the one we wrote. Second, those of
    /// them that git does not ignore.
    async fn ignored(
        &self,
        store: &Store,
        site: &Site,
        index: &Path,
        left_out: &[&Path],
        base: &Base,
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
        let call = store.content("listing ignored files").work_tree(&site.tree).index(index)?;
        let call = call.args([
            "ls-files",
            "-z",
            "-o",
            "-i",
            "--exclude-standard",
            "--directory",
            "--no-empty-directory",
        ]);
        let listed = call.run().await?;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let ignored: Vec<PathBuf> = names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        let mut found: Vec<PathBuf> = left_out.iter().map(|path| path.to_path_buf()).collect();
        let tree = Dir::open(&site.tree).map_err(Error::opening("opening", &site.tree))?;
        for link in self.submodules(base.commit()).await? {
            let filled = tree.entries(Path::new(&link)).is_ok_and(|entries| !entries.is_empty());
            if filled && !found.iter().any(|path| path == Path::new(&link)) {
                found.push(link.into());
            }
        }
        let mark = Path::new(".git");
        let pointer = disk::pointer(site);
        let same = || tree.read(mark, Links::Refused, pointer.len() as u64).is_ok_and(|text| text == pointer);
        if tree.look(mark).is_ok() && !same() {
            found.push(".git".into());
        }
        found.retain(|path| !ignored.iter().any(|ignored| path.starts_with(ignored)));
        found.sort();
        let mut all = [ignored, found.clone()].concat();
        all.sort();
        Ok((outermost(all), outermost(found)))
    }

    /// Stores what a worktree holds, if it is not stored yet, and says which commit holds it: none if nothing
    /// was ever changed.
    pub(super) async fn save(
        &self,
        site: &Site,
        base: &Base,
        content: &Content,
    ) -> Result<Option<String>, Error> {
        let work = self.store.read_ref(&site.work_ref()).await?;
        let parent = work.as_deref().unwrap_or(base.commit());
        if self.commit(parent).await?.0 == content.tree {
            return Ok(work);
        }
        self.steps.step().await;
        let commit = self.store.commit_tree(&content.tree, &[parent], &site.work_title()).await?;
        self.steps.step().await;
        self.store.update_ref(&site.work_ref(), &commit, work.as_deref()).await?;
        Ok(Some(commit))
    }
}

/// A path that the tree has not as it should be.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    path: PathBuf,
    /// Whether the file is to be read; otherwise the base's version stands for it.
    read: bool,
}

/// A file that is there was not deleted: it is ignored now, or cannot be read. And a submodule, which is
/// never checked out in a worktree, was not changed there.
fn wrong(top: &Dir, change: &TreeChange, left_out: &[&Path]) -> Option<Wrong> {
    let old = change.old.as_ref()?;
    // What lies behind a link is nothing of the tree.
    let found = top.kind(&change.path).ok().flatten();
    if old.mode == GITLINK {
        let unchanged = change.new.is_none() && found.is_none_or(|found| found == Kind::Directory);
        return unchanged.then(|| Wrong { path: change.path.clone(), read: false });
    }
    let there = found.is_some_and(|found| found != Kind::Directory);
    let out = left_out.iter().any(|out| change.path.starts_with(out));
    (change.new.is_none() && (there || out)).then(|| Wrong { path: change.path.clone(), read: !out })
}

/// Leaves out what lies below another one of the paths, which are sorted.
fn outermost(sorted: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in sorted {
        if !kept.last().is_some_and(|last| path.starts_with(last)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_paths_below_each_other_only_the_outermost_is_listed() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let given = paths(&["a", "target/", "target/x/.git", "target/y", "targets"]);
        assert_eq!(outermost(given), paths(&["a", "target/", "targets"]));
    }
}
