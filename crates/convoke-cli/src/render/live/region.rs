//! What stands in the rows at the bottom of the screen that move: the agents, the text of a reply under way,
//! the command that runs, and the figures.

use std::io::Write;
use std::time::Duration;

use convoke_terminal::last_rows;
use convoke_view::{Doing, first_line, seconds};

use super::{Live, MOST_CHARS};
use crate::render::progress::{spent, steps, words};
use crate::render::tree::{self, Line, Tone, cut};

/// More rows of live text than this would leave no room for what happened before.
const MOST_ROWS: usize = 10;

/// How much of a call stands in the lead's line.
const SHORT: usize = 60;

impl<W: Write> Live<W> {
    /// The rows at the bottom of the screen.
    pub(super) fn region(&self, (width, height): (usize, usize), at: u64) -> Vec<Line> {
        let rows = MOST_ROWS.min(height.saturating_sub(3).max(1));
        let width = width.saturating_sub(1);
        let dim = |text: String| Line { text, tone: Tone::Dim };
        if self.work.is_at_work() {
            // What happened before keeps a third of the screen, unless that leaves too little to be a tree.
            let most = height.saturating_sub(2).min((height * 2 / 3).max(8));
            let waits = self.work.waits.words_besides(Some(&self.lead), at).filter(|_| most > 3);
            let mut tree = tree::lines(
                &self.work,
                &self.lead_line(at),
                (width, most - usize::from(waits.is_some())),
                at,
            );
            // A wait stands where the eye looks for the end: in the last row, above the sum of it all.
            let last = tree.len().saturating_sub(1);
            tree.splice(last..last, waits.map(|text| Line { text: cut(&text, width), tone: Tone::Bold }));
            let left = height.saturating_sub(2).saturating_sub(tree.len()).min(rows);
            return last_rows(&self.text, width, left).into_iter().map(dim).chain(tree).collect();
        }
        let mut lines: Vec<Line> = last_rows(&self.text, width, rows).into_iter().map(dim).collect();
        if let Doing::Running(call) = self.progress.doing() {
            let took = seconds(Duration::from_millis(at.saturating_sub(call.since)));
            let (first, next) = if call.is_command { ("$ ", "  ") } else { ("", "") };
            let shown = last_rows(&first_line(&call.text, MOST_CHARS), width.saturating_sub(2), rows);
            let command = shown
                .iter()
                .enumerate()
                .map(|(row, text)| format!("{}{text}", if row == 0 { first } else { next }));
            lines.extend(command.map(dim));
            lines.push(dim(format!("  {took}")));
        }
        let status = match (self.thinking, self.progress.doing()) {
            (true, Doing::Asking) => format!("{} · the model is thinking", self.figures()),
            (_, Doing::Running(_)) => self.figures(),
            _ => self.status(at),
        };
        lines.push(dim(cut(&status, width)));
        lines
    }

    /// The lead's own line above the agents that work for it.
    pub(super) fn lead_line(&self, at: u64) -> String {
        if let Some(program) = tree::own_program(&self.work, at) {
            return program;
        }
        let doing = match (self.thinking, self.progress.doing()) {
            (true, Doing::Asking) => "the model is thinking · ".to_owned(),
            (_, Doing::Running(call)) => {
                let took = seconds(Duration::from_millis(at.saturating_sub(call.since)));
                format!("{}, {took} · ", first_line(&call.shown(), SHORT))
            }
            _ => words(&self.progress, at, &self.work.waits)
                .map(|words| format!("{words} · "))
                .unwrap_or_default(),
        };
        format!("lead · {doing}{}", steps(&self.progress))
    }

    /// `turn 3 · 2 commands · 12.3k tokens · $0.04`: how far the lead is, and what all agents have spent.
    pub(super) fn figures(&self) -> String {
        let spent = tree::spent(&self.work).map_or_else(|| spent(&self.progress), |parts| parts.join(" · "));
        match self.work.is_by_person() || self.progress.is_by_person() {
            // A person's own program has no lead.
            true => spent,
            false => format!("{} · {spent}", steps(&self.progress)),
        }
    }

    /// The figures and what is under way at this time.
    pub(super) fn status(&self, at: u64) -> String {
        let own = tree::own_program(&self.work, at);
        let doing = if own.is_some() { own } else { words(&self.progress, at, &self.work.waits) };
        let waits = self.work.waits.words_besides(Some(&self.lead), at);
        let parts = [Some(self.figures()), waits, doing, tree::brief(&self.work, at)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}
