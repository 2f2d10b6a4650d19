//! What a request costs its sender: the prompt cache, the rate limits and the bill, all measured by a
//! tokenizer and a clock that the client does not know. Nothing here decides what is replied, or knows HTTP
//! beyond its rate headers.

mod bill;
mod cache;
mod clock;
mod limits;
mod prompt;
mod ticket;
mod tokens;

pub use self::bill::{Bill, Line};
pub(crate) use self::bill::{Entry, bill};
use self::cache::Cache;
pub use self::clock::{ManualClock, SimClock, Time};
use self::limits::Limits;
pub use self::limits::{Limit, RateLimits};
pub(crate) use self::limits::{RateHeaders, Refused, full_buckets};
pub(crate) use self::prompt::Prompt;
pub(crate) use self::ticket::{Progress, Ticket};
pub(crate) use self::tokens::Tokenizer;
pub use self::tokens::Usage;

/// The state of the three models.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    cache: Cache,
    limits: Limits,
    entries: Vec<Entry>,
}

impl Accounts {
    /// Sets new limits, with full buckets; requests under way go on counting as such.
    pub(crate) fn limit(&mut self, rates: Option<RateLimits>, now: u64) {
        self.limits.set(rates, now);
    }

    /// What has been served so far, in the order of arrival.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
