//! Foreign text made fit for a terminal: no control characters, no escape sequences, nothing that turns the
//! direction of writing around. It keeps line breaks and never shortens what can be read.

use std::iter::Peekable;
use std::str::Chars;

use unicode_segmentation::UnicodeSegmentation;

/// The text without anything a terminal would obey. Line breaks stay, tabs become blanks.
pub fn clean(text: &str) -> String {
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

/// The text with everything that a terminal would obey made visible instead: `␛[2J`. For what models,
/// commands and files say: nothing is obeyed and nothing is hidden. Line breaks stay, tabs become blanks.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => shown.push('\n'),
            '\t' => shown.push_str("    "),
            // Two characters that are one line break; a lone return is none.
            '\r' if chars.peek() == Some(&'\n') => {}
            '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => shown.push('␡'),
            c if c.is_control() || is_unseen(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The text with everything that a terminal would obey, reorder or not show written out, so that nothing of
/// it can hide. For what a person is asked to agree to: there a mark that is left out would be a lie. Line
/// breaks stay.
pub fn revealed(text: &str) -> String {
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

/// JSON for a terminal: what JSON need not escape and a terminal would obey is escaped too. The values stay
/// the same, and so does the white space between them.
pub fn escaped(json: &str) -> String {
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
pub fn first_line(text: &str, most: usize) -> String {
    let cleaned = clean(text);
    let mut lines = cleaned.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = lines.count();
    let mut shown: String = first.graphemes(true).take(most).collect();
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
pub fn flat(text: &str, most: usize) -> (String, bool) {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let more = line.graphemes(true).count().saturating_sub(most);
    match more {
        0 => (line, true),
        more => (
            format!("{}… ({more} characters more)", line.graphemes(true).take(most).collect::<String>()),
            false,
        ),
    }
}

/// Marks that reorder or hide what stands around them.
fn is_invisible_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Marks that reorder what stands around them, or carry text that is not seen. Marks that join and shape
/// letters are not among them: without those, families of emoji and whole scripts fall apart.
fn is_unseen(c: char) -> bool {
    let more = matches!(u32::from(c), 0xAD | 0x61C | 0x180E | 0x200B | 0x2028 | 0x2029 | 0x2060..=0x206F
        | 0xFFF0..=0xFFFB | 0x1D173..=0x1D17A | 0xE0000..=0xE007F);
    more || is_invisible_control(c)
}

/// Marks that take no room, or look like a blank and are none.
fn is_blank(c: char) -> bool {
    let wide = c.is_whitespace() && c != ' ';
    let none = matches!(u32::from(c), 0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5
        | 0x180B..=0x180F | 0x200B..=0x200F | 0x2028..=0x202F | 0x205F..=0x206F | 0x2800 | 0x3164
        | 0xFE00..=0xFE0F | 0xFFA0 | 0xFFF0..=0xFFFB | 0xE0000..=0xE0FFF);
    wide || none
}

/// Skips what follows an escape character: a control sequence, a string command, or one character.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            while chars.next_if(|c| !('\u{40}'..='\u{7e}').contains(c) && !c.is_control()).is_some() {}
        }
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
    fn what_a_terminal_would_obey_is_shown_instead() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected, "{text:?}");
        check("plain\r\ntext\n", "plain\ntext\n");
        check("\u{1b}[31mred\u{1b}]0;title\u{7}", "␛[31mred␛]0;title␇");
        check("a\tb\rc\u{7f}\u{9b}2J\u{85}", "a    b␍c␡\\u{9b}2J\\u{85}");
        check("a\u{202e}b\u{feff}c\u{e0041}", "a\\u{202e}b\\u{feff}c\\u{e0041}");
        check(
            "grüße 漢字 👨\u{200d}👩\u{200d}👧 e\u{301} ❤\u{fe0f} 🇩🇪",
            "grüße 漢字 👨\u{200d}👩\u{200d}👧 e\u{301} ❤\u{fe0f} 🇩🇪",
        );
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_wherever_it_stands() {
        let bidi = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{feff}', '\u{200b}'];
        let ranges =
            ('\u{202a}'..='\u{202e}').chain('\u{2060}'..='\u{206f}').chain('\u{e0000}'..='\u{e007f}');
        let controls = ('\0'..='\u{9f}').filter(|c| c.is_control() && *c != '\n');
        for c in controls.chain(bidi).chain(ranges) {
            for text in
                [format!("{c}"), format!("{c}ab"), format!("a{c}b"), format!("ab{c}"), format!("{c}{c}\n{c}")]
            {
                let safe = shown(&text);
                assert!(!safe.contains(c), "{c:?} is left in {safe:?}");
                assert!(!safe.contains(|c: char| c.is_control() && c != '\n'), "{safe:?}");
                assert_eq!(shown(&safe), safe, "showing it twice changes it");
            }
        }
    }
}
