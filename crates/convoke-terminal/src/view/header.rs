//! The rows at the top: which session this is, what it has spent and how it stands, and the lists there are.
//! What does not fit is left out from the least important on.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use convoke_view::RowFilter;

use crate::text::{Tone, cut, dollars, shown, text_columns};

use super::paint::RowWriter;
use super::{Pane, Seen};

/// What is shown of the lists.
pub(super) struct Lists<'a> {
    pub(super) pane: Pane,
    /// How many rows of the list in front pass the filter.
    pub(super) passing: usize,
    pub(super) only: &'a RowFilter,
    /// The run that is looked at, by its title.
    pub(super) run: Option<&'a str>,
    pub(super) follows: bool,
}

/// Draws the first row. Without a row of tabs it says which list this is too.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, seen: &Seen<'_>, lists: &Lists<'_>, has_tabs: bool) {
    let width = usize::from(area.width);
    let mut writer = RowWriter::at(buffer, area, 0, seen.theme);
    let (figures, between) = if has_tabs {
        (fitting(figures(seen), width.saturating_sub(24), 3), " · ")
    } else {
        let name = format!("{} {}", lists.pane.name(), of(lists.passing, total(lists.pane, seen)));
        writer.put(&name, Tone::Strong).skip(2);
        if lists.pane != Pane::Questions && !seen.questions.is_empty() {
            writer.put(&format!("?{}", seen.questions.len()), Tone::Warn).skip(2);
        }
        (fitting(short_figures(seen), writer.room(), 1), " ")
    };
    let gaps = text_columns(between) * figures.len().saturating_sub(1);
    let right = figures.iter().map(|(text, _)| text_columns(text)).sum::<usize>() + gaps;
    let left = writer.room().saturating_sub(right);
    if has_tabs {
        let room = left.saturating_sub(1);
        writer.field(&about(seen, room), room, Tone::Strong);
    } else {
        writer.skip(left);
    }
    put_all(&mut writer, &figures, between);
}

/// Draws the row of lists.
pub(super) fn draw_tabs(buffer: &mut Buffer, area: Rect, seen: &Seen<'_>, lists: &Lists<'_>) {
    let mut writer = RowWriter::at(buffer, area, 0, seen.theme);
    for (number, pane) in (1..).zip(Pane::ALL) {
        let total = total(pane, seen);
        let is_front = pane == lists.pane;
        let passing = if is_front { of(lists.passing, total) } else { total.to_string() };
        let asks = pane == Pane::Questions && total > 0;
        let tone = match (is_front, asks) {
            (true, _) => Tone::Chosen,
            (false, true) => Tone::Warn,
            (false, false) => Tone::Plain,
        };
        let (left, right) = if is_front { ("[", "]") } else { (" ", " ") };
        let text = format!("{left}{number} {} {passing}{right}", pane.name());
        if text_columns(&text) > writer.room() {
            return;
        }
        writer.put(&text, tone);
    }
}

/// How the lists are filtered, if they are: `only /text · failed · run 6 subtasks · following`.
pub(super) fn filter(lists: &Lists<'_>) -> String {
    let mut words = Vec::new();
    if !lists.only.text.is_empty() {
        words.push(format!("/{}", shown(&lists.only.text).replace('\n', " ")));
    }
    if let Some(state) = lists.only.state {
        words.push(state.word().to_owned());
    }
    if let Some(run) = lists.run {
        words.push(format!("run {run}"));
    }
    let mut text = if words.is_empty() { String::new() } else { format!("only {}", words.join(" · ")) };
    if lists.follows {
        text.push_str(if text.is_empty() { "following what happened last" } else { " · following" });
    }
    text
}

/// The session, where it works and what it is about: the run that began last.
fn about(seen: &Seen<'_>, room: usize) -> String {
    let facts = seen.facts;
    let mut words: Vec<String> = Vec::new();
    if let Some(session) = &facts.session {
        words.push(session.as_str().chars().take(10).collect());
    }
    if let Some(name) = facts.dir.rsplit('/').find(|part| !part.is_empty()) {
        words.push(cut(&shown(name).replace('\n', "⏎"), 24));
    }
    if facts.offline {
        words.push("offline".to_owned());
    }
    if facts.watched {
        words.push("watched".to_owned());
    }
    if let Some(run) = seen.fleet.runs().last() {
        words.push(run.title.clone());
    }
    let mut text = String::new();
    for word in words {
        let between = if text.is_empty() { "" } else { " · " };
        let left = room.saturating_sub(text_columns(&text) + text_columns(between));
        // A few letters of a word say nothing; then it is left out.
        if text_columns(&word) <= left || left >= 12 {
            text.push_str(&format!("{between}{}", cut(&word, left)));
        }
    }
    text
}

