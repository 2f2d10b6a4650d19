//! `task`: one piece of work is given to a sub-agent, and its summary comes back.

use serde_json::{Value, json};

use super::shown::{CallInput, Words};
use super::table::{Audience, Reading, Tool};
use super::{ToolRequest, Wanted};
use crate::confinement::Isolation;

pub(super) static TOOL: Tool = Tool {
    name: "task",
    audience: Audience::Lead,
    parts: &[],
    declare: |offer| offer.max_subtasks.map(|_| declaration()),
    read: Reading::Input(|input, _| read(input).map(Wanted::Run)),
    words,
    starts: Some(|input| input["prompt"].as_str().map(str::to_owned)),
};

pub(super) fn declaration() -> Value {
    json!({
        "name": TOOL.name,
        "description": "Gives one task to a sub-agent with a clean context and brings back its summary, and \
            only that. Use it to keep your own context small: a question that takes reading many files, a \
            self-contained piece of work that you check afterwards. The sub-agent has bash and the file \
            tools, sees nothing of this conversation and cannot start agents itself, so the prompt has to \
            say everything: what to find out or do, where, and what to bring back.\n\n\
            isolation says where it works. none: in this directory itself; such tasks write one after the \
            other. copy: in a throwaway copy of it, for everything that only has to find something out or \
            try something; several in one reply run at the same time. worktree: in a git worktree of its \
            own, for changes that are made side by side; what it changes is kept on a branch, and the \
            result names it.",
        "input_schema": {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "The whole task."},
                "isolation": {"type": "string", "enum": ["none", "copy", "worktree"], "description": "Where \
                    it works; none if absent."}
            },
            "required": ["prompt"],
            "additionalProperties": false
        }
    })
}

fn read(input: &Value) -> Result<ToolRequest, String> {
    let isolation = match input.get("isolation").filter(|isolation| !isolation.is_null()) {
        None => Isolation::None,
        Some(isolation) => serde_json::from_value(isolation.clone())
            .map_err(|_| "task error: isolation is none, copy or worktree.".to_owned())?,
    };
    match input.get("prompt").and_then(Value::as_str) {
        Some(prompt) if !prompt.trim().is_empty() => {
            Ok(ToolRequest::Task { prompt: prompt.to_owned(), isolation })
        }
        _ => Err("task error: no prompt was provided.".to_owned()),
    }
}

fn words(call: &CallInput<'_>) -> Words {
    let said = format!("task: {}", call.told("prompt"));
    Words {
        line: Some(said.clone()),
        title: Some(said.clone()),
        progress: Some(said),
        doing: Some("waiting"),
        ..Words::default()
    }
}
