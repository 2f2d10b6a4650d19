//! The phrases of the report: a finding with its place, a count, and what could not be read.

use std::fmt::Write as _;

use crate::read::{Facts, Item, Language};

/// One finding: its place, how long it is and the line that stands there.
pub(super) fn evidence(item: &Item) -> String {
    let text = item.text.trim_end_matches('\u{fffd}');
    let more = if item.text.len() >= 118 { "…" } else { "" };
    let path = shown(&item.path);
    if item.last > item.first {
        let place = code(&format!("{path}:{}-{}", item.first, item.last));
        format!("- {place} ({} lines): {}{more}", item.last - item.first + 1, code(text))
    } else {
        format!("- {}: {}{more}", code(&format!("{path}:{}", item.first)), code(text))
    }
}

/// A path as it is shown: line breaks and other control characters as escapes.
pub(super) fn shown(path: &str) -> String {
    path.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// A text as Markdown code, whatever back-quotes it holds.
pub(super) fn code(text: &str) -> String {
    let text = shown(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{fence} {text} {fence}") }
}

/// The files of a language: those that were counted and those that could not be read.
pub(super) fn counted(row: &Language<'_>) -> String {
    match (row.files, row.locked) {
        (files, 0) => format!("{}, {}", many(files, "file"), many(row.lines, "line")),
        (0, locked) => format!("lines not known for {} that could not be read", many(locked, "file")),
        (files, locked) => format!(
            "{}, {}; lines not known for {locked} more that could not be read",
            many(files, "file"),
            many(row.lines, "line")
        ),
    }
}

/// What could not be read, if there is any.
pub(crate) fn unread(facts: &Facts) -> Option<String> {
    let directories = |n: u64| if n == 1 { "1 directory".to_owned() } else { format!("{n} directories") };
    let what = match facts.unread() {
        (0, 0) => return None,
        (files, 0) => many(files, "file"),
        (0, closed) => directories(closed),
        (files, closed) => format!("{} and {}", many(files, "file"), directories(closed)),
    };
    Some(format!("{what} that could not be read"))
}

/// That nothing was found, as far as this can be said.
pub(super) fn none_found(facts: &Facts, plainly: &str) -> String {
    match unread(facts) {
        None => plainly.to_owned(),
        Some(_) if facts.looked_into_nothing() => "Not known: nothing could be looked into".to_owned(),
        Some(_) => format!("{plainly} in what could be read"),
    }
}

/// Which source files were not judged by their tests, and why.
pub(super) fn unjudged(facts: &Facts) -> String {
    let reasons = [
        ("common_name", "called mod, lib, main, index and the like"),
        ("shell", "in Shell"),
        ("no_word", "without a letter (a-z) or digit in the name"),
        ("not_asked", "not asked for"),
    ];
    let counts =
        reasons.iter().map(|(name, why)| (facts.count(name), *why)).filter(|(number, _)| *number > 0);
    let said: Vec<String> = counts.map(|(number, why)| format!("{number} {why}")).collect();
    let mut text = if said.is_empty() { String::new() } else { format!("; not judged: {}", said.join(", ")) };
    if facts.count("by_content") > 0 {
        let _ = write!(
            text,
            "; not listed: {} of which tests mention what they define",
            facts.count("by_content")
        );
    }
    if facts.count("in_parts") > 0 {
        let number = facts.count("in_parts");
        let _ = write!(
            text,
            "; not listed: {number} named by several words, all of which stand in tests, perhaps apart"
        );
    }
    text
}

/// A number and what there is that many of.
pub(super) fn many(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
