//! What is run later and no patch shows: files that git ignores and that can be executed or are obeyed by
//! name (`.envrc`, hooks of husky, `node_modules/.bin`), and the settings and hooks of repositories. They are
//! looked at before the first write of a run and after its last; the small ones are kept, so that undo can
//! take them back. Nothing here is run, and settings of repositories are only told of.

mod look;
mod rule;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use convoke_beneath::Dir;
use serde::{Deserialize, Serialize};

use self::look::{Entry, Found, born, is_there, look};
use self::rule::Kind;
pub use self::rule::Kind as LaterKind;
use crate::error::Error;
use crate::handle::{Content, Root};
use crate::keeper::Keeper;
use crate::steps::ChangeKind;
use crate::turn::{Actor, Turn};
use crate::undo::Undone;

/// Files of one directory that can be executed are listed one by one up to this many, then counted.
const FEW: usize = 3;

/// The most that are listed one by one at all.
const LISTED: usize = 200;

/// A file that is run later and was changed while the run worked, by the run or from outside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// Where it is, as seen from the directory; a directory if `count` is more than one.
    pub path: PathBuf,
    /// How it was changed; of many, how the first was.
    pub how: ChangeKind,
    /// For how many files it stands.
    pub count: usize,
    /// Whether undo can take it back.
    pub kept: bool,
    /// What it is; settings and hooks of repositories are left alone by undo.
    pub kind: LaterKind,
}

/// What [`Keeper::runs_later`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunsLater {
    /// What was changed, the worst first.
    pub files: Vec<Later>,
    /// Whether everything was looked at, before the run and after it.
    pub whole: bool,
}

/// What was there before the run.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    /// When it was looked at, in nanoseconds, by the clock that files get their times from.
    at: i64,
    found: Found,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    old: Option<Entry>,
    new: Option<Entry>,
    /// Whether it came to be after the run began: only then it is removed.
    is_new: bool,
}

/// What all of them come to.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Changes {
    by_path: BTreeMap<String, Change>,
    whole: bool,
    /// The contents of before and after.
    #[serde(skip)]
    contents: [Found; 2],
}

impl Change {
    fn kind(&self) -> Kind {
        self.new.as_ref().or(self.old.as_ref()).map_or(Kind::Program, |entry| entry.kind)
    }

    fn how(&self) -> ChangeKind {
        match (&self.old, &self.new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        }
    }

    /// What was there before and after, if undo may go by it; else why not.
    fn known(&self, contents: &[Found; 2]) -> Result<[Option<Content>; 2], &'static str> {
        let content = |entry: Option<&Entry>, found: &Found| match entry {
            None => Some(None),
            Some(entry) => match &entry.link {
                Some(link) => Some(Some(Content::Link(PathBuf::from(link)))),
                None => {
                    let bytes = found.bytes(entry)?.to_vec();
                    Some(Some(Content::File { bytes, executable: entry.mode & 0o100 != 0 }))
                }
            },
        };
        if self.kind() == Kind::Metadata {
            return Err("it belongs to the repository");
        }
        if self.old.is_none() && !self.is_new {
            return Err("it may have been there before the run");
        }
        let both = content(self.old.as_ref(), &contents[0]).zip(content(self.new.as_ref(), &contents[1]));
        both.map(|(old, new)| [old, new]).ok_or("it is ignored by git and too large to be kept")
    }
}

impl Keeper {
    /// Remembers what is there before the run, given the tree that is kept.
    pub(crate) async fn look_before(&self, tree: &str) -> Result<(), Error> {
        let at = self.record().written_now("later-began")?;
        let before = Before { at, found: self.look_now(&[tree]).await? };
        self.record().put("later-contents", &before.found.contents)?;
        self.record().put_json("later", &before)
    }

    /// What was changed while the run worked, is run later by people or programs that work in the directory,
    /// and is in no patch. The first look after the run's last command is what counts.
    pub async fn runs_later(&self) -> Result<RunsLater, Error> {
        let _one_at_a_time = self.state().lock().await;
        let _lock = self.lock_kept().await?;
        Ok(told(&self.changes_later().await?))
    }

