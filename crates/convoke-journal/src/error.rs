//! What can go wrong, in words the caller can act on.

use crate::{LiveOwner, StreamId};

/// Why a journal did not do what was asked. Each variant is a different thing to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A live process owns the stream. Wait for it, or end it.
    #[error("{stream} is owned by {by}; wait for it or end it")]
    Held {
        /// The stream.
        stream: StreamId,
        /// The process that owns it.
        by: Box<LiveOwner>,
    },
    /// The lease has ended. Stop acting for this stream.
    #[error(
        "the lease on {stream} is lost: it was released or another process has taken over; stop acting for it"
    )]
    LostLease {
        /// The stream.
        stream: StreamId,
    },
    /// The stream is not where the caller thought. Load it and decide again.
    #[error("{stream} is at event {actual}, not {expected}; load it again and decide anew")]
    StaleSequence {
        /// The stream.
        stream: StreamId,
        /// The last event the caller knew.
        expected: u64,
        /// The last event there is.
        actual: u64,
    },
    /// A change of a shared stream was declined by its function, and with it everything it was to be done
    /// with.
    #[error("the change of {stream} was declined: {reason}; nothing was changed, decide anew")]
    Declined {
        /// The shared stream.
        stream: StreamId,
        /// What the function said.
        reason: String,
    },
    /// The store takes no writes (a full disk, a lost permission). Start nothing new; what is there can be
    /// read.
    #[error("cannot write to the journal {place}: {reason}; make room or restore access, then resume")]
    CannotWrite {
        /// Where the journal is.
        place: String,
        /// What the store said.
        reason: String,
    },
    /// The journal's file was removed or replaced while it was open. What it held is lost to this process.
    #[error(
        "the journal {place} was removed or replaced while it was in use; put it back and `convoke resume`, \
            or begin anew"
    )]
    Vanished {
        /// Where the journal was.
        place: String,
    },
    /// What is there is not a journal this version may touch. It was left as it is.
    #[error("{place} {refusal}")]
    Refused {
        /// The file or database.
        place: String,
        /// Why.
        refusal: Refusal,
    },
    /// The store does not answer, or the answer to a commit could not be had. Try again.
    #[error("the journal {place} is not available: {reason}")]
    Unavailable {
        /// Where the journal is.
        place: String,
        /// What happened.
        reason: String,
    },
    /// The text names no place for a journal.
    #[error("'{given}' is no place for a journal: {reason}")]
    BadLocation {
        /// What was given, without passwords.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store contradicts itself. Restore it from a copy.
    #[error(
        "the journal {place} is damaged: {reason}; keep it, and restore a copy or start a new one elsewhere"
    )]
    Corrupt {
        /// Where the journal is.
        place: String,
        /// What was found.
        reason: String,
    },
    /// The text is no stream id.
    #[error("'{given}' is no stream id: use one or more of a-z, 0-9, '_' and ':'")]
    BadStream {
        /// What was given.
        given: String,
    },
    /// The text holds a NUL character, which not every store can keep.
    #[error("{what} holds a NUL character, which JSON writes as an escape")]
    BadText {
        /// Which text.
        what: &'static str,
    },
}

/// Why what was found at a location is not used as a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not a SQLite file at all.
    #[error("is not a Convoke journal (not a SQLite database); it was left untouched: name another file")]
    NotADatabase,
    /// A database that belongs to something else.
    #[error("belongs to another application ({found}); it was left untouched: name another place")]
    Foreign {
        /// What says so.
        found: String,
    },
    /// A journal of a version that is newer than this one.
    #[error(
        "is a journal of format {found}, and this version knows formats up to {known}; it was left \
         untouched: use a newer convoke, or name another place"
    )]
    Newer {
        /// Its format.
        found: u32,
        /// The newest format this version knows.
        known: u32,
    },
    /// A journal that has lost a part of itself.
    #[error(
        "is torn ({found}); it was left untouched: restore a copy, or move it away to begin a new journal"
    )]
    Torn {
        /// What is missing.
        found: String,
    },
}
