//! What a generic server refuses that Anthropic's would take.

use serde_json::{Map, Value};

use super::{Checked, Rule, refuse};
use crate::conversation::role;

/// What a gateway refuses that knows neither cache marks nor output configuration.
pub(super) fn check_two(body: &Map<String, Value>) -> Checked {
    if body.contains_key("output_config") {
        return refuse(Rule::GenericOutputConfig, "output_config: Extra inputs are not permitted");
    }
    marks(body)
}

/// A request without what a gateway leaves out of it.
pub(super) fn dropped(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(dropped).collect(),
        Value::Object(members) => {
            let kept = |name: &str| !["cache_control", "thinking", "output_config"].contains(&name);
            let kept = members.iter().filter(|(name, value)| kept(name) || value.is_string());
            Value::Object(kept.map(|(name, value)| (name.clone(), dropped(value))).collect())
        }
        other => other.clone(),
    }
}

pub(super) fn check(body: &Map<String, Value>) -> Checked {
    for (name, rule) in [("thinking", Rule::GenericThinking), ("output_config", Rule::GenericOutputConfig)] {
        if body.contains_key(name) {
            return refuse(rule, format!("{name}: Extra inputs are not permitted"));
        }
    }
    let messages = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let Some(index) = messages.iter().position(|message| !["user", "assistant"].contains(&role(message))) {
        return refuse(
            Rule::GenericRole,
            format!("messages.{index}.role: Input should be 'user' or 'assistant'"),
        );
    }
    marks(body)?;
    for (index, tool) in body.get("tools").and_then(Value::as_array).into_iter().flatten().enumerate() {
        if !tool["input_schema"].is_object() {
            return refuse(Rule::GenericTool, format!("tools.{index}.input_schema: Field required"));
        }
    }
    Ok(())
}

fn marks(body: &Map<String, Value>) -> Checked {
    if body.contains_key("cache_control") {
        return mark("");
    }
    for part in ["tools", "system"] {
        blocks(part, body.get(part))?;
    }
    let messages = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, message) in messages.iter().enumerate() {
        blocks(&format!("messages.{index}.content"), message.get("content"))?;
    }
    Ok(())
}

fn blocks(path: &str, list: Option<&Value>) -> Checked {
    for (index, block) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = format!("{path}.{index}.");
        if block.get("cache_control").is_some() {
            return mark(&path);
        }
        blocks(&format!("{path}content"), block.get("content"))?;
    }
    Ok(())
}

fn mark(path: &str) -> Checked {
    refuse(Rule::GenericMark, format!("{path}cache_control: Extra inputs are not permitted"))
}
