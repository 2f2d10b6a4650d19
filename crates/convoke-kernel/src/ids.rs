//! Names of things: a prefix that says the kind, and 16 lowercase base32 characters.
//!
//! The bits come from the caller, because the kernel knows no randomness.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// RFC 4648 base32 in lower case, so that an id can be typed, grepped and used as a file name.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const LENGTH: usize = 16;

/// The text is not an id of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an id: expected {prefix} and {LENGTH} characters of a-z and 2-7")]
pub struct BadId {
    /// What was given.
    pub text: String,
    /// The prefix that was expected.
    pub prefix: &'static str,
}

fn encode(prefix: &str, bits: [u8; 10]) -> String {
    let mut text = String::with_capacity(prefix.len() + LENGTH);
    text.push_str(prefix);
    let mut buffer = 0u32;
    let mut held = 0u32;
    for byte in bits {
        buffer = (buffer << 8) | u32::from(byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            text.push(char::from(ALPHABET[(buffer >> held) as usize & 31]));
        }
    }
    text
}

fn digest(words: &[&str]) -> [u8; 10] {
    let mut hasher = Sha256::new();
    for word in words {
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update((word.len() as u64).to_be_bytes());
        hasher.update(word.as_bytes());
    }
    let mut bits = [0; 10];
    bits.copy_from_slice(&hasher.finalize()[..10]);
    bits
}

fn check(prefix: &'static str, text: &str) -> Result<(), BadId> {
    let body = text.strip_prefix(prefix);
    match body {
        Some(body) if body.len() == LENGTH && body.bytes().all(|b| ALPHABET.contains(&b)) => Ok(()),
        _ => Err(BadId { text: text.to_owned(), prefix }),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// What every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// Makes the id for these bits.
            pub fn from_bits(bits: [u8; 10]) -> Self {
                Self(encode($prefix, bits))
            }

            /// The id that belongs to these words and to no others: code that knows
            /// the words finds what was recorded under it.
            pub fn derived(words: &[&str]) -> Self {
                Self::from_bits(digest(words))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                check($prefix, text).map(|()| Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                check($prefix, &text).map(|()| Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// One conversation with a person, or one headless task.
    SessionId,
    "s_"
);
id!(
    /// One agent, and the stream that is its event log.
    AgentId,
    "a_"
);
id!(
    /// One execution of a workflow, and the stream that is its event log.
    RunId,
    "wf_"
);
id!(
    /// One letter between members of a team, and the request it carries if it carries one.
    MessageId,
    "m_"
);
id!(
    /// One task on a board.
    TaskId,
    "t_"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_sixteen_base32_characters() {
        assert_eq!(AgentId::from_bits([0; 10]).as_str(), "a_aaaaaaaaaaaaaaaa");
        assert_eq!(SessionId::from_bits([255; 10]).as_str(), "s_7777777777777777");
        assert_eq!(AgentId::from_bits([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).as_str(), "a_aaaaaaaaaaaaaaab");
    }

    #[test]
    fn text_that_is_no_id_is_refused_with_what_was_expected() {
        for bad in
            ["", "a_", "s_aaaaaaaaaaaaaaaa", "a_aaaaaaaaaaaaaaaA", "a_aaaaaaaaaaaaaaa", "a_aaaaaaaaaaaaaaa1"]
        {
            let error = bad.parse::<AgentId>().unwrap_err();
            assert!(error.to_string().contains("expected a_"), "{error}");
        }
    }
}
