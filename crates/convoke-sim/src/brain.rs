//! What decides the replies: a trait with one function, and the reply it gives. Nothing here knows HTTP.

use std::time::Duration;

use serde_json::Value;

use crate::conversation::Context;
use crate::hash;

/// Decides what is replied to a legal request. The reply must be a pure function of the request, so that a
/// request that is sent again gets the same reply.
pub trait Brain: Send + Sync {
    /// The reply to this request, which stands at this place.
    fn reply(&self, request: &Value, context: &Context) -> Scripted;
}

/// One reply. It is cut at the request's `max_tokens` by the simulator, whatever it says itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scripted {
    /// The content blocks as the API would return them. A `tool_use` block may carry `input_json` (a string,
    /// valid JSON or not) in place of `input`; it is streamed as it is.
    pub content: Vec<Value>,
    /// The stop reason: `end_turn`, `tool_use`, `refusal`, …
    pub stop_reason: String,
    /// The stop details of a refusal.
    pub stop_details: Option<Value>,
    /// How long the model thinks before its first event.
    pub delay: Duration,
    /// The reply uses all of the request's `max_tokens`, as one does that thinks without showing it: what its
    /// content leaves of them is billed and reported as output although nothing of it is sent.
    pub fills_max_tokens: bool,
    /// Set when there is no reply: the request is refused with status 400 and this text, and the refusal is
    /// recorded.
    pub problem: Option<String>,
}

impl Scripted {
    /// A reply with these blocks that ends as such a reply ends: for its tools if it calls some, else its
    /// turn.
    pub fn new(content: Vec<Value>) -> Self {
        let calls = content.iter().any(|block| block["type"] == "tool_use");
        let stop_reason = if calls { "tool_use" } else { "end_turn" }.to_owned();
        Self { content, stop_reason, ..Self::default() }
    }

    /// No reply: the brain does not know what to say to this request.
    pub fn problem(text: impl Into<String>) -> Self {
        Self { problem: Some(text.into()), ..Self::default() }
    }
}

/// The id of a tool call: always the same for the same place, different for every call of a conversation.
/// `path` tells apart several replies that may stand at one position.
pub fn tool_use_id(context: &Context, path: &str, index: usize) -> String {
    let position = context.position.to_string();
    format!(
        "toolu_{}",
        hash::hex(&["tool_use", &context.conversation, &position, path, &index.to_string()], 24)
    )
}
