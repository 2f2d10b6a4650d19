//! What is said of a store that is away. The store decides what waits for it, and for how long.

use tokio::time::Instant;

/// The store does not answer, and its callers wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Since when.
    pub since: Instant,
    /// What happened last: "connection refused".
    pub reason: String,
}
