//! `convoke workflow run`: a workflow becomes a run. It finds the source, reads the arguments, has a person agree where one sits, and
//! drives the run as `convoke run` does; no model is asked but by the agents that the program starts.

use convoke_runtime::{Take, source_digest};
use serde_json::{Value, json};

use super::chosen::Chosen;
use super::planned::{children, plan};
use super::{Desk, agree, given};
use crate::again::Naming;
use crate::args::{AnswerArgs, EditArgs, ResumeArgs, WorkflowRunArgs, no_command};
use crate::commands::banner::Banner;
use crate::commands::drive::{Job, drive, say};
use crate::commands::run::{choose, unfinished};
use crate::commands::{ask, resume, trust};
use crate::confine;
use crate::failure::{Exit, Failure};
use crate::keeping;
use crate::open;
use crate::paths;
use crate::render::{Asked, Look, Progress, clean};
use crate::settings::ModelSource;
use crate::stdio::tell;

/// Arguments of more characters than this stand in the text of a run by their digest.
const MOST_ARGS: usize = 600;

/// Runs a workflow.
pub(super) async fn run(desk: &Desk<'_>, args: WorkflowRunArgs) -> Result<Exit, Failure> {
    let settings = desk.settings;
    let value = given::value(&args.given, &desk.settings.dir)?;
    let look = Look::of(settings);
    if args.is_bare {
        is_known(desk, &args.named).await?;
    }
    let library = trust::library(settings, look, &settings.dir)?;
    let chosen = Chosen::find(desk, &library, &args.named).await?;
    if args.is_bare {
        let name = clean(&args.named);
        say(
            settings,
            &look.fit(&format!("'{name}' is a workflow and is run as one; a task would be `convoke run {name}`")),
        );
    }
    let text = text(&chosen, value.as_ref());
    let begun = if args.fresh { None } else { unfinished(settings, &text).await? };
    if let (true, Some(run)) = (args.take_up, &begun) {
        let (run, answers) = (Some(run.clone()), AnswerArgs::default());
        let (budget, confine, trust) = (args.settings.budget, args.settings.confine, args.settings.trust);
        return resume::run(
            settings,
            ResumeArgs {
                run,
                forgive: false,
                answers,
                edit: EditArgs::default(),
                budget,
                confine,
                trust,
                end: args.end,
            },
        )
        .await;
    }
    let source = choose(settings, look)?;
    // Before anything is written or spent: what cannot be held is not begun.
    let held = confine::hold(settings, &settings.dir).await?;
    paths::check_writable(settings)?;
    let confinement = held.confinement.clone();
    // Nothing that stands in a program or its arguments is a person's consent to more than this run.
    let mut start = open::start(settings, &source, args.fresh, true, confinement.clone())?;
    start.approvals = settings.asking.approvals(look.is_interactive());
    open::check_prices(settings, &source, &start)?;
    if look.is_interactive() && !args.yes {
        let plan = plan(settings, &source, library.clone(), &chosen, value.as_ref()).await?;
        let children = children(settings, &library, &plan).await;
        agree::ask(settings, look, &chosen, &plan, children)?;
    }
    let kept = keeping::places_for(settings, &settings.dir).await;
    let journal = open::journal(settings).await?;
    let asker = ask::asker(look, settings, &start.approvals);
    let opened = open::runtime(settings, journal, &source, asker, held.confine, kept.clone().ok(), library).await?;
    let effort = start.capabilities.effort.clone();
    say(settings, &Banner::new(settings, &source, &start.model, effort.as_deref(), &confinement).lines(look));
    say(settings, &look.fit(&heading(&chosen)));
    if args.take_up {
        say(settings, "no unfinished run of this workflow with these arguments here: it is begun");
    } else if let Some(command) = begun.and_then(|run| Naming::of(settings).resume(&run)) {
        let advice =
            format!("there is an unfinished run of the same here: `{command}`, or --continue, goes on with it");
        say(settings, &look.fit(&advice));
    }
    let mut warnings = open::assumptions(settings, &source);
    if let (Err(why), true, ModelSource::Api { .. }) = (&kept, confinement.sandbox.writes(), &source) {
        warnings.push(keeping::cannot_take_back(why));
    }
    for warning in &warnings {
        tell(&look.fit(&format!("warning: {}\n", clean(warning))));
    }
    let progress = Progress::new(&start.model);
    // The source itself and not its name or path: what was shown and agreed to is what runs, also if the file changes meanwhile.
    let mut input = json!({"script": chosen.source});
    if let Some(value) = value {
        input["args"] = value;
    }
    let agent = opened.runtime.start_call(start, &text, &input).await?;
    let asked = Asked {
        task: text,
        dir: settings.dir.to_string_lossy().into_owned(),
        effort,
        mode: Some(settings.fan_out.mode),
        caps: settings.caps,
        confinement: Some(confinement),
    };
    drive(Job {
        settings,
        look,
        opened,
        agent,
        take: Take::New,
        progress,
        warnings,
        asked,
        tree: None,
        wanted: args.end,
    })
    .await
}

/// A single word on the command line is a workflow only if there is one of that name, trusted or not.
async fn is_known(desk: &Desk<'_>, word: &str) -> Result<(), Failure> {
    let known = !word.is_empty() && !super::is_file(word) && !matches!(desk.library.find(word).await, Ok(None));
    if known {
        return Ok(());
    }
    let entries = desk.library.list().await;
    Err(no_command(word, entries.iter().map(|entry| entry.name.as_str())))
}

/// How people read the call; two calls are the same if this is.
pub(super) fn text(chosen: &Chosen, args: Option<&Value>) -> String {
    let given = match args.map(Value::to_string) {
        None => String::new(),
        Some(text) if text.chars().count() <= MOST_ARGS => format!(" {text}"),
        Some(text) => {
            let digest = source_digest(&text);
            format!(" (args of {} bytes, {})", text.len(), super::short(&digest))
        }
    };
    format!("workflow {}{given} (script {})", chosen.meta.name, chosen.short())
}

pub(super) fn heading(chosen: &Chosen) -> String {
    let whose = match (chosen.origin, &chosen.path) {
        (Some(origin), _) => origin.word().to_owned(),
        (None, path) => path.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
    };
    let name = &chosen.meta.name;
    clean(&format!("workflow {name} ({whose}, {}): {}", chosen.short(), chosen.meta.description)).replace('\n', " ")
}
