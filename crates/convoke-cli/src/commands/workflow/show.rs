//! `convoke workflow show`: what a workflow says of itself, where it is, and its source, in which nothing can
//! hide.

use convoke_runtime::{FoundWorkflow, LibraryError};
use serde_json::json;

use super::{Lookup, meta_object, short};
use crate::args::{OutputFormat, WorkflowShowArgs};
use crate::failure::{Exit, Failure};
use crate::render::{clean, hanging, revealed};
use crate::stdio;

/// Shows a workflow.
pub(super) async fn run(lookup: &Lookup<'_>, args: &WorkflowShowArgs) -> Result<Exit, Failure> {
    // What a run would load comes first; what is not trusted is shown so that a person can decide about it.
    let nearest = lookup.library.find(&args.name).await;
    let found = match (lookup.loaded.find(&args.name).await, nearest) {
        (Ok(Some(loaded)), Ok(Some(nearest))) if loaded.path != nearest.path => {
            let path = clean(&lookup.shown(nearest.path.as_deref())).replace('\n', " ");
            stdio::tell(&format!(
                "{path} has this name too, and would be found first if the project were trusted\n"
            ));
            Ok(Some(loaded))
        }
        (Ok(Some(loaded)), _) => Ok(Some(loaded)),
        (Ok(None) | Err(LibraryError::Untrusted { .. }), nearest) => nearest,
        (Err(error), _) => Err(error),
    };
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Err(lookup.unknown(&args.name, &lookup.workflows().await)),
        Err(error @ LibraryError::Unsound { .. }) => {
            let all = format!("`convoke workflow check {}` says everything that is wrong", args.name);
            return Err(Failure::from(error).hint(all));
        }
        Err(error) => return Err(error.into()),
    };
    let digest = found.digest();
    if lookup.settings.output == OutputFormat::Json {
        let object = json!({
            "schema_version": 1,
            "name": found.name,
            "meta": meta_object(&found.meta),
            "origin": found.origin.word(),
            "trusted": lookup.trusts(found.origin),
            "path": found.path.as_ref().map(|path| path.to_string_lossy()),
            "digest": short(&digest),
            "sha256": digest,
            "source": found.source,
        });
        stdio::put_json(&format!("{object:#}\n"))?;
        return Ok(Exit::Done);
    }
    let head = head(lookup, &found, &digest, stdio::width().unwrap_or(usize::MAX));
    // A person decides by what stands there, so on a terminal nothing of it may be obeyed or left out.
    let source = match stdio::is_shown() {
        true => revealed(&found.source.replace('\t', "    ").replace("\r\n", "\n")),
        false => found.source.clone(),
    };
    let end = if source.ends_with('\n') { "" } else { "\n" };
    stdio::put(&format!("{head}\n{source}{end}"))?;
    Ok(Exit::Done)
}

const INDENT: &str = "             ";

fn head(lookup: &Lookup<'_>, found: &FoundWorkflow, digest: &str, width: usize) -> String {
    let one_line = |text: &str| clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rows =
        vec![("name", one_line(&found.meta.name)), ("description", one_line(&found.meta.description))];
    rows.extend(found.meta.when_to_use.as_deref().map(|text| ("when to use", one_line(text))));
    for (number, phase) in found.meta.phases.iter().enumerate() {
        let detail = phase.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let title = if number == 0 { "phases" } else { "" };
        rows.push((title, one_line(&format!("{}. {}{detail}", number + 1, phase.title))));
    }
    rows.push(("from", lookup.from(found.origin, false)));
    rows.push(("file", one_line(&lookup.shown(found.path.as_deref()))));
    rows.push(("digest", short(digest).to_owned()));
    let row = |(title, text): (&str, String)| hanging(&format!("{title:<13}{text}"), width, INDENT) + "\n";
    rows.into_iter().map(row).collect()
}
