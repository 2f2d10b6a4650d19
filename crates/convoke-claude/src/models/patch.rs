//! What a configuration may say about a model. It checks and applies; it never reads a file.

use serde::Deserialize;

use super::{Model, TableError, ThinkingDefault, ThinkingType};
use crate::prices::{Prices, Rates, Tier};

/// A `[models."name"]` table: every member is optional, and what is left out stays as the row had it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelPatch {
    /// Other names people may use for it.
    pub aliases: Option<Vec<String>>,
    /// `role: system` may stand inside `messages`.
    pub system_role: Option<bool>,
    /// The values of `output_config.effort` it takes, lowest first; `[]` means that it refuses the parameter.
    pub effort_levels: Option<Vec<String>>,
    /// The effort that leaving the parameter out amounts to.
    pub default_effort: Option<String>,
    /// The values of `thinking.type` it takes.
    pub thinking: Option<Vec<ThinkingType>>,
    /// What it does when `thinking` is left out.
    pub thinking_default: Option<ThinkingDefault>,
    /// The context window in tokens.
    pub window: Option<u64>,
    /// The most output tokens one reply may have.
    pub max_output: Option<u32>,
    /// The shortest prompt in tokens that the server caches.
    pub cache_minimum: Option<u64>,
    /// The most tokens the server adds to a prompt by itself.
    pub overhead_tokens: Option<u64>,
    /// The most tokens of a reply it writes in a second, rather too high than too low; 0 when it is not
    /// known.
    pub output_per_second: Option<u32>,
    /// `tool_choice` of type `any` or `tool` is accepted.
    pub forced_tool_choice: Option<bool>,
    /// The last message may be the assistant's.
    pub prefill: Option<bool>,
    /// What it costs: one entry per tier.
    pub prices: Option<Vec<TierPatch>>,
    /// The day the prices were read.
    pub price_date: Option<String>,
}

/// One tier of prices in dollars per million tokens, as price lists print them.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierPatch {
    /// The tier holds for prompts of more tokens than this.
    #[serde(default)]
    pub above: u64,
    /// Input neither read from nor written to the cache.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input read from the cache; left out, it costs what input costs.
    pub cache_read: Option<f64>,
    /// Input written to the cache for five minutes; left out, it costs what input costs.
    pub cache_write_5m: Option<f64>,
    /// Input written to the cache for an hour; left out, it costs what input costs.
    pub cache_write_1h: Option<f64>,
}

impl ModelPatch {
    /// The row with the patch applied. A row that was assumed counts as stated once its size and price are
    /// given.
    pub(super) fn apply(self, mut model: Model) -> Result<Model, TableError> {
        let wrong = |problem: String| TableError::Model { model: model.id.clone(), problem };
        if self.window == Some(0) || self.max_output == Some(0) {
            return Err(wrong("window and max_output must be at least 1 token".to_owned()));
        }
        let prices = match self.prices {
            Some(tiers) => {
                let date = self.price_date.clone().unwrap_or_else(|| "the user's configuration".to_owned());
                Some(prices(&tiers, date).map_err(wrong)?)
            }
            None => {
                model.prices.take().map(|old| Prices { date: self.price_date.unwrap_or(old.date), ..old })
            }
        };
        if self.window.is_some() && self.max_output.is_some() && prices.is_some() {
            model.assumed = false;
        }
        model.prices = prices;
        model.sized |= self.window.is_some() || self.max_output.is_some();
        set(&mut model.aliases, self.aliases);
        set(&mut model.system_role, self.system_role);
        if let Some(levels) = self.effort_levels {
            model.default_effort = model.default_effort.filter(|level| levels.contains(level));
            model.effort_levels = levels;
        }
        if let Some(level) = self.default_effort {
            if !model.effort_levels.contains(&level) {
                let levels = model.effort_levels.join(", ");
                let problem = format!("default_effort `{level}` is not among effort_levels ({levels})");
                return Err(TableError::Model { model: model.id, problem });
            }
            model.default_effort = Some(level);
        }
        set(&mut model.thinking.accepts, self.thinking);
        set(&mut model.thinking.default, self.thinking_default);
        set(&mut model.window, self.window);
        set(&mut model.max_output, self.max_output);
        set(&mut model.cache_minimum, self.cache_minimum);
        set(&mut model.overhead_tokens, self.overhead_tokens);
        if let Some(fastest) = self.output_per_second {
            model.output_per_second = (fastest > 0).then_some(fastest);
        }
        set(&mut model.forced_tool_choice, self.forced_tool_choice);
        set(&mut model.prefill, self.prefill);
        Ok(model)
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn prices(tiers: &[TierPatch], date: String) -> Result<Prices, String> {
    if tiers.first().is_none_or(|tier| tier.above != 0) || !tiers.is_sorted_by(|a, b| a.above < b.above) {
        return Err(
            "prices need a first tier without `above`, and each further tier a larger `above`".to_owned()
        );
    }
    let tiers = tiers.iter().map(tier).collect::<Result<_, _>>()?;
    Ok(Prices { tiers, date })
}

fn tier(patch: &TierPatch) -> Result<Tier, String> {
    let rate = |dollars: Option<f64>| nano_per_token(dollars.unwrap_or(patch.input));
    Ok(Tier {
        above: patch.above,
        rates: Rates {
            input: nano_per_token(patch.input)?,
            output: nano_per_token(patch.output)?,
            cache_read: rate(patch.cache_read)?,
            cache_write_5m: rate(patch.cache_write_5m)?,
            cache_write_1h: rate(patch.cache_write_1h)?,
        },
    })
}

/// A dollar per million tokens is a thousand nano-dollars per token. Money stays in integers from here on.
fn nano_per_token(dollars_per_million: f64) -> Result<u64, String> {
    let nano = dollars_per_million * 1_000.0;
    let whole = nano.round();
    if !(0.0..=1e12).contains(&whole) || (nano - whole).abs() > 1e-6 {
        return Err(format!(
            "the price {dollars_per_million} must be dollars per million tokens, not negative, in steps of \
                0.001"
        ));
    }
    Ok(whole as u64)
}
