//! What a person states about a model by flag: its window, the length of its replies, its price. The same
//! facts stand in `[models."NAME"]` of a configuration; a flag is for one session. And whether a lead is
//! lean, which follows from the window unless a flag or setting says so.

use convoke_claude::{ModelPatch, Models, TierPatch};
use convoke_runtime::Lean;

use super::layers::Layers;
use super::origin::Origin;
use super::value::Value;
use super::{ModelSource, Settings, switch_word};
use crate::args::{AgentArgs, Switch};
use crate::failure::Failure;

/// A model that reads no more than this at once gets a lean lead.
const SMALL_WINDOW: u64 = 32_768;

/// The words of the key `lean`.
pub(super) const LEAN: &[&str] = &["auto", "on", "off"];

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    input: f64,
    output: f64,
}

impl Price {
    /// Reads `0`, `3` or `3/15`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is no price: write 0, or dollars per million tokens as IN/OUT, such as 0.5/2")
        };
        let dollars =
            |text: &str| text.trim().parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
        let (input, output) = text.split_once('/').unwrap_or((text, text));
        Ok(Self { input: dollars(input).ok_or_else(wrong)?, output: dollars(output).ok_or_else(wrong)? })
    }
}

/// Reads a number of tokens: `16000`, `16k` (16 times 1,024, as servers count) or `1m`.
pub(crate) fn parse_tokens(text: &str) -> Result<u32, String> {
    let wrong = || format!("'{text}' is no number of tokens: write a whole number such as 16000, 16k or 1m");
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1_024),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 1), |digits| (digits, 1_000_000)),
    };
    let number = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|tokens| *tokens > 0).ok_or_else(wrong)
}

/// What the flags state about the model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stated {
    window: Option<u64>,
    reply: Option<u32>,
    price: Option<Price>,
}

impl Stated {
    pub(super) fn of(args: &AgentArgs) -> Self {
        Self { window: args.window.map(u64::from), reply: args.reply, price: args.price }
    }

    /// Puts it into the table, for this model.
    pub(super) fn put(&self, models: &mut Models, model: &str) -> Result<(), Failure> {
        if *self == Self::default() {
            return Ok(());
        }
        let row = models.get(model);
        // A reply is part of what is read at once; half of a stated window is the rest's.
        let half = self.window.map(|window| u32::try_from(window / 2).unwrap_or(u32::MAX));
        let tier = |price: Price| TierPatch {
            above: 0,
            input: price.input,
            output: price.output,
            cache_read: None,
            cache_write_5m: None,
            cache_write_1h: None,
        };
        let patch = ModelPatch {
            window: self.window,
            max_output: self.reply.or(half.filter(|half| *half < row.max_output)),
            prices: self.price.map(|price| vec![tier(price)]),
            price_date: self.price.map(|_| "the flag --price".to_owned()),
            ..ModelPatch::default()
        };
        models.extend([(row.id, patch)]).map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Puts what the flag says over what is there.
pub(super) fn put_flag(layers: &mut Layers, lean: Option<Switch>) {
    if let Some(lean) = lean {
        layers.put("lean", Value::Text(switch_word(lean == Switch::On).to_owned()), Origin::Flag("--lean"));
    }
}

impl Settings {
    /// Settles whether the lead is lean. One that is has the mode off unless a person switched it on: it is
    /// consent to a fan-out that a model with a small window has no room for.
    pub(super) fn settle_lean(&mut self) {
        let word = self.rows.iter().find(|row| row.key == "lean").and_then(|row| row.value.as_deref());
        let lean = match word {
            Some("on") => true,
            Some("off") => false,
            _ => self.model_row().window <= SMALL_WINDOW,
        };
        // The offline model has all of its tools whatever is said.
        let lean = lean && matches!(self.source, ModelSource::Api { .. });
        let team = self.team.on && self.origin("team").is_some_and(|origin| *origin != Origin::Default);
        self.lean = lean.then_some(Lean { team });
        if let Some(mode) =
            self.rows.iter_mut().find(|row| row.key == "mode" && row.origin == Origin::Default)
        {
            mode.value = Some(switch_word(!lean).to_owned());
            self.fan_out.mode = !lean;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_prices_are_read_as_people_write_them() {
        for (text, tokens) in [("16000", 16_000), ("16k", 16_384), ("8K", 8_192), ("1m", 1_000_000)] {
            assert_eq!(parse_tokens(text), Ok(tokens));
        }
        for wrong in ["", "k", "0", "-1", "1.5k", "many", "9999999m"] {
            assert!(parse_tokens(wrong).unwrap_err().contains("such as 16000"), "{wrong}");
        }
        assert_eq!(Price::parse("0"), Ok(Price { input: 0.0, output: 0.0 }));
        assert_eq!(Price::parse("0.5/2"), Ok(Price { input: 0.5, output: 2.0 }));
        for wrong in ["", "x", "-1", "1/", "1/2/3", "inf"] {
            assert!(Price::parse(wrong).unwrap_err().contains("such as 0.5/2"), "{wrong}");
        }
    }
}
