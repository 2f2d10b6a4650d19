//! Questions to the person: one row each, and all of one with nothing in it hidden. What is wanted is written
//! out, whatever it consists of, because the person is to agree to it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::screen_update::{About, Asking};
use crate::text::{Theme, Tone, revealed};

use super::paint::{RowWriter, narrow};
use super::wrap;

/// What is said where there is none.
pub(super) const NONE: &str =
    "No questions. What an agent or a program asks you stands here until you answer it.";

/// Below this width a character may not fit at all, so nothing counts as seen.
pub(super) const LEAST_WIDTH: u16 = 12;

/// Draws a question.
pub(super) fn draw(writer: &mut RowWriter<'_>, row: &Asking) {
    let width = writer.room();
    writer.field("?", 1, Tone::Warn);
    let who = revealed(&row.who).replace('\n', "⏎");
    let wanted = revealed(&row.wanted).replace('\n', "⏎");
    writer.field(&who, (width / 4).clamp(1, 20), Tone::Strong).put(&wanted, Tone::Plain);
}

/// All of a question.
pub(super) fn whole(row: &Asking) -> String {
    let mut text = format!("{} asks\n\n{}", revealed(&row.who), revealed(&row.wanted));
    if !row.why.is_empty() {
        text.push_str(&format!("\n\nWhy: {}", revealed(&row.why)));
    }
    if !row.details.is_empty() {
        text.push_str("\n\nIt would start:");
        for line in &row.details {
            text.push_str(&format!("\n  {}", revealed(line)));
        }
    }
    if let About::Call { always: Some(always) } = &row.about {
        text.push_str(&format!("\n\nAlways means: {}", revealed(always)));
    }
    text
}

/// Draws all of a question, or its beginning. Says whether that was all.
pub(super) fn draw_whole(buffer: &mut Buffer, area: Rect, row: &Asking, theme: Theme) -> bool {
    let text = whole(row);
    let rows = wrap::rows(&text, usize::from(area.width));
    let height = usize::from(area.height);
    let is_whole = rows.len() <= height && area.width >= LEAST_WIDTH;
    let drawn = if is_whole { rows.len() } else { height.saturating_sub(1) };
    for (at, range) in rows.iter().take(drawn).enumerate() {
        let tone = if at == 0 { Tone::Strong } else { Tone::Plain };
        RowWriter::at(buffer, area, narrow(at), theme).put(text[range.clone()].trim_end_matches(' '), tone);
    }
    if !is_whole {
        let more = format!("… {} more rows: Enter shows all of it", rows.len().saturating_sub(drawn));
        RowWriter::at(buffer, area, narrow(drawn), theme).put(&more, Tone::Warn);
    }
    is_whole
}
