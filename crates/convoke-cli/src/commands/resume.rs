//! `convoke resume`: goes on with a session that was cut off, stopped or failed, and repeats the answer of
//! one that has ended. It finds the session, says which one it is and what changed meanwhile, and drives its
//! lead.

mod pick;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use convoke_claude::OFFLINE_MODEL;
use convoke_journal::{Journal, Process};
use convoke_kernel::{AgentSpec, Decision, Lost, Rule, Status};
use convoke_runtime::{Clock, Controller, DriveMode, DriveOutcome, Ids, Runtime, changed_since};

use self::pick::pick;
use super::banner::Banner;
use super::drive::{Job, drive, say};
use super::lost::{News, Retry, plan};
use super::workflow::{Edited, edited};
use super::{ask, team, trust};
use crate::again::Naming;
use crate::args::{EndArgs, ResumeArgs};
use crate::catalog::{self, Catalog, ListedSession};
use crate::checkpoints::{self, OpenCall, Said};
use crate::confine;
use crate::failure::{Exit, Failure};
use crate::gate;
use crate::keeping::{self, Checkout, LeadTree, Left};
use crate::lead::{ASKED_AGAIN, Lead};
use crate::open;
use crate::questions::{self, Answered};
use crate::render::{Asked, End, Look, Progress, Report, clean, dollars, first_line, revealed};
use crate::settings::{Caps, ModelSource, Settings, caps_words};
use crate::stdio::tell;
use crate::work::Work;

