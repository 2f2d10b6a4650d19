//! Places in a source: offsets to lines and columns and back. It knows where lines end as the engine does,
//! and reads nothing else.

use crate::protocol::SourcePosition;

/// How much of a line a place shows.
const SHOWN_CHARS: usize = 200;

/// Where the lines of a source begin.
pub(crate) struct Places<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> Places<'s> {
    /// Reads a source once.
    pub(crate) fn new(source: &'s str) -> Self {
        let mut starts = vec![0];
        let mut chars = source.char_indices().peekable();
        while let Some((at, char)) = chars.next() {
            match char {
                // A carriage return before a line feed ends the same line.
                '\r' if chars.peek().is_some_and(|(_, next)| *next == '\n') => {}
                '\n' | '\r' | '\u{2028}' | '\u{2029}' => starts.push(at + char.len_utf8()),
                _ => {}
            }
        }
        Self { source, starts }
    }

    /// The place of a byte offset; one past the end is the end.
    pub(crate) fn at(&self, offset: usize) -> SourcePosition {
        let mut offset = offset.min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let column = self.source[start..offset].chars().count();
        let whole = self.line(line);
        let mut text: String = whole.chars().take(SHOWN_CHARS).collect();
        if text.len() < whole.len() {
            text.push('…');
        }
        SourcePosition { line: number(line), column: number(column), text }
    }

    /// The offset at which a line begins, by its number from 1.
    pub(crate) fn start(&self, line: u32) -> Option<usize> {
        self.starts.get((line as usize).checked_sub(1)?).copied()
    }

    fn line(&self, index: usize) -> &'s str {
        let start = self.starts.get(index).copied().unwrap_or_default();
        let end = self.starts.get(index + 1).copied().unwrap_or(self.source.len());
        self.source[start..end].trim_end_matches(['\n', '\r', '\u{2028}', '\u{2029}'])
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, offset: usize, expected: (u32, u32, &str)) {
        let place = Places::new(source).at(offset);
        assert_eq!((place.line, place.column, place.text.as_str()), expected, "{source:?} at {offset}");
    }

    #[test]
    fn an_offset_is_told_as_line_and_column_in_characters() {
        check("abc", 0, (1, 1, "abc"));
        check("abc\ndef", 5, (2, 2, "def"));
        check("é = 1;\r\nx", 3, (1, 3, "é = 1;"));
        check("a\r\nb\rc\u{2028}d", 9, (4, 1, "d"));
        check("a\n", 2, (2, 1, ""));
        check("a", 99, (1, 2, "a"));
        check("é", 1, (1, 1, "é"));
    }

    #[test]
    fn a_long_line_is_cut() {
        let place = Places::new(&"x".repeat(1000)).at(500);
        assert_eq!(place.text.chars().count(), SHOWN_CHARS + 1);
        assert_eq!(place.column, 501);
    }
}
