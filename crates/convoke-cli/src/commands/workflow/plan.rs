//! `convoke workflow plan`: what a workflow would do, without a model or a cent. What agents cost is what
//! they cost in this journal, as far as that has seen enough and can be read, and an assumption elsewhere. A
//! program of a project that is not trusted may be planned too: it runs in the interpreter, which reaches
//! nothing.

use convoke_runtime::LibraryError;

use super::chosen::Chosen;
use super::planned::{fails, object, plan, remarks, seen, text};
use super::{Lookup, given, is_file};
use crate::args::{OutputFormat, WorkflowPlanArgs};
use crate::failure::{Exit, Failure};
use crate::render::clean;
use crate::stdio;

/// Plans a workflow.
pub(super) async fn run(lookup: &Lookup<'_>, args: &WorkflowPlanArgs) -> Result<Exit, Failure> {
    let value = given::value(&args.given, &lookup.settings.dir)?;
    // What a run would load comes first; a project's own that no person trusts is looked at if nothing else
    // has the name.
    let found = lookup.loaded.find(&args.named).await;
    let loaded = is_file(&args.named) || !matches!(found, Ok(None) | Err(LibraryError::Untrusted { .. }));
    let library = if loaded { &lookup.loaded } else { &lookup.library };
    let chosen = Chosen::find(lookup, library, &args.named).await?;
    let settings = lookup.settings;
    let seen = seen(settings).await;
    let plan = plan(settings, &settings.source, library.clone(), &chosen, value.as_ref(), &seen).await?;
    let exit = if fails(&plan) { Exit::Failed } else { Exit::Done };
    if settings.output == OutputFormat::Json {
        stdio::put_json(&format!("{:#}\n", object(settings, &chosen, &plan)))?;
        return Ok(exit);
    }
    let width = stdio::width();
    let head = format!("{} ({}): {}\n\n", chosen.meta.name, chosen.short(), chosen.meta.description);
    stdio::put(&format!("{}{}", clean(&head), text(settings, &chosen, &plan, width)))?;
    stdio::tell(&remarks(&chosen, &plan, width));
    if chosen.origin.is_some_and(|origin| !lookup.trusts(origin)) {
        stdio::tell("this project is not trusted: running it needs --trust-project\n");
    }
    Ok(exit)
}
