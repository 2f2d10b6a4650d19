//! One text in full, to be scrolled and searched. It shows what it was given and knows nothing of where that
//! came from.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use convoke_view::FilePosition;

use crate::text::{Theme, Tone, text_columns};

use super::list::Move;
use super::paint::{self, RowWriter, narrow};
use super::wrap;

/// What a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The entry of this number of the page that is looked at; it may still grow.
    Entry(usize),
    /// The question of this number.
    Question(u64),
    /// Something that stays as it is.
    Other,
}

/// One text in full.
#[derive(Debug)]
pub(super) struct Pager {
    pub(super) subject: Subject,
    pub(super) places: Vec<FilePosition>,
    title: String,
    body: String,
    needle: String,
    /// The lines in which the needle stands, by the byte they begin at, and which of them is looked at.
    hits: Vec<usize>,
    hit: usize,
    top: usize,
    width: usize,
    height: usize,
    rows: Vec<Range<usize>>,
    /// Up to which byte all of it has been on the screen.
    seen: usize,
}

impl Pager {
    pub(super) fn new(subject: Subject, title: &str, body: String, places: Vec<FilePosition>) -> Self {
        let needle = String::new();
        let hits = Vec::new();
        let rows = Vec::new();
        let title = title.to_owned();
        // Where there is nothing more, the title is all there is.
        let body = if body.trim().is_empty() { title.clone() } else { body };
        Self {
            subject,
            places,
            title,
            body,
            needle,
            hits,
            hit: 0,
            top: 0,
            width: 0,
            height: 0,
            rows,
            seen: 0,
        }
    }

    /// The text has changed: a command has put out more. A pager that showed the end goes on showing it.
    pub(super) fn update(&mut self, body: &str) {
        if self.body == body {
            return;
        }
        let was_at_end = self.is_at_end();
        self.body = body.to_owned();
        self.seen = 0;
        self.rows = wrap::rows(&self.body, self.width);
        self.hits = hits(&self.body, &self.needle);
        if was_at_end {
            self.top = self.last_top();
        }
    }

    pub(super) fn scroll(&mut self, way: Move) {
        let last = self.last_top();
        self.top = way.from(self.top.min(last), last + 1, self.height);
    }

    /// Whether the last row is on the screen.
    pub(super) fn is_at_end(&self) -> bool {
        self.top >= self.last_top()
    }

    /// Whether every row of it has been on the screen: jumping to the end is not reading.
    pub(super) fn is_seen(&self) -> bool {
        self.rows.last().is_some_and(|row| row.end <= self.seen)
    }

    /// Looks for a text from where one is; says whether it is there at all.
    pub(super) fn search(&mut self, needle: &str) -> bool {
        needle.to_lowercase().clone_into(&mut self.needle);
        self.hits = hits(&self.body, &self.needle);
        let here = self.rows.get(self.top).map_or(0, |row| row.start);
        self.hit = self.hits.partition_point(|line| *line < here);
        if self.hit == self.hits.len() {
            self.hit = 0;
        }
        self.go_to_hit();
        !self.hits.is_empty()
    }

    /// Whether a text is looked for.
    pub(super) fn is_searched(&self) -> bool {
        !self.needle.is_empty()
    }

    /// Goes to the next place with the text, or to the one before, around the end.
    pub(super) fn next_hit(&mut self, backwards: bool) -> bool {
        let all = self.hits.len();
        if all > 0 {
            self.hit = if backwards { (self.hit + all - 1) % all } else { (self.hit + 1) % all };
            self.go_to_hit();
        }
        all > 0
    }

