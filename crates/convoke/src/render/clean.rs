//! Text that somebody else wrote, made fit for a terminal: no control characters, no escape sequences, nothing that
//! turns the direction of writing around. It keeps line breaks and never shortens what can be read.

use std::iter::Peekable;
use std::str::Chars;

/// The text without anything a terminal would obey. Line breaks stay, tabs become blanks.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => cleaned.push('\n'),
            '\t' => cleaned.push_str("    "),
            '\u{1b}' => skip_escape(&mut chars),
            c if c.is_control() || is_invisible_control(c) => {}
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// The text with everything that a terminal would obey, reorder or not show written out, so that nothing of it can hide.
/// For what a person is asked to agree to: there a mark that is left out would be a lie. Line breaks stay.
pub(crate) fn revealed(text: &str) -> String {
    let hides = |c: char| (c.is_control() || is_invisible_control(c) || is_blank(c)) && c != '\n';
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str("\\t"),
            c if hides(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// JSON for a terminal: what JSON need not escape and a terminal would obey is escaped too. The values stay the same, and
/// so does the white space between them.
pub(crate) fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Inside strings JSON has none of these three, so they stand between members or lines.
            '\n' | '\t' => escaped.push(c),
            '\r' => escaped.push(' '),
            // All of these are in the first plane, where one escape is enough.
            c if c.is_control() || is_invisible_control(c) => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// The first line with something on it, cleaned and cut to `most` characters; says how many lines follow.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let cleaned = clean(text);
    let mut lines = cleaned.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = lines.count();
    let mut shown: String = first.chars().take(most).collect();
    if shown.len() < first.len() {
        shown.push('…');
    }
    match more {
        0 => shown,
        1 => format!("{shown} (+1 line)"),
        more => format!("{shown} (+{more} lines)"),
    }
}

/// The text on one line, cleaned and cut to `most` characters; and whether that is the whole of it.
pub(crate) fn flat(text: &str, most: usize) -> (String, bool) {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let more = line.chars().count().saturating_sub(most);
    match more {
        0 => (line, true),
        more => (format!("{}… ({more} characters more)", line.chars().take(most).collect::<String>()), false),
    }
}

/// The text broken at blanks so that its lines fit this width; what follows a break is indented. A word that is longer
/// than a line is left whole, so that it can be copied.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    hanging(text, width, "  ")
}

/// The text broken at blanks so that its lines fit this width; what follows a break stands behind this indent.
pub(crate) fn hanging(text: &str, width: usize, indent: &str) -> String {
    let mut fitted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let columns = text_columns(word.trim_end());
            if used > indent.len() && used + columns > width {
                fitted.truncate(fitted.trim_end_matches(' ').len());
                fitted.push('\n');
                fitted.push_str(indent);
                used = indent.len();
            }
            fitted.push_str(word);
            used += text_columns(word);
        }
    }
    fitted
}

