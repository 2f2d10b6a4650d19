//! The caps of the budget as people write them: whole agents and tokens, dollars and minutes with decimals.
//! Decimals are read digit by digit into whole nano-dollars and milliseconds; no amount ever passes through a
//! floating-point number.

pub(crate) use convoke_kernel::Caps;

use crate::render::{count, dollars, seconds};

/// The word that lifts a cap.
const NO_CAP: &str = "none";
const NANO_PER_DOLLAR: u64 = 1_000_000_000;
const MS_PER_MINUTE: u64 = 60_000;
/// More than any cap needs; below it no sum of a few amounts can overflow.
const MOST: u64 = 1_000_000_000_000_000_000;

/// What a cap counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Agents below the lead.
    Agents,
    /// Tokens, in and out.
    Tokens,
    /// Nano-dollars; people write dollars.
    Dollars,
    /// Milliseconds; people write minutes.
    Minutes,
}

/// One cap, in the smallest unit of its kind; `None` is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cap(pub(crate) Option<u64>);

impl Cap {
    /// Reads a number of agents.
    pub(crate) fn agents(text: &str) -> Result<Self, String> {
        Unit::Agents.read(text)
    }

    /// Reads a number of tokens.
    pub(crate) fn tokens(text: &str) -> Result<Self, String> {
        Unit::Tokens.read(text)
    }

    /// Reads an amount of dollars.
    pub(crate) fn dollars(text: &str) -> Result<Self, String> {
        Unit::Dollars.read(text)
    }

    /// Reads a number of minutes.
    pub(crate) fn minutes(text: &str) -> Result<Self, String> {
        Unit::Minutes.read(text)
    }

    /// Whether this cap lets more through than that one.
    pub(super) fn is_higher_than(self, other: Self) -> bool {
        self.0.unwrap_or(u64::MAX) > other.0.unwrap_or(u64::MAX)
    }
}

impl Unit {
    /// Reads a cap as a person writes it.
    pub(super) fn read(self, text: &str) -> Result<Cap, String> {
        let text = text.trim();
        if text == NO_CAP {
            return Ok(Cap(None));
        }
        let number = text.strip_prefix('$').filter(|_| self == Self::Dollars).unwrap_or(text);
        let amount = decimal(number, self.scale()).map_err(|wrong| match wrong {
            Wrong::NoNumber => {
                format!("'{text}' is no {}: write {}, or none to lift the cap", self.noun(), self.form())
            }
            Wrong::TooFine => format!("'{text}' is finer than {}", self.finest()),
            Wrong::TooLarge => format!("'{text}' is too large; none lifts the cap"),
        })?;
        match (self, amount) {
            (Self::Agents, amount) if amount > u64::from(u32::MAX) => {
                Err(format!("'{text}' is too large; none lifts the cap"))
            }
            // A lead without helpers, or a model that costs nothing, is a thing to ask for; no tokens or no
            // time is not.
            (Self::Tokens | Self::Minutes, 0) => {
                Err(format!("'{text}' leaves nothing; it must be more than zero"))
            }
            (_, amount) => Ok(Cap(Some(amount))),
        }
    }

    /// Writes a cap so that reading it gives the same.
    pub(crate) fn show(self, cap: Cap) -> String {
        let Some(amount) = cap.0 else { return NO_CAP.to_owned() };
        let scale = self.scale();
        let whole = amount / scale;
        let rest = amount % scale;
        // What was read had finitely many digits, and so has this: a remainder is multiplied out digit by
        // digit.
        let mut digits = String::new();
        let mut rest = rest;
        while rest > 0 && digits.len() < 12 {
            digits.push(char::from(b'0' + u8::try_from(rest * 10 / scale).unwrap_or(9)));
            rest = rest * 10 % scale;
        }
        if digits.is_empty() { whole.to_string() } else { format!("{whole}.{digits}") }
    }

    fn scale(self) -> u64 {
        match self {
            Self::Agents | Self::Tokens => 1,
            Self::Dollars => NANO_PER_DOLLAR,
            Self::Minutes => MS_PER_MINUTE,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Agents => "number of agents",
            Self::Tokens => "number of tokens",
            Self::Dollars => "amount of dollars",
            Self::Minutes => "number of minutes",
        }
    }

    fn form(self) -> &'static str {
        match self {
            Self::Agents => "a whole number such as 40",
            Self::Tokens => "a whole number such as 2000000",
            Self::Dollars => "a number such as 5 or 2.50",
            Self::Minutes => "a number such as 30 or 1.5",
        }
    }

    fn finest(self) -> &'static str {
        match self {
            Self::Agents => "one agent",
            Self::Tokens => "one token",
            Self::Dollars => "a nano-dollar (nine decimals)",
            Self::Minutes => "a millisecond",
        }
    }
}

