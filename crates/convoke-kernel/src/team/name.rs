//! The names of members.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the lead is called.
pub const LEAD: &str = "lead";
/// The sender's name of a person's letters.
pub const PERSON: &str = "person";
/// The sender's name of letters of the program itself.
pub const CONVOKE: &str = "convoke";

/// Names that no teammate can get, because they already mean one member, all of them, or a person.
const RESERVED: [&str; 9] = [LEAD, PERSON, CONVOKE, "all", "everyone", "system", "user", "human", "team"];

/// Why a text is no name for a teammate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It does not fit the grammar.
    #[error("'{0}' is no name: use a small letter and then up to 31 of a-z, 0-9, - and _")]
    Grammar(String),
    /// It is reserved.
    #[error("'{0}' is reserved: choose another name")]
    Reserved(String),
}

/// The name of a teammate: a lower-case letter, then up to 31 letters, digits, dashes and underscores.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberName(String);

impl MemberName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MemberName {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let legal = |(at, b): (usize, u8)| {
            b.is_ascii_lowercase() || at > 0 && (b.is_ascii_digit() || b"-_".contains(&b))
        };
        if text.is_empty() || text.len() > 32 || !text.bytes().enumerate().all(legal) {
            return Err(BadName::Grammar(text.chars().take(64).collect()));
        }
        if RESERVED.contains(&text) {
            return Err(BadName::Reserved(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for MemberName {
    type Error = BadName;
    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<MemberName> for String {
    fn from(name: MemberName) -> String {
        name.0
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w6_a_name_is_a_small_letter_and_what_is_safe_anywhere() {
        for good in ["alice", "b", "coder-2", "x_y", &"a".repeat(32)] {
            assert_eq!(good.parse::<MemberName>().unwrap().as_str(), good);
        }
        for bad in ["", "Alice", "2x", "-a", "../x", "a/b", "a.b", "a b", "ä", "a\n", &"a".repeat(33)] {
            assert!(matches!(bad.parse::<MemberName>(), Err(BadName::Grammar(_))), "{bad:?}");
        }
        for reserved in RESERVED {
            assert_eq!(reserved.parse::<MemberName>(), Err(BadName::Reserved(reserved.to_owned())));
        }
    }
}
