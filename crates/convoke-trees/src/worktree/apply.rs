//! Bringing a worktree's changes into the checkout: all of them or none. First a plan is made and every
//! conflict found, then it is written down, then it is done; the person's index is not touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Kind};

use super::Worktrees;
use super::disk::{self, Lock};
use super::error::{Conflict, WorktreeError};
use super::merge::{Here, Side, Step, decide};
use super::names::Site;
use super::plan::{Item, Plan};
use super::types::{Applied, Base};
use crate::error::Error;
use crate::handle;
use crate::layout::read_laid_out;
use crate::store::unused;
use crate::tree::{Entry, GITLINK, TreeChange};

/// What lies in the checkout, by path.
type Present = BTreeMap<PathBuf, Here>;

impl Worktrees {
    /// Brings what an agent changed into the checkout. A file that was changed on both sides is merged if it
    /// is text and the changes do not touch; if anything conflicts nothing is written and every conflict is
    /// listed ([`WorktreeError::Conflict`]).
    ///
    /// An interrupted apply goes on when it is done again. What was applied before is not applied twice: then
    /// only what the agent did since is brought over.
    pub async fn apply(&self, run: &str, agent: &str) -> Result<Applied, WorktreeError> {
        let site = self.site(run, agent)?;
        let _lock = Lock::take(&site).await?;
        self.store.prepare().await?;
        let Some(base) = self.base(&site).await? else { return Err(Self::unknown(&site)) };
        disk::make_private_dir(&site.home)?;
        self.clear(&site).await?;
        let mut before = Applied::default();
        if let Some(plan) = Plan::load(&site.plan())? {
            before = self.carry_out(&site, &plan).await?;
        }
        let applied = self.apply_rest(&site, &base).await;
        if !disk::exists(&site.tree)? && !disk::exists(&site.plan())? {
            disk::remove_tree(&site.home).await?;
        }
        let mut applied = applied?;
        // What the interrupted attempt wrote was found as already there.
        applied.already.retain(|file| !before.files.contains(file));
        applied.files.extend(before.files);
        applied.files.sort();
        applied.files.dedup();
        Ok(applied)
    }

    async fn apply_rest(&self, site: &Site, base: &Base) -> Result<Applied, WorktreeError> {
        let mut not_stored = Vec::new();
        let work = if disk::exists(&site.tree)? {
            let index = unused(&site.home.join("index"));
            let content = self.content(site, base, &index).await?;
            disk::remove_file(&index)?;
            not_stored.clone_from(&content.not_stored);
            self.save(site, base, &content).await?
        } else {
            self.store.read_ref(&site.work_ref()).await?
        };
        let Some(work) = work else { return Ok(Applied { not_stored, ..Applied::default() }) };
        let plan = self.plan(site, base, work).await?;
        self.steps.step().await;
        plan.write(&site.plan())?;
        let applied = self.carry_out(site, &plan).await?;
        Ok(Applied { not_stored, ..applied })
    }

    /// Finds out what is to be done with every changed file, and everything that stands against it.
    async fn plan(&self, site: &Site, base: &Base, work: String) -> Result<Plan, WorktreeError> {
        let applied = self.store.read_ref(&site.applied_ref()).await?;
        let from = match applied {
            Some(applied) if !self.is_applied(site, &work).await? => applied,
            _ => base.commit().to_owned(),
        };
        let changes = self.store.diff_trees(&from, &work).await?;
        let paths: Vec<&Path> = changes.iter().map(|change| change.path.as_path()).collect();
        let present = self.present(site, &paths, &removed(&changes)).await?;
        let staging = unused(&site.home.join("staging"));
        fs::create_dir(&staging).map_err(Error::file("making", &staging))?;
        let mut plan = Plan { work, items: Vec::new(), already: Vec::new() };
        let mut conflicts = Vec::new();
        for change in changes {
            let shown = change.path.to_string_lossy().into_owned();
            let old = change.old.map(side);
            let new = change.new.map(side);
            let here = present.get(&change.path).cloned().unwrap_or(Here::Missing);
            let from = if let Here::There(side) = &here { Some(side.clone()) } else { None };
            if [&old, &new].into_iter().flatten().any(|side| side.mode == GITLINK) {
                conflicts.push((shown, "a submodule is changed by hand".to_owned()));
                continue;
            }
            match decide(old.as_ref(), &here, new.as_ref()) {
                Step::Already => plan.already.push(shown),
                Step::Take => plan.items.push(Item::new(change.path, from, new)),
                Step::Conflict(why) => conflicts.push((shown, why.to_owned())),
                Step::Blocked(why) => conflicts.push((shown, why)),
                Step::Merge(mode) => match self.merged(&staging, &old, &from, &new).await? {
                    Some(id) => {
                        let to = Some(Side { mode, id });
                        if from == to {
                            plan.already.push(shown)
                        } else {
                            plan.items.push(Item::new(change.path, from, to))
                        }
                    }
                    None => conflicts.push((shown, "both sides changed the same place in it".to_owned())),
                },
            }
        }
        disk::remove_tree(&staging).await?;
        if !conflicts.is_empty() {
            return Err(WorktreeError::Conflict(Conflict { files: conflicts }));
        }
        plan.sort();
        Ok(plan)
    }

