//! The row at the bottom: the keys that work now, a remark, or what is to be said yes or no to.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use convoke_kernel::{AgentId, Role, RunId};
use convoke_view::{AgentRow, AgentState, FilePosition};

use crate::screen_update::About;
use crate::text::{Theme, Tone, cut, text_columns};

use super::findings::place_text;
use super::list::Rows;
use super::pager::Subject;
use super::paint::{RowWriter, narrow};
use super::{FleetView, Pane, Seen, wrap};

/// Something that is done only if the person says so with the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pending {
    Stop(AgentId, String),
    RetryRun(RunId, String),
    /// One of several places.
    Open(Vec<FilePosition>),
}

/// A key and what it does.
type Hint = (&'static str, &'static str);

impl Pending {
    pub(super) fn question(&self) -> String {
        match self {
            Self::Stop(_, label) => format!("stop \"{}\"? y/n", cut(label, 40)),
            Self::RetryRun(_, title) => format!("try again what failed in \"{}\"? y/n", cut(title, 40)),
            Self::Open(places) => {
                let numbered =
                    (1..=9).zip(places).map(|(number, place)| format!("{number} {}", place_text(place)));
                format!("open which? {}", numbered.collect::<Vec<_>>().join("  "))
            }
        }
    }
}

/// Draws a text, broken into the rows there are.
pub(super) fn draw_text(buffer: &mut Buffer, area: Rect, text: &str, tone: Tone, theme: Theme) {
    let rows = wrap::rows(text, usize::from(area.width));
    for row in 0..area.height {
        let Some(range) = rows.get(usize::from(row)) else { return };
        // The last row there is room for takes the rest, so that the mark says that something is missing.
        let end = if row + 1 == area.height { text.len() } else { range.end };
        RowWriter::at(buffer, area, row, theme).put(text[range.start..end].trim_end(), tone);
    }
}

/// How many rows a text at the bottom takes, where there are this many.
pub(super) fn rows_of(text: &str, area: Rect) -> u16 {
    let most = if area.height >= 10 { 3 } else { 1 };
    narrow(wrap::rows(text, usize::from(area.width)).len()).clamp(1, most)
}

/// Draws as many keys as fit; help and the way back are always among them.
pub(super) fn draw_keys(buffer: &mut Buffer, area: Rect, hints: &[Hint], back: &'static str, theme: Theme) {
    let ends: [Hint; 2] = [("?", "help"), ("q", back)];
    let width = |hint: &Hint| text_columns(hint.0) + 1 + text_columns(hint.1) + 2;
    let mut room = usize::from(area.width).saturating_sub(ends.iter().map(width).sum::<usize>() - 2);
    let mut writer = RowWriter::at(buffer, area, 0, theme);
    let fitting = hints.iter().filter(|hint| {
        let fits = width(hint) <= room;
        room -= if fits { width(hint) } else { 0 };
        fits
    });
    for (key, word) in fitting.chain(&ends) {
        writer.put(key, Tone::Key).skip(1).put(word, Tone::Dim).skip(2);
    }
}

impl FleetView {
    /// The keys that work now, the most important first, and what `q` does.
    pub(super) fn hints(
        &self,
        front: &Rows<'_>,
        chosen: Option<usize>,
        seen: &Seen<'_>,
    ) -> (Vec<Hint>, &'static str) {
        if self.help.is_some() {
            return (vec![("↑↓", "scroll")], "back");
        }
        if let Some(pager) = &self.pager {
            let mut hints = match pager.subject {
                Subject::Question(id) => self.answers(id, seen),
                Subject::Entry(_) | Subject::Other if pager.is_searched() => {
                    vec![("/", "search"), ("n N", "next, previous")]
                }
                Subject::Entry(_) | Subject::Other => vec![("/", "search")],
            };
            if !pager.places.is_empty() {
                hints.push(("o", "open in editor"));
            }
            hints.push(("↑↓", "scroll"));
            return (hints, "back");
        }
        if self.inside {
            return (self.page_hints(seen), "back");
        }
        (self.list_hints(front, chosen, seen), "session")
    }

