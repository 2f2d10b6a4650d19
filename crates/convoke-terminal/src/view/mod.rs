//! The fleet view: phases, agents, tasks, mail, findings and questions on the whole screen; from a run to an
//! agent to its turns, commands and outputs. It holds what is chosen, filtered and followed, and nothing that
//! has happened.

mod acts;
mod agents;
mod draw;
mod findings;
mod footer;
mod header;
mod help;
mod keys;
mod layout;
mod list;
mod mail;
mod page;
mod pager;
mod paint;
mod prompt;
mod questions;
mod tasks;
#[cfg(test)]
mod tests;
mod wrap;

use std::collections::BTreeSet;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use convoke_kernel::{AgentId, Event, RunId};
use convoke_view::{Fleet, RowFilter};

use crate::screen_update::{Asking, Facts};
use crate::text::{Theme, shown};
use crate::user_action::UserAction;

use footer::Pending;
use list::{Rows, Standing};
use page::Looked;
use pager::{Pager, Subject};
use prompt::Prompt;

/// Where the fleet view stands.
#[derive(Debug, Default)]
pub(crate) struct FleetView {
    pane: Pane,
    lists: [Standing; 5],
    only: RowFilter,
    run: Option<RunId>,
    /// Whether the row in which something happened last is chosen.
    follows: bool,
    looked: Option<Looked>,
    /// Whether keys go to the agent that is looked at, not to the list.
    inside: bool,
    pager: Option<Pager>,
    help: Option<Pager>,
    writing: Option<Prompt>,
    pending: Option<Pending>,
    remark: Option<(String, bool)>,
    /// A list was opened and has not been drawn since.
    is_fresh: bool,
    /// The questions that were read to their end.
    read: BTreeSet<u64>,
    frame: Frame,
}

/// What the last picture was like.
#[derive(Debug, Default)]
struct Frame {
    is_wide: bool,
    /// The agent that was shown beside the list without its turns.
    beside: Option<AgentId>,
    /// How many rows of the list there was room for.
    height: usize,
    /// The question of which everything was on the screen.
    whole_question: Option<u64>,
}

/// What came of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Did {
    /// Nothing.
    Nothing,
    /// The picture changed.
    Changed,
    /// The person wants this.
    Wants(UserAction),
    /// Back to the session.
    Leaves,
}

/// What the fleet view is drawn from.
pub(crate) struct Seen<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) facts: &'a Facts,
    /// The questions that wait, the oldest first.
    pub(crate) questions: &'a [Asking],
    /// The time, in milliseconds.
    pub(crate) now: u64,
    pub(crate) theme: Theme,
}

/// Which list is shown first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Agents,
    Tasks,
    Mail,
    Findings,
    Questions,
}

impl Pane {
    const ALL: [Self; 5] = [Self::Agents, Self::Tasks, Self::Mail, Self::Findings, Self::Questions];

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Tasks => "Tasks",
            Self::Mail => "Mail",
            Self::Findings => "Findings",
            Self::Questions => "Questions",
        }
    }
}

impl FleetView {
    /// Opens with this list in front.
    pub(crate) fn open(&mut self, pane: Pane) {
        self.pane = pane;
        self.inside = false;
        self.is_fresh = true;
        self.pager = None;
        self.help = None;
        self.writing = None;
        self.pending = None;
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        self.take(key, seen)
    }

    /// Takes what was pasted, where something is being written.
    pub(crate) fn paste(&mut self, text: &str) -> Did {
        let Some(prompt) = &mut self.writing else { return Did::Nothing };
        prompt.paste(text);
        self.filter_as_written();
        Did::Changed
    }

    /// Takes the whole history of the agent that was asked for.
    pub(crate) fn history(&mut self, agent: &AgentId, events: &[(u64, u64, Event)]) {
        if let Some(looked) = self.looked.as_mut().filter(|looked| looked.agent() == agent) {
            looked.read(events);
            self.update_pager();
        }
    }

    /// Takes an event of the agent that is looked at.
    pub(crate) fn hear(&mut self, agent: &AgentId, seq: u64, at: u64, event: &Event) {
        if let Some(looked) = self.looked.as_mut().filter(|looked| looked.agent() == agent) {
            looked.hear(seq, at, event);
            self.update_pager();
        }
    }

    /// Says something in the line at the bottom, until the next key.
    pub(crate) fn remark(&mut self, text: &str, is_bad: bool) {
        self.remark = Some((shown(text).split_whitespace().collect::<Vec<_>>().join(" "), is_bad));
    }

    /// Draws itself. Returns where the cursor stands, if something is being written.
    pub(crate) fn draw(&mut self, seen: &Seen<'_>, area: Rect, buffer: &mut Buffer) -> Option<(u16, u16)> {
        self.draw_all(seen, area, buffer)
    }

    /// What should be read to draw what is chosen: on a large screen the history of the chosen agent. To be
    /// asked after a frame; it asks for one history at a time, however fast the choice moves.
    pub(crate) fn wants(&mut self) -> Option<UserAction> {
        let is_reading = self.looked.as_ref().is_some_and(|looked| !looked.is_read());
        if self.inside || self.pager.is_some() || is_reading {
            return None;
        }
        let agent = self.frame.beside.take()?;
        match self.look_at(&agent) {
            Did::Wants(ask) => Some(ask),
            _ => None,
        }
    }

    fn rows<'a>(&self, seen: &Seen<'a>) -> Rows<'a> {
        Rows::of(self.pane, seen, &self.only, self.run.as_ref())
    }

    fn standing(&mut self) -> &mut Standing {
        &mut self.lists[self.pane.index()]
    }

    /// A text that belongs to an entry grows with it.
    fn update_pager(&mut self) {
        let (Some(pager), Some(looked)) = (&mut self.pager, &self.looked) else { return };
        if let Subject::Entry(at) = pager.subject
            && let Some(entry) = looked.entry(at)
        {
            pager.update(&entry.body);
        }
    }
}
