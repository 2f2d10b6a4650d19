//! Leases: which process may append to a stream, and when another one may take over. No SQL; the stores ask
//! [`Holder::live`] and write down what was decided.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Process, StreamId};

/// The process that opens the journal, and how long its silence is tolerated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The process that opens it. Its id must be its own: two processes with one id would share their leases.
    pub process: Process,
    /// How long after its last heartbeat this process's leases still hold.
    pub lease_ttl: Duration,
    /// How many connections a PostgreSQL store may have. Each operation uses one and never waits for a
    /// second, so that any number is enough; more let more agents write at once.
    pub connections: usize,
    /// How long a PostgreSQL server may be away before the operations that wait for it fail with
    /// [`Error::Unavailable`](crate::Error::Unavailable).
    pub outage: Duration,
}

impl Options {
    /// This process, with leases that outlive their last heartbeat by 15 seconds, at most 8 connections, and
    /// a minute's patience with a server that is away.
    pub fn new(process: Process) -> Self {
        let lease_ttl = Duration::from_secs(15);
        let outage = Duration::from_secs(60);
        Self { process, lease_ttl, connections: 8, outage }
    }

    pub(crate) fn ttl_ms(&self) -> i64 {
        i64::try_from(self.lease_ttl.as_millis()).unwrap_or(i64::MAX)
    }
}

/// The right to append to one stream. It ends when it is released, when the journal is closed, or when
/// another process has found this one gone or silent; an append with an ended lease fails and changes
/// nothing.
///
/// While a lease or a clone of it is alive, the same process cannot own the stream a second time.
#[derive(Clone)]
pub struct Lease {
    pub(crate) stream: StreamId,
    pub(crate) process: String,
    pub(crate) epoch: u64,
    pub(crate) _token: Arc<()>,
}

impl Lease {
    /// The stream this lease is for.
    pub fn stream(&self) -> &StreamId {
        &self.stream
    }

    /// The fencing number: greater for every later lease of the journal.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} by {} at epoch {})", self.stream, self.process, self.epoch)
    }
}

/// A process that owns a stream and is not known to be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOwner {
    /// The process.
    pub process: Process,
    /// How long ago its last heartbeat was, by the store's clock.
    pub silent_for: Duration,
}

impl fmt::Display for LiveOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (pid {})", self.process.id, self.process.pid)
    }
}

/// What the journal knows of a process that has owned something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignOfLife {
    /// Whether it has provably ended.
    pub gone: bool,
    /// How long ago its last heartbeat was, by the store's clock.
    pub silent_for: Duration,
    /// How long after a heartbeat its leases hold.
    pub lease_ttl: Duration,
}

/// An owner as the store remembers it.
pub(crate) struct Holder {
    pub(crate) process: Process,
    /// Its last heartbeat and its patience, in milliseconds by the store's clock.
    pub(crate) beat: i64,
    pub(crate) ttl: i64,
}

impl Holder {
    pub(crate) fn sign(&self, observer: &Process, now: i64) -> SignOfLife {
        let ms = |ms: i64| Duration::from_millis(ms.max(0).unsigned_abs());
        let gone = self.process.is_gone(observer);
        SignOfLife { gone, silent_for: ms(now.saturating_sub(self.beat)), lease_ttl: ms(self.ttl) }
    }

    /// The owner if it must be respected at `now`: its heartbeat is young enough and it is not provably gone.
    pub(crate) fn live(self, observer: &Process, now: i64) -> Option<LiveOwner> {
        // A clock that was set back makes the heartbeat look as if it came from the future: that is not
        // silence.
        let silent = now.saturating_sub(self.beat).max(0);
        if silent > self.ttl || self.process.is_gone(observer) {
            return None;
        }
        Some(LiveOwner { process: self.process, silent_for: Duration::from_millis(silent.unsigned_abs()) })
    }
}
