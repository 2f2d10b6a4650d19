//! The tree as lines of a terminal. Pure: the same tree in the same room at the same time is the same
//! picture. No line is wider and no picture higher than it may be; what does not fit is counted.

use std::cmp::Reverse;
use std::time::Duration;

use convoke_terminal::text_columns;
use convoke_view::{AgentsAtWork, Waits, WorkPhase, WorkState, WorkingAgent, dollars, seconds, tokens};

use super::spent;
use super::text::{action, findings, listed, mark, program_heading, state_word, word};

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

/// The lead, the phases with their agents, and what the session has spent, in at most this room (columns,
/// rows). Empty while the lead is alone. When not all agents fit, the running ones come first, then those
/// that failed, then the ones that ended last.
pub(in crate::render) fn lines(
    work: &AgentsAtWork,
    lead: &str,
    (width, height): (usize, usize),
    now: u64,
) -> Vec<Line> {
    if !work.is_at_work() || height == 0 {
        return Vec::new();
    }
    let line = |text: String, tone| Line { text: cut(&text, width), tone };
    let totals = line(totals(work, width, now), Tone::Dim);
    if height == 1 {
        return vec![totals];
    }
    let mut phases: Vec<WorkPhase> = work.phases().filter(|phase| work.has(*phase)).collect();
    // Phases that are over go first when there is no room for the agents of those that are not.
    while phases.len() > (height - 2).div_ceil(2).max(3) {
        let Some(over) = phases.iter().position(|phase| work.is_over(*phase)) else { break };
        phases.remove(over);
    }
    phases.truncate(height - 2);
    let (shown, rest) = pick(work, height - 2 - phases.len(), &phases);
    let columns = Columns::fit(width, work.is_draining(), &shown);
    let mut lines = vec![line(lead.to_owned(), Tone::Bold)];
    for (index, phase) in phases.iter().enumerate() {
        let is_last = index + 1 == phases.len() && rest.is_empty();
        let (branch, stem) = if is_last { ("└ ", "  ") } else { ("├ ", "│ ") };
        lines.push(line(format!("{branch}{}", heading(work, *phase, width.saturating_sub(2))), Tone::Plain));
        for agent in shown.iter().filter(|agent| agent.phase() == *phase) {
            let tone = if agent.state() == WorkState::Done { Tone::Dim } else { Tone::Plain };
            lines.push(line(format!("{stem}{}", columns.row(agent, now, &work.waits)), tone));
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
fn pick<'a>(
    work: &'a AgentsAtWork,
    rows: usize,
    phases: &[WorkPhase],
) -> (Vec<&'a WorkingAgent>, Vec<String>) {
    let kinds =
        WorkState::ALL.map(|state| phases.iter().map(|phase| work.count(*phase, state)).sum::<usize>());
    let all: usize = kinds.iter().sum();
    let one_line = rows < FEW_ROWS;
    let mut left = match all <= rows {
        true => rows,
        false if one_line => rows.saturating_sub(1),
        false => rows - kinds.iter().filter(|many| **many > 0).count(),
    };
    let mut shown = Vec::new();
    let mut hidden = Vec::new();
    for (state, many) in WorkState::ALL.into_iter().zip(kinds) {
        let mut agents: Vec<&WorkingAgent> = Vec::with_capacity(left.min(many));
        for lane in phases.iter().map(|phase| work.agents(*phase, state)) {
            // Agents that run are seen in the order in which they began, the others with the latest first.
            match state {
                WorkState::Running | WorkState::Waiting => agents.extend(lane.take(left)),
                WorkState::Failed | WorkState::Done => agents.extend(lane.rev().take(left)),
            }
        }
        match state {
            WorkState::Running | WorkState::Waiting => agents.sort_by_key(|agent| agent.order()),
            WorkState::Failed | WorkState::Done => agents.sort_by_key(|agent| Reverse(agent.order())),
        }
        agents.truncate(left);
        left -= agents.len();
        if many > agents.len() {
            hidden.push((u32::try_from(many - agents.len()).unwrap_or(u32::MAX), state_word(state)));
        }
        shown.append(&mut agents);
    }
    // With no row at all the headings say how many there are.
    let rest = match (hidden.is_empty() || rows == 0, one_line) {
        (true, _) => Vec::new(),
        (false, true) => vec![format!("and {}", listed(&hidden))],
        (false, false) => hidden.iter().map(|(many, word)| format!("{many} more {word}")).collect(),
    };
    (shown, rest)
}

/// A phase in numbers, as many of them as fit.
fn heading(work: &AgentsAtWork, phase: WorkPhase, width: usize) -> String {
    let many = |state| u32::try_from(work.count(phase, state)).unwrap_or(u32::MAX);
    let running = many(WorkState::Running);
    let waiting = many(WorkState::Waiting);
    if let Some(counts) = work.program_counts(phase) {
        let (head, others, rest) = program_heading(work, phase, &counts, running);
        let line = fitted(head, &others, width);
        let longer = format!("{line}{rest}");
        return if text_columns(&longer) > width { line } else { longer };
    }
    match phase {
        WorkPhase::WORKING if work.has_runs() => {
            let counts = work.counts();
            // An agent has ended a moment before its item has.
            let failed = counts.failed.max(many(WorkState::Failed));
            let done = (counts.ok + counts.degraded).max(many(WorkState::Done) + counts.reused);
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
                WorkPhase::WORKING => "working",
                WorkPhase::VERIFYING => "verifying",
                _ => "tasks",
            };
            let reused = if phase == WorkPhase::VERIFYING { work.counts().reused_votes } else { 0 };
            let others = [
                (running, "running"),
                (many(WorkState::Failed), "failed"),
                (waiting, "waiting"),
                (reused, "reused"),
            ];
            fitted(format!("{name}: {} done", many(WorkState::Done)), &others, width)
        }
    }
}

/// What the session has spent and found, as much of it as fits.
fn totals(work: &AgentsAtWork, width: usize, now: u64) -> String {
    let mut parts = spent(work).unwrap_or_default();
    let found = work.findings();
    if found.total() > 0 {
        parts.push(findings(found));
    }
    parts.extend(work.ms_used(now).map(|ms| seconds(Duration::from_millis(ms))));
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
    fn fit(width: usize, draining: bool, agents: &[&WorkingAgent]) -> Self {
        let state = width >= 36;
        let turns = width >= 66;
        let spent = width >= 76;
        let used = MARGIN
            + if state { STATE } else { 0 }
            + if turns { TURNS } else { 0 }
            + if spent { TOKENS + COST } else { 0 };
        let room = width.saturating_sub(used);
        let widest =
            agents.iter().map(|agent| text_columns(agent.label())).max().unwrap_or(0).min(WIDEST_LABEL);
        // Below this an action would be a few letters that say nothing.
        let most = if width < 56 { room } else { room * 11 / 20 };
        let label = widest.min(most);
        let action = if width < 56 { 0 } else { room - label };
        Self { label, state, turns, spent, action, draining }
    }

    fn row(&self, agent: &WorkingAgent, now: u64, waits: &Waits) -> String {
        let mut row = format!("{} {}", mark(agent.state()), padded(agent.label(), self.label));
        if self.state {
            row.push_str(&format!(" {:<9}", word(agent, self.draining)));
        }
        if self.turns {
            row.push_str(&format!(" {:<7}", format!("turn {}", agent.used().turns.max(1))));
        }
        if self.spent {
            let cost = agent.used().cost_nano.map_or_else(|| "$?".to_owned(), |nano| dollars(Some(nano)));
            let (tokens, cost) = match agent.used().tokens() {
                0 => (String::new(), String::new()),
                used => (tokens(used), cost),
            };
            row.push_str(&format!(" {tokens:>6} {cost:>7}"));
        }
        if self.action > 2 {
            row.push_str(&format!("  {}", cut(&action(agent, now, waits), self.action - 2)));
        }
        row.truncate(row.trim_end().len());
        row
    }
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