    /// Says something about the run that a person should read in its report.
    pub async fn note(&self, actor: impl Into<Actor<'_>>, line: &str) -> Result<(), Error> {
        let turn = self.turn(actor.into()).await?;
        self.add_notes(&[line.to_owned()], &turn)
    }

    pub(crate) fn add_notes(&self, new: &[String], turn: &Turn) -> Result<(), Error> {
        let mut lines = self.notes()?;
        let known = lines.len();
        for line in new {
            if !lines.contains(line) {
                lines.push(line.clone());
            }
        }
        if lines.len() == known {
            return Ok(());
        }
        turn.check()?;
        self.record().put_json("notes", &lines)
    }

    /// What was noted.
    pub fn notes(&self) -> Result<Vec<String>, Error> {
        Ok(self.record().get_json("notes")?.unwrap_or_default())
    }

    /// What was found after the last command does not hold once there is another.
    pub(crate) fn forget_after(&self) -> Result<(), Error> {
        self.record().drop_file("later-after")
    }

    /// Looks at what there is after the last command, unless that was done since.
    pub(crate) async fn look_after(&self) -> Result<(), Error> {
        self.changes_later().await.map(drop)
    }

    async fn look_now(&self, trees: &[&str]) -> Result<Found, Error> {
        let mut covered = HashSet::new();
        for tree in trees {
            let call = self.store().content("listing files").args([
                "ls-tree",
                "-r",
                "-z",
                "--name-only",
                "--full-tree",
            ]);
            let listed = call.arg(tree).run().await?;
            let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            covered.extend(names.map(|name| PathBuf::from(OsStr::from_bytes(name))));
        }
        let dir = self.store().dir().to_owned();
        let work = move || {
            let named = convoke_sandbox::named_by_git(&dir, None);
            let named: Vec<PathBuf> =
                named.iter().filter_map(|path| path.strip_prefix(&dir).ok()).map(Path::to_owned).collect();
            look(&dir, &named, &covered)
        };
        let found = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten();
        found.map_err(Error::file("looking over", self.store().dir()))
    }

    async fn changes_later(&self) -> Result<Changes, Error> {
        let Some(mut before) = self.record().get_json::<Before>("later")? else {
            return Ok(Changes { whole: true, ..Changes::default() });
        };
        before.found.contents = self.record().get("later-contents")?;
        if let Some(mut changes) = self.record().get_json::<Changes>("later-after")? {
            let after = Found { contents: self.record().get("later-after-contents")?, ..Found::default() };
            changes.contents = [before.found, after];
            return Ok(changes);
        }
        let Some(chain) = self.chain().await? else { return Ok(Changes::default()) };
        let after = self.look_now(&[&chain.before, &chain.tree]).await?;
        let root =
            Dir::open_real(self.store().dir()).map_err(Error::opening("opening", self.store().dir()))?;
        let root = File::from(OwnedFd::from(root));
        let changes = compare(before, after, &root);
        self.record().put("later-after-contents", &changes.contents[1].contents)?;
        self.record().put_json("later-after", &changes)?;
        Ok(changes)
    }

