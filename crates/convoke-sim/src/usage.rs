//! What a request and its reply weigh, by a tokenizer the client does not know, and how that is reported.
//!
//! The prompt cache, the rate limits and the bill will be modelled here; so far every input token is an uncached one
//! and the rate headers promise more than anybody uses.

use serde_json::{Value, json};

use crate::hash;

/// The tool-use preamble that the API adds to a prompt by itself.
const TOOL_PREAMBLE_TOKENS: u64 = 290;

/// Rate headers of a bucket that is full. The reset lies in the past because there is nothing to wait for.
pub(crate) const FULL_BUCKETS: &[(&str, &str)] = &[
    ("anthropic-ratelimit-requests-limit", "4000"),
    ("anthropic-ratelimit-requests-remaining", "3999"),
    ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:00Z"),
    ("anthropic-ratelimit-input-tokens-limit", "10000000"),
    ("anthropic-ratelimit-input-tokens-remaining", "10000000"),
    ("anthropic-ratelimit-input-tokens-reset", "2026-01-01T00:00:00Z"),
    ("anthropic-ratelimit-output-tokens-limit", "2000000"),
    ("anthropic-ratelimit-output-tokens-remaining", "2000000"),
    ("anthropic-ratelimit-output-tokens-reset", "2026-01-01T00:00:00Z"),
];

/// Turns bytes into tokens at a rate of its own for each conversation: 1.5 to 4.5 bytes per token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokenizer {
    milli_bytes: u64,
}

impl Tokenizer {
    pub(crate) fn for_conversation(name: &str) -> Self {
        Self { milli_bytes: 1_500 + hash::number(&["tokenizer", name]) % 3_001 }
    }

    /// How many tokens these bytes are, rounded up.
    pub(crate) fn tokens(self, bytes: usize) -> u64 {
        (bytes as u64 * 1_000).div_ceil(self.milli_bytes)
    }

    /// How many bytes fit into these tokens.
    pub(crate) fn bytes(self, tokens: u64) -> usize {
        usize::try_from(tokens.saturating_mul(self.milli_bytes) / 1_000).unwrap_or(usize::MAX)
    }

    /// The tokens of a request's tools, system and messages.
    pub(crate) fn prompt(self, body: &Value) -> u64 {
        let bytes = ["tools", "system", "messages"].iter().filter_map(|part| body.get(part)).map(weight).sum();
        let has_tools = body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
        self.tokens(bytes) + if has_tools { TOOL_PREAMBLE_TOKENS } else { 0 }
    }
}

/// The usage that `message_start` carries.
pub(crate) fn at_start(input_tokens: u64) -> Value {
    json!({
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
        "service_tier": "standard",
        "inference_geo": "not_available",
    })
}

/// The usage that the last `message_delta` carries: cumulative, to be overwritten and never added.
pub(crate) fn at_end(input_tokens: u64, output_tokens: u64) -> Value {
    json!({
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    })
}

/// The bytes of a value in compact form, without escapes and without cache marks: marks are not part of a prompt.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 1 + items.iter().map(|item| weight(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != "cache_control");
            1 + kept.map(|(name, member)| name.len() + 4 + weight(member)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_conversation_has_a_rate_between_one_and_a_half_and_four_and_a_half_bytes_per_token() {
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..200 {
            let tokenizer = Tokenizer::for_conversation(&format!("c{number}"));
            assert!((1_500..=4_500).contains(&tokenizer.milli_bytes), "{tokenizer:?}");
            seen.insert(tokenizer.milli_bytes);
        }
        assert!(seen.len() > 100, "only {} different rates", seen.len());
    }

    #[test]
    fn a_prompt_never_has_more_tokens_than_bytes_and_marks_weigh_nothing() {
        let plain = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "hello there"}]}]});
        let mut marked = plain.clone();
        marked["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        let tokenizer = Tokenizer::for_conversation("any");
        assert_eq!(tokenizer.prompt(&plain), tokenizer.prompt(&marked));
        assert!(tokenizer.prompt(&plain) < plain.to_string().len() as u64);
    }
}
