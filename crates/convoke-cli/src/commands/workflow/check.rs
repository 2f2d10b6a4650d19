//! `convoke workflow check`: everything that is wrong with workflows. They are parsed in a locked process of
//! their own and never run.

use convoke_runtime::Checked;
use serde_json::{Value, json};

use super::{Lookup, meta_object, places};
use crate::args::{OutputFormat, WorkflowCheckArgs};
use crate::failure::{Exit, Failure};
use crate::render::{clean, count};
use crate::stdio;

/// What one of them came to.
struct Looked {
    /// The file as it was named, or the name of one that is shipped.
    file: String,
    /// What the interpreter says, or why it was not asked.
    checked: Result<Checked, String>,
}

/// Checks workflows.
pub(super) async fn run(lookup: &Lookup<'_>, args: &WorkflowCheckArgs) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for given in &args.given {
        let (file, checked) = match lookup.source(given).await {
            Ok((file, source)) => (file, Ok(lookup.library.checker().check(&source).await?)),
            // One that cannot be read is told among the others, so that none is left out for its sake.
            Err(failure) if args.given.len() > 1 => (given.clone(), Err(failure.message)),
            Err(failure) => return Err(failure),
        };
        all.push(Looked { file, checked });
    }
    if lookup.settings.output == OutputFormat::Json {
        let files: Vec<Value> = all.iter().map(object).collect();
        stdio::put_json(&format!("{:#}\n", json!({"schema_version": 1, "files": files})))?;
    } else {
        stdio::put(&all.iter().map(text).collect::<String>())?;
        tell(lookup, &all);
    }
    Ok(if all.iter().all(is_sound) { Exit::Done } else { Exit::Usage })
}

/// Whether it can be run, and nothing of it is a slip.
fn is_sound(looked: &Looked) -> bool {
    matches!(&looked.checked, Ok(Checked::Sound { slips, .. }) if slips.is_empty())
}

fn can_be_run(looked: &Looked) -> bool {
    matches!(looked.checked, Ok(Checked::Sound { .. }))
}

fn text(looked: &Looked) -> String {
    let file = &looked.file;
    let width = stdio::width();
    match &looked.checked {
        Err(why) => format!("{}: {}\n", clean(file), clean(why)),
        Ok(Checked::Unsound { problems }) => {
            problems.iter().map(|problem| places::lines(file, "", problem, width)).collect()
        }
        Ok(Checked::Sound { warnings, slips, .. }) => {
            let slips = slips.iter().map(|slip| places::lines(file, "", slip, width));
            slips
                .chain(warnings.iter().map(|warning| places::lines(file, "warning: ", warning, width)))
                .collect()
        }
    }
}

fn tell(lookup: &Lookup<'_>, all: &[Looked]) {
    if lookup.settings.quiet {
        return;
    }
    let number = |number: usize| count(u32::try_from(number).unwrap_or(u32::MAX), "workflow");
    let wrong = all.iter().filter(|looked| !can_be_run(looked)).count();
    let slips = all.iter().filter(|looked| can_be_run(looked) && !is_sound(looked)).count();
    let mut said = vec![format!("{} checked", number(all.len()))];
    said.extend((wrong > 0).then(|| format!("{wrong} cannot be run")));
    said.extend((slips > 0).then(|| format!("{slips} with mistakes that go wrong later")));
    said.extend((wrong + slips == 0).then(|| "nothing wrong".to_owned()));
    stdio::tell(&format!("{}\n", said.join(", ")));
}

fn object(looked: &Looked) -> Value {
    let list =
        |problems: &[convoke_runtime::Problem]| problems.iter().map(places::object).collect::<Vec<_>>();
    let (meta, problems, warnings) = match &looked.checked {
        Err(why) => {
            (None, vec![json!({"message": why, "line": null, "column": null, "text": null})], Vec::new())
        }
        Ok(Checked::Unsound { problems }) => (None, list(problems), Vec::new()),
        Ok(Checked::Sound { meta, warnings, slips }) => {
            (Some(meta_object(meta)), list(slips), list(warnings))
        }
    };
    json!({
        "file": looked.file,
        "sound": is_sound(looked),
        "meta": meta,
        "problems": problems,
        "warnings": warnings,
    })
}
