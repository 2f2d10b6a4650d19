//! One agent: what it is, and everything that happened to it by turns. It keeps the page as long as the
//! person looks at it, and the entry that is chosen; what the page says is folded elsewhere.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use convoke_kernel::{AgentId, Event};
use convoke_view::{AgentRow, Entry, EntryKind, Fleet, Page};

use crate::text::{Theme, Tone, count, cut, dollars, seconds, text_columns, tokens};

use super::agents::{has_ended, role_word, tone};
use super::list::{Move, scroll};
use super::paint::{self, RowWriter, narrow};

/// An agent that is looked at.
#[derive(Debug)]
pub(super) struct Looked {
    page: Page,
    is_read: bool,
    /// What happened while its history was being read: it comes after it.
    meanwhile: Vec<(u64, u64, Event)>,
    chosen: usize,
    top: usize,
    height: usize,
    follows: bool,
    needle: String,
}

impl Looked {
    pub(super) fn new(agent: AgentId) -> Self {
        let page = Page::new(agent);
        let meanwhile = Vec::new();
        let needle = String::new();
        Self { page, is_read: false, meanwhile, chosen: 0, top: 0, height: 0, follows: true, needle }
    }

    pub(super) fn agent(&self) -> &AgentId {
        &self.page.agent
    }

    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// Takes the whole history, and then what happened meanwhile.
    pub(super) fn read(&mut self, events: &[(u64, u64, Event)]) {
        let mut page = Page::new(self.page.agent.clone());
        for (seq, at, event) in events.iter().chain(&self.meanwhile) {
            page.hear(*seq, *at, event);
        }
        self.meanwhile.clear();
        self.show(page);
    }

    /// Shows this page.
    pub(super) fn show(&mut self, page: Page) {
        self.page = page;
        self.is_read = true;
        self.settle();
    }

    pub(super) fn hear(&mut self, seq: u64, at: u64, event: &Event) {
        if self.is_read {
            self.page.hear(seq, at, event);
            self.settle();
        } else {
            self.meanwhile.push((seq, at, event.clone()));
        }
    }

    pub(super) fn entry(&self, at: usize) -> Option<&Entry> {
        self.page.entries.get(at)
    }

    /// The number of the chosen entry.
    pub(super) fn chosen(&self) -> usize {
        self.chosen
    }

    /// Moves. At the last entry the page follows what comes; at any other entry it stays there.
    pub(super) fn step(&mut self, way: Move) {
        let all = self.page.entries.len();
        self.chosen = way.from(self.chosen, all, self.height);
        self.follows = self.chosen + 1 >= all;
    }

    pub(super) fn toggle_follow(&mut self) -> bool {
        self.follows = !self.follows;
        self.settle();
        self.follows
    }

    /// Goes to the first entry with this text from here on; says whether there is one.
    pub(super) fn search(&mut self, needle: &str) -> bool {
        self.needle = needle.to_lowercase();
        self.go(self.chosen, 1)
    }

    /// Goes to the next entry with the text, or to the one before, around the end.
    pub(super) fn next_hit(&mut self, backwards: bool) -> bool {
        let all = self.page.entries.len().max(1);
        if backwards { self.go(self.chosen + all - 1, all - 1) } else { self.go(self.chosen + 1, 1) }
    }

    pub(super) fn needle(&self) -> &str {
        &self.needle
    }

    /// Draws what the agent is and what happened to it.
    pub(super) fn draw(&mut self, buffer: &mut Buffer, area: Rect, look: &Look<'_>) {
        let area = draw_facts(buffer, area, self.agent(), look);
        let entries = &self.page.entries;
        self.height = usize::from(area.height);
        if !self.is_read {
            return paint::say_empty(buffer, area, "reading…", look.theme);
        }
        if entries.is_empty() {
            return paint::say_empty(
                buffer,
                area,
                "Nothing has happened to it yet. Its turns stand here.",
                look.theme,
            );
        }
        let top = scroll(&mut self.top, Some(self.chosen), entries.len(), self.height);
        let inner = paint::scroll_bar(buffer, area, entries.len(), top, look.theme);
        for (at, entry) in entries.iter().enumerate().skip(top).take(self.height) {
            let row = narrow(at - top);
            // A turn is named where it begins, and on the first row in any case.
            let is_named = at == top || entries[at - 1].turn != entry.turn;
            let is_chosen = at == self.chosen && look.has_keys;
            let mut writer = RowWriter::at(buffer, inner, row, look.theme);
            writer.put(if is_chosen { "›" } else { " " }, Tone::Key);
            draw_entry(&mut writer, entry, is_named);
            if is_chosen {
                paint::choose(buffer, inner, row, look.theme);
            }
        }
    }

