//! What a session left behind in files, for the report: which of them it changed and which agents did, and
//! the worktrees that hold work of its agents. What cannot be read is said, and the report is made without
//! it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use convoke_kernel::{AgentId, Confinement};
use convoke_trees::{
    ChangeKind, ChangedFile, Error, HostPlaces, Keeper, Later, LaterKind, LeftOut, RunsLater, WorktreeEntry,
    WorktreeError, Worktrees,
};

use super::checkout::Checkout;
use super::places::places;
use crate::render::{clean, quoted_name};
use crate::report::{Changed, RunLater, Tree};
use crate::settings::Settings;

/// What a session left behind in files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Left {
    /// The files it changed in its directory.
    pub(crate) changed: Vec<Changed>,
    /// What is run later and was changed while it worked, and no patch shows.
    pub(crate) later: Vec<RunLater>,
    /// Worktrees with something in them.
    pub(crate) trees: Vec<Tree>,
    /// What could not be read.
    pub(crate) warnings: Vec<String>,
}

impl Left {
    /// Looks at what the session of this lead, confined like this, left in its directory.
    pub(crate) async fn of(
        settings: &Settings,
        lead: &AgentId,
        dir: &Path,
        held: Option<&Confinement>,
    ) -> Self {
        let places = places(settings);
        let checkout = Checkout::of(settings, dir);
        let mut left = Self::default();
        // Of a lead in a worktree this is what was applied; until then its checkout is as it was.
        let kept = Checkout::kept(settings, lead.as_str(), dir);
        let changes = match Keeper::may_have_kept(&places, &kept.dir, &kept.name) {
            true => changes(&places, &kept.dir, &kept.name).await,
            false => Ok(Changes::none()),
        };
        match changes {
            Ok(changes) => {
                left.warnings.extend(changes.apart.filter(|_| !changes.files.is_empty()));
                left.changed = changes.files.iter().map(Changed::from).collect();
                left.warnings.extend(not_kept_line(&changes.not_kept));
                left.warnings.extend(changes.notes.iter().map(|line| clean(line)));
                left.later = later_of(&changes.later, held);
                left.warnings.extend(later_line(&left.later));
                left.warnings.extend(unlooked_line(&changes.later));
            }
            Err(error) => left.warnings.push(format!("what this session changed cannot be listed: {error}")),
        }
        let about = checkout.as_ref().map_or(dir, |checkout| checkout.dir.as_path());
        let names = [Some(lead.as_str()), checkout.as_ref().map(|checkout| checkout.name.as_str())];
        for name in names.into_iter().flatten().filter(|name| Keeper::may_have_kept(&places, about, name)) {
            match trees(&places, about, name).await {
                Ok(found) => left.trees.extend(found.iter().filter(|entry| has_work(entry)).map(Tree::from)),
                Err(error) => {
                    left.warnings.push(format!("the worktrees of this session cannot be listed: {error}"))
                }
            }
        }
        left
    }

    /// The words of the command that takes over what is in a worktree of this session, if there is one that
    /// is not applied.
    pub(crate) fn apply(&self, run: &str) -> Option<String> {
        let mut open = self.trees.iter().filter(|tree| !tree.applied && !tree.files.is_empty());
        let first = open.next()?;
        let agent = if open.next().is_some() { "AGENT" } else { &first.agent };
        Some(format!("worktrees apply {run} {agent}"))
    }
}

/// What a session changed in its directory.
#[derive(Default)]
struct Changes {
    files: Vec<ChangedFile>,
    not_kept: Vec<LeftOut>,
    /// Where they are kept if that is not the repository.
    apart: Option<String>,
    /// What is run later.
    later: RunsLater,
    /// What was noted on the way.
    notes: Vec<String>,
}

impl Changes {
    /// Nothing, and nothing was overlooked.
    fn none() -> Self {
        Self { later: RunsLater { whole: true, ..RunsLater::default() }, ..Self::default() }
    }
}

/// Says that not everything was looked at for what is run later.
pub(crate) fn unlooked_line(later: &RunsLater) -> Option<String> {
    (!later.whole).then(|| {
        "the directory is too large to look through for ignored files that can be executed".to_owned()
    })
}

