//! `convoke runs export`: a run's events as JSON lines, as the journal has them: its agents', its workflows' and its
//! ledger's, each in order.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{line, no_journal};
use crate::args::ExportArgs;
use crate::catalog::{self, Catalog};
use crate::failure::{Exit, Failure};
use crate::settings::Settings;
use crate::stdio;

/// Exports a run.
pub(super) async fn run(settings: &Settings, args: &ExportArgs) -> Result<Exit, Failure> {
    let Some(journal) = catalog::open_existing(settings).await? else { return Err(no_journal(settings, &args.run)) };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let run = catalog.find(&args.run)?;
    let mut records = Vec::new();
    for stream in run.streams() {
        records.extend(journal.load(&stream, 0).await?);
    }
    let text: String = records.iter().map(line).collect();
    match &args.to {
        None => {
            stdio::put_json(&text)?;
        }
        Some(path) => {
            write_new(path, &text).map_err(|error| cannot(path, &error))?;
            stdio::tell(&format!("{} events of {} are in {}\n", records.len(), run.session, path.display()));
        }
    }
    Ok(Exit::Done)
}

/// Private like the journal, because it holds the same.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::failed(format!("cannot write {}: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => failure.hint("name a file that does not exist yet"),
        _ => failure,
    }
}
