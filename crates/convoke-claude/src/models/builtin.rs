//! The rows of the model table, as published up to 2026-10-10, and Claude Fable 5.2 of November. Facts only;
//! what follows from them is decided elsewhere.

use super::{Model, OFFLINE_MODEL, ThinkingDefault, ThinkingRules, ThinkingType};
use crate::endpoints::is_claude;
use crate::prices::{Prices, Rates, Tier};

/// The day the prices below were read, where a row says no other.
const PRICE_DATE: &str = "2026-10-10";

const FIVE: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const NO_XHIGH: &[&str] = &["low", "medium", "high", "max"];
const THREE: &[&str] = &["low", "medium", "high"];
const NO_EFFORT: &[&str] = &[];

const MILLION: u64 = 1_000_000;
const SMALL_WINDOW: u64 = 200_000;

/// The tool-use preamble (290), the bash tool (325) and the text editor (700), rounded up.
const OVERHEAD: u64 = 2_000;

/// Thinking as the families share it.
#[derive(Clone, Copy)]
enum Habit {
    /// Adaptive and nothing else.
    Always,
    /// On, may be switched off at effort high or below.
    OnUnlessHigh,
    /// On, may be reduced to between tools at effort high or below.
    OnOrBetweenTools,
    /// On, may be switched off.
    On,
    /// Off, adaptive on request.
    Off,
    /// Off, adaptive or by budget on request.
    OffOrBudget,
    /// Off, by budget alone.
    BudgetOnly,
}

impl Habit {
    fn rules(self) -> ThinkingRules {
        use ThinkingType::{Adaptive, BetweenTools, Disabled, Enabled};
        let (accepts, default, restrained_up_to_high) = match self {
            Self::Always => (vec![Adaptive], ThinkingDefault::Always, false),
            Self::OnUnlessHigh => (vec![Adaptive, Disabled], ThinkingDefault::On, true),
            Self::OnOrBetweenTools => (vec![Adaptive, BetweenTools], ThinkingDefault::On, true),
            Self::On => (vec![Adaptive, Disabled], ThinkingDefault::On, false),
            Self::Off => (vec![Adaptive, Disabled], ThinkingDefault::Off, false),
            Self::OffOrBudget => (vec![Adaptive, Enabled, Disabled], ThinkingDefault::Off, false),
            Self::BudgetOnly => (vec![Enabled, Disabled], ThinkingDefault::Off, false),
        };
        ThinkingRules { accepts, default, restrained_up_to_high }
    }
}

/// A row in its shortest form. Rates are nano-dollars per token, that is dollars per million times a
/// thousand.
struct Row {
    id: &'static str,
    aliases: &'static [&'static str],
    system_role: bool,
    levels: &'static [&'static str],
    effort: &'static str,
    habit: Habit,
    window: u64,
    max_output: u32,
    cache_minimum: u64,
    per_second: u32,
    forced_tool_choice: bool,
    prefill: bool,
    rates: [u64; 5],
    priced: &'static str,
    retires: Option<&'static str>,
}

/// The commonest values, for the rows to differ from.
const USUAL: Row = Row {
    id: "",
    aliases: &[],
    system_role: true,
    levels: FIVE,
    effort: "high",
    habit: Habit::Always,
    window: MILLION,
    max_output: 128_000,
    cache_minimum: 512,
    per_second: LARGE_PER_SECOND,
    forced_tool_choice: true,
    prefill: false,
    rates: OPUS_RATES,
    priced: PRICE_DATE,
    retires: None,
};

/// The most tokens a second, per size of model. No limit is published: these are about three times of what is
/// usually measured, because a bound that is too low would let a bill pass a cap.
const LARGE_PER_SECOND: u32 = 200;
const MIDDLE_PER_SECOND: u32 = 250;
const SMALL_PER_SECOND: u32 = 500;

const FABLE_5_2_RATES: [u64; 5] = [8_000, 40_000, 800, 10_000, 16_000];
const FABLE_5_1_RATES: [u64; 5] = [10_000, 50_000, 250, 12_500, 20_000];
const FABLE_5_RATES: [u64; 5] = [10_000, 50_000, 1_000, 12_500, 20_000];
const OPUS_5_5_RATES: [u64; 5] = [4_000, 20_000, 200, 5_000, 8_000];
const OPUS_RATES: [u64; 5] = [5_000, 25_000, 500, 6_250, 10_000];
const SONNET_5_5_RATES: [u64; 5] = [2_000, 10_000, 100, 2_500, 4_000];
const SONNET_5_RATES: [u64; 5] = [2_000, 10_000, 200, 2_500, 4_000];
const SONNET_4_RATES: [u64; 5] = [3_000, 15_000, 300, 3_750, 6_000];
const HAIKU_5_5_RATES: [u64; 5] = [100, 500, 10, 125, 200];
const HAIKU_5_5_LONG_RATES: [u64; 5] = [500, 2_500, 50, 625, 1_000];
const HAIKU_4_RATES: [u64; 5] = [1_000, 5_000, 100, 1_250, 2_000];

