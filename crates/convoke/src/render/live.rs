//! Progress on stderr. In a terminal: what the model writes, in a small region that moves at the bottom of the screen,
//! and above it, for good, what was said and done. Elsewhere: at most one line a second. Never a word on stdout.
//!
//! The region is always erased before anything else is printed, so a reply that turns out to be the answer is seen
//! while it is written and then once, on stdout; a reply that fails disappears and a line says so.

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use convoke_kernel::{Event, Kept, ModelFailed, ModelReplied, Ran, ToolFinished};

use super::clean::{clean, first_line, last_rows};
use super::figures::seconds;
use super::look::{Look, Talk};
use super::progress::{Doing, Progress};

/// More rows of live text than this would leave no room for what happened before.
const MOST_ROWS: usize = 10;
/// A terminal is drawn at most this often.
const FRAME: Duration = Duration::from_millis(80);
/// Elsewhere a line is written at most this often.
const LINE: Duration = Duration::from_secs(1);
/// A line is repeated after this long, so that nobody takes a long command for a dead run.
const REPEAT: Duration = Duration::from_secs(60);
/// How much of an error or a command's first line is shown.
const MOST_CHARS: usize = 200;

/// A command of more lines than this is shown by its first one.
const MOST_COMMAND_LINES: usize = 4;

/// The showing side of progress.
pub(crate) struct Live<W: Write> {
    out: W,
    look: Look,
    size: fn() -> (usize, usize),
    /// Where the run stands.
    pub(crate) progress: Progress,
    /// What the model has written of the reply under way, cleaned.
    text: String,
    thinking: bool,
    /// Rows of the region that are on the screen.
    drawn: usize,
    last: Instant,
    said: String,
    dirty: bool,
}

impl<W: Write> Live<W> {
    pub(crate) fn new(out: W, look: Look, size: fn() -> (usize, usize), progress: Progress, now: Instant) -> Self {
        Self {
            out,
            look,
            size,
            progress,
            text: String::new(),
            thinking: false,
            drawn: 0,
            last: now,
            said: String::new(),
            dirty: false,
        }
    }

    /// How long nothing needs to be redrawn.
    pub(crate) fn pause(&self) -> Duration {
        match self.look.talk {
            Talk::Live if self.dirty => FRAME,
            Talk::Live => Duration::from_millis(500),
            Talk::Sparse | Talk::Quiet => LINE,
        }
    }

    /// A piece of text of the reply under way.
    pub(crate) fn text(&mut self, piece: &str) {
        if self.look.talk == Talk::Live {
            self.thinking = false;
            self.text.push_str(&clean(piece));
            self.dirty = true;
        }
    }

    /// The model thinks.
    pub(crate) fn thinks(&mut self) {
        self.dirty |= !self.thinking;
        self.thinking = true;
    }

    /// Something has been recorded.
    pub(crate) fn recorded(&mut self, at: u64, event: &Event) {
        let before = self.progress.doing.clone();
        self.progress.apply(at, event);
        self.dirty = true;
        if self.look.talk != Talk::Live {
            return;
        }
        match event {
            Event::ModelReplied(e) => self.replied(e),
            Event::ModelFailed(e) => self.failed(at, e),
            Event::ToolFinished(e) => self.finished(at, &before, e),
            Event::ModelCalled(_) => self.forget(),
            Event::AgentStarted(_)
            | Event::ExchangeOpened(_)
            | Event::ExchangeReopened(_)
            | Event::NoteAppended(_)
            | Event::ToolStarted(_)
            | Event::ResultsAppended(_)
            | Event::ExchangeClosed(_)
            | Event::Resumed(_) => {}
        }
    }

    /// Whoever waits sees time pass.
    pub(crate) fn tick(&mut self, now: Instant, at: u64) {
        match self.look.talk {
            Talk::Quiet => {}
            Talk::Live => {
                if now.duration_since(self.last) >= FRAME {
                    self.draw(now, at);
                }
            }
            Talk::Sparse => self.say_sparsely(now, at),
        }
    }

    /// A line that stays, whatever the look: something a person has to know.
    pub(crate) fn line(&mut self, line: &str) {
        self.print(&format!("{line}\n"));
    }

    /// Leaves the screen as it should stay.
    pub(crate) fn close(&mut self) {
        self.print("");
    }

    fn forget(&mut self) {
        self.text.clear();
        self.thinking = false;
    }

    fn replied(&mut self, event: &ModelReplied) {
        let shown = std::mem::take(&mut self.text);
        self.forget();
        let note = match event.kept {
            Kept::Yes if event.reply.calls.is_empty() => return,
            Kept::Yes => {
                let said = clean(&event.reply.text);
                if !said.trim().is_empty() {
                    self.print(&format!("{}\n", said.trim_end()));
                }
                return;
            }
            Kept::Cut => "the reply was cut at its length limit",
            Kept::Empty => "the reply was empty",
            Kept::Refused => "the model declined",
            Kept::WindowFull => "the context window is full",
            Kept::Unusable => "the reply reused the id of an earlier call",
        };
        let what = if shown.is_empty() { "" } else { "reply withdrawn: " };
        self.remark(&format!("… ({what}{note})"));
    }

