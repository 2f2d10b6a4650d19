//! `convoke team list`: the members of a team and what each of them does, the lead first; and which requests
//! wait for an answer.

use convoke_kernel::{MessageId, Request, RequestKind};
use convoke_runtime::MemberRow;
use serde_json::{Value, json};

use super::labels::on_board;
use super::left::left_of;
use super::target::TeamTarget;
use crate::again::Naming;
use crate::args::OutputFormat;
use crate::commands::table::{Column, Table};
use crate::failure::{Exit, Failure};
use crate::render::{clean, dollars, tokens};
use crate::settings::Settings;
use crate::stdio;

/// Lists the members of a team.
pub(super) async fn run(settings: &Settings, given: Option<&str>) -> Result<Exit, Failure> {
    let at = TeamTarget::find(settings, given).await?;
    let rows = at.team.members(&at.session).await?;
    let roster = at.team.roster(&at.session).await?;
    let requests = roster.open_requests();
    match settings.output {
        OutputFormat::Json => {
            let members: Vec<Value> = rows.iter().map(object).collect();
            let waiting: Vec<Value> =
                requests.iter().map(|(id, request)| request_object(id, request)).collect();
            let all = json!({
                "schema_version": 1,
                "run": at.session.as_str(),
                "driven": at.driven,
                "members": members,
                "requests": waiting,
            });
            stdio::put_json(&format!("{all:#}\n"))?;
        }
        OutputFormat::Jsonl => {
            stdio::put_json(&rows.iter().map(|row| format!("{}\n", object(row))).collect::<String>())?;
        }
        OutputFormat::Text => {
            if rows.is_empty() {
                stdio::tell(&format!("{} has no team: its lead works alone\n", at.session));
                return Ok(Exit::Done);
            }
            stdio::put(&table(&rows).render(stdio::width()))?;
            if !settings.quiet {
                tell(settings, &at, &requests).await?;
            }
        }
    }
    Ok(Exit::Done)
}

/// A member for programs.
pub(super) fn object(row: &MemberRow) -> Value {
    let member = &row.member;
    let summary = row.summary.as_ref();
    let task = row.task.as_ref();
    json!({
        "name": member.name,
        "role": member.role,
        "agent": member.agent.as_str(),
        "state": row.state.word(),
        "why": row.why,
        "task": task.map(|task| json!({"task": task.id, "number": task.number, "subject": task.subject})),
        "unread": member.waiting,
        "urgent": member.urgent,
        "asleep_since": member.asleep,
        "requires_plan": member.requires_plan,
        "by": member.by,
        "since": member.at,
        "turns": summary.map_or(0, |summary| summary.turns),
        "commands": summary.map_or(0, |summary| summary.commands),
        "tokens": summary.map_or(0, |summary| summary.usage.prompt_tokens().saturating_add(summary.usage.output_tokens)),
        "cost_nano": summary.map_or(Some(0), |summary| summary.cost_nano),
    })
}

/// A request for programs.
pub(super) fn request_object(id: &MessageId, request: &Request) -> Value {
    let Request { kind, from, to, task, at, .. } = request;
    json!({"request": id, "kind": kind, "from": from, "to": to, "task": task, "at": at})
}

/// The members for people.
pub(super) fn table(rows: &[MemberRow]) -> Table {
    let mut table = Table::new(vec![
        Column::kept("NAME"),
        Column::dropped("ROLE", 4),
        Column::kept("STATE"),
        Column::dropped("UNREAD", 3).right(),
        Column::dropped("TURNS", 0).right(),
        Column::dropped("TOKENS", 1).right(),
        Column::dropped("DOLLARS", 2).right(),
        Column::cut("ABOUT"),
    ]);
    for row in rows {
        let about: Vec<String> = row.task.iter().map(on_board).chain(row.why.clone()).collect();
        let usage = row.summary.as_ref().map(|summary| &summary.usage);
        let used = usage.map_or(0, |usage| usage.prompt_tokens().saturating_add(usage.output_tokens));
        table.row(vec![
            row.member.name.clone(),
            row.member.role.clone(),
            row.state.word().to_owned(),
            row.member.waiting.to_string(),
            row.summary.as_ref().map_or(0, |summary| summary.turns).to_string(),
            tokens(used),
            dollars(row.summary.as_ref().map_or(Some(0), |summary| summary.cost_nano)),
            about.join("; "),
        ]);
    }
    table
}

async fn tell(
    settings: &Settings,
    at: &TeamTarget,
    requests: &[(&MessageId, &Request)],
) -> Result<(), Failure> {
    let naming = Naming::of(settings);
    for (id, request) in requests {
        let line = match request.kind {
            RequestKind::Plan => {
                let how = naming.command(&format!("team plan {id} --session {} --approve", at.session));
                let how = how.map(|how| format!(" (or `{how}`)")).unwrap_or_default();
                format!("the plan of {} waits for the lead's answer{how}", request.from)
            }
            RequestKind::Shutdown => format!("{} was asked by {} to stop", request.to, request.from),
        };
        stdio::tell(&format!("{}\n", clean(&line)));
    }
    if at.driven {
        return Ok(());
    }
    if let (Some(what), Some(command)) =
        (left_of(&at.journal, &at.session).await?, naming.resume(at.session.as_str()))
    {
        stdio::tell(&clean(&format!("{what}, and no process drives it; go on with `{command}`\n")));
    }
    Ok(())
}