const ROWS: &[Row] = &[
    // Of Fable 5.2 the prices of input and output are published; everything else is taken to be as with 5.1,
    // and the cache to cost the usual multiples (1.25, 2 and 0.1), of which the last is rather too high.
    Row {
        id: "claude-fable-5-2",
        aliases: &["fable"],
        cache_minimum: 1_024,
        forced_tool_choice: false,
        rates: FABLE_5_2_RATES,
        priced: "2026-11-16",
        ..USUAL
    },
    // The cache minimum of the 5.1 line is not published; the larger of its neighbours' is the careful guess.
    Row {
        id: "claude-fable-5-1",
        cache_minimum: 1_024,
        forced_tool_choice: false,
        rates: FABLE_5_1_RATES,
        ..USUAL
    },
    Row {
        id: "claude-mythos-5-1",
        aliases: &["mythos"],
        cache_minimum: 1_024,
        forced_tool_choice: false,
        rates: FABLE_5_1_RATES,
        ..USUAL
    },
    Row { id: "claude-fable-5", rates: FABLE_5_RATES, ..USUAL },
    Row { id: "claude-mythos-5", rates: FABLE_5_RATES, ..USUAL },
    Row {
        id: "claude-opus-5-5",
        aliases: &["opus"],
        effort: "medium",
        forced_tool_choice: false,
        rates: OPUS_5_5_RATES,
        ..USUAL
    },
    Row { id: "claude-opus-5", habit: Habit::OnUnlessHigh, ..USUAL },
    Row { id: "claude-opus-4-8", habit: Habit::Off, cache_minimum: 1_024, ..USUAL },
    Row { id: "claude-opus-4-7", system_role: false, habit: Habit::Off, cache_minimum: 2_048, ..USUAL },
    Row {
        id: "claude-opus-4-6",
        system_role: false,
        levels: NO_XHIGH,
        habit: Habit::OffOrBudget,
        cache_minimum: 4_096,
        ..USUAL
    },
    Row {
        id: "claude-opus-4-5-20251101",
        aliases: &["claude-opus-4-5"],
        system_role: false,
        levels: THREE,
        habit: Habit::BudgetOnly,
        window: SMALL_WINDOW,
        max_output: 64_000,
        cache_minimum: 4_096,
        prefill: true,
        ..USUAL
    },
    Row {
        id: "claude-sonnet-5-5",
        aliases: &["sonnet"],
        habit: Habit::OnOrBetweenTools,
        forced_tool_choice: false,
        per_second: MIDDLE_PER_SECOND,
        rates: SONNET_5_5_RATES,
        ..USUAL
    },
    // Reports disagree on whether Sonnet 5 takes system messages; refusing to rely on it is always legal.
    Row {
        id: "claude-sonnet-5",
        system_role: false,
        habit: Habit::On,
        cache_minimum: 1_024,
        per_second: MIDDLE_PER_SECOND,
        rates: SONNET_5_RATES,
        ..USUAL
    },
    Row {
        id: "claude-sonnet-4-6",
        system_role: false,
        levels: NO_XHIGH,
        habit: Habit::OffOrBudget,
        cache_minimum: 1_024,
        per_second: MIDDLE_PER_SECOND,
        rates: SONNET_4_RATES,
        ..USUAL
    },
    Row {
        id: "claude-sonnet-4-5-20250929",
        aliases: &["claude-sonnet-4-5"],
        system_role: false,
        levels: NO_EFFORT,
        habit: Habit::BudgetOnly,
        window: SMALL_WINDOW,
        max_output: 64_000,
        cache_minimum: 1_024,
        prefill: true,
        per_second: MIDDLE_PER_SECOND,
        rates: SONNET_4_RATES,
        retires: Some("2026-11-30"),
        ..USUAL
    },
    Row {
        id: "claude-haiku-5-5",
        aliases: &["haiku"],
        effort: "medium",
        habit: Habit::OnUnlessHigh,
        per_second: SMALL_PER_SECOND,
        rates: HAIKU_5_5_RATES,
        ..USUAL
    },
    Row {
        id: "claude-haiku-4-5-20251001",
        aliases: &["claude-haiku-4-5"],
        system_role: false,
        levels: NO_EFFORT,
        habit: Habit::BudgetOnly,
        window: SMALL_WINDOW,
        max_output: 64_000,
        cache_minimum: 4_096,
        prefill: true,
        per_second: SMALL_PER_SECOND,
        rates: HAIKU_4_RATES,
        ..USUAL
    },
];

