//! A request as a teammate lives it: which member asks, and everything that stands in its history, one thing
//! after the other.

use serde_json::Value;

/// What stands in a history.
pub(crate) enum Entry<'a> {
    /// A reply begins.
    Reply,
    Call {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    Result {
        id: &'a str,
        text: String,
    },
    /// Something that is neither a reply nor a result.
    Text(&'a str),
}

pub(crate) struct Story<'a> {
    /// `lead`, or the teammate's name.
    pub(crate) who: String,
    /// Of two histories of one member the one with more is the newer.
    pub(crate) messages: usize,
    pub(crate) entries: Vec<Entry<'a>>,
}

impl<'a> Story<'a> {
    pub(crate) fn read(request: &'a Value) -> Self {
        let messages = request["messages"].as_array().unwrap();
        let mut entries = Vec::new();
        for message in messages {
            let replied = message["role"] == "assistant";
            if replied {
                entries.push(Entry::Reply);
            }
            if let Some(text) = message["content"].as_str() {
                entries.push(Entry::Text(text));
            }
            entries.extend(
                message["content"].as_array().into_iter().flatten().filter_map(|block| entry(block, replied)),
            );
        }
        Self { who: who(request), messages: messages.len(), entries }
    }

    /// The place of the last text that this is true of.
    pub(crate) fn last(&self, wanted: impl Fn(&str) -> bool) -> Option<usize> {
        self.entries.iter().rposition(|entry| matches!(entry, Entry::Text(text) if wanted(text)))
    }

    /// How many replies stand behind a place.
    pub(crate) fn replies_after(&self, place: usize) -> usize {
        self.entries[place..].iter().filter(|entry| matches!(entry, Entry::Reply)).count()
    }

    /// What a call came to, if that is known.
    pub(crate) fn result(&self, call: &str) -> Option<&str> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Result { id, text } if *id == call => Some(text.as_str()),
            _ => None,
        })
    }
}

fn entry(block: &Value, replied: bool) -> Option<Entry<'_>> {
    Some(match block["type"].as_str()? {
        "tool_use" => {
            Entry::Call { id: block["id"].as_str()?, name: block["name"].as_str()?, input: &block["input"] }
        }
        "tool_result" => {
            Entry::Result { id: block["tool_use_id"].as_str()?, text: text_of(&block["content"]) }
        }
        // What a member says itself is of no interest here.
        "text" if !replied => Entry::Text(block["text"].as_str()?),
        _ => return None,
    })
}

fn text_of(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    }
}

/// The member that a request is from: its system prompt says so.
fn who(request: &Value) -> String {
    let tools = request["tools"].as_array().unwrap();
    if !tools.iter().any(|tool| tool["name"] == "claim_task") {
        return "lead".to_owned();
    }
    let system = request["system"][0]["text"].as_str().unwrap();
    let after = system.split_once("You are ").unwrap().1;
    after.split_once(',').unwrap().0.to_owned()
}

/// A number that follows from these words and from nothing else.
pub(crate) fn hash(words: &[&str]) -> usize {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in words.join("\n").bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash >> 17) as usize
}
