//! What a server was found not to take: the parts of a request that it can do without, which of them a
//! refusal names, and how a person is told. Pure; what a request looks like without them is
//! `agent/lessons.rs`.

use serde::{Deserialize, Serialize};

use crate::event::EndpointLearnt;

/// A part of a request that some servers refuse, and without which the request still means the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// `cache_control`.
    CacheMarks,
    /// `thinking`.
    Thinking,
    /// `output_config.effort`.
    Effort,
    /// `role: system` inside `messages`.
    SystemRole,
    /// The newer `anthropic-version`.
    Version,
}

/// The `anthropic-version` for servers that refuse the newer one.
pub const OLD_VERSION: &str = "2023-06-01";

impl Feature {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::CacheMarks, Self::Thinking, Self::Effort, Self::SystemRole, Self::Version];

    /// What people call it.
    pub fn words(self) -> &'static str {
        match self {
            Self::CacheMarks => "cache marks",
            Self::Thinking => "thinking",
            Self::Effort => "effort",
            Self::SystemRole => "system messages inside a conversation",
            Self::Version => "the newer API version",
        }
    }

    /// What doing without it costs.
    pub fn costs(self) -> &'static str {
        match self {
            Self::CacheMarks => "every prompt is paid in full and none is read from the cache",
            Self::Thinking => "the model is not asked to think",
            Self::Effort => "the model works at its own effort",
            Self::SystemRole => "what Convoke tells the model stands in user messages, where it weighs less",
            Self::Version => "2023-06-01 is sent, which takes all that Convoke sends",
        }
    }

    /// The line below `[endpoints."URL"]` that says so for good.
    pub fn setting(self) -> &'static str {
        match self {
            Self::CacheMarks => "cache_marks = false",
            Self::Thinking => "thinking = false",
            Self::Effort => "effort = false",
            Self::SystemRole => "system_role = false",
            Self::Version => "version = \"2023-06-01\"",
        }
    }

    /// Whether an error, in lower case, says that this is not taken. What is wrong with how or where it
    /// stands is another matter: leaving it out would hide a fault of ours.
    fn is_named_in(self, said: &str) -> bool {
        let any = |words: &[&str]| words.iter().any(|word| said.contains(word));
        match self {
            Self::CacheMarks => {
                any(&["cache_control"]) && !any(&["a maximum of", "ttl", "defer_loading", "empty"])
            }
            Self::Thinking => {
                let of_a_block =
                    any(&["signature", "redacted_thinking", "cannot be modified", "final block"]);
                any(&["thinking"]) && !of_a_block && !any(&["when thinking is", ".content."])
            }
            Self::Effort => any(&[
                "output_config",
                "effort parameter",
                "effort level",
                "`effort`",
                "'effort'",
                "\"effort\"",
            ]),
            Self::SystemRole => {
                let misplaced =
                    any(&["must follow", "must precede", "top-level", "supports text", "must contain"]);
                let roles =
                    any(&["'user' or 'assistant'", "`user` or `assistant`", "\"user\" or \"assistant\""]);
                any(&["role"]) && (roles || any(&["system"])) && !misplaced
            }
            Self::Version => any(&["anthropic-version", "anthropic_version"]),
        }
    }
}

/// The parts of a request that a refusal names.
pub fn fields_named(said: &str) -> Vec<Feature> {
    let said = said.to_lowercase();
    Feature::ALL.into_iter().filter(|feature| feature.is_named_in(&said)).collect()
}

/// The parts of a request that a server would not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The server, as its base URL is shown.
    pub endpoint: String,
    /// What it would not take.
    pub fields: Vec<Feature>,
    /// How many tokens it reads at once, if it named that and refused the prompt for its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// How something was learnt about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Learnt {
    /// It refused a request of this agent.
    Refused,
    /// It refused a request of another agent of the session.
    Heard,
    /// It took requests and did nothing about it. It is sent further on: that costs nothing.
    Ignored,
    /// The session goes on with another server, and what was learnt about the one before does not count.
    Moved,
}

/// Requests with cache marks and long enough prompts, none of which was read from or written to the cache,
/// after which a server counts as one that ignores the marks.
pub const IGNORED_AFTER: u32 = 3;

