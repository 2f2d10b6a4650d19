//! What a journal tells about its streams as a whole. Plain data, no I/O.

use crate::{LiveOwner, StreamId};

/// Which streams to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only streams whose id begins with this.
    pub prefix: Option<String>,
    /// At most this many.
    pub limit: Option<usize>,
}

impl Filter {
    /// The bounds of the range of stream ids that begin with the prefix. The alphabet of stream ids ends
    /// below `~`, so a range says the same as a pattern, and `_` needs no escaping.
    pub(crate) fn range(&self) -> (String, String) {
        let from = self.prefix.clone().unwrap_or_default();
        let to = format!("{from}~");
        (from, to)
    }

    pub(crate) fn limit(&self) -> i64 {
        self.limit.and_then(|n| i64::try_from(n).ok()).unwrap_or(i64::MAX)
    }
}

/// One stream, as [`Journal::list`](crate::Journal::list) shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The stream.
    pub stream: StreamId,
    /// The summary of the last batch that had one.
    pub summary: Option<String>,
    /// The number of its last event; 0 if it has none.
    pub seq: u64,
    /// The time of its first input or append; 0 if it is owned but nothing was ever written.
    pub created_at: u64,
    /// The time of its last append, or of its first input if there was none.
    pub updated_at: u64,
    /// The process that owns it, if that process is alive.
    pub owner: Option<LiveOwner>,
}

/// What [`Journal::prune`](crate::Journal::prune) did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Streams that are gone now.
    pub removed: Vec<StreamId>,
    /// Streams left alone because a live process owns them.
    pub held: Vec<StreamId>,
    /// How many events went.
    pub events: u64,
    /// How many inputs went, acknowledged ones included.
    pub inputs: u64,
    /// How many blobs went because nothing refers to them any more.
    pub blobs: u64,
}

/// Remembered results by their keys, each with the time of the batch it came with.
pub type Results = std::collections::HashMap<String, (String, u64)>;
