//! `convoke sessions watch`: shows what another process does in a session, from its beginning, read from
//! the journal. It takes no lease and disturbs no process; it ends when no process drives the session any
//! more, with the code the session came to.

use std::time::Duration;

use convoke_runtime::{Clock, Watcher};

use super::line;
use super::target::Target;
use crate::again::Naming;
use crate::args::{ControlArgs, OutputFormat};
use crate::catalog::State;
use crate::failure::{Exit, Failure};
use crate::feed::{self, Feed};
use crate::render::{Look, Screen};
use crate::report::{MENDED, ProgramReport};
use crate::settings::Settings;
use crate::stdio::{self, Reader};
use crate::work::Work;

/// How often the journal is looked into.
const LOOK: Duration = Duration::from_millis(300);

/// Watches a session.
pub(super) async fn run(settings: &Settings, args: &ControlArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Json {
        return Err(Failure::usage(
            "`convoke sessions watch` prints events as they happen, and JSON is one document",
        )
        .hint("use --output jsonl"));
    }
    let mut target = Target::find(settings, &args.session).await?;
    let lead = target.listed()?.lead().agent.clone();
    let mut feed = Feed::new(&target.journal, &target.session);
    let screen = match settings.output {
        OutputFormat::Text => {
            let look = Look::of(settings);
            let model = target.listed()?.lead().summary.model.clone();
            let terminal = settings.terminal.clone();
            Some(Screen::watching(look, terminal, Clock::system(), lead.clone(), &model))
        }
        OutputFormat::Json | OutputFormat::Jsonl => None,
    };
    let watcher = screen.as_ref().map(Screen::watcher);
    let mut said = String::new();
    let left = async {
        loop {
            // Looked at first: what is written before the last one leaves is still shown.
            let driven = target.is_driven(&lead).await?;
            if pass_on(&mut feed, watcher.as_ref()).await? == Reader::Gone {
                return Ok::<Exit, Failure>(Exit::Done);
            }
            if !driven {
                target.look(settings).await?;
                return came_to(settings, &target, &mut said).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let ended = tokio::select! {
        ended = left => ended,
        // The end of watching changes nothing in the session.
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    };
    if let Some(screen) = screen {
        screen.close().await;
    }
    if !settings.quiet {
        stdio::tell(&said);
    }
    ended
}

/// What the session came to, said in a line, and the code it would end with.
async fn came_to(settings: &Settings, target: &Target, said: &mut String) -> Result<Exit, Failure> {
    let listed = target.listed()?;
    let session = listed.session.as_str();
    let work = Work::of_listed(settings, &target.journal, listed, listed.updated_at()).await?;
    let naming = Naming::of(settings);
    let programs: Vec<ProgramReport> =
        work.programs.iter().filter_map(|program| ProgramReport::of(program, &naming, session)).collect();
    let own = listed.own_program().and_then(|own| programs.iter().find(|program| program.run == own.run));
    let exit = match listed.state() {
        State::Ended(end) => Exit::of(end),
        State::Open if programs.iter().any(|program| program.waiting_step().is_some()) => Exit::Budget,
        State::Open | State::Waiting | State::Running => Exit::NeedsPerson,
    };
    let words = match listed.state() {
        State::Open if listed.words() == State::Open.word() => {
            "left unfinished, and no process drives it".to_owned()
        }
        _ => listed.words(),
    };
    said.push_str(&format!("{session}: {words}\n"));
    if let Some(command) = listed.way_on(&naming).or_else(|| naming.resume(session)) {
        let (what, flags) = match exit {
            Exit::Done => ("its answer", ""),
            Exit::Failed if own.is_some_and(ProgramReport::wants_mending) => {
                ("mend the script, then", MENDED)
            }
            _ => ("resume", ""),
        };
        said.push_str(&format!("{what}: {command}{flags}\n"));
    }
    Ok(exit)
}

/// Passes on what is new: to a screen, or as lines to stdout.
async fn pass_on(feed: &mut Feed, watcher: Option<&Watcher>) -> Result<Reader, Failure> {
    let records = feed.read().await?;
    let Some(watcher) = watcher else {
        return stdio::put_json(&records.iter().map(line).collect::<String>());
    };
    let ledger = feed.ledger().await?;
    // A screen that is gone shows nothing, and an event of a newer version has no picture.
    for notice in records.iter().filter_map(feed::notice).chain(ledger) {
        let _ = watcher.send(notice);
    }
    Ok(Reader::There)
}
