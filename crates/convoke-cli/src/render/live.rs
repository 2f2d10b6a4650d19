//! Progress on stderr. In a terminal: what the lead writes and which agents work for it, in a small region
//! that moves at the bottom of the screen, and above it, for good, what the lead said and did. Elsewhere: a
//! line when something else begins, and a few while it lasts. Never a word on stdout.
//!
//! The region is always erased before anything else is printed, so a reply that turns out to be the answer is
//! seen while it is written and then once, on stdout; a reply that fails disappears and a line says so.

mod region;
mod sparse;
mod terminal_hold;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wait_tests;

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use convoke_kernel::{
    AgentId, Event, Kept, Ledger, ModelReplied, Piece, ProgramEvent, Ran, RunEvent, ToolFinished,
};

use sparse::{LINE, STEADY};
pub(crate) use terminal_hold::{TerminalHold, TerminalLock};

use super::look::{Look, Talk};
use super::tree::{self, Line, Tone};
use convoke_terminal::{rendered, wrapped};
use convoke_view::{AgentsAtWork, CallUnderWay, Hold, Progress, clean, first_line, seconds};

/// A terminal is drawn at most this often.
const FRAME: Duration = Duration::from_millis(80);
/// Without anything new a terminal is looked after this often, because time passes.
const BEAT: Duration = Duration::from_millis(500);
/// How much of an error or a command's first line is shown.
const MOST_CHARS: usize = 200;
/// The prefix of the id of a call that a person made.
const OWN_CALL: &str = "person_";

/// A command of more lines than this is shown by its first one.
const MOST_COMMAND_LINES: usize = 4;

/// What is shown: a lead, where it stands, and the agents that work for it.
pub(crate) struct Shown {
    pub(crate) lead: AgentId,
    pub(crate) progress: Progress,
    pub(crate) work: AgentsAtWork,
}

/// The showing side of progress.
pub(crate) struct Live<W: Write> {
    out: W,
    look: Look,
    size: fn() -> (usize, usize),
    /// Whether a question stands on the terminal, and how many have stood there.
    terminal: TerminalLock,
    /// How many of them are known here.
    known_still: usize,
    /// What is to be printed once the question is answered.
    held: String,
    lead: AgentId,
    /// Where the lead stands.
    pub(crate) progress: Progress,
    /// The agents that work for it, and what all of them have spent.
    pub(crate) work: AgentsAtWork,
    /// What the lead has written of the reply under way, cleaned.
    text: String,
    thinking: bool,
    /// The rows of the region that are on the screen, and the size of the screen then.
    drawn: Vec<Line>,
    size_then: (usize, usize),
    last: Instant,
    said: String,
    /// The reason for waiting that was said last.
    said_why: Option<String>,
    /// Which time that the server could not be reached was told last.
    said_spell: Option<usize>,
    /// How long steady work is not told of.
    steady: Duration,
    dirty: bool,
}

impl<W: Write> Live<W> {
    pub(crate) fn new(
        out: W,
        look: Look,
        terminal: TerminalLock,
        size: fn() -> (usize, usize),
        shown: Shown,
        now: Instant,
    ) -> Self {
        let Shown { lead, progress, work } = shown;
        Self {
            out,
            look,
            size,
            known_still: terminal.times(),
            terminal,
            held: String::new(),
            lead,
            progress,
            work,
            text: String::new(),
            thinking: false,
            drawn: Vec::new(),
            size_then: (0, 0),
            last: now,
            said: String::new(),
            said_why: None,
            said_spell: None,
            steady: STEADY,
            dirty: false,
        }
    }

    /// How long nothing needs to be redrawn.
    pub(crate) fn pause(&self) -> Duration {
        match self.look.talk {
            Talk::Live if self.dirty => FRAME,
            Talk::Live => BEAT,
            Talk::Sparse | Talk::Quiet => LINE,
        }
    }

    /// A piece of a reply that is being written.
    pub(crate) fn piece(&mut self, agent: &AgentId, piece: &Piece) {
        self.work.waits.reached();
        if *agent != self.lead {
            self.dirty |= self.work.piece(agent, piece);
            return;
        }
        match piece {
            Piece::Text(text) if self.look.talk == Talk::Live => {
                self.thinking = false;
                self.text.push_str(&clean(text));
                self.dirty = true;
            }
            Piece::Thinking(_) => {
                self.dirty |= !self.thinking;
                self.thinking = true;
            }
            Piece::Text(_) | Piece::Began | Piece::Tool { .. } => {}
        }
    }

