//! The line about results that are not new: how many, which session paid for them, and how old they are.
//! Pure.

use std::collections::BTreeMap;

use convoke_kernel::Reused;
use convoke_view::age;

/// `3 of 12 results are from s_…, 2 h old`; nothing if all are new. What `own` paid for itself is said to be
/// its own.
pub(crate) fn reuse_line(what: &str, reused: &[&Reused], all: usize, own: &str, now: u64) -> Option<String> {
    let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for from in reused {
        times.entry(&from.session).or_default().push(now.saturating_sub(from.at));
    }
    let source = |(session, ages): (&&str, &Vec<u64>)| {
        let session = if **session == *own { "this session" } else { *session };
        format!("{session}, {} old", span(ages))
    };
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    let count = reused.len();
    match times.len() {
        0 => None,
        1 => times
            .iter()
            .next()
            .map(|from| format!("{count} of {all} {what} {} from {}", is(count), source(from))),
        _ => {
            let parts: Vec<String> =
                times.iter().map(|from| format!("{} from {}", from.1.len(), source(from))).collect();
            Some(format!("{count} of {all} {what} {} not new: {}", is(count), parts.join("; ")))
        }
    }
}

/// The ages, from the youngest to the oldest, in one or two figures.
fn span(ages: &[u64]) -> String {
    let youngest = ages.iter().min().copied().unwrap_or(0);
    let oldest = ages.iter().max().copied().unwrap_or(0);
    let from = age(youngest);
    let to = age(oldest);
    if from == to { to } else { format!("{from} to {to}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;

    #[test]
    fn an_age_is_said_in_the_unit_that_says_it_best() {
        let check = |ms: u64, expected: &str| assert_eq!(age(ms), expected);
        check(0, "0 s");
        check(59_999, "59 s");
        check(MINUTE, "1 min");
        check(2 * HOUR + 59 * MINUTE, "2 h");
        check(50 * HOUR, "2 d");
    }

    #[test]
    fn reuse_says_how_many_from_whom_and_how_old() {
        let now = 10 * DAY;
        let from = |session: &str, ago: u64| Reused { session: session.to_owned(), at: now - ago };
        let check = |reused: &[Reused], expected: Option<&str>| {
            let line = reuse_line("results", &reused.iter().collect::<Vec<_>>(), 12, "s_me", now);
            assert_eq!(line.as_deref(), expected);
        };
        check(&[], None);
        check(&[from("s_a", 2 * HOUR)], Some("1 of 12 results is from s_a, 2 h old"));
        check(&[from("s_a", 2 * HOUR), from("s_a", 2 * HOUR)], Some("2 of 12 results are from s_a, 2 h old"));
        check(
            &[from("s_a", MINUTE), from("s_a", HOUR)],
            Some("2 of 12 results are from s_a, 1 min to 1 h old"),
        );
        check(&[from("s_me", MINUTE)], Some("1 of 12 results is from this session, 1 min old"));
        check(
            &[from("s_b", DAY), from("s_a", MINUTE), from("s_b", DAY)],
            Some("3 of 12 results are not new: 1 from s_a, 1 min old; 2 from s_b, 1 d old"),
        );
    }
}
