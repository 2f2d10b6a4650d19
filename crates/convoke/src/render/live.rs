//! Progress on stderr. In a terminal: what the lead writes and who works for it, in a small region that moves at the
//! bottom of the screen, and above it, for good, what the lead said and did. Elsewhere: at most one line a second. Never a
//! word on stdout.
//!
//! The region is always erased before anything else is printed, so a reply that turns out to be the answer is seen
//! while it is written and then once, on stdout; a reply that fails disappears and a line says so.

mod sparse;
mod still;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wait_tests;

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use convoke_kernel::{
    AgentId, Event, Kept, Ledger, ModelFailed, ModelReplied, ProgramEvent, Ran, RunEvent, ToolFinished,
};
use convoke_runtime::Piece;

use sparse::LINE;
pub(crate) use still::Still;

use super::look::{Look, Talk};
use super::progress::{Call, Doing, Progress};
use super::tree::{Line, Tone, Tree, cut};
use convoke_terminal::{Hold, seconds};
use convoke_terminal::{clean, first_line, last_rows, wrapped};

/// More rows of live text than this would leave no room for what happened before.
const MOST_ROWS: usize = 10;
/// A terminal is drawn at most this often.
const FRAME: Duration = Duration::from_millis(80);
/// Without anything new a terminal is looked after this often, because time passes.
const BEAT: Duration = Duration::from_millis(500);
/// How much of an error or a command's first line is shown.
const MOST_CHARS: usize = 200;
/// How much of a call stands in the lead's line.
const SHORT: usize = 60;

/// What the id of a call begins with that a person made.
const OWN_CALL: &str = "person_";

/// A command of more lines than this is shown by its first one.
const MOST_COMMAND_LINES: usize = 4;

/// What is shown: a lead, where it stands, and who works for it.
pub(crate) struct Shown {
    pub(crate) lead: AgentId,
    pub(crate) progress: Progress,
    pub(crate) tree: Tree,
}

/// The showing side of progress.
pub(crate) struct Live<W: Write> {
    out: W,
    look: Look,
    size: fn() -> (usize, usize),
    /// Whether a question stands on the terminal.
    is_still: fn() -> bool,
    /// How many questions have stood there, and how many of them are known here.
    times_still: fn() -> usize,
    known_still: usize,
    /// What is to be printed once the question is answered.
    held: String,
    lead: AgentId,
    /// Where the lead stands.
    pub(crate) progress: Progress,
    /// Who works for it, and what all of them have spent.
    pub(crate) tree: Tree,
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
    dirty: bool,
}

