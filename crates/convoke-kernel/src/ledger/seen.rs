//! How long the replies and prompts of a session really were, so that the next request is given the room that
//! such requests take, and not the most that is possible.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::caps::Amount;

/// How many of the last replies of a kind are remembered.
const REPLIES: usize = 24;
/// With fewer replies than this no room is derived from them.
const ENOUGH: usize = 3;
/// How many beginnings of requests are remembered: one for each make of agents.
const PREFIXES: usize = 32;

/// What the server said of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedTokens {
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
    /// Whether a server said more of a prompt in the end than before the reply, in tokens or in price: then
    /// what it says before the reply is not used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    miscounts: bool,
    /// Whether what it said before a reply held in the end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    proved: bool,
}

impl Seen {
    pub(super) fn is_empty(&self) -> bool {
        *self == Seen::default()
    }

    pub(super) fn learn(&mut self, kind: &str, prefix: &str, said: ReportedTokens) {
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

    /// A request took this in the end, and this by what the server had said of its prompt before the reply.
    pub(super) fn compare(&mut self, took: Amount, before: Amount) {
        let held = took.tokens <= before.tokens && took.nano <= before.nano;
        self.proved |= held;
        self.miscounts |= !held;
    }

    /// Whether the price that a server says of a prompt before the reply is believed: a server that counts
    /// the tokens right may not yet know which of them it writes to its cache.
    pub(super) fn is_proved(&self) -> bool {
        self.proved
    }

    pub(super) fn miscounts(&self) -> bool {
        self.miscounts
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
