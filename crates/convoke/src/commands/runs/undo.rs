//! `convoke runs undo`: takes back what a run changed. A file that is not as the run left it is left alone and named with
//! the reason; what a person did beside the run is not touched.

use std::path::Path;

use convoke_journal::StreamId;
use convoke_trees::{Keeper, Undone};
use serde_json::json;

use super::diff::{not_kept, not_kept_object};
use super::no_journal;
use crate::args::{OutputFormat, UndoArgs};
use crate::catalog::{self, Catalog, Run, State};
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::keeping::{self, Checkout, LEAD};
use crate::render::{clean, count};
use crate::settings::Settings;
use crate::stdio;

/// Takes back what a run changed.
pub(super) async fn run(settings: &Settings, args: &UndoArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("runs undo"));
    }
    let Some(journal) = catalog::open_existing(settings).await? else { return Err(no_journal(settings, &args.run)) };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let run = catalog.find(&args.run)?;
    not_running(run)?;
    let (lead, dir) = (run.lead(), Path::new(&run.lead().summary.dir));
    if let Some(checkout) = Checkout::of(settings, dir) {
        let message = format!(
            "{} worked in a worktree of its own and changed nothing in {}",
            run.session,
            checkout.dir.display()
        );
        return Err(
            Failure::usage(message).hint(format!("`convoke worktrees drop {} {LEAD}` removes its work", run.session))
        );
    }
    let keeper = Keeper::open(&keeping::places(settings), dir, lead.agent.as_str()).await?;
    // Nobody goes on with the run meanwhile.
    let lease = if args.dry_run { None } else { Some(journal.own(&StreamId::from(&lead.agent)).await?) };
    let undone = keeper.undo(args.dry_run).await;
    if let Some(lease) = &lease {
        journal.release(lease).await?;
    }
    let undone = undone.map_err(|error| not_kept(run, error))?;
    match settings.output {
        OutputFormat::Json => stdio::put_json(&object(run, &undone, args.dry_run)).map(drop)?,
        OutputFormat::Text | OutputFormat::Jsonl => {
            stdio::put(&text(&undone, args.dry_run))?;
            stdio::tell(&summary(run, &undone, args.dry_run));
            if let Some(back) = &undone.back {
                stdio::tell(&clean(&format!("to bring a file back: {back}\n")));
            }
        }
    }
    Ok(if undone.kept.is_empty() && undone.not_kept.is_empty() { Exit::Done } else { Exit::Partial })
}

/// What somebody is driving is not changed under their hands.
fn not_running(run: &Run) -> Result<(), Failure> {
    if run.state() != State::Running {
        return Ok(());
    }
    let by = run.agents.iter().find_map(|entry| entry.owner.as_ref()).map(ToString::to_string).unwrap_or_default();
    Err(Failure::failed(format!("{} is running ({by}); nothing was taken back", run.session))
        .hint("end it first, or wait for its end"))
}

fn text(undone: &Undone, dry_run: bool) -> String {
    let verb = if dry_run { "would be restored" } else { "restored" };
    let mut lines: String =
        undone.restored.iter().map(|path| format!("{verb}: {}\n", clean(&path.to_string_lossy()))).collect();
    for (path, why) in &undone.kept {
        lines.push_str(&clean(&format!("left alone: {} ({why})\n", path.to_string_lossy())));
    }
    for out in &undone.not_kept {
        lines.push_str(&clean(&format!("not kept, cannot be taken back: {out}\n")));
    }
    lines
}

fn summary(run: &Run, undone: &Undone, dry_run: bool) -> String {
    if undone.nothing_left() {
        return format!("nothing of {} is left to take back\n", run.session);
    }
    let number = |of: usize| count(u32::try_from(of).unwrap_or(u32::MAX), "file");
    let verb = if dry_run { "would be restored" } else { "restored" };
    let left = match undone.kept.len() {
        0 => String::new(),
        left => format!(", {} left alone", number(left)),
    };
    format!("{} {verb}{left}\n", number(undone.restored.len()))
}

fn object(run: &Run, undone: &Undone, dry_run: bool) -> String {
    let restored: Vec<_> = undone.restored.iter().map(|path| path.to_string_lossy()).collect();
    let left = |(path, why): &(std::path::PathBuf, String)| json!({"path": path.to_string_lossy(), "why": why});
    let object = json!({
        "schema_version": 1,
        "run": run.session,
        "dir": run.lead().summary.dir,
        "dry_run": dry_run,
        "restored": restored,
        "left_alone": undone.kept.iter().map(left).collect::<Vec<_>>(),
        "not_kept": undone.not_kept.iter().map(not_kept_object).collect::<Vec<_>>(),
        "back": undone.back,
    });
    format!("{object:#}\n")
}
