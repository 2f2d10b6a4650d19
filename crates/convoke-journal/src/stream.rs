//! What goes into a journal and comes out of it: streams, records, batches and keyed inputs. Plain data, no
//! I/O.

use std::fmt;
use std::str::FromStr;

use convoke_kernel::{AgentId, SessionId};

use crate::{Error, Update};

/// The name of a stream: non-empty text of `a-z`, `0-9`, `_` and `:`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(String);

impl StreamId {
    /// Takes any text that is a legal name.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b':';
        if text.is_empty() || !text.bytes().all(legal) {
            Err(Error::BadStream { given: text })
        } else {
            Ok(Self(text))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StreamId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&AgentId> for StreamId {
    fn from(id: &AgentId) -> Self {
        Self(id.as_str().to_owned())
    }
}

impl From<&SessionId> for StreamId {
    fn from(id: &SessionId) -> Self {
        Self(id.as_str().to_owned())
    }
}

/// One event as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Its place in the stream, from 1, without gaps.
    pub seq: u64,
    /// When it happened by the appender's clock, in UTC milliseconds.
    pub at: u64,
    /// The event: the text of a JSON object with a `type`, byte for byte as it was given.
    pub event: String,
}

/// Everything one append changes, in one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The time of all events of this batch, in UTC milliseconds.
    pub at: u64,
    /// The events to add to the lease's stream, in order.
    pub events: Vec<String>,
    /// Keys of inputs of the lease's stream that are dealt with now.
    pub acks: Vec<String>,
    /// Inputs for other streams (or, to put one back in the queue under a new key, for this one).
    pub inputs: Vec<KeyedInput>,
    /// JSON that replaces the stream's row in [`Journal::list`](crate::Journal::list); `None` leaves it as it
    /// is.
    pub summary: Option<String>,
    /// Results to remember: key and JSON. A key that is already there gets the new JSON.
    pub results: Vec<(String, String)>,
    /// Changes of shared streams, in order; each sees what the ones before it have left.
    pub updates: Vec<Update>,
}

impl Batch {
    /// A batch of events and nothing else.
    pub fn events(at: u64, events: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { at, events: events.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

/// Something for a stream to deal with, recognised by its key when it is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedInput {
    /// The stream it is for.
    pub stream: StreamId,
    /// Its key, unique within that stream.
    pub key: String,
    /// What it says; opaque text, usually JSON.
    pub body: String,
}

/// What became of a submitted input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// It is new and waits for its stream's owner.
    Accepted,
    /// An input with this key came before; it may be waiting or acknowledged. Nothing changed.
    AlreadyKnown,
}
