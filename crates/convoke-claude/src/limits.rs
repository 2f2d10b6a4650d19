//! What the server says about its rate limits. It reads headers; it never waits.

use reqwest::header::HeaderMap;

/// The rate limits a response told of; a server that told nothing leaves all of them `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests per minute.
    pub requests: Option<Bucket>,
    /// Tokens of both kinds together, where the server counts them so.
    pub tokens: Option<Bucket>,
    /// Input tokens per minute; reads from the cache do not count.
    pub input_tokens: Option<Bucket>,
    /// Output tokens per minute.
    pub output_tokens: Option<Bucket>,
}

/// One limit and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The most that fits.
    pub limit: u64,
    /// What is left now. Tokens are rounded to thousands by the server.
    pub remaining: u64,
    /// When it is full again, in UTC milliseconds, where the server said so.
    pub reset_at: Option<u64>,
}

impl RateLimits {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let bucket = |kind: &str| {
            let read = |part: &str| headers.get(format!("anthropic-ratelimit-{kind}-{part}"))?.to_str().ok();
            Some(Bucket {
                limit: read("limit")?.parse().ok()?,
                remaining: read("remaining")?.parse().ok()?,
                reset_at: read("reset").and_then(utc_millis),
            })
        };
        Self {
            requests: bucket("requests"),
            tokens: bucket("tokens"),
            input_tokens: bucket("input-tokens"),
            output_tokens: bucket("output-tokens"),
        }
    }
}

/// Reads the one form of RFC 3339 that is sent: `2026-10-10T12:00:00Z`, with or without a fraction.
fn utc_millis(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let year = date.next()?.ok()?;
    let month = date.next()?.ok()?;
    let day = date.next()?.ok()?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(str::parse::<u64>);
    let hour = time.next()?.ok()?;
    let minute = time.next()?.ok()?;
    let second = time.next()?.ok()?;
    let in_range = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Counting years from March puts the leap day last, so that days before a month need no table.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let millis: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_time_becomes_utc_milliseconds() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(utc_millis(text), expected, "{text}");
        check("1970-01-01T00:00:00Z", Some(0));
        check("2000-02-29T23:59:59Z", Some(951_868_799_000));
        check("2026-10-10T12:00:00Z", Some(1_791_633_600_000));
        check("2026-10-10T12:00:00.25Z", Some(1_791_633_600_250));
        check("1970-01-01T00:00:00+01:00", None);
        check("yesterday", None);
        check("2026-13-10T12:00:00Z", None);
    }
}
