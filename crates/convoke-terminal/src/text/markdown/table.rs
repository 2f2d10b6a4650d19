//! Tables: columns as wide as they need to be, narrower ones where there is not enough room, and where there
//! is far too little, one cell below the other. Every cell is drawn whole.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use super::super::flow::{flow, hung};
use super::super::measure::text_columns;
use super::super::theme::{Theme, Tone};

/// A column that is narrower than this, and needs more, is not worth reading.
const LEAST: usize = 8;

/// What a cell says.
type Cell = Vec<Span<'static>>;

/// A table under construction; its first row is its head.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// The table as rows of at most this width.
    pub(super) fn lines(mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        for span in self.rows.first_mut().into_iter().flatten().flatten() {
            span.style = span.style.patch(theme.style(Tone::Strong));
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let natural: Vec<usize> = (0..columns).map(|column| self.natural(column)).collect();
        let between = 3 * columns.saturating_sub(1);
        match width.checked_sub(between).and_then(|room| fitted(&natural, room)) {
            Some(widths) => self.side_by_side(&widths, theme),
            None => self.one_below_the_other(width, theme),
        }
    }

    /// The columns that the widest line of any cell of a column takes.
    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| text_of(cell).split('\n').map(text_columns).max().unwrap_or(0))
            .max()
            .unwrap_or(0)
            .max(1)
    }

    fn side_by_side(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let dim = theme.style(Tone::Dim);
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let empty = Vec::new();
            let cells = widths
                .iter()
                .enumerate()
                .map(|(column, width)| flow(row.get(column).unwrap_or(&empty), *width));
            let cells: Vec<Vec<Line<'static>>> = cells.collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let mut spans = Vec::new();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        spans.push(Span::styled(" │ ", dim));
                    }
                    let said = cell.get(at).map(|line| line.spans.clone()).unwrap_or_default();
                    let blank =
                        width.saturating_sub(said.iter().map(|span| text_columns(&span.content)).sum());
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => blank,
                        Some(Alignment::Center) => blank / 2,
                        Some(Alignment::Left | Alignment::None) | None => 0,
                    };
                    let is_last = column + 1 == widths.len();
                    let after = if is_last { 0 } else { blank - before };
                    let pad = |many: usize| (many > 0).then(|| Span::raw(" ".repeat(many)));
                    spans.extend(pad(before));
                    spans.extend(said);
                    spans.extend(pad(after));
                }
                lines.push(Line::from(spans));
            }
            if number == 0 {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                lines.push(Line::from(Span::styled(rule, dim)));
            }
        }
        lines
    }

    fn one_below_the_other(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let Some((head, body)) = self.rows.split_first() else { return Vec::new() };
        let none = Span::raw("");
        let indent = Span::raw("  ");
        let mut lines = Vec::new();
        if body.is_empty() {
            lines.extend(head.iter().flat_map(|cell| hung(cell, width, &none, &indent)));
        }
        for (number, row) in body.iter().enumerate() {
            if number > 0 {
                lines.push(Line::from(Span::styled("─".repeat(width.min(3)), theme.style(Tone::Dim))));
            }
            for (column, cell) in row.iter().enumerate() {
                let mut said = head.get(column).cloned().unwrap_or_default();
                said.push(Span::raw(": "));
                said.extend(cell.iter().cloned());
                lines.extend(hung(&said, width, &none, &indent));
            }
        }
        lines
    }
}

fn text_of(cell: &Cell) -> String {
    cell.iter().map(|span| span.content.as_ref()).collect()
}

/// How wide the columns are in this much room: as wide as they need to be, or the widest of them equally
/// less. `None` if that leaves too little to read.
fn fitted(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    if natural.iter().sum::<usize>() <= room {
        return Some(natural.to_vec());
    }
    let taken = |cap: usize| natural.iter().map(|width| (*width).min(cap)).sum::<usize>();
    let cap = (LEAST..=room).take_while(|cap| taken(*cap) <= room).last()?;
    let mut left = room - taken(cap);
    let widths = natural.iter().map(|width| {
        let more = usize::from(*width > cap && left > 0);
        left -= more;
        (*width).min(cap) + more
    });
    Some(widths.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_get_what_they_need_or_the_widest_equally_less() {
        let check = |natural: &[usize], room: usize, expected: Option<&[usize]>| {
            assert_eq!(fitted(natural, room).as_deref(), expected, "{natural:?} in {room}");
        };
        check(&[3, 4], 10, Some(&[3, 4]));
        check(&[3, 40], 20, Some(&[3, 17]));
        check(&[30, 40, 2], 31, Some(&[15, 14, 2]));
        check(&[30, 40], 15, None);
        check(&[], 5, Some(&[]));
    }
}
