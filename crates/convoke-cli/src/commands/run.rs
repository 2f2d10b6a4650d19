//! `convoke run`: a task becomes a session. It reads the task, says what will be asked and where, and drives
//! the agent.

use std::path::Path;

use convoke_kernel::worktree_note;
use convoke_runtime::{DriveMode, Quote, Runtime, Start};

use super::banner::Banner;
use super::drive::{Job, drive, say};
use super::{ask, resume, team, trust};
use crate::again::Naming;
use crate::args::{AnswerArgs, EditArgs, IsolationFlag, ResumeArgs, RunArgs, SessionFlags, Switch};
use crate::catalog::{self, Catalog};
use crate::confine;
use crate::failure::{Exit, Failure};
use crate::gate;
use crate::keeping::{self, Checkout, LeadTree};
use crate::lead::{FOLLOWS, Lead};
use crate::named::read_text;
use crate::open;
use crate::paths;
use crate::render::{Asked, Look, Progress, clean};
use crate::settings::{ModelSource, Settings, caps_words};
use crate::stdio::{self, tell};

/// The task when none is given.
const DEFAULT_TASK: &str = "Review this directory: its purpose, its structure and its quality. Report the \
    faults, unhandled errors, untested code, oversized parts and unfinished work, the most serious first, \
    each with file, line and how you know. This is a review: leave every file as it is. End with a list of \
    the parts that were left out";

/// Runs a task.
pub(crate) async fn run(settings: &Settings, args: RunArgs) -> Result<Exit, Failure> {
    let task = task(&args.task, &settings.dir)?;
    let SessionFlags { settings: given, task: flags, end: wanted } = args.flags;
    let look = Look::of(settings);
    if !flags.fresh {
        team::check_addressed(settings, &task).await?;
    }
    let unfinished = if flags.fresh { None } else { unfinished(settings, &task).await? };
    if let (true, Some(session)) = (flags.take_up, &unfinished) {
        let session = Some(session.clone());
        let answers = AnswerArgs::default();
        let budget = given.budget;
        let confine = given.confine;
        let trust = given.trust;
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
                end: wanted,
            },
        )
        .await;
    }
    let said = if is_quoted(&args.task) { "" } else { &task };
    gate::check_task(&wanted, &settings.fan_out, &flags, said, look.is_interactive())?;
    let source = choose(settings, look)?;
    // Before anything is written or spent: what cannot be held is not begun.
    let held = confine::hold(settings, &settings.dir).await?;
    paths::check_writable(settings)?;
    let project = trust::project(settings, look, &settings.dir)?;
    let confinement = held.confinement.clone();
    let mut start = open::start(settings, &source, flags.fresh, is_quoted(&args.task), confinement.clone())?;
    start.approvals = settings.asking.approvals(look.is_interactive());
    open::give_project(&mut start, project.for_this_session, project.memory.as_ref());
    open::give_team(settings, &mut start, project.memory);
    open::check_prices(settings, &source, &start)?;
    let kept = keeping::places_for(settings, &settings.dir).await;
    let journal = open::journal(settings).await?;
    let opened = open::runtime(
        settings,
        journal,
        &source,
        ask::asker(look, settings, &start.approvals),
        held.confine,
        kept.clone().ok(),
        project.library,
    )
    .await?;
    let effort = start.capabilities.effort.clone();
    say(settings, &Banner::new(settings, &source, &start.model, effort.as_deref(), &confinement).lines(look));
    if look.is_interactive()
        && let Some(line) = super::plan::first_time(settings, &source, &opened.journal).await?
    {
        say(settings, &look.fit(&line));
    }
    if let Some(line) = buys(&opened.runtime, &start, &task)? {
        say(settings, &look.fit(&line));
    }
    if flags.take_up {
        say(settings, "no unfinished session of this task here: it is begun");
    } else if let Some(command) = unfinished.and_then(|run| Naming::of(settings).resume(&run)) {
        let advice = format!(
            "there is an unfinished session of this task here: `{command}`, or --continue, goes on with it"
        );
        say(settings, &look.fit(&advice));
    }
    let mut warnings = open::assumptions(settings, &source);
    let mut tree = match flags.isolation {
        Some(IsolationFlag::Worktree) => Some(LeadTree::make(settings).await?),
        Some(IsolationFlag::None) | None => None,
    };
    if let Some(tree) = &tree {
        start.dir = tree.dir();
        let said = worktree_note(&confinement).into_iter().chain(start.system.take()).collect::<Vec<_>>();
        start.system = (!said.is_empty()).then(|| said.join("\n\n"));
        warnings.extend(tree.remarks().iter().cloned());
        say(settings, &look.fit(&clean(&tree.line())));
    }
    // The offline model overwrites nothing, and neither does a session that may not write.
    if let (Err(why), true, ModelSource::Api { .. }) = (&kept, confinement.sandbox.writes(), &source) {
        warnings.push(keeping::cannot_take_back(why));
    }
    for warning in &warnings {
        tell(&look.fit(&format!("warning: {}\n", clean(warning))));
    }
    let progress = Progress::new(&start.model);
    // Before anything is written: what is said later has to fit as well as the task.
    for text in std::iter::once(&task).chain(&flags.follow_up) {
        if let Err(error) = opened.runtime.check_text(&start, text) {
            if let Some(made) = tree {
                made.give_up(settings).await;
            }
            return Err(error.into());
        }
    }
    let agent = match (opened.runtime.start(start, &task).await, tree.take()) {
        (Ok(agent), made) => {
            tree = made;
            agent
        }
        (Err(error), made) => {
            if let Some(made) = made {
                made.give_up(settings).await;
            }
            return Err(error.into());
        }
    };
    // Written down before anything begins, so that they are asked after a crash too.
    if let Some(mode) = flags.follow_up_mode {
        opened.runtime.set_mode(&agent, "follow-up-mode", mode == Switch::On).await?;
    }
    for (number, text) in flags.follow_up.iter().enumerate() {
        opened.runtime.say(&agent, &format!("{FOLLOWS}{}", number + 1), text).await?;
    }
    let asked = Asked {
        task,
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
        tree,
        wanted,
    })
    .await
}

