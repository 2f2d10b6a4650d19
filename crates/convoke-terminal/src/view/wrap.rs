//! Breaking a text into the rows of a screen: at blanks where there are any, never within a character.
//! Nothing of the text is left out, so that a person who has seen all rows has seen all of it.

use std::ops::Range;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// The rows of a text at this width, as ranges of its bytes without line breaks.
pub(super) fn rows(text: &str, width: usize) -> Vec<Range<usize>> {
    let width = width.max(1);
    let mut rows = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        break_line(bare, start, width, &mut rows);
        start += line.len();
    }
    rows
}

fn break_line(line: &str, start: usize, width: usize, rows: &mut Vec<Range<usize>>) {
    // A blank at the end of a row may hang over its edge: it is not seen there, and the next row begins with
    // a word.
    let mut from = 0;
    let mut used = 0;
    let mut blank = None;
    for (at, part) in line.grapheme_indices(true) {
        let columns = if part.contains(char::is_control) { 0 } else { usize::from(part.cell_width()) };
        if used + columns > width && part != " " && at > from {
            let to = blank.unwrap_or(at);
            rows.push(start + from..start + to);
            used = line[to..at].graphemes(true).map(|part| usize::from(part.cell_width())).sum();
            from = to;
            blank = None;
        }
        used += columns;
        if part == " " {
            blank = Some(at + 1);
        }
    }
    rows.push(start + from..start + line.len());
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[track_caller]
    fn check(text: &str, width: usize, expected: &[&str]) {
        let rows: Vec<&str> = rows(text, width).into_iter().map(|range| &text[range]).collect();
        assert_eq!(rows, expected);
        assert_eq!(rows.concat(), text.replace('\n', ""));
    }

    #[test]
    fn a_text_is_broken_at_blanks() {
        check("one two three", 8, &["one two ", "three"]);
        check("one\n\ntwo\n", 8, &["one", "", "two"]);
        check("", 8, &[]);
    }

    #[test]
    fn a_word_longer_than_a_row_is_broken_within_and_a_wide_character_never_is() {
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("a漢字漢字", 4, &["a漢", "字漢", "字"]);
        check("漢", 1, &["漢"]);
    }
}
