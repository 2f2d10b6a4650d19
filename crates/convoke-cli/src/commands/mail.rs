//! `convoke mail`: letters to members of a team, and a look at those that are there. Looking takes no letter
//! out of a member's mail.

use convoke_kernel::Letter;
use serde_json::{Value, json};

use super::table::{Column, Table};
use super::team::{TeamTarget, kind_of, said, short};
use crate::again::Naming;
use crate::args::{MailCommand, MailListArgs, MailSendArgs, OutputFormat};
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;
use crate::{stdio, utc};

/// Does what is asked about mail.
pub(crate) async fn run(settings: &Settings, command: MailCommand) -> Result<Exit, Failure> {
    match command {
        MailCommand::Send(args) => send(settings, &args).await,
        MailCommand::List(args) => list(settings, &args).await,
    }
}

async fn send(settings: &Settings, args: &MailSendArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("mail send"));
    }
    let text = said(&args.text, "the letter")?;
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let id = at.team.send(&at.session, &at.lead, &args.name, &text, args.urgent).await?;
    match settings.output {
        OutputFormat::Json => {
            let object = json!({
                "schema_version": 1,
                "run": at.session.as_str(),
                "letter": id,
                "to": args.name,
                "urgent": args.urgent,
                "driven": at.driven,
            });
            stdio::put_json(&format!("{object:#}\n"))?;
        }
        OutputFormat::Text | OutputFormat::Jsonl => stdio::put(&format!("{id}\n"))?,
    }
    if settings.quiet {
        return Ok(Exit::Done);
    }
    stdio::tell(&format!("it waits for {} in {}\n", args.name, at.session));
    if let (false, Some(command)) = (at.driven, Naming::of(settings).resume(at.session.as_str())) {
        stdio::tell(&format!("no process drives it now; it is read when one does: `{command}`\n"));
    }
    Ok(Exit::Done)
}

/// A letter and when its reader read it.
struct Row {
    letter: Letter,
    read_at: Option<u64>,
}

async fn list(settings: &Settings, args: &MailListArgs) -> Result<Exit, Failure> {
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => at.team.roster(&at.session).await?.members().map(|member| member.name.clone()).collect(),
    };
    let mut rows = Vec::new();
    for name in &names {
        let waiting = at.team.waiting(&at.session, name).await?;
        if args.all {
            let read = at.team.read_letters(&at.session, name).await?;
            rows.extend(read.into_iter().map(|(read_at, letter)| Row { letter, read_at: Some(read_at) }));
        }
        rows.extend(waiting.into_iter().map(|letter| Row { letter, read_at: None }));
    }
    match settings.output {
        OutputFormat::Json => {
            let letters: Vec<Value> = rows.iter().map(object).collect();
            let all = json!({"schema_version": 1, "run": at.session.as_str(), "letters": letters});
            stdio::put_json(&format!("{all:#}\n"))?;
        }
        OutputFormat::Jsonl => {
            stdio::put_json(&rows.iter().map(|row| format!("{}\n", object(row))).collect::<String>())?;
        }
        OutputFormat::Text if rows.is_empty() => {
            let whose = args.name.as_deref().unwrap_or("any member");
            let what = if args.all { "there are no letters" } else { "no letter waits" };
            stdio::tell(&format!("{what} for {whose} in {}\n", at.session));
        }
        OutputFormat::Text => stdio::put(&table(&rows).render(stdio::width()))?,
    }
    Ok(Exit::Done)
}

/// A letter for programs, whole.
fn object(row: &Row) -> Value {
    let letter = &row.letter;
    json!({
        "letter": letter.id,
        "from": letter.from,
        "to": letter.to,
        "kind": kind_of(letter.kind),
        "text": letter.text,
        "urgent": letter.urgent,
        "at": letter.at,
        "read_at": row.read_at,
        "state": if row.read_at.is_some() { "read" } else { "waiting" },
        "request": letter.request,
        "approve": letter.approve,
        "task": letter.task,
    })
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(vec![
        Column::dropped("LETTER", 0),
        Column::dropped("WHEN (UTC)", 1),
        Column::kept("TO"),
        Column::kept("FROM"),
        Column::dropped("KIND", 2),
        Column::dropped("STATE", 3),
        Column::cut("TEXT"),
    ]);
    for Row { letter, read_at } in rows {
        let state = match (read_at, letter.urgent) {
            (Some(_), _) => "read",
            (None, true) => "waiting, urgent",
            (None, false) => "waiting",
        };
        table.row(vec![
            short(letter.id.as_str()),
            utc::minute(letter.at),
            letter.to.clone(),
            letter.from.clone(),
            kind_of(letter.kind).to_owned(),
            state.to_owned(),
            letter.text.clone(),
        ]);
    }
    table
}
