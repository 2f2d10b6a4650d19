//! What may go wrong on demand, and the queue it is asked for in.

use serde::{Deserialize, Serialize};

use crate::conversation::ConversationNames;

/// One kind of failure. "After n events" counts the events of the stream, `ping` included; a stream that is
/// shorter fails at its end, before its last event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// 429, with `retry-after` in seconds and with rate headers, or without either.
    RateLimited {
        /// The seconds to wait, if the server says so.
        retry_after: Option<u64>,
        /// Whether the rate headers are there; without them there is `x-should-retry: true`.
        headers: bool,
    },
    /// 429 because the month's money is spent: final.
    SpendLimit,
    /// 529.
    Overloaded529,
    /// 500.
    Internal500,
    /// 504.
    Timeout504,
    /// 503.
    ServiceUnavailable503,
    /// Any other status, such as 401, 403 or 404, which are final, or one that says when to ask again.
    Status {
        /// The status.
        status: u16,
        /// The error's type, such as `permission_error`.
        error_type: String,
        /// The seconds to wait, if the server says so.
        retry_after: Option<u64>,
    },
    /// 200 with an HTML page, as something between the client and the API answers.
    Html200,
    /// 400 with this text: final.
    BadRequest400(String),
    /// 413 with an HTML body, as the proxy in front of the API answers: final.
    Html413,
    /// An `error` event in the stream, after which the connection closes.
    MidStreamError {
        /// How many events come before it.
        after: usize,
        /// The error's type, such as `overloaded_error`.
        error_type: String,
    },
    /// The connection breaks after this many events.
    CutAfter(usize),
    /// The connection breaks before the response's first byte.
    CutBeforeHeaders,
    /// After this many events the stream stays open and silent, until the client leaves or the simulator
    /// ends.
    Stall(usize),
    /// Every event comes this many milliseconds after the one before; the reply is complete.
    Drip(u64),
    /// An event of an unknown type comes after this many events; the reply is complete.
    UnknownEvent(usize),
    /// A frame that is not JSON comes after this many events, and the stream ends.
    MalformedFrame(usize),
}

impl FaultKind {
    /// One of each kind after which sending the same request again succeeds. None of them makes a client
    /// wait: the `retry-after` is 0, and a stall, which ends only by the client's deadline, is left out.
    pub fn all_transient() -> Vec<Self> {
        vec![
            Self::RateLimited { retry_after: Some(0), headers: true },
            Self::RateLimited { retry_after: None, headers: false },
            Self::Overloaded529,
            Self::Internal500,
            Self::Timeout504,
            Self::ServiceUnavailable503,
            Self::MidStreamError { after: 0, error_type: "overloaded_error".to_owned() },
            Self::MidStreamError { after: 3, error_type: "api_error".to_owned() },
            Self::CutAfter(0),
            Self::CutAfter(4),
            Self::CutBeforeHeaders,
            Self::MalformedFrame(3),
        ]
    }

    /// One of each kind that a client has to live with: the reply arrives in spite of it.
    pub fn all_harmless() -> Vec<Self> {
        vec![Self::Drip(1), Self::UnknownEvent(2)]
    }

    /// One of each kind after which sending the same request again is no use.
    pub fn all_final() -> Vec<Self> {
        vec![Self::SpendLimit, Self::BadRequest400("simulator: refused on demand".to_owned()), Self::Html413]
    }

    /// Whether the whole reply arrives under this fault.
    pub(crate) fn reply_arrives(&self) -> bool {
        matches!(self, Self::Drip(_) | Self::UnknownEvent(_))
    }
}

/// A failure that is asked for: the next legal request that fits it fails this way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// How the request fails.
    pub kind: FaultKind,
    /// Only requests of this conversation; `None`: of any.
    #[serde(default)]
    pub conversation: Option<String>,
    /// Only requests whose first user message contains this text; `None`: any. Tells a worker
    /// (`<subtask>\nTEXT`) from the verifier of its findings.
    #[serde(default)]
    pub opening: Option<String>,
    /// Only requests at this position; `None`: at any.
    #[serde(default)]
    pub position: Option<usize>,
    /// How many requests fail this way before the fault is used up; `None`: one.
    #[serde(default)]
    pub count: Option<u32>,
}

impl Fault {
    /// The next request fails this way.
    pub fn new(kind: FaultKind) -> Self {
        Self { kind, conversation: None, opening: None, position: None, count: None }
    }

    /// Only for requests of this conversation.
    #[must_use]
    pub fn on(mut self, conversation: &str) -> Self {
        self.conversation = Some(conversation.to_owned());
        self
    }

    /// Only for requests whose first user message contains this text.
    #[must_use]
    pub fn opening(mut self, text: &str) -> Self {
        self.opening = Some(text.to_owned());
        self
    }

    /// Only for requests at this position.
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }

    /// For this many requests.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.count = Some(count);
        self
    }

    fn fits(&self, place: &ConversationNames) -> bool {
        self.conversation.as_ref().is_none_or(|name| place.is(name))
            && self.opening.as_ref().is_none_or(|text| place.opening_contains(text))
            && self.position.is_none_or(|position| position == place.context.position)
    }
}

/// The faults still to come, first asked for first used.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue(Vec<Fault>);

impl FaultQueue {
    pub(crate) fn push(&mut self, fault: Fault) {
        if fault.count != Some(0) {
            self.0.push(fault);
        }
    }

    /// The fault of a request at this place, used up by one.
    pub(crate) fn take(&mut self, place: &ConversationNames) -> Option<FaultKind> {
        let index = self.0.iter().position(|fault| fault.fits(place))?;
        let fault = &mut self.0[index];
        let kind = fault.kind.clone();
        match fault.count {
            Some(count) if count > 1 => fault.count = Some(count - 1),
            _ => drop(self.0.remove(index)),
        }
        Some(kind)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
