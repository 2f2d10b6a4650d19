//! `convoke sessions undo`: takes back what a session changed. A file that is not as the session left it is
//! left alone and named with the reason; what a person did beside the session is not touched.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use convoke_journal::StreamId;
use convoke_trees::{Keeper, LaterKind, Undone, WorktreeError};
use serde_json::json;

use super::diff::{not_kept, not_kept_object};
use super::no_journal;
use crate::args::{OutputFormat, UndoArgs};
use crate::catalog::{self, Catalog, ListedSession, State};
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::keeping::{self, Checkout, LEAD};
use crate::render::{clean, count, quoted_name};
use crate::report::RunLater;
use crate::settings::Settings;
use crate::stdio;

/// What is said when undo cannot know of every file that the session made.
const RULES_CHANGED: &str = "not looked at: the session changed ignore rules (.gitignore), and files that they ignore may be its \
     own\n";

/// Takes back what a session changed.
pub(super) async fn run(settings: &Settings, args: &UndoArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("sessions undo"));
    }
    let Some(journal) = catalog::open_existing(settings).await? else {
        return Err(no_journal(settings, &args.session));
    };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let listed = catalog.find(&args.session)?;
    not_running(listed)?;
    let lead = listed.lead();
    let dir = Path::new(&listed.lead().summary.dir);
    let kept = Checkout::kept(settings, lead.agent.as_str(), dir);
    let keeper = Keeper::open(&keeping::places(settings), &kept.dir, &kept.name).await?;
    // The lease keeps other processes from going on with the session meanwhile.
    let lease = if args.dry_run { None } else { Some(journal.own(&StreamId::from(&lead.agent)).await?) };
    let undone = match args.dry_run {
        true => keeper.undo(true).await.map_err(WorktreeError::from),
        false => take_back(settings, &keeper, &kept, lead.agent.as_str()).await,
    };
    if let Some(lease) = &lease {
        journal.release(lease).await?;
    }
    let undone = undone.map_err(|error| match error {
        WorktreeError::Trees(convoke_trees::Error::NotKept { .. }) if kept.dir != dir => {
            elsewhere(listed, &kept.dir)
        }
        WorktreeError::Trees(error) => not_kept(listed, error),
        error => error.into(),
    })?;
    match settings.output {
        OutputFormat::Json => stdio::put_json(&object(listed, &undone, args.dry_run)).map(drop)?,
        OutputFormat::Text | OutputFormat::Jsonl => {
            stdio::put(&text(&undone, args.dry_run))?;
            stdio::tell(&summary(listed, &undone, args.dry_run));
            if let Some(back) = &undone.back {
                stdio::tell(&clean(&format!("to bring a file back: {back}\n")));
            }
        }
    }
    let whole = undone.kept.is_empty() && undone.not_kept.is_empty() && !undone.rules_changed;
    Ok(if whole { Exit::Done } else { Exit::Partial })
}

/// Takes it back. Worktrees whose work goes with it are not applied any more; that is said first, so that
/// none counts as applied whose work is gone from the directory.
async fn take_back(
    settings: &Settings,
    keeper: &Keeper,
    kept: &Checkout,
    lead: &str,
) -> Result<Undone, WorktreeError> {
    if let Some(worktrees) = keeping::worktrees(&keeping::places(settings), &kept.dir).await? {
        let mut applied = Vec::new();
        for run in BTreeSet::from([lead, &kept.name]) {
            applied.extend(worktrees.applied(run).await?.into_iter().map(|agent| (run, agent)));
        }
        let (back, changed) = match applied.is_empty() {
            true => (Vec::new(), Vec::new()),
            false => (keeper.undo(true).await?.restored, keeper.changes().await?),
        };
        for (run, agent) in applied {
            if changed.iter().any(|file| file.agents.contains(&agent) && back.contains(&file.path)) {
                worktrees.unapply(run, &agent).await?;
            }
        }
    }
    Ok(keeper.undo(false).await?)
}

