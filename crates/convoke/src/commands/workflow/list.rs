//! `convoke workflow list`: every workflow and kind of agent that is saved, nearest first, with what is wrong with it.

use convoke_runtime::{Entry, KindEntry, Origin, Reading};
use serde_json::{Value, json};

use super::{Desk, meta_object, places};
use crate::args::OutputFormat;
use crate::commands::table::{Column, Table};
use crate::failure::{Exit, Failure};
use crate::render::{clean, count};
use crate::stdio;

/// Lists workflows and kinds of agents.
pub(super) async fn run(desk: &Desk<'_>) -> Result<Exit, Failure> {
    let (workflows, kinds) = (desk.workflows().await, desk.kinds().await);
    if desk.settings.output == OutputFormat::Json {
        let workflows: Vec<Value> = workflows.iter().map(|entry| object(desk, entry)).collect();
        let agents: Vec<Value> = kinds.iter().map(|entry| kind_object(desk, entry)).collect();
        let object = json!({
            "schema_version": 1,
            "project": desk.shelves.root.to_string_lossy(),
            "trusted": desk.shelves.trusted,
            "workflows": workflows,
            "agents": agents,
        });
        stdio::put_json(&format!("{object:#}\n"))?;
        return Ok(Exit::Done);
    }
    text(desk, &workflows, &kinds)?;
    tell(desk, &workflows, &kinds);
    Ok(Exit::Done)
}

fn text(desk: &Desk<'_>, workflows: &[Entry], kinds: &[KindEntry]) -> Result<(), Failure> {
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
        let from = desk.from(entry.origin, entry.hidden);
        table.row(vec![entry.name.clone(), from, desk.shown(entry.path.as_deref()), description]);
    }
    let mut shown = if workflows.is_empty() { String::new() } else { table.render(stdio::width()) };
    // The built-in ones alone are nobody's news.
    if kinds.iter().any(|entry| entry.origin != Origin::Shipped) {
        let mut table = self::table("AGENT");
        for entry in kinds {
            let description = match &entry.problem {
                None => entry.description.clone(),
                Some(why) => format!("cannot be used: {why}"),
            };
            let from = desk.from(entry.origin, entry.hidden);
            table.row(vec![entry.name.clone(), from, desk.shown(entry.path.as_deref()), description]);
        }
        let apart = if shown.is_empty() { "" } else { "\n" };
        shown = format!("{shown}{apart}{}", table.render(stdio::width()));
    }
    stdio::put(&shown)
}

fn table(title: &'static str) -> Table {
    Table::new(vec![Column::kept(title), Column::kept("FROM"), Column::dropped("FILE", 0), Column::cut("DESCRIPTION")])
}

/// What to do about what is listed.
fn tell(desk: &Desk<'_>, workflows: &[Entry], kinds: &[KindEntry]) {
    if desk.settings.quiet {
        return;
    }
    if workflows.is_empty() {
        stdio::tell("no workflows; `convoke workflow save NAME --from FILE` saves one\n");
    }
    let broken = workflows.iter().filter(|entry| !matches!(entry.reading, Reading::Sound(_))).count();
    if broken > 0 {
        let number = count(u32::try_from(broken).unwrap_or(u32::MAX), "workflow");
        stdio::tell(&format!("{number} cannot be run: `convoke workflow check FILE` says everything that is wrong\n"));
    }
    let of_project = workflows.iter().map(|entry| entry.origin).chain(kinds.iter().map(|entry| entry.origin));
    if !desk.shelves.trusted && of_project.into_iter().any(|origin| origin == Origin::Project) {
        let root = clean(&desk.shelves.root.to_string_lossy()).replace('\n', " ");
        stdio::tell(&format!(
            "not trusted: not loaded unless you say --trust-project, or add '{root}' to `trusted` in your configuration\n"
        ));
    }
}

fn object(desk: &Desk<'_>, entry: &Entry) -> Value {
    let (meta, problems) = match &entry.reading {
        Reading::Sound(meta) => (Some(meta), Vec::new()),
        Reading::Unsound(problems) => (None, problems.iter().map(places::object).collect()),
        Reading::Unreadable(why) => (None, vec![json!({"message": why, "line": null, "column": null, "text": null})]),
    };
    json!({
        "name": entry.name,
        "origin": entry.origin.word(),
        "trusted": desk.trusts(entry.origin),
        "path": entry.path.as_ref().map(|path| path.to_string_lossy()),
        "description": meta.map(|meta| meta.description.as_str()),
        "meta": meta.map(meta_object),
        "sound": meta.is_some(),
        "hidden": entry.hidden,
        "problems": problems,
    })
}

fn kind_object(desk: &Desk<'_>, entry: &KindEntry) -> Value {
    json!({
        "name": entry.name,
        "origin": entry.origin.word(),
        "trusted": desk.trusts(entry.origin),
        "path": entry.path.as_ref().map(|path| path.to_string_lossy()),
        "description": entry.description,
        "hidden": entry.hidden,
        "problem": entry.problem,
    })
}
