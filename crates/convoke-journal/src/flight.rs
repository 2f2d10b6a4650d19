//! Flights: the right to be the only one at work on a key. A flight is a lease of a
//! stream that nothing is ever written to; this file names that stream and ends the
//! lease. It decides nothing about what the work is.

use std::fmt;

use crate::{Error, Journal, Lease, StreamId, text};

/// The right to be the only one at work on a key, until it lands. See
/// [`Journal::single_flight`](crate::Journal::single_flight).
///
/// A flight that is dropped has ended for this process at once, and for others with the next
/// [`heartbeat`](crate::Journal::heartbeat) of this process, or when this process is found gone or silent.
#[must_use = "a flight that is dropped has ended"]
pub struct Flight {
    journal: Journal,
    /// `None` once it has landed.
    lease: Option<Lease>,
}

impl Flight {
    pub(crate) fn new(journal: Journal, lease: Lease) -> Self {
        Self { journal, lease: Some(lease) }
    }

    /// Ends the flight and lets the next one go; nothing of it stays in the journal. A flight that was lost
    /// before (this process was silent for too long) is no error: the key stays with its present holder. A
    /// flight whose landing fails counts as dropped.
    pub async fn land(mut self) -> Result<(), Error> {
        if let Some(lease) = &self.lease {
            self.journal.land(lease).await?;
        }
        self.lease = None;
        Ok(())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.journal.abandon(lease);
        }
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flight({:?})", self.lease)
    }
}

/// The stream whose lease is the flight of a key. Keys are any text, of any length, so it is named by their
/// digest.
pub(crate) fn stream(key: &str) -> Result<StreamId, Error> {
    StreamId::new(format!("flight:{}", text::digest(key)))
}
