//! The text itself and the cursor in it, grapheme by grapheme. A large paste is one cell: it is walked over
//! and deleted as a whole. It knows nothing of keys, rows on a screen or what the text means.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::tokens::is_blank;

/// More lines than this stand as one cell when they are pasted.
const MOST_LINES: usize = 10;
/// More characters than this stand as one cell when they are pasted.
const MOST_CHARS: usize = 2_000;
/// More characters than this stand as one cell wherever they come from: laying them out for each key would be
/// felt.
const MOST_RECALLED: usize = 20_000;

/// What the cursor steps over at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    /// One grapheme, or a line break.
    Grapheme(String),
    /// Much that was pasted, and what is shown for it.
    Pasted { text: String, label: String },
}

impl Cell {
    /// All of it.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Grapheme(text) | Self::Pasted { text, .. } => text,
        }
    }

    /// Whether it ends a line.
    pub(super) fn is_break(&self) -> bool {
        matches!(self, Self::Grapheme(text) if text == "\n")
    }

    /// Its grapheme, if it is one.
    pub(super) fn grapheme(&self) -> Option<&str> {
        match self {
            Self::Grapheme(text) => Some(text),
            Self::Pasted { .. } => None,
        }
    }

    fn pasted(text: String) -> Self {
        let label = match text.lines().count() {
            0 | 1 => format!("[pasted {} characters]", text.chars().count()),
            lines => format!("[pasted {lines} lines]"),
        };
        Self::Pasted { text, label }
    }
}

/// What a step of words or a cut takes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters and digits.
    Name,
    /// Everything but blanks.
    NotBlank,
}

/// A text and the cursor in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    cells: Vec<Cell>,
    cursor: usize,
}

impl Buffer {
    /// A text with the cursor at its end.
    pub(super) fn of(text: &str) -> Self {
        let mut buffer = Self::default();
        if text.chars().nth(MOST_RECALLED).is_some() {
            buffer.put(Cell::pasted(text.to_owned()));
        } else {
            buffer.insert(text);
        }
        buffer
    }

    /// Its cells.
    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The cell the cursor stands before.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Everything, with what was pasted.
    pub(super) fn text(&self) -> String {
        self.cells.iter().map(Cell::text).collect()
    }

    /// Moves the cursor before this cell; says whether it moved.
    pub(super) fn go(&mut self, to: usize) -> bool {
        let before = std::mem::replace(&mut self.cursor, to.min(self.cells.len()));
        before != self.cursor
    }

    /// Inserts a text at the cursor. Every kind of line break becomes one.
    pub(super) fn insert(&mut self, text: &str) {
        if !text.is_empty() {
            self.put(Cell::Grapheme(one_break(text)));
            self.segment();
        }
    }

    /// Inserts what was pasted: as it is, or as one cell if it is much.
    pub(super) fn paste(&mut self, text: &str) {
        let text = one_break(text);
        if text.lines().count() > MOST_LINES || text.chars().nth(MOST_CHARS).is_some() {
            self.put(Cell::pasted(text));
        } else {
            self.insert(&text);
        }
    }

    /// Inserts cells that were cut.
    pub(super) fn insert_cells(&mut self, cells: &[Cell]) {
        for part in cells.chunk_by(|one, other| one.grapheme().is_some() && other.grapheme().is_some()) {
            match part {
                [pasted @ Cell::Pasted { .. }] => self.put(pasted.clone()),
                graphemes => self.insert(&graphemes.iter().map(Cell::text).collect::<String>()),
            }
        }
    }

    /// Takes these cells out; the cursor stands where they were.
    pub(super) fn cut(&mut self, range: Range<usize>) -> Vec<Cell> {
        let end = range.end.min(self.cells.len());
        let start = range.start.min(end);
        let gone = self.cells.drain(start..end).collect();
        self.cursor = start;
        self.segment();
        gone
    }

    /// Where the line of the cursor begins and ends.
    pub(super) fn line(&self) -> Range<usize> {
        let (before, after) = self.cells.split_at(self.cursor);
        let start = before.iter().rposition(Cell::is_break).map_or(0, |at| at + 1);
        let end = after.iter().position(Cell::is_break).map_or(self.cells.len(), |at| self.cursor + at);
        start..end
    }

    /// Where the word before the cursor begins.
    pub(super) fn word_before(&self, kind: Kind) -> usize {
        let steps = self.cells.iter().take(self.cursor).rev();
        self.cursor - word(steps, kind)
    }

    /// Where the word behind the cursor ends.
    pub(super) fn word_after(&self, kind: Kind) -> usize {
        let steps = self.cells.iter().skip(self.cursor);
        self.cursor + word(steps, kind)
    }

    /// Puts one cell at the cursor.
    fn put(&mut self, cell: Cell) {
        self.cells.insert(self.cursor, cell);
        self.cursor += 1;
    }

