//! `convoke sessions diff`: exactly what a session changed, as a patch that `git apply` takes.

use std::path::Path;

use convoke_trees::{DiffForm, Error, Keeper, LeftOut, RunsLater, Worktrees};
use serde_json::{Value, json};

use super::no_journal;
use crate::args::{DiffArgs, OutputFormat};
use crate::catalog::{self, Catalog, ListedSession};
use crate::commands::patch;
use crate::failure::{Exit, Failure};
use crate::keeping::{self, Checkout, LEAD};
use crate::lead::Lead;
use crate::render::{Look, clean};
use crate::settings::Settings;
use crate::stdio;

/// Shows what a session changed.
pub(super) async fn run(settings: &Settings, args: &DiffArgs) -> Result<Exit, Failure> {
    patch::check("sessions diff", settings.output)?;
    let Some(journal) = catalog::open_existing(settings).await? else {
        return Err(no_journal(settings, &args.session));
    };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let listed = catalog.find(&args.session)?;
    let dir = Path::new(&listed.lead().summary.dir);
    let places = keeping::places(settings);
    let (bytes, about, not_kept, later) = match Checkout::of(settings, dir) {
        Some(checkout) => {
            let worktrees = Worktrees::open(places, &checkout.dir).await?;
            let none = RunsLater { whole: true, ..RunsLater::default() };
            (worktrees.diff(&checkout.name, LEAD).await?, checkout.dir, Vec::new(), none)
        }
        None => {
            let keeper = Keeper::open(&places, dir, listed.lead().agent.as_str()).await?;
            let bytes = keeper.diff(DiffForm::Patch).await.map_err(|error| not_kept(listed, error))?;
            (bytes, dir.to_owned(), keeper.left_out()?, keeper.runs_later().await?)
        }
    };
    let lead = Lead::read(&journal, &listed.lead().agent).await.unwrap_or_default();
    let runs_later = keeping::later_of(&later, lead.spec.as_ref().map(|spec| &spec.confinement));
    if settings.output == OutputFormat::Json {
        let (files, patch) = patch::object(&bytes);
        let object = json!({
            "schema_version": 1, "run": listed.session, "dir": about, "files": files, "patch": patch,
            "not_kept": not_kept.iter().map(not_kept_object).collect::<Vec<_>>(),
            "runs_later": runs_later,
        });
        stdio::put_json(&format!("{object:#}\n"))?;
        return Ok(Exit::Done);
    }
    if let Some(line) = keeping::not_kept_line(&not_kept) {
        stdio::tell(&format!("{line}\n"));
    }
    for line in keeping::later_line(&runs_later).into_iter().chain(keeping::unlooked_line(&later)) {
        stdio::tell(&format!("{line}\n"));
    }
    for one in runs_later.iter().filter(|one| one.kind == "program") {
        stdio::tell(&clean(&format!("in no patch, can be executed: {}\n", one.words())));
    }
    if bytes.is_empty() {
        let more = if runs_later.is_empty() { "" } else { " that a patch shows" };
        stdio::tell(&format!("{} left no change{more}\n", listed.session));
        return Ok(Exit::Done);
    }
    patch::put(&bytes, args.form, Look::of(settings))?;
    Ok(Exit::Done)
}

/// Something that could not be kept, as data.
pub(super) fn not_kept_object(out: &LeftOut) -> Value {
    json!({"path": out.path.to_string_lossy(), "why": out.why})
}

/// A session of which nothing was kept: that it changed nothing is likely and not certain.
pub(super) fn not_kept(listed: &ListedSession, error: Error) -> Failure {
    match error {
        Error::NotKept { .. } => {
            let message =
                format!("nothing was kept for {}: it wrote nothing, or git was missing", listed.session);
            Failure::failed(message)
                .hint(format!("`convoke sessions show {}` tells what it did", listed.session))
        }
        error => error.into(),
    }
}