    /// Draws itself: a row with the title and the place in the text, and the text.
    pub(super) fn draw(&mut self, buffer: &mut Buffer, area: Rect, theme: Theme) {
        let head = u16::from(area.height >= 3);
        let below = Rect { y: area.y + head, height: area.height - head, ..area };
        // The scroll bar takes its room always, so that a text that grows is not broken anew.
        let width = usize::from(area.width).saturating_sub(if area.width >= 12 { 2 } else { 0 }).max(1);
        self.height = usize::from(below.height);
        if self.width != width {
            let here = self.rows.get(self.top).map_or(0, |row| row.start);
            self.width = width;
            self.rows = wrap::rows(&self.body, width);
            self.top = self.rows.partition_point(|row| row.start < here);
            self.go_to_hit();
        }
        self.top = self.top.min(self.last_top());
        let shown = self.rows.iter().skip(self.top).take(self.height);
        if let (Some(first), Some(last)) = (shown.clone().next(), shown.clone().next_back())
            && (self.top == 0 || first.start <= self.seen + 1)
        {
            self.seen = self.seen.max(last.end);
        }
        if head > 0 {
            self.draw_head(buffer, area, theme);
        }
        paint::scroll_bar(buffer, below, self.rows.len(), self.top, theme);
        let current = self.hit_row();
        for (at, range) in self.rows.iter().enumerate().skip(self.top).take(self.height) {
            let text = self.body[range.clone()].trim_end_matches(' ');
            let row = narrow(at - self.top);
            let inner = Rect { width: narrow(self.width), ..below };
            RowWriter::at(buffer, inner, row, theme).put(text, Tone::Plain);
            if current == Some(at) {
                paint::choose(buffer, inner, row, theme);
            } else if let Some((before, length)) = find(text, &self.needle) {
                let spot =
                    Rect { x: inner.x + narrow(before), y: inner.y + row, width: narrow(length), height: 1 };
                buffer.set_style(spot.intersection(inner), paint::found(theme));
            }
        }
    }

    fn draw_head(&self, buffer: &mut Buffer, area: Rect, theme: Theme) {
        let last = (self.top + self.height).min(self.rows.len());
        let mut place = format!("{}-{last} of {}", (self.top + 1).min(last), self.rows.len());
        if !self.needle.is_empty() {
            let hit = if self.hits.is_empty() { 0 } else { self.hit + 1 };
            place = format!("/{} {hit} of {} · {place}", self.needle, self.hits.len());
        }
        let room = usize::from(area.width);
        let right = text_columns(&place).min(room.saturating_sub(10));
        RowWriter::at(buffer, area, 0, theme)
            .field(&self.title, room.saturating_sub(right + 1), Tone::Strong)
            .right(&place, right, Tone::Dim);
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    fn go_to_hit(&mut self) {
        if let Some(row) = self.hit_row() {
            // A little of what stands before is worth seeing.
            self.top = row.saturating_sub(self.height / 4).min(self.last_top());
        }
    }

    /// The row of the screen in which the hit that is looked at stands.
    fn hit_row(&self) -> Option<usize> {
        let line = *self.hits.get(self.hit)?;
        let first = self.rows.partition_point(|row| row.start < line);
        let end = line + self.body[line..].find('\n').unwrap_or(self.body.len() - line);
        let rows = self.rows.iter().enumerate().skip(first).take_while(|(_, row)| row.start <= end);
        let has_it = |row: &Range<usize>| self.body[row.clone()].to_lowercase().contains(&self.needle);
        Some(rows.clone().find(|(_, row)| has_it(row)).map_or(first, |(at, _)| at))
    }
}

/// The lines in which a text stands, by where they begin.
fn hits(body: &str, needle: &str) -> Vec<usize> {
    if needle.is_empty() {
        return Vec::new();
    }
    let mut start = 0;
    let mut hits = Vec::new();
    for line in body.split_inclusive('\n') {
        if line.to_lowercase().contains(needle) {
            hits.push(start);
        }
        start += line.len();
    }
    hits
}

/// Where a text stands in a row: how many columns are before it, and how many it takes.
fn find(row: &str, needle: &str) -> Option<(usize, usize)> {
    let lower = row.to_lowercase();
    let at = if needle.is_empty() { None } else { lower.find(needle) }?;
    // Letters that take another number of bytes in lower case move what follows; then the whole row is meant.
    let is_same =
        lower.len() == row.len() && row.is_char_boundary(at) && row.is_char_boundary(at + needle.len());
    Some(match is_same {
        true => (text_columns(&row[..at]), text_columns(&row[at..at + needle.len()])),
        false => (0, text_columns(row)),
    })
}
