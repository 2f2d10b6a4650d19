//! The composer as rows: the prompt and what is written, below it candidates or what is searched. It changes
//! nothing of what is written.

use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::screen_update::Candidate;
use crate::text::{Theme, Tone, cut, shown};

use super::complete::Offers;
use super::history::Search;
use super::layout::{Layout, Look};
use super::{Composed, Composer, secret};

/// What stands before the first row; the others are indented as far.
const PROMPT: &str = "› ";
const INDENT: &str = "  ";
/// How many rows candidates take at most.
const MOST_OFFERS: usize = 6;

impl Composer {
    /// As rows of this width, at most so many: the row of the cursor is among them. Candidates stand below.
    pub(crate) fn lines(&self, width: usize, most: usize, hint: &str, theme: Theme) -> Composed {
        // The last column stays free, so that the cursor has a place behind a full row.
        let room = width.saturating_sub(INDENT.len() + 1).max(2);
        self.room.set(room);
        let layout = Layout::of(self.buffer.cells(), room);
        let most = most.max(1);
        let wanted = match (&self.search, &self.offers) {
            (Some(_), _) => 1,
            (None, Some(offers)) => offers.left.len().min(MOST_OFFERS),
            (None, None) => 0,
        };
        // What is written gives up rows before candidates do, but not more than half of them.
        let below = wanted.min(most.saturating_sub(layout.rows.len()).max(most / 2));
        let below = if self.search.is_some() { 1 } else { below };
        let count = layout.rows.len().min(most - below);

        let (row, column) = layout.places.get(self.buffer.cursor()).copied().unwrap_or_default();
        let first = row.saturating_sub(count / 2).min(layout.rows.len() - count);
        let mut lines: Vec<Line<'static>> = layout
            .rows
            .iter()
            .enumerate()
            .skip(first)
            .take(count)
            .map(|(at, parts)| {
                let mut spans = vec![prompt(at, theme)];
                spans.extend(
                    parts.iter().map(|part| Span::styled(part.text.clone(), theme.style(tone(part.look)))),
                );
                Line::from(spans)
            })
            .collect();
        if self.is_empty() {
            let hint = Span::styled(cut(&one_row(hint), room), theme.style(Tone::Dim));
            lines = vec![Line::from(vec![prompt(0, theme), hint])];
        }
        let mut cursor = (INDENT.len() + column, row.saturating_sub(first));
        if let Some(search) = &self.search {
            let (line, column) = search_row(search, width, theme);
            cursor = (column, lines.len());
            lines.push(line);
        } else if let Some(offers) = &self.offers {
            lines.extend(offer_rows(offers, below, width, theme));
        }
        Composed { lines, cursor: (small(cursor.0), small(cursor.1)) }
    }
}

/// What stands before a row.
fn prompt(row: usize, theme: Theme) -> Span<'static> {
    if row == 0 { Span::styled(PROMPT, theme.style(Tone::Person)) } else { Span::raw(INDENT) }
}

fn tone(look: Look) -> Tone {
    match look {
        Look::Text => Tone::Plain,
        Look::Pasted => Tone::Strong,
        Look::Hidden => Tone::Dim,
    }
}

/// What is searched, and the column behind it.
fn search_row(search: &Search, width: usize, theme: Theme) -> (Line<'static>, usize) {
    let label = if width >= 40 { "  search back: " } else { "? " };
    let note = if search.failed && width >= 40 { "  (nothing found)" } else { "" };
    let room = width.saturating_sub(label.width() + note.width() + 1).max(1);
    let words = tail(&masked(&one_row(&search.words)), room);
    let column = label.width() + words.width();
    let tone = if search.failed { Tone::Bad } else { Tone::Plain };
    let line = Line::from(vec![
        Span::styled(label, theme.style(Tone::Dim)),
        Span::styled(words, theme.style(tone)),
        Span::styled(note, theme.style(Tone::Dim)),
    ]);
    (line, column)
}

/// The candidates around the one that is chosen, and which of how many it is if they are not all there.
fn offer_rows(offers: &Offers, rows: usize, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let total = offers.left.len();
    let counts = total > rows && rows > 2;
    let count = if counts { rows - 1 } else { rows.min(total) };
    let first = offers.chosen.saturating_sub(count / 2).min(total - count);
    let room = width.saturating_sub(INDENT.len() + 1).max(1);
    let seen = || offers.left.iter().enumerate().skip(first).take(count);
    let widest = seen().map(|(_, one)| one_row(&one.text).width()).max().unwrap_or(0).min(room);
    let mut lines: Vec<Line<'static>> = seen()
        .map(|(at, one)| {
            let (text, about) = offer_row(one, widest, room);
            if at == offers.chosen {
                Line::from(Span::styled(format!("▸ {text}{about}"), theme.style(Tone::Chosen)))
            } else {
                let text = Span::styled(format!("{INDENT}{text}"), theme.style(Tone::Plain));
                Line::from(vec![text, Span::styled(about, theme.style(Tone::Dim))])
            }
        })
        .collect();
    if counts {
        let text = cut(&format!("{INDENT}{} of {total}", offers.chosen + 1), room);
        lines.push(Line::from(Span::styled(text, theme.style(Tone::Dim))));
    }
    lines
}

/// What a candidate says, and what it is if there is room for that.
fn offer_row(one: &Candidate, widest: usize, room: usize) -> (String, String) {
    const LEAST: usize = 8;
    let text = cut(&one_row(&one.text), room);
    let left = room.saturating_sub(widest + 2);
    if one.about.is_empty() || left < LEAST {
        return (text, String::new());
    }
    let pad = " ".repeat(widest.saturating_sub(text.width()) + 2);
    (text, pad + &cut(&one_row(&one.about), left))
}

/// A text on one row, with nothing in it that a terminal would obey.
fn one_row(text: &str) -> String {
    shown(text).replace('\n', "␊")
}

/// The text with the characters of a key as dots.
fn masked(text: &str) -> String {
    let hidden = secret::hidden(text.graphemes(true));
    let is_hidden = |at: &usize| hidden.iter().any(|range| range.contains(at));
    text.graphemes(true).enumerate().map(|(at, part)| if is_hidden(&at) { "•" } else { part }).collect()
}

/// The end of a text, as much of it as fits.
fn tail(text: &str, columns: usize) -> String {
    let mut used = 0;
    let mut from = text.len();
    for (at, part) in text.grapheme_indices(true).rev() {
        used += part.width();
        if used > columns {
            break;
        }
        from = at;
    }
    text.get(from..).unwrap_or_default().to_owned()
}

fn small(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