/// Goes on with a session.
pub(crate) async fn run(settings: &Settings, mut args: ResumeArgs) -> Result<Exit, Failure> {
    if let Some(flag) = args.edit.astray() {
        let hint =
            "a workflow goes on with the arguments it was begun with; `--script FILE` runs an edited one";
        return Err(Failure::usage(format!("{flag} has no meaning without --script")).hint(hint));
    }
    let journal = catalog::open_existing(settings).await?;
    let catalog = Catalog::load(settings, journal.as_ref()).await?;
    let here = Process::current(Ids::random().bits()?);
    let left = match (&journal, &args.session) {
        (Some(journal), Some(id)) => team::left(journal, catalog.find(id).into_iter()).await?,
        (Some(journal), None) => {
            team::left(
                journal,
                catalog
                    .sessions
                    .iter()
                    .filter(|listed| Checkout::of_listed(settings, listed) == settings.dir),
            )
            .await?
        }
        (None, _) => HashMap::new(),
    };
    // Whether there is room for what had none.
    let more = args.budget.is_given() || args.forgive;
    let listed = pick(settings, &catalog, args.session.as_deref(), &left, &here, more)?;
    let journal = journal.ok_or_else(|| Failure::failed("the journal has gone"))?;
    let left = left.get(&listed.session);
    let lead = listed.lead();
    if args.forgive {
        forgive(settings, &journal, listed).await?;
    }
    // The session may work in another directory than this one, and its commands may have put links there.
    args.end.check(Path::new(""), &Checkout::of_listed(settings, listed))?;
    // What is answered must be a question of this session; nothing is driven otherwise.
    let answers = match args.answers.is_given() {
        true => questions::answers(&journal, listed, &args.answers).await?,
        false => Vec::new(),
    };
    let replies = checkpoints::replies(settings, &journal, &listed.session, &args.answers).await?;
    let earlier = match &args.edit.script {
        Some(_) => Some(edited::earlier(&journal, listed).await?),
        None => None,
    };
    let told = Lead::read(&journal, &lead.agent).await?;
    // With a larger budget the harness takes up what the smaller one left out. A lead that handed back is
    // told of it and answers anew: gone on with, it would be told to go on and that everything is done.
    let summary = &lead.summary;
    let goes_on_itself =
        summary.can_go_on && (summary.status == Status::Open || listed.own_program().is_some());
    let taken_up =
        more && earlier.is_none() && !goes_on_itself && listed.losses.lost.iter().any(Lost::is_short);
    let can_go_on = summary.can_go_on && !taken_up;
    // Of a fan-out that was refused whole nothing was begun: the lead that wanted it is asked anew, unless it
    // goes on by itself.
    let again =
        args.budget.is_given() && earlier.is_none() && !taken_up && listed.losses.is_short() && !can_go_on;
    let goes_on = can_go_on || left.is_some();
    let idle = !goes_on && !again && args.answers.say.is_none() && earlier.is_none();
    let most =
        told.spec.as_ref().and_then(|spec| spec.fan_out.as_ref()).map_or(0, |fan_out| fan_out.max_subtasks);
    let news = News::of(&journal, &lead.agent, &told).await?.is_some();
    let retries = match idle && !news {
        true => Retry::of(&journal, &listed.losses, most, taken_up).await?,
        false => Vec::new(),
    };
    if idle && !news && retries.is_empty() {
        if lead.summary.forked_from.is_some() && told.exchanges.is_empty() {
            let what = format!("{} is a fork in which nothing has been said yet", listed.session);
            let hint = format!(
                "say it: convoke resume {} --say TEXT, or in a terminal: convoke session {0}",
                listed.session
            );
            return Err(Failure::usage(what).hint(hint));
        }
        if args.budget.is_given() {
            say(settings, "nothing is left to spend on, so no new total is granted");
        }
        return repeat(settings, &journal, listed, told, args.end).await;
    }
    let fan_out = told.spec.as_ref().and_then(|spec| spec.fan_out.as_deref());
    if listed.own_program().is_none() {
        gate::check_voters(&args.end, fan_out.map_or(0, |chosen| chosen.voters))?;
    }
    let source = source(settings, listed)?;
    // Before anything looks at the directory: it may have been taken away when its content was stored.
    let tree = LeadTree::again(settings, Path::new(&summary.dir)).await?;
    let since = last_event(listed, &told);
    let changed = match earlier {
        // An edited script begins a new pass: no agent goes on in the middle of a conversation and has to be
        // told.
        Some(_) => Vec::new(),
        None => {
            let dir = Path::new(&summary.dir);
            changed_since(&confine::sight(settings, dir), dir, since).await
        }
    };
    let look = Look::of(settings);
    let dir = Path::new(&summary.dir);
    let recorded = told.spec.as_ref().map(|spec| spec.confinement.clone()).unwrap_or_default();
    let held = confine::hold_again(settings, dir, &recorded).await?;
    let confinement = held.confinement;
    let kept = keeping::places_for(settings, dir).await;
    let rules = told.spec.as_ref().map(|spec| spec.approvals.clone()).unwrap_or_default();
    let library = trust::library_of(settings, look, &Checkout::of_listed(settings, listed), &told)?;
    let edited = match &earlier {
        Some(earlier) => Some(Edited::read(settings, look, &source, &library, earlier, &args.edit).await?),
        None => None,
    };
    let asker = ask::asker(look, settings, &rules);
    let opened =
        open::runtime(settings, journal, &source, asker, held.confine, kept.clone().ok(), library).await?;
    let caps = opened.runtime.ledger(&listed.session).await?.caps();
    let granted = args.budget.grant(caps);
    if granted != caps {
        check_prices(settings, told.spec.as_ref(), granted)?;
        opened.runtime.grant(&listed.session, granted, "resume").await?;
    }
    let effort = summary.effort.as_deref();
    let worker =
        fan_out.map(|chosen| (chosen.child.model.as_str(), chosen.child.capabilities.effort.as_deref()));
    let banner = Banner {
        worker: worker.filter(|worker| *worker != (summary.model.as_str(), effort)),
        mode: told.mode,
        consent: fan_out.is_some_and(|chosen| chosen.consent),
        caps: Some(granted),
        // What it was begun with stays.
        project: None,
        dir,
        ..Banner::new(settings, &source, &summary.model, effort, &confinement)
    };
    say(settings, &banner.lines(look));
    if let Some(tree) = &tree {
        say(settings, &look.fit(&clean(&tree.line())));
    }
    if granted != caps {
        say(
            settings,
            &look.fit(&format!("granted in all: {} (before: {})", caps_words(&granted), caps_words(&caps))),
        );
    }
    let turns = summary.turns;
    let task = first_line(&summary.task, 100);
    let state = listed.state().words();
    say(
        settings,
        &look.fit(&format!("resuming {} ({state}, turns so far: {turns}): {task}", listed.session)),
    );
    if let Some(left) = left {
        say(settings, &look.fit(&clean(&format!("its lead had ended, but its team has not: {left}"))));
    }
    if !changed.is_empty() {
        let ago = opened.clock.now().saturating_sub(since);
        say(settings, &look.fit(&clean(&changed_line(&changed, ago, listed.own_program().is_none()))));
    }
    let mut warnings: Vec<String> = match (&kept, &source) {
        (Err(why), ModelSource::Api { .. }) if recorded.sandbox.writes() => {
            vec![keeping::cannot_take_back(why)]
        }
        _ => Vec::new(),
    };
    warnings.extend(newer_questions(&settings.asking.rules, &rules.rules));
    for warning in &warnings {
        tell(&look.fit(&format!("warning: {}\n", clean(warning))));
    }
    answer(settings, look, &opened.runtime, &answers).await?;
    reply(settings, look, &opened.runtime, replies).await?;
    let agent = lead.agent.clone();
    let progress = Progress::from_summary(summary);
    // An agent that was never driven simply begins: the runtime sees that there is nothing to go on from.
    let asked = Asked { caps: granted, confinement: Some(confinement), ..asked(settings, listed) };
    let open = summary.status == Status::Open;
    let take =
        if can_go_on && (edited.is_none() || open) { DriveMode::Resume { changed } } else { DriveMode::New };
    if let (true, true, Some(task)) = (again, granted != caps, told.exchanges.first()) {
        // The lead is asked anew: what is done is remembered, and what was left out is done now.
        let key = format!("{ASKED_AGAIN}{}", opened.clock.now());
        opened.runtime.say(&agent, &key, &task.text).await?;
        say(
            settings,
            "what the budget had left out is taken up: the task is asked again, and equal results are reused",
        );
    }
    // A total that is what it was buys nothing of it.
    let retries = if taken_up && granted == caps && !args.forgive { Vec::new() } else { retries };
    if !retries.is_empty() {
        say(settings, &look.fit(&plan(listed, taken_up)));
    }
    for (at, retry) in retries.iter().enumerate() {
        retry.make(&opened.runtime, &agent, opened.clock.now(), at).await?;
    }
    if let Some(Edited { heading, text, input }) = &edited {
        opened.runtime.call(&agent, &format!("script-{}", opened.clock.now()), text, input).await?;
        say(settings, &look.fit(&format!("{heading}; what is done and unchanged is served")));
    }
    if let Some(text) = &args.answers.say {
        opened.runtime.say(&agent, &format!("say-{}", opened.clock.now()), text).await?;
    }
    drive(Job { settings, look, opened, agent, take, progress, warnings, asked, tree, wanted: args.end })
        .await
}

