//! Bytes into tokens, at a rate the client does not know, and how usage is reported.

use serde_json::{Value, json};

use crate::hash;

/// The tokens of one request, by what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Input read from the cache.
    pub cache_read_tokens: u64,
    /// Input written to the cache for five minutes.
    pub cache_write_5m_tokens: u64,
    /// Input written to the cache for an hour.
    pub cache_write_1h_tokens: u64,
    /// Output, thinking included.
    pub output_tokens: u64,
}

impl Usage {
    /// The whole prompt: what the model read, whatever it cost.
    pub fn prompt_tokens(&self) -> u64 {
        self.cache_read_tokens + self.uncached()
    }

    /// The input that counts towards the rate limit: all but what was read from the cache.
    pub(crate) fn uncached(&self) -> u64 {
        self.input_tokens + self.cache_write_5m_tokens + self.cache_write_1h_tokens
    }

    /// As `message_start` and a reply without a stream report it.
    pub(crate) fn at_start(&self) -> Value {
        json!({
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.cache_write_5m_tokens + self.cache_write_1h_tokens,
            "cache_read_input_tokens": self.cache_read_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_write_5m_tokens,
                "ephemeral_1h_input_tokens": self.cache_write_1h_tokens,
            },
            "output_tokens": self.output_tokens,
            "service_tier": "standard",
            "inference_geo": "not_available",
        })
    }

    /// As the last `message_delta` reports it: cumulative, to be overwritten and never added, and without the
    /// split of what was written to the cache.
    pub(crate) fn at_end(&self) -> Value {
        json!({
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.cache_write_5m_tokens + self.cache_write_1h_tokens,
            "cache_read_input_tokens": self.cache_read_tokens,
            "output_tokens": self.output_tokens,
        })
    }
}

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
}
