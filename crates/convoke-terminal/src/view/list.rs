//! The rows of a list and where one stands in them. The chosen row is known by what it is, not by its number,
//! so that it stays the same one when others come before it.

use std::borrow::Cow;

use convoke_kernel::RunId;
use convoke_view::{AgentRow, FindingRow, LetterRow, RowFilter, TaskRow};

use crate::screen_update::Asking;

use super::{Pane, Seen};

/// The rows of one list that pass the filter.
pub(super) enum Rows<'a> {
    Agents(Vec<&'a AgentRow>),
    Tasks(Vec<&'a TaskRow>),
    Mail(Vec<&'a LetterRow>),
    Findings(Vec<&'a FindingRow>),
    Questions(&'a [Asking]),
}

impl<'a> Rows<'a> {
    /// The rows of a list. Questions are never filtered: none is overlooked.
    pub(super) fn of(pane: Pane, seen: &Seen<'a>, only: &RowFilter, run: Option<&RunId>) -> Self {
        let fleet = seen.fleet;
        match pane {
            Pane::Agents => {
                let mut rows = fleet.agents(only);
                rows.retain(|row| run.is_none() || row.run.as_ref() == run);
                Self::Agents(rows)
            }
            Pane::Tasks => Self::Tasks(fleet.tasks(only)),
            Pane::Mail => Self::Mail(fleet.letters(only)),
            Pane::Findings => {
                let mut rows = fleet.findings(only);
                rows.retain(|row| run.is_none_or(|run| row.run == *run));
                Self::Findings(rows)
            }
            Pane::Questions => Self::Questions(seen.questions),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Agents(rows) => rows.len(),
            Self::Tasks(rows) => rows.len(),
            Self::Mail(rows) => rows.len(),
            Self::Findings(rows) => rows.len(),
            Self::Questions(rows) => rows.len(),
        }
    }

    /// What the row of this number is, as long as it is there.
    fn key(&self, at: usize) -> Cow<'_, str> {
        match self {
            Self::Agents(rows) => rows[at].id.as_str().into(),
            Self::Tasks(rows) => rows[at].id.as_str().into(),
            Self::Mail(rows) => rows[at].id.as_str().into(),
            Self::Findings(rows) => {
                format!("{}\n{}\n{}", rows[at].run, rows[at].label, rows[at].claim).into()
            }
            Self::Questions(rows) => rows[at].id.to_string().into(),
        }
    }

    /// The row in which something happened last, if one can tell.
    pub(super) fn latest(&self) -> Option<usize> {
        match self {
            Self::Agents(rows) => (0..rows.len()).max_by_key(|at| rows[*at].since),
            Self::Mail(rows) => rows.len().checked_sub(1),
            Self::Tasks(_) | Self::Findings(_) | Self::Questions(_) => None,
        }
    }
}

/// Where one stands in a list.
#[derive(Debug, Default)]
pub(super) struct Standing {
    chosen: Option<String>,
    /// Where it was when it was last looked for.
    at: usize,
    /// The first row of the screen that is drawn, headings included.
    top: usize,
}

impl Standing {
    /// The number of the chosen row. If it has gone, the one in its place is chosen; among questions none is,
    /// so that an answer never goes to another question.
    pub(super) fn settle(&mut self, rows: &Rows<'_>) -> Option<usize> {
        let len = rows.len();
        let found = self.chosen.as_deref().and_then(|chosen| {
            let is_there = self.at < len && rows.key(self.at) == chosen;
            if is_there { Some(self.at) } else { (0..len).find(|at| rows.key(*at) == chosen) }
        });
        match found {
            Some(at) => self.at = at,
            None if len == 0 || matches!(rows, Rows::Questions(_)) => {
                self.chosen = None;
                return None;
            }
            None => self.choose(self.at.min(len - 1), rows),
        }
        Some(self.at)
    }

    /// Chooses a row by its number.
    pub(super) fn choose(&mut self, at: usize, rows: &Rows<'_>) {
        if at < rows.len() {
            self.chosen = Some(rows.key(at).into_owned());
            self.at = at;
        }
    }

    /// Chooses nothing.
    pub(super) fn forget(&mut self) {
        self.chosen = None;
    }

    /// Scrolls no further than it takes to see this row of the screen, of so many, and gives the first that
    /// is drawn.
    pub(super) fn scroll_to(&mut self, row: Option<usize>, all: usize, height: usize) -> usize {
        scroll(&mut self.top, row, all, height)
    }
}

/// Moves `top` no further than it takes to see a row.
pub(super) fn scroll(top: &mut usize, row: Option<usize>, all: usize, height: usize) -> usize {
    if let Some(row) = row {
        *top = (*top).min(row).max((row + 1).saturating_sub(height));
    }
    *top = (*top).min(all.saturating_sub(height));
    *top
}

/// A way to move through rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    AnswerMethod(isize),
    Screens(isize),
    Home,
    End,
}

impl Move {
    /// Where this leads from a row, of so many, with so many on the screen.
    pub(super) fn from(self, at: usize, all: usize, height: usize) -> usize {
        let last = all.saturating_sub(1);
        let screen = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(isize::MAX);
        match self {
            Self::AnswerMethod(steps) => at.saturating_add_signed(steps).min(last),
            Self::Screens(screens) => at.saturating_add_signed(screens.saturating_mul(screen)).min(last),
            Self::Home => 0,
            Self::End => last,
        }
    }
}
