//! What agents would cost if every one of them were like the next. The assumption is stated wherever the
//! figure is; the prices are the table's.

use convoke_claude::{Models, cost};
use convoke_kernel::{Role, Usage};

/// What one agent of a role and a model was seen to cost: at least and at most, in nano-dollars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCost {
    /// What it was there for.
    pub role: Role,
    /// Its model.
    pub model: String,
    /// At least and at most.
    pub nano: (u64, u64),
    /// How many were seen.
    pub seen: usize,
}

/// What is assumed about every agent of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assumed {
    /// Which part of the turns it may take it does: 0 is one turn alone, 3 is a third of them.
    pub part_of_turns: u32,
    /// Tokens of the system prompt and the tools.
    pub base: u64,
    /// Tokens that it reads in one turn beside that.
    pub read: u64,
    /// Tokens that it writes in one turn.
    pub written: u64,
}

impl Assumed {
    /// The least: an answer at once.
    pub const LOW: Self = Self { part_of_turns: 0, base: 2_500, read: 0, written: 300 };
    /// Plenty: a third of the turns, each with something read.
    pub const HIGH: Self = Self { part_of_turns: 3, base: 2_500, read: 1_500, written: 600 };

    /// The turns of an agent that may take so many.
    pub fn turns(self, limit: u32) -> u32 {
        if self.part_of_turns == 0 { 1 } else { limit.div_ceil(self.part_of_turns).max(1) }
    }
}

/// Bytes of text for one token.
const BYTES: u64 = 4;

pub(super) struct Bill<'a> {
    models: &'a Models,
    seen: &'a [SeenCost],
    assumed: Assumed,
    tokens: u64,
    nano: Option<u64>,
}

impl<'a> Bill<'a> {
    pub(super) fn new(models: &'a Models, seen: &'a [SeenCost], assumed: Assumed) -> Self {
        Self { models, seen, assumed, tokens: 0, nano: Some(0) }
    }

    /// An agent that is told this and may take so many turns. What such agents were seen to cost counts more
    /// than what is assumed.
    pub(super) fn agent(&mut self, role: Role, model: &str, prompt: &str, limit: u32) {
        let known = self.seen.iter().find(|one| one.role == role && one.model == model);
        let known = known.map(|one| if self.assumed == Assumed::LOW { one.nano.0 } else { one.nano.1 });
        let before_it = self.nano;
        self.assume(model, prompt, limit);
        if let Some(nano) = known {
            self.nano = before_it.map(|sum| sum.saturating_add(nano));
        }
    }

    fn assume(&mut self, model: &str, prompt: &str, limit: u32) {
        let row = self.models.get(model);
        let turns = self.assumed.turns(limit);
        let Assumed { base, read, written, .. } = self.assumed;
        let mut before = 0u64;
        let mut new = base + prompt.len() as u64 / BYTES;
        for _ in 0..turns {
            // What was sent before is read from the cache, what is new is written to it: that is what the
            // session does.
            let usage = Usage {
                input_tokens: if turns == 1 { new } else { 0 },
                cache_write_5m_tokens: if turns == 1 { 0 } else { new },
                cache_read_tokens: before,
                output_tokens: written,
                ..Usage::default()
            };
            self.tokens = self.tokens.saturating_add(usage.prompt_tokens()).saturating_add(written);
            self.nano = self.nano.zip(cost(&row, &usage)).map(|(sum, cost)| sum.saturating_add(cost));
            before += new;
            new = read + written;
        }
    }

    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(super) fn nano(&self) -> Option<u64> {
        self.nano
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_more_turns_costs_more_and_an_unknown_price_stays_unknown() {
        let models = Models::builtin();
        let of = |assumed, model: &str| {
            let mut bill = Bill::new(&models, &[], assumed);
            bill.agent(Role::Callee, model, &"x".repeat(4_000), 50);
            (bill.tokens(), bill.nano())
        };
        let low = of(Assumed::LOW, "claude-opus-4-8");
        let high = of(Assumed::HIGH, "claude-opus-4-8");
        assert_eq!(low.0, 2_500 + 1_000 + 300);
        assert!(low.1 < high.1 && low.0 < high.0, "{low:?} {high:?}");
        assert_eq!(of(Assumed::LOW, "somebody-elses-model").1, None);
    }

    #[test]
    fn what_was_seen_of_a_role_and_a_model_counts_more_than_what_is_assumed() {
        let models = Models::builtin();
        let seen =
            [SeenCost { role: Role::Callee, model: "claude-opus-4-8".into(), nano: (10, 20), seen: 3 }];
        let of = |role, assumed, model: &str| {
            let mut bill = Bill::new(&models, &seen, assumed);
            bill.agent(role, model, "x", 50);
            bill.nano()
        };
        assert_eq!(of(Role::Callee, Assumed::LOW, "claude-opus-4-8"), Some(10));
        assert_eq!(of(Role::Callee, Assumed::HIGH, "claude-opus-4-8"), Some(20));
        assert!(of(Role::Verifier, Assumed::HIGH, "claude-opus-4-8") > Some(20));
        assert_eq!(of(Role::Callee, Assumed::LOW, "somebody-elses-model"), None);
    }
}