/// Of a lead in a worktree of its own nothing was brought into the directory.
fn elsewhere(listed: &ListedSession, dir: &Path) -> Failure {
    let message = format!(
        "{} worked in a worktree of its own and changed nothing in {}",
        listed.session,
        dir.display()
    );
    Failure::usage(message)
        .hint(format!("`convoke worktrees drop {} {LEAD}` removes its work", listed.session))
}

/// Refuses a session that a process drives: its files are not changed while it works.
fn not_running(listed: &ListedSession) -> Result<(), Failure> {
    if listed.state() != State::Running {
        return Ok(());
    }
    let by = listed
        .agents
        .iter()
        .find_map(|entry| entry.owner.as_ref())
        .map(ToString::to_string)
        .unwrap_or_default();
    Err(Failure::failed(format!("{} is running ({by}); nothing was taken back", listed.session))
        .hint("end it first, or wait for its end"))
}

fn text(undone: &Undone, dry_run: bool) -> String {
    let would = if dry_run { "would be " } else { "" };
    let line = |path: &PathBuf| {
        format!("{would}{}: {}\n", kind(undone, path), quoted_name(path.as_os_str().as_bytes()))
    };
    let mut lines: String = undone.restored.iter().map(line).collect();
    for (path, why) in &undone.kept {
        let name = quoted_name(path.as_os_str().as_bytes());
        lines.push_str(&format!("left alone: {name} ({})\n", clean(why)));
    }
    for out in &undone.not_kept {
        lines.push_str(&format!("not kept, cannot be taken back: {}\n", keeping::not_kept_words(out)));
    }
    if undone.rules_changed {
        lines.push_str(RULES_CHANGED);
    }
    for later in
        undone.runs_later.iter().filter(|later| later.kind != LaterKind::Metadata).map(RunLater::from)
    {
        lines.push_str(&clean(&format!(
            "ignored by git, can be executed, left as it is: {}\n",
            later.words()
        )));
    }
    lines
}

/// What became of a file that was taken back: it has its former content, or it is gone.
fn kind(undone: &Undone, path: &Path) -> &'static str {
    if undone.removed.contains(path) { "removed" } else { "restored" }
}

fn summary(listed: &ListedSession, undone: &Undone, dry_run: bool) -> String {
    if undone.nothing_left() {
        return format!("nothing of {} is left to take back\n", listed.session);
    }
    let number = |of: usize| count(u32::try_from(of).unwrap_or(u32::MAX), "file");
    let would = if dry_run { "would be " } else { "" };
    let removed = match undone.removed.len() {
        0 => String::new(),
        removed => format!(", {} {would}removed", number(removed)),
    };
    let left = match undone.kept.len() {
        0 => String::new(),
        left => format!(", {} left alone", number(left)),
    };
    let restored = undone.restored.len().saturating_sub(undone.removed.len());
    format!("{} {would}restored{removed}{left}\n", number(restored))
}

fn object(listed: &ListedSession, undone: &Undone, dry_run: bool) -> String {
    let restored = |path: &PathBuf| json!({"path": path.to_string_lossy(), "kind": kind(undone, path)});
    let left = |(path, why): &(PathBuf, String)| json!({"path": path.to_string_lossy(), "why": why});
    let object = json!({
        "schema_version": 1,
        "run": listed.session,
        "dir": listed.lead().summary.dir,
        "dry_run": dry_run,
        "restored": undone.restored.iter().map(restored).collect::<Vec<_>>(),
        "left_alone": undone.kept.iter().map(left).collect::<Vec<_>>(),
        "not_kept": undone.not_kept.iter().map(not_kept_object).collect::<Vec<_>>(),
        "rules_changed": undone.rules_changed,
        "runs_later": undone.runs_later.iter().map(RunLater::from).collect::<Vec<_>>(),
        "back": undone.back,
    });
    format!("{object:#}\n")
}
