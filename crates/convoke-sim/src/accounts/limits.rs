//! Rate limits: buckets that refill all the time, and a number of requests that may run at once.
//!
//! There is one set of buckets for all models. A request takes one of the requests and its uncached input
//! when it is admitted; output is taken as it is generated, so that bucket may be overdrawn. What is refused
//! takes nothing.

use axum::http::header::{HeaderName, HeaderValue};

/// What the server allows. Buckets hold what a minute allows and start full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests per minute.
    pub requests_per_minute: u64,
    /// Input tokens per minute; what is read from the cache does not count.
    pub input_tokens_per_minute: u64,
    /// Output tokens per minute.
    pub output_tokens_per_minute: u64,
    /// How many requests may run at once; one more gets a 429 that says neither why nor for how long.
    pub concurrent: Option<usize>,
}

impl Default for RateLimits {
    /// More than an ordinary client uses.
    fn default() -> Self {
        Self {
            requests_per_minute: 4_000,
            input_tokens_per_minute: 10_000_000,
            output_tokens_per_minute: 2_000_000,
            concurrent: None,
        }
    }
}

/// The limit that a request ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Requests per minute.
    Requests,
    /// Input tokens per minute.
    InputTokens,
    /// Output tokens per minute.
    OutputTokens,
    /// Requests at once.
    Concurrent,
}

/// A request that was not admitted, and what its sender is told.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) limit: Limit,
    pub(crate) message: String,
    /// Seconds until there is room; not told to a client that sends too many at once.
    pub(crate) retry_after: Option<u64>,
    pub(crate) headers: RateHeaders,
}

/// The rate headers of a response.
pub(crate) type RateHeaders = Vec<(HeaderName, HeaderValue)>;

/// The buckets and what is running.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    buckets: Option<Buckets>,
    running: usize,
}

#[derive(Debug)]
struct Buckets {
    requests: Bucket,
    input: Bucket,
    output: Bucket,
    concurrent: Option<usize>,
}

impl Limits {
    pub(crate) fn set(&mut self, rates: Option<RateLimits>, now: u64) {
        self.buckets = rates.map(|rates| Buckets {
            requests: Bucket::full(rates.requests_per_minute, now),
            input: Bucket::full(rates.input_tokens_per_minute, now),
            output: Bucket::full(rates.output_tokens_per_minute, now),
            concurrent: rates.concurrent,
        });
    }

    /// Lets a request in; it runs until [`Limits::leave`].
    pub(crate) fn admit(&mut self, input: u64, now: u64) -> Result<RateHeaders, Refused> {
        let headers = match &mut self.buckets {
            Some(buckets) => buckets.admit(input, self.running, now)?,
            None => full_buckets(),
        };
        self.running += 1;
        Ok(headers)
    }

    /// The request that was let in failed before it reached a model: its input does not count.
    pub(crate) fn refund(&mut self, input: u64) {
        if let Some(buckets) = &mut self.buckets {
            buckets.input.put(input);
        }
    }

    pub(crate) fn generated(&mut self, output: u64, now: u64) {
        if let Some(buckets) = &mut self.buckets {
            buckets.output.refill(now);
            buckets.output.take(output);
        }
    }

    pub(crate) fn leave(&mut self) {
        self.running -= 1;
    }
}

impl Buckets {
    fn admit(&mut self, input: u64, running: usize, now: u64) -> Result<RateHeaders, Refused> {
        if self.concurrent.is_some_and(|most| running >= most) {
            let message = "Number of concurrent connections has exceeded your rate limit.".to_owned();
            return Err(Refused {
                limit: Limit::Concurrent,
                message,
                retry_after: None,
                headers: Vec::new(),
            });
        }
        let wanted = [(Limit::Requests, 1), (Limit::InputTokens, input), (Limit::OutputTokens, 1)];
        let mut waits = Vec::new();
        for (limit, amount) in wanted {
            let bucket = self.bucket(limit);
            bucket.refill(now);
            waits.push((bucket.wait(amount), limit));
        }
        // The limit that takes longest to make room is the one that is named.
        let (wait, limit) =
            waits.into_iter().rev().max_by_key(|(wait, _)| *wait).unwrap_or((0, Limit::Requests));
        if wait > 0 {
            let per_minute = self.bucket(limit).per_minute;
            let what = match limit {
                Limit::Requests | Limit::Concurrent => "requests",
                Limit::InputTokens => "input tokens",
                Limit::OutputTokens => "output tokens",
            };
            let message = format!(
                "This request would exceed your organization's rate limit of {per_minute} {what} per minute."
            );
            return Err(Refused {
                limit,
                message,
                retry_after: Some(wait.div_ceil(1_000)),
                headers: self.headers(),
            });
        }
        self.requests.take(1);
        self.input.take(input);
        Ok(self.headers())
    }

