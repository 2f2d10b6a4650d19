//! `convoke config show`: every key, its value and where it came from. Secrets arrive here masked.

use serde_json::json;

use super::table::{Column, Table};
use crate::args::{ConfigCommand, OutputFormat};
use crate::failure::{Exit, Failure};
use crate::settings::Settings;
use crate::stdio;

/// Why what a project chose does not count.
const NOT_TRUSTED: &str = "project not trusted";

/// Shows the configuration.
pub(crate) fn run(settings: &Settings, command: &ConfigCommand) -> Result<Exit, Failure> {
    let ConfigCommand::Show(_) = command;
    match settings.output {
        OutputFormat::Text => text(settings)?,
        OutputFormat::Json => {
            stdio::put_json(&format!("{:#}\n", object(settings)))?;
        }
        OutputFormat::Jsonl => return Err(super::no_jsonl("config show")),
    }
    Ok(Exit::Done)
}

fn object(settings: &Settings) -> serde_json::Value {
    let rows = settings.rows.iter();
    let files = settings.files.iter();
    json!({
        "schema_version": 1,
        "dir": settings.dir.to_string_lossy(),
        "state_dir": settings.state_dir.to_string_lossy(),
        "files": files.map(|file| json!({
            "layer": file.layer,
            "path": file.path.to_string_lossy(),
            "found": file.found,
        })).collect::<Vec<_>>(),
        "settings": rows.map(|row| json!({
            "key": row.key,
            "value": row.value,
            "origin": row.origin.to_string(),
            "ignored": row.ignored.as_ref().map(|origin| json!({"origin": origin.to_string(), "why": NOT_TRUSTED})),
        })).collect::<Vec<_>>(),
    })
}

fn text(settings: &Settings) -> Result<(), Failure> {
    let columns = vec![Column::kept("KEY"), Column::kept("VALUE"), Column::kept("FROM")];
    let mut table = Table::new(columns);
    for row in &settings.rows {
        let value = row.value.clone().unwrap_or_else(|| "-".to_owned());
        let ignored = row.ignored.as_ref().map(|origin| format!(" (ignored: {origin}, {NOT_TRUSTED})"));
        table.row(vec![row.key.clone(), value, format!("{}{}", row.origin, ignored.unwrap_or_default())]);
    }
    // What came from where must be readable to the end, so nothing is cut here.
    stdio::put(&table.render(None))?;
    for file in &settings.files {
        let found = if file.found { "read" } else { "not there" };
        stdio::tell(&format!("{} configuration: {} ({found})\n", file.layer, file.path.display()));
    }
    for warning in &settings.warnings {
        stdio::tell(&format!("warning: {warning}\n"));
    }
    Ok(())
}
