//! Forgets what was kept for a session that is pruned. Work in worktrees that was not taken over is never
//! forgotten: it stays, and is named.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use convoke_trees::{Error, WorktreeError, Worktrees};

use super::checkout::Checkout;
use super::places::places;
use crate::catalog::ListedSession;
use crate::settings::Settings;

/// What could not be forgotten, and what was not to be.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    /// Worktrees with work that was not taken over, each in one sentence.
    pub(crate) stays: Vec<String>,
    /// What went wrong, each in one sentence.
    pub(crate) problems: Vec<String>,
}

/// Forgets what was kept for a session: its refs, its record, and worktrees in which no work is left to take
/// over.
pub(crate) async fn forget(settings: &Settings, listed: &ListedSession) -> Forgotten {
    let mut forgotten = Forgotten::default();
    let lead = listed.lead().agent.as_str();
    let dir = Path::new(&listed.lead().summary.dir);
    let checkout = Checkout::of(settings, dir);
    let about = checkout.as_ref().map_or(dir, |checkout| checkout.dir.as_path());
    let names: Vec<&str> = [Some(lead), checkout.as_ref().map(|checkout| checkout.name.as_str())]
        .into_iter()
        .flatten()
        .collect();
    for name in names.iter().copied() {
        if let Err(error) = drop_worktrees(settings, about, name, &mut forgotten).await {
            forgotten.problems.push(format!("the worktrees of {name} stay: {error}"));
        }
    }
    if let (Some(checkout), true) = (&checkout, forgotten.stays.is_empty())
        && let Err(error) = checkout.forget(settings)
    {
        forgotten.problems.push(format!("the record of its worktree stays: {error}"));
    }
    // The trees of a lead's worktree lie in the same repository, and its directory may be gone.
    for name in names {
        match convoke_trees::forget(&places(settings), about, name).await {
            // Where there is no git, or no directory any more, nothing can be looked up; what is ours goes
            // all the same.
            Ok(())
            | Err(
                Error::NoGit
                | Error::NoDirectory { .. }
                | Error::BadRepository { .. }
                | Error::StateInside { .. },
            ) => {}
            Err(error) => forgotten.problems.push(format!("what was kept for {name} stays: {error}")),
        }
        let record = settings.state_dir.join("trees/runs").join(name);
        match fs::remove_dir_all(&record) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                forgotten.problems.push(format!("{} stays: {error}", record.display()));
            }
            _ => {}
        }
    }
    forgotten
}

async fn drop_worktrees(
    settings: &Settings,
    dir: &Path,
    name: &str,
    forgotten: &mut Forgotten,
) -> Result<(), WorktreeError> {
    let worktrees = match Worktrees::open(places(settings), dir).await {
        Ok(worktrees) => worktrees,
        Err(WorktreeError::Trees(
            Error::NoGit
            | Error::NoRepository { .. }
            | Error::NoDirectory { .. }
            | Error::BadRepository { .. }
            | Error::StateInside { .. },
        )) => {
            // A worktree whose repository is gone can be looked at by hand.
            let left = settings.state_dir.join("worktrees").join(name);
            if left.exists() {
                forgotten.stays.push(format!("{} stays: its repository cannot be used", left.display()));
            }
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for entry in worktrees.list(Some(name)).await? {
        let wanted = (!entry.files.is_empty() && !entry.applied) || !entry.ignored.is_empty();
        if wanted {
            let what = if entry.files.is_empty() || entry.applied {
                "files that git ignores"
            } else {
                "work that was not applied"
            };
            forgotten.stays.push(format!(
                "the worktree {name} {} stays: it has {what}; `convoke worktrees apply` or `drop {name} {}` \
                    in {}",
                entry.agent,
                entry.agent,
                dir.display()
            ));
            continue;
        }
        match worktrees.drop(&entry.run, &entry.agent, false).await {
            Ok(_) => {}
            Err(error) => forgotten.stays.push(format!("the worktree {name} {} stays: {error}", entry.agent)),
        }
    }
    Ok(())
}
