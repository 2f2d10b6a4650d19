//! Rules about tool calls and their results.

use std::collections::HashSet;

use serde_json::Value;

use super::blocks::is_server_result;
use super::{Asked, Checked, Rule, refuse};
use crate::conversation::role;

pub(super) fn check(asked: &Asked<'_>) -> Checked {
    unique(asked.messages)?;
    let mut open: Vec<Call<'_>> = Vec::new();
    // Messages of one role in a row are one turn: calls collect over a whole assistant turn, results over the
    // user's.
    let mut run_over = false;
    let mut answered: HashSet<&str> = HashSet::new();
    let mut previous = "";
    for (index, message) in asked.messages.iter().enumerate() {
        let role = role(message);
        if role == "assistant" {
            if previous != "assistant" {
                all_answered(&open, &answered)?;
                open.clear();
                answered.clear();
                run_over = false;
            }
            open.extend(
                blocks(message)
                    .iter()
                    .filter(|block| block["type"] == "tool_use")
                    .map(|block| Call { index, id: id(block, "id") }),
            );
        } else if role == "system" || message["content"].is_string() {
            run_over = true;
        } else {
            for (number, block) in blocks(message).iter().enumerate() {
                if block["type"] != "tool_result" {
                    run_over = true;
                    continue;
                }
                let result = id(block, "tool_use_id");
                let path = format!("messages.{index}.content.{number}");
                if !open.iter().any(|call| call.id == result) {
                    let text = "Each `tool_result` block must have a corresponding `tool_use` block in the \
                        previous message.";
                    let text = format!(
                        "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {result}. {text}"
                    );
                    return refuse(Rule::ToolResultUnexpected, text);
                }
                if answered.contains(result) {
                    let text = "each tool_use must have a single result. Found multiple `tool_result` blocks \
                        with id";
                    return refuse(Rule::ToolResultDuplicate, format!("{path}: {text}: {result}"));
                }
                // Only the results before anything else count as answers.
                if !run_over {
                    answered.insert(result);
                }
            }
        }
        previous = role;
    }
    all_answered(&open, &answered)?;
    server_tools(asked.messages)
}

struct Call<'a> {
    index: usize,
    id: &'a str,
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn id<'a>(block: &'a Value, name: &str) -> &'a str {
    block[name].as_str().unwrap_or_default()
}

fn all_answered(open: &[Call<'_>], answered: &HashSet<&str>) -> Checked {
    let missing: Vec<&Call<'_>> = open.iter().filter(|call| !answered.contains(call.id)).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    let ids = missing.iter().map(|call| call.id).collect::<Vec<_>>().join(", ");
    let text = format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. \
         Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        first.index
    );
    refuse(Rule::ToolUseUnanswered, text)
}

fn unique(messages: &[Value]) -> Checked {
    let mut seen = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        for (number, block) in blocks(message).iter().enumerate() {
            let call = block["type"] == "tool_use" || block["type"] == "server_tool_use";
            if call && !seen.insert(id(block, "id")) {
                let text = format!("messages.{index}.content.{number}: `tool_use` ids must be unique");
                return refuse(Rule::ToolUseDuplicate, text);
            }
        }
    }
    Ok(())
}

/// A server tool's result stands in the same reply or opens the next one; only the newest calls may still
/// wait for it.
fn server_tools(messages: &[Value]) -> Checked {
    let last = messages.iter().rposition(|message| role(message) == "assistant").unwrap_or_default();
    let results: HashSet<&str> = messages
        .iter()
        .flat_map(blocks)
        .filter(|block| is_server_result(id(block, "type")))
        .map(|block| id(block, "tool_use_id"))
        .collect();
    let mut calls =
        messages[..last].iter().flat_map(blocks).filter(|block| block["type"] == "server_tool_use");
    match calls.find(|call| !results.contains(id(call, "id"))) {
        Some(call) => {
            let name = id(call, "name");
            let id = id(call, "id");
            let text = format!(
                "`{name}` tool use with id `{id}` was found without a corresponding `{name}_tool_result` \
                    block"
            );
            refuse(Rule::ServerToolUnresolved, text)
        }
        None => Ok(()),
    }
}
