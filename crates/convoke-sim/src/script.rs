//! Replies written down beforehand, keyed by conversation and position.

mod file;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

pub use self::file::ScriptError;
use crate::brain::{Brain, Scripted, tool_use_id};
use crate::conversation::{Context, ConversationNames, latest};
use crate::fault::Fault;
use crate::hash;

/// The name of the conversation that stands for every one that has no replies of its own.
const ANY: &str = "*";

/// A [`Brain`] that replies from lists: the reply at the position a conversation has reached.
#[derive(Debug, Clone, Default)]
pub struct Script {
    conversations: BTreeMap<String, Vec<Reply>>,
    /// Faults the simulator begins with.
    pub(crate) faults: Vec<Fault>,
}

impl Script {
    /// A script without replies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the replies of a conversation. A conversation is called by its `[conversation: NAME]` marker or
    /// by the first line of a text in its first message; `*` stands for all that are not named.
    #[must_use]
    pub fn conversation(mut self, name: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.conversations.insert(name.to_owned(), replies.into_iter().collect());
        self
    }

    /// Reads a script from its JSON form, for example:
    ///
    /// ```
    /// let script = convoke_sim::Script::from_json(r#"{
    ///   "conversations": {
    ///     "*": [
    ///       {"says": "Let me look.", "calls": [{"tool": "bash", "input": {"command": "ls"}}]},
    ///       {"says": "Done.", "when": [{"last_contains": "interrupted", "says": "I do not know what happened."}]}
    ///     ]
    ///   },
    ///   "faults": [{"kind": "overloaded529", "count": 2}, {"kind": {"cut_after": 4}, "position": 1}]
    /// }"#);
    /// assert!(script.is_ok());
    /// ```
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        file::read(text)
    }

    fn replies(&self, place: &ConversationNames) -> Option<&[Reply]> {
        let own = self.conversations.iter().find(|(name, _)| place.is(name)).map(|(_, replies)| replies);
        own.or_else(|| self.conversations.get(ANY)).map(Vec::as_slice)
    }
}

impl Brain for Script {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let Context { conversation, position } = context;
        let Some(replies) = self.replies(&ConversationNames::of(request)) else {
            return Scripted::problem(format!("simulator: the script has no conversation `{conversation}`"));
        };
        let Some(reply) = replies.get(*position) else {
            let count = replies.len();
            let text = format!(
                "simulator: the script of `{conversation}` has {count} replies, none for position {position}"
            );
            return Scripted::problem(text);
        };
        let max_tokens = request["max_tokens"].as_u64().unwrap_or(u64::MAX);
        reply.choose(&latest(request), max_tokens, context)
    }
}

/// One reply of a [`Script`], with what it depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    scripted: Scripted,
    cut_below: Option<(u64, String)>,
    alternatives: Vec<(String, Reply)>,
}

impl Reply {
    fn new(scripted: Scripted) -> Self {
        Self { scripted, cut_below: None, alternatives: Vec::new() }
    }

    /// Replies this instead when a tool result since the last reply (or, without results, the user's text)
    /// contains `needle`. The first alternative that fits is taken.
    #[must_use]
    pub fn when_last_contains(mut self, needle: &str, reply: Reply) -> Self {
        self.alternatives.push((needle.to_owned(), reply));
        self
    }

    /// Replies `partial`, cut with stop reason `max_tokens`, to a request whose `max_tokens` is below
    /// `limit`.
    #[must_use]
    pub fn cut_below(mut self, limit: u64, partial: &str) -> Self {
        self.cut_below = Some((limit, partial.to_owned()));
        self
    }

    /// Puts a text before everything else, such as the sentence before a tool call.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        self.scripted.content.insert(0, text_block(text));
        self
    }

    /// Puts a thinking block before everything else; the simulator signs it.
    #[must_use]
    pub fn thinking(mut self, text: &str) -> Self {
        self.scripted.content.insert(0, json!({"type": "thinking", "thinking": text}));
        self
    }

    /// Waits this long before the first event.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.scripted.delay = delay;
        self
    }

    /// Uses all of the request's `max_tokens`, however little it says: the rest was thought and not shown.
    /// How the reply stops does not change.
    #[must_use]
    pub fn fills_max_tokens(mut self) -> Self {
        self.scripted.fills_max_tokens = true;
        self
    }

    fn choose(&self, latest: &[String], max_tokens: u64, context: &Context) -> Scripted {
        let mut reply = self;
        let mut path = String::new();
        while let Some(index) =
            reply.alternatives.iter().position(|(needle, _)| latest.iter().any(|text| text.contains(needle)))
        {
            path.push_str(&format!("/{index}"));
            reply = &reply.alternatives[index].1;
        }
        let mut scripted = match &reply.cut_below {
            Some((limit, partial)) if max_tokens < *limit => cut(partial),
            _ => reply.scripted.clone(),
        };
        for (index, block) in scripted.content.iter_mut().enumerate() {
            complete(block, index, &path, context);
        }
        scripted
    }
}

/// Replies with a text and ends the turn.
pub fn says(text: &str) -> Reply {
    Reply::new(Scripted::new(vec![text_block(text)]))
}

/// Calls one tool.
pub fn calls(tool: &str, input: Value) -> Reply {
    calls_many([(tool, input)])
}

/// Calls several tools in one reply.
pub fn calls_many<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Reply {
    let blocks =
        calls.into_iter().map(|(tool, input)| json!({"type": "tool_use", "name": tool, "input": input}));
    Reply::new(Scripted::new(blocks.collect()))
}

/// Calls a tool with this text as its input, which need not be JSON.
pub fn calls_raw(tool: &str, input_json: &str) -> Reply {
    Reply::new(Scripted::new(vec![json!({"type": "tool_use", "name": tool, "input_json": input_json})]))
}

/// Refuses, with this explanation and no content.
pub fn refuses(explanation: &str) -> Reply {
    let stop_details = Some(json!({"type": "refusal", "category": null, "explanation": explanation}));
    Reply::new(Scripted { stop_reason: "refusal".to_owned(), stop_details, ..Scripted::default() })
}

/// Says the beginning of a text and stops with `max_tokens`, however much room there is.
pub fn cut_at_max_tokens(partial: &str) -> Reply {
    Reply::new(cut(partial))
}

/// Ends the turn without any content.
pub fn empty() -> Reply {
    Reply::new(Scripted::new(Vec::new()))
}

/// Replies exactly this; only missing ids and signatures are filled in.
pub fn raw(scripted: Scripted) -> Reply {
    Reply::new(scripted)
}

fn cut(partial: &str) -> Scripted {
    Scripted { stop_reason: "max_tokens".to_owned(), ..Scripted::new(vec![text_block(partial)]) }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Fills in what a script need not say: the id of a tool call and the signature of a thinking block.
fn complete(block: &mut Value, index: usize, path: &str, context: &Context) {
    let Some(members) = block.as_object_mut() else { return };
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "tool_use" && !members.contains_key("id") {
        // The id stands second, where the API puts it.
        members.shift_insert(1, "id".to_owned(), tool_use_id(context, path, index).into());
    }
    if kind == "thinking" && !members.contains_key("signature") {
        let position = context.position.to_string();
        let signature =
            hash::hex(&["signature", &context.conversation, &position, path, &index.to_string()], 64);
        members.insert("signature".to_owned(), signature.into());
    }
}

#[cfg(test)]
mod tests;
