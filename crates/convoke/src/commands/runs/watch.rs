//! `convoke runs watch`: shows what another process does in a session, from its beginning, read from the journal. It takes no
//! lease and disturbs nobody; it ends when nobody drives the session any more, with the code the session came to.

use std::collections::HashMap;
use std::time::Duration;

use convoke_journal::{Filter, Journal, Record, StreamId};
use convoke_kernel::{AgentId, Event, FailureKind, Ledger, ProgramEvent, RunEvent, RunId, SessionId};
use convoke_runtime::{Clock, Desk, Notice, TeamEvent, Watcher};
use serde::Deserialize;

use super::line;
use super::target::Target;
use crate::again::Naming;
use crate::args::{ControlArgs, OutputFormat};
use crate::catalog::State;
use crate::failure::{Exit, Failure};
use crate::render::{Look, Screen};
use crate::report::{MENDED, ProgramReport};
use crate::settings::Settings;
use crate::stdio::{self, Reader};
use crate::work::{Short, Work};

/// How often the journal is looked into.
const LOOK: Duration = Duration::from_millis(300);

/// Watches a run.
pub(super) async fn run(settings: &Settings, args: &ControlArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Json {
        return Err(Failure::usage("`convoke runs watch` prints events as they happen, and JSON is one document")
            .hint("use --output jsonl"));
    }
    let mut target = Target::find(settings, &args.run).await?;
    let lead = target.run()?.lead().agent.clone();
    let mut feed = Feed::new(&target);
    let screen = match settings.output {
        OutputFormat::Text => {
            let look = Look::detect(settings.output, settings.quiet);
            let model = target.run()?.lead().summary.model.clone();
            Some(Screen::watching(look, Clock::system(), lead.clone(), &model))
        }
        OutputFormat::Json | OutputFormat::Jsonl => None,
    };
    let watcher = screen.as_ref().map(Screen::watcher);
    let mut said = String::new();
    let left = async {
        loop {
            // Looked at first: what is written before the last one leaves is still shown.
            let driven = target.is_driven(&lead).await?;
            if feed.pass_on(watcher.as_ref()).await? == Reader::Gone {
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
        // Whoever stops watching changes nothing.
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
    let run = target.run()?;
    let session = run.session.as_str();
    let work = Work::of_run(settings, &target.journal, run, run.updated_at()).await?;
    let naming = Naming::of(settings);
    let programs: Vec<ProgramReport> =
        work.programs.iter().filter_map(|program| ProgramReport::of(program, &naming, session)).collect();
    let own = run.own_program().and_then(|own| programs.iter().find(|program| program.run == own.run));
    let exit = match run.state() {
        // It is unfinished, whatever its session says, and goes on when a person says so.
        State::Partial(_) | State::Failed(_) if own.is_some_and(|own| own.status == "stopped") => Exit::NeedsPerson,
        State::Done if work.short == Short::default() => Exit::Done,
        State::Done => Exit::Budget,
        State::Partial(_) | State::Failed(_) if own.is_some_and(|own| !own.shortages().is_empty()) => Exit::Budget,
        State::Open if programs.iter().any(|program| program.waiting_step().is_some()) => Exit::Budget,
        State::Partial(FailureKind::Budget) | State::Failed(FailureKind::Budget) => Exit::Budget,
        State::Partial(_) => Exit::Partial,
        State::Failed(_) => Exit::Failed,
        State::Open | State::Waiting | State::Running => Exit::NeedsPerson,
    };
    let words = match run.state() {
        State::Open if run.words() == State::Open.word() => "left unfinished, and nobody drives it".to_owned(),
        _ => run.words(),
    };
    said.push_str(&format!("{session}: {words}\n"));
    if let Some(command) = naming.resume(session) {
        let (what, flags) = match exit {
            Exit::Done => ("its answer", ""),
            Exit::Failed if own.is_some_and(ProgramReport::wants_mending) => ("mend the script, then", MENDED),
            _ => ("resume", ""),
        };
        said.push_str(&format!("{what}: {command}{flags}\n"));
    }
    Ok(exit)
}

/// Reads what is new in the streams of a session, in the order in which it happened.
struct Feed {
    journal: Journal,
    session: SessionId,
    /// How far each stream has been read; `None` for those of other sessions.
    seen: HashMap<StreamId, Option<u64>>,
    /// The ledger as it was last told.
    ledger: Option<String>,
}

#[derive(Deserialize)]
struct Of {
    session: SessionId,
}

impl Feed {
    fn new(target: &Target) -> Self {
        let (journal, session) = (target.journal.clone(), target.session.clone());
        Self { journal, session, seen: HashMap::new(), ledger: None }
    }

    /// Passes on what is new: to a screen, or as lines to stdout.
    async fn pass_on(&mut self, watcher: Option<&Watcher>) -> Result<Reader, Failure> {
        let records = self.read().await?;
        let Some(watcher) = watcher else {
            return stdio::put_json(&records.iter().map(line).collect::<String>());
        };
        for record in &records {
            // A screen that is gone shows nothing, and an event of a newer version has no picture.
            let _ = notice(record).map(|notice| watcher.send(notice));
        }
        let state = self.journal.shared(&StreamId::from(&self.session)).await?;
        if let (true, Some(text)) = (state != self.ledger, &state)
            && let Ok(ledger) = serde_json::from_str::<Ledger>(text)
        {
            let _ = watcher.send(Notice::Ledger { session: self.session.clone(), ledger: Box::new(ledger) });
        }
        self.ledger = state;
        Ok(Reader::There)
    }

    async fn read(&mut self) -> Result<Vec<Record>, Failure> {
        let mut dated: Vec<(u64, Record)> = Vec::new();
        for prefix in [AgentId::PREFIX, RunId::PREFIX] {
            let filter = Filter { prefix: Some(prefix.to_owned()), limit: None };
            for listing in self.journal.list(&filter).await?.into_iter().rev() {
                let known = self.seen.get(&listing.stream).copied();
                let after = match (known, &listing.summary) {
                    (Some(None), _) => continue,
                    (Some(Some(after)), _) => after,
                    (None, Some(text)) => {
                        let ours = serde_json::from_str::<Of>(text).is_ok_and(|of| of.session == self.session);
                        self.seen.insert(listing.stream.clone(), ours.then_some(0));
                        if !ours {
                            continue;
                        }
                        0
                    }
                    // Nothing has been written to it yet.
                    (None, None) => continue,
                };
                if listing.seq <= after {
                    continue;
                }
                let mut at = 0;
                for record in self.journal.load(&listing.stream, after).await? {
                    // A clock that was set back does not turn a stream round.
                    at = record.at.max(at);
                    self.seen.insert(listing.stream.clone(), Some(record.seq));
                    dated.push((at, record));
                }
            }
        }
        for stream in Desk::streams(&self.session) {
            let after = self.seen.get(&stream).copied().flatten().unwrap_or(0);
            for record in self.journal.load(&stream, after).await? {
                self.seen.insert(stream.clone(), Some(record.seq));
                dated.push((record.at, record));
            }
        }
        dated.sort_by_key(|(at, _)| *at);
        Ok(dated.into_iter().map(|(_, record)| record).collect())
    }
}

fn notice(record: &Record) -> Option<Notice> {
    let (seq, at, text) = (record.seq, record.at, &record.event);
    if let Some(event) = TeamEvent::read(record.stream.as_str(), text) {
        return Some(Notice::Team { stream: record.stream.to_string(), seq, at, event: Box::new(event) });
    }
    if let Ok(agent) = record.stream.as_str().parse::<AgentId>() {
        return Some(Notice::Recorded { agent, seq, at, event: Box::new(Event::decode(text).ok()?) });
    }
    let run: RunId = record.stream.as_str().parse().ok()?;
    match ProgramEvent::decode(text) {
        Ok(event) => Some(Notice::Program { run, seq, at, event: Box::new(event) }),
        Err(_) => Some(Notice::Run { run, seq, at, event: Box::new(RunEvent::decode(text).ok()?) }),
    }
}