/// The person writes off the unconfirmed part of the session's requests.
async fn forgive(settings: &Settings, journal: &Journal, listed: &ListedSession) -> Result<(), Failure> {
    let controller = Controller::new(journal.clone(), Clock::system());
    let forgiven = controller.forgive(&listed.session, "the person (resume --forgive)").await?;
    say(
        settings,
        &match forgiven.nano {
            0 => "nothing is unconfirmed, so nothing is written off".to_owned(),
            nano => {
                let most = dollars(Some(nano));
                format!("written off: up to {most} unconfirmed; the bill may be above the cap by as much")
            }
        },
    );
    Ok(())
}

/// Rules that ask and that the session was not begun with, in one warning: a session keeps the rules by which
/// it asks, and only what is forbidden now is forbidden at once.
fn newer_questions(now: &[Rule], begun: &[Rule]) -> Option<String> {
    let newer = now.iter().filter(|rule| rule.decision == Decision::Ask && !begun.contains(rule)).count();
    (newer > 0).then(|| {
        format!(
            "not in force for this session: {newer} of your rules that ask, because it was begun without them; \
             what must not happen needs decision = \"deny\", which holds at once"
        )
    })
}

/// Writes down what the person says to the agents' questions; each of them hears it when it is driven.
async fn answer(
    settings: &Settings,
    look: Look,
    runtime: &Runtime,
    answers: &[Answered],
) -> Result<(), Failure> {
    for (question, allow) in answers {
        let by = if *allow { "the person (resume --allow)" } else { "the person (resume --deny)" };
        runtime.answer(&question.agent, &question.call, *allow, by).await?;
        let word = if *allow { "allowed" } else { "refused" };
        let line = format!("{word}: {}: {}", question.who(), first_line(&revealed(&question.wanted), 100));
        say(settings, &look.fit(&line));
    }
    Ok(())
}

/// Writes down what the person says to calls of programs; each program hears it when it is driven.
async fn reply(
    settings: &Settings,
    look: Look,
    runtime: &Runtime,
    replies: Vec<(OpenCall, Said)>,
) -> Result<(), Failure> {
    for (call, said) in replies {
        let word = match said {
            Said::Text(text) => {
                runtime.answer_checkpoint(&call.run, call.call, &text).await?;
                "answered"
            }
            Said::Skip => {
                runtime.skip_call(&call.run, call.call).await?;
                "skipped"
            }
        };
        say(settings, &look.fit(&format!("{word}: {}: {}", call.id, first_line(&revealed(&call.text), 100))));
    }
    Ok(())
}

/// A cap in dollars can be held only if the session knows what its models cost; that was written down when it
/// began.
fn check_prices(settings: &Settings, spec: Option<&AgentSpec>, granted: Caps) -> Result<(), Failure> {
    let Some(spec) = spec.filter(|_| granted.nano.is_some()) else { return Ok(()) };
    let child = spec.fan_out.as_ref().map(|fan_out| (&fan_out.child.model, &fan_out.child.rates));
    let unpriced =
        [Some((&spec.model, &spec.rates)), child].into_iter().flatten().find(|(_, rates)| rates.is_none());
    let Some((model, _)) = unpriced else { return Ok(()) };
    settings.check_prices(&[model])?;
    let message = format!(
        "the price of `{model}` was not known when this session began, so it cannot hold a cap in dollars"
    );
    Err(Failure::usage(message).hint(
        "leave --budget-usd out (--budget-tokens holds), or begin the task anew: what is done is taken up",
    ))
}

