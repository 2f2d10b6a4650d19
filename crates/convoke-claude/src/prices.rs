//! What tokens cost, in integers. It reckons; it never rounds and never guesses a price.

use convoke_kernel::{RateTier, Usage};

use crate::models::Model;

/// What a model costs, by the size of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    /// The tiers, by rising `above`; the first one's `above` is 0.
    pub tiers: Vec<Tier>,
    /// The day the prices were read, or where they are from.
    pub date: String,
}

/// Rates for prompts of more tokens than `above`; the whole request is billed at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// The tier holds for prompts of more tokens than this.
    pub above: u64,
    /// What a token costs in this tier.
    pub rates: Rates,
}

/// Nano-dollars per token, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Input neither read from nor written to the cache.
    pub input: u64,
    /// Output, thinking included.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache for five minutes.
    pub cache_write_5m: u64,
    /// Input written to the cache for an hour.
    pub cache_write_1h: u64,
}

impl Prices {
    /// The rates for a prompt of this many tokens, cache reads and writes counted.
    pub fn rates(&self, prompt_tokens: u64) -> Option<Rates> {
        let holds = |tier: &&Tier| tier.above == 0 || prompt_tokens > tier.above;
        self.tiers.iter().rev().find(holds).map(|tier| tier.rates)
    }
}

/// The most that tokens of this model can cost, for reckoning before a request is sent; `None` when its price
/// is not known. Input is taken at the dearest rate our cache marks allow: written to the cache for five
/// minutes.
pub fn ceilings(model: &Model) -> Option<convoke_kernel::Rates> {
    let tier = |tier: &Tier| RateTier {
        above: tier.above,
        input: tier.rates.input.max(tier.rates.cache_write_5m),
        output: tier.rates.output,
    };
    let tiers = model.prices.as_ref()?.tiers.iter().map(tier).collect();
    let overhead_tokens = model.overhead_tokens;
    let output_per_second = model.output_per_second;
    Some(convoke_kernel::Rates { tiers, overhead_tokens, output_per_second })
}

/// What this usage of this model costs in nano-dollars; `None` when its price is not known.
pub fn cost(model: &Model, usage: &Usage) -> Option<u64> {
    let rates = model.prices.as_ref()?.rates(usage.prompt_tokens())?;
    let parts = [
        (usage.input_tokens, rates.input),
        (usage.output_tokens, rates.output),
        (usage.cache_read_tokens, rates.cache_read),
        (usage.cache_write_5m_tokens, rates.cache_write_5m),
        (usage.cache_write_1h_tokens, rates.cache_write_1h),
    ];
    Some(parts.iter().fold(0, |sum: u64, (tokens, rate)| sum.saturating_add(tokens.saturating_mul(*rate))))
}