/// What is spent and how agents stand, the most important first.
fn figures(seen: &Seen<'_>) -> Vec<(String, Tone)> {
    let mut all = Vec::new();
    if let Some(ledger) = seen.fleet.ledger() {
        let spent = ledger.confirmed();
        let caps = ledger.caps();
        all.push((spend(spent.nano, caps.nano, " of "), Tone::Plain));
        let unconfirmed = ledger.unconfirmed().nano;
        if unconfirmed > 0 {
            all.push((format!("and up to {} unconfirmed", dollars(Some(unconfirmed))), Tone::Warn));
        }
    }
    let (running, failed, done) = standing(seen);
    all.push((format!("{running} running"), if running > 0 { Tone::Busy } else { Tone::Dim }));
    if failed > 0 {
        all.push((format!("{failed} failed"), Tone::Bad));
    }
    all.push((format!("{done} done"), Tone::Dim));
    if let Some(ledger) = seen.fleet.ledger() {
        if let Some(most) = ledger.caps().agents {
            all.push((format!("{} of {most} agents", ledger.agents()), Tone::Dim));
        }
        if let Some(most) = ledger.caps().tokens {
            let used = crate::text::tokens(ledger.spent().tokens);
            all.push((format!("{used} of {} tokens", crate::text::tokens(most)), Tone::Dim));
        }
        if let Some(left) = ledger.ms_left(seen.now) {
            let time = super::paint::short_time(std::time::Duration::from_millis(left));
            all.push((format!("{time} left"), if left == 0 { Tone::Bad } else { Tone::Dim }));
        }
    }
    all
}

/// The first of these that fit into so many columns, with a gap between them.
fn fitting(mut all: Vec<(String, Tone)>, width: usize, gap: usize) -> Vec<(String, Tone)> {
    let mut used = 0;
    let number = all.iter().take_while(|(text, _)| {
        used += text_columns(text) + gap;
        used <= width + gap
    });
    let number = number.count();
    all.truncate(number);
    all
}

fn short_figures(seen: &Seen<'_>) -> Vec<(String, Tone)> {
    let mut all = Vec::new();
    if let Some(ledger) = seen.fleet.ledger() {
        all.push((spend(ledger.spent().nano, ledger.caps().nano, "/"), Tone::Plain));
    }
    let (running, failed, done) = standing(seen);
    for (number, mark, tone) in [(running, '▸', Tone::Busy), (failed, '✗', Tone::Bad), (done, '✓', Tone::Dim)]
    {
        if number > 0 {
            all.push((format!("{number}{mark}"), tone));
        }
    }
    all
}

fn spend(spent: u64, cap: Option<u64>, of: &str) -> String {
    match cap {
        Some(cap) => format!("{}{of}{}", dollars(Some(spent)), dollars(Some(cap))),
        None => dollars(Some(spent)),
    }
}

/// How many run, failed and are done.
fn standing(seen: &Seen<'_>) -> (usize, usize, usize) {
    let phases = seen.fleet.phases();
    let sum = |figure: fn(&convoke_view::PhaseRow) -> usize| phases.iter().map(figure).sum();
    (seen.fleet.running(), sum(|phase| phase.failed), sum(|phase| phase.done))
}

fn total(pane: Pane, seen: &Seen<'_>) -> usize {
    match pane {
        Pane::Agents => seen.fleet.phases().iter().map(|phase| phase.total).sum(),
        Pane::Tasks => seen.fleet.tasks(&RowFilter::default()).len(),
        Pane::Mail => seen.fleet.letters(&RowFilter::default()).len(),
        Pane::Findings => seen.fleet.findings(&RowFilter::default()).len(),
        Pane::Questions => seen.questions.len(),
    }
}

fn of(passing: usize, total: usize) -> String {
    if passing == total { total.to_string() } else { format!("{passing} of {total}") }
}

fn put_all(writer: &mut RowWriter<'_>, texts: &[(String, Tone)], between: &str) {
    for (at, (text, tone)) in texts.iter().enumerate() {
        if at > 0 {
            writer.put(between, Tone::Dim);
        }
        writer.put(text, *tone);
    }
}
