//! `convoke workflow list`: every workflow and kind of agent that is saved, nearest first, with what is wrong
//! with it.

use convoke_runtime::{KindEntry, Origin, Reading, WorkflowEntry};
use serde_json::{Value, json};

use super::{Lookup, meta_object, places};
use crate::args::{OutputFormat, WorkflowListArgs};
use crate::commands::table::{Column, Table};
use crate::failure::{Exit, Failure};
use crate::render::{clean, count};
use crate::stdio;

/// Lists workflows and kinds of agents.
pub(super) async fn run(lookup: &Lookup<'_>, args: WorkflowListArgs) -> Result<Exit, Failure> {
    let workflows = lookup.workflows().await;
    let kinds = lookup.kinds().await;
    if lookup.settings.output == OutputFormat::Json {
        let workflows: Vec<Value> = workflows.iter().map(|entry| object(lookup, entry)).collect();
        let agents: Vec<Value> = kinds.iter().map(|entry| kind_object(lookup, entry)).collect();
        let object = json!({
            "schema_version": 1,
            "project": lookup.folders.root.to_string_lossy(),
            "trusted": lookup.folders.trusted,
            "workflows": workflows,
            "agents": agents,
        });
        stdio::put_json(&format!("{object:#}\n"))?;
        return Ok(Exit::Done);
    }
    let width = (!args.verbose).then(|| stdio::width().unwrap_or(WIDE));
    text(lookup, &workflows, &kinds, width)?;
    tell(lookup, &workflows, &kinds);
    Ok(Exit::Done)
}

/// What a line may take where nothing says how long a line is.
const WIDE: usize = 120;

fn text(
    lookup: &Lookup<'_>,
    workflows: &[WorkflowEntry],
    kinds: &[KindEntry],
    width: Option<usize>,
) -> Result<(), Failure> {
    let mut table = table("WORKFLOW");
    for entry in workflows {
        let description = match &entry.reading {
            Reading::Sound(meta) => meta.description.clone(),
            Reading::Unsound(problems) => {
                let first = problems.first().map(|problem| problem.message.as_str()).unwrap_or_default();
                format!("cannot be run: {first}")
            }
            Reading::Unreadable(why) => format!("cannot be run: {why}"),
        };
        let from = lookup.from(entry.origin, entry.hidden);
        table.row(vec![entry.name.clone(), from, lookup.shown(entry.path.as_deref()), description]);
    }
    let mut shown = if workflows.is_empty() { String::new() } else { table.render(width) };
    // The built-in kinds alone are not worth a table.
    if kinds.iter().any(|entry| entry.origin != Origin::Shipped) {
        let mut table = self::table("AGENT");
        for entry in kinds {
            let description = match &entry.problem {
                None => entry.description.clone(),
                Some(why) => format!("cannot be used: {why}"),
            };
            let from = lookup.from(entry.origin, entry.hidden);
            table.row(vec![entry.name.clone(), from, lookup.shown(entry.path.as_deref()), description]);
        }
        let apart = if shown.is_empty() { "" } else { "\n" };
        shown = format!("{shown}{apart}{}", table.render(width));
    }
    stdio::put(&shown)
}

fn table(title: &'static str) -> Table {
    Table::new(vec![
        Column::kept(title),
        Column::kept("FROM"),
        Column::dropped("FILE", 0),
        Column::cut("DESCRIPTION"),
    ])
}

/// What to do about what is listed.
fn tell(lookup: &Lookup<'_>, workflows: &[WorkflowEntry], kinds: &[KindEntry]) {
    if lookup.settings.quiet {
        return;
    }
    if workflows.is_empty() {
        stdio::tell("no workflows; `convoke workflow save NAME --from FILE` saves one\n");
    }
    let broken = workflows.iter().filter(|entry| !matches!(entry.reading, Reading::Sound(_))).count();
    if broken > 0 {
        let number = count(u32::try_from(broken).unwrap_or(u32::MAX), "workflow");
        stdio::tell(&format!(
            "{number} cannot be run: `convoke workflow check FILE` says everything that is wrong\n"
        ));
    }
    for entry in kinds.iter().filter(|entry| !entry.hidden) {
        for warning in &entry.warnings {
            let file = lookup.shown(entry.path.as_deref());
            stdio::tell(&format!("warning: {}: {}\n", clean(&file).replace('\n', " "), clean(warning)));
        }
    }
    let of_project = workflows.iter().map(|entry| entry.origin).chain(kinds.iter().map(|entry| entry.origin));
    if !lookup.folders.trusted && of_project.into_iter().any(|origin| origin == Origin::Project) {
        let root = clean(&lookup.folders.root.to_string_lossy()).replace('\n', " ");
        stdio::tell(&format!(
            "not trusted: not loaded unless you say --trust-project, or add '{root}' to `trusted` in your \
                configuration\n"
        ));
    }
}

fn object(lookup: &Lookup<'_>, entry: &WorkflowEntry) -> Value {
    let (meta, problems) = match &entry.reading {
        Reading::Sound(meta) => (Some(meta), Vec::new()),
        Reading::Unsound(problems) => (None, problems.iter().map(places::object).collect()),
        Reading::Unreadable(why) => {
            (None, vec![json!({"message": why, "line": null, "column": null, "text": null})])
        }
    };
    json!({
        "name": entry.name,
        "origin": entry.origin.word(),
        "trusted": lookup.trusts(entry.origin),
        "path": entry.path.as_ref().map(|path| path.to_string_lossy()),
        "description": meta.map(|meta| meta.description.as_str()),
        "meta": meta.map(meta_object),
        "sound": meta.is_some(),
        "hidden": entry.hidden,
        "problems": problems,
    })
}

fn kind_object(lookup: &Lookup<'_>, entry: &KindEntry) -> Value {
    json!({
        "name": entry.name,
        "origin": entry.origin.word(),
        "trusted": lookup.trusts(entry.origin),
        "path": entry.path.as_ref().map(|path| path.to_string_lossy()),
        "description": entry.description,
        "hidden": entry.hidden,
        "problem": entry.problem,
        "warnings": entry.warnings,
    })
}
