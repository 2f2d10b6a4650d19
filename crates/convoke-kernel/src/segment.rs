//! A piece of history: one JSON text, encoded once and sent as it is for ever after.

use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One encoded JSON value whose bytes never change. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Segment(Arc<str>);

impl Segment {
    /// Encodes a value, once.
    pub fn encode(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    /// Takes over text that is already JSON; anything else is an error.
    pub fn from_json(text: impl Into<Arc<str>>) -> Result<Self, serde_json::Error> {
        let text: Arc<str> = text.into();
        serde_json::from_str::<&RawValue>(&text)?;
        Ok(Self(text))
    }

    /// Wraps a `content` array, byte for byte, into the message that echoes it.
    pub(crate) fn as_assistant_message(&self) -> Self {
        Self(format!("{{\"role\":\"assistant\",\"content\":{}}}", self.0).into())
    }

    /// The message with a cache mark on its last block. Only for messages that were encoded here, because it
    /// relies on their form: anything else comes back as it is.
    pub(crate) fn with_mark(&self) -> Self {
        match self.0.strip_suffix("}]}") {
            Some(rest) => Self(format!(r#"{rest},"cache_control":{{"type":"ephemeral"}}}}]}}"#).into()),
            None => self.clone(),
        }
    }

    /// Blocks without the cache mark on the last one, where [`with_mark`](Self::with_mark) or its like has
    /// put it.
    pub(crate) fn without_mark(&self) -> Self {
        match self.0.strip_suffix(r#","cache_control":{"type":"ephemeral"}}]"#) {
            Some(rest) => Self(format!("{rest}}}]").into()),
            None => self.clone(),
        }
    }

    /// The message with a text behind its last block; every byte before it stays.
    pub(crate) fn with_text(&self, text: &str) -> Self {
        match self.0.strip_suffix("]}") {
            Some(rest) => {
                Self(format!(r#"{rest},{}]}}"#, serde_json::json!({"type": "text", "text": text})).into())
            }
            None => self.clone(),
        }
    }

    /// How many content blocks a message or a `content` array has.
    pub(crate) fn blocks(&self) -> usize {
        #[derive(Deserialize)]
        struct Message {
            content: Vec<IgnoredAny>,
        }
        let message = serde_json::from_str::<Message>(&self.0).map(|message| message.content);
        message.or_else(|_| serde_json::from_str::<Vec<IgnoredAny>>(&self.0)).map_or(1, |blocks| blocks.len())
    }

    /// The bytes as they are sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes as they are sent, shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Segment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Segment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(String::from(Box::<str>::from(raw)).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_segment_survive_a_journey_through_an_event() {
        let odd = r#"{"b": 1.0,  "a":[1e5,"\u00e9\/"]}"#;
        let segment = Segment::from_json(odd).unwrap();
        let text = serde_json::to_string(&vec![segment]).unwrap();
        let back: Vec<Segment> = serde_json::from_str(&text).unwrap();
        assert_eq!(back[0].as_str(), odd);
    }

    #[test]
    fn a_mark_stands_on_the_last_block_and_changes_nothing_else() {
        let message = Segment::encode(
            &serde_json::json!({"role": "user", "content": [{"type": "text", "text": "a}]}"}]}),
        );
        let marked: serde_json::Value = serde_json::from_str(message.with_mark().as_str()).unwrap();
        let mut plain = marked.clone();
        plain["content"][0].as_object_mut().unwrap().remove("cache_control").unwrap();
        assert_eq!(Segment::encode(&plain), message);
        assert_eq!(marked["content"][0]["cache_control"]["type"], "ephemeral");
        assert_eq!((message.blocks(), Segment::from_json("[1,2,3]").unwrap().blocks()), (1, 3));
    }

    #[test]
    fn text_that_is_not_json_is_no_segment() {
        assert!(Segment::from_json("{\"a\":").is_err());
    }
}