/// The newest unfinished session of the same task in this directory that no process works on.
pub(super) async fn unfinished(settings: &Settings, task: &str) -> Result<Option<String>, Failure> {
    let Some(journal) = catalog::open_existing(settings).await? else { return Ok(None) };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    for listed in &catalog.sessions {
        let lead = listed.lead();
        let summary = &listed.lead().summary;
        let here = Checkout::of_listed(settings, listed) == settings.dir
            && summary.can_go_on
            && lead.owner.is_none();
        // The listing has only the beginning of a task.
        if here && task.trim().starts_with(summary.task.trim_end_matches('…').trim()) {
            let said = Lead::read(&journal, &lead.agent).await?.exchanges;
            let full = said.first().map_or(summary.task.as_str(), |exchange| exchange.text.as_str());
            if full.trim() == task.trim() {
                return Ok(Some(listed.session.to_string()));
            }
        }
    }
    Ok(None)
}

/// The source of answers. Unasked, the offline model answers only where a person reads that it does.
pub(super) fn choose(settings: &Settings, look: Look) -> Result<ModelSource, Failure> {
    match &settings.source {
        ModelSource::Nothing if look.is_interactive() => {
            let why = "no ANTHROPIC_API_KEY: the built-in offline model answers, by rules and without any \
                intelligence";
            tell(&look.fit(&format!("{why} (say --offline to choose it)\n")));
            Ok(ModelSource::Offline)
        }
        ModelSource::Nothing => Err(open::nobody_answers()),
        source => Ok(source.clone()),
    }
}

/// Whether the task is read from stdin or a file: what stands there may be a stranger's words.
fn is_quoted(words: &[String]) -> bool {
    matches!(words, [word] if word == "-" || word.starts_with('@'))
}

/// The task: words, `-` for stdin, `@FILE` for a file.
fn task(words: &[String], tree: &Path) -> Result<String, Failure> {
    let task = match words {
        [] => DEFAULT_TASK.to_owned(),
        [word] if word == "-" => {
            let read = stdio::read_all();
            read.map_err(|error| Failure::usage(format!("the task cannot be read from stdin: {error}")))?
        }
        [word] if word.starts_with('@') => from_file(Path::new(&word[1..]), tree)?,
        words => words.join(" "),
    };
    if task.trim().is_empty() {
        return Err(Failure::usage("the task is empty")
            .hint("say what is to be done, or leave it out to have the directory reviewed"));
    }
    Ok(task)
}

fn from_file(path: &Path, tree: &Path) -> Result<String, Failure> {
    read_text(path, tree).map_err(|error| {
        Failure::usage(format!("the task file {} cannot be read: {error}", path.display()))
            .hint("a task that begins with @ names a file; put something before the @ to say it as it is")
    })
}

/// So many workers and more are enough for any task: nothing is said about them.
const MANY: u64 = 50;

/// What the caps can buy, where that is little. Caps under which the lead cannot even answer are refused,
/// before anything is spent.
fn buys(runtime: &Runtime, start: &Start, task: &str) -> Result<Option<String>, Failure> {
    let caps = caps_words(&start.caps);
    match runtime.quote(start, task)? {
        Quote::Nothing(short) => {
            Err(Failure::usage(format!("the budget is too small for the lead to answer: {short}"))
                .hint("no model was asked and nothing was spent"))
        }
        Quote::Lead { workers: Some(workers) } if workers < MANY && start.fan_out.is_some() => {
            Ok(Some(match workers {
                0 => format!("{caps} buys the lead and hardly a worker"),
                1 => format!("{caps} buys the lead and about 1 worker"),
                _ => format!("{caps} buys the lead and about {workers} workers"),
            }))
        }
        Quote::Lead { .. } => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Result<String, Failure> {
        task(&text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), Path::new("/"))
    }

    #[test]
    fn a_task_is_words_a_file_or_the_review() {
        assert_eq!(words(&["look", "around"]).unwrap(), "look around");
        assert_eq!(words(&[]).unwrap(), DEFAULT_TASK);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("task.md");
        std::fs::write(&file, "from a file").unwrap();
        assert_eq!(words(&[&format!("@{}", file.display())]).unwrap(), "from a file");
    }

    #[test]
    fn a_task_that_says_nothing_is_wrong_usage() {
        assert_eq!(words(&["  "]).unwrap_err().code, Exit::Usage);
        let missing = words(&["@/nowhere/at/all.md"]).unwrap_err();
        assert_eq!(missing.code, Exit::Usage);
        assert!(missing.message.contains("/nowhere/at/all.md"), "{missing:?}");
    }
}
