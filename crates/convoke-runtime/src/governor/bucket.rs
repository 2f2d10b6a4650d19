//! The server's bucket of requests as seen from here: how many are left, and when the next one is there. It
//! never waits.

/// A server says how much a minute brings; what it holds at most is the same.
const MINUTE: f64 = 60_000.0;
/// Resets are told in whole seconds, so a reset this little beyond a minute still means a minute.
const SLACK: f64 = 6_000.0;
/// Sums of fractions are not exact; a request that is there but for this much is there.
const NEARLY: f64 = 1e-6;

/// Our estimate of the bucket, which refills continuously. What is in flight has been taken from it.
#[derive(Debug)]
pub(super) struct Bucket {
    limit: f64,
    period: f64,
    level: f64,
    at: u64,
}

impl Bucket {
    /// What the first headers tell. `pending` requests are under way whose headers have not come: some of
    /// them may not have been counted yet, so all of them are.
    pub(super) fn new(told: &convoke_claude::Bucket, now: u64, pending: usize) -> Self {
        let limit = (told.limit as f64).max(1.0);
        let mut bucket =
            Self { limit, period: MINUTE, level: told.remaining as f64 - pending as f64, at: now };
        bucket.hear_period(told, now);
        bucket
    }

    /// Corrects the estimate by headers of a request that was sent `age` milliseconds ago.
    pub(super) fn hear(&mut self, told: &convoke_claude::Bucket, now: u64, pending: usize, age: u64) {
        if (told.limit as f64).max(1.0) != self.limit {
            *self = Self::new(told, now, pending);
            return;
        }
        self.refill(now);
        self.hear_period(told, now);
        let remaining = told.remaining as f64;
        // The truth lies between two bounds. Below: none of those under way had been counted. Above: the
        // server rounds down, and its bucket has gone on filling since it wrote the headers, at most `age`
        // ago.
        let least = remaining - pending as f64;
        let most = remaining + 1.0 + age as f64 * self.per_ms();
        self.level = self.level.max(least).min(most).min(self.limit);
    }

    /// When the next request may go; not after `now` if it may go now.
    pub(super) fn ready_at(&mut self, now: u64) -> u64 {
        self.refill(now);
        let missing = 1.0 - NEARLY - self.level;
        if missing <= 0.0 { now } else { now.saturating_add((missing / self.per_ms()).ceil() as u64) }
    }

    /// One is sent.
    pub(super) fn take(&mut self, now: u64) {
        self.refill(now);
        self.level -= 1.0;
    }

    /// One was not sent after all, or was refused: the server takes nothing for what it refuses.
    pub(super) fn put_back(&mut self) {
        self.level = (self.level + 1.0).min(self.limit);
    }

    /// The server says that the bucket was empty and when the next request will be there. A wait in which the
    /// whole bucket fills up is about something else: says whether it was about this bucket.
    pub(super) fn was_empty(&mut self, now: u64, retry_after: Option<u64>) -> bool {
        self.refill(now);
        let wait = retry_after.filter(|wait| *wait as f64 <= self.period);
        let there = wait.map_or(0.0, |wait| 1.0 - wait as f64 * self.per_ms());
        self.level = self.level.min(there);
        wait.is_some() == retry_after.is_some()
    }

    fn refill(&mut self, now: u64) {
        self.level = (self.level + now.saturating_sub(self.at) as f64 * self.per_ms()).min(self.limit);
        // A machine's clock may be set back; then we count from there.
        self.at = now;
    }

    fn per_ms(&self) -> f64 {
        self.limit / self.period
    }

    /// An empty bucket that is full only in more than a minute refills more slowly than its limit says: the
    /// requests are spread over the time that was told.
    fn hear_period(&mut self, told: &convoke_claude::Bucket, now: u64) {
        let Some(reset_at) = told.reset_at else { return };
        let ahead = reset_at.saturating_sub(now) as f64;
        if ahead <= MINUTE + SLACK {
            self.period = MINUTE;
        } else if told.remaining == 0 {
            self.period = ahead;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(limit: u64, remaining: u64, reset_at: Option<u64>) -> convoke_claude::Bucket {
        convoke_claude::Bucket { limit, remaining, reset_at }
    }

    #[test]
    fn what_is_left_goes_at_once_and_then_as_fast_as_it_refills() {
        let mut bucket = Bucket::new(&told(50, 2, None), 1_000, 0);
        for _ in 0..2 {
            assert_eq!(bucket.ready_at(1_000), 1_000);
            bucket.take(1_000);
        }
        assert_eq!(bucket.ready_at(1_000), 2_200, "50 a minute are one every 1.2 s");
        assert_eq!(bucket.ready_at(2_199), 2_200);
        assert_eq!(bucket.ready_at(2_200), 2_200);
    }

    #[test]
    fn an_empty_bucket_spreads_its_requests_until_the_reset() {
        let check = |reset_in: u64, expected: u64| {
            let mut bucket = Bucket::new(&told(60, 0, Some(10_000 + reset_in)), 10_000, 0);
            assert_eq!(bucket.ready_at(10_000) - 10_000, expected, "reset in {reset_in} ms");
        };
        check(60_000, 1_000);
        check(61_000, 1_000);
        check(30_000, 1_000);
        check(600_000, 10_000);
    }

    #[test]
    fn headers_correct_the_estimate_within_what_is_uncertain() {
        // Level before, headers (remaining, pending, age), level after; nothing refills at time zero.
        let check = |before: u64, remaining: u64, pending: usize, age: u64, expected: f64| {
            let mut bucket = Bucket::new(&told(60, before, None), 0, 0);
            bucket.hear(&told(60, remaining, None), 0, pending, age);
            assert!((bucket.level - expected).abs() < 1e-9, "{} instead of {expected}", bucket.level);
        };
        check(10, 10, 0, 0, 10.0);
        check(3, 10, 2, 0, 8.0);
        check(9, 10, 2, 0, 9.0);
        check(20, 10, 2, 0, 11.0);
        check(20, 10, 2, 4_000, 15.0);
        check(1, 0, 9, 0, 1.0);
    }

    #[test]
    fn a_refusal_gives_the_request_back_and_says_when_the_next_is_there() {
        let mut bucket = Bucket::new(&told(60, 5, None), 0, 0);
        bucket.take(0);
        bucket.put_back();
        assert!((bucket.level - 5.0).abs() < 1e-9);
        bucket.was_empty(0, Some(7_000));
        assert_eq!(bucket.ready_at(0), 7_000);
        bucket.was_empty(10_000, None);
        assert_eq!(bucket.ready_at(10_000), 11_000);
    }

    #[test]
    fn a_new_limit_is_believed_at_once_and_a_clock_set_back_does_no_harm() {
        let mut bucket = Bucket::new(&told(4_000, 3_999, None), 5_000, 0);
        bucket.hear(&told(50, 49, None), 5_000, 4, 0);
        assert!((bucket.level - 45.0).abs() < 1e-9);
        bucket.take(1_000);
        assert_eq!(bucket.ready_at(1_000), 1_000);
    }
}
