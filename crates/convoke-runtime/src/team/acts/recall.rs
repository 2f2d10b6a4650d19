//! Reading the result of an earlier call again that a new history left out: the journal has it whole.

use convoke_journal::StreamId;
use convoke_kernel::{Event, ToolResult};

use super::{Act, ActContext, Done};
use crate::error::Error;

/// Characters of one page.
const PAGE: usize = 8_000;

/// A page of what an earlier call of the caller's own came to.
pub(super) async fn recall(scene: &ActContext<'_>, reference: &str, from: usize) -> Result<Done, Error> {
    let agent = &scene.parent.id;
    let reference = reference.trim();
    let mut found: Vec<(String, ToolResult)> = Vec::new();
    for record in scene.parent.config.journal.load(&StreamId::from(agent), 0).await? {
        let id = agent.clone();
        let seq = record.seq;
        let event =
            Event::decode(&record.event).map_err(|cause| Error::BadEvent { agent: id, seq, cause })?;
        match event {
            Event::ToolFinished(e) if !reference.is_empty() && e.id.starts_with(reference) => {
                found.retain(|(id, _)| *id != e.id);
                found.push((e.id, e.result));
            }
            _ => {}
        }
    }
    // A whole id is meant even if it is the beginning of another.
    if let Some(exact) = found.iter().position(|(id, _)| id == reference) {
        found = vec![found.swap_remove(exact)];
    }
    Ok(match found.as_slice() {
        [(id, result)] => page(id, result, from),
        [] => Err(format!(
            "There is no earlier result '{reference}'. Use a reference as the start of your history names it."
        )),
        several => {
            Err(format!("'{reference}' is the beginning of {} references: use a whole one.", several.len()))
        }
    })
}

fn page(id: &str, result: &ToolResult, from: usize) -> Done {
    let total = result.text.chars().count();
    if from > 0 && from >= total {
        return Err(format!("The result {id} has {total} characters: start below that."));
    }
    let text: String = result.text.chars().skip(from).take(PAGE).collect();
    let to = from + text.chars().count();
    let rest = if to < total { format!("; recall it with from: {to} for more") } else { String::new() };
    let file =
        result.full_output.as_ref().map_or(String::new(), |path| format!("; its whole output is in {path}"));
    let failed = if result.is_error { ", flagged as an error" } else { "" };
    Ok(Act::says(format!("{text}\n\n(characters {from} to {to} of {total} of {id}{failed}{rest}{file})")))
}
