//! `convoke tasks show`: one task, whole, with everything that happened to it.

use convoke_kernel::{Board, BoardEvent, Task, TaskEdit, TaskState};
use serde_json::{Value, json};

use super::object;
use crate::args::{OutputFormat, TaskNamedArgs};
use crate::commands::no_jsonl;
use crate::commands::team::{TeamTarget, owner_of, state_of};
use crate::failure::{Exit, Failure};
use crate::render::{clean, first_line};
use crate::settings::Settings;
use crate::{stdio, utc};

/// Shows a task.
pub(super) async fn run(settings: &Settings, args: &TaskNamedArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("tasks show"));
    }
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let board = at.team.board(&at.session).await?;
    let task = board.find(&args.task).map_err(|refusal| Failure::failed(refusal.to_string()))?;
    let history = at.team.task_history(&at.session, &task.id).await?;
    if settings.output == OutputFormat::Json {
        let mut shown = object(task, Some(&board));
        shown["history"] = history.iter().map(|(at, event)| event_object(*at, event)).collect();
        let all = json!({"schema_version": 1, "run": at.session.as_str(), "task": shown});
        stdio::put_json(&format!("{all:#}\n"))?;
        return Ok(Exit::Done);
    }
    let roster = at.team.roster(&at.session).await?;
    let roles: Vec<&str> = roster.members().map(|member| member.role.as_str()).collect();
    let mut shown = text(&board, task, &roles);
    for (when, event) in &history {
        let line = format!("  {} UTC {}", utc::minute(*when), happened(event));
        shown.push_str(&format!("{}\n", clean(&line)));
    }
    stdio::put(&shown)?;
    Ok(Exit::Done)
}

fn event_object(at: u64, event: &BoardEvent) -> Value {
    let text = event.encode().unwrap_or_default();
    let mut object: Value = serde_json::from_str(&text).unwrap_or_default();
    object["at"] = json!(at);
    object
}

fn text(board: &Board, task: &Task, roles: &[&str]) -> String {
    let mut lines = vec![format!("#{} {}", task.number, task.subject)];
    let state = match &task.state {
        TaskState::Claimed { token, until, .. } => {
            format!("claimed by {}, until {} UTC, token {token}", owner(task), utc::second(*until))
        }
        TaskState::Failed { why, .. } => format!("failed ({}): {why}", owner(task)),
        TaskState::Done { .. } => format!("done by {}", owner(task)),
        TaskState::Pending => state_of(&task.state).to_owned(),
    };
    lines.push(format!("{} · {state}", task.id));
    let role = task.role.as_ref().map(|role| format!(" · for the role {role}")).unwrap_or_default();
    lines.push(format!(
        "priority {}{role} · claimed {} times · written by {}",
        task.priority, task.attempts, task.by
    ));
    for needed in task.blocked_by.iter().filter_map(|id| board.task(id)) {
        lines.push(format!("needs #{} {} ({})", needed.number, needed.subject, state_of(&needed.state)));
    }
    if let (TaskState::Pending, Some(why)) = (&task.state, board.stuck(task, roles)) {
        lines.push(format!("stuck: {why}"));
    }
    let mut text: String = lines.iter().map(|line| clean(line) + "\n").collect();
    let parts = [
        ("description", Some(&task.description)),
        ("done when", task.criteria.as_ref()),
        ("result", task.result.as_ref()),
    ];
    for (title, part) in parts {
        let Some(part) = part.filter(|part| !part.trim().is_empty()) else { continue };
        text.push_str(&format!("{title}:\n"));
        text.extend(
            clean(part.trim_end()).lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n"),
        );
    }
    text + "history:\n"
}

fn owner(task: &Task) -> &str {
    owner_of(&task.state).unwrap_or("no member")
}

/// What happened to it, in words.
fn happened(event: &BoardEvent) -> String {
    match event {
        BoardEvent::TaskCreated(e) => format!("written by {}", e.by),
        BoardEvent::TaskEdited(e) => format!("changed by {}: {}", e.by, edited(&e.edit)),
        BoardEvent::TaskClaimed(e) => format!("claimed by {} (token {})", e.name, e.token),
        BoardEvent::TaskRenewed(_) => "the claim was renewed".to_owned(),
        BoardEvent::TaskOffered(_) => "its holder was asked to go on with it".to_owned(),
        BoardEvent::TaskReleased(e) => format!("given back by {}: {}", e.name, first_line(&e.why, 200)),
        BoardEvent::TaskFinished(e) => format!("done by {}", e.name),
        BoardEvent::TaskFailed(e) => format!("failed ({}): {}", e.name, first_line(&e.why, 200)),
        BoardEvent::TaskRetried(e) => format!("to be tried again, says {}", e.by),
    }
}

fn edited(edit: &TaskEdit) -> String {
    let parts = [
        ("subject", edit.subject.is_some()),
        ("description", edit.description.is_some()),
        ("criteria", edit.criteria.is_some()),
        ("priority", edit.priority.is_some()),
        ("role", edit.role.is_some()),
        ("what it waits for", !edit.add_blocked_by.is_empty() || !edit.remove_blocked_by.is_empty()),
    ];
    parts.iter().filter(|(_, changed)| *changed).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_in_a_task_is_named() {
        let edit = TaskEdit { priority: Some(2), role: Some("coder".to_owned()), ..TaskEdit::default() };
        assert_eq!(edited(&edit), "priority, role");
        assert_eq!(edited(&TaskEdit::default()), "");
    }
}
