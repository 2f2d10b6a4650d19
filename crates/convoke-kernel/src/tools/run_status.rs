//! `run_status`: how far a program is that runs in the background.

use serde_json::{Value, json};

use super::shown::{CallInput, Words};
use super::table::{Audience, Reading, Tool};
use super::{ToolRequest, Wanted};

pub(super) static TOOL: Tool = Tool {
    name: "run_status",
    audience: Audience::Lead,
    parts: &[],
    declare: |offer| offer.max_subtasks.map(|_| declaration()),
    read: Reading::Input(|input, _| read(input).map(Wanted::Run)),
    words,
    starts: None,
};

fn declaration() -> Value {
    json!({
        "name": TOOL.name,
        "description": "Tells how far a program is that runs in the background: its phase, its agents, what \
            it has said. For when the person asks, or when something depends on it. Not for waiting: a \
            run's result comes by itself.",
        "input_schema": {
            "type": "object",
            "properties": {
                "run": {"type": "string", "description": "The run, as the Workflow call named it (wf_…)."}
            },
            "required": ["run"],
            "additionalProperties": false
        }
    })
}

fn read(input: &Value) -> Result<ToolRequest, String> {
    match input.get("run").and_then(Value::as_str).map(str::trim).filter(|run| !run.is_empty()) {
        Some(run) => Ok(ToolRequest::RunStatus { run: run.to_owned() }),
        None => Err("run_status error: give run (wf_…), as the Workflow call named it.".to_owned()),
    }
}

fn words(call: &CallInput<'_>) -> Words {
    let item = call.input.get("item").map(|item| format!(", item {item}")).unwrap_or_default();
    Words { line: Some(format!("{} {}{item}", call.name, call.told("run"))), ..Words::default() }
}
