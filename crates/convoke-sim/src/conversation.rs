//! Which conversation a request belongs to and how far it has come: what scripts, faults and holds are keyed
//! by.

use serde_json::Value;

use crate::hash;

/// Where a request stands. It is read from the request alone, so that a repeated request stands at the same
/// place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The name in a `[conversation: NAME]` marker of the first user message, else a hash of that message and
    /// `system`.
    pub conversation: String,
    /// How many assistant messages the request holds.
    pub position: usize,
}

/// A [`Context`] and the other names its conversation goes by.
#[derive(Debug, Clone)]
pub(crate) struct ConversationNames {
    pub(crate) context: Context,
    first_lines: Vec<String>,
    /// The texts of the first user message, joined.
    opening: String,
}

const MARKER: &str = "[conversation:";

impl ConversationNames {
    pub(crate) fn of(body: &Value) -> Self {
        let messages = messages(body);
        let first =
            messages.iter().find(|message| role(message) == "user").map(|message| &message["content"]);
        let texts = first.map(texts).unwrap_or_default();
        let marked = texts.iter().find_map(|text| marker(text));
        let conversation = marked.unwrap_or_else(|| {
            let said = texts.join("\n");
            let system = body.get("system").map(texts_of).unwrap_or_default();
            format!("c_{}", hash::hex(&["conversation", &said, &system], 16))
        });
        let position = messages.iter().filter(|message| role(message) == "assistant").count();
        let first_lines =
            texts.iter().filter_map(|text| text.lines().next()).map(|line| line.trim().to_owned()).collect();
        Self { context: Context { conversation, position }, first_lines, opening: texts.join("\n") }
    }

    /// Whether the first user message contains this text.
    pub(crate) fn opening_contains(&self, text: &str) -> bool {
        self.opening.contains(text)
    }

    /// Whether the conversation is called this: by its marker or hash, or by the first line of a text it
    /// began with.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.context.conversation == name || self.first_lines.iter().any(|line| line == name)
    }
}

/// The messages of a body; none if it has none.
pub(crate) fn messages(body: &Value) -> &[Value] {
    body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a content: the string itself, or its text blocks.
pub(crate) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// What the world said since the last reply: the texts of its tool results, or if there are none its plain
/// texts.
pub(crate) fn latest(body: &Value) -> Vec<String> {
    let messages = messages(body);
    let after =
        messages.iter().rposition(|message| role(message) == "assistant").map_or(0, |index| index + 1);
    let users: Vec<&Value> = messages[after..].iter().filter(|message| role(message) == "user").collect();
    let results: Vec<String> = users
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .map(|block| texts_of(&block["content"]))
        .collect();
    if results.is_empty() {
        users.iter().map(|message| texts_of(&message["content"])).collect()
    } else {
        results
    }
}

fn texts_of(content: &Value) -> String {
    texts(content).join("\n")
}

fn marker(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(MARKER)?;
    let (name, _) = rest.split_once(']')?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(text: &str) -> ConversationNames {
        ConversationNames::of(
            &json!({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "x"}]}),
        )
    }

    #[test]
    fn a_marker_names_the_conversation_and_replies_count_its_position() {
        let place = place("Do it.\n[conversation: alpha] now");
        assert_eq!(place.context, Context { conversation: "alpha".to_owned(), position: 1 });
        assert!(place.is("alpha") && place.is("Do it."));
        assert!(!place.is("now"));
    }

    #[test]
    fn without_a_marker_equal_beginnings_are_one_conversation() {
        assert_eq!(place("one").context, place("one").context);
        assert_ne!(place("one").context, place("two").context);
    }
}
