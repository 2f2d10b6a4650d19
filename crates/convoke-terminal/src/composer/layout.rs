//! Where each cell of a text stands on rows of some width. It measures and breaks; it colours nothing.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::text::shown;

use super::buffer::Cell;
use super::secret;

/// How something is to be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// As it is.
    Text,
    /// As what stands for a paste.
    Pasted,
    /// As a dot instead of a part of a key.
    Hidden,
}

/// A piece of a row, all of it in one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) look: Look,
}

/// A text on rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rows: Vec<Vec<Part>>,
    /// Row and column of each cell, and of the end.
    pub(super) places: Vec<(usize, usize)>,
}

impl Layout {
    /// The cells on rows of this many columns. Nothing wide is split over the edge.
    pub(super) fn of(cells: &[Cell], room: usize) -> Self {
        let mut page = Page { room, rows: vec![Vec::new()], used: 0 };
        let mut places = Vec::with_capacity(cells.len() + 1);
        let hidden = secret::hidden(cells.iter().map(|cell| cell.grapheme().unwrap_or("\n")));
        let mut hidden = hidden.into_iter().peekable();
        for (at, cell) in cells.iter().enumerate() {
            while hidden.next_if(|range| range.end <= at).is_some() {}
            let place = match cell {
                cell if cell.is_break() => {
                    let place = page.place();
                    page.turn();
                    place
                }
                Cell::Grapheme(_) if hidden.peek().is_some_and(|range| range.contains(&at)) => {
                    page.write("•", Look::Hidden)
                }
                Cell::Grapheme(text) => page.write(&shown(text), Look::Text),
                Cell::Pasted { label, .. } => page.write(label, Look::Pasted),
            };
            places.push(place);
        }
        places.push(page.place());
        Self { rows: page.rows, places }
    }

    /// The cell to go to from this one, one row up or down, as near to the column as can be; `None` at the
    /// first or last row.
    pub(super) fn vertical(&self, from: usize, up: bool, column: usize) -> Option<usize> {
        let (row, _) = *self.places.get(from)?;
        let in_row = |wanted: usize| {
            let there = self.places.iter().enumerate().filter(move |(_, place)| place.0 == wanted);
            let before = there.clone().rfind(|(_, place)| place.1 <= column);
            before.or_else(|| there.clone().next()).map(|(at, _)| at)
        };
        // A paste that is wider than a row leaves rows in which no cell begins.
        if up { (0..row).rev().find_map(in_row) } else { (row + 1..self.rows.len()).find_map(in_row) }
    }
}

/// Rows while they are written.
struct Page {
    room: usize,
    rows: Vec<Vec<Part>>,
    used: usize,
}

impl Page {
    fn place(&self) -> (usize, usize) {
        (self.rows.len().saturating_sub(1), self.used)
    }

    /// Begins the next row.
    fn turn(&mut self) {
        self.rows.push(Vec::new());
        self.used = 0;
    }

    /// Writes something, on as many rows as it takes; returns where it begins.
    fn write(&mut self, text: &str, look: Look) -> (usize, usize) {
        let mut begins = None;
        for grapheme in text.graphemes(true) {
            let columns = grapheme.width();
            if self.used > 0 && self.used + columns > self.room {
                self.turn();
            }
            begins.get_or_insert(self.place());
            self.used += columns;
            if let Some(row) = self.rows.last_mut() {
                match row.last_mut().filter(|part| part.look == look) {
                    Some(part) => part.text.push_str(grapheme),
                    None => row.push(Part { text: grapheme.to_owned(), look }),
                }
            }
        }
        begins.unwrap_or_else(|| self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::Buffer;
    use super::*;

    fn rows(text: &str, room: usize) -> Vec<String> {
        let layout = Layout::of(Buffer::of(text).cells(), room);
        layout.rows.iter().map(|row| row.iter().map(|part| part.text.as_str()).collect()).collect()
    }

    #[test]
    fn rows_are_broken_by_graphemes_and_nothing_wide_is_split() {
        let check =
            |text: &str, room: usize, expected: &[&str]| assert_eq!(rows(text, room), expected, "{text}");
        check("", 4, &[""]);
        check("abcdef", 4, &["abcd", "ef"]);
        check("abcd", 4, &["abcd"]);
        check("a漢字b", 4, &["a漢", "字b"]);
        check("ab\n\ncd", 4, &["ab", "", "cd"]);
        check("abce\u{301}f", 4, &["abce\u{301}", "f"]);
        check(
            "👩\u{200d}👩\u{200d}👧👩\u{200d}👩\u{200d}👧👩\u{200d}👩\u{200d}👧",
            4,
            &["👩\u{200d}👩\u{200d}👧👩\u{200d}👩\u{200d}👧", "👩\u{200d}👩\u{200d}👧"],
        );
        check("漢", 1, &["漢"]);
    }

    #[test]
    fn every_cell_has_its_place() {
        let layout = Layout::of(Buffer::of("a漢字\nb").cells(), 4);
        assert_eq!(layout.places, [(0, 0), (0, 1), (1, 0), (1, 2), (2, 0), (2, 1)]);
    }

    #[test]
    fn up_and_down_keep_to_the_column() {
        let check =
            |text: &str, room: usize, from: usize, up: bool, column: usize, expected: Option<usize>| {
                let layout = Layout::of(Buffer::of(text).cells(), room);
                assert_eq!(layout.vertical(from, up, column), expected, "{text:?} from {from}");
            };
        check("abc\nd\nefg", 9, 3, false, 3, Some(5));
        check("abc\nd\nefg", 9, 5, false, 3, Some(9));
        check("abc\nd\nefg", 9, 9, true, 3, Some(5));
        check("abc", 9, 1, true, 1, None);
        check("abc", 9, 1, false, 1, None);
        check("abcdef", 3, 4, true, 1, Some(1));
        check("漢字\nabc", 9, 4, true, 1, Some(0));
    }

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        let drawn = rows("a\u{1b}[2J\u{202e}b", 40).concat();
        assert!(!drawn.contains(['\u{1b}', '\u{202e}']) && drawn.contains("[2J"), "{drawn:?}");
    }

    #[test]
    fn secrets_are_never_echoed_whether_typed_or_pasted() {
        let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz";
        let mut typed = Buffer::default();
        for c in key.chars() {
            typed.insert(&c.to_string());
            let parts = Layout::of(typed.cells(), 20).rows.concat();
            let drawn: String = parts.iter().map(|part| part.text.as_str()).collect();
            let further = drawn.strip_prefix("sk-ant-").unwrap_or_default();
            assert!(further.chars().all(|c| c == '•'), "{drawn}");
        }
        assert_eq!(rows(&format!("a {key} b"), 60), [format!("a sk-ant-{} b", "•".repeat(key.len() - 7))]);
    }
}
