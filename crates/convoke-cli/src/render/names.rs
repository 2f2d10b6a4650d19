//! Names of files as they are printed: as they are where nothing is special about them, and otherwise between
//! quotes as git writes them, so that every name is one line, nothing in it is obeyed or hidden, and no two
//! names look the same.

use std::fmt::Write;

use super::revealed;

/// A name that is text.
pub(crate) fn file_name(name: &str) -> String {
    quoted_name(name.as_bytes())
}

/// A name that may be no text.
pub(crate) fn quoted_name(name: &[u8]) -> String {
    let plain = std::str::from_utf8(name).is_ok_and(|text| !text.chars().any(is_special));
    if plain {
        return String::from_utf8_lossy(name).into_owned();
    }
    let mut quoted = String::from("\"");
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '\u{7}' => quoted.push_str("\\a"),
                '\u{8}' => quoted.push_str("\\b"),
                '\t' => quoted.push_str("\\t"),
                '\n' => quoted.push_str("\\n"),
                '\u{b}' => quoted.push_str("\\v"),
                '\u{c}' => quoted.push_str("\\f"),
                '\r' => quoted.push_str("\\r"),
                c if is_special(c) => octal(&mut quoted, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => quoted.push(c),
            }
        }
        octal(&mut quoted, chunk.invalid());
    }
    quoted.push('"');
    quoted
}

/// Whether a character ends a line, is obeyed, is not seen, or means something between quotes.
fn is_special(c: char) -> bool {
    let mut one = [0; 4];
    let one = &*c.encode_utf8(&mut one);
    c.is_control() || matches!(c, '"' | '\\' | '\u{2028}' | '\u{2029}') || revealed(one) != one
}

fn octal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\{byte:03o}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_with_everything_in_it_visible() {
        for (name, expected) in [
            ("src/a b.rs", "src/a b.rs"),
            ("é.txt", "é.txt"),
            ("a\nb", "\"a\\nb\""),
            ("a\u{1b}[2Jb", "\"a\\033[2Jb\""),
            ("\t\r\u{7}\u{8}\u{b}\u{c}", "\"\\t\\r\\a\\b\\v\\f\""),
            ("a\u{202e}b", "\"a\\342\\200\\256b\""),
            ("a\u{9b}b", "\"a\\302\\233b\""),
            ("say \"x\"\\n", "\"say \\\"x\\\"\\\\n\""),
        ] {
            assert_eq!(file_name(name), expected);
        }
        assert_eq!(quoted_name(b"a\xffb"), "\"a\\377b\"");
    }

    #[test]
    fn no_two_names_are_printed_alike() {
        let names = ["a\nb", "a\\nb", "\"a\\nb\"", "a\tb", "a b", "a\u{a0}b", "ab", "a\u{200b}b"];
        let mut printed: Vec<String> = names.iter().map(|name| file_name(name)).collect();
        printed.sort();
        printed.dedup();
        assert_eq!(printed.len(), names.len(), "{printed:?}");
    }
}