    /// Something has happened to a workflow.
    pub(crate) fn run(&mut self, run: &str, at: u64, event: &RunEvent) {
        self.work.run(run, at, event);
        self.dirty = true;
    }

    /// Something has happened to a program's run.
    pub(crate) fn program(&mut self, run: &str, at: u64, event: &ProgramEvent) {
        self.work.program(run, at, event);
        self.dirty = true;
    }

    /// Prints a line about a workflow, a program or the team, which stays, unless progress is quiet.
    pub(crate) fn say(&mut self, line: &str) {
        if self.look.talk != Talk::Quiet {
            let line = self.look.fit(line);
            self.print(&format!("{line}\n"));
        }
    }

    /// The ledger has moved.
    pub(crate) fn ledger(&mut self, ledger: Box<Ledger>) {
        self.work.ledger(ledger);
        self.dirty |= self.work.is_at_work();
    }

    /// All agents that want to ask the model wait for this, or no longer.
    pub(crate) fn held(&mut self, hold: Option<Hold>) {
        self.work.waits.held(hold);
        self.dirty = true;
    }

    /// Something has been recorded. What the lead did is printed for good; what the others did is seen while
    /// they work.
    pub(crate) fn recorded(&mut self, agent: &AgentId, at: u64, event: &Event) {
        self.dirty = true;
        if *agent != self.lead {
            self.progress.count(event);
            self.work.recorded(agent, at, event);
            return;
        }
        let call = match event {
            Event::ToolFinished(e) => self.progress.call(&e.id).cloned(),
            _ => None,
        };
        self.progress.apply(at, event);
        self.work.recorded(agent, at, event);
        if self.look.talk != Talk::Live {
            return;
        }
        match event {
            Event::ModelReplied(e) => self.replied(e),
            // What is learnt from a refusal says more than the refusal.
            Event::ModelFailed(e) if e.failure.refused.is_none() || e.retry_at.is_none() => {
                self.failed(at, e)
            }
            Event::ToolFinished(e) => self.finished(at, call.as_ref(), e),
            Event::ModelCalled(_) | Event::ModelFailed(_) => self.forget(),
            // What else the lead does is seen in the region, as long as it lasts.
            _ => {}
        }
    }

    /// Shows a person who waits that time passes.
    pub(crate) fn tick(&mut self, now: Instant, at: u64) {
        let terminal = self.terminal.clone();
        let _pen = terminal.pen();
        self.look_for_questions();
        match self.look.talk {
            Talk::Quiet => {}
            // What stands on the screen above a question stays there.
            Talk::Live if self.terminal.is_held() => {}
            Talk::Live => {
                let held = std::mem::take(&mut self.held);
                if !held.is_empty() {
                    self.put(&held);
                }
                if now.duration_since(self.last) >= FRAME {
                    self.draw(now, at);
                }
            }
            Talk::Sparse if self.terminal.is_held() => {}
            Talk::Sparse => self.say_sparsely(now, at),
        }
    }

    /// A line that stays, whatever the look: something a person has to know.
    pub(crate) fn line(&mut self, line: &str) {
        let terminal = self.terminal.clone();
        let _pen = terminal.pen();
        self.look_for_questions();
        self.steady = STEADY;
        self.put(&format!("{line}\n"));
    }

