//! Rules about system messages inside a conversation: on which models, where, and what they may hold.

use serde_json::Value;

use super::blocks::{is_server_result, text_only};
use super::{Asked, Checked, Rule, refuse};
use crate::conversation::role;

/// Newer servers end their placement errors with this.
const HINT: &str = "; the directive-only form (content: [] with output_config) is accepted at any position";

/// The models that take an effort inside the conversation. The model table does not say, because the client
/// does not use it.
const TURN_EFFORT: &[&str] = &[
    "claude-fable-5-1",
    "claude-mythos-5-1",
    "claude-opus-5-5",
    "claude-opus-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
];

pub(super) fn check(asked: &Asked<'_>) -> Checked {
    for (index, message) in asked.messages.iter().enumerate() {
        if role(message) == "system" {
            content(asked, index, message)?;
        } else if message.get("clear_at").is_some() {
            return refuse(Rule::ClearAtRole, "clear_at is only permitted on role 'system' messages");
        }
    }
    placement(asked.messages)
}

fn content(asked: &Asked<'_>, index: usize, message: &Value) -> Checked {
    if !asked.model.system_role {
        return refuse(Rule::SystemUnsupported, "role 'system' is not supported on this model");
    }
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, block) in blocks.iter().enumerate() {
        if block["type"] != "text" {
            let text = "role 'system' supports text, tool_addition, and tool_removal blocks only";
            return refuse(Rule::SystemBlocks, format!("messages.{index}: {text}"));
        }
        text_only(&format!("messages.{index}.content.{number}"), block)?;
    }
    let directive = message.get("output_config");
    if is_empty(message) && directive.is_none() {
        let text = format!("messages.{index}: system content must contain at least one block");
        return refuse(Rule::SystemEmpty, text);
    }
    if directive.is_some() && !TURN_EFFORT.contains(&asked.model.id.as_str()) {
        let text = "output_config.effort requires a model that supports per-turn effort; this model does not";
        return refuse(Rule::TurnEffort, text);
    }
    match message.get("clear_at").and_then(Value::as_str) {
        None | Some("never") => Ok(()),
        Some("next_user_message") => {
            let marked = blocks.iter().any(|block| block.get("cache_control").is_some());
            if marked || directive.is_some() {
                let what = if marked { "cache_control" } else { "output_config" };
                let text =
                    format!("messages.{index}: {what} is not permitted on a turn-scoped system message");
                return refuse(Rule::ClearAtAlone, text);
            }
            Ok(())
        }
        Some(_) => {
            let text = format!("messages.{index}.clear_at: Input should be 'next_user_message' or 'never'");
            refuse(Rule::ClearAtValue, text)
        }
    }
}

fn is_empty(message: &Value) -> bool {
    match &message["content"] {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        _ => true,
    }
}

/// System messages that follow each other are judged as one section; those without content have no place to
/// keep.
fn placement(messages: &[Value]) -> Checked {
    let mut start = 0;
    for section in messages.chunk_by(|one, next| (role(one) == "system") == (role(next) == "system")) {
        let begin = start;
        let end = start + section.len();
        start = end;
        let spoken = |index: &usize| !is_empty(&messages[*index]);
        let Some(first) = (begin..end).find(spoken).filter(|_| role(&section[0]) == "system") else {
            continue;
        };
        let last = (begin..end).rfind(spoken).unwrap_or(first);
        if begin == 0 {
            let text = format!(
                "messages.{first}: use the top-level 'system' parameter for the initial system prompt{HINT}"
            );
            return refuse(Rule::SystemFirst, text);
        }
        if !may_precede(&messages[begin - 1]) {
            let rule = "role 'system' must follow a 'user' message or an 'assistant' message ending in a \
                server tool result";
            return refuse(Rule::SystemPredecessor, format!("messages.{first}: {rule}{HINT}"));
        }
        if messages.get(end).is_some_and(|next| role(next) != "assistant") {
            let rule = "role 'system' must precede an 'assistant' message or end the array";
            return refuse(Rule::SystemSuccessor, format!("messages.{last}: {rule}{HINT}"));
        }
    }
    Ok(())
}

fn may_precede(message: &Value) -> bool {
    let last = message["content"].as_array().and_then(|blocks| blocks.last());
    let kind = last.and_then(|block| block["type"].as_str()).unwrap_or_default();
    role(message) == "user" || is_server_result(kind)
}
