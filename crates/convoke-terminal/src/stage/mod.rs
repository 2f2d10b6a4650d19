//! The terminal itself: raw keys, a region at its bottom that moves while everything above it stays, the
//! whole screen for the fleet, and the way back to what was before, whatever happens to this process.
//!
//! What is done in one call is one write, within an update that terminals show at once if they can. Nothing
//! here reads keys.

mod guard;
mod hold;
mod painter;
mod region;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::{Command, ExitStatus};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

pub use guard::{GUARD_ARGUMENT, guard_entry};
pub(crate) use painter::{harmless, pieces, row};

use hold::{Hold, Picture};
use painter::Row;
use region::Drawn;

const SYNC_ON: &[u8] = b"\x1b[?2026h";
const SYNC_OFF: &[u8] = b"\x1b[?2026l";
const HIDE_CURSOR: &[u8] = b"\x1b[?25l";
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";
const WRAP_ON: &[u8] = b"\x1b[?7h";
const WRAP_OFF: &[u8] = b"\x1b[?7l";
const ENTER_WHOLE: &[u8] = b"\x1b[?1049h";
const LEAVE_WHOLE: &[u8] = b"\x1b[?1049l";
const CLEAR_SCREEN: &[u8] = b"\x1b[0m\x1b[2J";
/// Clears this row and everything below it. Not in one sequence: from the first row of the screen some
/// terminals keep in their scrollback what that clears.
const CLEAR_FROM_HERE: &[u8] = b"\r\x1b[K\x1b7\x1b[B\x1b[J\x1b8";

/// What the bottom of the terminal shows while the session talks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Region {
    pub(crate) lines: Vec<Line<'static>>,
    /// Where the cursor stands in them: column and row.
    pub(crate) cursor: (u16, u16),
}

/// A terminal that is ours for a while. Dropping it gives it back.
pub(crate) struct Stage<W: Write> {
    out: W,
    size: (u16, u16),
    drawn: Drawn,
    wanted: Region,
    /// What was printed while the whole screen was drawn on.
    waiting: Vec<Line<'static>>,
    whole: Option<Whole>,
    /// Only tests have none: they draw on no terminal.
    hold: Option<Hold>,
    is_over: bool,
}

/// What the whole screen shows.
struct Whole {
    seen: Buffer,
    cursor: Option<(u16, u16)>,
    /// Whether the screen has to be cleared first.
    is_stale: bool,
}