/// What is run later and was changed during a session that was confined like this. Where there were mounts,
/// commands cannot have changed metadata of repositories, though a person may have, so it is left out.
pub(crate) fn later_of(later: &RunsLater, held: Option<&Confinement>) -> Vec<RunLater> {
    let mounted = held.is_some_and(|held| held.held_by.iter().any(|layer| layer == "bubblewrap"));
    let shown = later.files.iter().filter(|one| !(mounted && one.kind == LaterKind::Metadata));
    shown.map(RunLater::from).collect()
}

/// What is run without being asked for, in one loud line; none if that is nothing. Programs that a build made
/// are only listed.
pub(crate) fn later_line(later: &[RunLater]) -> Option<String> {
    const MOST: usize = 8;
    let loud: Vec<&RunLater> = later.iter().filter(|one| one.kind != "program").collect();
    let named: Vec<String> = loud.iter().take(MOST).map(|one| one.words()).collect();
    let more = match loud.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let what = "LOOK BEFORE YOU GO ON: changed while this session worked, in no patch, and run or obeyed by your \
        tools later";
    (!named.is_empty()).then(|| clean(&format!("{what}: {}{more}", named.join("; "))))
}

/// Says that the repository was not used.
fn apart_line(place: &Path) -> String {
    clean(&format!(
        "this user cannot write the repository, so what the session changed is kept in {}",
        place.display()
    ))
}

/// What a session changed. Where nothing was kept, nothing was changed, or a person was told before that it
/// would not be kept.
async fn changes(places: &HostPlaces, dir: &Path, run: &str) -> Result<Changes, Error> {
    let none = |error: Error| match error {
        Error::NotKept { .. } | Error::NoGit | Error::BadRepository { .. } | Error::StateInside { .. } => {
            Ok(Changes::none())
        }
        error => Err(error),
    };
    match Keeper::open(places, dir, run).await {
        Ok(keeper) => match keeper.changes().await {
            Ok(files) => Ok(Changes {
                files,
                not_kept: keeper.left_out()?,
                apart: keeper.apart().map(apart_line),
                later: keeper.runs_later().await?,
                notes: keeper.notes()?,
            }),
            Err(error) => none(error),
        },
        Err(error) => none(error),
    }
}

/// What could not be kept while a session worked, in one line; none if that is nothing.
pub(crate) fn not_kept_line(not_kept: &[LeftOut]) -> Option<String> {
    const MOST: usize = 8;
    let named: Vec<String> = not_kept.iter().take(MOST).map(not_kept_words).collect();
    let more = match not_kept.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!named.is_empty()).then(|| format!("not kept, cannot be taken back: {}{more}", named.join("; ")))
}

/// Something that could not be kept, and why.
pub(crate) fn not_kept_words(out: &LeftOut) -> String {
    format!("{}: {}", quoted_name(out.path.as_os_str().as_bytes()), clean(&out.why))
}

async fn trees(places: &HostPlaces, dir: &Path, run: &str) -> Result<Vec<WorktreeEntry>, WorktreeError> {
    match worktrees(places, dir).await? {
        Some(worktrees) => worktrees.list(Some(run)).await,
        None => Ok(Vec::new()),
    }
}

/// The worktrees of the repository that a directory is in; none where no agent can have had one.
pub(crate) async fn worktrees(places: &HostPlaces, dir: &Path) -> Result<Option<Worktrees>, WorktreeError> {
    match Worktrees::open(places.clone(), dir).await {
        Ok(worktrees) => Ok(Some(worktrees)),
        Err(WorktreeError::Trees(
            Error::NoGit
            | Error::NoRepository { .. }
            | Error::BadRepository { .. }
            | Error::StateInside { .. },
        )) => Ok(None),
        Err(error) => Err(error),
    }
}

fn has_work(entry: &WorktreeEntry) -> bool {
    !entry.files.is_empty() || !entry.ignored.is_empty()
}

fn how(how: ChangeKind) -> &'static str {
    match how {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::ModeChanged => "mode",
    }
}

impl From<&Later> for RunLater {
    fn from(later: &Later) -> Self {
        Self {
            path: later.path.to_string_lossy().into_owned(),
            how: how(later.how),
            count: later.count,
            kept: later.kept,
            kind: match later.kind {
                LaterKind::Metadata => "metadata",
                LaterKind::Named => "named",
                LaterKind::Program => "program",
            },
        }
    }
}

impl From<&ChangedFile> for Changed {
    fn from(file: &ChangedFile) -> Self {
        Self {
            path: file.path.to_string_lossy().into_owned(),
            how: how(file.how),
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
