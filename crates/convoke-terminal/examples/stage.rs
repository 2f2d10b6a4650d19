//! A small program on a stage, for the tests: it shows a region with a counter, prints rows, draws on the
//! whole screen, breaks and stops as its keys say. It carries the stage's own source, because the library
//! keeps the stage to itself.
//!
//! Keys: `r` prints a hundred rows, `x` prints what a terminal would obey, `b` makes the region big or small,
//! `w` goes to the whole screen and back, `e` lends the terminal, `t` panics in another thread, `p` panics,
//! Ctrl-Z stops, `q` quits.

#[path = "../src/stage/mod.rs"]
#[expect(
    unused_imports,
    unreachable_pub,
    reason = "a program of its own uses less of it and exports nothing"
)]
mod stage;

use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;

use stage::{Region, Stage, guard_entry};

fn main() -> io::Result<()> {
    guard_entry();
    let mut stage = Stage::take(io::stdout(), true)?;
    let mut program = Program::default();
    loop {
        program.count += 1;
        program.draw(&mut stage)?;
        if !event::poll(Duration::from_millis(20))? {
            continue;
        }
        match event::read()? {
            Event::Resize(columns, rows) => stage.resized(columns, rows)?,
            Event::Key(key)
                if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('z') =>
            {
                stage.suspend()?;
                program.said = "continued";
            }
            Event::Key(key) => match key.code {
                KeyCode::Char('q') => return stage.give_back(),
                KeyCode::Char(key) => program.key(key, &mut stage)?,
                _ => {}
            },
            _ => {}
        }
    }
}

#[derive(Default)]
struct Program {
    count: u64,
    printed: usize,
    is_whole: bool,
    is_big: bool,
    said: &'static str,
}

impl Program {
    fn key<W: Write>(&mut self, key: char, stage: &mut Stage<W>) -> io::Result<()> {
        match key {
            'r' => {
                let rows: Vec<Line<'_>> =
                    (1..=100).map(|n| Line::raw(format!("row {:04}.", self.printed + n))).collect();
                // One by one, some at once, and some together with a region.
                rows[..50].iter().try_for_each(|row| stage.print(std::slice::from_ref(row)))?;
                stage.print(&rows[50..80])?;
                stage.show(&rows[80..], self.region(stage.size().0))?;
                self.printed += rows.len();
                self.said = "printed";
            }
            'x' => stage.print(&[Line::raw("\x1b]2;owned\x07\x1b[2J\x1b[?1049h\u{9b}5mEVIL").red()])?,
            'b' => self.is_big = !self.is_big,
            'w' if self.is_whole => {
                self.is_whole = false;
                stage.leave_whole()?;
            }
            'w' => self.is_whole = true,
            'e' => {
                let status =
                    stage.lend_to(std::process::Command::new("sh").args(["-c", "echo in the editor"]))?;
                self.said = if status?.success() { "edited" } else { "not edited" };
            }
            't' => {
                let broken = std::thread::spawn(|| panic!("broken elsewhere")).join();
                self.said = if broken.is_err() { "goes on" } else { "never broke" };
            }
            'p' => panic!("broken on purpose"),
            _ => {}
        }
        Ok(())
    }

    fn draw<W: Write>(&self, stage: &mut Stage<W>) -> io::Result<()> {
        if self.is_whole {
            return stage.whole(|area, buffer| {
                let style = Style::new().reversed();
                buffer.set_string(0, 0, format!("WHOLE {}x{} {}", area.width, area.height, self.said), style);
                buffer.set_string(0, area.height - 1, format!("count {}", self.count), Style::new());
                None
            });
        }
        stage.region(self.region(stage.size().0))
    }

    fn region(&self, columns: u16) -> Region {
        let mut lines = vec![Line::raw("─".repeat(columns.into())).dim()];
        if self.is_big {
            lines.extend(
                (1..=3).map(|n| Line::raw(format!("BIG {n} {}", "=".repeat(usize::from(columns) - 6)))),
            );
        }
        lines.push(Line::raw(format!("> input {} at {columns}", self.said)));
        lines
            .push(Line::raw(format!("STATUS count {}{}", self.count, " ".repeat(columns.into()))).reversed());
        let row = u16::try_from(lines.len() - 2).unwrap_or_default();
        Region { lines, cursor: (8, row) }
    }
}
