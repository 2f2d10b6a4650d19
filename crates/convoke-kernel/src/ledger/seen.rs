//! What replies and prompts of a session have really come to, so that the next request is given the room that such requests
//! take, and not the most that there could be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// As many of the last replies of a kind are remembered.
const REPLIES: usize = 24;
/// Fewer replies than this say little.
const ENOUGH: usize = 3;
/// So many beginnings of requests are remembered: one for each make of agents.
const PREFIXES: usize = 32;

/// What the server said of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The tokens of its prompt, all counted.
    pub prompt_tokens: u64,
    /// The tokens of its reply.
    pub output_tokens: u64,
}

/// What is known of the requests of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Seen {
    /// The last replies by kind of agent, in tokens.
    replies: BTreeMap<String, Vec<u32>>,
    /// The most tokens that a beginning can have: the shortest prompt that began with it.
    prefixes: BTreeMap<String, u64>,
}

impl Seen {
    pub(super) fn is_empty(&self) -> bool {
        *self == Seen::default()
    }

    pub(super) fn learn(&mut self, kind: &str, prefix: &str, said: Said) {
        if !kind.is_empty() {
            let replies = self.replies.entry(kind.to_owned()).or_default();
            replies.push(u32::try_from(said.output_tokens).unwrap_or(u32::MAX));
            if replies.len() > REPLIES {
                replies.remove(0);
            }
        }
        if !prefix.is_empty() && (self.prefixes.contains_key(prefix) || self.prefixes.len() < PREFIXES) {
            let least = self.prefixes.entry(prefix.to_owned()).or_insert(said.prompt_tokens);
            *least = (*least).min(said.prompt_tokens);
        }
    }

    /// The room that a reply of this kind takes: half as much again as the longest of the last ones.
    pub(super) fn reply_room(&self, kind: &str) -> Option<u32> {
        let replies = self.replies.get(kind).filter(|replies| replies.len() >= ENOUGH)?;
        let longest = replies.iter().copied().max()?;
        Some(longest.saturating_add(longest / 2))
    }

    pub(super) fn prefix_tokens(&self, prefix: &str) -> Option<u64> {
        self.prefixes.get(prefix).copied()
    }
}
