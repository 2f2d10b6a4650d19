//! What a run left behind in files, for the report: which of them it changed and who did, and the worktrees that hold work
//! of its agents. What cannot be read is said, and costs nobody the report.

use std::path::Path;

use convoke_kernel::AgentId;
use convoke_trees::{ChangedFile, Error, How, Keeper, LeftOut, Places, WorktreeEntry, WorktreeError, Worktrees};

use super::checkout::Checkout;
use super::places::places;
use crate::render::clean;
use crate::report::{Changed, Tree};
use crate::settings::Settings;

/// What a run left behind in files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Left {
    /// The files it changed in its directory.
    pub(crate) changed: Vec<Changed>,
    /// Worktrees with something in them.
    pub(crate) trees: Vec<Tree>,
    /// What could not be read.
    pub(crate) warnings: Vec<String>,
}

impl Left {
    /// Looks at what the run of this lead left in its directory.
    pub(crate) async fn of(settings: &Settings, lead: &AgentId, dir: &Path) -> Self {
        let places = places(settings);
        let checkout = Checkout::of(settings, dir);
        let mut left = Self::default();
        match checkout {
            // What it changed is in its worktree, and the checkout is as it was.
            Some(_) => {}
            None => match changes(&places, dir, lead.as_str()).await {
                Ok((changed, not_kept, apart)) => {
                    left.warnings.extend(apart.filter(|_| !changed.is_empty()));
                    left.changed = changed.iter().map(Changed::from).collect();
                    left.warnings.extend(not_kept_line(&not_kept));
                }
                Err(error) => left.warnings.push(format!("what this run changed cannot be listed: {error}")),
            },
        }
        let about = checkout.as_ref().map_or(dir, |checkout| checkout.dir.as_path());
        let names = [Some(lead.as_str()), checkout.as_ref().map(|checkout| checkout.name.as_str())];
        for name in names.into_iter().flatten() {
            match trees(&places, about, name).await {
                Ok(found) => left.trees.extend(found.iter().filter(|entry| has_work(entry)).map(Tree::from)),
                Err(error) => left.warnings.push(format!("the worktrees of this run cannot be listed: {error}")),
            }
        }
        left
    }

    /// The words of the command that takes over what is in a worktree of this run, if there is one that is not applied.
    pub(crate) fn apply(&self, run: &str) -> Option<String> {
        let mut open = self.trees.iter().filter(|tree| !tree.applied && !tree.files.is_empty());
        let first = open.next()?;
        let agent = if open.next().is_some() { "AGENT" } else { &first.agent };
        Some(format!("worktrees apply {run} {agent}"))
    }
}

/// The changed files, what was not kept, and where the rest is if it is not in the repository.
type Changes = (Vec<ChangedFile>, Vec<LeftOut>, Option<String>);

/// Says that the repository was not used.
fn apart_line(place: &Path) -> String {
    clean(&format!("this user cannot write the repository, so what the run changed is kept in {}", place.display()))
}

/// Where nothing was kept nothing was changed, or a person was told before that it would not be kept.
async fn changes(places: &Places, dir: &Path, run: &str) -> Result<Changes, Error> {
    let none = |error: Error| match error {
        Error::NotKept { .. } | Error::NoGit | Error::BadRepository { .. } | Error::StateInside { .. } => {
            Ok((Vec::new(), Vec::new(), None))
        }
        error => Err(error),
    };
    match Keeper::open(places, dir, run).await {
        Ok(keeper) => match keeper.changes().await {
            Ok(changed) => Ok((changed, keeper.left_out()?, keeper.apart().map(apart_line))),
            Err(error) => none(error),
        },
        Err(error) => none(error),
    }
}

/// What could not be kept while a run worked, in one line; none if that is nothing.
pub(crate) fn not_kept_line(not_kept: &[LeftOut]) -> Option<String> {
    const MOST: usize = 8;
    let named: Vec<String> = not_kept.iter().take(MOST).map(ToString::to_string).collect();
    let more = match not_kept.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!named.is_empty()).then(|| clean(&format!("not kept, cannot be taken back: {}{more}", named.join("; "))))
}

async fn trees(places: &Places, dir: &Path, run: &str) -> Result<Vec<WorktreeEntry>, WorktreeError> {
    match Worktrees::open(places.clone(), dir).await {
        Ok(worktrees) => worktrees.list(Some(run)).await,
        // Nobody can have had one.
        Err(WorktreeError::Trees(
            Error::NoGit | Error::NoRepository { .. } | Error::BadRepository { .. } | Error::StateInside { .. },
        )) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn has_work(entry: &WorktreeEntry) -> bool {
    !entry.files.is_empty() || !entry.ignored.is_empty()
}

impl From<&ChangedFile> for Changed {
    fn from(file: &ChangedFile) -> Self {
        Self {
            path: file.path.to_string_lossy().into_owned(),
            how: match file.how {
                How::Added => "added",
                How::Modified => "modified",
                How::Deleted => "deleted",
                How::ModeChanged => "mode",
            },
            agents: file.agents.clone(),
            mixed: file.mixed,
        }
    }
}

impl From<&WorktreeEntry> for Tree {
    fn from(entry: &WorktreeEntry) -> Self {
        let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
        Self {
            agent: entry.agent.clone(),
            base: entry.base.to_string(),
            state: entry.state.to_string(),
            applied: entry.applied,
            files: entry.files.clone(),
            ignored: entry.ignored.iter().map(text).collect(),
            path: entry.path.as_ref().map(text),
        }
    }
}
