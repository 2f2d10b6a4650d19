//! What the simulator remembers of each request, for tests to look at.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use serde_json::Value;

use crate::accounts::{Limit, Usage};
use crate::fault::FaultKind;
use crate::rules::Rule;

/// A request that arrived, and what became of it.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its number, from 0, in the order of arrival.
    pub index: usize,
    /// The headers that belong to the API, names in lower case. The value of a key or token is replaced by
    /// `(set)`.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; `null` if it was none, or if [`Retention::Summaries`] was asked for.
    pub body: Arc<Value>,
    /// The body as it came; empty if [`Retention::Summaries`] was asked for.
    pub raw: Bytes,
    /// Whether the request was legal.
    pub verdict: Verdict,
    /// The conversation it belongs to.
    pub conversation: String,
    /// How many replies the conversation had.
    pub position: usize,
    /// The rate limit that it ran into; it was answered with 429 then, and no fault was used up.
    pub limited: Option<Limit>,
    /// The fault that was played on it.
    pub fault: Option<FaultKind>,
    /// Where it departs from the last request of its conversation whose reply was sent to its end: its tools,
    /// system or messages do not begin with those of that request, or the reply was not echoed as it was
    /// sent. Cache marks do not count, nor do requests whose reply was cut at `max_tokens`, refused or empty.
    pub prefix_break: Option<String>,
    /// When it arrived, in UTC milliseconds of the simulator's clock. Entries of the prompt cache live from
    /// here.
    pub arrived_at: u64,
    /// When the first event of its reply left. What it wrote to the prompt cache can be read from here on.
    pub began_at: Option<u64>,
    /// When its response ended: sent, cut, or left by the client.
    pub ended_at: Option<u64>,
    /// Its usage, once its reply has begun: the input as `message_start` reported it, and the output
    /// generated so far, which is what `message_delta` reports in the end.
    pub usage: Option<Usage>,
    /// The tokens of its prompt up to and with each block, in the order of the prompt cache: tools, system,
    /// messages. Empty if the request was refused or if [`Retention::Summaries`] was asked for.
    pub prefix_tokens: Arc<[u64]>,
    /// Whether the reply was sent to its end.
    pub replied: bool,
}

/// Whether a request was legal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Accepted,
    /// It was not.
    Refused {
        /// The rule it broke; `None` if the brain had no reply to it.
        rule: Option<Rule>,
        /// The status it was answered with.
        status: u16,
        /// The text it was answered with.
        message: String,
    },
}

impl Verdict {
    /// Whether the request was legal.
    pub fn is_accepted(&self) -> bool {
        *self == Self::Accepted
    }
}

/// How much of each request is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// Everything, for assertions.
    #[default]
    Everything,
    /// Everything but the bodies, whose sum grows with the square of a conversation's length.
    Summaries,
}

const KEPT: &[&str] =
    &["anthropic-version", "anthropic-beta", "content-type", "user-agent", "accept", "host"];
const SECRET: &[&str] = &["x-api-key", "authorization"];

pub(crate) fn headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text =
        |name: &&str| headers.get(*name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let kept = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?)));
    let custom = headers.iter().filter(|(name, _)| name.as_str().starts_with("x-") && *name != "x-api-key");
    let custom = custom.map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let secret = SECRET
        .iter()
        .filter(|name| headers.contains_key(**name))
        .map(|name| ((*name).to_owned(), "(set)".to_owned()));
    kept.chain(custom).chain(secret).collect()
}
