//! Whether a request goes on from the last one of its conversation, byte for byte.
//!
//! A break is recorded and never refused: the API would accept the request and silently lose its prompt
//! cache, or the thinking blocks bound to what came before.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hash;
use crate::message::{Block, Message};

/// The last request of each conversation whose reply was sent to its end and can be gone on from.
#[derive(Debug, Default)]
pub(crate) struct Histories(HashMap<String, Remembered>);

impl Histories {
    /// Where the request departs from what was sent before in its conversation.
    pub(crate) fn check(&self, conversation: &str, sent: &Sent) -> Option<String> {
        self.0.get(conversation).and_then(|remembered| remembered.break_with(sent))
    }

    pub(crate) fn remember(&mut self, conversation: String, remembered: Remembered) {
        self.0.insert(conversation, remembered);
    }
}

/// A request in digests, and the reply it got.
#[derive(Debug)]
pub(crate) struct Remembered {
    sent: Sent,
    reply: Vec<Block>,
}

/// A request's tools, system and messages without their cache marks.
#[derive(Debug)]
pub(crate) struct Sent {
    tools: [u8; 32],
    system: [u8; 32],
    messages: Vec<[u8; 32]>,
    /// The messages themselves, to look at the one that echoes a reply; they are not kept for longer than
    /// that.
    texts: Vec<String>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

impl Sent {
    /// Reads the parts out of a body that the rules have accepted.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let parts: Parts<'_> = serde_json::from_slice(body).ok()?;
        let texts: Vec<String> = parts.messages.iter().map(|message| unmarked(message.get())).collect();
        Some(Self {
            tools: part(parts.tools),
            system: part(parts.system),
            messages: texts.iter().map(|text| hash::digest(&[text])).collect(),
            texts,
        })
    }
}

impl Remembered {
    /// The request together with its reply, if the conversation goes on from that reply. After one that was
    /// cut, refused or empty a client may take its last message back, so there is nothing to hold it to.
    pub(crate) fn new(mut sent: Sent, message: &Message) -> Option<Self> {
        let goes_on =
            matches!(message.stop_reason.as_str(), "end_turn" | "tool_use" | "stop_sequence" | "pause_turn");
        sent.texts = Vec::new();
        (goes_on && !message.blocks.is_empty()).then(|| Self { sent, reply: message.blocks.clone() })
    }

    fn break_with(&self, next: &Sent) -> Option<String> {
        if self.sent.tools != next.tools {
            return Some("tools changed".to_owned());
        }
        if self.sent.system != next.system {
            return Some("system changed".to_owned());
        }
        let before = self.sent.messages.len();
        if let Some(index) =
            (0..before).find(|&index| next.messages.get(index) != Some(&self.sent.messages[index]))
        {
            let what = if index < next.messages.len() { "changed" } else { "is gone" };
            return Some(format!("messages.{index} {what}"));
        }
        let echo = next.texts.get(before)?;
        let problem = self.echoed(echo)?;
        Some(format!("messages.{before} is not the reply as it was sent: {problem}"))
    }

    fn echoed(&self, text: &str) -> Option<String> {
        let message: Value = serde_json::from_str(text).ok()?;
        if message["role"] != "assistant" {
            return Some("it is no assistant message".to_owned());
        }
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        if blocks.len() != self.reply.len() {
            return Some(format!("{} blocks were sent, {} came back", self.reply.len(), blocks.len()));
        }
        let wrong = |(sent, echo): (&Block, &Value)| match sent {
            Block::Text(said) => echo["text"] != said.as_str(),
            Block::Thinking { thinking, signature } => {
                echo["thinking"] != thinking.as_str() || echo["signature"] != signature.as_str()
            }
            Block::Tool { start, json } => {
                let valid = json.is_empty() || serde_json::from_str::<Value>(json).is_ok();
                // An input that is no JSON cannot be echoed; how it is wrapped is the client's affair.
                echo["id"] != start["id"]
                    || echo["name"] != start["name"]
                    || (valid && !text.contains(json.as_str()))
            }
            Block::Whole(block) => echo != block,
        };
        let index = self.reply.iter().zip(blocks).position(wrong)?;
        Some(format!("content.{index} differs"))
    }
}

fn part(raw: Option<&RawValue>) -> [u8; 32] {
    hash::digest(&[&unmarked(raw.map_or("", RawValue::get))])
}

/// The text without its `cache_control` members. They are cut out of the text itself, because writing the
/// value anew would hide a difference in its bytes; only a text that is not in compact form is parsed.
fn unmarked(text: &str) -> String {
    const NAME: &str = "\"cache_control\"";
    if !text.contains(NAME) {
        return text.to_owned();
    }
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    // An unescaped quote after a comma or a brace is never inside a string, so these can only be members.
    while let Some(start) = rest.find(",\"cache_control\":{") {
        let Some(length) = rest[start..].find('}') else { break };
        kept.push_str(&rest[..start]);
        rest = &rest[start + length + 1..];
    }
    kept.push_str(rest);
    if !kept.contains(NAME) {
        return kept;
    }
    serde_json::from_str(text).map_or(kept, |value: Value| without_marks(value).to_string())
}

fn without_marks(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_marks).collect(),
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, _)| name != "cache_control")
            .map(|(name, member)| (name, without_marks(member)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_cut_out_of_a_text_and_nothing_else_is() {
        let plain = r#"{"type":"text","text":"a \",\"cache_control\":{}"}"#;
        assert_eq!(unmarked(plain), plain);
        let marked = r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#;
        assert_eq!(unmarked(marked), r#"{"type":"text","text":"a"}"#);
        let spaced = r#"{"cache_control": {"type": "ephemeral"}, "text": "a"}"#;
        assert_eq!(unmarked(spaced), r#"{"text":"a"}"#);
    }
}
