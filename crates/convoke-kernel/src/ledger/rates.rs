//! What a request may cost at most. Prices come from the model table of `convoke-claude`; this file only
//! multiplies.

use serde::{Deserialize, Serialize};

use crate::wire::Usage;

/// What a token costs in requests whose prompt is above some size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateTier {
    /// The tier holds for prompts of more than this many tokens; 0 for the first tier.
    pub above: u64,
    /// The most that a prompt token of this request may cost, in nano-dollars, writing it to the cache
    /// included.
    pub input: u64,
    /// What an output token costs, in nano-dollars.
    pub output: u64,
}

/// The prices one request is bounded by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// The tiers, in any order. Without one, there is no known price.
    pub tiers: Vec<RateTier>,
    /// Prompt tokens that the API adds to what is sent.
    #[serde(default)]
    pub overhead_tokens: u64,
    /// The most tokens of a reply that the model writes in a second; absent when it is not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_per_second: Option<u32>,
}

/// A history whose usage is known holds what the API adds; this part of the table's overhead is still kept
/// for it.
const OVERHEAD_PART: u64 = 8;

impl Rates {
    /// The same for a prompt of which a usage has told how long its beginning is.
    #[must_use]
    pub fn measured(&self) -> Rates {
        Rates { overhead_tokens: self.overhead_tokens / OVERHEAD_PART, ..self.clone() }
    }

    /// The most that a request costs in nano-dollars whose prompt has at most `input_tokens` (the overhead
    /// not counted) and whose reply has at most `max_tokens`. The prompt may turn out smaller than its bound,
    /// so the dearest of all tiers that it can reach counts, not only the topmost.
    pub fn bound(&self, input_tokens: u64, max_tokens: u32) -> u64 {
        self.whole_bound(input_tokens.saturating_add(self.overhead_tokens), max_tokens)
    }

    /// The most that what was used costs in nano-dollars.
    pub fn at_most(&self, usage: &Usage) -> u64 {
        self.whole_bound(usage.prompt_tokens(), u32::try_from(usage.output_tokens).unwrap_or(u32::MAX))
    }

    /// The same for a prompt whose tokens are all counted.
    pub(super) fn whole_bound(&self, prompt: u64, max_tokens: u32) -> u64 {
        let cost = |tier: &RateTier| {
            tier.input
                .saturating_mul(prompt)
                .saturating_add(tier.output.saturating_mul(u64::from(max_tokens)))
        };
        let reached = self.tiers.iter().filter(|tier| tier.above == 0 || tier.above < prompt).map(cost).max();
        // A table without a first tier says nothing about small prompts: its dearest tier is all there is to
        // go by.
        reached.or_else(|| self.tiers.iter().map(cost).max()).unwrap_or(u64::MAX)
    }

    /// The most that a reply of so many tokens costs in nano-dollars behind a prompt whose tokens are all
    /// counted.
    pub(super) fn reply_bound(&self, prompt: u64, output_tokens: u32) -> u64 {
        let reached = self.tiers.iter().filter(|tier| tier.above == 0 || tier.above < prompt);
        let dearest =
            reached.map(|tier| tier.output).max().or_else(|| self.tiers.iter().map(|tier| tier.output).max());
        dearest.map_or(u64::MAX, |output| output.saturating_mul(output_tokens.into()))
    }
}