    fn page_hints(&self, seen: &Seen<'_>) -> Vec<Hint> {
        let Some(looked) = &self.looked else { return Vec::new() };
        let mut hints = Vec::new();
        if looked.entry(looked.chosen()).is_some() {
            hints.extend([("Enter", "all of it"), ("/", "search")]);
        }
        if !looked.needle().is_empty() {
            hints.push(("n N", "next, previous"));
        }
        hints.push(("F", if looked.follows() { "stop following" } else { "follow" }));
        if looked.entry(looked.chosen()).is_some_and(|entry| entry.place.is_some()) {
            hints.push(("o", "open in editor"));
        }
        if let Some(row) = seen.fleet.agent(looked.agent()) {
            hints.extend(agent_hints(row));
        }
        hints
    }

    fn list_hints(&self, front: &Rows<'_>, chosen: Option<usize>, seen: &Seen<'_>) -> Vec<Hint> {
        let mut hints = Vec::new();
        match (front, chosen) {
            (Rows::Agents(rows), Some(at)) => {
                hints.push(("Enter", "its turns"));
                hints.extend(agent_hints(rows[at]));
            }
            (Rows::Questions(rows), Some(at)) => {
                hints.extend(self.answers(rows[at].id, seen));
                hints.push(("Enter", "all of it"));
            }
            (Rows::Questions([_, ..]), None) => hints.push(("↑↓", "choose a question")),
            (Rows::Findings(rows), Some(at)) => {
                hints.push(("Enter", "all of it"));
                if !rows[at].places.is_empty() {
                    hints.push(("o", "open in editor"));
                }
            }
            (Rows::Tasks(rows), Some(at)) => {
                hints.push(("Enter", "all of it"));
                if matches!(rows[at].state, "failed" | "cancelled") {
                    hints.push(("r", "retry"));
                }
            }
            (Rows::Mail(_), Some(_)) => hints.push(("Enter", "all of it")),
            (_, None) => {}
        }
        if self.pane != Pane::Questions {
            hints.extend([("/", "filter"), ("f", "state")]);
        }
        if matches!(self.pane, Pane::Agents | Pane::Findings) && !seen.fleet.runs().is_empty() {
            hints.push(("g", "run"));
        }
        if matches!(self.pane, Pane::Agents | Pane::Mail) {
            hints.push(("F", if self.follows { "stop following" } else { "follow" }));
        }
        hints.push(("Tab", "next list"));
        hints
    }

    fn answers(&self, id: u64, seen: &Seen<'_>) -> Vec<Hint> {
        let Some(asking) = seen.questions.iter().find(|asking| asking.id == id) else { return Vec::new() };
        match &asking.about {
            _ if !self.has_seen(id) && self.pager.is_some() => vec![("n", "no"), ("PgDn y", "yes")],
            _ if !self.has_seen(id) => vec![("n", "no")],
            About::Checkpoint => vec![("y", "answer in words")],
            About::Call { always: Some(_) } => vec![("y", "yes"), ("n", "no"), ("a", "always")],
            About::Call { always: None } | About::Workflow => vec![("y", "yes"), ("n", "no")],
        }
    }
}

fn agent_hints(row: &AgentRow) -> Vec<Hint> {
    let mut hints = Vec::new();
    if takes_messages(row.role) {
        hints.push(("m", "message"));
    }
    match row.state {
        AgentState::Failed | AgentState::Stopped => hints.push(("r", "retry")),
        AgentState::Asks | AgentState::Running | AgentState::Waiting | AgentState::Resting => {
            hints.push(("s", "stop"))
        }
        AgentState::Done => {}
    }
    hints
}

/// Only the lead and teammates read mail.
pub(super) fn takes_messages(role: Role) -> bool {
    matches!(role, Role::Lead | Role::Teammate)
}
