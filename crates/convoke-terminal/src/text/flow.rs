//! Styled text broken into rows: prose between words, code wherever the row ends. It measures and breaks, and
//! changes no character except one that is wider than the whole row.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::measure::{fitted, text_columns};

/// Styled text broken between words so that its rows fit this width behind a mark: `first` stands before the
/// first row, `rest` before the others. Where the marks would take half of the room they are left out.
pub(crate) fn hung(
    spans: &[Span<'static>],
    width: usize,
    first: &Span<'static>,
    rest: &Span<'static>,
) -> Vec<Line<'static>> {
    let mark = text_columns(&first.content).max(text_columns(&rest.content));
    if mark * 2 > width {
        return flow(spans, width);
    }
    let rows = flow(spans, width - mark).into_iter().enumerate();
    let marked = rows.map(|(number, mut row)| {
        row.spans.insert(0, if number == 0 { first.clone() } else { rest.clone() });
        row
    });
    marked.collect()
}

/// Styled text broken between words into rows of at most this width. A line break in it always breaks; a word
/// that is longer than a row is broken where the row ends, and scripts without blanks between any two of
/// their characters.
pub(super) fn flow(spans: &[Span<'static>], width: usize) -> Vec<Line<'static>> {
    let mut rows = Rows::new(width);
    for span in spans {
        for grapheme in span.content.graphemes(true) {
            match grapheme {
                "\n" => rows.line_break(),
                " " => rows.blank(span.style),
                _ => rows.part(grapheme, span.style),
            }
        }
    }
    rows.finish()
}

/// One styled line broken wherever a row of this width ends.
pub(super) fn broken_line(spans: &[Span<'static>], width: usize) -> Vec<Line<'static>> {
    let mut rows = Rows::new(width);
    for span in spans {
        for grapheme in span.content.graphemes(true) {
            rows.put(grapheme, span.style);
        }
    }
    rows.finish()
}

/// Rows under construction.
struct Rows<'a> {
    width: usize,
    done: Vec<Line<'static>>,
    row: Vec<Span<'static>>,
    used: usize,
    /// Blanks that stand before the word, if it does not begin a row.
    blanks: Vec<Style>,
    /// The word that is being read, grapheme by grapheme, and its columns.
    word: Vec<(&'a str, Style)>,
    word_columns: usize,
    was_wide: bool,
    /// Whether the row was begun by a break of ours: then it does not begin with blanks.
    is_wrapped: bool,
}

impl<'a> Rows<'a> {
    fn new(width: usize) -> Self {
        Self {
            width: width.max(1),
            done: Vec::new(),
            row: Vec::new(),
            used: 0,
            blanks: Vec::new(),
            word: Vec::new(),
            word_columns: 0,
            was_wide: false,
            is_wrapped: false,
        }
    }

    fn line_break(&mut self) {
        self.end_word();
        self.end_row();
        self.is_wrapped = false;
    }

    fn blank(&mut self, style: Style) {
        self.end_word();
        self.blanks.push(style);
    }

    fn part(&mut self, grapheme: &'a str, style: Style) {
        let (_, columns) = fitted(grapheme, self.width);
        let is_wide = columns > 1;
        // Between wide characters a row may end anywhere, only not before what closes.
        if (is_wide || self.was_wide) && !grapheme.starts_with(closes) {
            self.end_word();
        }
        self.was_wide = is_wide;
        self.word.push((grapheme, style));
        self.word_columns += columns;
    }

    fn end_word(&mut self) {
        self.was_wide = false;
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let columns = std::mem::take(&mut self.word_columns);
        if self.used > 0 && self.used + self.blanks.len() + columns > self.width {
            self.end_row();
            self.is_wrapped = true;
        }
        let blanks = std::mem::take(&mut self.blanks);
        let fits = self.used + blanks.len() + columns <= self.width;
        if fits && (self.used > 0 || !self.is_wrapped) {
            for style in blanks {
                self.put(" ", style);
            }
        }
        for (grapheme, style) in word {
            self.put(grapheme, style);
        }
    }

    /// Puts a grapheme into the row, or into the next one if this is full.
    fn put(&mut self, grapheme: &str, style: Style) {
        let (grapheme, columns) = fitted(grapheme, self.width);
        if self.used + columns > self.width {
            self.end_row();
            self.is_wrapped = true;
        }
        self.used += columns;
        match self.row.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(grapheme),
            _ => self.row.push(Span::styled(grapheme.to_owned(), style)),
        }
    }

    fn end_row(&mut self) {
        self.blanks.clear();
        self.used = 0;
        self.done.push(Line::from(std::mem::take(&mut self.row)));
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.end_word();
        if !self.row.is_empty() || self.done.is_empty() {
            self.end_row();
        }
        self.done
    }
}

/// What does not begin a row.
fn closes(c: char) -> bool {
    matches!(
        c,
        ')' | ']'
            | '}'
            | ','
            | '.'
            | ';'
            | ':'
            | '!'
            | '?'
            | '…'
            | '”'
            | '’'
            | '、'
            | '。'
            | '，'
            | '．'
            | '）'
            | '」'
            | '』'
            | '】'
            | '》'
            | '！'
            | '？'
            | '：'
            | '；'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, expected: &[&str]) {
        let rows: Vec<String> =
            flow(&[Span::raw(text.to_owned())], width).iter().map(Line::to_string).collect();
        assert_eq!(rows, expected, "{text:?} at {width}");
    }

    #[test]
    fn prose_is_broken_between_words() {
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 100, &["one two three"]);
        check("one\n\ntwo", 10, &["one", "", "two"]);
        check("abcdefgh i", 3, &["abc", "def", "gh", "i"]);
        check("  kept", 10, &["  kept"]);
        check("a  b", 10, &["a  b"]);
        check("", 10, &[""]);
        check("a", 0, &["a"]);
    }

    #[test]
    fn scripts_without_blanks_are_broken_between_characters_but_not_before_what_closes() {
        check("漢字漢字", 5, &["漢字", "漢字"]);
        check("漢字。漢", 5, &["漢", "字。", "漢"]);
        check("漢", 1, &["…"]);
    }

    #[test]
    fn styles_stay_with_their_words() {
        let bold = Style::new().bold();
        let rows = flow(&[Span::raw("one "), Span::styled("two three", bold)], 8);
        assert_eq!(rows[0].spans, [Span::raw("one "), Span::styled("two", bold)]);
        assert_eq!(rows[1].spans, [Span::styled("three", bold)]);
    }

    #[test]
    fn a_mark_stands_before_the_first_row_and_an_indent_before_the_others() {
        let text = [Span::raw("one two three")];
        let rows = hung(&text, 9, &Span::raw("› "), &Span::raw("  "));
        assert_eq!(rows.iter().map(Line::to_string).collect::<Vec<_>>(), ["› one two", "  three"]);
        let rows = hung(&text, 3, &Span::raw("› "), &Span::raw("  "));
        assert_eq!(rows[0].to_string(), "one");
    }
}