/// The caps for people, shortest first to be left out last: `$10.00, 500 agents, 120 min`.
pub(crate) fn words(caps: &Caps) -> String {
    let parts = [
        caps.nano.map(|nano| dollars(Some(nano))),
        caps.agents.map(|agents| count(agents, "agent")),
        caps.tokens.map(|tokens| format!("{} tokens", crate::render::tokens(tokens))),
        caps.ms.map(minutes),
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    if said.is_empty() { "no caps".to_owned() } else { said.join(", ") }
}

/// `120 min`, or seconds where a minute is too long.
pub(crate) fn minutes(ms: u64) -> String {
    match ms {
        0..MS_PER_MINUTE => seconds(std::time::Duration::from_millis(ms)),
        _ => format!("{} min", ms / MS_PER_MINUTE),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    NoNumber,
    TooFine,
    TooLarge,
}

/// A decimal number times `scale`, exactly.
fn decimal(text: &str, scale: u64) -> Result<u64, Wrong> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || text.ends_with('.') {
        return Err(Wrong::NoNumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let mut parts = 0u128;
    let mut divisor = 1u128;
    for digit in fraction.bytes() {
        if divisor >= u128::from(MOST) {
            return Err(Wrong::TooFine);
        }
        parts = parts * 10 + u128::from(digit - b'0');
        divisor *= 10;
    }
    let parts = parts * u128::from(scale);
    if !parts.is_multiple_of(divisor) {
        return Err(Wrong::TooFine);
    }
    let whole = whole.parse::<u64>().map_err(|_| Wrong::TooLarge)?;
    let whole = whole.checked_mul(scale).filter(|amount| *amount <= MOST).ok_or(Wrong::TooLarge)?;
    // The fraction is less than one, so it is less than the scale.
    Ok(whole + u64::try_from(parts / divisor).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(unit: Unit, text: &str, amount: Option<u64>, shown: &str) {
        let cap = unit.read(text).unwrap();
        assert_eq!(cap, Cap(amount), "{text}");
        assert_eq!(unit.show(cap), shown, "{text}");
        assert_eq!(unit.read(shown), Ok(cap), "what is shown is read as the same");
    }

    #[test]
    fn amounts_are_read_exactly_and_shown_so_that_they_read_the_same() {
        check(Unit::Dollars, "10", Some(10_000_000_000), "10");
        check(Unit::Dollars, "$2.50", Some(2_500_000_000), "2.5");
        check(Unit::Dollars, "0.1", Some(100_000_000), "0.1");
        check(Unit::Dollars, "0.000000001", Some(1), "0.000000001");
        check(Unit::Dollars, "1.10000000000000", Some(1_100_000_000), "1.1");
        check(Unit::Dollars, "0", Some(0), "0");
        check(Unit::Dollars, "123456789.123456789", Some(123_456_789_123_456_789), "123456789.123456789");
        check(Unit::Dollars, "none", None, "none");
        check(Unit::Minutes, "120", Some(7_200_000), "120");
        check(Unit::Minutes, "1.5", Some(90_000), "1.5");
        check(Unit::Minutes, "0.00005", Some(3), "0.00005");
        check(Unit::Minutes, "none", None, "none");
        check(Unit::Agents, "0", Some(0), "0");
        check(Unit::Agents, "500", Some(500), "500");
        check(Unit::Tokens, "2000000", Some(2_000_000), "2000000");
    }

    #[test]
    fn what_is_no_cap_is_refused_with_what_to_write() {
        let check = |unit: Unit, text: &str, says: &str| {
            let error = unit.read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        };
        for text in ["", "ten", "-1", "1e3", "1,5", ".", ".5", "5.", "1.2.3", "+1", "$", "inf", "NaN", "٣"] {
            check(Unit::Dollars, text, "such as 5 or 2.50, or none");
        }
        check(Unit::Dollars, "0.0000000001", "finer than a nano-dollar");
        check(Unit::Dollars, "0.1234567890123456789012345678901234567890", "finer than a nano-dollar");
        check(Unit::Dollars, "99999999999999999999", "too large");
        check(Unit::Dollars, "10000000000", "too large");
        check(Unit::Minutes, "0", "more than zero");
        check(Unit::Minutes, "0.00001", "finer than a millisecond");
        check(Unit::Agents, "1.5", "finer than one agent");
        check(Unit::Agents, "$5", "such as 40");
        check(Unit::Agents, "5000000000", "too large");
        check(Unit::Tokens, "0", "more than zero");
    }

    #[test]
    fn no_cap_is_higher_than_any() {
        let check = |one, other, expected| assert_eq!(Cap(one).is_higher_than(Cap(other)), expected);
        check(None, Some(5), true);
        check(Some(5), None, false);
        check(Some(5), Some(4), true);
        check(Some(5), Some(5), false);
        check(None, None, false);
    }

    #[test]
    fn caps_are_told_in_a_few_words() {
        let usual = Caps { agents: Some(500), tokens: None, nano: Some(10_000_000_000), ms: Some(7_200_000) };
        assert_eq!(words(&usual), "$10.00, 500 agents, 120 min");
        let small = Caps { agents: Some(1), tokens: Some(2_000_000), nano: None, ms: Some(30_000) };
        assert_eq!(words(&small), "1 agent, 2.0M tokens, 30 s");
        assert_eq!(words(&Caps::default()), "no caps");
    }
}
