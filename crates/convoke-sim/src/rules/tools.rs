//! Rules about the declared tools and about `tool_choice`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::shape::{Kind, Member, members};
use super::{Asked, Checked, Rule, refuse};

/// Tools that Anthropic defines and the client runs: type, name, further members.
const TYPED: &[(&str, &str, &[Member])] = &[
    ("bash_20250124", "bash", &[]),
    ("text_editor_20250728", "str_replace_based_edit_tool", &[("max_characters", Kind::Integer, false)]),
    ("memory_20250818", "memory", &[]),
];

/// Beginnings of the types of tools that Anthropic runs itself; their members are not looked at.
const SERVER_TYPES: &[&str] = &["web_search_20", "web_fetch_20", "code_execution_20", "tool_search_tool_"];

const COMMON: &[Member] = &[
    ("type", Kind::String, false),
    ("name", Kind::String, true),
    ("cache_control", Kind::Object, false),
    ("strict", Kind::Bool, false),
    ("defer_loading", Kind::Bool, false),
    ("allowed_callers", Kind::List, false),
    ("input_examples", Kind::List, false),
];

const CUSTOM: &[Member] = &[
    ("description", Kind::String, false),
    ("input_schema", Kind::Object, true),
    ("eager_input_streaming", Kind::Bool, false),
];

const MAX_NAME: usize = 128;
const MAX_STRICT: usize = 20;

pub(super) fn check(asked: &Asked<'_>) -> Checked {
    let tools = asked.member("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let Some(object) = tool.as_object() else {
            return refuse(Rule::FieldType, format!("tools.{index}: Input should be a valid dictionary"));
        };
        declaration(index, object)?;
        if !names.insert(name(tool)) {
            return refuse(Rule::ToolNamesUnique, "tools: Tool names must be unique.");
        }
        if tool["defer_loading"] == true && tool.get("cache_control").is_some_and(|mark| !mark.is_null()) {
            let text =
                format!("Tool '{}' cannot have both defer_loading=true and cache_control set.", name(tool));
            return refuse(Rule::DeferredMark, text);
        }
    }
    let strict = tools.iter().filter(|tool| tool["strict"] == true).count();
    if strict > MAX_STRICT {
        let text = format!(
            "Schema is too complex for compilation. Found {strict} strict tools, at most {MAX_STRICT} are \
                allowed."
        );
        return refuse(Rule::StrictCount, text);
    }
    choice(asked, &names)
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap_or_default()
}

fn declaration(index: usize, tool: &Map<String, Value>) -> Checked {
    let kind = tool.get("type").and_then(Value::as_str).unwrap_or("custom");
    if kind == "custom" {
        return custom(&format!("tools.{index}.custom"), tool);
    }
    if SERVER_TYPES.iter().any(|beginning| kind.starts_with(beginning)) {
        return Ok(());
    }
    let Some((_, name, own)) = TYPED.iter().find(|(known, ..)| *known == kind) else {
        let text = format!(
            "tools.{index}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        );
        return refuse(Rule::ToolType, text);
    };
    let path = format!("tools.{index}.{kind}");
    members(&path, tool, &[COMMON, own].concat(), Rule::ExtraToolField)?;
    if tool["name"] != *name {
        return refuse(Rule::TypedToolName, format!("{path}.name: Input should be '{name}'"));
    }
    Ok(())
}

fn custom(path: &str, tool: &Map<String, Value>) -> Checked {
    members(path, tool, &[COMMON, CUSTOM].concat(), Rule::ExtraToolField)?;
    let name = tool["name"].as_str().unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
        let text = format!("{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'");
        return refuse(Rule::ToolName, text);
    }
    let schema = &tool["input_schema"];
    match schema.get("type") {
        None => return refuse(Rule::SchemaRoot, format!("{path}.input_schema.type: Field required")),
        Some(kind) if kind != "object" => {
            return refuse(Rule::SchemaRoot, format!("{path}.input_schema.type: Input should be 'object'"));
        }
        Some(_) => {}
    }
    if ["anyOf", "oneOf", "allOf"].iter().any(|choice| schema.get(choice).is_some()) {
        let text = format!(
            "{path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        );
        return refuse(Rule::SchemaUnion, text);
    }
    if tool.get("strict") == Some(&Value::Bool(true)) {
        closed(path, schema)?;
    }
    Ok(())
}

/// Refuses a schema in which some object may have further properties.
pub(super) fn closed(path: &str, schema: &Value) -> Checked {
    match schema {
        Value::Object(members) => {
            if schema["type"] == "object" && schema["additionalProperties"] != false {
                let text = "For 'object' type, 'additionalProperties' must be explicitly set to false";
                return refuse(Rule::StrictSchema, format!("{path}: {text}"));
            }
            if let Some((kind, name)) = unsupported(schema) {
                let text = format!("For '{kind}' type, property '{name}' is not supported");
                return refuse(Rule::StrictSchema, format!("{path}: {text}"));
            }
            members.values().try_for_each(|member| closed(path, member))
        }
        Value::Array(items) => items.iter().try_for_each(|item| closed(path, item)),
        _ => Ok(()),
    }
}

/// The bound in a schema that a grammar cannot keep, and the type it stands on.
fn unsupported(schema: &Value) -> Option<(&str, &str)> {
    const BOUNDS: &[(&str, &[&str])] = &[
        ("integer", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
        ("string", &["minLength", "maxLength"]),
    ];
    let kind = schema.get("type")?.as_str()?;
    if kind == "array" && schema.get("minItems").and_then(Value::as_u64).is_some_and(|least| least > 1) {
        return Some((kind, "minItems"));
    }
    let (_, names) = BOUNDS.iter().find(|(known, _)| *known == kind)?;
    names.iter().find(|name| schema.get(**name).is_some()).map(|name| (kind, *name))
}

fn choice(asked: &Asked<'_>, names: &HashSet<&str>) -> Checked {
    let Some(choice) = asked.member("tool_choice") else { return Ok(()) };
    if names.is_empty() {
        return refuse(Rule::ChoiceWithoutTools, "tool_choice may only be specified while providing tools.");
    }
    let kind = choice["type"].as_str().unwrap_or_default();
    let parallel = ("disable_parallel_tool_use", Kind::Bool, false);
    let known: &[Member] = match kind {
        "auto" | "any" => &[("type", Kind::String, true), parallel],
        "none" => &[("type", Kind::String, true)],
        "tool" => &[("type", Kind::String, true), ("name", Kind::String, true), parallel],
        _ => {
            let text = format!(
                "tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: \
                 'auto', 'any', 'tool', 'none'"
            );
            return refuse(Rule::ChoiceType, text);
        }
    };
    if let Some(object) = choice.as_object() {
        members(&format!("tool_choice.{kind}"), object, known, Rule::ExtraToolField)?;
    }
    if kind != "any" && kind != "tool" {
        return Ok(());
    }
    if !asked.model.forced_tool_choice && asked.endpoint.is_anthropics() {
        let text = "tool_choice: type \"tool\" and \"any\" are not supported for this model.";
        return refuse(Rule::ForcedChoice, text);
    }
    if asked.thinking_type() == Some("enabled") {
        return refuse(Rule::ForcedThinking, "Thinking may not be enabled when tool_choice forces tool use.");
    }
    let wanted = choice["name"].as_str().unwrap_or_default();
    if kind == "tool" && !names.contains(wanted) {
        return refuse(Rule::ChoiceUnknownTool, format!("Tool '{wanted}' not found in provided tools"));
    }
    Ok(())
}
