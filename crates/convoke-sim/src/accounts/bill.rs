//! The simulator's own bill. It takes the rates from the table of models; the arithmetic is its own.
//!
//! Every request that reached a model is billed, whether or not its sender saw the end of the reply: the
//! input in full, the output as far as it was generated. A stream generates what it hands to the network, so
//! one that is cut, stalls or loses its client is billed up to there. A reply that is lost before its first
//! byte, or a reply without a stream that is cut, was generated whole and is billed so. A request that is
//! answered with an error status costs nothing.

use convoke_claude::Models;

use super::tokens::Usage;

/// What all requests so far cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bill {
    /// One line for each request that reached a model, in the order of arrival; those under way are billed so
    /// far.
    pub lines: Vec<Line>,
    /// The sum, in nano-dollars.
    pub total_nano: u64,
}

/// What one request cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The request's number among all that were received.
    pub request: usize,
    /// The conversation it belongs to.
    pub conversation: String,
    /// The model it asked for.
    pub model: String,
    /// The tokens it is billed for.
    pub usage: Usage,
    /// What they cost; nothing if the model has no price.
    pub nano_dollars: u64,
    /// Whether the reply was sent to its end.
    pub completed: bool,
}

/// What a line is made of.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) request: usize,
    pub(crate) conversation: String,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) completed: bool,
}

/// The bill over these entries.
pub(crate) fn bill(entries: &[Entry], models: &Models) -> Bill {
    let line = |entry: &Entry| {
        let Entry { request, conversation, model, usage, completed } = entry.clone();
        Line { request, conversation, nano_dollars: price(&model, &usage, models), model, usage, completed }
    };
    let mut lines: Vec<Line> = entries.iter().map(line).collect();
    lines.sort_by_key(|line| line.request);
    let total_nano = lines.iter().map(|line| line.nano_dollars).sum();
    Bill { lines, total_nano }
}

/// The dearest tier whose threshold the whole prompt passes holds for the whole request.
fn price(model: &str, usage: &Usage, models: &Models) -> u64 {
    let Some(prices) = models.get(model).prices else { return 0 };
    let passed = prices.tiers.iter().filter(|tier| tier.above == 0 || usage.prompt_tokens() > tier.above);
    let Some(tier) = passed.max_by_key(|tier| tier.above) else { return 0 };
    usage.input_tokens * tier.rates.input
        + usage.cache_read_tokens * tier.rates.cache_read
        + usage.cache_write_5m_tokens * tier.rates.cache_write_5m
        + usage.cache_write_1h_tokens * tier.rates.cache_write_1h
        + usage.output_tokens * tier.rates.output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(model: &str, [input, read, short, long, output]: [u64; 5], expected: u64) {
        let usage = Usage {
            input_tokens: input,
            cache_read_tokens: read,
            cache_write_5m_tokens: short,
            cache_write_1h_tokens: long,
            output_tokens: output,
        };
        assert_eq!(price(model, &usage, &Models::builtin()), expected, "{model} {usage:?}");
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        check("claude-opus-4-8", [1_000, 0, 0, 0, 0], 5_000_000);
        check("claude-opus-4-8", [0, 1_000, 0, 0, 0], 500_000);
        check("claude-opus-4-8", [0, 0, 1_000, 0, 0], 6_250_000);
        check("claude-opus-4-8", [0, 0, 0, 1_000, 0], 10_000_000);
        check("claude-opus-4-8", [0, 0, 0, 0, 1_000], 25_000_000);
        check("claude-opus-5-5", [1, 2, 3, 4, 5], 4_000 + 400 + 15_000 + 32_000 + 100_000);
    }

    #[test]
    fn a_long_prompt_moves_the_whole_request_into_the_dearer_tier_and_no_price_is_no_cost() {
        check("claude-haiku-5-5", [50_000, 50_000, 0, 0, 10], 5_000_000 + 500_000 + 5_000);
        check("claude-haiku-5-5", [50_000, 50_001, 0, 0, 10], 25_000_000 + 2_500_050 + 25_000);
        check("qwen-local", [1_000, 0, 0, 0, 1_000], 0);
    }
}
