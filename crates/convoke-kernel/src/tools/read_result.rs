//! `read_result`: the rest of a workflow's result, page by page.

use serde_json::{Value, json};

use super::shown::{CallInput, Words};
use super::table::{Audience, Reading, Tool};
use super::{ToolRequest, Wanted};

pub(super) static TOOL: Tool = Tool {
    name: "read_result",
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
        "description": "Reads what a Workflow result left out for length: one item of one run in full, page \
            by page. The result says which call to make. It costs nothing but the reading. Of a program, \
            item 0 is the whole value it returned and item N what its call N came to.",
        "input_schema": {
            "type": "object",
            "properties": {
                "run": {"type": "string", "description": "The run, as its result names it (wf_…)."},
                "item": {"type": "integer", "description": "The item's number; 0 is what stands before the \
                    first one."},
                "from": {"type": "integer", "description": "The character to start from; 0 is the beginning."}
            },
            "required": ["run", "item"],
            "additionalProperties": false
        }
    })
}

fn read(input: &Value) -> Result<ToolRequest, String> {
    let number = |name: &str| input.get(name).and_then(Value::as_u64);
    let run = input.get("run").and_then(Value::as_str).map(str::trim).filter(|run| !run.is_empty());
    match (run, number("item").and_then(|item| u32::try_from(item).ok())) {
        (Some(run), Some(item)) => {
            let from = number("from").and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
            Ok(ToolRequest::ReadResult { run: run.to_owned(), item, from })
        }
        _ => {
            Err("read_result error: give run (wf_…) and item, as the Workflow result names them.".to_owned())
        }
    }
}

fn words(call: &CallInput<'_>) -> Words {
    let run = call.told("run");
    let item = call.input.get("item").map(|item| format!(", item {item}")).unwrap_or_default();
    let title = format!("{}: {run}{item}", call.name);
    Words {
        line: Some(format!("{} {run}{item}", call.name)),
        title: Some(title.clone()),
        progress: Some(title),
        doing: Some("looking"),
        ..Words::default()
    }
}