/// Every row of the table.
pub(super) fn rows() -> Vec<Model> {
    let mut rows: Vec<Model> = ROWS.iter().map(model).collect();
    if let Some(haiku) = rows.iter_mut().find(|row| row.id == "claude-haiku-5-5") {
        haiku.prices = Some(prices(&[(0, HAIKU_5_5_RATES), (100_000, HAIKU_5_5_LONG_RATES)], PRICE_DATE));
    }
    rows.push(mythos_preview());
    rows.push(offline());
    rows
}

/// A row for a name that the table does not have. A name of Claude's family is taken for a small Claude that
/// takes everything, which the server puts right where it is wrong; anything else for a local model, which is
/// asked for nothing that older servers refuse.
pub(super) fn unknown(id: &str) -> Model {
    let claude = is_claude(id);
    let (window, max_output) = if claude { (SMALL_WINDOW, 32_000) } else { (32_768, 8_192) };
    let accepts = if claude { vec![ThinkingType::Adaptive] } else { Vec::new() };
    Model {
        id: id.to_owned(),
        aliases: Vec::new(),
        system_role: claude,
        effort_levels: if claude { owned(FIVE) } else { Vec::new() },
        default_effort: None,
        thinking: ThinkingRules { accepts, default: ThinkingDefault::Off, restrained_up_to_high: false },
        window,
        max_output,
        cache_minimum: 4_096,
        overhead_tokens: OVERHEAD,
        output_per_second: None,
        forced_tool_choice: false,
        prefill: false,
        prices: None,
        assumed: true,
        listed: false,
        sized: false,
        retires: None,
    }
}

/// Only its effort levels were published.
fn mythos_preview() -> Model {
    Model {
        system_role: false,
        thinking: ThinkingRules {
            accepts: Vec::new(),
            default: ThinkingDefault::Off,
            restrained_up_to_high: false,
        },
        effort_levels: owned(NO_XHIGH),
        default_effort: Some("high".to_owned()),
        ..unknown("claude-mythos-preview")
    }
}

/// The built-in offline model takes everything and costs nothing.
fn offline() -> Model {
    use ThinkingType::{Adaptive, BetweenTools, Disabled, Enabled};
    Model {
        id: OFFLINE_MODEL.to_owned(),
        system_role: true,
        effort_levels: owned(FIVE),
        default_effort: Some("high".to_owned()),
        thinking: ThinkingRules {
            accepts: vec![Adaptive, Enabled, Disabled, BetweenTools],
            default: ThinkingDefault::Off,
            restrained_up_to_high: false,
        },
        window: SMALL_WINDOW,
        max_output: 64_000,
        cache_minimum: 512,
        forced_tool_choice: true,
        prefill: true,
        prices: Some(prices(&[(0, [0; 5])], PRICE_DATE)),
        assumed: false,
        ..unknown(OFFLINE_MODEL)
    }
}

fn model(row: &Row) -> Model {
    Model {
        id: row.id.to_owned(),
        aliases: owned(row.aliases),
        system_role: row.system_role,
        effort_levels: owned(row.levels),
        default_effort: (!row.levels.is_empty()).then(|| row.effort.to_owned()),
        thinking: row.habit.rules(),
        window: row.window,
        max_output: row.max_output,
        cache_minimum: row.cache_minimum,
        overhead_tokens: OVERHEAD,
        output_per_second: Some(row.per_second),
        forced_tool_choice: row.forced_tool_choice,
        prefill: row.prefill,
        prices: Some(prices(&[(0, row.rates)], row.priced)),
        assumed: false,
        listed: false,
        sized: false,
        retires: row.retires.map(str::to_owned),
    }
}

fn prices(tiers: &[(u64, [u64; 5])], date: &str) -> Prices {
    let tiers = tiers
        .iter()
        .map(|&(above, [input, output, cache_read, cache_write_5m, cache_write_1h])| Tier {
            above,
            rates: Rates { input, output, cache_read, cache_write_5m, cache_write_1h },
        })
        .collect();
    Prices { tiers, date: date.to_owned() }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
