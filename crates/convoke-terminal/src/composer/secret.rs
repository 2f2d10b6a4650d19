//! API keys that get into the input by mistake: recognised, never shown, never kept.

use std::ops::Range;

/// What is said instead of sending one.
pub(super) const WRONG: &str = "this looks like an API key: it was neither sent nor kept. Take it out \
    (Ctrl-U) and set ANTHROPIC_API_KEY instead";

/// What a key begins with.
const BEGINNING: &str = "sk-ant-";
/// How many further characters make it one.
const FURTHER: usize = 20;

/// Whether an API key stands in this text.
pub(super) fn holds_key(text: &str) -> bool {
    text.match_indices(BEGINNING).any(|(at, _)| {
        let further = text.get(at + BEGINNING.len()..).unwrap_or_default();
        further.chars().take_while(|c| is_key_char(*c)).count() >= FURTHER
    })
}

/// The graphemes that are not shown: everything behind the beginning of a key, from the first character on,
/// so that nothing of a key that is being typed is seen either.
pub(super) fn hidden<'a>(graphemes: impl Iterator<Item = &'a str>) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut matched = 0;
    let mut from = None;
    let mut last = 0;
    for (at, grapheme) in graphemes.enumerate() {
        last = at + 1;
        let mut chars = grapheme.chars();
        let single = chars.next().filter(|_| chars.next().is_none());
        if matched == BEGINNING.len() {
            if single.is_some_and(is_key_char) {
                from.get_or_insert(at);
                continue;
            }
            ranges.extend(from.take().map(|from| from..at));
            matched = 0;
        }
        matched = match single {
            Some(c) if BEGINNING.chars().nth(matched) == Some(c) => matched + 1,
            // No part of the beginning repeats its own start but its first letter.
            Some(c) => usize::from(BEGINNING.starts_with(c)),
            None => 0,
        };
    }
    ranges.extend(from.map(|from| from..last));
    ranges
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

#[cfg(test)]
mod tests {
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    #[test]
    fn a_key_is_recognised_by_its_beginning_and_its_length() {
        let check = |text: &str, expected: bool| assert_eq!(holds_key(text), expected, "{text}");
        check("sk-ant-api03-abcdefghijklmnop", true);
        check("use sk-ant-abcdefghijklmnopqrst please", true);
        check("sk-ant-short sk-ant-abcdefghijklmnopqrst", true);
        check("keys begin with sk-ant-", false);
        check("sk-ant-abcdefghijklmnopqrs", false);
        check("", false);
    }

    #[test]
    fn everything_behind_the_beginning_is_hidden() {
        let check = |text: &str, expected: &[(usize, usize)]| {
            let found: Vec<_> =
                hidden(text.graphemes(true)).iter().map(|range| (range.start, range.end)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("sk-ant-abc", &[(7, 10)]);
        check("a sk-ant-x, sk-ant-yz", &[(9, 10), (19, 21)]);
        check("ssk-ant-a", &[(8, 9)]);
        check("sk-ant-", &[]);
        check("nothing", &[]);
        check("漢sk-ant-a漢", &[(8, 9)]);
    }
}
