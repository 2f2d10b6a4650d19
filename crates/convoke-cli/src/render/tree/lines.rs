//! The tree as lines of a terminal. Pure: the same tree in the same room at the same time is the same
//! picture. No line is wider and no picture higher than it may be; what does not fit is counted.

use std::time::Duration;

use convoke_kernel::VerdictCounts;

use super::node::{Node, Phase, State};
use super::{Tree, add};
use convoke_terminal::text_columns;
use convoke_view::{Waits, count, dollars, seconds, tokens};

/// With fewer rows than this for agents, those that are not shown are counted in one line.
const FEW_ROWS: usize = 12;
/// A label takes at most this much, however wide the terminal is.
const WIDEST_LABEL: usize = 60;

/// One line of the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::render) struct Line {
    pub(in crate::render) text: String,
    pub(in crate::render) tone: Tone,
}

/// How a line is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::render) enum Tone {
    /// As it is.
    Plain,
    /// Behind the others.
    Dim,
    /// Before the others.
    Bold,
}

impl Tree {
    /// The lead, the phases with their agents, and what the session has spent, in at most this room (columns,
    /// rows). Empty while the lead is alone. When not all agents fit, the running ones come first, then those
    /// that failed, then the ones that ended last.
    pub(in crate::render) fn lines(
        &self,
        lead: &str,
        (width, height): (usize, usize),
        now: u64,
    ) -> Vec<Line> {
        if !self.is_at_work() || height == 0 {
            return Vec::new();
        }
        let line = |text: String, tone| Line { text: cut(&text, width), tone };
        let totals = line(self.totals(width, now), Tone::Dim);
        if height == 1 {
            return vec![totals];
        }
        let there = |phase: &Phase| {
            State::ALL.iter().any(|state| self.count(*phase, *state) > 0)
                || (*phase == Phase::WORKING && !self.runs.is_empty())
                || self.programs.shows(*phase)
        };
        let mut phases: Vec<Phase> = self.phases().filter(there).collect();
        // Phases that are over go first when there is no room for the agents of those that are not.
        while phases.len() > (height - 2).div_ceil(2).max(3) {
            let Some(over) = phases.iter().position(|phase| self.is_over(*phase)) else { break };
            phases.remove(over);
        }
        phases.truncate(height - 2);
        let (shown, rest) = self.pick(height - 2 - phases.len(), &phases);
        let columns = Columns::fit(width, self.draining, &shown);
        let mut lines = vec![line(lead.to_owned(), Tone::Bold)];
        for (index, phase) in phases.iter().enumerate() {
            let is_last = index + 1 == phases.len() && rest.is_empty();
            let (branch, stem) = if is_last { ("└ ", "  ") } else { ("├ ", "│ ") };
            lines.push(line(
                format!("{branch}{}", self.heading(*phase, width.saturating_sub(2))),
                Tone::Plain,
            ));
            for node in shown.iter().filter(|node| node.phase == *phase) {
                let tone = if node.state == State::Done { Tone::Dim } else { Tone::Plain };
                lines.push(line(format!("{stem}{}", columns.row(node, now, &self.waits)), tone));
            }
        }
        for (index, words) in rest.iter().enumerate() {
            let branch = if index + 1 == rest.len() { "└" } else { "├" };
            lines.push(line(format!("{branch} … {words}"), Tone::Dim));
        }
        lines.push(totals);
        lines
    }

