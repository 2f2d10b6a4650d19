//! `convoke sessions export`: a session's events as JSON lines, as the journal has them: its agents', its
//! workflows' and its ledger's, each in order.

use convoke_beneath::{Error, WriteTarget};

use super::{line, no_journal};
use crate::args::ExportArgs;
use crate::catalog::{self, Catalog};
use crate::failure::{Exit, Failure};
use crate::settings::Settings;
use crate::stdio;

/// Exports a session.
pub(super) async fn run(settings: &Settings, args: &ExportArgs) -> Result<Exit, Failure> {
    // Before anything else: a session that is under way could put a link there.
    let place = args
        .to
        .as_deref()
        .map(|path| WriteTarget::find(path, Some(&settings.dir)).map_err(cannot))
        .transpose()?;
    let Some(journal) = catalog::open_existing(settings).await? else {
        return Err(no_journal(settings, &args.session));
    };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let listed = catalog.find(&args.session)?;
    let mut records = Vec::new();
    for stream in listed.streams() {
        records.extend(journal.load(&stream, 0).await?);
    }
    let text: String = records.iter().map(line).collect();
    match place {
        None => {
            stdio::put_json(&text)?;
        }
        Some(place) => {
            // Private like the journal, because it holds the same.
            place.create(text.as_bytes(), 0o600).map_err(cannot)?;
            stdio::tell(&format!(
                "{} events of {} are in {}\n",
                records.len(),
                listed.session,
                place.path().display()
            ));
        }
    }
    Ok(Exit::Done)
}

fn cannot(error: Error) -> Failure {
    let failure = Failure::failed(format!("cannot write {error}"));
    match error {
        Error::Link { .. } => failure.hint("name the file itself, by a path without links"),
        error if error.is_taken() => failure.hint("name a file that does not exist yet"),
        _ => failure,
    }
}