    /// Merges one file; none if it cannot be merged.
    async fn merged(
        &self,
        staging: &Path,
        base: &Option<Side>,
        here: &Option<Side>,
        work: &Option<Side>,
    ) -> Result<Option<String>, Error> {
        let names = ["here", "base", "work"].map(|name| staging.join(name));
        for (name, side) in names.iter().zip([here, base, work]) {
            let Some(side) = side else { return Ok(None) };
            let blob =
                self.store.content("reading a file").args(["cat-file", "blob", &side.id]).run().await?;
            fs::write(name, blob).map_err(Error::file("writing", name))?;
        }
        let outcome = self
            .store
            .content("merging a file")
            .reads([staging])
            .args(["merge-file", "-p", "-q"])
            .args(&names)
            .outcome()
            .await?;
        if outcome.code != 0 {
            return Ok(None);
        }
        let merged = staging.join("merged");
        fs::write(&merged, outcome.stdout).map_err(Error::file("writing", &merged))?;
        let call = self.store.content("storing a merged file").reads([staging]).args([
            "hash-object",
            "-w",
            "--no-filters",
            "--",
        ]);
        call.arg(&merged).line().await.map(Some)
    }

    /// What lies in the checkout at these paths. The apply removes `removed`, so those are not in the way.
    async fn present(
        &self,
        site: &Site,
        paths: &[&Path],
        removed: &BTreeSet<PathBuf>,
    ) -> Result<Present, Error> {
        let top = self.store.top();
        let opened = Dir::open(top).map_err(Error::opening("opening", top))?;
        let mut present = Present::new();
        let mut readable = Vec::new();
        for path in paths {
            let here = match find(&opened, path).map_err(Error::opening("looking at", path))? {
                Found::Missing => Here::Missing,
                Found::There => {
                    readable.push(*path);
                    Here::Missing
                }
                Found::Directory(below)
                    if !below.is_empty() && below.iter().all(|file| removed.contains(file)) =>
                {
                    Here::Missing
                }
                Found::Directory(_) => Here::Blocked("a directory of this name is there".to_owned()),
                Found::Other => Here::Blocked("it is neither a file nor a link here".to_owned()),
                Found::NoWay if path.ancestors().skip(1).any(|parent| removed.contains(parent)) => {
                    Here::Missing
                }
                Found::NoWay => {
                    Here::Blocked("what should be its directory is a file or a link here".to_owned())
                }
            };
            present.insert(path.to_path_buf(), here);
        }
        let index = unused(&site.home.join("index"));
        for some in readable.chunks(500) {
            let call = self.store.content("reading the checkout").work_tree(top).index(&index)?;
            call.args(["update-index", "--add", "--replace", "--"]).args(some).run().await?;
        }
        let listed = self
            .store
            .content("reading the checkout")
            .work_tree(top)
            .index(&index)?
            .args(["ls-files", "-z", "-s"]);
        for line in listed.run().await?.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (side, path) =
                staged(line).ok_or_else(|| Error::Unreadable { what: "git's list of files".to_owned() })?;
            present.insert(path, Here::There(side));
        }
        disk::remove_file(&index)?;
        Ok(present)
    }

    /// Does what was planned. Each file is compared again, by handle, at the moment it is replaced.
    async fn carry_out(&self, site: &Site, plan: &Plan) -> Result<Applied, WorktreeError> {
        let paths: Vec<&Path> = plan.items.iter().map(Item::path).collect();
        let gone =
            plan.items.iter().filter(|item| item.to.is_none()).map(|item| item.path().to_owned()).collect();
        let present = self.present(site, &paths, &gone).await?;
        let old = self.laid_out(site, plan, |item| item.from.as_ref()).await?;
        let new = self.laid_out(site, plan, |item| item.to.as_ref()).await?;
        let beside = format!(".convoke-apply-{}-{}", site.run, site.agent);
        let staying = self.prefix.ancestors().map(Path::to_owned).collect();
        let root = handle::Root::open(self.store.top(), beside, staying);
        let root = root.map_err(Error::file("opening", self.store.top()))?;
        let mut done = Vec::new();
        for (number, item) in plan.items.iter().enumerate() {
            let here = match present.get(item.path()) {
                Some(Here::There(side)) => Some(side),
                _ => None,
            };
            if here != item.to.as_ref() {
                self.steps.step().await;
                let old = content(&old, item.path(), item.from.as_ref())?;
                let new = content(&new, item.path(), item.to.as_ref())?;
                if root.exchange(item.path(), old.as_ref(), new.as_ref(), false).is_err() {
                    let left = plan.items[number..].iter().map(Item::shown).collect();
                    return Err(WorktreeError::HalfApplied { path: item.shown(), done, left });
                }
            }
            done.push(item.shown());
        }
        self.steps.step().await;
        disk::remove_tree(&old).await?;
        disk::remove_tree(&new).await?;
        let before = self.store.read_ref(&site.applied_ref()).await?;
        if before.as_deref() != Some(&plan.work) {
            self.steps.step().await;
            self.store.update_ref(&site.applied_ref(), &plan.work, before.as_deref()).await?;
        }
        self.steps.step().await;
        disk::remove_file(&site.plan())?;
        Ok(Applied { files: done, already: plan.already.clone(), not_stored: Vec::new() })
    }

    /// Lays out one side of every file, in a directory of ours.
    async fn laid_out(
        &self,
        site: &Site,
        plan: &Plan,
        side: impl Fn(&Item) -> Option<&Side>,
    ) -> Result<PathBuf, Error> {
        let staging = unused(&site.home.join("staging"));
        self.steps.step().await;
        fs::create_dir(&staging).map_err(Error::file("making", &staging))?;
        let entry = |item: &Item| {
            let Side { mode, id } = side(item)?.clone();
            Some((item.path().to_owned(), Entry { mode, id }))
        };
        let entries: Vec<(PathBuf, Entry)> = plan.items.iter().filter_map(entry).collect();
        self.steps.step().await;
        self.store.lay_out(&entries, &unused(&site.home.join("index")), &staging).await?;
        Ok(staging)
    }
}