impl<W: Write> Live<W> {
    pub(crate) fn new(out: W, look: Look, size: fn() -> (usize, usize), shown: Shown, now: Instant) -> Self {
        let Shown { lead, progress, tree } = shown;
        Self {
            out,
            look,
            size,
            is_still: Still::is_kept,
            times_still: Still::times,
            known_still: Still::times(),
            held: String::new(),
            lead,
            progress,
            tree,
            text: String::new(),
            thinking: false,
            drawn: Vec::new(),
            size_then: (0, 0),
            last: now,
            said: String::new(),
            said_why: None,
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
        if *agent != self.lead {
            self.dirty |= self.tree.piece(agent, piece);
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
        self.tree.run(run, at, event);
        self.dirty = true;
    }

    /// Something has happened to a program's run.
    pub(crate) fn program(&mut self, run: &str, at: u64, event: &ProgramEvent) {
        self.tree.program(run, at, event);
        self.dirty = true;
    }

    /// A line about a program that stays, unless nobody wants to hear it.
    pub(crate) fn say(&mut self, line: &str) {
        if self.look.talk != Talk::Quiet {
            let line = self.look.fit(line);
            self.print(&format!("{line}\n"));
        }
    }

    /// The ledger has moved.
    pub(crate) fn ledger(&mut self, ledger: Box<Ledger>) {
        self.tree.ledger(ledger);
        self.dirty |= self.tree.is_at_work();
    }

    /// All who want to ask the model wait for this, or no longer.
    pub(crate) fn held(&mut self, hold: Option<Hold>) {
        self.tree.waits.held(hold);
        self.dirty = true;
    }

    /// Something has been recorded. What the lead did is printed for good; what the others did is seen while they work.
    pub(crate) fn recorded(&mut self, agent: &AgentId, at: u64, event: &Event) {
        self.dirty = true;
        if *agent != self.lead {
            self.progress.count(event);
            self.tree.recorded(agent, at, event);
            return;
        }
        let call = match event {
            Event::ToolFinished(e) => self.progress.call(&e.id).cloned(),
            _ => None,
        };
        self.progress.apply(at, event);
        self.tree.recorded(agent, at, event);
        if self.look.talk != Talk::Live {
            return;
        }
        match event {
            Event::ModelReplied(e) => self.replied(e),
            Event::ModelFailed(e) => self.failed(at, e),
            Event::ToolFinished(e) => self.finished(at, call.as_ref(), e),
            Event::ModelCalled(_) => self.forget(),
            Event::AgentStarted(_)
            | Event::ModeSet(_)
            | Event::RoomRefused(_)
            | Event::ExchangeOpened(_)
            | Event::ExchangeReopened(_)
            | Event::CallMade(_)
            | Event::NoteAppended(_)
            | Event::MailDelivered(_)
            | Event::CompactionAsked(_)
            | Event::HistoryCompacted(_)
            | Event::HistoryForked(_)
            | Event::ExchangeStopped(_)
            | Event::Retuned(_)
            | Event::InputRejected(_)
            | Event::ApprovalAsked(_)
            | Event::ApprovalGiven(_)
            | Event::ToolStarted(_)
            | Event::ResultsAppended(_)
            | Event::ExchangeClosed(_)
            | Event::Resumed(_) => {}
        }
    }

    /// Whoever waits sees time pass.
    pub(crate) fn tick(&mut self, now: Instant, at: u64) {
        let _pen = Still::pen();
        self.look_for_questions();
        match self.look.talk {
            Talk::Quiet => {}
            // What stands on the screen above a question stays there.
            Talk::Live if (self.is_still)() => {}
            Talk::Live => {
                let held = std::mem::take(&mut self.held);
                if !held.is_empty() {
                    self.put(&held);
                }
                if now.duration_since(self.last) >= FRAME {
                    self.draw(now, at);
                }
            }
            Talk::Sparse if (self.is_still)() => {}
            Talk::Sparse => self.say_sparsely(now, at),
        }
    }

    /// A line that stays, whatever the look: something a person has to know.
    pub(crate) fn line(&mut self, line: &str) {
        let _pen = Still::pen();
        self.look_for_questions();
        self.put(&format!("{line}\n"));
    }

    /// Leaves the screen as it should stay.
    pub(crate) fn close(&mut self) {
        let held = std::mem::take(&mut self.held);
        let _pen = Still::pen();
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
            Kept::Summary => "it sums up what was before and begins a new history",
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

    fn finished(&mut self, at: u64, call: Option<&Call>, event: &ToolFinished) {
        // A person's own program has the whole of the report to itself.
        if event.id.starts_with(OWN_CALL) {
            return;
        }
        let result = &event.result;
        let output = result.text.strip_prefix("(exit code ").and_then(|rest| rest.split_once('\n'));
        let first = || first_line(output.map_or(result.text.as_str(), |(_, rest)| rest), MOST_CHARS);
        let workflow = self.tree.came_to(&event.id);
        let said =
            |call: &Call| if call.is_command { prompt(&clean(&call.text)) } else { first_line(&call.text, MOST_CHARS) };
        let refused = self.progress.wanted(&event.id).filter(|_| result.ran == Ran::Refused);
        let (done, took) = match (call, refused) {
            (Some(call), _) => {
                (said(call), format!("{} · ", seconds(Duration::from_millis(at.saturating_sub(call.since)))))
            }
            // It was never begun.
            (None, Some(call)) => (said(call), String::new()),
            // It was begun by a process that is gone.
            (None, None) if workflow.is_some() => ("Workflow".to_owned(), String::new()),
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
        let shown = format!("{}\n{}\n", self.look.bold(&done), self.look.dim(&outcome));
        self.print(&shown);
    }

    fn remark(&mut self, line: &str) {
        let line = self.look.dim(&self.look.fit(line));
        self.print(&format!("{line}\n"));
    }

    /// Prints for good: over the region, which is drawn again at the next tick.
    fn print(&mut self, text: &str) {
        let _pen = Still::pen();
        self.look_for_questions();
        match self.look.talk == Talk::Live && (self.is_still)() {
            // A question and its answer stay together.
            true => self.held.push_str(text),
            false => self.put(text),
        }
    }

    /// What was drawn before a question was asked is part of what stands above it now.
    fn look_for_questions(&mut self) {
        let times = (self.times_still)();
        if times != self.known_still || (self.is_still)() {
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

    /// Draws the region over the one that is there. Nothing is erased before it is written over, so nothing flickers.
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

    /// The rows at the bottom of the screen.
    fn region(&self, (width, height): (usize, usize), at: u64) -> Vec<Line> {
        let rows = MOST_ROWS.min(height.saturating_sub(3).max(1));
        let width = width.saturating_sub(1);
        let dim = |text: String| Line { text, tone: Tone::Dim };
        if self.tree.is_at_work() {
            // What happened before keeps a third of the screen, unless that leaves too little to be a tree.
            let most = height.saturating_sub(2).min((height * 2 / 3).max(8));
            let waits = self.tree.waits.words_besides(Some(&self.lead), at).filter(|_| most > 3);
            let mut tree = self.tree.lines(&self.lead_line(at), (width, most - usize::from(waits.is_some())), at);
            // A wait stands where the eye looks for the end: in the last row, above the sum of it all.
            let last = tree.len().saturating_sub(1);
            tree.splice(last..last, waits.map(|text| Line { text: cut(&text, width), tone: Tone::Bold }));
            let left = height.saturating_sub(2).saturating_sub(tree.len()).min(rows);
            return last_rows(&self.text, width, left).into_iter().map(dim).chain(tree).collect();
        }
        let mut lines: Vec<Line> = last_rows(&self.text, width, rows).into_iter().map(dim).collect();
        if let Doing::Running(call) = &self.progress.doing {
            let took = seconds(Duration::from_millis(at.saturating_sub(call.since)));
            let (first, next) = if call.is_command { ("$ ", "  ") } else { ("", "") };
            let shown = last_rows(&first_line(&call.text, MOST_CHARS), width.saturating_sub(2), rows);
            let command =
                shown.iter().enumerate().map(|(row, text)| format!("{}{text}", if row == 0 { first } else { next }));
            lines.extend(command.map(dim));
            lines.push(dim(format!("  {took}")));
        }
        let status = match (self.thinking, &self.progress.doing) {
            (true, Doing::Asking) => format!("{} · the model is thinking", self.figures()),
            (_, Doing::Running(_)) => self.figures(),
            _ => self.status(at),
        };
        lines.push(dim(cut(&status, width)));
        lines
    }

    /// The lead's own line above those who work for it.
    fn lead_line(&self, at: u64) -> String {
        if let Some(program) = self.tree.own_program(at) {
            return program;
        }
        let doing = match (self.thinking, &self.progress.doing) {
            (true, Doing::Asking) => "the model is thinking · ".to_owned(),
            (_, Doing::Running(call)) => {
                let took = seconds(Duration::from_millis(at.saturating_sub(call.since)));
                format!("{}, {took} · ", first_line(&call.shown(), SHORT))
            }
            _ => self.progress.words(at, &self.tree.waits).map(|words| format!("{words} · ")).unwrap_or_default(),
        };
        format!("lead · {doing}{}", self.progress.steps())
    }

    /// `turn 3 · 2 commands · 12.3k tokens · $0.04`: how far the lead is, and what all agents have spent.
    fn figures(&self) -> String {
        let spent = self.tree.spent().map_or_else(|| self.progress.spent(), |parts| parts.join(" · "));
        match self.tree.is_by_person() || self.progress.is_by_person() {
            // Nobody leads a person's own program.
            true => spent,
            false => format!("{} · {spent}", self.progress.steps()),
        }
    }

    /// The figures and what is under way at this time.
    fn status(&self, at: u64) -> String {
        let own = self.tree.own_program(at);
        let doing = if own.is_some() { own } else { self.progress.words(at, &self.tree.waits) };
        let waits = self.tree.waits.words_besides(Some(&self.lead), at);
        let parts = [Some(self.figures()), waits, doing, self.tree.brief(at)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
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
