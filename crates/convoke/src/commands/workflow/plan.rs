//! `convoke workflow plan`: what a workflow would do, without a model, a journal or a cent. A program of a project that nobody has
//! trusted may be planned too: it runs in the interpreter, which reaches nothing.

use super::chosen::Chosen;
use super::planned::{fails, object, plan, remarks, text};
use super::{Desk, given, is_file};
use crate::args::{OutputFormat, WorkflowPlanArgs};
use crate::failure::{Exit, Failure};
use crate::render::clean;
use crate::stdio;

/// Plans a workflow.
pub(super) async fn run(desk: &Desk<'_>, args: &WorkflowPlanArgs) -> Result<Exit, Failure> {
    let value = given::value(&args.given, &desk.settings.dir)?;
    // What a run would load comes first; a project's own that nobody trusts is looked at if nothing else has the name.
    let loaded = is_file(&args.named) || !matches!(desk.loaded.find(&args.named).await, Ok(None));
    let library = if loaded { &desk.loaded } else { &desk.library };
    let chosen = Chosen::find(desk, library, &args.named).await?;
    let settings = desk.settings;
    let plan = plan(settings, &settings.source, library.clone(), &chosen, value.as_ref()).await?;
    let exit = if fails(&plan) { Exit::Failed } else { Exit::Done };
    if settings.output == OutputFormat::Json {
        stdio::put_json(&format!("{:#}\n", object(settings, &chosen, &plan)))?;
        return Ok(exit);
    }
    let width = stdio::width();
    let head = format!("{} ({}): {}\n\n", chosen.meta.name, chosen.short(), chosen.meta.description);
    stdio::put(&format!("{}{}", clean(&head), text(settings, &chosen, &plan, width)))?;
    stdio::tell(&remarks(&chosen, &plan, width));
    Ok(exit)
}
