//! A reply as it goes over the wire: measured, cut at `max_tokens`, as one JSON document or as a sequence of events.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Value, json};

use crate::brain::Scripted;
use crate::conversation::Context;
use crate::hash;
use crate::usage::{self, Tokenizer};

/// A reply that has been measured.
#[derive(Debug)]
pub(crate) struct Message {
    id: String,
    model: Value,
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop_reason: String,
    stop_details: Option<Value>,
    input_tokens: u64,
    output_tokens: u64,
}

/// One content block and how it is streamed.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    Text(String),
    Thinking {
        thinking: String,
        signature: String,
    },
    /// `start` is the block with an empty input, `json` the text of its input.
    Tool {
        start: Value,
        json: String,
    },
    /// A block that comes whole in its first event.
    Whole(Value),
}

/// One event of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Event(pub(crate) Value);

impl Event {
    /// The bytes of the event, with its name in front as the API sends it.
    pub(crate) fn frame(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.0["type"].as_str().unwrap_or("unknown"), self.0)
    }
}

/// Deltas carry at least this many characters, and no block is split into more than `MOST_DELTAS`.
const SHORTEST_DELTA: usize = 16;
const MOST_DELTAS: usize = 48;

impl Message {
    pub(crate) fn new(scripted: Scripted, request: &Value, context: &Context) -> Self {
        let tokenizer = Tokenizer::for_conversation(&context.conversation);
        let max_tokens = request["max_tokens"].as_u64().unwrap_or_default();
        let (mut blocks, mut stop_reason) = (Vec::new(), scripted.stop_reason);
        let mut room = tokenizer.bytes(max_tokens);
        let mut written = 0;
        for block in scripted.content.iter().map(Block::new) {
            let weight = block.weight();
            if weight > room {
                written += room;
                blocks.extend(block.cut(room));
                stop_reason = "max_tokens".to_owned();
                break;
            }
            room -= weight;
            written += weight;
            blocks.push(block);
        }
        let position = context.position.to_string();
        Self {
            id: format!("msg_{}", hash::hex(&["message", &context.conversation, &position], 24)),
            model: request["model"].clone(),
            blocks,
            stop_reason,
            stop_details: scripted.stop_details,
            input_tokens: tokenizer.prompt(request),
            output_tokens: tokenizer.tokens(written).clamp(1, max_tokens.max(1)),
        }
    }

    /// The reply to a request that did not ask for a stream.
    pub(crate) fn whole(&self) -> Value {
        let mut message = self.envelope();
        message["content"] = self.blocks.iter().map(Block::whole).collect();
        message["stop_reason"] = json!(self.stop_reason);
        if let Some(details) = &self.stop_details {
            message["stop_details"] = details.clone();
        }
        message["usage"]["output_tokens"] = json!(self.output_tokens);
        message
    }

    /// The reply as a stream.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = vec![Event(json!({"type": "message_start", "message": self.envelope()}))];
        for (index, block) in self.blocks.iter().enumerate() {
            events.push(Event(json!({"type": "content_block_start", "index": index, "content_block": block.start()})));
            if index == 0 {
                events.push(ping());
            }
            for delta in block.deltas() {
                events.push(Event(json!({"type": "content_block_delta", "index": index, "delta": delta})));
            }
            events.push(Event(json!({"type": "content_block_stop", "index": index})));
        }
        if self.blocks.is_empty() {
            events.push(ping());
        }
        let mut delta = json!({"stop_reason": self.stop_reason, "stop_sequence": null});
        if let Some(details) = &self.stop_details {
            delta["stop_details"] = details.clone();
        }
        let usage = usage::at_end(self.input_tokens, self.output_tokens);
        events.push(Event(json!({"type": "message_delta", "delta": delta, "usage": usage})));
        events.push(Event(json!({"type": "message_stop"})));
        events
    }

    fn envelope(&self) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage::at_start(self.input_tokens),
        })
    }
}

fn ping() -> Event {
    Event(json!({"type": "ping"}))
}

impl Block {
    fn new(block: &Value) -> Self {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            // A text with members of its own, such as citations, cannot be split without losing them.
            Some("text") if block.as_object().is_some_and(|members| members.len() == 2) => Self::Text(text("text")),
            Some("thinking") => Self::Thinking { thinking: text("thinking"), signature: text("signature") },
            Some("tool_use" | "server_tool_use") => {
                let mut start = block.clone();
                if let Some(members) = start.as_object_mut() {
                    members.shift_remove("input_json");
                    members.insert("input".to_owned(), json!({}));
                }
                let json = block["input_json"].as_str().map_or_else(|| spoken(&block["input"]), str::to_owned);
                Self::Tool { start, json }
            }
            _ => Self::Whole(block.clone()),
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Thinking { thinking, .. } => thinking.len(),
            Self::Tool { start, json } => json.len() + start["name"].as_str().unwrap_or_default().len(),
            Self::Whole(block) => block.to_string().len(),
        }
    }

    /// What is left of the block within this many bytes; nothing if not even its beginning fits.
    fn cut(self, room: usize) -> Option<Self> {
        let short = |text: &str| text[..text.floor_char_boundary(room)].to_owned();
        match self {
            Self::Text(text) => Some(short(&text)).filter(|text| !text.trim().is_empty()).map(Self::Text),
            Self::Thinking { thinking, signature } => Some(Self::Thinking { thinking: short(&thinking), signature }),
            Self::Tool { start, json } => (room > 0).then(|| Self::Tool { start, json: short(&json) }),
            Self::Whole(_) => None,
        }
    }

    fn start(&self) -> Value {
        match self {
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::Tool { start, .. } => start.clone(),
            Self::Whole(block) => block.clone(),
        }
    }

    fn whole(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Thinking { thinking, signature } => {
                json!({"type": "thinking", "thinking": thinking, "signature": signature})
            }
            Self::Tool { start, json } => {
                let mut block = start.clone();
                block["input"] = serde_json::from_str(json).unwrap_or_else(|_| json!({}));
                block
            }
            Self::Whole(block) => block.clone(),
        }
    }

    fn deltas(&self) -> Vec<Value> {
        match self {
            Self::Text(text) => pieces(text).map(|text| json!({"type": "text_delta", "text": text})).collect(),
            Self::Thinking { thinking, signature } => {
                let thoughts = pieces(thinking).map(|text| json!({"type": "thinking_delta", "thinking": text}));
                thoughts.chain([json!({"type": "signature_delta", "signature": signature})]).collect()
            }
            Self::Tool { json, .. } => {
                let first = json!({"type": "input_json_delta", "partial_json": ""});
                let rest = pieces(json).map(|text| json!({"type": "input_json_delta", "partial_json": text}));
                [first].into_iter().chain(rest).collect()
            }
            Self::Whole(_) => Vec::new(),
        }
    }
}

/// A text in pieces that end anywhere between two characters, as a model's tokens do.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let size = (text.len() / MOST_DELTAS).max(SHORTEST_DELTA);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        rest = after;
        Some(piece)
    })
}

/// An input as a model writes it: with a space after commas and colons, so that a client which writes it anew instead
/// of echoing it is caught. No arguments are no text at all.
fn spoken(input: &Value) -> String {
    if input.as_object().is_none_or(serde_json::Map::is_empty) {
        return String::new();
    }
    let mut bytes = Vec::new();
    // Writing a JSON value into memory cannot fail.
    let _ = input.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced));
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
