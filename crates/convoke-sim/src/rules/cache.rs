//! Rules about cache marks.

use serde_json::{Map, Value};

use super::shape::{Kind, members};
use super::{Asked, Checked, Rule, refuse};

const MAX_MARKS: usize = 4;

/// One mark: where it stands and whether it is for an hour.
struct Mark<'a> {
    path: String,
    block: &'a Map<String, Value>,
    mark: &'a Value,
}

pub(super) fn check(asked: &Asked<'_>) -> Checked {
    let marks = marks(asked);
    for Mark { path, block, mark } in &marks {
        shape(path, mark)?;
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "thinking" || kind == "redacted_thinking" {
            let text = format!("{path}.{kind}.cache_control: Extra inputs are not permitted");
            return refuse(Rule::MarkOnThinking, text);
        }
        if kind == "text" && block.get("text").and_then(Value::as_str).is_some_and(str::is_empty) {
            return refuse(
                Rule::MarkOnEmpty,
                format!("{path}.text: cache_control cannot be set for empty text blocks"),
            );
        }
    }
    let automatic = asked.member("cache_control");
    let mut found = marks.len();
    if let Some(mark) = automatic {
        shape("", mark)?;
        let last = marks.last().filter(|last| is_last_block(asked, last.block));
        match last {
            Some(last) if hour(last.mark) != hour(mark) => {
                let text =
                    format!("cache_control.ttl: differs from the ttl of the cache_control at {}", last.path);
                return refuse(Rule::AutomaticMark, text);
            }
            // The same mark twice is one mark.
            Some(_) => {}
            None => found += 1,
        }
    }
    if found > MAX_MARKS {
        let text =
            format!("A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {found}.");
        return refuse(Rule::TooManyMarks, text);
    }
    let mut short_seen = false;
    for (path, mark) in
        marks.iter().map(|mark| (mark.path.as_str(), mark.mark)).chain(automatic.map(|mark| ("", mark)))
    {
        if hour(mark) && short_seen {
            let path = if path.is_empty() { String::new() } else { format!("{path}.") };
            let text = format!(
                "{path}cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' \
                 cache_control block. Note that blocks are processed in the following order: `tools`, \
                 `system`, `messages`."
            );
            return refuse(Rule::MarkOrder, text);
        }
        short_seen |= !hour(mark);
    }
    Ok(())
}

fn hour(mark: &Value) -> bool {
    mark["ttl"] == "1h"
}

fn shape(path: &str, mark: &Value) -> Checked {
    let path = if path.is_empty() { "cache_control".to_owned() } else { format!("{path}.cache_control") };
    let known = [("type", Kind::String, true), ("ttl", Kind::String, false)];
    if let Some(object) = mark.as_object() {
        members(&path, object, &known, Rule::MarkShape)?;
    }
    if mark["type"] != "ephemeral" {
        return refuse(Rule::MarkShape, format!("{path}.type: Input should be 'ephemeral'"));
    }
    match mark["ttl"].as_str() {
        None | Some("5m" | "1h") => Ok(()),
        Some(_) => refuse(Rule::MarkShape, format!("{path}.ttl: Input should be '5m' or '1h'")),
    }
}

/// Every mark, in the order in which the cache sees them: tools, system, messages.
fn marks<'a>(asked: &Asked<'a>) -> Vec<Mark<'a>> {
    let mut marks = Vec::new();
    for part in ["tools", "system"] {
        collect(part, asked.body.get(part), &mut marks);
    }
    for (index, message) in asked.messages.iter().enumerate() {
        collect(&format!("messages.{index}.content"), message.get("content"), &mut marks);
    }
    marks
}

fn collect<'a>(path: &str, list: Option<&'a Value>, marks: &mut Vec<Mark<'a>>) {
    for (index, block) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = format!("{path}.{index}");
        // The parts of a tool result may be marked too; the mark of the whole comes after them.
        if block["type"] == "tool_result" {
            collect(&format!("{path}.tool_result.content"), block.get("content"), marks);
        }
        let (Some(block), Some(mark)) = (block.as_object(), block.get("cache_control")) else { continue };
        if !mark.is_null() {
            marks.push(Mark { path, block, mark });
        }
    }
}

fn is_last_block(asked: &Asked<'_>, block: &Map<String, Value>) -> bool {
    let last = asked.messages.last().and_then(|message| message["content"].as_array()?.last()?.as_object());
    last.is_some_and(|last| std::ptr::eq(last, block))
}