    fn go(&mut self, from: usize, step: usize) -> bool {
        let all = self.page.entries.len();
        if all == 0 || self.needle.is_empty() {
            return false;
        }
        let has_it = |entry: &Entry| {
            [&entry.title, &entry.came_to, &entry.body]
                .iter()
                .any(|text| text.to_lowercase().contains(&self.needle))
        };
        let found =
            (0..all).map(|number| (from + number * step) % all).find(|at| has_it(&self.page.entries[*at]));
        if let Some(at) = found {
            self.chosen = at;
            self.follows = false;
        }
        found.is_some()
    }

    fn settle(&mut self) {
        let last = self.page.entries.len().saturating_sub(1);
        self.chosen = if self.follows { last } else { self.chosen.min(last) };
    }
}

/// What an agent is drawn with.
pub(super) struct Look<'a> {
    pub(super) row: Option<&'a AgentRow>,
    pub(super) now: u64,
    pub(super) has_keys: bool,
    pub(super) theme: Theme,
}

/// Draws what an agent is, and returns what is left below.
pub(super) fn draw_facts(buffer: &mut Buffer, area: Rect, agent: &AgentId, look: &Look<'_>) -> Rect {
    let rows: u16 = match area.height {
        0..3 => 0,
        3..10 => 1,
        _ => 3,
    };
    let below = Rect { y: area.y + rows, height: area.height - rows, ..area };
    let Some(row) = look.row.filter(|_| rows > 0) else {
        RowWriter::at(buffer, Rect { height: rows, ..area }, 0, look.theme).put(agent.as_str(), Tone::Strong);
        return below;
    };
    let tone = tone(row.state);
    let mut writer = RowWriter::at(buffer, area, 0, look.theme);
    writer.field(row.state.mark().encode_utf8(&mut [0; 4]), 1, tone);
    let doing = match has_ended(row.state) {
        true => format!("{} after {}", row.state.word(), seconds(Fleet::since(row.since, row.started_at))),
        false => format!("{} {}", row.act, seconds(Fleet::since(look.now, row.since))),
    };
    let role = role_word(row.role);
    let facts = if row.label == role { format!(" · {doing}") } else { format!(" · {role} · {doing}") };
    let label = writer.room().saturating_sub(text_columns(&facts)).max(writer.room() / 3);
    writer.put(&cut(&row.label, label), Tone::Strong).put(&facts, tone);
    if rows > 1 {
        let price = dollars(row.cost_nano);
        let turns = count(row.turns, "turn");
        let commands = count(row.commands, "command");
        let used = tokens(row.tokens);
        let figures = format!("{turns} · {commands} · {used} tokens · {price} · {} · {}", row.model, row.id);
        RowWriter::at(buffer, area, 1, look.theme).skip(2).put(&figures, Tone::Dim);
    }
    below
}

/// Draws an entry: its turn, what it is, its title and what it came to.
fn draw_entry(writer: &mut RowWriter<'_>, entry: &Entry, is_named: bool) {
    let width = writer.room();
    let (short, long) = match entry.turn {
        0 => (String::new(), "before".to_owned()),
        turn => (turn.to_string(), format!("turn {turn}")),
    };
    let (turn, columns_of_turn) = if width < 50 { (short, 3) } else { (long, 8) };
    if width >= 24 {
        writer.field(if is_named { &turn } else { "" }, columns_of_turn, Tone::Dim);
    }
    let (mark, tone) = look(entry);
    writer.field(mark, 1, tone);
    let came_to =
        if entry.came_to.is_empty() && entry.kind == EntryKind::Call { "running" } else { &entry.came_to };
    let room = writer.room();
    let most = if width < 40 { room / 3 } else { room * 2 / 5 };
    let end = text_columns(came_to).min(most);
    let title = match end {
        0 => room,
        end => room.saturating_sub(end + 1),
    };
    writer.field(&entry.title, title, if entry.is_bad { Tone::Bad } else { Tone::Plain });
    writer.right(came_to, end, if entry.is_bad { Tone::Bad } else { Tone::Dim });
}

fn look(entry: &Entry) -> (&'static str, Tone) {
    match entry.kind {
        _ if entry.is_bad => ("✗", Tone::Bad),
        EntryKind::Prompt => (">", Tone::Person),
        EntryKind::Text => ("\"", Tone::Plain),
        EntryKind::Call if entry.came_to.is_empty() => ("▸", Tone::Busy),
        EntryKind::Call => ("✓", Tone::Good),
        EntryKind::Mail => ("@", Tone::Plain),
        EntryKind::Question => ("?", Tone::Warn),
        EntryKind::Failure => ("✗", Tone::Bad),
        EntryKind::Note => ("·", Tone::Dim),
        EntryKind::End => ("■", Tone::Strong),
    }
}
