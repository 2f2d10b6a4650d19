//! Writing on a buffer: rows from left to right, columns that begin where they are meant to, scroll bars and
//! frames. Every text is measured as the terminal measures it and cut with a mark, so that nothing leaves its
//! place and no wide character is torn.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{
    Block, BorderType, Scrollbar, ScrollbarOrientation, ScrollbarState, StatefulWidget, Widget,
};

use crate::text::{Theme, Tone, cut, text_columns};

/// A row that is written from left to right and never beyond its end.
pub(super) struct RowWriter<'a> {
    buffer: &'a mut Buffer,
    x: u16,
    y: u16,
    end: u16,
    theme: Theme,
}

impl<'a> RowWriter<'a> {
    /// At the beginning of a row of this area, counted from its top. A row that is not there takes nothing.
    pub(super) fn at(buffer: &'a mut Buffer, area: Rect, row: u16, theme: Theme) -> Self {
        let area = area.intersection(buffer.area);
        let end = if row < area.height { area.right() } else { area.x };
        Self { buffer, x: area.x, y: area.y.saturating_add(row), end, theme }
    }

    /// How many columns are left.
    pub(super) fn room(&self) -> usize {
        usize::from(self.end.saturating_sub(self.x))
    }

    /// Writes as much as there is room for.
    pub(super) fn put(&mut self, text: &str, tone: Tone) -> &mut Self {
        let room = self.room();
        self.write(text, room, tone)
    }

    /// Writes within so many columns; the next thing stands behind them and a blank.
    pub(super) fn field(&mut self, text: &str, width: usize, tone: Tone) -> &mut Self {
        let end = self.x.saturating_add(narrow(width)).saturating_add(1).min(self.end);
        let width = width.min(self.room());
        self.write(text, width, tone);
        self.x = end;
        self
    }

    /// Writes at the right end of so many columns; the next thing stands behind them and a blank.
    pub(super) fn right(&mut self, text: &str, width: usize, tone: Tone) -> &mut Self {
        let width = width.min(self.room());
        let end = self.x.saturating_add(narrow(width)).saturating_add(1).min(self.end);
        let fitted = cut(text, width);
        self.skip(width.saturating_sub(text_columns(&fitted)));
        self.write(&fitted, width, tone);
        self.x = end;
        self
    }

    /// Leaves columns blank.
    pub(super) fn skip(&mut self, width: usize) -> &mut Self {
        self.x = self.x.saturating_add(narrow(width)).min(self.end);
        self
    }

    /// Where the next thing would stand.
    pub(super) fn position(&self) -> (u16, u16) {
        (self.x, self.y)
    }

    fn write(&mut self, text: &str, width: usize, tone: Tone) -> &mut Self {
        if width > 0 && self.x < self.end {
            let style = self.theme.style(tone);
            (self.x, _) = self.buffer.set_stringn(self.x, self.y, cut(text, width), width, style);
        }
        self
    }
}

/// A number of columns for the buffer, which counts with fewer bits.
pub(super) fn narrow(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

/// Makes a whole row look chosen: in one colour, whatever its parts had.
pub(super) fn choose(buffer: &mut Buffer, area: Rect, row: u16, theme: Theme) {
    let row = Rect { y: area.y.saturating_add(row), height: 1, ..area }.intersection(area);
    buffer.set_style(row, Style::reset());
    buffer.set_style(row, theme.style(Tone::Chosen));
}

/// A frame with a title; a thick one where the keys go. Returns what is inside.
pub(super) fn frame(buffer: &mut Buffer, area: Rect, title: &str, has_keys: bool, theme: Theme) -> Rect {
    let (kind, border, heading) = match has_keys {
        true => (BorderType::Thick, Tone::Plain, Tone::Strong),
        false => (BorderType::Plain, Tone::Dim, Tone::Plain),
    };
    let room = usize::from(area.width).saturating_sub(4);
    let title = Line::styled(format!(" {} ", cut(title, room)), theme.style(heading));
    let block = Block::bordered().border_type(kind).border_style(theme.style(border)).title(title);
    let inner = block.inner(area);
    block.render(area, buffer);
    inner
}

/// A bar at the right edge that says where one is, if not everything is seen. Returns the area that is left
/// beside it.
pub(super) fn scroll_bar(buffer: &mut Buffer, area: Rect, all: usize, top: usize, theme: Theme) -> Rect {
    let height = usize::from(area.height);
    if all <= height || area.width < 12 || height < 2 {
        return area;
    }
    let mut state =
        ScrollbarState::new(all.saturating_sub(height) + 1).position(top).viewport_content_length(height);
    Scrollbar::new(ScrollbarOrientation::VerticalRight)
        .begin_symbol(None)
        .end_symbol(None)
        .track_symbol(Some("│"))
        .thumb_symbol("█")
        .style(theme.style(Tone::Dim))
        .render(area, buffer, &mut state);
    Rect { width: area.width.saturating_sub(2), ..area }
}

/// Says what would be here, where nothing is.
pub(super) fn say_empty(buffer: &mut Buffer, area: Rect, text: &str, theme: Theme) {
    let width = usize::from(area.width).saturating_sub(2);
    let rows = super::wrap::rows(text, width.max(1));
    for (row, range) in rows.iter().take(usize::from(area.height)).enumerate() {
        RowWriter::at(buffer, area, narrow(row), theme)
            .skip(2)
            .put(text[range.clone()].trim_end_matches(' '), Tone::Dim);
    }
}

/// How much of something is done, as a bar: done, failed, the rest.
pub(super) fn bar(width: usize, done: usize, failed: usize, total: usize) -> String {
    let share = |part: usize| if total == 0 { 0 } else { (part * width).checked_div(total).unwrap_or(0) };
    // Something that failed is seen, however small its share is.
    let bad = if failed > 0 { share(failed).max(1) } else { 0 }.min(width);
    let good = share(done).min(width - bad);
    format!("{}{}{}", "█".repeat(good), "▒".repeat(bad), "░".repeat(width - bad - good))
}

/// A time in one figure: `12 s`, `119 min`, `2 h`.
pub(super) fn short_time(time: Duration) -> String {
    match time.as_secs() {
        whole @ 0..60 => format!("{whole} s"),
        // `1 h` for an hour and fifty-nine minutes would be wrong by almost an hour.
        whole @ 60..7_200 => format!("{} min", whole / 60),
        whole => format!("{} h", whole / 3_600),
    }
}

/// Clears a part of the buffer before it is drawn again.
pub(super) fn clear(buffer: &mut Buffer, area: Rect) {
    for position in area.intersection(buffer.area).positions() {
        buffer[position].reset();
    }
}

/// The style of a part of a text that was looked for.
pub(super) fn found(theme: Theme) -> Style {
    theme.style(Tone::Warn)
}