    /// Leaves the screen as it should stay.
    pub(crate) fn close(&mut self) {
        let held = std::mem::take(&mut self.held);
        let terminal = self.terminal.clone();
        let _pen = terminal.pen();
        self.look_for_questions();
        self.put(&held);
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
                if !event.reply.text.trim().is_empty() {
                    let said = rendered(&event.reply.text, (self.size)().0, self.look.colour);
                    self.print(&said);
                }
                return;
            }
            Kept::Cut => "the reply was cut at its length limit",
            Kept::Empty => "the reply was empty",
            Kept::Refused => "the model declined",
            Kept::WindowFull => "the context window is full",
            Kept::Unusable => "the reply reused the id of an earlier call",
            Kept::Summary => "it sums up what was before and begins a new history",
        };
        let what = if shown.is_empty() { "" } else { "reply withdrawn: " };
        self.remark(&format!("… ({what}{note})"));
    }

    fn finished(&mut self, at: u64, call: Option<&CallUnderWay>, event: &ToolFinished) {
        // A person's own program has the whole of the report to itself.
        if event.id.starts_with(OWN_CALL) {
            return;
        }
        let result = &event.result;
        let output = result.text.strip_prefix("(exit code ").and_then(|rest| rest.split_once('\n'));
        let first = || first_line(output.map_or(result.text.as_str(), |(_, rest)| rest), MOST_CHARS);
        let workflow = tree::came_to(&self.work, &event.id);
        let said = |call: &CallUnderWay| {
            if call.is_command { prompt(&clean(&call.text)) } else { first_line(&call.text, MOST_CHARS) }
        };
        let refused = self.progress.wanted(&event.id).filter(|_| result.ran == Ran::Refused);
        let (done, took) = match (call, refused) {
            (Some(call), _) => {
                (said(call), format!("{} · ", seconds(Duration::from_millis(at.saturating_sub(call.since)))))
            }
            // It was never begun.
            (None, Some(call)) => (said(call), String::new()),
            // It was begun by a process that is gone.
            (None, None) if workflow.is_some() => (convoke_kernel::WORKFLOW.to_owned(), String::new()),
            (None, None) => ("(a call)".to_owned(), String::new()),
        };
        let outcome = workflow.unwrap_or_else(first);
        let how = match (result.ran, result.exit_code) {
            (Ran::Done, Some(0) | None) => String::new(),
            (Ran::Done, Some(code)) => format!("exit code {code} · "),
            (Ran::Interrupted, _) => "interrupted · ".to_owned(),
            (Ran::Refused, _) => "refused · ".to_owned(),
        };
        let outcome = wrapped(&format!("  {took}{how}{outcome}"), (self.size)().0);
        let done = wrapped(&done, (self.size)().0);
        let shown = format!("{}\n{}\n", self.look.bold(&done), self.look.dim(&outcome));
        self.print(&shown);
    }

    fn remark(&mut self, line: &str) {
        let line = self.look.dim(&self.look.fit(line));
        self.print(&format!("{line}\n"));
    }

    /// Prints for good: over the region, which is drawn again at the next tick.
    fn print(&mut self, text: &str) {
        let terminal = self.terminal.clone();
        let _pen = terminal.pen();
        self.look_for_questions();
        match self.look.talk == Talk::Live && self.terminal.is_held() {
            // A question and its answer stay together.
            true => self.held.push_str(text),
            false => self.put(text),
        }
    }

    /// What was drawn before a question was asked is part of what stands above it now.
    fn look_for_questions(&mut self) {
        let times = self.terminal.times();
        if times != self.known_still || self.terminal.is_held() {
            self.known_still = times;
            self.drawn.clear();
        }
    }

    /// Writes for good, the pen in hand.
    fn put(&mut self, text: &str) {
        let mut bytes = String::new();
        self.erase(&mut bytes);
        bytes.push_str(text);
        self.dirty = true;
        self.write(&bytes);
    }

    /// Draws the region over the one that is there. Nothing is erased before it is written over, so nothing
    /// flickers.
    fn draw(&mut self, now: Instant, at: u64) {
        self.last = now;
        self.dirty = false;
        let size = (self.size)();
        let lines = self.region(size, at);
        if lines == self.drawn && size == self.size_then {
            return;
        }
        // Without automatic wrapping every line takes one row, whatever the terminal makes of its characters.
        let mut bytes = String::from("\u{1b}[?7l");
        self.to_the_top(&mut bytes);
        for (index, line) in lines.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            let text = match line.tone {
                Tone::Plain => line.text.clone(),
                Tone::Dim => self.look.dim(&line.text),
                Tone::Bold => self.look.bold(&line.text),
            };
            let _ = write!(bytes, "{line_break}{text}\u{1b}[K");
        }
        bytes.push_str("\u{1b}[J\u{1b}[?7h");
        (self.drawn, self.size_then) = (lines, size);
        self.write(&bytes);
    }

    fn erase(&mut self, bytes: &mut String) {
        if !self.drawn.is_empty() {
            self.to_the_top(bytes);
            bytes.push_str("\u{1b}[J");
        }
        self.drawn.clear();
    }

    /// Moves to where the region begins.
    fn to_the_top(&self, bytes: &mut String) {
        if self.drawn.len() > 1 {
            let _ = write!(bytes, "\u{1b}[{}A", self.drawn.len() - 1);
        }
        if !self.drawn.is_empty() {
            bytes.push('\r');
        }
    }

    fn write(&mut self, bytes: &str) {
        // That stderr is gone can be told nowhere, and the session goes on without it.
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
