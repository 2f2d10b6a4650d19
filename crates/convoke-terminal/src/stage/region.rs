//! What stands at the bottom of the terminal, and the bytes that change it: from where the cursor is, upwards
//! and downwards, never to an absolute place, because the row of the screen in which the region begins is not
//! known. It writes nothing itself.

use ratatui::text::Line;

use super::painter::{Row, row};
use super::{CLEAR_FROM_HERE, Region, WRAP_OFF, WRAP_ON};

/// The rows at the bottom as they were drawn, and where the cursor stands in them.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    rows: Vec<Row>,
    /// Column and row.
    at: (u16, u16),
    /// How wide the terminal was.
    columns: u16,
}

/// Rows that are to be drawn, and where the cursor is to stand in them.
#[derive(Debug, Default)]
pub(super) struct Fitted {
    rows: Vec<Row>,
    at: (u16, u16),
}

/// The region as it fits a terminal: the rows at its end, and the cursor's row in any case.
pub(super) fn fitted(region: &Region, (columns, height): (u16, u16)) -> Fitted {
    let most = usize::from(height.max(1));
    let last = u16::try_from(region.lines.len().saturating_sub(1)).unwrap_or(u16::MAX);
    let row_of_cursor = region.cursor.1.min(last);
    let first = region.lines.len().saturating_sub(most).min(usize::from(row_of_cursor));
    let lines: &[Line<'static>] = region.lines.get(first..).unwrap_or_default();
    let rows = lines.iter().take(most).map(|line| row(line, columns)).collect();
    let column = region.cursor.0.min(columns.saturating_sub(1));
    Fitted { rows, at: (column, row_of_cursor - u16::try_from(first).unwrap_or(row_of_cursor)) }
}

impl Drawn {
    /// How many rows are above the cursor.
    pub(super) fn above(&self) -> u16 {
        self.at.1
    }

    /// How wide the terminal was when this was drawn.
    pub(super) fn columns(&self) -> u16 {
        self.columns
    }

    /// Prints rows for good in place of the first rows of the region, and the region below them. If nothing
    /// is printed, rows that are on the screen already are passed over, and if nothing changes, nothing is
    /// written.
    pub(super) fn change(&mut self, printed: &[Row], wanted: Fitted, columns: u16, out: &mut Vec<u8>) {
        let wanted_rows = if wanted.rows.is_empty() { vec![Row::default()] } else { wanted.rows };
        if printed.is_empty() && self.rows == wanted_rows && self.at == wanted.at && self.columns == columns {
            return;
        }
        let there = self.rows.len().max(1);
        let all = printed.len() + wanted_rows.len();
        // Below printed rows everything is written anew: a terminal that finds one of them wider than we do
        // has moved the rest down.
        let is_new = !printed.is_empty() || self.columns != columns;
        let before = |number: usize| if is_new { None } else { self.rows.get(number) };
        let mut mover = Mover { row: usize::from(self.at.1), there, out };
        for (number, row) in printed.iter().enumerate() {
            mover.go(number);
            mover.put(row, None);
        }
        mover.out.extend_from_slice(WRAP_OFF);
        for (number, row) in (printed.len()..).zip(&wanted_rows) {
            if before(number) != Some(row) {
                mover.go(number);
                mover.put(row, before(number));
            }
        }
        mover.out.extend_from_slice(WRAP_ON);
        if there > all {
            mover.go(all);
            mover.out.extend_from_slice(b"\r\x1b[J");
        }
        mover.go(printed.len() + usize::from(wanted.at.1));
        mover.out.push(b'\r');
        if wanted.at.0 > 0 {
            mover.out.extend_from_slice(format!("\x1b[{}C", wanted.at.0).as_bytes());
        }
        *self = Self { rows: wanted_rows, at: wanted.at, columns };
    }

    /// Takes the region away: the cursor stands at the beginning of the row where it began.
    pub(super) fn erase(&mut self, out: &mut Vec<u8>) {
        up(self.at.1, out);
        out.extend_from_slice(CLEAR_FROM_HERE);
        *self = Self { columns: self.columns, ..Self::default() };
    }

    /// Takes the region away after the terminal has changed its width. A terminal that got narrower has
    /// broken the rows that do not fit any more, and the cursor has moved with its text. Where terminals
    /// differ, rather too few rows are taken away than one too many: what was printed for good stays.
    pub(super) fn erase_at(&mut self, columns: u16, out: &mut Vec<u8>) {
        let columns = columns.max(1);
        let taken = |width: u16| (width.max(1) - 1) / columns;
        let above =
            self.rows.iter().take(usize::from(self.at.1)).map(|row| taken(row.width) + 1).sum::<u16>();
        let own = self.rows.get(usize::from(self.at.1)).map_or(0, |row| row.width);
        let within = if self.at.0 < own { self.at.0 / columns } else { taken(own) };
        up(above + within, out);
        out.extend_from_slice(CLEAR_FROM_HERE);
        *self = Self { columns, ..Self::default() };
    }

    /// Nothing of the region is on the terminal any more.
    pub(super) fn forget(&mut self, columns: u16) {
        *self = Self { columns, ..Self::default() };
    }
}

fn up(rows: u16, out: &mut Vec<u8>) {
    if rows > 0 {
        out.extend_from_slice(format!("\x1b[{rows}A").as_bytes());
    }
}

/// Moves between the rows of the region and makes new ones below them.
struct Mover<'a> {
    row: usize,
    /// How many rows are on the screen: below the last one a line break makes room.
    there: usize,
    out: &'a mut Vec<u8>,
}

impl Mover<'_> {
    fn go(&mut self, row: usize) {
        if row < self.row {
            self.out.extend_from_slice(format!("\x1b[{}A", self.row - row).as_bytes());
        }
        let down = row.min(self.there - 1).saturating_sub(self.row);
        if down > 0 {
            self.out.extend_from_slice(format!("\x1b[{down}B").as_bytes());
        }
        self.row = if row < self.row { row } else { self.row + down };
        while self.row < row {
            self.out.extend_from_slice(b"\r\n");
            self.row += 1;
            self.there = self.there.max(self.row + 1);
        }
    }

    /// Writes a row over another. What the other leaves is erased from the first column, before and not
    /// after: terminals that break long rows when they get narrower count erased columns as long as not the
    /// whole row was erased.
    fn put(&mut self, row: &Row, over: Option<&Row>) {
        self.out.push(b'\r');
        if over.is_none_or(|over| over.width > row.width) {
            self.out.extend_from_slice(b"\x1b[K");
        }
        self.out.extend_from_slice(&row.bytes);
    }
}
