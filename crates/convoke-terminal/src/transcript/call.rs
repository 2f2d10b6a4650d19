//! Calls in one line, as a person would say them, and what they came to.

use std::time::Duration;

use convoke_kernel::{INVALID_INPUT, Ran, ToolResult};
use serde_json::Value;

use super::block::Block;
use super::words::brief;
use crate::text::{count, seconds};

/// How much of a call is shown.
const MOST: usize = 200;
/// How much is shown of what went wrong.
const MOST_WHY: usize = 160;
/// What takes less than this is not worth its time, unless it is a command.
const QUICK: Duration = Duration::from_secs(1);

/// A call of the lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    /// What it does, harmless and on one line.
    pub(super) what: String,
    is_command: bool,
    pub(super) since: u64,
}

impl Call {
    pub(super) fn of(id: &str, name: &str, input: &str, at: u64) -> Self {
        let input: Value = serde_json::from_str(input).unwrap_or_default();
        let what = brief(&said(name, &input), MOST);
        Self { id: id.to_owned(), what, is_command: name == "bash", since: at }
    }
}

/// Whether a call with this id was made by a person and not by a model.
pub(super) fn is_by_person(id: &str) -> bool {
    id.starts_with("person_")
}

/// A call that has its outcome. One of which nothing else is known was begun by a process that is gone.
pub(super) fn came_to(call: Option<&Call>, time: Option<Duration>, result: &ToolResult) -> Block {
    let is_command = call.is_some_and(|call| call.is_command);
    let exit = result.exit_code.filter(|_| result.ran == Ran::Done);
    let is_bad = result.is_error || result.ran != Ran::Done || exit.is_some_and(|code| code != 0);
    let how = match (result.ran, exit) {
        (Ran::Done, Some(code)) => Some(format!("exit {code}")),
        (Ran::Done, None) if is_bad => Some("failed".to_owned()),
        (Ran::Done, None) => None,
        (Ran::Interrupted, _) => Some("interrupted".to_owned()),
        (Ran::Refused, _) => Some("refused".to_owned()),
    };
    let time = time.filter(|time| is_command || *time >= QUICK).map(seconds);
    let launched = result.launched.as_ref().map(|run| format!("goes on in the background as {}", brief(run, 40)));
    let why = is_bad.then(|| brief(output(&result.text), MOST_WHY)).filter(|why| !why.is_empty());
    let came_to = [how, time, launched, why].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let what = call.map_or_else(|| "(a call)".to_owned(), |call| call.what.clone());
    Block::Did { what, came_to, is_bad }
}

/// What a command printed, without the line that tells the model its exit code.
fn output(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("(exit code ") => rest,
        _ => text,
    }
}

fn said(name: &str, input: &Value) -> String {
    let text = |member: &str| input.get(member).and_then(Value::as_str);
    let told = |member: &str| text(member).unwrap_or_default();
    match name {
        _ if input.get(INVALID_INPUT).is_some() => format!("{name} (its input was no JSON)"),
        "bash" => match text("command") {
            Some(command) => format!("$ {}", command.trim_start()),
            None => "$ (restart the shell)".to_owned(),
        },
        "str_replace_based_edit_tool" => {
            let word = match told("command") {
                "str_replace" | "insert" => "edit",
                other => other,
            };
            let lines = input.get("view_range").and_then(Value::as_array).map(|range| {
                let range: Vec<String> = range.iter().map(Value::to_string).collect();
                format!(":{}", range.join("-").replace("--1", "-"))
            });
            format!("{word} {}{}", told("path"), lines.unwrap_or_default())
        }
        "glob" | "grep" => {
            let place = text("path").map(|path| format!(" in {path}")).unwrap_or_default();
            format!("{name} {}{place}", told("pattern"))
        }
        "Workflow" => match (input.get("subtasks").and_then(Value::as_array), text("name").or(text("scriptPath"))) {
            (Some(subtasks), _) if !subtasks.is_empty() => {
                format!("Workflow: {}", count(u32::try_from(subtasks.len()).unwrap_or(u32::MAX), "subtask"))
            }
            (_, Some(name)) => format!("Workflow: {name}"),
            _ if text("script").is_some() => "Workflow: a program".to_owned(),
            _ => "Workflow".to_owned(),
        },
        "task" => format!("task: {}", told("prompt")),
        "read_result" | "run_status" => {
            let item = input.get("item").map(|item| format!(", item {item}")).unwrap_or_default();
            format!("{name} {}{item}", told("run"))
        }
        "spawn_teammate" => format!("spawn_teammate {} ({})", told("name"), told("role")),
        "send_message" => format!("send_message to {}: {}", told("to"), told("text")),
        "broadcast" => format!("broadcast: {}", told("text")),
        "task_create" => format!("task_create: {}", told("subject")),
        "todo" => {
            let items = input.get("items").and_then(Value::as_array).map_or(0, Vec::len);
            format!("todo: {}", count(u32::try_from(items).unwrap_or(u32::MAX), "item"))
        }
        name if input.as_object().is_none_or(serde_json::Map::is_empty) => name.to_owned(),
        name => format!("{name} {input}"),
    }
}
