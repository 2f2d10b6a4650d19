//! Where the person writes: several lines, history, completion, paste that does not execute, and commands
//! that begin with a slash. It knows what was typed and what could be typed; it does nothing of it.

mod buffer;
mod command;
mod complete;
mod draw;
pub(crate) mod history;
mod keys;
mod layout;
#[cfg(test)]
mod menu_tests;
mod secret;
mod table;
#[cfg(test)]
mod tests;
mod tokens;

use std::cell;
use std::ops::Range;

use crossterm::event::{KeyEvent, KeyEventKind};
use ratatui::text::Line;

use crate::screen_update::Candidate;
use crate::user_action::UserAction;

use buffer::{Buffer, Cell, Kind};
use complete::{Offers, Word, WordKind, is_picked, names, take, word_at};
use history::{History, Search};
use keys::{Act, act};
use layout::Layout;

pub use command::{CommandRow, Given, command_help, nearest_command};
pub use table::COMMANDS;

/// What is being written.
#[derive(Debug, Default)]
pub(crate) struct Composer {
    buffer: Buffer,
    history: History,
    /// What was cut last.
    cut: Vec<Cell>,
    search: Option<Search>,
    offers: Option<Offers>,
    /// The word for which candidates were asked for.
    wanted: Option<Word>,
    /// Whether what is chosen from the candidates is done at once.
    picks: bool,
    /// Whether the person has closed the menu of commands.
    shut: bool,
    /// Whether the beginning was pasted: it runs nothing.
    pasted: bool,
    /// The workflows that can be called by their names.
    workflows: Vec<Candidate>,
    /// The column that moving up and down keeps to.
    column: Option<usize>,
    /// How many columns a row had when it was drawn last, so that up and down mean what the person sees; 0
    /// before that.
    room: cell::Cell<usize>,
}

/// What came of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyOutcome {
    /// The key was taken, and the caller has nothing to do.
    Nothing,
    /// The picture changed.
    Changed,
    /// The person is done with it: a text or a command, as it is to be asked for. The composer is empty now.
    Done(UserAction),
    /// A command that does not exist: this is to be said. What was typed stays.
    Wrong(String),
    /// Candidates for the word at the cursor are wanted. The picture may have changed too.
    Wants(UserAction),
    /// The key means nothing here.
    NotMine,
}

/// The composer as rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Composed {
    pub(crate) lines: Vec<Line<'static>>,
    /// Where the cursor stands in them: column and row.
    pub(crate) cursor: (u16, u16),
}

impl Composer {
    /// With what was written in earlier sessions, the oldest first.
    pub(crate) fn new(history: Vec<String>) -> Self {
        Self { history: History::of(history), ..Self::default() }
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> KeyOutcome {
        if key.kind == KeyEventKind::Release {
            return KeyOutcome::Nothing;
        }
        let Some(act) = act(key) else { return KeyOutcome::NotMine };
        let column = self.column.take().filter(|_| matches!(act, Act::Up | Act::Down));
        if let Some(wrote) = self.searching(act).or_else(|| self.choosing(act)) {
            return wrote;
        }
        let wrote = self.edit(act, column);
        self.follow();
        if matches!(act, Act::Type(_) | Act::Backspace) {
            self.menu();
        }
        wrote
    }

    /// Takes in which workflows there are.
    pub(crate) fn know(&mut self, workflows: Vec<Candidate>) {
        self.workflows = workflows;
        // The menu may stand there already.
        self.menu();
    }

    /// The commands are a menu from their slash on, until the person closes it.
    fn menu(&mut self) {
        let word = word_at(&self.buffer).filter(|word| word.of == WordKind::Name);
        self.shut &= word.is_some();
        if let Some(word) = word.filter(|_| !self.shut) {
            let found = names(&word.text, &self.workflows);
            self.offers = (!found.is_empty()).then(|| Offers::new(word, found));
        }
    }

    /// Has the person pick what a command takes.
    pub(crate) fn pick(&mut self, command: &str) -> KeyOutcome {
        self.buffer = Buffer::of(&format!("/{command} "));
        self.pick_here()
    }

    /// Whether something is to be picked.
    pub(crate) fn is_picking(&self) -> bool {
        self.picks
    }

    fn pick_here(&mut self) -> KeyOutcome {
        let Some(word) = word_at(&self.buffer) else { return KeyOutcome::Changed };
        self.picks = true;
        self.ask(word)
    }

    /// Takes what was pasted: it stands there as it is, and nothing of it is executed, whatever line breaks
    /// it has.
    pub(crate) fn paste(&mut self, text: &str) {
        self.column = None;
        self.offers = None;
        self.pasted |= self.buffer.cursor() == 0;
        if let Some(search) = &mut self.search {
            search.words.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
            search.look(&self.history, None);
            self.show_found();
        } else {
            self.buffer.paste(text);
            self.follow();
        }
    }

    /// Takes candidates for a word; those for a word that is not there any more are passed over. A single one
    /// is taken at once, and if it is a directory, what is in it is wanted next.
    pub(crate) fn offer(&mut self, word: &str, candidates: Vec<Candidate>) -> KeyOutcome {
        self.picks &= !candidates.is_empty();
        match self.wanted.take_if(|wanted| wanted.text == word) {
            Some(wanted)
                if self.search.is_none()
                    && !candidates.is_empty()
                    && word_at(&self.buffer).as_ref() == Some(&wanted) =>
            {
                self.open(wanted, candidates)
            }
            _ => KeyOutcome::Nothing,
        }
    }

    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.cells().is_empty() && self.search.is_none()
    }

