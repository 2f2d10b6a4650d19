//! Tables for people: as wide as they need to be and no wider than the terminal. Text from outside is
//! cleaned.

use crate::render::{clean, text_columns};

/// What happens to a column when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// It stays as it is.
    Kept,
    /// It is left out; those with a lower number go first.
    Dropped(u8),
    /// It takes what the others leave and is cut there. Only the last column can be.
    Cut,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    title: &'static str,
    fit: Fit,
    right: bool,
}

impl Column {
    /// A column that is never left out.
    pub(crate) fn kept(title: &'static str) -> Self {
        Self { title, fit: Fit::Kept, right: false }
    }

    /// A column that is left out when there is no room, lower numbers first.
    pub(crate) fn dropped(title: &'static str, order: u8) -> Self {
        Self { title, fit: Fit::Dropped(order), right: false }
    }

    /// The last column, which is cut when there is no room.
    pub(crate) fn cut(title: &'static str) -> Self {
        Self { title, fit: Fit::Cut, right: false }
    }

    /// The same column, for numbers.
    pub(crate) fn right(self) -> Self {
        Self { right: true, ..self }
    }
}

/// Columns between two cells.
const GAP: usize = 2;
/// A cut column shorter than this says nothing; another column goes first.
const LEAST_CUT: usize = 12;

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        let titles = columns.iter().map(|column| column.title.to_owned()).collect();
        Self { columns, rows: vec![titles] }
    }

    /// Adds a row, one cell per column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        let one_line = |cell: &String| clean(cell).split_whitespace().collect::<Vec<_>>().join(" ");
        self.rows.push(cells.iter().map(one_line).collect());
    }

    /// The table's text, at most this many columns wide.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let widths: Vec<usize> = (0..self.columns.len()).map(|index| self.natural(index)).collect();
        let shown = self.shown(&widths, width);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (place, &index) in shown.iter().enumerate() {
                let cell = row.get(index).map(String::as_str).unwrap_or_default();
                let last = place + 1 == shown.len();
                let room = width.map_or(usize::MAX, |width| width.saturating_sub(text_columns(&line)));
                let cell = shorten(cell, if last { room } else { usize::MAX });
                let pad = widths[index].saturating_sub(text_columns(&cell));
                match (self.columns[index].right, last) {
                    (true, _) => line.push_str(&format!("{}{cell}", " ".repeat(pad))),
                    (false, true) => line.push_str(&cell),
                    (false, false) => line.push_str(&format!("{cell}{}", " ".repeat(pad))),
                }
                if !last {
                    line.push_str(&" ".repeat(GAP));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The width a column would like to have.
    fn natural(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(index));
        cells.map(|cell| text_columns(cell)).max().unwrap_or_default()
    }

    /// The columns for which there is room.
    fn shown(&self, widths: &[usize], width: Option<usize>) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let Some(width) = width else { return shown };
        let least = |index: &usize| match self.columns[*index].fit {
            Fit::Cut => widths[*index].min(LEAST_CUT),
            Fit::Kept | Fit::Dropped(_) => widths[*index],
        };
        while shown.iter().map(least).sum::<usize>() + GAP * shown.len().saturating_sub(1) > width {
            let order = |index: &usize| match self.columns[*index].fit {
                Fit::Dropped(order) => Some((order, *index)),
                Fit::Kept | Fit::Cut => None,
            };
            let Some((_, first)) = shown.iter().filter_map(order).min() else { break };
            shown.retain(|index| *index != first);
        }
        shown
    }
}

/// The beginning of a text, with a mark where it was cut.
fn shorten(text: &str, room: usize) -> String {
    if text_columns(text) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if text_columns(&short) + text_columns(c.encode_utf8(&mut [0; 4])) + 1 > room {
            break;
        }
        short.push(c);
    }
    if room > 0 { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(width: Option<usize>, expected: &str) {
        let columns = vec![Column::kept("ID"), Column::dropped("N", 0).right(), Column::cut("TASK")];
        let mut table = Table::new(columns);
        table.row(vec!["s_one".into(), "12345".into(), "say \u{1b}[31mhello\nto everybody".into()]);
        assert_eq!(table.render(width), expected);
    }

    #[test]
    fn a_table_fits_its_width() {
        check(None, "ID         N  TASK\ns_one  12345  say hello to everybody\n");
        check(Some(30), "ID         N  TASK\ns_one  12345  say hello to ev…\n");
        check(Some(24), "ID     TASK\ns_one  say hello to eve…\n");
    }
}
