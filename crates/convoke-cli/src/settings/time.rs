//! Spans of time as people write them: `90s`, `5m`, `12h`, `30d`, `250ms`; a bare number is seconds.

use std::time::Duration;

const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a span of time.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("'{text}' is no span of time: write a number and ms, s, m, h or d, such as 90s or 5m");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = if unit.is_empty() { "s" } else { unit.trim_start() };
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let millis = number.parse::<u64>().ok().and_then(|n| n.checked_mul(*factor)).ok_or_else(wrong)?;
    if millis == 0 {
        Err(format!("'{text}' is no time at all; it must be more than zero"))
    } else {
        Ok(Duration::from_millis(millis))
    }
}

/// Writes a span of time in the largest unit that fits it exactly, so that reading it gives the same span.
pub(crate) fn show_duration(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let fits = UNITS.iter().rev().find(|(_, factor)| millis >= *factor && millis % factor == 0);
    fits.map_or_else(|| format!("{millis}ms"), |(name, factor)| format!("{}{name}", millis / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_in_every_unit_and_written_back_in_the_largest() {
        let check = |text: &str, millis: u64, shown: &str| {
            let span = parse_duration(text).unwrap();
            assert_eq!(span, Duration::from_millis(millis));
            assert_eq!(show_duration(span), shown);
        };
        check("90", 90_000, "90s");
        check("90s", 90_000, "90s");
        check("60s", 60_000, "1m");
        check("5m", 300_000, "5m");
        check("24h", 86_400_000, "1d");
        check("30d", 2_592_000_000, "30d");
        check("250ms", 250, "250ms");
    }

    #[test]
    fn what_is_no_span_is_refused_with_what_to_write() {
        for bad in ["", "s", "1.5s", "-1s", "10 years", "99999999999999999999", "1e3"] {
            let error = parse_duration(bad).unwrap_err();
            assert!(error.contains("such as 90s"), "{error}");
        }
        assert!(parse_duration("0s").unwrap_err().contains("more than zero"));
    }
}