    fn bucket(&mut self, limit: Limit) -> &mut Bucket {
        match limit {
            Limit::Requests | Limit::Concurrent => &mut self.requests,
            Limit::InputTokens => &mut self.input,
            Limit::OutputTokens => &mut self.output,
        }
    }

    fn headers(&self) -> RateHeaders {
        let thousands = |remaining: u64| (remaining + 500) / 1_000 * 1_000;
        let tightest =
            if self.input.remaining() <= self.output.remaining() { &self.input } else { &self.output };
        let rows = [
            ("requests", &self.requests, self.requests.remaining()),
            ("tokens", tightest, thousands(tightest.remaining())),
            ("input-tokens", &self.input, thousands(self.input.remaining())),
            ("output-tokens", &self.output, thousands(self.output.remaining())),
        ];
        let all = rows.into_iter().flat_map(|(kind, bucket, remaining)| {
            [
                (format!("anthropic-ratelimit-{kind}-limit"), bucket.per_minute.to_string()),
                (format!("anthropic-ratelimit-{kind}-remaining"), remaining.to_string()),
                (format!("anthropic-ratelimit-{kind}-reset"), rfc3339(bucket.full_at())),
            ]
        });
        all.filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?))).collect()
    }
}

/// A bucket that refills by as much a minute as it holds. Its level is counted in sixty-thousandths, of which
/// every millisecond brings a whole number.
#[derive(Debug)]
struct Bucket {
    per_minute: u64,
    level: i64,
    at: u64,
}

const PARTS: i64 = 60_000;

impl Bucket {
    fn full(per_minute: u64, now: u64) -> Self {
        let per_minute = per_minute.max(1);
        Self { per_minute, level: parts(per_minute), at: now }
    }

    fn refill(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.at);
        let more = i64::try_from(elapsed.saturating_mul(self.per_minute)).unwrap_or(i64::MAX);
        self.level = self.level.saturating_add(more).min(parts(self.per_minute));
        self.at = self.at.max(now);
    }

    fn take(&mut self, amount: u64) {
        self.level -= parts(amount);
    }

    fn put(&mut self, amount: u64) {
        self.level = (self.level + parts(amount)).min(parts(self.per_minute));
    }

    /// Milliseconds until this much is there. What the bucket can never hold waits until it is full.
    fn wait(&self, amount: u64) -> u64 {
        let missing = parts(amount.min(self.per_minute)) - self.level;
        u64::try_from(missing).unwrap_or(0).div_ceil(self.per_minute)
    }

    fn remaining(&self) -> u64 {
        u64::try_from(self.level / PARTS).unwrap_or(0)
    }

    fn full_at(&self) -> u64 {
        self.at + self.wait(self.per_minute)
    }
}

fn parts(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX).saturating_mul(PARTS)
}

/// The headers of a server without limits: of buckets that are never emptied. The resets lie in the past
/// because there is nothing to wait for.
pub(crate) fn full_buckets() -> RateHeaders {
    let rows = [
        ("requests", "4000", "3999"),
        ("input-tokens", "10000000", "10000000"),
        ("output-tokens", "2000000", "2000000"),
    ];
    let all = rows.into_iter().flat_map(|(kind, limit, remaining)| {
        [("limit", limit), ("remaining", remaining), ("reset", "2026-01-01T00:00:00Z")].map(
            |(part, value)| (format!("anthropic-ratelimit-{kind}-{part}"), HeaderValue::from_static(value)),
        )
    });
    all.filter_map(|(name, value)| Some((name.parse().ok()?, value))).collect()
}

/// UTC milliseconds as the API writes a time: in whole seconds, rounded up.
fn rfc3339(milliseconds: u64) -> String {
    let seconds = milliseconds.div_ceil(1_000);
    let mut days = seconds / 86_400;
    let rest = seconds % 86_400;
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let hour = rest / 3_600;
    let minute = rest / 60 % 60;
    let second = rest % 60;
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_writes_them() {
        let check = |milliseconds: u64, expected: &str| assert_eq!(rfc3339(milliseconds), expected);
        check(0, "1970-01-01T00:00:00Z");
        check(951_868_799_000, "2000-02-29T23:59:59Z");
        check(951_868_799_001, "2000-03-01T00:00:00Z");
        check(1_791_633_600_000, "2026-10-10T12:00:00Z");
        check(1_798_761_599_000, "2026-12-31T23:59:59Z");
    }

    #[test]
    fn a_bucket_refills_continuously_and_never_overflows() {
        let mut bucket = Bucket::full(50, 1_000);
        bucket.take(50);
        assert_eq!((bucket.remaining(), bucket.wait(1), bucket.full_at()), (0, 1_200, 61_000));
        bucket.refill(2_199);
        assert_eq!((bucket.remaining(), bucket.wait(1)), (0, 1));
        bucket.refill(2_200);
        assert_eq!((bucket.remaining(), bucket.wait(1), bucket.wait(51)), (1, 0, 58_800));
        bucket.refill(10_000_000);
        assert_eq!(bucket.remaining(), 50);
    }
}