    /// Takes back what is run later, as far as it was kept. What is left alone is told where a person has to
    /// know of each, else counted.
    pub(crate) async fn undo_later(&self, dry: bool, undone: &mut Undone) -> Result<(), Error> {
        let changes = self.changes_later().await?;
        if changes.by_path.is_empty() {
            return Ok(());
        }
        let parents =
            changes.by_path.keys().flat_map(|path| Path::new(path).ancestors().skip(1).map(Path::to_owned));
        let dir = self.store().dir().to_owned();
        let temporary = self.temporary();
        let staying = parents.collect::<BTreeSet<_>>();
        let modes = changes.by_path.iter().filter_map(|(path, change)| {
            let mode = change.old.as_ref().filter(|old| old.link.is_none())?.mode & 0o777;
            Some((PathBuf::from(path), mode))
        });
        let modes = modes.collect();
        let work = move || -> std::io::Result<Undone> {
            let root = Root::open(&dir, temporary, staying)?.with_modes(modes);
            let mut undone = Undone::default();
            let mut left = Changes { whole: true, ..Changes::default() };
            for (path, change) in &changes.by_path {
                let known = change.known(&changes.contents).map_err(str::to_owned);
                let exchanged = known
                    .and_then(|[old, new]| root.exchange(Path::new(path), new.as_ref(), old.as_ref(), dry));
                match exchanged {
                    Ok(()) => {
                        undone.restored.push(PathBuf::from(path));
                        undone.removed.extend(change.old.is_none().then(|| PathBuf::from(path)));
                    }
                    Err(why) if change.kind() == Kind::Named => undone.kept.push((PathBuf::from(path), why)),
                    Err(_) => drop(left.by_path.insert(path.clone(), change.clone())),
                }
            }
            if !dry {
                root.sync()?;
            }
            undone.runs_later = told(&left).files;
            Ok(undone)
        };
        let done = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten();
        let done = done.map_err(Error::file("restoring files below", self.store().dir()))?;
        undone.restored.extend(done.restored);
        undone.removed.extend(done.removed);
        undone.kept.extend(done.kept);
        undone.runs_later = done.runs_later;
        undone.restored.sort();
        undone.kept.sort();
        if dry { Ok(()) } else { self.forget_after() }
    }
}

/// What differs between two looks.
fn compare(before: Before, after: Found, root: &File) -> Changes {
    let began = i128::from(before.at);
    let before = before.found;
    let mut by_path = BTreeMap::new();
    for (path, new) in &after.entries {
        let old = before.entries.get(path);
        let same = old.is_some_and(|old| {
            let kept = old.content.is_some() && before.bytes(old) == after.bytes(new);
            (old.link.as_deref(), old.mode) == (new.link.as_deref(), new.mode)
                && (old.signature == new.signature || kept)
        });
        if !same {
            let is_new = old.is_none() && born(root, Path::new(path)).is_some_and(|born| born >= began);
            by_path.insert(path.clone(), Change { old: old.cloned(), new: Some(new.clone()), is_new });
        }
    }
    for (path, old) in before.entries.iter().filter(|(path, _)| !after.entries.contains_key(*path)) {
        // One that is there was not looked at again, or is in the patch, or cannot be executed any more.
        if !is_there(root, Path::new(path)) {
            by_path.insert(path.clone(), Change { old: Some(old.clone()), new: None, is_new: false });
        }
    }
    Changes { by_path, whole: before.whole && after.whole, contents: [before, after] }
}

/// The changes as people are told of them: what is named one by one, and programs by their directories where
/// they are many.
fn told(changes: &Changes) -> RunsLater {
    let single = |(path, change): (&String, &Change)| Later {
        path: PathBuf::from(path),
        how: change.how(),
        count: 1,
        kept: change.known(&changes.contents).is_ok(),
        kind: change.kind(),
    };
    let of = |kind: Kind| changes.by_path.iter().filter(move |(_, change)| change.kind() == kind);
    let mut files: Vec<Later> = of(Kind::Metadata).map(single).collect();
    let mut groups: BTreeMap<PathBuf, Vec<Later>> = BTreeMap::new();
    for later in of(Kind::Named).chain(of(Kind::Program)).map(single) {
        if later.kind == Kind::Named && files.len() < LISTED {
            files.push(later);
            continue;
        }
        let above: PathBuf = later.path.parent().into_iter().flat_map(Path::components).take(2).collect();
        groups.entry(above).or_default().push(later);
    }
    for (above, some) in groups {
        if some.len() <= FEW {
            files.extend(some);
        } else if let Some(first) = some.first() {
            let kept = some.iter().all(|one| one.kept);
            files.push(Later { path: above, how: first.how, count: some.len(), kept, kind: first.kind });
        }
    }
    RunsLater { files, whole: changes.whole }
}
