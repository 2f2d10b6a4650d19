//! `convoke team show`: one member, whole: what it is there for, where it stands and why, its task, the mail
//! that waits for it, what it has spent, and its last words.

use convoke_kernel::{Letter, MessageId, Outcome, Request, RequestKind, TaskState};
use convoke_runtime::MemberRow;
use serde_json::{Value, json};

use super::labels::{kind_of, on_board};
use super::list::{object, request_object};
use super::target::TeamTarget;
use crate::args::OutputFormat;
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::lead::Lead;
use crate::render::{clean, count, dollars, first_line, kind_word, tokens};
use crate::settings::Settings;
use crate::{stdio, utc};

/// Shows a member.
pub(super) async fn run(settings: &Settings, name: &str, given: Option<&str>) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("team show"));
    }
    let at = TeamTarget::find(settings, given).await?;
    let row = at.member(name).await?;
    let letters = at.team.waiting(&at.session, name).await?;
    let roster = at.team.roster(&at.session).await?;
    let concerns = |request: &Request| request.from == name || request.to == name;
    let requests: Vec<(&MessageId, &Request)> =
        roster.open_requests().into_iter().filter(|(_, request)| concerns(request)).collect();
    let told = Lead::read(&at.journal, &row.member.agent).await?;
    let last = told.exchanges.iter().rev().find_map(|exchange| exchange.outcome.clone());
    if settings.output == OutputFormat::Json {
        let mut member = object(&row);
        member["letters"] = letters.iter().map(|letter| json!(letter)).collect();
        member["requests"] = requests.iter().map(|(id, request)| request_object(id, request)).collect();
        member["dir"] = json!(row.summary.as_ref().map(|summary| &summary.dir));
        member["model"] = json!(row.summary.as_ref().map(|summary| &summary.model));
        member["last"] = last.as_ref().map_or(Value::Null, |outcome| json!(outcome));
        let all = json!({"schema_version": 1, "run": at.session.as_str(), "member": member});
        stdio::put_json(&format!("{all:#}\n"))?;
    } else {
        stdio::put(&text(&at, &row, &letters, &requests, last.as_ref()))?;
    }
    Ok(Exit::Done)
}

fn text(
    at: &TeamTarget,
    row: &MemberRow,
    letters: &[Letter],
    requests: &[(&MessageId, &Request)],
    last: Option<&Outcome>,
) -> String {
    let member = &row.member;
    let why = row.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let mut lines = vec![
        format!("{} · {} · {}{why}", member.name, member.role, row.state.word()),
        format!(
            "session {} · agent {} · since {} UTC, by {}",
            at.session,
            member.agent,
            utc::minute(member.at),
            member.by
        ),
    ];
    if let Some(since) = member.asleep {
        lines.push(format!("asleep since {} UTC; it wakes for letters and work", utc::second(since)));
    }
    if let Some(task) = &row.task {
        let until = match &task.state {
            TaskState::Claimed { until, .. } => format!(", claimed until {} UTC", utc::second(*until)),
            TaskState::Pending | TaskState::Done { .. } | TaskState::Failed { .. } => String::new(),
        };
        lines.push(format!("task {} ({}{until})", on_board(task), task.id));
    }
    for (id, request) in requests {
        let what = match request.kind {
            RequestKind::Plan => "its plan waits for approval",
            RequestKind::Shutdown => "it was asked to stop",
        };
        lines.push(format!("request {id}: {what}, since {} UTC", utc::second(request.at)));
    }
    if let Some(summary) = &row.summary {
        let turns = count(summary.turns, "turn");
        let commands = count(summary.commands, "command");
        let used = summary.usage.prompt_tokens().saturating_add(summary.usage.output_tokens);
        lines.push(format!(
            "{turns} · {commands} · {} tokens · {}",
            tokens(used),
            dollars(summary.cost_nano)
        ));
    }
    let urgent = if member.urgent > 0 { format!(", {} urgent", member.urgent) } else { String::new() };
    lines.push(format!(
        "{}{urgent}",
        count(u32::try_from(letters.len()).unwrap_or(u32::MAX), "unread letter")
    ));
    for letter in letters {
        let when = utc::second(letter.at);
        let from = &letter.from;
        lines.push(format!("  {when} {from} ({}): {}", kind_of(letter.kind), first_line(&letter.text, 200)));
    }
    let mut text: String = lines.iter().map(|line| clean(line) + "\n").collect();
    if let Some(outcome) = last {
        let head = match outcome {
            Outcome::Ok { .. } => "last words:".to_owned(),
            Outcome::Failed { kind, message, .. } => {
                format!("last work failed ({}): {message}", kind_word(*kind))
            }
        };
        text.push_str(&format!("{}\n", clean(&head)));
        text.extend(
            clean(outcome.text().trim_end())
                .lines()
                .map(|line| format!("    {line}").trim_end().to_owned() + "\n"),
        );
    }
    text
}
