//! Text and values on their way between the engine and the host. It changes what cannot be said on the other
//! side and touches no engine.

use serde_json::Value;

/// How deeply a value may be nested to cross. The host reads JSON with a limit of 128 levels, of which the
/// reply itself takes a few.
pub(crate) const MAX_DEPTH: usize = 100;

/// Replaces escapes of lone surrogates in JSON text, which no Rust string can hold, by the replacement
/// character.
pub(crate) fn mend_surrogates(text: String) -> String {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return text;
    }
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        (bytes.get(at) == Some(&b'\\') && bytes.get(at + 1) == Some(&b'u')).then_some(())?;
        let digits = text.get(at + 2..at + 6)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].find('\\') {
        let here = at + next;
        mended.push_str(&text[at..here]);
        let (taken, lone) = match unit(here) {
            Some(high) if (0xD800..0xDC00).contains(&high) => match unit(here + 6) {
                Some(low) if (0xDC00..0xE000).contains(&low) => (12, false),
                _ => (6, true),
            },
            Some(low) if (0xDC00..0xE000).contains(&low) => (6, true),
            Some(_) => (6, false),
            // Another escape, such as an escaped backslash, whose second character is no escape of its own.
            None => (2.min(text.len() - here), false),
        };
        mended.push_str(if lone { "\\ufffd" } else { &text[here..here + taken] });
        at = here + taken;
    }
    mended.push_str(&text[at..]);
    mended
}

/// How many levels a value has.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// One line for people: no control characters, no terminal sequences, no longer than it may be.
pub(crate) fn line(text: &str, max_chars: usize) -> String {
    let mut clean = String::new();
    let mut count = 0;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let shown = match char {
            '\u{1b}' => {
                skip_sequence(&mut chars);
                continue;
            }
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            char if !is_plain(char) => continue,
            char => char,
        };
        if count == max_chars {
            clean.push_str("… [cut]");
            break;
        }
        clean.push(shown);
        count += 1;
    }
    clean
}

/// Whether a text is one line for people as it stands.
pub(crate) fn is_line(text: &str) -> bool {
    text.chars().all(is_plain)
}

/// Whether a character neither ends a line nor controls anything. Marks that turn the direction of text
/// around can make a line show what it does not say.
fn is_plain(char: char) -> bool {
    !char.is_control()
        && !matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What follows an escape character: a bracketed sequence up to its final letter, or one character.
fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    let mut ahead = chars.clone();
    if ahead.next() != Some('[') {
        chars.next();
        return;
    }
    *chars = ahead;
    for char in chars.by_ref().take(64) {
        if ('@'..='~').contains(&char) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_mended(text: &str, expected: &str) {
        let mended = mend_surrogates(text.to_owned());
        assert_eq!(serde_json::from_str::<Value>(&mended).expect("JSON"), Value::from(expected), "{text}");
    }

    #[test]
    fn lone_surrogates_become_the_replacement_character_and_pairs_stay() {
        check_mended(r#""a\ud83d\ude00b""#, "a😀b");
        check_mended(r#""a\ud83db""#, "a\u{fffd}b");
        check_mended(r#""\udc00\ud800""#, "\u{fffd}\u{fffd}");
        check_mended(r#""\\ud800""#, "\\ud800");
        check_mended(r#""\ud83d\n\"""#, "\u{fffd}\n\"");
        check_mended(r#""\ud800\ud83d\ude00""#, "\u{fffd}😀");
    }

    #[test]
    fn a_line_has_no_control_characters_and_says_that_it_was_cut() {
        assert_eq!(line("a\u{1b}[31mred\u{1b}[0m\nb\u{7}\u{202e}c", 100), "ared bc");
        assert_eq!(line("abcdef", 3), "abc… [cut]");
        assert_eq!(line("abc", 3), "abc");
        assert_eq!(line("a\u{1b}", 3), "a");
    }

    #[test]
    fn depth_counts_levels() {
        assert_eq!(depth(&serde_json::json!(1)), 0);
        assert_eq!(depth(&serde_json::json!([{"a": []}, 1])), 3);
    }
}
