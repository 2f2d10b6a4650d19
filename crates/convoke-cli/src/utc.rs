//! Times as they are printed: UTC, whatever the machine's zone is, so that two machines print the same.

/// `2026-11-15 21:04`.
pub(crate) fn minute(at: u64) -> String {
    let (year, month, day) = civil(at / 86_400_000);
    let minutes = at / 60_000 % 1_440;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

/// `21:04:09`.
pub(crate) fn second(at: u64) -> String {
    let seconds = at / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// `2026-11-15T21:04:09Z`.
pub(crate) fn stamp(at: u64) -> String {
    let (year, month, day) = civil(at / 86_400_000);
    format!("{year:04}-{month:02}-{day:02}T{}Z", second(at))
}

/// Year, month and day of a number of days since 1970. Four hundred years always have the same number of
/// days, and a year that begins in March has its leap day at its end; both make the arithmetic straight.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_PER_400_YEARS: u64 = 146_097;
    let days = days + 719_468; // from 0000-03-01
    let cycle = days / DAYS_PER_400_YEARS;
    let day = days % DAYS_PER_400_YEARS;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_civil_dates() {
        let check = |seconds: u64, expected: &str| assert_eq!(minute(seconds * 1_000), expected);
        check(0, "1970-01-01 00:00");
        check(951_782_399, "2000-02-28 23:59");
        check(951_782_400, "2000-02-29 00:00");
        check(1_709_164_800, "2024-02-29 00:00");
        check(1_767_225_599, "2025-12-31 23:59");
        check(4_107_542_400, "2100-03-01 00:00");
        assert_eq!(second(86_399_999), "23:59:59");
        assert_eq!(stamp(951_782_399_000), "2000-02-28T23:59:59Z");
    }
}
