//! Rules about the members of the request and of its messages: which there are and of what type.

use serde_json::{Map, Value};

use super::headers::Headers;
use super::{Checked, Rule, blocks, refuse};

/// The types a member may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    String,
    Integer,
    Number,
    Bool,
    List,
    Object,
    /// A string or a list of blocks.
    Content,
    Any,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Bool => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Content => value.is_string() || value.is_array(),
            Self::Any => true,
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Bool => "boolean",
            Self::List => "list",
            Self::Object => "dictionary",
            Self::Content => "string or list",
            Self::Any => "value",
        }
    }
}

/// A member: its name, its type, and whether it must be there.
pub(super) type Member = (&'static str, Kind, bool);

/// Refuses an object with members missing, of a wrong type, or unknown (by the rule `extra`).
pub(super) fn members(path: &str, object: &Map<String, Value>, known: &[Member], extra: Rule) -> Checked {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, kind, required) in known {
        match object.get(*name) {
            None if *required => return refuse(Rule::FieldRequired, format!("{}: Field required", at(name))),
            // Leaving a member out and sending it as null are the same for everything that may be left out.
            None | Some(Value::Null) if !required => {}
            Some(value) if kind.fits(value) => {}
            _ => {
                return refuse(
                    Rule::FieldType,
                    format!("{}: Input should be a valid {}", at(name), kind.wanted()),
                );
            }
        }
    }
    match object.keys().find(|name| !known.iter().any(|(known, ..)| known == name)) {
        Some(name) => refuse(extra, format!("{}: Extra inputs are not permitted", at(name))),
        None => Ok(()),
    }
}

const TOP: &[Member] = &[
    ("model", Kind::String, true),
    ("max_tokens", Kind::Integer, true),
    ("messages", Kind::List, true),
    ("system", Kind::Content, false),
    ("tools", Kind::List, false),
    ("tool_choice", Kind::Object, false),
    ("thinking", Kind::Object, false),
    ("output_config", Kind::Object, false),
    ("cache_control", Kind::Object, false),
    ("stream", Kind::Bool, false),
    ("stop_sequences", Kind::List, false),
    ("temperature", Kind::Number, false),
    ("top_p", Kind::Number, false),
    ("top_k", Kind::Integer, false),
    ("metadata", Kind::Object, false),
    ("service_tier", Kind::String, false),
    ("container", Kind::Any, false),
    ("inference_geo", Kind::String, false),
    ("diagnostics", Kind::Object, false),
];

/// Members that exist only with a beta.
const BETA_TOP: &[(&str, Member)] = &[
    ("compact-2026-09-04", ("compaction", Kind::Object, false)),
    ("compact-2026-01-12", ("context_management", Kind::Object, false)),
    ("context-management-", ("context_management", Kind::Object, false)),
    ("fast-mode-", ("speed", Kind::String, false)),
    ("mcp-client-", ("mcp_servers", Kind::List, false)),
    ("server-side-fallback-", ("fallbacks", Kind::Any, false)),
];

const MAX_MESSAGES: usize = 100_000;

/// Refuses a request that is not put together as one, and gives back its messages.
pub(super) fn check<'a>(body: &'a Map<String, Value>, headers: &Headers) -> Checked<&'a [Value]> {
    let mut known = TOP.to_vec();
    known.extend(BETA_TOP.iter().filter(|(beta, _)| headers.beta(beta)).map(|(_, member)| *member));
    members("", body, &known, Rule::ExtraField)?;
    if let Some(config) = body.get("output_config").and_then(Value::as_object) {
        let mut known = vec![("effort", Kind::String, false), ("format", Kind::Object, false)];
        if headers.beta("task-budgets-") {
            known.push(("task_budget", Kind::Object, false));
        }
        members("output_config", config, &known, Rule::ExtraField)?;
    }
    if let Some(system) = body.get("system").and_then(Value::as_array) {
        for (index, block) in system.iter().enumerate() {
            blocks::text_only(&format!("system.{index}"), block)?;
        }
    }
    let messages = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if messages.is_empty() {
        return refuse(Rule::NoMessages, "messages: at least one message is required");
    }
    if messages.len() > MAX_MESSAGES {
        let text = format!("messages: too many messages: {} > {MAX_MESSAGES} maximum", messages.len());
        return refuse(Rule::TooManyMessages, text);
    }
    for (index, message) in messages.iter().enumerate() {
        self::message(index, message, headers)?;
    }
    Ok(messages)
}

fn message(index: usize, message: &Value, headers: &Headers) -> Checked {
    let path = format!("messages.{index}");
    let Some(object) = message.as_object() else {
        return refuse(Rule::FieldType, format!("{path}: Input should be a valid dictionary"));
    };
    let mut known = vec![("role", Kind::String, true), ("content", Kind::Content, true)];
    if headers.beta("mid-conversation-system-clear-at-") {
        known.push(("clear_at", Kind::String, false));
    }
    if headers.beta("mid-conversation-output-config-") {
        known.push(("output_config", Kind::Object, false));
    }
    members(&path, object, &known, Rule::ExtraMessageField)?;
    let role = message["role"].as_str().unwrap_or_default();
    if !["user", "assistant", "system"].contains(&role) {
        return refuse(
            Rule::UnknownRole,
            format!("{path}.role: Input should be 'user', 'assistant' or 'system'"),
        );
    }
    // What a system message may hold is a rule of its own, with a text of its own.
    if role == "system" {
        return Ok(());
    }
    for (number, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        blocks::check(&format!("{path}.content.{number}"), block, headers)?;
    }
    Ok(())
}
