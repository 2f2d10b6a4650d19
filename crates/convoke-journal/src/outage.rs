//! What is told of a store that is away. Who waits for it, and for how long, is the store's business.

use tokio::time::Instant;

/// The store does not answer, and its callers wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Since when.
    pub since: Instant,
    /// What happened last: "connection refused".
    pub reason: String,
}
