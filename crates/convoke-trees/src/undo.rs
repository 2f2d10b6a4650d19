//! Undo: every file that is still as the run left it becomes what it was before; every other is named with
//! the reason. It never touches the index, ignored files, or what lies behind a symbolic link.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::handle::{Content, Root};
use crate::keeper::Keeper;
use crate::later::Later;
use crate::layout::read_laid_out;
use crate::parts::{Making, Part};
use crate::steps::{NetChange, StepCause};
use crate::tree::{Entry, GITLINK, LeftOut};

/// Up to how many files are brought to the disk one by one.
const FEW: usize = 64;

/// What an undo did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Files that are again as they were before the run.
    pub restored: Vec<PathBuf>,
    /// Those of `restored` that were not there before the run, and are gone.
    pub removed: BTreeSet<PathBuf>,
    /// Whether the run changed a `.gitignore`: files that it made and that the new rules ignore were not
    /// looked at.
    pub rules_changed: bool,
    /// Files of the run that were left alone, each with the reason.
    pub kept: Vec<(PathBuf, String)>,
    /// What could not be kept at some time of the run: whether it was changed is not known, and it is not
    /// taken back.
    pub not_kept: Vec<LeftOut>,
    /// What is run later and was changed while the run worked, of which undo can take nothing back: what can
    /// be executed and is too large to be kept, counted by directory, and settings and hooks of repositories.
    pub runs_later: Vec<Later>,
    /// The command that brings back a file (in the place of `FILE`) as it was before this undo, for a shell.
    /// None if nothing was restored.
    pub back: Option<String>,
}

impl Undone {
    /// Whether there was nothing of the run left to take back.
    pub fn nothing_left(&self) -> bool {
        self.restored.is_empty() && self.kept.is_empty()
    }
}

impl Keeper {
    /// Takes back what the run changed; `dry` only says what would be done. An undo that was cut off can be
    /// repeated.
    pub async fn undo(&self, dry: bool) -> Result<Undone, Error> {
        let _one_at_a_time = self.state().lock().await;
        let turn = self.lock_kept().await?;
        self.refuse_open().await?;
        if !dry {
            self.settle(&turn).await?;
        }
        let not_kept = self.left_out()?;
        let net = self.net().await?;
        if net.is_empty() {
            let mut undone = Undone { not_kept, ..Undone::default() };
            self.undo_later(dry, &mut undone).await?;
            return Ok(undone);
        }
        // A file is only replaced if it is as the latest step has it, so that this holds all that can be
        // lost.
        let present = self.chain().await?.map(|chain| chain.tip);
        let scratch = self.record().scratch()?;
        let old = scratch.path().join("old");
        let new = scratch.path().join("new");
        let index = scratch.path().join("index");
        self.store().lay_out(&entries(&net, |net| net.before.as_ref()), &index, &old).await?;
        self.store().lay_out(&entries(&net, |net| net.after.as_ref()), &index, &new).await?;

        let rules_changed = net.iter().any(|net| net.path.file_name() == Some(OsStr::new(".gitignore")));
        let undo = StepCause::Undo { interrupted: false };
        let marked = if dry { None } else { Some(self.open_alone(&undo).await?) };
        let dir = self.store().dir().to_owned();
        let temporary = self.temporary();
        let made_before = self.directories_before().await?;
        let modes = self.record().modes()?;
        let work = move || {
            let root = Root::open(&dir, temporary, made_before)?.with_modes(modes);
            let root = if net.len() > FEW { root.many() } else { root };
            Restorer { root, old, new, dry }.all(&net)
        };
        let undone = tokio::task::spawn_blocking(work).await;
        let undone = undone.map_err(std::io::Error::other).flatten();
        let mut undone = undone.map_err(Error::file("restoring files below", self.store().dir()))?;
        undone.not_kept = not_kept;
        undone.rules_changed = rules_changed;
        if marked.is_some() {
            self.step(&Making::new(&undo, "", Part::All), &turn).await?;
            self.close_alone().await?;
            undone.back = present.filter(|_| !undone.restored.is_empty()).map(|commit| self.back(&commit));
        }
        // After the step, so that what is taken back here counts as the change of no agent.
        self.undo_later(dry, &mut undone).await?;
        Ok(undone)
    }

    /// The command that brings back a file of a commit. It uses our own git dir, so that the content comes
    /// back byte for byte and the person's index stays as it is.
    fn back(&self, commit: &str) -> String {
        let dir = quoted(self.store().dir());
        let git_dir = quoted(self.store().private());
        format!("git -C {dir} --git-dir {git_dir} --work-tree . restore --source {commit} -- FILE")
    }

    /// The directories that had files in them before the run.
    async fn directories_before(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let Some(chain) = self.chain().await? else { return Ok(BTreeSet::new()) };
        let call =
            self.store().content("listing directories").args(["ls-tree", "-r", "-d", "-z", "--name-only"]);
        let output = call.args(["--full-tree", &chain.before]).run().await?;
        let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }
}

/// A path as a word of a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+@%=:,".contains(char);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn entries(net: &[NetChange], of: impl Fn(&NetChange) -> Option<&Entry>) -> Vec<(PathBuf, Entry)> {
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
    fn all(&self, net: &[NetChange]) -> std::io::Result<Undone> {
        let mut undone = Undone::default();
        // What the run added goes first, and from the bottom up: a file may have to come back where a
        // directory is now.
        let added = net.iter().rev().filter(|net| net.before.is_none());
        let others = net.iter().filter(|net| net.before.is_some());
        for net in added.chain(others) {
            match self.one(net, &undone.restored) {
                Ok(()) => {
                    undone.restored.push(net.path.clone());
                    if net.before.is_none() {
                        undone.removed.insert(net.path.clone());
                    }
                }
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
    fn one(&self, net: &NetChange, restored: &[PathBuf]) -> Result<(), String> {
        if net.mixed {
            return Err("a person or another program changed it between two changes of the run".to_owned());
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
    let unread = |error: std::io::Error| format!("its kept content could not be read: {error}");
    read_laid_out(&below.join(path), entry.mode).map(Some).map_err(unread)
}