/// What the listing knows of what was asked for.
fn asked(settings: &Settings, listed: &ListedSession) -> Asked {
    let summary = &listed.lead().summary;
    let dir = Checkout::of_listed(settings, listed).to_string_lossy().into_owned();
    let task = summary.task.clone();
    let effort = summary.effort.clone();
    Asked { task, dir, effort, ..Asked::default() }
}

/// Prints the report of a session that had ended once more: the earlier process may have been cut off before
/// it did.
async fn repeat(
    settings: &Settings,
    journal: &Journal,
    listed: &ListedSession,
    told: Lead,
    wanted: EndArgs,
) -> Result<Exit, Failure> {
    say(
        settings,
        &format!("{} had ended ({}); this is what it came to", listed.session, listed.state().words()),
    );
    let end = ended(settings, journal, listed, told).await?;
    Report::new(End { wanted, ..end }).print(Look::of(settings))
}

/// What a session that has ended came to, read from the journal alone.
pub(super) async fn ended(
    settings: &Settings,
    journal: &Journal,
    listed: &ListedSession,
    told: Lead,
) -> Result<End, Failure> {
    let lead = listed.lead();
    let exchanges = told.exchanges;
    let work = Work::of_listed(settings, journal, listed, listed.updated_at()).await?;
    let held = told.spec.as_ref().map(|spec| &spec.confinement);
    let left = Left::of(settings, &lead.agent, Path::new(&lead.summary.dir), held).await;
    let closed = exchanges.iter().rev().find_map(|exchange| exchange.outcome.clone());
    Ok(End {
        agent: lead.agent.clone(),
        result: Ok(DriveOutcome {
            outcome: closed,
            summary: Some(lead.summary.clone()),
            ..DriveOutcome::default()
        }),
        caught: None,
        progress: Progress::from_summary(&lead.summary),
        ended_at: listed.updated_at(),
        warnings: left.warnings.clone(),
        journal: Naming::of(settings),
        asked: Asked { confinement: told.spec.map(|spec| spec.confinement), ..asked(settings, listed) },
        exchanges,
        work,
        questions: Vec::new(),
        left,
        wanted: EndArgs::default(),
    })
}

/// The source of its answers: an offline session stays offline, any other one needs a server.
pub(super) fn source(settings: &Settings, listed: &ListedSession) -> Result<ModelSource, Failure> {
    let session = &listed.session;
    let model = &listed.lead().summary.model;
    match &settings.source {
        _ if model == OFFLINE_MODEL => Ok(ModelSource::Offline),
        ModelSource::Api { .. } => Ok(settings.source.clone()),
        ModelSource::Offline => Err(Failure::usage(format!(
            "{session} was begun with {model} and cannot go on with the offline \
                model"
        ))),
        ModelSource::Nothing => Err(Failure::usage(format!(
            "{session} was begun with {model}, and there is no API key, no token and no base URL to go on \
                with"
        ))
        .hint("set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or ANTHROPIC_BASE_URL for another server")),
    }
}

/// When anything last happened in a session. What the listing says of a stream moves when something is only
/// taken note of there, and then it says nothing about time.
fn last_event(listed: &ListedSession, told: &Lead) -> u64 {
    let programs = listed.programs.iter().map(|program| program.closed_at.unwrap_or(program.started_at));
    programs.chain([listed.updated_at(), told.last_at]).max().unwrap_or_default()
}

/// The line about files that changed meanwhile. It says that the agent is told, where there is one that
/// leads.
fn changed_line(changed: &[String], ago: u64, leads: bool) -> String {
    const NAMED: usize = 8;
    let names = changed.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let minutes = Duration::from_millis(ago).as_secs() / 60;
    let since = if minutes == 0 { "meanwhile".to_owned() } else { format!("in the last {minutes} min") };
    let told = if leads { " (the agent is told)" } else { "" };
    format!("changed {since}: {names}{more}{told}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_named_up_to_a_point() {
        let names: Vec<String> = (0..10).map(|n| format!("f{n}")).collect();
        assert_eq!(changed_line(&names[..2], 0, true), "changed meanwhile: f0, f1 (the agent is told)");
        assert_eq!(changed_line(&names[..1], 0, false), "changed meanwhile: f0");
        let many = changed_line(&names, 120_000, true);
        assert_eq!(
            many,
            "changed in the last 2 min: f0, f1, f2, f3, f4, f5, f6, f7 and 2 more (the agent is told)"
        );
    }
}
