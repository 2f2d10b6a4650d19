//! `convoke sessions list`: one line per session, newest first.

use convoke_kernel::EndStatus;
use serde_json::{Value, json};

use crate::again::Naming;
use crate::args::{ListArgs, OutputFormat};
use crate::catalog::{self, Catalog, ListedSession, State};
use crate::commands::cost::Bill;
use crate::commands::table::{Column, Table};
use crate::failure::{Exit, Failure};
use crate::keeping::Checkout;
use crate::render::tokens;
use crate::report::LostItem;
use crate::settings::Settings;
use crate::{stdio, utc, work};

/// Lists sessions.
pub(super) async fn run(settings: &Settings, args: &ListArgs) -> Result<Exit, Failure> {
    let journal = catalog::open_existing(settings).await?;
    let mut catalog = Catalog::load(settings, journal.as_ref()).await?;
    let dir = match &args.dir {
        Some(dir) => {
            let dir = settings.dir.join(dir);
            dir.canonicalize().unwrap_or(dir)
        }
        None => settings.dir.clone(),
    };
    let here = |listed: &ListedSession| args.all || Checkout::of_listed(settings, listed) == dir;
    if let Some(journal) = &journal {
        catalog.look_for_questions(journal, here).await;
        catalog.look_for_unconfirmed(journal, here).await;
    }
    let (shown, others): (Vec<&ListedSession>, Vec<&ListedSession>) =
        catalog.sessions.iter().partition(|listed| here(listed));
    let naming = Some(Naming::of(settings));
    match settings.output {
        OutputFormat::Text => {
            text(settings, &catalog, &shown)?;
            tell(settings, &catalog, &shown, others.len(), &dir.display().to_string());
        }
        OutputFormat::Json => {
            let sessions: Vec<Value> = shown.iter().map(|listed| object(listed, naming.as_ref())).collect();
            let unreadable: Vec<&str> = catalog.unreadable.iter().map(|stream| stream.as_str()).collect();
            let others = others.len();
            let object =
                json!({"schema_version": 1, "runs": sessions, "elsewhere": others, "unreadable": unreadable});
            stdio::put_json(&format!("{object:#}\n"))?;
        }
        OutputFormat::Jsonl => {
            stdio::put_json(
                &shown
                    .iter()
                    .map(|listed| format!("{}\n", object(listed, naming.as_ref())))
                    .collect::<String>(),
            )?;
        }
    }
    Ok(Exit::Done)
}

/// A session for programs.
pub(super) fn object(listed: &ListedSession, naming: Option<&Naming>) -> Value {
    let summary = &listed.lead().summary;
    let state = listed.state();
    let end = state.ending();
    let failure = end.filter(|end| end.status != EndStatus::Done).map(|end| end.reason.word());
    let lost: Vec<LostItem> = listed.losses.lost.iter().map(LostItem::from).collect();
    let bill = Bill::of_listed(listed);
    let used = work::used(listed);
    json!({
        "run": listed.session.as_str(),
        "agents_started": listed.started(),
        "agents": listed.agents.iter().map(|entry| entry.agent.as_str()).collect::<Vec<_>>(),
        "workflows": listed.workflows,
        "programs": listed.programs,
        "status": state.word(),
        "failure": failure,
        "exit_code": end.map(|end| end.code),
        "lost": lost,
        "refused": listed.losses.refused,
        "can_go_on": listed.can_go_on(),
        "resume": naming.and_then(|naming| listed.way_on(naming)),
        "questions": listed.questions,
        "started_at": summary.started_at,
        "updated_at": listed.updated_at(),
        "dir": summary.dir,
        "model": summary.model,
        "task": summary.task,
        "forked_from": summary.forked_from,
        "turns": used.turns,
        "commands": used.commands,
        "usage": bill.object()["usage"],
        "cost_nano": bill.nano(),
        "unconfirmed_nano": listed.unconfirmed_nano,
    })
}

fn text(settings: &Settings, catalog: &Catalog, shown: &[&ListedSession]) -> Result<(), Failure> {
    if shown.is_empty() {
        return Ok(());
    }
    let columns = vec![
        Column::kept("SESSION"),
        Column::dropped("WHEN (UTC)", 5),
        Column::kept("STATUS"),
        Column::dropped("AGENTS", 1).right(),
        Column::dropped("TURNS", 2).right(),
        Column::dropped("TOKENS", 3).right(),
        Column::dropped("DOLLARS", 4).right(),
        Column::dropped("MODEL", 0),
        Column::cut("TASK"),
    ];
    let mut table = Table::new(columns);
    let length = catalog.id_length();
    for listed in shown {
        let summary = &listed.lead().summary;
        let bill = Bill::of_listed(listed);
        table.row(vec![
            listed.session.as_str().chars().take(length).collect(),
            utc::minute(summary.started_at),
            listed.words(),
            // As everywhere, the lead is not among those that were started.
            listed.started().to_string(),
            work::used(listed).turns.to_string(),
            tokens(bill.tokens()),
            bill.dollars(),
            summary.model.clone(),
            summary.task.clone(),
        ]);
    }
    let width = stdio::width();
    stdio::put(&table.render(width))?;
    // A fork to which nothing was said yet is open, too, and there is nothing to go on with.
    let goes_on = |listed: &&&ListedSession| listed.state() == State::Open && listed.lead().summary.can_go_on;
    let newest = shown.iter().find(goes_on).filter(|_| !settings.quiet);
    if let Some(command) = newest.and_then(|listed| Naming::of(settings).resume(listed.session.as_str())) {
        stdio::tell(&format!("open: no process drives it; go on with `{command}`\n"));
    }
    let not_whole = |listed: &&&ListedSession| {
        listed.state().ending().is_some_and(|end| end.status == EndStatus::Partial)
    };
    for listed in shown.iter().filter(not_whole).take(MOST_WAYS).filter(|_| !settings.quiet) {
        if let Some(command) = listed.way_on(&Naming::of(settings)) {
            stdio::tell(&format!("{}: {}; go on with `{command}`\n", listed.session, listed.not_done()));
        }
    }
    if let Some(listed) =
        shown.iter().find(|listed| listed.state() == State::Waiting).filter(|_| !settings.quiet)
    {
        stdio::tell(&format!(
            "waits for an answer: `convoke approvals list {}` shows the questions\n",
            listed.session
        ));
    }
    Ok(())
}

/// How many ways to go on are told of at once.
const MOST_WAYS: usize = 3;

fn tell(settings: &Settings, catalog: &Catalog, shown: &[&ListedSession], others: usize, dir: &str) {
    if shown.is_empty() {
        let place = if others > 0 || settings.quiet {
            String::new()
        } else {
            format!(" (journal {})", settings.journal)
        };
        stdio::tell(&format!("no sessions of {dir}{place}\n"));
    }
    if others > 0 && !settings.quiet {
        let (noun, verb) = if others == 1 { ("session", "is") } else { ("sessions", "are") };
        stdio::tell(&format!(
            "{others} {noun} of other directories {verb} not shown; `convoke sessions list --all` shows all\n"
        ));
    }
    if !catalog.unreadable.is_empty() {
        let number = catalog.unreadable.len();
        stdio::tell(&format!("{number} in this journal cannot be read by this version of convoke\n"));
    }
}