    fn failed(&mut self, at: u64, event: &ModelFailed) {
        let what = if self.text.is_empty() { "no reply" } else { "reply withdrawn" };
        self.forget();
        let why = first_line(&event.failure.message, MOST_CHARS);
        let next = match event.retry_at {
            Some(until) => {
                let left = Duration::from_millis(until.saturating_sub(at)).as_secs_f64().ceil();
                format!(", asking again in {left} s")
            }
            None => String::new(),
        };
        self.remark(&format!("… ({what}{next}: {why})"));
    }

    fn finished(&mut self, at: u64, before: &Doing, event: &ToolFinished) {
        let result = &event.result;
        let output = result.text.strip_prefix("(exit code ").and_then(|rest| rest.split_once('\n'));
        let first = first_line(output.map_or(result.text.as_str(), |(_, rest)| rest), MOST_CHARS);
        let (command, took) = match before {
            Doing::Running { command, since } => {
                (clean(command), format!("{} · ", seconds(Duration::from_millis(at.saturating_sub(*since)))))
            }
            Doing::Nothing | Doing::Asking | Doing::Waiting { .. } => ("(a call)".to_owned(), String::new()),
        };
        let how = match (result.ran, result.exit_code) {
            (Ran::Done, Some(0) | None) => String::new(),
            (Ran::Done, Some(code)) => format!("exit code {code} · "),
            (Ran::Interrupted, _) => "interrupted · ".to_owned(),
            (Ran::Refused, _) => "refused · ".to_owned(),
        };
        let shown =
            format!("{}\n{}\n", self.look.bold(&prompt(&command)), self.look.dim(&format!("  {took}{how}{first}")));
        self.print(&shown);
    }

    fn remark(&mut self, line: &str) {
        let line = self.look.dim(&self.look.fit(line));
        self.print(&format!("{line}\n"));
    }

    fn say_sparsely(&mut self, now: Instant, at: u64) {
        let since = now.duration_since(self.last);
        if since < LINE || (!self.dirty && since < REPEAT) {
            return;
        }
        let line = self.progress.line(at);
        self.dirty = false;
        if line != self.said || since >= REPEAT {
            self.print(&format!("{line}\n"));
            self.last = now;
            self.said = line;
        }
    }

    /// Prints for good: over the region, which is drawn again at the next tick.
    fn print(&mut self, text: &str) {
        let mut bytes = String::new();
        self.erase(&mut bytes);
        bytes.push_str(text);
        self.dirty = true;
        self.write(&bytes);
    }

    fn draw(&mut self, now: Instant, at: u64) {
        self.last = now;
        self.dirty = false;
        let (width, height) = (self.size)();
        let rows = MOST_ROWS.min(height.saturating_sub(3).max(1));
        let mut lines = last_rows(&self.text, width.saturating_sub(1), rows);
        if let Doing::Running { command, since } = &self.progress.doing {
            let took = seconds(Duration::from_millis(at.saturating_sub(*since)));
            lines.extend(
                last_rows(&first_line(command, MOST_CHARS), width.saturating_sub(3), rows)
                    .iter()
                    .enumerate()
                    .map(|(row, text)| if row == 0 { format!("$ {text}") } else { format!("  {text}") }),
            );
            lines.push(format!("  {took}"));
        }
        let status = match (self.thinking, &self.progress.doing) {
            (true, Doing::Asking) => format!("{} · the model is thinking", self.progress.figures()),
            (_, Doing::Running { .. }) => self.progress.figures(),
            _ => self.progress.line(at),
        };
        lines.push(status);
        let mut bytes = String::new();
        self.erase(&mut bytes);
        // Without automatic wrapping every line takes one row, whatever the terminal makes of its characters.
        bytes.push_str("\u{1b}[?7l");
        for (index, line) in lines.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            let _ = write!(bytes, "{line_break}{}", self.look.dim(line));
        }
        bytes.push_str("\u{1b}[?7h");
        self.drawn = lines.len();
        self.write(&bytes);
    }

    fn erase(&mut self, bytes: &mut String) {
        if self.drawn > 1 {
            let _ = write!(bytes, "\u{1b}[{}A", self.drawn - 1);
        }
        if self.drawn > 0 {
            bytes.push_str("\r\u{1b}[J");
        }
        self.drawn = 0;
    }

    fn write(&mut self, bytes: &str) {
        // Nobody can be told that stderr is gone, and the run goes on without it.
        let _ = self.out.write_all(bytes.as_bytes()).and_then(|()| self.out.flush());
    }
}

/// A command as it would stand at a prompt; of a long one its beginning.
fn prompt(command: &str) -> String {
    if command.trim_end().lines().count() > MOST_COMMAND_LINES {
        return format!("$ {}", first_line(command, MOST_CHARS));
    }
    let mut lines = command.trim_end().lines();
    let first = format!("$ {}", lines.next().unwrap_or_default());
    lines.fold(first, |shown, line| shown + "\n  " + line)
}

#[cfg(test)]
mod tests;
