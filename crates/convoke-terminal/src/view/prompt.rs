//! A line that is being written at the bottom: a filter, a text to search for, a message, an answer. It knows
//! the line and what it is for, and sends nothing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_segmentation::UnicodeSegmentation;

use convoke_kernel::AgentId;

use crate::text::{Theme, Tone, cut, shown, text_columns};

use super::paint::RowWriter;

/// What a line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Rows in which it stands.
    Filter,
    /// Where it stands in a text.
    Search,
    /// For an agent.
    Message {
        /// The agent it goes to.
        to: AgentId,
        /// What people call it.
        label: String,
    },
    /// The answer to a question.
    Words(u64),
}

/// What came of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    Nothing,
    Changed,
    Done,
    GivenUp,
}

/// A line that is being written.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) purpose: Purpose,
    pub(super) text: String,
    /// Where the cursor stands, in bytes, always between two characters.
    at: usize,
}

impl Prompt {
    pub(super) fn new(purpose: Purpose, text: &str) -> Self {
        Self { purpose, text: text.to_owned(), at: text.len() }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let before = self.before();
        let after = self.after();
        match key.code {
            KeyCode::Enter => return Typed::Done,
            KeyCode::Esc => return Typed::GivenUp,
            KeyCode::Char('c') if control => return Typed::GivenUp,
            KeyCode::Char('u') if control => drop(self.text.drain(..std::mem::take(&mut self.at))),
            KeyCode::Char('w') if control => {
                let head = self.text[..self.at].trim_end();
                let from = head
                    .rfind(char::is_whitespace)
                    .map_or(0, |at| at + head[at..].chars().next().map_or(0, char::len_utf8));
                self.text.drain(from..self.at);
                self.at = from;
            }
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.text.len(),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => {
                self.text.drain(before..self.at);
                self.at = before;
            }
            KeyCode::Delete => drop(self.text.drain(self.at..after)),
            KeyCode::Left => self.at = before,
            KeyCode::Right => self.at = after,
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => return Typed::Nothing,
        }
        Typed::Changed
    }

    /// Takes what was pasted. Line breaks are part of a message, and of nothing else; none of them sends it.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        match self.purpose {
            Purpose::Message { .. } | Purpose::Words(_) => self.insert(&text),
            Purpose::Filter | Purpose::Search => self.insert(text.replace('\n', " ").trim()),
        }
    }

    /// Draws itself, and says where the cursor stands.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect, theme: Theme) -> Option<(u16, u16)> {
        if area.height == 0 || area.width == 0 {
            return None;
        }
        let mut writer = RowWriter::at(buffer, area, 0, theme);
        let most = writer.room() / 2;
        writer.put(&cut(&self.title(), most), Tone::Key);
        // The cursor takes a column of its own. What does not fit is left out at the beginning, where it was
        // written first.
        let room = writer.room().saturating_sub(1);
        let visible = |text: &str| shown(text).replace('\n', "⏎");
        let head = visible(&self.text[..self.at]);
        let tail = visible(&self.text[self.at..]);
        let mut used = 0;
        let fitting = head.grapheme_indices(true).rev().take_while(|(_, part)| {
            used += text_columns(part);
            used <= room
        });
        let from = fitting.last().map_or(head.len(), |(at, _)| at);
        writer.put(&head[from..], Tone::Plain);
        let cursor = writer.position();
        writer.put(&tail, Tone::Plain);
        Some((cursor.0.min(area.right().saturating_sub(1)), cursor.1))
    }

    fn title(&self) -> String {
        match &self.purpose {
            Purpose::Filter => "filter: ".to_owned(),
            Purpose::Search => "search: ".to_owned(),
            Purpose::Message { label, .. } => format!("to {label}: "),
            Purpose::Words(_) => "answer: ".to_owned(),
        }
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    fn before(&self) -> usize {
        self.text[..self.at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.at + self.text[self.at..].graphemes(true).next().map_or(0, str::len)
    }
}
