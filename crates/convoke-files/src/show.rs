//! How paths, sizes and numbered lines look in an answer. Pure: it reads nothing.

use std::path::Path;

use crate::caps::Caps;

/// A path as the model reads it: control characters are escaped, so that a name cannot forge a line of the
/// answer.
pub(crate) fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.chars().any(char::is_control) { text.escape_debug().to_string() } else { text.into_owned() }
}

/// A path relative to the tree, without the leading `.` that stands for the tree itself.
pub(crate) fn below(at: &Path) -> String {
    if at.as_os_str() == "." { ".".to_owned() } else { path(at.strip_prefix(".").unwrap_or(at)) }
}

/// A number of bytes in the unit a person would use.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return count(bytes, "byte", "bytes");
    }
    // Tenths by integers: a float would be enough, but nothing here needs one.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// A number and its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// A line without its ending.
pub(crate) fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Bytes as text: what is valid UTF-8 as it is, every other byte as `\xNN`.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

/// A text cut to `cap` characters, with a word about what is missing; `more` is what had been left out
/// before.
pub(crate) fn cut(text: &str, cap: usize, more: u64) -> String {
    let mut ends = text.char_indices().skip(cap).map(|(at, _)| at);
    let (shown, rest) = match ends.next() {
        Some(at) => (&text[..at], text[at..].chars().count() as u64 + more),
        None => (text, more),
    };
    if rest == 0 { shown.to_owned() } else { format!("{shown}… [+{rest} characters]") }
}

/// Numbered lines, until there is no room left.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    room: usize,
    line_chars: usize,
    /// The number of the last line that stands on the page.
    pub(crate) last: Option<u64>,
}

impl Page {
    pub(crate) fn new(caps: &Caps) -> Self {
        Self { text: String::new(), room: caps.view_chars, line_chars: caps.line_chars, last: None }
    }

    /// Adds a line; false when there was no room for it. The first line always fits, so that paging never
    /// stands still.
    pub(crate) fn line(&mut self, number: u64, line: &[u8], left_out: u64) -> bool {
        let text = format!("{number:>6}\t{}\n", cut(&readable(line), self.line_chars, left_out));
        let chars = text.chars().count();
        if chars > self.room && self.last.is_some() {
            return false;
        }
        self.room = self.room.saturating_sub(chars);
        self.text.push_str(&text);
        self.last = Some(number);
        true
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_unit_a_person_would_use() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (100 << 20, "100.0 MiB"),
            (u64::MAX, "16383.9 PiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn a_cut_text_says_how_much_is_missing() {
        assert_eq!(cut("abc", 3, 0), "abc");
        assert_eq!(cut("äöü", 2, 0), "äö… [+1 characters]");
        assert_eq!(cut("abc", 3, 7), "abc… [+7 characters]");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_by_number() {
        assert_eq!(readable(b"caf\xe9 \xc3\xa9"), "caf\\xE9 é");
    }
}
