//! Rules about the shape of a single content block.

use serde_json::Value;

use super::headers::Headers;
use super::shape::{Kind, Member, members};
use super::{Checked, Rule, refuse};

const MARK: Member = ("cache_control", Kind::Object, false);
const TYPE: Member = ("type", Kind::String, true);

const TEXT: &[Member] = &[TYPE, ("text", Kind::String, true), MARK, ("citations", Kind::List, false)];
const IMAGE: &[Member] = &[TYPE, ("source", Kind::Object, true), MARK];
const DOCUMENT: &[Member] = &[
    TYPE,
    ("source", Kind::Object, true),
    MARK,
    ("title", Kind::String, false),
    ("context", Kind::String, false),
    ("citations", Kind::Object, false),
];
const SEARCH_RESULT: &[Member] = &[
    TYPE,
    ("source", Kind::String, true),
    ("title", Kind::String, true),
    ("content", Kind::List, true),
    MARK,
    ("citations", Kind::Object, false),
];
const TOOL_USE: &[Member] = &[
    TYPE,
    ("id", Kind::String, true),
    ("name", Kind::String, true),
    ("input", Kind::Object, true),
    MARK,
    ("caller", Kind::Object, false),
    ("toolset_name", Kind::String, false),
];
const TOOL_RESULT: &[Member] = &[
    TYPE,
    ("tool_use_id", Kind::String, true),
    ("content", Kind::Content, false),
    ("is_error", Kind::Bool, false),
    MARK,
    ("toolset_name", Kind::String, false),
];
// A thinking block takes no cache mark: the rule about that gives its own answer, so the member is let
// through here.
const THINKING: &[Member] =
    &[TYPE, ("thinking", Kind::String, true), ("signature", Kind::String, true), MARK];
const REDACTED: &[Member] = &[TYPE, ("data", Kind::String, true), MARK];
const SERVER_RESULT: &[Member] = &[
    TYPE,
    ("tool_use_id", Kind::String, true),
    ("content", Kind::Any, true),
    MARK,
    ("caller", Kind::Object, false),
];
const COMPACTION: &[Member] = &[
    TYPE,
    ("content", Kind::Any, true),
    ("encrypted_content", Kind::Any, false),
    ("signature", Kind::Any, false),
    MARK,
];
const UPLOAD: &[Member] = &[TYPE, ("file_id", Kind::String, true), MARK];
const REFERENCE: &[Member] = &[TYPE, ("tool_name", Kind::String, true), MARK];

/// Whether a type is the result of a tool that Anthropic's servers run.
pub(super) fn is_server_result(kind: &str) -> bool {
    kind != "tool_result" && kind.ends_with("_tool_result")
}

/// Refuses a block that no message may hold.
pub(super) fn check(path: &str, block: &Value, headers: &Headers) -> Checked {
    let kind = kind(path, block)?;
    let known = match kind {
        "text" => TEXT,
        "image" => IMAGE,
        "document" => DOCUMENT,
        "search_result" => SEARCH_RESULT,
        "tool_use" | "server_tool_use" => TOOL_USE,
        "tool_result" => TOOL_RESULT,
        "thinking" => THINKING,
        "redacted_thinking" => REDACTED,
        "compaction" if headers.beta("compact-") => COMPACTION,
        "container_upload" => UPLOAD,
        kind if is_server_result(kind) => SERVER_RESULT,
        kind => return unknown(path, kind),
    };
    tagged(path, kind, block, known)?;
    match kind {
        "tool_use" | "server_tool_use" => id(path, kind, block),
        "tool_result" => {
            for (index, inner) in block["content"].as_array().into_iter().flatten().enumerate() {
                result_part(&format!("{path}.tool_result.content.{index}"), inner)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Refuses anything but a text block, as `system` wants it.
pub(super) fn text_only(path: &str, block: &Value) -> Checked {
    match kind(path, block)? {
        "text" => tagged(path, "text", block, TEXT),
        other => {
            refuse(Rule::UnknownBlockType, format!("{path}.type: Input should be 'text', not '{other}'"))
        }
    }
}

fn result_part(path: &str, block: &Value) -> Checked {
    let kind = kind(path, block)?;
    let known = match kind {
        "text" => TEXT,
        "image" => IMAGE,
        "document" => DOCUMENT,
        "search_result" => SEARCH_RESULT,
        "tool_reference" => REFERENCE,
        other => return unknown(path, other),
    };
    tagged(path, kind, block, known)
}

fn kind<'a>(path: &str, block: &'a Value) -> Checked<&'a str> {
    if !block.is_object() {
        return refuse(Rule::FieldType, format!("{path}: Input should be a valid dictionary"));
    }
    match block.get("type").map(Value::as_str) {
        Some(Some(kind)) => Ok(kind),
        Some(None) => refuse(Rule::FieldType, format!("{path}.type: Input should be a valid string")),
        None => refuse(Rule::FieldRequired, format!("{path}.type: Field required")),
    }
}

fn tagged(path: &str, kind: &str, block: &Value, known: &[Member]) -> Checked {
    let Some(object) = block.as_object() else { return Ok(()) };
    members(&format!("{path}.{kind}"), object, known, Rule::ExtraBlockField)
}

fn unknown(path: &str, kind: &str) -> Checked {
    let text =
        format!("{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags");
    refuse(Rule::UnknownBlockType, text)
}

fn id(path: &str, kind: &str, block: &Value) -> Checked {
    let id = block["id"].as_str().unwrap_or_default();
    let (pattern, rest) = match kind {
        "server_tool_use" => ("^srvtoolu_[a-zA-Z0-9_]+$", id.strip_prefix("srvtoolu_").unwrap_or_default()),
        _ => ("^[a-zA-Z0-9_-]+$", id),
    };
    let dash = kind == "tool_use";
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (dash && byte == b'-');
    if rest.is_empty() || !rest.bytes().all(fits) {
        return refuse(Rule::ToolUseId, format!("{path}.{kind}.id: String should match pattern '{pattern}'"));
    }
    Ok(())
}