    /// The agents that fit into this many rows, the most interesting first, and what is said of the others.
    fn pick(&self, rows: usize, phases: &[Phase]) -> (Vec<&Node>, Vec<String>) {
        let kinds =
            State::ALL.map(|state| phases.iter().map(|phase| self.count(*phase, state)).sum::<usize>());
        let all: usize = kinds.iter().sum();
        let one_line = rows < FEW_ROWS;
        let mut left = match all <= rows {
            true => rows,
            false if one_line => rows.saturating_sub(1),
            false => rows - kinds.iter().filter(|many| **many > 0).count(),
        };
        let mut shown = Vec::new();
        let mut hidden = Vec::new();
        for (state, many) in State::ALL.into_iter().zip(kinds) {
            let mut nodes: Vec<&Node> = Vec::with_capacity(left.min(many));
            for lane in phases.iter().map(|phase| &self.lanes[phase.0][state as usize]) {
                // Agents that run are seen in the order in which they began, the others with the latest
                // first.
                match state {
                    State::Running | State::Waiting => nodes.extend(self.found(lane.values().take(left))),
                    State::Failed | State::Done => nodes.extend(self.found(lane.values().rev().take(left))),
                }
            }
            match state {
                State::Running | State::Waiting => nodes.sort_by_key(|node| node.stamp),
                State::Failed | State::Done => nodes.sort_by_key(|node| std::cmp::Reverse(node.stamp)),
            }
            nodes.truncate(left);
            left -= nodes.len();
            if many > nodes.len() {
                hidden.push((u32::try_from(many - nodes.len()).unwrap_or(u32::MAX), state.word()));
            }
            shown.append(&mut nodes);
        }
        // With no row at all the headings say how many there are.
        let rest = match (hidden.is_empty() || rows == 0, one_line) {
            (true, _) => Vec::new(),
            (false, true) => vec![format!("and {}", listed(&hidden))],
            (false, false) => hidden.iter().map(|(many, word)| format!("{many} more {word}")).collect(),
        };
        (shown, rest)
    }

    fn found<'a>(
        &'a self,
        ids: impl Iterator<Item = &'a convoke_kernel::AgentId>,
    ) -> impl Iterator<Item = &'a Node> {
        ids.filter_map(|id| self.nodes.get(id))
    }

    /// A phase in numbers, as many of them as fit.
    fn heading(&self, phase: Phase, width: usize) -> String {
        let many = |state| u32::try_from(self.count(phase, state)).unwrap_or(u32::MAX);
        let running = many(State::Running);
        let waiting = many(State::Waiting);
        match phase {
            Phase(Phase::PROGRAMS..) => {
                let (head, others, rest) = self.programs.heading(phase, running);
                let line = fitted(head, &others, width);
                let longer = format!("{line}{rest}");
                if text_columns(&longer) > width { line } else { longer }
            }
            Phase::WORKING if !self.runs.is_empty() => {
                let counts = self.counts();
                // An agent has ended a moment before its item has.
                let failed = counts.failed.max(many(State::Failed));
                let done = (counts.ok + counts.degraded).max(many(State::Done) + counts.reused);
                let begun = done + failed + counts.skipped + running;
                let others = [
                    (running, "running"),
                    (failed, "failed"),
                    (counts.items.saturating_sub(begun), "waiting"),
                    (counts.skipped, "skipped"),
                    (counts.reused, "reused"),
                ];
                fitted(format!("working: {done} of {} done", counts.items), &others, width)
            }
            phase => {
                let name = match phase {
                    Phase::WORKING => "working",
                    Phase::VERIFYING => "verifying",
                    _ => "tasks",
                };
                let reused = if phase == Phase::VERIFYING { self.counts().reused_votes } else { 0 };
                let others = [
                    (running, "running"),
                    (many(State::Failed), "failed"),
                    (waiting, "waiting"),
                    (reused, "reused"),
                ];
                fitted(format!("{name}: {} done", many(State::Done)), &others, width)
            }
        }
    }

    /// Whether everything of a program's phase has ended.
    fn is_over(&self, phase: Phase) -> bool {
        let at_it = self.count(phase, State::Running) + self.count(phase, State::Waiting);
        phase.0 >= Phase::PROGRAMS && at_it == 0 && self.programs.is_over(phase)
    }

    /// What the session has spent and found, as much of it as fits.
    fn totals(&self, width: usize, now: u64) -> String {
        let mut parts = self.spent().unwrap_or_default();
        let mut found = self.past;
        add(&mut found, self.counts().findings);
        if found.total() > 0 {
            parts.push(findings(found));
        }
        if let Some(ledger) = &self.ledger {
            let time = Duration::from_millis(ledger.ms_used(now));
            parts.push(seconds(time));
        }
        let mut line = String::new();
        for part in parts {
            let longer = if line.is_empty() { part } else { format!("{line} · {part}") };
            if text_columns(&longer) > width {
                break;
            }
            line = longer;
        }
        line
    }
}

