//! Rows and cells as the bytes that a terminal is sent. Everything that is written passes [`encode_row`],
//! which lets nothing through that a terminal would obey: wherever the text comes from, this is the last line
//! of defence. It never moves the cursor.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A row as it was written, and how many columns it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) bytes: Vec<u8>,
    pub(super) width: u16,
}

/// What becomes of the blanks that end a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trailing {
    /// They are written, because they cover what was there.
    Kept,
    /// Those that cannot be seen are left out, so that a terminal that gets narrower does not break the row
    /// because of them.
    Dropped,
}

/// The text with everything that a terminal would obey or that turns the direction of writing replaced by
/// something to see. Line breaks are replaced too: a row is a row. It leaves alone what is harmless, whatever
/// else is in the text.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    match text.contains(is_refused) {
        true => Cow::Owned(text.chars().map(|c| if is_refused(c) { picture(c) } else { c }).collect()),
        false => Cow::Borrowed(text),
    }
}

/// Writes one row of styled pieces, cut between graphemes where the columns end. Returns how many columns it
/// takes.
pub(super) fn encode_row<'a>(
    pieces: impl IntoIterator<Item = (&'a str, Style)>,
    columns: u16,
    trailing: Trailing,
    out: &mut Vec<u8>,
) -> u16 {
    let mut current = Attributes::default();
    let mut used = 0_u16;
    let mut blanks = Vec::new();
    'row: for (text, style) in pieces {
        let wanted = Attributes::of(style);
        for grapheme in harmless(text).graphemes(true) {
            let width = u16::try_from(grapheme.width()).unwrap_or(u16::MAX);
            let Some(next) = used.checked_add(width).filter(|next| *next <= columns) else { break 'row };
            used = next;
            if grapheme == " " && trailing == Trailing::Dropped && wanted.hides_blanks() {
                blanks.push(wanted);
                continue;
            }
            for blank in blanks.drain(..) {
                current.become_(blank, out);
                out.push(b' ');
            }
            current.become_(wanted, out);
            out.extend_from_slice(grapheme.as_bytes());
        }
    }
    current.become_(Attributes::default(), out);
    used - u16::try_from(blanks.len()).unwrap_or(used)
}

/// A line as one row, cut where the columns end.
pub(crate) fn row(line: &Line<'_>, columns: u16) -> Row {
    let mut row = Row::default();
    row.width = encode_row(pieces(line), columns, Trailing::Dropped, &mut row.bytes);
    row
}

/// A line as rows. It comes fitted; if it does not fit after all (the terminal has just become narrower), it
/// is broken rather than cut: what is printed for good is printed whole.
pub(super) fn rows(line: &Line<'_>, columns: u16) -> Vec<Row> {
    let columns = columns.max(1);
    let texts: Vec<(Cow<'_, str>, Style)> =
        pieces(line).map(|(text, style)| (harmless(text), style)).collect();
    if texts.iter().map(|(text, _)| text.width()).sum::<usize>() <= usize::from(columns) {
        return vec![row(line, columns)];
    }
    let graphemes =
        texts.iter().flat_map(|(text, style)| text.graphemes(true).map(|grapheme| (grapheme, *style)));
    let mut broken: Vec<Vec<(&str, Style)>> = vec![Vec::new()];
    let mut used = 0;
    for (grapheme, style) in graphemes {
        if used > 0 && used + grapheme.width() > usize::from(columns) {
            broken.push(Vec::new());
            used = 0;
        }
        used += grapheme.width();
        broken.last_mut().into_iter().for_each(|row| row.push((grapheme, style)));
    }
    let encoded = broken.into_iter().map(|pieces| {
        let mut row = Row::default();
        row.width = encode_row(pieces, columns, Trailing::Dropped, &mut row.bytes);
        row
    });
    encoded.collect()
}

/// Writes the cells in which the screen differs from what is to be seen.
pub(super) fn cells(seen: &Buffer, wanted: &Buffer, out: &mut Vec<u8>) {
    let mut run = Run::default();
    for (x, y, cell) in seen.diff(wanted) {
        if run.next != Some((x, y)) {
            run.end(wanted.area.width, out);
            run.start = (x, y);
        }
        run.cells.push((cell.symbol(), cell.style()));
        // Terminals disagree about the width of what is joined from several characters: after it the cursor
        // is set anew.
        let is_certain = cell.symbol().chars().nth(1).is_none();
        let width = u16::try_from(cell.symbol().width()).unwrap_or(1);
        run.next = is_certain.then(|| (x.saturating_add(width), y));
    }
    run.end(wanted.area.width, out);
}

/// Makes every cell harmless and keeps it as wide as a cell.
pub(super) fn disarm(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some(refused) = cell.symbol().chars().find(|c| is_refused(*c)) {
            cell.set_char(picture(refused));
        }
    }
}