/// What stands at a path of the checkout.
enum Found {
    Missing,
    /// A file or a link.
    There,
    /// A directory, with all files below it.
    Directory(Vec<PathBuf>),
    Other,
    /// Something on the way is not a directory.
    NoWay,
}

fn find(top: &Dir, path: &Path) -> Result<Found, convoke_beneath::Error> {
    for above in path
        .ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty())
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        match top.kind(above)? {
            Some(Kind::Directory) => {}
            Some(_) => return Ok(Found::NoWay),
            None => return Ok(Found::Missing),
        }
    }
    match top.kind(path)? {
        Some(Kind::Directory) => Ok(Found::Directory(files_below(top, path)?)),
        Some(Kind::File | Kind::Link) => Ok(Found::There),
        Some(_) => Ok(Found::Other),
        None => Ok(Found::Missing),
    }
}

/// Everything below a directory of the checkout that is not a directory, seen from the top.
fn files_below(top: &Dir, path: &Path) -> Result<Vec<PathBuf>, convoke_beneath::Error> {
    let mut files = Vec::new();
    for entry in top.entries(path)? {
        let below = path.join(&entry.name);
        if entry.kind == Kind::Directory {
            files.extend(files_below(top, &below)?)
        } else {
            files.push(below)
        }
    }
    Ok(files)
}

/// A file as it was laid out by us.
fn content(staging: &Path, path: &Path, side: Option<&Side>) -> Result<Option<handle::Content>, Error> {
    let Some(side) = side else { return Ok(None) };
    let file = staging.join(path);
    let read = read_laid_out(&file, side.mode);
    read.map(Some).map_err(Error::file("reading", &file))
}

fn removed(changes: &[TreeChange]) -> BTreeSet<PathBuf> {
    changes.iter().filter(|change| change.new.is_none()).map(|change| change.path.clone()).collect()
}

fn side(entry: Entry) -> Side {
    Side { mode: entry.mode, id: entry.id }
}

/// Reads `MODE ID STAGE TAB PATH`.
fn staged(line: &[u8]) -> Option<(Side, PathBuf)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut head = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let mode = u32::from_str_radix(head.next()?, 8).ok()?;
    let id = head.next()?.to_owned();
    Some((Side { mode, id }, PathBuf::from(std::ffi::OsStr::from_bytes(&line[tab + 1..]))))
}