/// How much of a row each part of it takes.
struct Columns {
    label: usize,
    state: bool,
    turns: bool,
    spent: bool,
    action: usize,
    draining: bool,
}

/// The stem, the mark and the blanks around it.
const MARGIN: usize = 4;
const STATE: usize = "answering".len() + 1;
const TURNS: usize = "turn 15".len() + 1;
const TOKENS: usize = "999.9k".len() + 1;
const COST: usize = "$0.0012".len() + 1;

impl Columns {
    fn fit(width: usize, draining: bool, nodes: &[&Node]) -> Self {
        let state = width >= 36;
        let turns = width >= 66;
        let spent = width >= 76;
        let used = MARGIN
            + if state { STATE } else { 0 }
            + if turns { TURNS } else { 0 }
            + if spent { TOKENS + COST } else { 0 };
        let room = width.saturating_sub(used);
        let widest = nodes.iter().map(|node| text_columns(&node.label)).max().unwrap_or(0).min(WIDEST_LABEL);
        // Below this an action would be a few letters that say nothing.
        let most = if width < 56 { room } else { room * 11 / 20 };
        let label = widest.min(most);
        let action = if width < 56 { 0 } else { room - label };
        Self { label, state, turns, spent, action, draining }
    }

    fn row(&self, node: &Node, now: u64, waits: &Waits) -> String {
        let mut row = format!("{} {}", node.state.mark(), padded(&node.label, self.label));
        if self.state {
            row.push_str(&format!(" {:<9}", node.word(self.draining)));
        }
        if self.turns {
            row.push_str(&format!(" {:<7}", format!("turn {}", node.used.turns.max(1))));
        }
        if self.spent {
            let cost = node.used.cost_nano.map_or_else(|| "$?".to_owned(), |nano| dollars(Some(nano)));
            let (tokens, cost) = match node.used.tokens() {
                0 => (String::new(), String::new()),
                used => (tokens(used), cost),
            };
            row.push_str(&format!(" {tokens:>6} {cost:>7}"));
        }
        if self.action > 2 {
            row.push_str(&format!("  {}", cut(&node.action(now, waits), self.action - 2)));
        }
        row.truncate(row.trim_end().len());
        row
    }
}

/// `24 findings: 20 confirmed, 4 refuted`.
pub(super) fn findings(counts: VerdictCounts) -> String {
    let by = [
        (counts.confirmed, "confirmed"),
        (counts.refuted, "refuted"),
        (counts.uncertain, "uncertain"),
        (counts.unverified, "unverified"),
    ];
    let all = count(counts.total(), "finding");
    if counts.total() == 0 { all } else { format!("{all}: {}", listed(&by)) }
}

/// `5 running, 1 failed`, or `none`.
pub(super) fn listed(counts: &[(u32, &str)]) -> String {
    let words: Vec<String> =
        counts.iter().filter(|(many, _)| *many > 0).map(|(many, word)| format!("{many} {word}")).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// The beginning, and as many of the counts as fit behind it whole.
fn fitted(head: String, counts: &[(u32, &str)], width: usize) -> String {
    let mut line = head;
    for (many, word) in counts.iter().filter(|(many, _)| *many > 0) {
        let longer = format!("{line}, {many} {word}");
        if text_columns(&longer) > width {
            break;
        }
        line = longer;
    }
    line
}

/// As much of a cleaned text as fits into these columns.
pub(in crate::render) fn cut(text: &str, width: usize) -> String {
    if text_columns(text) <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 1;
    let mut bytes = [0; 4];
    for c in text.chars() {
        let columns = text_columns(c.encode_utf8(&mut bytes));
        if used + columns > width {
            break;
        }
        shown.push(c);
        used += columns;
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

fn padded(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let blanks = width.saturating_sub(text_columns(&text));
    text + &" ".repeat(blanks)
}
