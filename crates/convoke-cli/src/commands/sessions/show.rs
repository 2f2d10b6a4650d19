//! `convoke sessions show`: the agents of a session and what happened to its lead, in order; with AGENT the
//! same of another agent, with `--follow` as it happens. For programs: the events of all agents.

use std::time::Duration;

use convoke_journal::{Journal, Record, StreamId};
use convoke_kernel::{Confinement, Sandbox};
use serde_json::{Value, json};

use super::event_printer::EventPrinter;
use super::overview::overview;
use super::{line, list, no_journal, program};
use crate::again::Naming;
use crate::args::{OutputFormat, ShowArgs};
use crate::catalog::{self, Catalog, Entry, ListedSession, State};
use crate::commands::cost::Bill;
use crate::commands::resume;
use crate::confine::{layers_words, network_words};
use crate::failure::{Exit, Failure};
use crate::lead::Lead;
use crate::render::{Look, Report, clean, count, flat, tokens};
use crate::report::{Confined, LostItem, lost_words};
use crate::settings::Settings;
use crate::stdio::{self, Reader};
use crate::utc;
use crate::work;

/// How long a follower waits for an event before it looks whether a process still drives the session.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The whole report of a session that has ended, as it was told at its end.
async fn report(settings: &Settings, journal: &Journal, listed: &ListedSession) -> Result<Exit, Failure> {
    let state = listed.state();
    if state.ending().is_none() {
        return Err(Failure::usage(format!(
            "{} has not ended ({}), so there is no report yet",
            listed.session,
            state.words()
        ))
        .hint(format!("`convoke sessions show {}` tells what has happened so far", listed.session)));
    }
    let told = Lead::read(journal, &listed.lead().agent).await?;
    let end = resume::ended(settings, journal, listed, told).await?;
    Report::new(end).show(Look::of(settings))?;
    Ok(Exit::Done)
}

/// Shows a session.
pub(super) async fn run(settings: &Settings, args: &ShowArgs) -> Result<Exit, Failure> {
    let Some(journal) = catalog::open_existing(settings).await? else {
        return Err(no_journal(settings, &args.session));
    };
    let mut catalog = Catalog::load(settings, Some(&journal)).await?;
    let session = catalog.find(&args.session)?.session.clone();
    catalog.look_for_questions(&journal, |listed| listed.session == session).await;
    catalog.look_for_unconfirmed(&journal, |listed| listed.session == session).await;
    let listed = catalog.find(session.as_str())?;
    if args.report {
        return report(settings, &journal, listed).await;
    }
    if args.value {
        return program::value(settings, &journal, listed, &args.session).await;
    }
    if args.log {
        return program::log(settings, &journal, listed, &args.session).await;
    }
    if let Some(call) = args.call {
        return program::call(settings, &journal, listed, (&args.session, call)).await;
    }
    let agents: Vec<&Entry> = match &args.agent {
        Some(given) => vec![listed.agent(given)?],
        // The lead says what the others do; all of it at once would be too much to read.
        None if args.follow || settings.output == OutputFormat::Text => vec![listed.lead()],
        None => listed.agents.iter().collect(),
    };
    if settings.output == OutputFormat::Json {
        if args.follow {
            return Err(Failure::usage("--follow prints events as they happen, and JSON is one document")
                .hint("use --output jsonl"));
        }
        stdio::put_json(&format!("{:#}\n", object(settings, &journal, listed, &agents).await?))?;
        return Ok(Exit::Done);
    }
    if settings.output == OutputFormat::Text {
        let spec = Lead::read(&journal, &listed.lead().agent).await?.spec;
        let programs = program::overview(&journal, listed, stdio::width()).await?;
        stdio::put(
            &(head(listed, spec.map(|spec| spec.confinement))
                + &programs
                + &overview(listed, stdio::width())),
        )?;
    }
    for entry in &agents {
        let mut shown = Shown::new(settings, &entry.agent.to_string());
        let stream = StreamId::from(&entry.agent);
        let mut reader = shown.put(&journal.load(&stream, 0).await?)?;
        if args.follow && reader == Reader::There {
            reader = follow(settings, &journal, &stream, listed.session.as_str(), &mut shown).await?;
        }
        if reader == Reader::Gone {
            return Ok(Exit::Done);
        }
    }
    if settings.output == OutputFormat::Jsonl && args.agent.is_none() && !args.follow {
        for stream in listed.streams().iter().skip(listed.agents.len()) {
            stdio::put_json(&journal.load(stream, 0).await?.iter().map(line).collect::<String>())?;
        }
    }
    let mut now = Catalog::load(settings, Some(&journal)).await?;
    now.look_for_unconfirmed(&journal, |other| other.session == session).await;
    now.look_for_questions(&journal, |listed| listed.session == session).await;
    let listed = now.find(listed.session.as_str())?;
    if settings.output == OutputFormat::Text {
        stdio::put(&(lost(listed) + &foot(listed)))?;
        let waits = !matches!(listed.state(), State::Running | State::Waiting) && !settings.quiet;
        if let (true, Some(command)) = (waits, listed.way_on(&Naming::of(settings))) {
            stdio::tell(&format!("no process drives it; go on with `{command}`\n"));
        }
        if listed.state() == State::Waiting && !settings.quiet {
            stdio::tell(&format!(
                "it waits for an answer: `convoke approvals list {}` shows the questions\n",
                listed.session
            ));
        }
        if listed.agents.len() > 1 && args.agent.is_none() && !settings.quiet {
            stdio::tell(&format!(
                "to see what another agent did: `convoke sessions show {} AGENT`\n",
                listed.session
            ));
        }
    }
    Ok(Exit::Done)
}

