//! `convoke workflow run`: a workflow becomes a run. It finds the source, reads the arguments, at a terminal
//! has the person agree, and drives the run as `convoke run` does; no model is asked but by the agents that
//! the program starts.

use convoke_runtime::{DriveMode, source_digest};
use serde_json::{Value, json};

use super::chosen::Chosen;
use super::planned::{children, first_time, plan};
use super::{Lookup, agree, given};
use crate::again::Naming;
use crate::args::{AnswerArgs, EditArgs, ResumeArgs, WorkflowRunArgs, no_command};
use crate::catalog;
use crate::commands::banner::Banner;
use crate::commands::drive::{Job, drive, say};
use crate::commands::plan::past;
use crate::commands::run::{choose, unfinished};
use crate::commands::trust::Project;
use crate::commands::{ask, resume, trust};
use crate::confine;
use crate::estimate::seen_costs;
use crate::failure::{Exit, Failure};
use crate::gate;
use crate::keeping;
use crate::open;
use crate::paths;
use crate::render::{Asked, Look, Progress, clean};
use crate::settings::ModelSource;
use crate::stdio::tell;

/// Arguments of more characters than this stand in the text of a run by their digest.
const MOST_ARGS: usize = 600;

/// Runs a workflow.
pub(super) async fn run(lookup: &Lookup<'_>, args: WorkflowRunArgs) -> Result<Exit, Failure> {
    let settings = lookup.settings;
    let value = given::value(&args.given, &lookup.settings.dir)?;
    let look = Look::of(settings);
    if args.is_bare {
        is_known(lookup, &args.named).await?;
    }
    let Project { library, memory, for_this_session } = trust::project(settings, look, &settings.dir)?;
    let words =
        args.given.arg_text.iter().fold(clean(&args.named), |words, more| format!("{words} {}", clean(more)));
    let as_task = |failure: Failure| match args.is_bare {
        true => failure.hint(format!("if it is a task, write `convoke run {words}`")),
        false => failure,
    };
    let chosen = Chosen::find(lookup, &library, &args.named).await.map_err(as_task)?;
    if args.is_bare {
        let name = clean(&args.named);
        say(
            settings,
            &look.fit(&format!(
                "'{name}' is a workflow and is run as one; a task would be `convoke run {words}`"
            )),
        );
    }
    let text = text(&chosen, value.as_ref());
    let begun = if args.fresh { None } else { unfinished(settings, &text).await? };
    if let (true, Some(session)) = (args.take_up, &begun) {
        let session = Some(session.clone());
        let answers = AnswerArgs::default();
        let budget = args.settings.budget;
        let confine = args.settings.confine;
        let trust = args.settings.trust;
        return resume::run(
            settings,
            ResumeArgs {
                session,
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
    gate::check_program(&args.end, &chosen.meta.name, &chosen.source)?;
    let source = choose(settings, look)?;
    // Before anything is written or spent: what cannot be held is not begun.
    let held = confine::hold(settings, &settings.dir).await?;
    paths::check_writable(settings)?;
    let confinement = held.confinement.clone();
    // Nothing that stands in a program or its arguments is a person's consent to more than this run.
    let mut start = open::start(settings, &source, args.fresh, true, confinement.clone())?;
    start.approvals = settings.asking.approvals(look.is_interactive());
    open::give_project(&mut start, for_this_session, memory.as_ref());
    if let Some(fan_out) = &mut start.fan_out {
        fan_out.callees.turns = settings.callee_turns(false);
        fan_out.child.limits.max_turns = settings.verifier_turns(false);
    }
    open::check_prices(settings, &source, &start)?;
    let mut first = None;
    if look.is_interactive() {
        let before = catalog::open_existing(settings).await?;
        let (sessions, is_first) = past(settings, &source, before.as_ref()).await?;
        if is_first || !args.yes {
            let seen = seen_costs(&sessions);
            let plan = plan(settings, &source, library.clone(), &chosen, value.as_ref(), &seen).await?;
            first = is_first.then(|| first_time(settings, &chosen, &plan));
            if !args.yes {
                let children = children(settings, &library, &plan).await;
                agree::ask(settings, look, &chosen, &plan, children)?;
            }
        }
    }
    let kept = keeping::places_for(settings, &settings.dir).await;
    let journal = open::journal(settings).await?;
    let asker = ask::asker(look, settings, &start.approvals);
    let opened =
        open::runtime(settings, journal, &source, asker, held.confine, kept.clone().ok(), library).await?;
    let effort = start.capabilities.effort.clone();
    say(settings, &Banner::new(settings, &source, &start.model, effort.as_deref(), &confinement).lines(look));
    say(settings, &look.fit(&heading(&chosen)));
    if let Some(first) = first {
        say(settings, &look.fit(&first));
    }
    if args.take_up {
        say(settings, "no unfinished run of this workflow with these arguments here: it is begun");
    } else if let Some(command) = begun.and_then(|run| Naming::of(settings).resume(&run)) {
        let advice = format!(
            "there is an unfinished run of the same here: `{command}`, or --continue, goes on with it"
        );
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
    // The source itself and not its name or path: what was shown and agreed to is what runs, also if the file
    // changes meanwhile.
    let input = input(&chosen, value);
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
        take: DriveMode::New,
        progress,
        warnings,
        asked,
        tree: None,
        wanted: args.end,
    })
    .await
}

/// A single word on the command line is a workflow only if there is one of that name, trusted or not.
async fn is_known(lookup: &Lookup<'_>, word: &str) -> Result<(), Failure> {
    let known =
        !word.is_empty() && !super::is_file(word) && !matches!(lookup.library.find(word).await, Ok(None));
    if known {
        return Ok(());
    }
    let entries = lookup.library.list().await;
    Err(no_command(word, entries.iter().map(|entry| entry.name.as_str())))
}

/// The call's input.
pub(super) fn input(chosen: &Chosen, args: Option<Value>) -> Value {
    let mut input = json!({"script": chosen.source});
    if let Some(args) = args {
        input["args"] = args;
    }
    input
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
    clean(&format!("workflow {name} ({whose}, {}): {}", chosen.short(), chosen.meta.description))
        .replace('\n', " ")
}
