//! Undo: every file that is still as the run left it becomes what it was before; every other is named with the reason.
//! It never touches the index, ignored files, or what lies behind a symbolic link.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::handle::{Content, Root};
use crate::keeper::Keeper;
use crate::steps::{By, Net};
use crate::tree::{Entry, GITLINK};

/// Up to how many files are brought to the disk one by one.
const FEW: usize = 64;

/// What an undo did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Files that are again as they were before the run.
    pub restored: Vec<PathBuf>,
    /// Files of the run that were left alone, each with the reason.
    pub kept: Vec<(PathBuf, String)>,
}

impl Undone {
    /// Whether there was nothing of the run left to take back.
    pub fn nothing_left(&self) -> bool {
        self.restored.is_empty() && self.kept.is_empty()
    }
}

impl Keeper {
    /// Takes back what the run changed; `dry` only says what would be done. An undo that was cut off can be repeated.
    pub async fn undo(&self, dry: bool) -> Result<Undone, Error> {
        let mut state = self.state().lock().await;
        let _lock = self.lock_kept().await?;
        if state.window.is_some() || self.is_open()? {
            return Err(Error::Busy { run: self.run().to_owned() });
        }
        if !dry {
            self.settle(&mut state.window).await?;
        }
        let net = self.net().await?;
        if net.is_empty() {
            return Ok(Undone::default());
        }
        let scratch = self.record().scratch()?;
        let (old, new) = (scratch.path().join("old"), scratch.path().join("new"));
        self.lay_out(&entries(&net, |net| net.before.as_ref()), &scratch, &old).await?;
        self.lay_out(&entries(&net, |net| net.after.as_ref()), &scratch, &new).await?;

        let undo = By::Undo { interrupted: false };
        let marked = if dry { None } else { Some(self.record().mark(&undo)?) };
        let (dir, temporary) = (self.store().dir().to_owned(), self.temporary());
        let made_before = self.directories_before().await?;
        let work = move || {
            let root = Root::open(&dir, temporary, made_before)?;
            let root = if net.len() > FEW { root.many() } else { root };
            Restorer { root, old, new, dry }.all(&net)
        };
        let undone = tokio::task::spawn_blocking(work).await;
        let undone = undone.map_err(std::io::Error::other).flatten();
        let undone = undone.map_err(Error::file("restoring files below", self.store().dir()))?;
        if marked.is_some() {
            self.step(&undo, "").await?;
            self.record().clear_mark()?;
        }
        Ok(undone)
    }

    /// The directories that had files in them before the run.
    async fn directories_before(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let Some(chain) = self.chain().await? else { return Ok(BTreeSet::new()) };
        let call = self.store().content("listing directories").args(["ls-tree", "-r", "-d", "-z", "--name-only"]);
        let output = call.args(["--full-tree", &chain.before]).run().await?;
        let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }
}

fn entries(net: &[Net], of: impl Fn(&Net) -> Option<&Entry>) -> Vec<(PathBuf, Entry)> {
    net.iter().filter_map(|net| Some((net.path.clone(), of(net)?.clone()))).collect()
}

/// Puts files back, one after the other.
struct Restorer {
    root: Root,
    /// Where the files lie as they were before the run.
    old: PathBuf,
    /// Where the files lie as the run left them.
    new: PathBuf,
    dry: bool,
}

impl Restorer {
    fn all(&self, net: &[Net]) -> std::io::Result<Undone> {
        let mut undone = Undone::default();
        // What the run added goes first, and from the bottom up: a file may have to come back where a directory is now.
        let added = net.iter().rev().filter(|net| net.before.is_none());
        let others = net.iter().filter(|net| net.before.is_some());
        for net in added.chain(others) {
            match self.one(net, &undone.restored) {
                Ok(()) => undone.restored.push(net.path.clone()),
                Err(why) => undone.kept.push((net.path.clone(), why)),
            }
        }
        if !self.dry {
            self.root.sync()?;
        }
        undone.restored.sort();
        undone.kept.sort();
        Ok(undone)
    }

    /// Restores one path, or says why it is left alone.
    fn one(&self, net: &Net, restored: &[PathBuf]) -> Result<(), String> {
        if net.mixed {
            return Err("somebody else changed it between two changes of the run".to_owned());
        }
        if [&net.before, &net.after].into_iter().flatten().any(|entry| entry.mode == GITLINK) {
            return Err("it is a repository of its own".to_owned());
        }
        let before = content(net.before.as_ref(), &self.old, &net.path)?;
        let after = content(net.after.as_ref(), &self.new, &net.path)?;
        // A dry run has not cleared the way, so it must not stumble over what would have gone.
        let in_the_way = |gone: &PathBuf| gone.starts_with(&net.path) || net.path.starts_with(gone);
        if self.dry && restored.iter().any(in_the_way) {
            return Ok(());
        }
        self.root.exchange(&net.path, after.as_ref(), before.as_ref(), self.dry)
    }
}

/// What a tree held under a path, from where it was laid out.
fn content(entry: Option<&Entry>, below: &Path, path: &Path) -> Result<Option<Content>, String> {
    let Some(entry) = entry else { return Ok(None) };
    let place = below.join(path);
    let unread = |error: std::io::Error| format!("its kept content could not be read: {error}");
    if entry.mode == 0o120_000 {
        return std::fs::read_link(place).map(|target| Some(Content::Link(target))).map_err(unread);
    }
    let executable = entry.mode & 0o111 != 0;
    std::fs::read(place).map(|bytes| Some(Content::File { bytes, executable })).map_err(unread)
}