    /// Throws away what is written; it can be had back from the history.
    pub(crate) fn clear(&mut self) {
        if let Some(search) = self.search.take() {
            self.buffer = search.before;
        }
        self.remember();
    }

    /// What went into the history since the last call, to be kept in a file.
    pub(crate) fn remembered(&mut self) -> Vec<String> {
        self.history.take_fresh()
    }

    fn edit(&mut self, act: Act, column: Option<usize>) -> KeyOutcome {
        let at = self.buffer.cursor();
        let count = self.buffer.cells().len();
        let line = self.buffer.line();
        match act {
            Act::Type(c) => {
                self.pasted &= at > 0;
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            Act::Break => self.insert("\n"),
            // Enter right after a completion was asked for is not meant to send what is half written.
            Act::Enter if self.wanted.take().is_some() => return KeyOutcome::Nothing,
            Act::Enter => return self.enter(),
            Act::Backspace => return self.delete(at.saturating_sub(1)..at),
            Act::DeleteOrLeave if count == 0 => return KeyOutcome::NotMine,
            Act::Delete | Act::DeleteOrLeave => return self.delete(at..at.saturating_add(1).min(count)),
            Act::Left => return self.go(at.saturating_sub(1)),
            Act::Right => return self.go(at + 1),
            Act::WordLeft => return self.go(self.buffer.word_before(Kind::Name)),
            Act::WordRight => return self.go(self.buffer.word_after(Kind::Name)),
            Act::LineStart => return self.go(line.start),
            Act::LineEnd => return self.go(line.end),
            Act::TextStart => return self.go(0),
            Act::TextEnd => return self.go(count),
            Act::Up | Act::Down => return self.vertical(act == Act::Up, column),
            Act::CutBlankWord => return self.cut(self.buffer.word_before(Kind::NotBlank)..at),
            Act::CutWordLeft => return self.cut(self.buffer.word_before(Kind::Name)..at),
            Act::CutWordRight => return self.cut(at..self.buffer.word_after(Kind::Name)),
            // At the edge of a line the break goes, so that the same key again takes the next line.
            Act::CutToStart => return self.cut(line.start.min(at.saturating_sub(1))..at),
            Act::CutToEnd => return self.cut(at..line.end.max(at.saturating_add(1).min(count))),
            Act::PutBack if self.cut.is_empty() => return KeyOutcome::Nothing,
            Act::PutBack => self.buffer.insert_cells(&self.cut),
            Act::Search => self.search = Some(Search::new(self.buffer.clone())),
            Act::Tab => return self.complete(),
            Act::BackTab | Act::Escape | Act::Interrupt => return KeyOutcome::NotMine,
        }
        KeyOutcome::Changed
    }

    /// Sends, or breaks the line where a backslash says so.
    fn enter(&mut self) -> KeyOutcome {
        if self.is_empty() {
            return KeyOutcome::NotMine;
        }
        let at = self.buffer.cursor();
        let before =
            at.checked_sub(1).and_then(|before| self.buffer.cells().get(before)).and_then(Cell::grapheme);
        if before == Some("\\") {
            self.buffer.cut(at.saturating_sub(1)..at);
            self.insert("\n");
            return KeyOutcome::Changed;
        }
        let text = self.buffer.text();
        if text.trim().is_empty() {
            return KeyOutcome::Nothing;
        }
        if secret::holds_key(&text) {
            return KeyOutcome::Wrong(secret::WRONG.to_owned());
        }
        if self.pasted && command::runs(&text) {
            return KeyOutcome::Wrong(
                "what is pasted runs nothing: type the ! yourself, or !! to say it".to_owned(),
            );
        }
        let typed = self.buffer.cells().first().and_then(Cell::grapheme).is_some();
        match command::read(&text, typed, &self.workflows) {
            Err(wrong) => KeyOutcome::Wrong(wrong),
            Ok(ask) => {
                self.remember();
                KeyOutcome::Done(ask)
            }
        }
    }

    /// Puts what is written into the history and begins with nothing.
    fn remember(&mut self) {
        let text = std::mem::take(&mut self.buffer).text();
        self.history.remember(&text);
        self.offers = None;
        self.wanted = None;
        self.column = None;
        self.picks = false;
        self.shut = false;
        self.pasted = false;
    }

    fn insert(&mut self, text: &str) {
        self.buffer.insert(text);
    }

    fn delete(&mut self, range: Range<usize>) -> KeyOutcome {
        if self.buffer.cut(range).is_empty() { KeyOutcome::Nothing } else { KeyOutcome::Changed }
    }

    fn cut(&mut self, range: Range<usize>) -> KeyOutcome {
        if range.is_empty() {
            return KeyOutcome::Nothing;
        }
        self.cut = self.buffer.cut(range);
        KeyOutcome::Changed
    }

    fn go(&mut self, to: usize) -> KeyOutcome {
        if self.buffer.go(to) { KeyOutcome::Changed } else { KeyOutcome::Nothing }
    }

    /// One row up or down; from the first and the last one on, through the history.
    fn vertical(&mut self, up: bool, column: Option<usize>) -> KeyOutcome {
        let room = if self.room.get() == 0 { usize::MAX } else { self.room.get() };
        let layout = Layout::of(self.buffer.cells(), room);
        let at = self.buffer.cursor();
        let column = column.unwrap_or_else(|| layout.places.get(at).map_or(0, |place| place.1));
        if let Some(to) = layout.vertical(at, up, column) {
            self.column = Some(column);
            return self.go(to);
        }
        match self.history.step(up, &self.buffer) {
            Some(buffer) => {
                self.buffer = buffer;
                self.pasted = false;
            }
            None => return KeyOutcome::Nothing,
        }
        KeyOutcome::Changed
    }

    /// What a key means while the history is searched; `None` if it ends the search and means what it always
    /// does.
    fn searching(&mut self, act: Act) -> Option<KeyOutcome> {
        let search = self.search.as_mut()?;
        match act {
            Act::Type(c) => {
                search.words.push(c);
                search.look(&self.history, search.found);
            }
            Act::Backspace => {
                search.words.pop();
                search.look(&self.history, None);
            }
            Act::Search => search.look_older(&self.history),
            Act::Escape | Act::Interrupt => {
                self.buffer = self.search.take()?.before;
                return Some(if act == Act::Escape { KeyOutcome::Changed } else { KeyOutcome::NotMine });
            }
            _ => {
                let search = self.search.take()?;
                if let Some(found) = search.found {
                    // What is shown is what is taken, even if it was found half changed before.
                    self.history.go(found, &search.before);
                }
                return (act == Act::Enter).then_some(KeyOutcome::Changed);
            }
        }
        self.show_found();
        Some(KeyOutcome::Changed)
    }

    /// Shows what the search has found, or what was there before it.
    fn show_found(&mut self) {
        if let Some(search) = &self.search {
            let found = search.found.and_then(|found| self.history.text(found));
            self.buffer = found.map_or_else(|| search.before.clone(), Buffer::of);
        }
    }

    /// What a key means while candidates are shown; `None` if it means what it always does.
    fn choosing(&mut self, act: Act) -> Option<KeyOutcome> {
        let offers = self.offers.as_mut()?;
        match act {
            Act::Tab if offers.left.len() == 1 || offers.is_menu() => return Some(self.take_choice()),
            Act::Tab | Act::Down => offers.walk(true),
            Act::BackTab | Act::Up => offers.walk(false),
            Act::Right => return Some(self.take_choice()),
            Act::Enter => {
                // What is written out already need not be taken first: it is sent.
                let is_there = word_at(&self.buffer).map(|word| word.text)
                    == offers.choice().map(|one| one.text.clone());
                if self.picks {
                    self.take_choice();
                    return Some(self.enter());
                }
                return (!is_there).then(|| self.take_choice());
            }
            Act::Escape => {
                self.shut = offers.is_menu();
                self.picks = false;
                self.offers = None;
            }
            _ => return None,
        }
        Some(KeyOutcome::Changed)
    }

    /// What could stand at the cursor: shown, or asked for.
    fn complete(&mut self) -> KeyOutcome {
        if self.is_empty() {
            return KeyOutcome::NotMine;
        }
        let Some(word) = word_at(&self.buffer) else { return KeyOutcome::Nothing };
        match &word.of {
            WordKind::Name => match names(&word.text, &self.workflows) {
                candidates if candidates.is_empty() => KeyOutcome::Nothing,
                candidates => self.open(word, candidates),
            },
            _ => self.ask(word),
        }
    }

    /// Asks for candidates, unless the word holds an API key: that is passed on to no other part.
    fn ask(&mut self, word: Word) -> KeyOutcome {
        if secret::holds_key(&word.text) {
            return KeyOutcome::Changed;
        }
        let command = if let WordKind::Argument(command) = &word.of { Some(command.clone()) } else { None };
        let ask = UserAction::Complete { word: word.text.clone(), command };
        self.wanted = Some(word);
        KeyOutcome::Wants(ask)
    }

    /// Shows candidates; a single one is taken at once, unless no letter of its name is typed yet (`dir/`).
    fn open(&mut self, word: Word, candidates: Vec<Candidate>) -> KeyOutcome {
        let single = candidates.len() == 1 && !word.text.ends_with('/') && !self.picks;
        let offers = Offers::new(word, candidates);
        self.offers = Some(if self.picks { offers.wide() } else { offers });
        if single { self.take_choice() } else { KeyOutcome::Changed }
    }

    /// Takes the candidate that is chosen.
    fn take_choice(&mut self) -> KeyOutcome {
        let choice = self.offers.take().and_then(|offers| offers.choice().cloned());
        let (Some(choice), Some(word)) = (choice, word_at(&self.buffer)) else { return KeyOutcome::Changed };
        if take(&mut self.buffer, &word, &choice.text)
            && let Some(word) = word_at(&self.buffer)
        {
            return self.ask(word);
        }
        if word.of == WordKind::Name && is_picked(&choice.text) {
            return self.pick_here();
        }
        KeyOutcome::Changed
    }

    /// Keeps the candidates to what is written now, and forgets those that come too late.
    fn follow(&mut self) {
        if self.offers.is_none() && self.wanted.is_none() {
            self.picks = false;
            return;
        }
        let now = word_at(&self.buffer);
        self.offers.take_if(|offers| !offers.follow(now.as_ref()));
        self.wanted.take_if(|wanted| now.as_ref() != Some(wanted));
        self.picks &= self.offers.is_some() || self.wanted.is_some();
    }
}
