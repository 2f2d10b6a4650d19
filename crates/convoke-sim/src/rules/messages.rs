//! Rules about roles, about where blocks may stand, and about emptiness.

use serde_json::Value;

use super::blocks::is_server_result;
use super::{Asked, Checked, Rule, refuse};
use crate::conversation::role;

pub(super) fn check(asked: &Asked<'_>) -> Checked {
    if role(&asked.messages[0]) == "assistant" && !opens_with_compaction(&asked.messages[0]) {
        return refuse(Rule::FirstNotUser, "messages: first message must use the \"user\" role");
    }
    for (index, message) in asked.messages.iter().enumerate() {
        places(asked, index, message)?;
        emptiness(asked, index, message)?;
    }
    texts("system", asked.body.get("system"))?;
    last(asked)
}

fn opens_with_compaction(message: &Value) -> bool {
    message["content"]
        .as_array()
        .and_then(|blocks| blocks.first())
        .is_some_and(|block| block["type"] == "compaction")
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn places(asked: &Asked<'_>, index: usize, message: &Value) -> Checked {
    let role = role(message);
    for (number, block) in blocks(message).iter().enumerate() {
        let kind = block["type"].as_str().unwrap_or_default();
        let home = match kind {
            "tool_use" | "server_tool_use" | "thinking" | "redacted_thinking" | "compaction" => "assistant",
            "tool_result" | "image" | "search_result" | "container_upload" => "user",
            kind if is_server_result(kind) => "assistant",
            "document" if role == "assistant" && asked.headers.strict => {
                let text = format!(
                    "messages.{index}.content.{number}: `document` blocks can only be in `user` messages"
                );
                return refuse(Rule::AssistantDocument, text);
            }
            _ => continue,
        };
        if role != home && role != "system" {
            let text = format!("messages.{index}: `{kind}` blocks can only be in `{home}` messages");
            return refuse(Rule::BlockRole, text);
        }
    }
    Ok(())
}

fn emptiness(asked: &Asked<'_>, index: usize, message: &Value) -> Checked {
    let content = &message["content"];
    let empty = content.as_str().is_some_and(str::is_empty) || content.as_array().is_some_and(Vec::is_empty);
    match role(message) {
        "user" if empty => {
            return refuse(
                Rule::EmptyUser,
                format!("messages.{index}: user messages must have non-empty content"),
            );
        }
        "assistant" if empty && index + 1 < asked.messages.len() => {
            let text =
                "all messages must have non-empty content except for the optional final assistant message";
            return refuse(Rule::EmptyAssistant, format!("messages.{index}: {text}"));
        }
        // An empty string is a matter of the system rules; a string of white space is accepted.
        "system" if content.is_string() => return Ok(()),
        _ if empty => return Ok(()),
        _ => {}
    }
    texts("messages", Some(content))?;
    for block in blocks(message) {
        texts("messages", block.get("content").filter(|content| content.is_array()))?;
    }
    Ok(())
}

/// Refuses texts without text.
fn texts(place: &str, content: Option<&Value>) -> Checked {
    let text = |text: &str| {
        if text.is_empty() {
            return refuse(Rule::EmptyText, format!("{place}: text content blocks must be non-empty"));
        }
        if text.trim().is_empty() {
            let problem = "text content blocks must contain non-whitespace text";
            return refuse(Rule::WhitespaceText, format!("{place}: {problem}"));
        }
        Ok(())
    };
    match content {
        // An empty `system` is the same as none.
        Some(Value::String(said)) if place != "system" || !said.is_empty() => text(said),
        Some(Value::Array(blocks)) => {
            let said = blocks
                .iter()
                .filter(|block| block["type"] == "text")
                .filter_map(|block| block["text"].as_str());
            // A mark on an empty text has an answer of its own.
            said.zip(blocks.iter().filter(|block| block["type"] == "text"))
                .filter(|(said, block)| {
                    !said.is_empty() || block.get("cache_control").is_none_or(Value::is_null)
                })
                .try_for_each(|(said, _)| text(said))
        }
        _ => Ok(()),
    }
}

/// Rules about an assistant message at the end: something for the model to go on from.
fn last(asked: &Asked<'_>) -> Checked {
    let Some((index, message)) = asked.messages.iter().enumerate().next_back() else { return Ok(()) };
    if role(message) != "assistant" {
        return Ok(());
    }
    let end = blocks(message).last();
    let kind = end.and_then(|block| block["type"].as_str()).unwrap_or_default();
    // A paused turn of a server tool is sent back as it is, with nothing behind it.
    if kind == "server_tool_use" || is_server_result(kind) {
        return Ok(());
    }
    if !asked.model.prefill {
        let text = "This model does not support assistant message prefill. \
                    The conversation must end with a user message.";
        return refuse(Rule::Prefill, text);
    }
    if kind == "thinking" || kind == "redacted_thinking" {
        let text = format!("messages.{index}: The final block in an assistant message cannot be `thinking`.");
        return refuse(Rule::FinalThinking, text);
    }
    let text = message["content"]
        .as_str()
        .or_else(|| end.and_then(|block| block["text"].as_str()))
        .unwrap_or_default();
    if text.ends_with(char::is_whitespace) {
        let text = format!("messages.{index}: final assistant content cannot end with trailing whitespace");
        return refuse(Rule::PrefillWhitespace, text);
    }
    Ok(())
}