/// What has been shown of one agent.
struct Shown {
    printer: EventPrinter,
    output: OutputFormat,
    seq: u64,
}

impl Shown {
    fn new(settings: &Settings, agent: &str) -> Self {
        Self { printer: EventPrinter::new(agent), output: settings.output, seq: 0 }
    }

    fn put(&mut self, records: &[Record]) -> Result<Reader, Failure> {
        let mut text = String::new();
        for record in records {
            match self.output {
                OutputFormat::Text | OutputFormat::Json => text.push_str(&self.printer.tell(record)),
                OutputFormat::Jsonl => text.push_str(&line(record)),
            }
            self.seq = record.seq;
        }
        match self.output {
            OutputFormat::Text => stdio::put_more(&text),
            OutputFormat::Json | OutputFormat::Jsonl => stdio::put_json(&text),
        }
    }
}

/// Shows what happens until no process drives the session any more, or stdout has no reader.
async fn follow(
    settings: &Settings,
    journal: &Journal,
    stream: &StreamId,
    session: &str,
    shown: &mut Shown,
) -> Result<Reader, Failure> {
    loop {
        match tokio::time::timeout(LOOK_AGAIN, journal.tail(stream, shown.seq)).await {
            Ok(records) => match shown.put(&records?)? {
                Reader::There => {}
                Reader::Gone => return Ok(Reader::Gone),
            },
            Err(_) => {
                let catalog = Catalog::load(settings, Some(journal)).await?;
                if catalog.find(session)?.state() != State::Running {
                    // What was written between the last look and the end is shown too.
                    return shown.put(&journal.load(stream, shown.seq).await?);
                }
            }
        }
    }
}

async fn object(
    settings: &Settings,
    journal: &Journal,
    listed: &ListedSession,
    agents: &[&Entry],
) -> Result<Value, Failure> {
    let mut told = Vec::new();
    for entry in agents {
        let events = events(journal, &StreamId::from(&entry.agent)).await?;
        told.push(
            json!({"agent": entry.agent.as_str(), "role": entry.summary.role.word(), "events": events}),
        );
    }
    let mut workflows = Vec::new();
    for summary in &listed.workflows {
        let events = events(journal, &StreamId::new(summary.run.as_str())?).await?;
        workflows.push(json!({"workflow": summary.run, "events": events}));
    }
    let mut programs = Vec::new();
    for summary in &listed.programs {
        let events = events(journal, &StreamId::new(summary.run.as_str())?).await?;
        programs.push(json!({"program": summary, "events": events}));
    }
    let spec = Lead::read(journal, &listed.lead().agent).await?.spec;
    let confinement = spec.map(|spec| Confined::from(spec.confinement));
    Ok(json!({
        "schema_version": 1,
        "run": list::object(listed, Some(&Naming::of(settings))),
        "confinement": confinement,
        "agents": told,
        "workflows": workflows,
        "programs": programs,
    }))
}

async fn events(journal: &Journal, stream: &StreamId) -> Result<Vec<Value>, Failure> {
    let records = journal.load(stream, 0).await?;
    Ok(records.iter().filter_map(|record| serde_json::from_str(&line(record)).ok()).collect())
}

fn head(listed: &ListedSession, confinement: Option<Confinement>) -> String {
    let summary = &listed.lead().summary;
    let when = utc::minute(summary.started_at);
    let dir = clean(&summary.dir);
    let model = clean(&summary.model);
    let held = match confinement {
        None => String::new(),
        Some(held) if held.sandbox == Sandbox::Off => "commands UNCONFINED (--sandbox off)\n".to_owned(),
        Some(held) => {
            let network = network_words(&held);
            let layers = layers_words(&held);
            clean(&format!("sandbox {} · {network} · {layers}\n", held.sandbox.name()))
        }
    };
    format!("session {} · {} · {when} UTC\n{model} in {dir}\n{held}", listed.session, listed.words())
}

/// What was lost, one line each.
fn lost(listed: &ListedSession) -> String {
    let lost: Vec<LostItem> = listed.losses.lost.iter().map(LostItem::from).collect();
    let mut lines: Vec<String> =
        lost.iter().map(|item| format!("  {}", flat(&item.line(), LOST_CHARS).0)).collect();
    if !lines.is_empty() {
        lines.insert(0, format!("\nlost: {}", lost_words(&lost.iter().collect::<Vec<_>>())));
    }
    lines.extend(
        listed.losses.refused.iter().map(|why| format!("refused whole: {}", flat(why, LOST_CHARS).0)),
    );
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Characters of one thing that was lost.
const LOST_CHARS: usize = 400;

fn foot(listed: &ListedSession) -> String {
    let summary = &listed.lead().summary;
    let bill = Bill::of_listed(listed);
    let used = work::used(listed);
    let turns = count(used.turns, "turn");
    let commands = count(used.commands, "command");
    let time = Duration::from_millis(listed.updated_at().saturating_sub(summary.started_at));
    format!(
        "\n{} · {turns} · {commands} · {} tokens · {} · {}\n",
        listed.words(),
        tokens(bill.tokens()),
        bill.dollars(),
        crate::render::seconds(time)
    )
}
