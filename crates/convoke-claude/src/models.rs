//! The table of models: what each one accepts, how much it holds and what it costs. Data only; it never sends
//! anything.

mod builtin;
mod patch;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::patch::{ModelPatch, TierPatch};
use crate::prices::Prices;

/// The name of the built-in offline model.
pub const OFFLINE_MODEL: &str = "offline";

/// One row of the table: a model and everything a client has to know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The name the API knows it by; this is what is sent.
    pub id: String,
    /// Other names people may use for it.
    pub aliases: Vec<String>,
    /// `role: system` may stand inside `messages`.
    pub system_role: bool,
    /// The values of `output_config.effort` it takes, lowest first; empty when it refuses the parameter.
    pub effort_levels: Vec<String>,
    /// The effort that leaving the parameter out amounts to.
    pub default_effort: Option<String>,
    /// What it does with the `thinking` parameter.
    pub thinking: ThinkingRules,
    /// The context window in tokens.
    pub window: u64,
    /// The most output tokens one reply may have.
    pub max_output: u32,
    /// The shortest prompt in tokens that the API puts into its cache.
    pub cache_minimum: u64,
    /// The most tokens the API adds to a prompt by itself: its tool-use preamble and the tools it defines.
    pub overhead_tokens: u64,
    /// The most tokens of a reply it writes in a second; `None` when it is not stated. It bounds what a
    /// request that was cut off can have cost, so it must rather be too high than too low.
    pub output_per_second: Option<u32>,
    /// `tool_choice` of type `any` or `tool` is accepted.
    pub forced_tool_choice: bool,
    /// The last message may be the assistant's.
    pub prefill: bool,
    /// What it costs; `None` when no price is known.
    pub prices: Option<Prices>,
    /// The row is a guess, wholly or in part: see [`Model::assumptions`].
    pub assumed: bool,
    /// Window and reply size are what the server itself says.
    pub listed: bool,
    /// A person has stated the window or the reply size.
    pub sized: bool,
    /// The day it is retired, if that is published.
    pub retires: Option<String>,
}

/// A value of `thinking.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingType {
    /// The model decides how much to think.
    Adaptive,
    /// Thinking with a `budget_tokens`.
    Enabled,
    /// No thinking.
    Disabled,
    /// Thinking between tool calls only.
    BetweenTools,
}

impl fmt::Display for ThinkingType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Adaptive => "adaptive",
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::BetweenTools => "between_tools",
        })
    }
}

/// What a model does when `thinking` is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingDefault {
    /// It does not think.
    Off,
    /// It thinks, and can be told not to, or less.
    On,
    /// It thinks, and cannot be told otherwise.
    Always,
}

/// What a model does with the `thinking` parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinkingRules {
    /// The types it accepts; every other one is refused.
    pub accepts: Vec<ThinkingType>,
    /// What leaving the parameter out amounts to.
    pub default: ThinkingDefault,
    /// `disabled` and `between_tools` are refused together with effort `xhigh` or `max`.
    pub restrained_up_to_high: bool,
}

impl ThinkingRules {
    /// Whether this type may be sent at this effort (`None`: the effort is left out).
    pub fn allows(&self, kind: ThinkingType, effort: Option<&str>) -> bool {
        let restrained = matches!(kind, ThinkingType::Disabled | ThinkingType::BetweenTools);
        let at_the_top = matches!(effort, Some("xhigh" | "max"));
        self.accepts.contains(&kind) && !(self.restrained_up_to_high && restrained && at_the_top)
    }
}

impl Model {
    /// What was assumed about this model in one line; `None` when every fact is from the table.
    pub fn assumed_line(&self) -> Option<String> {
        if !self.assumed {
            return None;
        }
        let price = if self.prices.is_none() { ", no price" } else { "" };
        let who = if self.listed { "its server says" } else { "assumed" };
        Some(format!(
            "{who} of `{}`: window {}, replies {}{price} (--window, --reply and --price state them; `convoke \
                doctor` says more)",
            self.id, self.window, self.max_output
        ))
    }

