//! What can be granted and what can be spent: caps, amounts and the words for "not enough". Never decides
//! anything.

use serde::{Deserialize, Serialize};

/// What a person granted for a session, as totals. `None` is no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    /// Agents that may be admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
    /// Tokens, prompt and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Nano-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano: Option<u64>,
    /// Milliseconds in which a process holds the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// Tokens and money. Saturating: a server can claim any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Tokens, prompt and output together.
    pub tokens: u64,
    /// Nano-dollars.
    pub nano: u64,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount { tokens: 0, nano: 0 };

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount {
            tokens: self.tokens.saturating_add(other.tokens),
            nano: self.nano.saturating_add(other.nano),
        }
    }

    /// What is left of this one without the other.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        Amount {
            tokens: self.tokens.saturating_sub(other.tokens),
            nano: self.nano.saturating_sub(other.nano),
        }
    }

    /// The lesser of both, in tokens and in money.
    #[must_use]
    pub fn least(self, other: Amount) -> Amount {
        Amount { tokens: self.tokens.min(other.tokens), nano: self.nano.min(other.nano) }
    }

    /// Whether it is no more than `room`, in tokens and in money.
    pub fn fits_in(self, room: Amount) -> bool {
        self.tokens <= room.tokens && self.nano <= room.nano
    }
}

/// One of the caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    /// Agents admitted.
    Agents,
    /// Tokens spent and held.
    Tokens,
    /// Nano-dollars spent and held.
    Dollars,
    /// Milliseconds in which the session was held.
    Minutes,
}

/// There is too little left under one of the caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", said(self))]
pub struct Short {
    /// The cap that stands in the way.
    pub what: Cap,
    /// What is needed, in the cap's unit. [`u64::MAX`] dollars: the model has no known price.
    pub needs: u64,
    /// What is left.
    pub left: u64,
    /// What was granted.
    pub cap: u64,
}

impl Short {
    /// What is said of it to an agent that asks this model.
    pub fn told_of(&self, model: &str) -> String {
        match self.what {
            Cap::Dollars if self.needs == u64::MAX => unpriced(&format!("the model `{model}`"), self.cap),
            _ => self.to_string(),
        }
    }
}

fn unpriced(model: &str, cap: u64) -> String {
    format!(
        "{model} has no known price, so nothing bounds its requests under the cap of {}; \
         use a model with a price or leave --budget-usd out",
        dollars(cap, Round::Down)
    )
}

fn said(short: &Short) -> String {
    let Short { what, needs, left, cap } = *short;
    match what {
        Cap::Agents => {
            let noun = if needs == 1 { "agent" } else { "agents" };
            let needs = grouped(needs);
            let left = grouped(left);
            let cap = grouped(cap);
            format!(
                "needs {needs} {noun}, {left} of {cap} are left; start fewer or grant a new total with \
                    --budget-agents"
            )
        }
        Cap::Tokens => {
            let needs = grouped(needs);
            let left = grouped(left);
            let cap = grouped(cap);
            format!(
                "{left} of {cap} tokens left, the next request may take up to {needs} (hand-back included); \
                 grant a new total with --budget-tokens"
            )
        }
        Cap::Dollars if needs == u64::MAX => unpriced("the model", cap),
        Cap::Dollars => {
            let needs = dollars(needs, Round::Up);
            let left = dollars(left, Round::Down);
            let cap = dollars(cap, Round::Down);
            format!(
                "{left} of {cap} left, the next request may cost up to {needs} (hand-back included); \
                 grant a new total with --budget-usd"
            )
        }
        Cap::Minutes => {
            let time = match cap {
                60_000 => "1 minute".to_owned(),
                _ if cap.is_multiple_of(60_000) => format!("{} minutes", grouped(cap / 60_000)),
                _ => format!("{} seconds", grouped(cap / 1_000)),
            };
            format!("the time granted ({time}) is used up; grant a new total with --budget-minutes")
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Up,
    Down,
}

/// Dollars with cents, below ten cents with four decimals. What is left is rounded down and what is needed
/// up, so that the two never look as if the request would fit.
fn dollars(nano: u64, round: Round) -> String {
    let (unit, places) = if nano > 0 && nano < 100_000_000 { (100_000, 4) } else { (10_000_000, 2) };
    let units = if round == Round::Up { nano.div_ceil(unit) } else { nano / unit };
    let whole = 10_u64.pow(places);
    format!("${}.{:0width$}", grouped(units / whole), units % whole, width = places as usize)
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
