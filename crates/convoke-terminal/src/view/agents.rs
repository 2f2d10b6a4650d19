//! Agents, phase by phase: one row each, with as much as the width allows, and a heading that says how the
//! phase stands.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use convoke_kernel::Role;
use convoke_view::{AgentRow, AgentState, Fleet, PhaseRow};

use crate::text::{Theme, Tone, count, dollars, text_columns, tokens};

use super::paint::{RowWriter, bar, short_time};

/// What an empty list of agents says.
pub(super) const NOBODY: &str =
    "No agents here yet. Agents stand here once they start: the lead, workers, verifiers, teammates.";

/// A row of the list on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// The heading of the phase to which the agent of this number belongs.
    Heading(usize),
    /// The agent of this number.
    Agent(usize),
}

/// The rows of the screen: agents, and a heading before the first of each phase where there is room for
/// headings.
pub(super) fn shown(rows: &[&AgentRow], with_headings: bool) -> Vec<Shown> {
    let mut all = Vec::with_capacity(rows.len() + 8);
    for (at, row) in rows.iter().enumerate() {
        let is_first = at == 0 || rows[at - 1].phase != row.phase;
        if with_headings && is_first {
            all.push(Shown::Heading(at));
        }
        all.push(Shown::Agent(at));
    }
    all
}

/// Draws the heading of a phase.
pub(super) fn draw_heading(
    buffer: &mut Buffer,
    area: Rect,
    row: u16,
    name: &str,
    phase: Option<&PhaseRow>,
    theme: Theme,
) {
    let mut writer = RowWriter::at(buffer, area, row, theme);
    let Some(phase) = phase.filter(|phase| phase.total > 1) else {
        writer.put(name, Tone::Strong);
        return;
    };
    let width = writer.room();
    writer.field(name, (width / 4).clamp(1, 16), Tone::Strong);
    if width >= 48 {
        let tone = if phase.failed > 0 { Tone::Warn } else { Tone::Good };
        let length = if width >= 100 { 20 } else { 10 };
        writer.field(&bar(length, phase.done, phase.failed, phase.total), length, tone);
    }
    let room = writer.room();
    writer.put(&standing(phase, room), Tone::Dim);
}

/// How a phase stands, as much of it as fits: `8 of 12 done · 1 failed · 3 running`.
fn standing(phase: &PhaseRow, room: usize) -> String {
    let mut words = format!("{} of {} done", phase.done, phase.total);
    for (number, word) in [(phase.failed, "failed"), (phase.running, "running"), (phase.waiting, "waiting")] {
        let more = format!(" · {number} {word}");
        if number > 0 && text_columns(&words) + text_columns(&more) <= room {
            words.push_str(&more);
        }
    }
    words
}

/// How the room for texts is shared on a screen: what the longest label wants, as far as what was done last
/// keeps a part that says something.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    label: usize,
    last: usize,
}

impl Share {
    /// What these rows want, each with what it did last.
    pub(super) fn of<'a>(rows: impl Iterator<Item = (&'a AgentRow, String)>) -> Self {
        rows.fold(Self::default(), |share, (row, last)| Self {
            label: share.label.max(text_columns(&row.label)),
            last: share.last.max(text_columns(&last)),
        })
    }

    /// The columns of the label, of so many for both.
    fn label(self, texts: usize) -> usize {
        let kept = self.last.clamp(LEAST_LAST, (texts * 2 / 5).max(LEAST_LAST));
        self.label.min(texts.saturating_sub(kept + 2)).max(texts / 5)
    }
}

/// What was done last has so many columns at least: `no findings`, `asks again in 43 s`.
const LEAST_LAST: usize = 18;

/// Draws an agent, behind its mark.
pub(super) fn draw(writer: &mut RowWriter<'_>, row: &AgentRow, last: &str, share: Share, now: u64) {
    let width = writer.room();
    let tone = tone(row.state);
    writer.field(row.state.mark().encode_utf8(&mut [0; 4]), 1, tone);
    let time = short_time(Fleet::since(end_or(row, now), begin(row)));
    let cost = row.cost_nano.map_or_else(|| "$?".to_owned(), |nano| dollars(Some(nano)));
    match width {
        0..28 => drop(writer.put(&row.label, Tone::Plain)),
        28..40 => drop(writer.field(&row.label, width - 2 - 10, Tone::Plain).put(row.act, tone)),
        40..66 => {
            writer.field(&row.label, width - 2 - 10 - 7, Tone::Plain).field(row.act, 9, tone).right(
                &time,
                6,
                Tone::Dim,
            );
        }
        _ => {
            // Figures have the room they need, what was done last has what the label leaves.
            let figures = if width >= 110 { 7 + 8 + 9 + 9 } else { 7 + 9 };
            let texts = width - 2 - 10 - figures;
            let label = share.label(texts);
            writer.field(&row.label, label, Tone::Plain).field(row.act, 9, tone);
            writer.field(last, texts - label - 2, Tone::Dim).right(&time, 6, Tone::Dim);
            if width >= 110 {
                writer.right(&count(row.turns, "turn"), 8, Tone::Dim).right(
                    &tokens(row.tokens),
                    7,
                    Tone::Dim,
                );
            }
            writer.right(&cost, 8, Tone::Dim);
        }
    }
}

/// When the time of a row begins: for an agent that has ended its start, for any other the step it is at.
fn begin(row: &AgentRow) -> u64 {
    if has_ended(row.state) { row.started_at } else { row.since }
}

fn end_or(row: &AgentRow, now: u64) -> u64 {
    if has_ended(row.state) { row.since } else { now }
}

/// Whether nothing more comes of an agent.
pub(super) fn has_ended(state: AgentState) -> bool {
    matches!(state, AgentState::Failed | AgentState::Stopped | AgentState::Done)
}

/// What a state means for the eye.
pub(super) fn tone(state: AgentState) -> Tone {
    match state {
        AgentState::Asks => Tone::Warn,
        AgentState::Running => Tone::Busy,
        AgentState::Failed => Tone::Bad,
        AgentState::Done => Tone::Good,
        AgentState::Waiting | AgentState::Resting | AgentState::Stopped => Tone::Dim,
    }
}

/// A role in one word.
pub(super) fn role_word(role: Role) -> &'static str {
    match role {
        Role::Lead => "lead",
        Role::Worker => "worker",
        Role::Verifier => "verifier",
        Role::Task => "task agent",
        Role::Callee => "program's agent",
        Role::Teammate => "teammate",
    }
}