/// How many columns a cleaned text takes.
pub(crate) fn text_columns(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// How many columns a character takes. Close enough to break lines; what is drawn too wide is clipped.
fn columns(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F | 0x200B..=0x200D | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// The last `rows` rows of a cleaned text, broken at this width.
pub(super) fn last_rows(text: &str, width: usize, rows: usize) -> Vec<String> {
    let mut last: Vec<String> = Vec::new();
    for line in text.lines().rev() {
        if last.len() >= rows {
            break;
        }
        let mut above = broken(line, width.max(1));
        above.append(&mut last);
        last = above;
    }
    let skip = last.len().saturating_sub(rows);
    last.split_off(skip)
}

/// A line as rows of this width.
pub(super) fn broken(line: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        if used + columns(c) > width {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        row.push(c);
        used += columns(c);
    }
    rows.push(row);
    rows
}

/// Marks that reorder or hide what stands around them.
fn is_invisible_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Marks that take no room, or look like a blank and are none.
fn is_blank(c: char) -> bool {
    let wide = c.is_whitespace() && c != ' ';
    let none = matches!(u32::from(c), 0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
        | 0x200B..=0x200F | 0x2028..=0x202F | 0x205F..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFFA0
        | 0xFFF0..=0xFFFB | 0xE0000..=0xE0FFF);
    wide || none
}

/// Skips what follows an escape character: a control sequence, a string command, or one character.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        Some('[') => while chars.next_if(|c| !('\u{40}'..='\u{7e}').contains(c) && !c.is_control()).is_some() {},
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next_if(|c| *c != '\n') {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
            return;
        }
        _ => return,
    }
    // The letter that ends a control sequence; an unfinished one ends where something else begins.
    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_would_obey_is_left() {
        let check = |text: &str, expected: &str| assert_eq!(clean(text), expected, "{text:?}");
        check("plain\ntext", "plain\ntext");
        check("a\tb\rc\u{7}\u{8}d\u{7f}\u{9b}e", "a    bcde");
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("\u{1b}]0;a title\u{7}after", "after");
        check("\u{1b}]8;;http://x\u{1b}\\link", "link");
        check("\u{1b}]never ended\nnext line", "\nnext line");
        check("\u{1b}[12", "");
        check("a\u{202e}b\u{2066}c", "abc");
        check("\u{1b}", "");
        check("grüße 漢字", "grüße 漢字");
    }

    #[test]
    fn what_is_revealed_hides_nothing() {
        let check = |text: &str, expected: &str| assert_eq!(revealed(text), expected, "{text:?}");
        check("ls -l\necho grüße 漢字", "ls -l\necho grüße 漢字");
        check("echo a\u{1b}]0;b; rm -rf ~\u{7}", "echo a\\u{1b}]0;b; rm -rf ~\\u{7}");
        check("a\rb\u{8}\tc", "a\\u{d}b\\u{8}\\tc");
        check("a\u{202e}b\u{200b}c\u{a0}d\u{e0041}", "a\\u{202e}b\\u{200b}c\\u{a0}d\\u{e0041}");
    }

    #[test]
    fn json_for_a_terminal_means_the_same_and_does_nothing() {
        let json = serde_json::json!({"answer": "a\u{9b}2J\u{202e}b\u{7f}\u{1b}[2J\n"}).to_string();
        let safe = escaped(&json);
        assert!(safe.is_ascii(), "{safe:?}");
        let same: serde_json::Value = serde_json::from_str(&safe).unwrap();
        assert_eq!(same.to_string(), json);
        assert_eq!(escaped("{\n\t\"a\":\r\"\u{85}\"}\n{}\n"), "{\n\t\"a\": \"\\u0085\"}\n{}\n");
    }

    #[test]
    fn the_first_line_is_cut_and_the_others_are_counted() {
        assert_eq!(first_line("\n  one\ntwo\n\nthree", 10), "one (+2 lines)");
        assert_eq!(first_line("abcdef", 3), "abc…");
        assert_eq!(first_line("", 3), "");
    }

    #[test]
    fn a_flat_text_says_how_much_of_it_is_missing() {
        assert_eq!(flat(" one\n two\u{1b}[2J ", 20), ("one two".to_owned(), true));
        assert_eq!(flat("abcdef", 4), ("abcd… (2 characters more)".to_owned(), false));
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three\nfour five\n", 9), "one two\n  three\nfour five\n");
        assert_eq!(wrapped("a/very/long/path b", 6), "a/very/long/path\n  b");
        assert_eq!(wrapped("", 6), "");
    }

    #[test]
    fn the_last_rows_are_those_at_the_end_broken_at_the_width() {
        assert_eq!(last_rows("abcdefgh\nij", 3, 2), ["gh", "ij"]);
        assert_eq!(last_rows("漢字漢", 4, 5), ["漢字", "漢"]);
        assert_eq!(last_rows("", 4, 5), Vec::<String>::new());
        let long = "x".repeat(10_000);
        assert_eq!(last_rows(&long, 10, 3), vec!["x".repeat(10); 3]);
    }
}