    /// Divides what stands around the cursor into graphemes anew: what was typed may have joined with its
    /// neighbours, and what was deleted may have held them apart. Nothing joins over a line break or a paste,
    /// so that is as far as it looks.
    fn segment(&mut self) {
        let holds = |cell: &Cell| cell.is_break() || cell.grapheme().is_none();
        let (before, after) = self.cells.split_at(self.cursor);
        let start = before.iter().rposition(holds).map_or(0, |at| at + 1);
        let end = after.iter().position(holds).map_or(self.cells.len(), |at| self.cursor + at);
        let text = |cells: &[Cell]| cells.iter().map(Cell::text).collect::<String>();
        let head = text(self.cells.get(start..self.cursor).unwrap_or_default());
        let all = head.clone() + &text(self.cells.get(self.cursor..end).unwrap_or_default());
        let fresh: Vec<Cell> = all.graphemes(true).map(|part| Cell::Grapheme(part.to_owned())).collect();
        self.cursor = start + all.grapheme_indices(true).take_while(|(at, _)| *at < head.len()).count();
        self.cells.splice(start..end, fresh);
    }
}

/// How many cells there are up to the far end of the next word in this direction. A paste is a word of its
/// own.
fn word<'a>(steps: impl Iterator<Item = &'a Cell>, kind: Kind) -> usize {
    let belongs = |cell: &Cell| match (cell, kind) {
        (Cell::Pasted { .. }, _) => false,
        (Cell::Grapheme(text), Kind::Name) => text.chars().any(|c| c.is_alphanumeric() || c == '_'),
        (Cell::Grapheme(text), Kind::NotBlank) => !is_blank(text),
    };
    let mut count = 0;
    let mut inside = false;
    for cell in steps {
        match belongs(cell) {
            true => inside = true,
            false if inside => break,
            false if cell.grapheme().is_none() => return count + 1,
            false => {}
        }
        count += 1;
    }
    count
}

/// The text with one kind of line break.
fn one_break(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(buffer: &Buffer) -> Vec<&str> {
        buffer.cells().iter().map(Cell::text).collect()
    }

    #[test]
    fn the_cursor_steps_over_graphemes() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(texts(&Buffer::of(text)), expected, "{text:?}");
        check("ab", &["a", "b"]);
        check("漢字", &["漢", "字"]);
        check("e\u{301}x", &["e\u{301}", "x"]);
        check("👩\u{200d}👩\u{200d}👧!", &["👩\u{200d}👩\u{200d}👧", "!"]);
        check("🇩🇪🇫🇷", &["🇩🇪", "🇫🇷"]);
        check("a\r\nb\rc", &["a", "\n", "b", "\n", "c"]);
    }

    #[test]
    fn what_is_typed_joins_its_neighbours() {
        let mut buffer = Buffer::of("ae");
        buffer.insert("\u{301}");
        assert_eq!(texts(&buffer), ["a", "e\u{301}"]);
        assert_eq!(buffer.cursor(), 2);
        let mut flags = Buffer::of("🇩");
        flags.insert("🇪");
        assert_eq!((texts(&flags), flags.cursor()), (vec!["🇩🇪"], 1));
    }

    #[test]
    fn what_is_deleted_lets_its_neighbours_join() {
        let mut buffer = Buffer::of("ex");
        buffer.insert("\u{301}");
        buffer.go(1);
        buffer.insert("-");
        assert_eq!(texts(&buffer), ["e", "-", "x\u{301}"]);
        buffer.cut(2..3);
        buffer.insert("\u{302}");
        assert_eq!(texts(&buffer), ["e", "-\u{302}"]);
    }

    #[test]
    fn words_end_where_letters_do_and_a_paste_is_a_word() {
        let mut buffer = Buffer::of("one.two  drei");
        assert_eq!(buffer.word_before(Kind::Name), 9);
        buffer.go(9);
        assert_eq!(buffer.word_before(Kind::Name), 4);
        assert_eq!(buffer.word_before(Kind::NotBlank), 0);
        buffer.go(0);
        assert_eq!(buffer.word_after(Kind::Name), 3);
        let mut pasted = Buffer::of("a ");
        pasted.paste(&"x\n".repeat(11));
        pasted.insert("b");
        assert_eq!(pasted.word_before(Kind::NotBlank), 3);
        pasted.go(3);
        assert_eq!(pasted.word_before(Kind::NotBlank), 2);
    }

    #[test]
    fn much_that_is_pasted_is_one_cell() {
        let check = |text: &str, expected: Option<&str>| {
            let mut buffer = Buffer::default();
            buffer.paste(text);
            let label = buffer.cells().iter().find_map(|cell| match cell {
                Cell::Pasted { label, .. } => Some(label.as_str()),
                Cell::Grapheme(_) => None,
            });
            assert_eq!(label, expected);
            assert_eq!(buffer.text(), text.replace("\r\n", "\n"));
        };
        check(&"x\r\n".repeat(10), None);
        check(&"x\n".repeat(11), Some("[pasted 11 lines]"));
        check(&"x\r\n".repeat(120), Some("[pasted 120 lines]"));
        check(&"y".repeat(2_000), None);
        check(&"y".repeat(2_001), Some("[pasted 2001 characters]"));
    }

    #[test]
    fn cells_that_were_cut_come_back_as_they_were() {
        let mut buffer = Buffer::of("a漢");
        buffer.paste(&"x\n".repeat(11));
        buffer.insert("\n.");
        let before = buffer.clone();
        let gone = buffer.cut(1..buffer.cells().len());
        assert_eq!(texts(&buffer), ["a"]);
        buffer.insert_cells(&gone);
        assert_eq!(buffer, before);
    }
}
