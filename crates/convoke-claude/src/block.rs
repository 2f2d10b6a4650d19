//! One content block while it is streamed, and its encoding when it is whole. It keeps what it does not
//! understand.

use std::fmt;

use convoke_kernel::INVALID_INPUT;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// An object's members in the order they came, their values as they were written.
#[derive(Debug, Default)]
pub(crate) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Replaces a member where it stands, or adds it at the end.
    fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, place)) => *place = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    fn encode_into(&self, out: &mut String) {
        out.push('{');
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(&Value::from(name.as_str()).to_string());
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ordered;
        impl<'de> Visitor<'de> for Ordered {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.set(&name, value);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Ordered)
    }
}

/// What a block is to the client; everything it does not know is [`Kind::Other`] and kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Thinking,
    /// A call of a tool that runs here.
    ToolUse,
    /// A call of a tool that runs at the server.
    ServerToolUse,
    Compaction,
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "tool_use" => Self::ToolUse,
            "server_tool_use" | "mcp_tool_use" => Self::ServerToolUse,
            "compaction" => Self::Compaction,
            _ => Self::Other,
        }
    }

    /// Whether a delta of this type may act on such a block. A block of a kind that is new to us may take
    /// any.
    fn takes(self, delta: &str) -> bool {
        match delta {
            "text_delta" | "citations_delta" => matches!(self, Self::Text | Self::Other),
            "thinking_delta" | "signature_delta" => matches!(self, Self::Thinking | Self::Other),
            "input_json_delta" => matches!(self, Self::ToolUse | Self::ServerToolUse | Self::Other),
            "compaction_delta" => matches!(self, Self::Compaction | Self::Other),
            _ => true,
        }
    }
}

/// A content block that is being written.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) stopped: bool,
    members: Members,
    /// `text` or `thinking` as far as it was written; `None` until the first delta.
    written: Option<String>,
    /// The joined `partial_json`; `None` until the first delta.
    input: Option<String>,
    signature: Option<String>,
    citations: Vec<Box<RawValue>>,
}

impl Block {
    pub(crate) fn start(members: Members) -> Result<Self, String> {
        let name = members.text("type").ok_or("a content block has no type")?;
        Ok(Self {
            kind: Kind::of(&name),
            stopped: false,
            members,
            written: None,
            input: None,
            signature: None,
            citations: Vec::new(),
        })
    }

    /// Fails if a delta of this type cannot belong to this block.
    pub(crate) fn accept(&self, delta: &str) -> Result<(), String> {
        if self.stopped {
            return Err(format!("a {delta} came for a block that had already ended"));
        }
        if !self.kind.takes(delta) {
            let name = self.text("type").unwrap_or_default();
            return Err(format!("a {delta} came for a block of type {name}"));
        }
        Ok(())
    }

    /// Appends to `text` or `thinking`.
    pub(crate) fn write(&mut self, name: &str, text: &str) {
        let members = &self.members;
        self.written.get_or_insert_with(|| members.text(name).unwrap_or_default()).push_str(text);
    }

    pub(crate) fn write_input(&mut self, part: &str) {
        self.input.get_or_insert_default().push_str(part);
    }

    pub(crate) fn sign(&mut self, signature: String) {
        self.signature = Some(signature);
    }

    pub(crate) fn cite(&mut self, citation: Box<RawValue>) {
        self.citations.push(citation);
    }

    pub(crate) fn set(&mut self, name: &str, value: Box<RawValue>) {
        self.members.set(name, value);
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.members.text(name)
    }

    /// Puts what was accumulated into its place, once, when the stream has ended.
    pub(crate) fn close(&mut self) -> Result<(), serde_json::Error> {
        if let Some(written) = self.written.take() {
            let name = if self.kind == Kind::Thinking { "thinking" } else { "text" };
            self.members.set(name, raw(&Value::from(written))?);
        }
        if let Some(signature) = self.signature.take() {
            self.members.set("signature", raw(&Value::from(signature))?);
        }
        if !self.citations.is_empty() {
            let first = self
                .members
                .get("citations")
                .map(|list| serde_json::from_str::<Vec<Box<RawValue>>>(list.get()));
            let mut all = first.and_then(Result::ok).unwrap_or_default();
            all.append(&mut self.citations);
            self.members.set("citations", raw(&all)?);
        }
        let calls = matches!(self.kind, Kind::ToolUse | Kind::ServerToolUse);
        if calls || self.input.is_some() {
            let joined = self.input.take().unwrap_or_default();
            let input = if joined.trim().is_empty() { self.given_input()? } else { object(joined)? };
            self.members.set("input", input);
        }
        Ok(())
    }

    /// The input a block came with: `{}` from the API, the whole input from servers that do not stream it.
    fn given_input(&self) -> Result<Box<RawValue>, serde_json::Error> {
        match self.members.get("input") {
            Some(input) if input.get() != "null" => object(input.get().to_owned()),
            _ => RawValue::from_string("{}".to_owned()),
        }
    }

    /// The encoded input of a closed tool call.
    pub(crate) fn input(&self) -> Option<&str> {
        self.members.get("input").map(RawValue::get)
    }

    pub(crate) fn encode_into(&self, out: &mut String) {
        self.members.encode_into(out);
    }
}

/// A tool's input is an object, verbatim, or the raw text under the one key that says it was none. The whole
/// of it is decoded here, because text that passes as JSON can still hold half a character or nest too deeply
/// to be read.
fn object(joined: String) -> Result<Box<RawValue>, serde_json::Error> {
    if serde_json::from_str::<serde_json::Map<String, Value>>(&joined).is_ok() {
        // Blanks around the object are no part of it, and a raw value must not carry them.
        return RawValue::from_string(joined.trim().to_owned());
    }
    let mut wrapped = serde_json::Map::new();
    wrapped.insert(INVALID_INPUT.to_owned(), Value::from(joined));
    raw(&wrapped)
}

fn raw(value: &impl serde::Serialize) -> Result<Box<RawValue>, serde_json::Error> {
    serde_json::value::to_raw_value(value)
}