impl EndpointLearnt {
    /// The one line that a person reads; `None` where it was said before, about another agent.
    pub fn line(&self) -> Option<String> {
        let Self { endpoint, model, lacks, how, said, window } = self;
        if let (Some(window), Learnt::Refused) = (window, how) {
            return Some(format!(
                "{endpoint} reads {window} tokens at once with {model} ({}): kept to from now on, with \
                 replies of at most half of it. To settle it for good: --window {window}, or \
                 [models.\"{model}\"] window = {window}",
                short(said)
            ));
        }
        let each = |words: fn(Feature) -> &'static str, between: &str| {
            lacks.iter().map(|feature| words(*feature)).collect::<Vec<_>>().join(between)
        };
        let what = each(Feature::words, " and ");
        let costs = each(Feature::costs, "; ");
        let setting = format!("[endpoints.\"{endpoint}\"] {}", each(Feature::setting, ", "));
        match how {
            Learnt::Refused => Some(format!(
                "{endpoint} does not take {what} with {model} ({}): left out from now on; {costs}. To settle \
                    it for good: {setting}",
                short(said)
            )),
            Learnt::Ignored => Some(format!(
                "{endpoint} takes {what} with {model} and does nothing about it ({IGNORED_AFTER} requests, \
                 no token read from or written to the cache): {costs}. If the server cannot be mended, this \
                 says so for good: {setting}"
            )),
            Learnt::Heard | Learnt::Moved => None,
        }
    }
}

/// The longest part of a server's words in a line.
const SHOWN: usize = 120;

fn short(said: &str) -> String {
    match said.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_fields_that_it_is_about() {
        use Feature::{CacheMarks, Effort, SystemRole, Thinking, Version};
        let check = |said: &str, fields: &[Feature]| assert_eq!(fields_named(said), fields, "{said}");
        check("cache_control: Extra inputs are not permitted", &[CacheMarks]);
        check("system.0.cache_control: Extra inputs are not permitted", &[CacheMarks]);
        check("thinking: Extra inputs are not permitted", &[Thinking]);
        check("adaptive thinking is not supported on this model", &[Thinking]);
        check("output_config: Extra inputs are not permitted", &[Effort]);
        check("This model does not support the effort parameter.", &[Effort]);
        check("This model does not support effort level 'xhigh'. Supported levels: high, low.", &[Effort]);
        check(
            "output_config.effort 'xhigh' is not supported when thinking is disabled on this model.",
            &[Effort],
        );
        check("messages.1.role: Input should be 'user' or 'assistant'", &[SystemRole]);
        check("role 'system' is not supported on this model", &[SystemRole]);
        check("unknown variant `system`, expected `user` or `assistant` for key role", &[SystemRole]);
        check("anthropic-version: \"2026-10-21\" is not a valid version", &[Version]);
        check(
            "2 errors: thinking: extra fields not permitted; output_config: extra fields not permitted",
            &[Thinking, Effort],
        );
    }

    #[test]
    fn a_refusal_of_how_something_stands_takes_nothing_back() {
        for said in [
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "messages.2: role 'system' must follow a 'user' message or an 'assistant' message ending in a \
                server tool result",
            "messages.0: use the top-level 'system' parameter for the initial system prompt",
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a \
                different conversation.",
            "messages.3: The final block in an assistant message cannot be `thinking`.",
            "messages: first message must use the \"user\" role",
            "prompt is too long: 214032 tokens > 200000 maximum",
            "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens",
        ] {
            assert_eq!(fields_named(said), [], "{said}");
        }
    }

    #[test]
    fn the_line_names_the_server_its_words_the_price_and_the_setting() {
        let learnt = EndpointLearnt {
            endpoint: "http://gate:4000".into(),
            model: "claude-x".into(),
            lacks: vec![Feature::CacheMarks],
            how: Learnt::Refused,
            said: "cache_control: Extra inputs are not permitted".into(),
            window: None,
        };
        assert_eq!(
            learnt.line().unwrap(),
            "http://gate:4000 does not take cache marks with claude-x (cache_control: Extra inputs are not \
             permitted): left out from now on; every prompt is paid in full and none is read from the \
             cache. To settle it for good: [endpoints.\"http://gate:4000\"] cache_marks = false"
        );
        let narrow = EndpointLearnt {
            lacks: Vec::new(),
            window: Some(8_192),
            said: "too long".into(),
            ..learnt.clone()
        };
        assert_eq!(
            narrow.line().unwrap(),
            "http://gate:4000 reads 8192 tokens at once with claude-x (too long): kept to from now on, with \
             replies of at most half of it. To settle it for good: --window 8192, or [models.\"claude-x\"] \
             window = 8192"
        );
        for heard in [learnt, narrow] {
            assert_eq!(EndpointLearnt { how: Learnt::Heard, ..heard }.line(), None);
        }
    }
}
