//! The values that keys hold, and how those of one line of text are read: the same for a file, a variable and
//! a flag.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke_kernel::{Rule, Sandbox};

use super::caps::{Cap, Unit};
use super::keys::Kind;
use super::origin::Origin;
use super::time::{parse_duration, show_duration};

/// More voters than this cost more than they find.
const MOST_VOTERS: u32 = 9;

/// A value of a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Count(u32),
    Cap(Unit, Cap),
    Switch(bool),
    Sandbox(Sandbox),
    Voters(u32),
    Time(Duration),
    List(Vec<String>),
    Headers(Vec<(String, String)>),
    Rows(BTreeMap<String, toml::Value>),
    Rules(Vec<(Rule, Origin)>),
}

impl Value {
    /// The value on one line, if it is of a kind that has one.
    pub(super) fn show(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Count(count) => Some(count.to_string()),
            Self::Cap(unit, cap) => Some(unit.show(*cap)),
            Self::Switch(on) => Some(switch_word(*on).to_owned()),
            Self::Sandbox(sandbox) => Some(sandbox.name().to_owned()),
            Self::Voters(0) => Some("off".to_owned()),
            Self::Voters(voters) => Some(voters.to_string()),
            Self::Time(span) => Some(show_duration(*span)),
            Self::List(_) | Self::Headers(_) | Self::Rows(_) | Self::Rules(_) => None,
        }
    }
}

/// Reads a value of this kind from text. Kinds of several lines are for files alone.
pub(super) fn read(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Text | Kind::Secret => Ok(Value::Text(text.to_owned())),
        Kind::Count(most) => {
            let count = text.parse().ok().filter(|count| (1..=most).contains(count));
            count.map(Value::Count).ok_or_else(|| format!("'{text}' must be a whole number from 1 to {most}"))
        }
        Kind::Cap(unit) => unit.read(text).map(|cap| Value::Cap(unit, cap)),
        Kind::Switch => match text {
            "on" => Ok(Value::Switch(true)),
            "off" => Ok(Value::Switch(false)),
            _ => Err(format!("'{text}' is no switch: write on or off")),
        },
        Kind::Sandbox => {
            match text {
                "read-only" => Ok(Value::Sandbox(Sandbox::ReadOnly)),
                "workspace" => Ok(Value::Sandbox(Sandbox::Workspace)),
                // Written down it would hold for ever, and for sessions for which it was not meant.
                "off" => {
                    Err("'off' is a person's choice for one session: say --sandbox off on the command line"
                        .to_owned())
                }
                _ => Err(format!("'{text}' is no policy: write read-only or workspace")),
            }
        }
        Kind::Hosts => hosts(text.split(',').map(str::to_owned)).map(Value::List),
        Kind::Voters => parse_voters(text).map(Value::Voters),
        Kind::Time => parse_duration(text).map(Value::Time),
        Kind::Choice(words) => match words.contains(&text) {
            true => Ok(Value::Text(text.to_owned())),
            false => Err(format!("'{text}' must be one of: {}", words.join(", "))),
        },
        Kind::List | Kind::Headers | Kind::Rows(_) | Kind::Rules => {
            Err("can only be set in a configuration file".to_owned())
        }
    }
}

/// Reads a number of verifiers; `off` is none.
pub(crate) fn parse_voters(text: &str) -> Result<u32, String> {
    let wrong = || format!("'{text}' is no number of verifiers: write 1 to {MOST_VOTERS}, or off");
    match text {
        "off" => Ok(0),
        _ => text.parse().ok().filter(|voters| (1..=MOST_VOTERS).contains(voters)).ok_or_else(wrong),
    }
}

/// Checks a list of hosts.
pub(super) fn hosts(items: impl IntoIterator<Item = String>) -> Result<Vec<String>, String> {
    items.into_iter().map(|item| parse_host(item.trim())).collect()
}

/// Reads a host that commands may reach: `crates.io`, `*.crates.io`, `host:8080`.
pub(crate) fn parse_host(text: &str) -> Result<String, String> {
    convoke_sandbox::check_host(text)?;
    Ok(text.to_owned())
}

/// `on` or `off`.
pub(crate) fn switch_word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voters_are_one_to_nine_or_off() {
        let check =
            |text: &str, expected: Option<u32>| assert_eq!(parse_voters(text).ok(), expected, "{text}");
        check("off", Some(0));
        check("1", Some(1));
        check("9", Some(9));
        for text in ["0", "10", "-1", "on", "", "1.5"] {
            check(text, None);
        }
    }

    #[test]
    fn a_value_is_shown_as_it_is_read() {
        let check =
            |kind: Kind, text: &str| assert_eq!(read(kind, text).unwrap().show().as_deref(), Some(text));
        check(Kind::Switch, "on");
        check(Kind::Switch, "off");
        check(Kind::Sandbox, "read-only");
        check(Kind::Sandbox, "workspace");
        check(Kind::Voters, "off");
        check(Kind::Voters, "3");
        check(Kind::Count(1_000), "1000");
        check(Kind::Cap(Unit::Dollars), "2.5");
        check(Kind::Cap(Unit::Agents), "none");
        check(Kind::Time, "90s");
        check(Kind::Text, "any text");
        let hosts = ["crates.io", "*.my-host.io", "127.0.0.1:8080", "[::1]:80"];
        let expected = Value::List(hosts.iter().map(|host| (*host).to_owned()).collect());
        assert_eq!(read(Kind::Hosts, &hosts.join(",")), Ok(expected));
    }

    #[test]
    fn a_value_out_of_range_says_what_to_write() {
        let check = |kind: Kind, text: &str, says: &str| {
            let error = read(kind, text).unwrap_err();
            assert!(error.contains(says), "{error}");
        };
        check(Kind::Switch, "true", "write on or off");
        check(Kind::Sandbox, "off", "say --sandbox off on the command line");
        check(Kind::Sandbox, "none", "write read-only or workspace");
        check(Kind::Hosts, "crates.io,http://x/", "http://x/");
        check(Kind::Hosts, "-x", "-x is no host");
        check(Kind::Hosts, "*.-x.io", "begins or ends with a dash");
        check(Kind::Hosts, "a-.io:80", "begins or ends with a dash");
        check(Kind::Count(1_000), "1001", "from 1 to 1000");
        check(Kind::Count(1_000), "0", "from 1 to 1000");
        check(Kind::Voters, "12", "1 to 9, or off");
    }
}
