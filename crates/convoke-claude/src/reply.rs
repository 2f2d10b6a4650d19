//! From events to a reply: every event and delta type, joined and encoded once. It never touches a socket.

use std::borrow::Cow;
use std::collections::HashSet;

use convoke_kernel::{Failure, Reply, Segment, StopReason, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::block::{Block, Kind, Members};
use crate::failures::{self, Asked};
use crate::limits::RateLimits;

/// What can be shown while a reply is still being written. None of it counts until the reply is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live<'a> {
    /// The response's head is there, whatever it says: the server's view of its limits.
    Limits(&'a RateLimits),
    /// The model has begun to answer.
    Began,
    /// What the server says of the prompt before anything of the reply comes: nothing of the reply is counted
    /// in it.
    Counted(Usage),
    /// A piece of text.
    Text(&'a str),
    /// A piece of thinking.
    Thinking(&'a str),
    /// A tool call begins.
    Tool {
        /// The tool that is meant.
        name: &'a str,
    },
    /// A piece of the JSON of a tool's input.
    ToolInput(&'a str),
}

/// The callback that shows live pieces.
pub(crate) type Show<'a> = &'a mut (dyn FnMut(Live<'_>) + Send);

/// The most bytes one reply's events may have. The longest legal reply is far below it.
const MAX_REPLY_BYTES: usize = 256 * 1024 * 1024;

/// Whether a reply is whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Whole,
}

/// A reply in the making.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    began: bool,
    blocks: Vec<(u64, Block)>,
    usage: WireUsage,
    stop: Option<String>,
    stop_detail: Option<String>,
    model: Option<String>,
    bytes: usize,
}

impl Accumulator {
    /// Takes one frame in.
    pub(crate) fn frame(
        &mut self,
        event: Option<&str>,
        data: Option<&str>,
        asked: &Asked<'_>,
        show: Show<'_>,
    ) -> Result<Progress, Failure> {
        let Some(data) = data else { return Ok(Progress::More) };
        self.bytes += data.len();
        if self.bytes > MAX_REPLY_BYTES {
            return Err(failures::transport(format!("the reply is longer than {MAX_REPLY_BYTES} bytes")));
        }
        let kind = match event.and_then(known) {
            Some(kind) => kind,
            None => match serde_json::from_str::<Typed>(data) {
                Ok(Typed { kind: Some(kind) }) => known(&kind).unwrap_or(Event::Unknown),
                Ok(Typed { kind: None }) => Event::Unknown,
                // The data of an event that this version does not know may be anything, even no JSON.
                Err(_) if event.is_some_and(|name| name != "message") => Event::Unknown,
                Err(error) => return Err(malformed(data, &error)),
            },
        };
        match kind {
            Event::Ping | Event::Unknown => {}
            Event::Error => return Err(failures::from_event(data, asked)),
            Event::MessageStart => self.message_start(read(data)?, show)?,
            _ if !self.began => return Err(failures::unusable("it does not start with message_start")),
            Event::BlockStart => self.block_start(read(data)?, show)?,
            Event::BlockDelta => self.block_delta(read(data)?, show)?,
            Event::BlockStop => self.block_stop(read(data)?)?,
            Event::MessageDelta => self.message_delta(read(data)?),
            Event::MessageStop => return Ok(Progress::Whole),
        }
        Ok(Progress::More)
    }

    fn message_start(&mut self, start: MessageStart, show: Show<'_>) -> Result<(), Failure> {
        if self.began {
            return Err(failures::unusable("a second message_start came in one stream"));
        }
        self.began = true;
        self.model = start.message.model;
        if let Some(usage) = start.message.usage {
            self.usage.overwrite(usage);
        }
        show(Live::Began);
        let counted = Usage { output_tokens: 0, thinking_tokens: 0, ..self.usage.total() };
        if counted.prompt_tokens() > 0 {
            show(Live::Counted(counted));
        }
        Ok(())
    }

    fn block_start(&mut self, start: BlockStart, show: Show<'_>) -> Result<(), Failure> {
        if self.blocks.iter().any(|(index, _)| *index == start.index) {
            return Err(failures::unusable(format!("content block {} starts twice", start.index)));
        }
        let block = Block::start(start.content_block).map_err(failures::unusable)?;
        match block.kind {
            Kind::ToolUse => show(Live::Tool { name: &block.text("name").unwrap_or_default() }),
            Kind::Text => match block.text("text") {
                Some(text) if !text.is_empty() => show(Live::Text(&text)),
                _ => {}
            },
            _ => {}
        }
        self.blocks.push((start.index, block));
        Ok(())
    }

    fn block(&mut self, index: u64) -> Result<&mut Block, Failure> {
        // The block that is being written is nearly always the last one.
        let found = self.blocks.iter_mut().rev().find(|(known, _)| *known == index);
        let missing = || failures::unusable(format!("content block {index} was never started"));
        found.map(|(_, block)| block).ok_or_else(missing)
    }

    fn block_delta(&mut self, event: BlockDelta<'_>, show: Show<'_>) -> Result<(), Failure> {
        let block = self.block(event.index)?;
        let delta = event.delta;
        block.accept(&delta.kind).map_err(failures::unusable)?;
        let lacking = |member: &str| failures::transport(format!("a {} has no {member}", delta.kind));
        match &*delta.kind {
            "text_delta" => {
                let text = delta.text.ok_or_else(|| lacking("text"))?.0;
                block.write("text", &text);
                show(Live::Text(&text));
            }
            "thinking_delta" => {
                let text = delta.thinking.ok_or_else(|| lacking("thinking"))?.0;
                block.write("thinking", &text);
                show(Live::Thinking(&text));
            }
            "input_json_delta" => {
                let part = delta.partial_json.ok_or_else(|| lacking("partial_json"))?.0;
                block.write_input(&part);
                if block.kind == Kind::ToolUse {
                    show(Live::ToolInput(&part));
                }
            }
            "signature_delta" => {
                block.sign(delta.signature.ok_or_else(|| lacking("signature"))?.0.into_owned())
            }
            "citations_delta" => block.cite(delta.citation.ok_or_else(|| lacking("citation"))?.to_owned()),
            "compaction_delta" => {
                for (name, value) in
                    [("content", delta.content), ("encrypted_content", delta.encrypted_content)]
                {
                    if let Some(value) = value {
                        block.set(name, value.to_owned());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn block_stop(&mut self, stop: BlockStop) -> Result<(), Failure> {
        let block = self.block(stop.index)?;
        if block.stopped {
            return Err(failures::unusable(format!("content block {} ends twice", stop.index)));
        }
        block.stopped = true;
        Ok(())
    }

    fn message_delta(&mut self, event: MessageDelta) {
        if let Some(usage) = event.usage {
            self.usage.overwrite(usage);
        }
        if let Some(stop) = event.delta.stop_reason {
            self.stop = Some(stop);
        }
        let said = |name: &str| event.delta.stop_details.as_ref()?.get(name)?.as_str().map(str::to_owned);
        if let Some(detail) = said("explanation").or_else(|| said("category")) {
            self.stop_detail = Some(detail);
        }
    }

    /// The reply, its content encoded here and never again.
    pub(crate) fn finish(mut self, asked: &Asked<'_>) -> Result<Reply, Failure> {
        let Some(stop) = self.stop.take() else {
            return Err(failures::transport("the stream ended without a stop reason"));
        };
        if let Some((index, _)) = self.blocks.iter().find(|(_, block)| !block.stopped) {
            return Err(failures::unusable(format!("content block {index} never ended")));
        }
        self.blocks.sort_by_key(|(index, _)| *index);
        let mut content = String::from("[");
        let mut text = String::new();
        let mut calls = Vec::new();
        let mut ids = HashSet::new();
        for (index, block) in &mut self.blocks {
            block.close().map_err(|error| failures::unusable(format!("content block {index}: {error}")))?;
            match block.kind {
                Kind::Text => {
                    let written = block.text("text").unwrap_or_default();
                    text.push_str(&written);
                    // The API refuses a history with such a block, though it may write one.
                    if written.trim().is_empty() {
                        continue;
                    }
                }
                Kind::ToolUse => {
                    let call = call(block)?;
                    if !ids.insert(call.id.clone()) {
                        return Err(failures::unusable(format!("the tool_use id {} comes twice", call.id)));
                    }
                    calls.push(call);
                }
                _ => {}
            }
            if content.len() > 1 {
                content.push(',');
            }
            block.encode_into(&mut content);
        }
        content.push(']');
        let content = Segment::from_json(content).map_err(failures::unusable)?;
        Ok(Reply {
            content,
            text,
            calls,
            stop: StopReason::from(stop),
            stop_detail: self.stop_detail,
            usage: self.usage.total(),
            cost_nano: None,
            model: self.model.unwrap_or_else(|| asked.model.to_owned()),
            request_id: None,
        })
    }
}

/// A tool call that can be answered and echoed; ids and names with other characters are refused when they
/// come back.
fn call(block: &Block) -> Result<ToolCall, Failure> {
    let member = |name: &str| {
        let text = block.text(name).unwrap_or_default();
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if !plain || text.is_empty() || text.len() > 128 {
            return Err(failures::unusable(format!(
                "the {name} of a tool_use is {:?}",
                failures::in_short(&text)
            )));
        }
        Ok(text)
    };
    let input = Segment::from_json(block.input().unwrap_or("{}")).map_err(failures::unusable)?;
    Ok(ToolCall { id: member("id")?, name: member("name")?, input })
}

/// The events this version knows.
enum Event {
    MessageStart,
    BlockStart,
    BlockDelta,
    BlockStop,
    MessageDelta,
    MessageStop,
    Ping,
    Error,
    Unknown,
}

fn known(name: &str) -> Option<Event> {
    Some(match name {
        "message_start" => Event::MessageStart,
        "content_block_start" => Event::BlockStart,
        "content_block_delta" => Event::BlockDelta,
        "content_block_stop" => Event::BlockStop,
        "message_delta" => Event::MessageDelta,
        "message_stop" => Event::MessageStop,
        "ping" => Event::Ping,
        "error" => Event::Error,
        _ => return None,
    })
}

fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, Failure> {
    serde_json::from_str(data).map_err(|error| malformed(data, &error))
}

fn malformed(data: &str, error: &serde_json::Error) -> Failure {
    let start: String = data.chars().take(80).collect();
    failures::transport(format!(
        "the stream holds a malformed frame ({error}): {}",
        failures::in_short(&start)
    ))
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct MessageStart {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    model: Option<String>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct BlockStart {
    index: u64,
    content_block: Members,
}

#[derive(Deserialize)]
struct BlockStop {
    index: u64,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
}

/// Text that is borrowed from the frame unless it holds escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    encrypted_content: Option<&'a RawValue>,
}

/// A member that is present counts even if it is null: a compaction's content may be null.
fn even_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    delta: Ending,
    usage: Option<WireUsage>,
}

#[derive(Default, Deserialize)]
struct Ending {
    stop_reason: Option<String>,
    stop_details: Option<Value>,
}

/// Usage as it travels: every number is cumulative and optional.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<WireCacheCreation>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<WireOutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireCacheCreation {
    ephemeral_5m_input_tokens: Option<u64>,
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireOutputDetails {
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    /// A later number replaces an earlier one; numbers are never added up.
    fn overwrite(&mut self, later: Self) {
        *self = Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation: later.cache_creation.or(self.cache_creation),
            output_tokens: later.output_tokens.or(self.output_tokens),
            output_tokens_details: later.output_tokens_details.or(self.output_tokens_details),
        };
    }

    fn total(&self) -> Usage {
        let split = self.cache_creation.unwrap_or_default();
        let hour = split.ephemeral_1h_input_tokens.unwrap_or(0);
        let split_total = split.ephemeral_5m_input_tokens.unwrap_or(0).saturating_add(hour);
        // What the split does not account for was written for five minutes, the default.
        let written = self.cache_creation_input_tokens.unwrap_or(0).max(split_total);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0),
            cache_read_tokens: self.cache_read_input_tokens.unwrap_or(0),
            cache_write_5m_tokens: written - hour,
            cache_write_1h_tokens: hour,
            output_tokens: self.output_tokens.unwrap_or(0),
            thinking_tokens: self
                .output_tokens_details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(0),
        }
    }
}
