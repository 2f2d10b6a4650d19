//! A reply as it goes over the wire: measured, cut at `max_tokens`, as one JSON document or as a sequence of
//! events.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Value, json};

use crate::accounts::{Tokenizer, Usage};
use crate::brain::Scripted;
use crate::conversation::Context;
use crate::hash;

/// A reply that has been measured.
#[derive(Debug)]
pub(crate) struct Message {
    id: String,
    model: Value,
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop_reason: String,
    stop_details: Option<Value>,
    tokenizer: Tokenizer,
    /// The usage of the whole reply.
    pub(crate) usage: Usage,
    /// The part of the output that was thought and is not shown.
    hidden_tokens: u64,
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
pub(crate) struct Event {
    body: Value,
    /// The output tokens that had to be generated for the stream to come this far.
    pub(crate) generated: u64,
}

impl Event {
    /// An event that needs no output of its own.
    pub(crate) fn new(body: Value) -> Self {
        Self { body, generated: 0 }
    }

    /// The bytes of the event, with its name in front as the API sends it.
    pub(crate) fn frame(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.body["type"].as_str().unwrap_or("unknown"), self.body)
    }
}

/// Deltas carry at least this many characters, and no block is split into more than `MOST_DELTAS`.
const SHORTEST_DELTA: usize = 16;
const MOST_DELTAS: usize = 48;

impl Message {
    /// The reply to a request with this input.
    pub(crate) fn new(scripted: Scripted, request: &Value, context: &Context, input: Usage) -> Self {
        let tokenizer = Tokenizer::for_conversation(&context.conversation);
        let max_tokens = request["max_tokens"].as_u64().unwrap_or_default();
        let mut blocks = Vec::new();
        let mut stop_reason = scripted.stop_reason;
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
        let shown = tokenizer.tokens(written).max(1).min(max_tokens);
        let output_tokens = if scripted.fills_max_tokens { max_tokens } else { shown };
        Self {
            id: format!("msg_{}", hash::hex(&["message", &context.conversation, &position], 24)),
            model: request["model"].clone(),
            blocks,
            stop_reason,
            stop_details: scripted.stop_details,
            tokenizer,
            usage: Usage { output_tokens, ..input },
            hidden_tokens: output_tokens - shown,
        }
    }

    /// The reply to a request that did not ask for a stream.
    pub(crate) fn whole(&self) -> Value {
        let mut message = self.envelope(self.usage);
        message["content"] = self.blocks.iter().map(Block::whole).collect();
        message["stop_reason"] = json!(self.stop_reason);
        if let Some(details) = &self.stop_details {
            message["stop_details"] = details.clone();
        }
        message
    }

    /// The reply as a stream.
    pub(crate) fn events(&self) -> Vec<Event> {
        let begun = Usage { output_tokens: self.usage.output_tokens.min(1), ..self.usage };
        let start = json!({"type": "message_start", "message": self.envelope(begun)});
        let mut events = vec![Event { body: start, generated: begun.output_tokens }];
        let mut bytes = 0;
        for (index, block) in self.blocks.iter().enumerate() {
            // What is not shown was thought before the first block began.
            let mut push = |body: Value, more: usize| {
                bytes += more;
                let generated = self.tokenizer.tokens(bytes) + self.hidden_tokens;
                events.push(Event { body, generated: generated.min(self.usage.output_tokens) });
            };
            let start = block.start();
            push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
                block.named(),
            );
            if index == 0 {
                push(json!({"type": "ping"}), 0);
            }
            for (delta, length) in block.deltas() {
                push(json!({"type": "content_block_delta", "index": index, "delta": delta}), length);
            }
            push(json!({"type": "content_block_stop", "index": index}), 0);
        }
        if self.blocks.is_empty() {
            events.push(Event::new(json!({"type": "ping"})));
        }
        let mut delta = json!({"stop_reason": self.stop_reason, "stop_sequence": null});
        if let Some(details) = &self.stop_details {
            delta["stop_details"] = details.clone();
        }
        let end = json!({"type": "message_delta", "delta": delta, "usage": self.usage.at_end()});
        events.push(Event { body: end, generated: self.usage.output_tokens });
        events.push(Event::new(json!({"type": "message_stop"})));
        events
    }

    fn envelope(&self, usage: Usage) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage.at_start(),
        })
    }
}

impl Block {
    fn new(block: &Value) -> Self {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            // A text with members of its own, such as citations, cannot be split without losing them.
            Some("text") if block.as_object().is_some_and(|members| members.len() == 2) => {
                Self::Text(text("text"))
            }
            Some("thinking") => Self::Thinking { thinking: text("thinking"), signature: text("signature") },
            Some("tool_use" | "server_tool_use") => {
                let mut start = block.clone();
                if let Some(members) = start.as_object_mut() {
                    members.shift_remove("input_json");
                    members.insert("input".to_owned(), json!({}));
                }
                let json =
                    block["input_json"].as_str().map_or_else(|| spoken(&block["input"]), str::to_owned);
                Self::Tool { start, json }
            }
            _ => Self::Whole(block.clone()),
        }
    }

    /// The bytes of output in the block.
    fn weight(&self) -> usize {
        let shown = match self {
            Self::Text(text) => text.len(),
            Self::Thinking { thinking, .. } => thinking.len(),
            Self::Tool { json, .. } => json.len(),
            Self::Whole(_) => 0,
        };
        self.named() + shown
    }

    /// The bytes of output that the block's first event shows.
    fn named(&self) -> usize {
        match self {
            Self::Text(_) | Self::Thinking { .. } => 0,
            Self::Tool { start, .. } => start["name"].as_str().unwrap_or_default().len(),
            Self::Whole(block) => block.to_string().len(),
        }
    }

    /// What is left of the block within this many bytes; nothing if not even its beginning fits.
    fn cut(self, room: usize) -> Option<Self> {
        let short = |text: &str| text[..text.floor_char_boundary(room)].to_owned();
        match self {
            Self::Text(text) => Some(short(&text)).filter(|text| !text.trim().is_empty()).map(Self::Text),
            Self::Thinking { thinking, signature } => {
                Some(Self::Thinking { thinking: short(&thinking), signature })
            }
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

    /// The deltas, each with the bytes of output it shows.
    fn deltas(&self) -> Vec<(Value, usize)> {
        match self {
            Self::Text(text) => {
                pieces(text).map(|text| (json!({"type": "text_delta", "text": text}), text.len())).collect()
            }
            Self::Thinking { thinking, signature } => {
                let delta = |text: &str| (json!({"type": "thinking_delta", "thinking": text}), text.len());
                let signed = (json!({"type": "signature_delta", "signature": signature}), 0);
                pieces(thinking).map(delta).chain([signed]).collect()
            }
            Self::Tool { json, .. } => {
                let delta =
                    |text: &str| (json!({"type": "input_json_delta", "partial_json": text}), text.len());
                [""].into_iter().chain(pieces(json)).map(delta).collect()
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

/// An input as a model writes it: with a space after commas and colons, so that a client which writes it anew
/// instead of echoing it is caught. No arguments are no text at all.
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
