//! `idle`, `todo`, `compact` and `recall`: what a member of a team does with its own work and history.

use serde_json::{Value, json};

use super::{TeamCall, run};
use crate::todo::{ITEM_BYTES, MOST_ITEMS, TodoItem, TodoStatus};
use crate::tools::Wanted;
use crate::tools::fields::Fields;
use crate::tools::shown::{self, CallInput, Words, counted};
use crate::tools::table::{Audience, Reading, Tool, closed};

pub(in crate::tools) static IDLE: Tool = Tool {
    name: "idle",
    audience: Audience::Teammate,
    parts: &[],
    declare: |_| idle(),
    read: Reading::Fields(|_, _| Ok(Wanted::Idle)),
    words: shown::as_it_is,
    starts: None,
};

fn idle() -> Option<Value> {
    closed(
        IDLE.name,
        "Says that you have no more work for now. It ends this piece of work: what you said last is sent to \
         the lead, and you rest at no cost until a letter or a task wakes you. Call it alone, and end the \
         task in your hands first.",
        json!({}),
        &[],
    )
}

pub(in crate::tools) static TODO: Tool = Tool {
    name: "todo",
    audience: Audience::Team,
    parts: &[],
    declare: |_| todo(),
    read: Reading::Fields(|fields, _| read_todo(fields).map(Wanted::Todo)),
    words: todo_words,
    starts: None,
};

fn todo() -> Option<Value> {
    let description = format!(
        "Writes your own list of what you have to do; each call replaces the whole list, and it outlives \
         your history. Use it for work of three steps or more: one item in progress at a time, completed as \
         soon as it is. At most {MOST_ITEMS} items. Nobody claims from it: work for others belongs on the \
         board."
    );
    closed(
        TODO.name,
        &description,
        json!({
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "What there is to do, in one line."},
                        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
                    },
                    "required": ["text", "status"],
                    "additionalProperties": false
                },
                "description": "The whole list, in order."
            }
        }),
        &["items"],
    )
}

fn todo_words(call: &CallInput<'_>) -> Words {
    let items = counted(call.listed("items").unwrap_or(0), "item");
    Words { line: Some(format!("{}: {items}", call.name)), ..Words::default() }
}

fn read_todo(fields: &Fields<'_>) -> Result<Vec<TodoItem>, String> {
    let Some(items) = fields.get("items").and_then(Value::as_array) else {
        return Err("give items: the whole list, each with text and status.".to_owned());
    };
    if items.len() > MOST_ITEMS {
        return Err(format!(
            "{} items are too many; write at most {MOST_ITEMS}, the next steps first.",
            items.len()
        ));
    }
    let items = (1..).zip(items).map(|(at, item)| todo_item(at, item)).collect::<Result<Vec<_>, _>>()?;
    let under_way = items.iter().filter(|item| item.status == TodoStatus::InProgress).count();
    if under_way > 1 {
        return Err(format!("{under_way} items are in_progress; one at a time can be."));
    }
    Ok(items)
}

fn todo_item(at: usize, item: &Value) -> Result<TodoItem, String> {
    // Many models were taught the other name for it.
    let text = item.get("text").or_else(|| item.get("content")).and_then(Value::as_str).map(str::trim);
    let text = match text.filter(|text| !text.is_empty()) {
        None => return Err(format!("item {at} has no text; give text and status.")),
        Some(text) if text.len() > ITEM_BYTES => {
            return Err(format!(
                "item {at} has {} bytes; write one line of at most {ITEM_BYTES}.",
                text.len()
            ));
        }
        Some(text) => text.to_owned(),
    };
    let status = item.get("status").cloned().unwrap_or_default();
    match serde_json::from_value(status) {
        Ok(status) => Ok(TodoItem { text, status }),
        Err(_) => Err(format!("the status of item {at} is pending, in_progress or completed.")),
    }
}

pub(in crate::tools) static COMPACT: Tool = Tool {
    name: "compact",
    audience: Audience::Team,
    parts: &[],
    declare: |_| compact(),
    read: Reading::Fields(|fields, _| fields.optional("focus").map(Wanted::Compact)),
    words: shown::as_it_is,
    starts: None,
};

fn compact() -> Option<Value> {
    closed(
        COMPACT.name,
        "Begins a new history: you are asked for a summary, and from then on you have that, what Convoke \
         knows of you, and references to earlier results. Use it between two pieces of work, when what you \
         read for the last one is of no use for the next; when the context gets full it happens by itself. \
         It costs one request, and the next one reads everything anew.",
        json!({"focus": {"type": "string", "description": "What the summary must keep above all."}}),
        &[],
    )
}

pub(in crate::tools) static RECALL: Tool = Tool {
    name: "recall",
    audience: Audience::Team,
    parts: &[],
    declare: |_| recall(),
    read: Reading::Fields(|fields, _| {
        let reference = fields.text("reference")?.trim().to_owned();
        Ok(run(TeamCall::Recall { reference, from: fields.number("from")?.unwrap_or(0) }))
    }),
    words: shown::as_it_is,
    starts: None,
};

fn recall() -> Option<Value> {
    closed(
        RECALL.name,
        "Reads the result of an earlier call again that a new history left out, page by page. It costs \
         nothing but the reading, and shows what was true then: look again at what may have changed.",
        json!({
            "reference": {"type": "string", "description": "The reference, as the beginning of your history \
                names it."},
            "from": {"type": "integer", "description": "The character to start from; 0 is the beginning."}
        }),
        &["reference"],
    )
}