impl<W: Write> Stage<W> {
    /// Takes the terminal: raw keys, bracketed paste. `guarded`: a process beside this one gives it back if
    /// this one cannot.
    pub(crate) fn take(out: W, guarded: bool) -> io::Result<Self> {
        let hold = Hold::take(guarded)?;
        let mut stage = Self::on(out, (0, 0));
        stage.hold = Some(hold);
        stage.size = crossterm::terminal::size()?;
        let bytes = stage.begin();
        stage.write(&bytes)?;
        Ok(stage)
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Prints rows for good, above the region.
    pub(crate) fn print(&mut self, lines: &[Line<'_>]) -> io::Result<()> {
        self.waiting.extend(lines.iter().map(owned));
        self.inline()
    }

    /// Shows the region at the bottom; only what changed is written.
    pub(crate) fn region(&mut self, region: Region) -> io::Result<()> {
        self.wanted = region;
        self.inline()
    }

    /// Prints rows for good and shows the region below them, in one step: what moves from the region into
    /// what is printed is never seen twice.
    pub(crate) fn show(&mut self, lines: &[Line<'_>], region: Region) -> io::Result<()> {
        self.wanted = region;
        self.print(lines)
    }

    /// Draws on the whole screen: what is there now comes back with [`leave_whole`](Self::leave_whole). Only
    /// what changed is written.
    pub(crate) fn whole(
        &mut self,
        draw: impl FnOnce(Rect, &mut Buffer) -> Option<(u16, u16)>,
    ) -> io::Result<()> {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut wanted = Buffer::empty(area);
        let cursor = draw(area, &mut wanted);
        painter::disarm(&mut wanted);
        let mut bytes = Vec::new();
        if self.whole.is_none() {
            bytes.extend_from_slice(ENTER_WHOLE);
        }
        let before = self.whole.take().filter(|whole| !whole.is_stale && whole.seen.area == area);
        let (seen, cursor_before) = match before {
            Some(whole) => (whole.seen, Some(whole.cursor)),
            None => (Buffer::empty(area), None),
        };
        if cursor_before.is_none() {
            bytes.extend_from_slice(CLEAR_SCREEN);
        }
        painter::cells(&seen, &wanted, &mut bytes);
        let is_changed = !bytes.is_empty() || cursor_before != Some(cursor);
        self.whole = Some(Whole { seen: wanted, cursor, is_stale: false });
        if !is_changed {
            return Ok(());
        }
        self.shows(Picture::Whole);
        self.write_whole(&bytes, cursor)
    }

    /// Goes back to where the session talks.
    pub(crate) fn leave_whole(&mut self) -> io::Result<()> {
        if self.whole.take().is_none() {
            return Ok(());
        }
        let mut bytes = LEAVE_WHOLE.to_vec();
        self.change(&mut bytes);
        self.write_frame(&bytes)?;
        self.shows(Picture::Inline);
        Ok(())
    }

    /// The size has changed, or everything is to be drawn anew.
    pub(crate) fn resized(&mut self, columns: u16, rows: u16) -> io::Result<()> {
        // Sizes may come late, one after the other; what counts is how wide the terminal is now.
        self.size =
            self.hold.as_ref().and_then(|_| crossterm::terminal::size().ok()).unwrap_or((columns, rows));
        if let Some(whole) = &mut self.whole {
            whole.is_stale = true;
            return Ok(());
        }
        let mut bytes = Vec::new();
        self.drawn.erase_at(self.size.0, &mut bytes);
        self.change(&mut bytes);
        self.write_frame(&bytes)
    }

    /// Gives the terminal back for as long as `meanwhile` takes (an editor, a stop by Ctrl-Z), and takes it
    /// again.
    pub(crate) fn lend<T>(&mut self, meanwhile: impl FnOnce() -> T) -> io::Result<T> {
        self.lend_with(|_| meanwhile())
    }

    /// Gives the terminal to a program until that has ended, and takes it again.
    pub(crate) fn lend_to(&mut self, program: &mut Command) -> io::Result<io::Result<ExitStatus>> {
        self.lend_with(|hold| {
            let mut child = program.spawn()?;
            if let Some(hold) = hold {
                hold.lent_to(Some(child.id()));
                let status = child.wait();
                hold.lent_to(None);
                return status;
            }
            child.wait()
        })
    }

    fn lend_with<T>(&mut self, meanwhile: impl FnOnce(Option<&mut Hold>) -> T) -> io::Result<T> {
        let whole = self.whole.take();
        let mut bytes = if whole.is_some() { LEAVE_WHOLE.to_vec() } else { Vec::new() };
        self.end(&mut bytes);
        self.write(&bytes)?;
        if let Some(hold) = &mut self.hold {
            hold.pause()?;
        }
        let came_of_it = meanwhile(self.hold.as_mut());
        if let Some(hold) = &mut self.hold {
            hold.resume()?;
            self.size = crossterm::terminal::size()?;
        }
        let bytes = self.begin();
        self.write(&bytes)?;
        self.inline()?;
        match whole {
            Some(whole) if (whole.seen.area.width, whole.seen.area.height) == self.size => {
                let cursor = whole.cursor;
                self.whole(|_, buffer| {
                    *buffer = whole.seen;
                    cursor
                })?;
            }
            // The size has changed: the program that draws is told of it, and draws again.
            Some(_) => self.whole(|_, _| None)?,
            None => {}
        }
        Ok(came_of_it)
    }

    /// Stops this process as Ctrl-Z does, and goes on where it was when it is continued.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.lend(hold::stop_here)?
    }

    /// Gives the terminal back for good: the region is gone, everything printed stays.
    pub(crate) fn give_back(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        let is_shown = self.hold.as_ref().is_none_or(Hold::is_held);
        let mut bytes = if self.whole.take().is_some() { LEAVE_WHOLE.to_vec() } else { Vec::new() };
        self.wanted = Region::default();
        if !self.waiting.is_empty() || self.hold.as_ref().is_some_and(Hold::has_said) {
            self.change(&mut bytes);
        }
        self.end(&mut bytes);
        let written = if is_shown { self.write(&bytes) } else { Ok(()) };
        let released = self.hold.as_mut().map_or(Ok(()), Hold::release);
        written.and(released)
    }

    /// A stage of this size that is no terminal.
    fn on(out: W, size: (u16, u16)) -> Self {
        let drawn = Drawn::default();
        let wanted = Region::default();
        Self { out, size, drawn, wanted, waiting: Vec::new(), whole: None, hold: None, is_over: false }
    }

    /// Brings the rows at the bottom up to date, if they can be seen.
    fn inline(&mut self) -> io::Result<()> {
        if self.whole.is_some() || self.is_over {
            return Ok(());
        }
        let mut bytes = Vec::new();
        self.change(&mut bytes);
        self.write_frame(&bytes)
    }

    /// What brings the rows at the bottom up to date.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        let (columns, _) = self.size;
        if self.drawn.columns() != columns {
            self.drawn.erase_at(columns, bytes);
        }
        let said = self.hold.as_ref().map(Hold::said).unwrap_or_default();
        let lines = self.waiting.drain(..).chain(said.into_iter().map(Line::from));
        let printed: Vec<Row> = lines.flat_map(|line| painter::rows(&line, columns)).collect();
        self.drawn.change(&printed, region::fitted(&self.wanted, self.size), columns, bytes);
        if let Some(hold) = &self.hold {
            hold.stands_below(self.drawn.above());
        }
    }

    /// What is written when the terminal was taken. If something stands in the row already, this begins a new
    /// one: as many blanks as nearly fill a row reach the next one only from there.
    fn begin(&mut self) -> Vec<u8> {
        let (columns, _) = self.size;
        self.drawn.forget(columns);
        let blanks = vec![b' '; usize::from(columns.saturating_sub(1))];
        [PASTE_ON, &blanks, b"\r\x1b[K"].concat()
    }

    /// What is written before the terminal is given back.
    fn end(&mut self, bytes: &mut Vec<u8>) {
        if self.drawn.columns() == self.size.0 {
            self.drawn.erase(bytes);
        } else {
            self.drawn.erase_at(self.size.0, bytes);
        }
        bytes.extend_from_slice(&[b"\x1b[0m", WRAP_ON, PASTE_OFF, SHOW_CURSOR].concat());
    }

    fn shows(&mut self, picture: Picture) {
        self.hold.iter_mut().for_each(|hold| hold.shows(picture));
    }

    /// Writes what changes the rows at the bottom.
    fn write_frame(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes.is_empty() {
            true => Ok(()),
            false => self.write(&[SYNC_ON, HIDE_CURSOR, bytes, SHOW_CURSOR, SYNC_OFF].concat()),
        }
    }

    /// Writes what changes the whole screen.
    fn write_whole(&mut self, bytes: &[u8], cursor: Option<(u16, u16)>) -> io::Result<()> {
        let mut frame = [SYNC_ON, HIDE_CURSOR, WRAP_OFF, bytes, WRAP_ON].concat();
        if let Some((x, y)) = cursor {
            frame.extend_from_slice(format!("\x1b[{};{}H", u32::from(y) + 1, u32::from(x) + 1).as_bytes());
            frame.extend_from_slice(SHOW_CURSOR);
        }
        frame.extend_from_slice(SYNC_OFF);
        self.write(&frame)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Stage<W> {
    fn drop(&mut self) {
        // An error cannot be reported from here; a terminal that cannot be written to needs nothing back.
        let _ = self.give_back();
    }
}

/// The line with its own text, so that it can wait.
fn owned(line: &Line<'_>) -> Line<'static> {
    let spans = line
        .spans
        .iter()
        .map(|span| ratatui::text::Span::styled(span.content.clone().into_owned(), span.style));
    Line::from(spans.collect::<Vec<_>>()).style(line.style)
}
