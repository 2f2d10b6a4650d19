//! How a person names what is in a journal: by the beginning of an id, or by its place from the newest on.

use crate::failure::Failure;

/// The failure where what a person typed fits several ids.
pub(super) fn ambiguous<'a>(
    given: &str,
    what: &str,
    found: impl ExactSizeIterator<Item = &'a str>,
) -> Failure {
    let message = format!("'{given}' fits {} {what}: {}", found.len(), ids(found));
    Failure::usage(message).hint("write more of the id")
}

/// A few of these ids, and how many more there are.
pub(super) fn ids<'a>(found: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let mut found: Vec<&str> = found.collect();
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", found.join(", "))
}

/// Which session from the newest on is meant, from 1, where one is not named by its id.
pub(super) fn from_the_end(given: &str) -> Option<usize> {
    match given {
        "last" => Some(1),
        _ => given.strip_prefix('@')?.parse().ok(),
    }
}

/// Whether what a person typed is the beginning of this id, with or without its prefix.
pub(super) fn names(given: &str, id: &str) -> bool {
    let body = id.split_once('_').map_or(id, |(_, body)| body);
    !given.is_empty() && (id.starts_with(given) || body.starts_with(given))
}