    /// What was assumed about this model, as sentences for a person; empty when every fact is from the table.
    pub fn assumptions(&self) -> Vec<String> {
        if !self.assumed {
            return Vec::new();
        }
        let id = &self.id;
        let how = if self.listed { "are what its server says" } else { "are assumed" };
        let mut said = vec![format!(
            "The model table does not fully know `{id}`: a window of {} tokens and replies of at most {} \
                tokens {how}.",
            self.window, self.max_output
        )];
        if !self.system_role {
            said.push(format!("`{id}` is assumed to refuse system messages inside a conversation."));
        }
        if self.effort_levels.is_empty() {
            said.push(format!("`{id}` is assumed to refuse the effort parameter."));
        }
        if self.thinking.accepts.is_empty() {
            said.push(format!("`{id}` is not asked to think; what it does by itself is its own affair."));
        }
        if self.prices.is_none() {
            said.push(format!(
                "The price of `{id}` is not known, so its cost cannot be shown or capped in dollars."
            ));
        }
        said.push(format!("To state the facts, add a table [models.\"{id}\"] to your user configuration."));
        said
    }
}

/// All models this process knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    rows: Vec<Model>,
}

impl Models {
    /// The table as it was compiled in.
    pub fn builtin() -> Self {
        Self { rows: builtin::rows() }
    }

    /// Adds models or changes rows, from a configuration's `[models."name"]` tables. On an error nothing has
    /// changed.
    pub fn extend(
        &mut self,
        patches: impl IntoIterator<Item = (String, ModelPatch)>,
    ) -> Result<(), TableError> {
        let mut changed = self.clone();
        for (id, patch) in patches {
            changed.put(patch.apply(changed.get(&id))?);
        }
        *self = changed;
        Ok(())
    }

    /// The row for a name, an alias, or a dated form of a name. An unknown name gives a row of stated
    /// assumptions.
    pub fn get(&self, id: &str) -> Model {
        if let Some(row) = self.rows.iter().find(|row| row.id == id) {
            return row.clone();
        }
        if let Some(row) = self.rows.iter().find(|row| row.aliases.iter().any(|alias| alias == id)) {
            return row.clone();
        }
        if let Some(row) = undated(id).and_then(|name| self.rows.iter().find(|row| row.id == name)) {
            return Model { id: id.to_owned(), aliases: Vec::new(), ..row.clone() };
        }
        builtin::unknown(id)
    }

    /// Puts a row into the table, in place of one of the same name.
    pub(crate) fn put(&mut self, model: Model) {
        match self.rows.iter_mut().find(|row| row.id == model.id) {
            Some(row) => *row = model,
            None => self.rows.push(model),
        }
    }

    /// Whether the table itself has this name, as an id or as an alias.
    pub fn knows(&self, id: &str) -> bool {
        self.rows.iter().any(|row| row.id == id || row.aliases.iter().any(|alias| alias == id))
    }

    /// Every row, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.rows.iter()
    }
}

impl Default for Models {
    fn default() -> Self {
        Self::builtin()
    }
}

/// A name without the date at its end, if it has one: `claude-x-20260101` is the model `claude-x`.
fn undated(id: &str) -> Option<&str> {
    let (name, date) = id.rsplit_once('-')?;
    (date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// A table entry, or a wish of a caller, that the tables do not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The model has effort levels, but not this one.
    #[error("model `{model}` does not take effort `{effort}`; choose one of: {}", levels.join(", "))]
    EffortLevel {
        /// The model that was asked.
        model: String,
        /// The effort that was asked for.
        effort: String,
        /// The levels it takes, lowest first.
        levels: Vec<String>,
    },
    /// The model has no effort levels.
    #[error(
        "model `{model}` does not take the effort parameter; leave effort out, or state `effort_levels` \
            under [models.\"{model}\"] in your user configuration"
    )]
    NoEffort {
        /// The model that was asked.
        model: String,
    },
    /// A `[models."…"]` table that contradicts itself.
    #[error("[models.\"{model}\"]: {problem}")]
    Model {
        /// The model whose table it is.
        model: String,
        /// What is wrong and what to write instead.
        problem: String,
    },
    /// An `[endpoints."…"]` table that cannot be used.
    #[error("[endpoints.\"{url}\"]: {problem}")]
    Endpoint {
        /// The base URL whose table it is.
        url: String,
        /// What is wrong and what to write instead.
        problem: String,
    },
}