/// Cells that stand side by side.
#[derive(Default)]
struct Run<'a> {
    start: (u16, u16),
    next: Option<(u16, u16)>,
    cells: Vec<(&'a str, Style)>,
}

impl Run<'_> {
    fn end(&mut self, columns: u16, out: &mut Vec<u8>) {
        if self.cells.is_empty() {
            return;
        }
        let (x, y) = self.start;
        out.extend_from_slice(format!("\x1b[{};{}H", u32::from(y) + 1, u32::from(x) + 1).as_bytes());
        encode_row(self.cells.drain(..), columns.saturating_sub(x), Trailing::Kept, out);
    }
}

/// Whether a terminal would obey the character, or it reorders or breaks what stands around it.
fn is_refused(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What is seen in place of a refused character: one column wide.
fn picture(c: char) -> char {
    match u32::from(c) {
        0x09 => ' ',
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '␡',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// The spans of a line, each in the style it has there.
pub(crate) fn pieces<'a>(line: &'a Line<'_>) -> impl Iterator<Item = (&'a str, Style)> {
    line.spans.iter().map(|span| (span.content.as_ref(), line.style.patch(span.style)))
}

/// How the terminal writes right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attributes {
    ink: Color,
    paper: Color,
    marks: Modifier,
}

impl Default for Attributes {
    fn default() -> Self {
        Self { ink: Color::Reset, paper: Color::Reset, marks: Modifier::empty() }
    }
}

impl Attributes {
    /// Text that cannot be seen is not offered: a person must be able to read what is there.
    fn of(style: Style) -> Self {
        let marks = style.add_modifier - style.sub_modifier - Modifier::HIDDEN;
        Self { ink: style.fg.unwrap_or_default(), paper: style.bg.unwrap_or_default(), marks }
    }

    fn hides_blanks(self) -> bool {
        let seen = Modifier::REVERSED | Modifier::UNDERLINED | Modifier::CROSSED_OUT;
        self.paper == Color::Reset && !self.marks.intersects(seen)
    }

    fn become_(&mut self, wanted: Self, out: &mut Vec<u8>) {
        if *self == wanted {
            return;
        }
        let mut codes = String::from("\x1b[0");
        for (mark, code) in MARKS {
            if wanted.marks.contains(mark) {
                codes.push_str(code);
            }
        }
        codes.push_str(&colour(wanted.ink, 30));
        codes.push_str(&colour(wanted.paper, 40));
        codes.push('m');
        out.extend_from_slice(codes.as_bytes());
        *self = wanted;
    }
}

const MARKS: [(Modifier, &str); 8] = [
    (Modifier::BOLD, ";1"),
    (Modifier::DIM, ";2"),
    (Modifier::ITALIC, ";3"),
    (Modifier::UNDERLINED, ";4"),
    (Modifier::SLOW_BLINK, ";5"),
    (Modifier::RAPID_BLINK, ";6"),
    (Modifier::REVERSED, ";7"),
    (Modifier::CROSSED_OUT, ";9"),
];

/// A colour as a part of the sequence that sets it; `base` is 30 for what is written and 40 for what is
/// behind it.
fn colour(colour: Color, base: u8) -> String {
    let normal = |n: u8| format!(";{}", base + n);
    let bright = |n: u8| format!(";{}", base + 60 + n);
    match colour {
        Color::Reset => String::new(),
        Color::Black => normal(0),
        Color::Red => normal(1),
        Color::Green => normal(2),
        Color::Yellow => normal(3),
        Color::Blue => normal(4),
        Color::Magenta => normal(5),
        Color::Cyan => normal(6),
        Color::Gray => normal(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(index) => format!(";{};5;{index}", base + 8),
        Color::Rgb(red, green, blue) => format!(";{};2;{red};{green};{blue}", base + 8),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Stylize;
    use ratatui::text::Span;

    use super::*;

    const BIDI: [char; 16] = [
        '\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}',
        '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}', '\u{feff}', '\u{9b}',
    ];

    fn dangerous() -> impl Iterator<Item = char> {
        (0..=0x9f).filter_map(char::from_u32).filter(|c| c.is_control()).chain(BIDI)
    }

    fn text(row: &Row) -> String {
        String::from_utf8(row.bytes.clone()).unwrap()
    }

    /// Told apart from what the painter refuses: a hole there must be seen here.
    fn is_obeyed(c: char) -> bool {
        c.is_control()
            || "\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}"
                .contains(c)
    }

    #[test]
    fn nothing_that_a_terminal_obeys_passes_in_a_row() {
        for c in dangerous() {
            let line = Line::from(vec![Span::raw(format!("a{c}b")), Span::raw(c.to_string())]);
            for row in rows(&line, 80).into_iter().chain([row(&line, 80)]) {
                let written = text(&row);
                assert!(!written.contains(is_obeyed), "{c:?} became {written:?}");
                assert_eq!(usize::from(row.width), written.width(), "{c:?} became {written:?}");
                assert!(written.starts_with('a') && written.contains('b'), "{written:?}");
            }
        }
    }

    #[test]
    fn every_harmless_character_of_the_first_256_passes_as_it_is() {
        for c in (0..=0xff).filter_map(char::from_u32).filter(|c| !c.is_control()) {
            assert_eq!(harmless(&c.to_string()), c.to_string());
        }
        assert_eq!(harmless("grüße 漢字 👨‍👩‍👧"), "grüße 漢字 👨‍👩‍👧");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_passes_in_a_cell() {
        let area = Rect::new(0, 0, 4, 1);
        for c in dangerous() {
            for symbol in [c.to_string(), format!("x{c}"), format!("{c}[2J")] {
                let mut wanted = Buffer::empty(area);
                wanted[(1, 0)].set_symbol(&symbol);
                disarm(&mut wanted);
                assert_eq!(wanted[(1, 0)].symbol().width(), 1, "{symbol:?}");
                let mut out = Vec::new();
                cells(&Buffer::empty(area), &wanted, &mut out);
                let written = String::from_utf8(out).unwrap();
                // A tab becomes a blank, and that is there already.
                let rest = written.strip_prefix("\x1b[1;2H").unwrap_or(&written);
                assert!(!rest.contains(is_obeyed), "{symbol:?} became {written:?}");
                // A cell that was not disarmed is stopped at the last line too.
                let mut out = Vec::new();
                encode_row([(symbol.as_str(), Style::new())], 4, Trailing::Kept, &mut out);
                assert!(!String::from_utf8(out).unwrap().contains(is_refused), "{symbol:?}");
            }
        }
    }

    #[test]
    fn an_escape_sequence_is_seen_and_not_obeyed() {
        let line = Line::from(Span::raw("\x1b[2J\x07\tz\n\u{9b}1m\u{7f}"));
        assert_eq!(text(&row(&line, 80)), "␛[2J␇ z␊\u{fffd}1m␡");
    }

    #[test]
    fn a_row_is_cut_between_graphemes() {
        let check = |line: &str, columns, expected: &str, width| {
            let row = row(&Line::raw(line.to_owned()), columns);
            assert_eq!((text(&row).as_str(), row.width), (expected, width));
        };
        check("abcdef", 4, "abcd", 4);
        check("漢字漢", 5, "漢字", 4);
        check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}e\u{301}", 2);
        check("a👨‍👩‍👧b", 2, "a", 1);
        check("abc", 0, "", 0);
        check("ab   ", 80, "ab", 2);
        check("  ab", 80, "  ab", 4);
    }

    #[test]
    fn what_is_printed_for_good_is_broken_and_not_cut() {
        let line = Line::from(vec![Span::raw("abc").red(), Span::raw("漢字d")]);
        let broken: Vec<_> = rows(&line, 4).iter().map(text).collect();
        assert_eq!(broken, ["\x1b[0;31mabc\x1b[0m", "漢字", "d"]);
        assert_eq!(rows(&Line::raw("漢"), 1), [Row::default()], "what cannot fit at all is left out");
    }

    #[test]
    fn styles_become_one_sequence_and_end_with_the_row() {
        let check =
            |span: Span<'static>, expected: &str| assert_eq!(text(&row(&Line::from(span), 80)), expected);
        check("x".into(), "x");
        check("x".bold().red(), "\x1b[0;1;31mx\x1b[0m");
        check("x".dim().on_dark_gray(), "\x1b[0;2;100mx\x1b[0m");
        check("x".fg(Color::Indexed(200)).bg(Color::Rgb(1, 2, 3)), "\x1b[0;38;5;200;48;2;1;2;3mx\x1b[0m");
        check("x  ".reversed(), "\x1b[0;7mx  \x1b[0m");
        check("x".hidden(), "x");
        let line = Line::from(vec!["a".into(), Span::raw("b").not_bold()]).bold();
        assert_eq!(text(&row(&line, 80)), "\x1b[0;1ma\x1b[0mb");
    }

    #[test]
    fn only_cells_that_differ_are_written() {
        let seen = Buffer::with_lines(["abcdef", "ghijkl"]);
        let check = |lines: [&str; 2], expected: &str| {
            let mut out = Vec::new();
            cells(&seen, &Buffer::with_lines(lines), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(["abcdef", "ghijkl"], "");
        check(["abXYef", "ghijk "], "\x1b[1;3HXY\x1b[2;6H ");
        check(["漢cdef", "ghijkl"], "\x1b[1;1H漢");
    }
}
