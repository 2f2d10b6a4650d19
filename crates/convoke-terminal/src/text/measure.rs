//! How much room text takes on a terminal, and text that is cut or broken to fit. What a reader sees as one
//! character (a flag, a family, a letter with its accents) is never torn. It does not make anything harmless.

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// The text broken at blanks so that its lines fit this width; what follows a break is indented. A word that
/// is longer than a line is left whole, so that it can be copied.
pub fn wrapped(text: &str, width: usize) -> String {
    hanging(text, width, "  ")
}

/// The text broken at blanks so that its lines fit this width; what follows a break stands behind this
/// indent.
pub fn hanging(text: &str, width: usize, indent: &str) -> String {
    let mut fitted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let columns = text_columns(word.trim_end());
            if used > text_columns(indent) && used + columns > width {
                fitted.truncate(fitted.trim_end_matches(' ').len());
                fitted.push('\n');
                fitted.push_str(indent);
                used = text_columns(indent);
            }
            fitted.push_str(word);
            used += text_columns(word);
        }
    }
    fitted
}

/// How many columns a cleaned text takes.
pub fn text_columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.bytes().filter(|byte| !byte.is_ascii_control()).count();
    }
    text.graphemes(true).map(columns).sum()
}

/// How many columns a grapheme takes, as ratatui measures it when it draws.
pub(super) fn columns(grapheme: &str) -> usize {
    // What holds a control character is not drawn at all.
    if grapheme.contains(char::is_control) { 0 } else { usize::from(grapheme.cell_width()) }
}

/// The beginning of a line cut to this many columns, with a mark where something is left out; no further than
/// its first line break.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let line = text.split('\n').next().unwrap_or_default();
    if line.len() == text.len() && text_columns(line) <= most {
        return line.to_owned();
    }
    let mut kept = String::new();
    let mut room = most.saturating_sub(1);
    for grapheme in line.graphemes(true) {
        match room.checked_sub(columns(grapheme)) {
            Some(left) => room = left,
            None => break,
        }
        kept.push_str(grapheme);
    }
    if most > 0 {
        kept.push('…');
    }
    kept
}

/// The last `rows` rows of a cleaned text, broken at this width.
pub fn last_rows(text: &str, width: usize, rows: usize) -> Vec<String> {
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

/// A line as rows of this width. What is wider than a whole row by itself is left out, and a mark stands for
/// it.
pub fn broken(line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut used = 0;
    for grapheme in line.graphemes(true) {
        let (grapheme, wide) = fitted(grapheme, width);
        if used + wide > width && used > 0 {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        row.push_str(grapheme);
        used += wide;
    }
    rows.push(row);
    rows
}

/// A grapheme, or the mark that stands for one that is wider than the whole row; and its columns.
pub(super) fn fitted(grapheme: &str, width: usize) -> (&str, usize) {
    match columns(grapheme) {
        wide if wide > width.max(1) => ("…", 1),
        wide => (grapheme, wide),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    /// One character each to a reader, whatever they are made of.
    const WHOLE: [&str; 9] =
        ["a", "漢", "🇩🇪", "👨\u{200d}👩\u{200d}👧", "e\u{301}", "👍🏽", "❤\u{fe0f}", "한", "ｶﾞ"];

    #[test]
    fn what_a_reader_sees_as_one_character_is_never_torn() {
        let text = WHOLE.concat().repeat(3);
        for width in 1..=40 {
            for row in broken(&text, width) {
                assert!(text_columns(&row) <= width, "{row:?} at {width}");
                let whole = row.graphemes(true).all(|seen| seen == "…" || WHOLE.contains(&seen));
                assert!(whole, "{row:?} at {width}");
            }
            let short = cut(&text, width);
            assert!(text_columns(&short) <= width, "{short:?} at {width}");
            assert!(
                short.ends_with('…') && text.starts_with(short.trim_end_matches('…')),
                "{short:?} at {width}"
            );
        }
        assert_eq!(broken("a漢b", 1), ["a", "…", "b"]);
        assert_eq!(broken(&text, 500).concat(), text);
    }

    #[test]
    fn a_width_is_what_ratatui_draws() {
        for text in WHOLE.map(str::to_owned).into_iter().chain([WHOLE.concat(), "ab 漢c".to_owned()]) {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 1));
            let (end, _) = buffer.set_stringn(0, 0, &text, 80, Style::default());
            assert_eq!(text_columns(&text), usize::from(end), "{text:?}");
        }
    }

    #[test]
    fn what_is_cut_says_so_and_what_fits_stays() {
        let check =
            |text: &str, most: usize, expected: &str| assert_eq!(cut(text, most), expected, "{text:?}");
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        check("漢字", 3, "漢…");
        check("漢字", 2, "…");
        check("漢字", 0, "");
        check("one\ntwo", 10, "one…");
        check("", 5, "");
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
