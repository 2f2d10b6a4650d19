//! Whether a text can be asked of an agent at all. The request stands at the beginning of every history, also
//! of one that is begun because the last one was too long: a text that leaves no room to work would make the
//! agent write a summary after every turn, for money and without end.

use crate::agent::{CAPSULE_BYTES, Mark, SUMMARY_TOKENS};
use crate::spec::{AgentSpec, LEAST_MAX_TOKENS};

/// Bytes that make about one token, on the careful side: plain English has more than four of them, source
/// code about three.
pub(crate) const BYTES_PER_TOKEN: u64 = 3;

/// A text of so few bytes is never called too long: where it does not fit, the window is too small for
/// anything.
pub const SHORT_TEXT: usize = 8 * 1024;

/// A text that does not fit what the model reads at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the text has {} bytes, about {} tokens (one for every {BYTES_PER_TOKEN} bytes), and {model} reads {} \
     tokens at once: at most {} bytes fit beside the system prompt, the tools and room to work. Put it into \
     a file and ask for that file to be read in parts, or choose a model with a larger window",
    grouped(*.bytes), grouped(*.tokens), grouped(*.window), grouped(*.most)
)]
pub struct TooLong {
    /// How long it is.
    pub bytes: u64,
    /// About how many tokens that is.
    pub tokens: u64,
    /// The model.
    pub model: String,
    /// How many tokens the model reads at once.
    pub window: u64,
    /// The bytes that would fit.
    pub most: u64,
}

impl AgentSpec {
    /// The bytes of the longest text that can be asked of this agent.
    ///
    /// The window, less the system prompt and the tools, less the smallest room for a reply that is worth
    /// asking for. An agent that begins a new history when the last one is too long needs more than that:
    /// what its histories begin with, the summary and the capsule included, takes at most three quarters of
    /// the length at which one is left behind, so that each has room to work in and gains a quarter.
    pub fn most_text(&self) -> u64 {
        let fixed = Mark::of(self).bytes.div_ceil(BYTES_PER_TOKEN);
        let whole = self.capabilities.window.saturating_sub(u64::from(LEAST_MAX_TOKENS));
        let tokens = match &self.team {
            None => whole,
            Some(team) => {
                let told = u64::from(SUMMARY_TOKENS) + (CAPSULE_BYTES as u64).div_ceil(BYTES_PER_TOKEN);
                whole.min((team.compact_at / 4).saturating_mul(3).saturating_sub(told))
            }
        };
        let most = tokens.saturating_sub(fixed).saturating_mul(BYTES_PER_TOKEN);
        most.max(SHORT_TEXT as u64)
    }

    /// That this text can be asked of this agent.
    pub fn check_text(&self, text: &str) -> Result<(), TooLong> {
        let bytes = text.len() as u64;
        // Short texts are common, and are not measured each time.
        if text.len() <= SHORT_TEXT || bytes <= self.most_text() {
            return Ok(());
        }
        let tokens = bytes.div_ceil(BYTES_PER_TOKEN);
        let most = self.most_text();
        Err(TooLong { bytes, tokens, model: self.model.clone(), window: self.capabilities.window, most })
    }
}

/// A number with its thousands set apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tests_of_specs::{in_team, spec};

    fn of(window: u64, compact_at: Option<u64>) -> AgentSpec {
        let mut spec = spec(30);
        spec.capabilities.window = window;
        match compact_at {
            Some(at) => in_team(spec, at),
            None => spec,
        }
    }

    #[test]
    fn a_text_that_leaves_no_room_to_work_does_not_fit() {
        let check = |spec: AgentSpec, bytes: usize, fits: bool| {
            let result = spec.check_text(&"x".repeat(bytes));
            assert_eq!(result.is_ok(), fits, "{bytes} bytes of {}: {result:?}", spec.most_text());
        };
        // Three quarters of 150,000 tokens, less 8,000 for the summary and 5,462 for the capsule, less what
        // every request begins with.
        check(of(200_000, Some(150_000)), 600_000, false);
        check(of(200_000, Some(150_000)), 300_000, false);
        check(of(200_000, Some(150_000)), 250_000, true);
        check(of(1_000_000, Some(750_000)), 600_000, true);
        // One that never begins a new history has all of its window.
        check(of(200_000, None), 500_000, true);
        check(of(200_000, None), 600_000, false);
        // However small the window, a short text is not to blame for it.
        check(of(1_000, Some(750)), SHORT_TEXT, true);
        check(of(1_000, Some(750)), SHORT_TEXT + 1, false);
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_size_and_with_what_would_fit() {
        let told = of(200_000, Some(150_000)).check_text(&"x".repeat(600_000)).unwrap_err();
        let fits = grouped(told.most);
        assert_eq!((told.bytes, told.tokens, told.window), (600_000, 200_000, 200_000));
        let text = told.to_string();
        let words =
            ["600,000 bytes", "about 200,000 tokens (one for every 3 bytes)", &fits, "Put it into a file"];
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
    }
}
