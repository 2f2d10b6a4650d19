//! What moves at the bottom of the terminal while the session talks: what the lead writes, which agents work
//! for it, what waits, what is asked, where the person writes, and the status line. Whatever the size, the
//! person can write and sees the status.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use convoke_view::{AgentState, Fleet, RowFilter};

use super::answer::Field;
use super::{App, Stopping};
use crate::question;
use crate::stage::Region;
use crate::status::status;
use crate::text::{Tone, cut, first_line, hung, seconds, shown, text_columns};

/// Rows of agents at work that are shown at most; the fleet view has all of them.
const AT_WORK: usize = 6;
/// Rows that the composer may take.
const WRITTEN: usize = 8;
/// Rows of waiting words.
const WAITING: usize = 3;
/// Rows of a remark.
const REMARK: usize = 3;
/// Columns of the status line that are kept for the spend.
const SPEND: usize = 18;
/// A terminal with fewer rows than this has no blank rows in the region.
const ROOMY: usize = 12;

impl App {
    /// The region for a terminal of this size. From then on keys are answers to the question in it.
    pub(crate) fn region(&mut self, (columns, rows): (u16, u16), now: u64) -> Region {
        // The last column stays free: a terminal that is written to its edge may break the line.
        let width = usize::from(columns).saturating_sub(1).max(1);
        let most = usize::from(rows).saturating_sub(1).max(2);
        let (written, cursor) = self.writing(width, most.saturating_sub(1).min(WRITTEN.max(most / 2)));
        let mut left = Left(most.saturating_sub(1 + written.len()));
        let question = left.take(self.asked(width, left.0));
        let mut remark = self.remarked(width, self.remark.as_deref());
        remark.extend(self.remarked(width, self.held_up.as_deref()));
        // Where a question takes all the room, what is to be said of an answer stands in place of the status.
        let status = match left.0 {
            0 if !remark.is_empty() => remark.remove(0),
            _ => {
                let doing = self.says(now).map(|doing| shortened(&doing, width.saturating_sub(SPEND)));
                status(&self.facts, &self.fleet, doing.as_deref(), width, self.theme)
            }
        };
        let remark = left.take(remark);
        // A blank row above and below what goes on, where there is room for the eye.
        let roomy = usize::from(rows) >= ROOMY;
        let blank = || if roomy { vec![Line::default()] } else { Vec::new() };
        let above = left.take(blank());
        let gap = left.take(blank());
        let waiting = left.take(self.waiting(width, left.0.min(WAITING)));
        let at_work = left.take(self.at_work(width, left.0.min(AT_WORK + 2).min(most / 3), now));
        let live = left.take(self.live(width, left.0));
        let goes_on: Vec<Line<'static>> = [live, at_work, waiting].into_iter().flatten().collect();
        let above = if goes_on.is_empty() { Vec::new() } else { above };

        let mut lines: Vec<Line<'static>> =
            [above, goes_on, gap, question, remark].into_iter().flatten().collect();
        if self.was_blank && lines.first().is_some_and(|line| line.spans.is_empty()) {
            lines.remove(0);
        }
        let above = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        lines.extend(written);
        lines.push(status);
        Region { lines, cursor: (cursor.0, cursor.1.saturating_add(above)) }
    }

    /// What the status says of the work.
    fn says(&self, now: u64) -> Option<String> {
        let doing = self.lead_does(now);
        let with = |what: &str| match &doing {
            // The lead has heard of the stop itself.
            Some(doing) if doing.starts_with(what) => doing.clone(),
            Some(doing) => format!("{what} · {doing}"),
            None => what.to_owned(),
        };
        match self.stopping {
            _ if self.is_leaving => Some(with("leaving")),
            Stopping::Cutting => Some("cutting off what is under way".to_owned()),
            Stopping::Asked => Some(with("stopping")),
            Stopping::No if self.shell.is_some() => {
                self.shell.as_ref().map(|command| format!("! {} · Esc ends it", first_line(command, 40)))
            }
            Stopping::No if self.facts.watched => Some(with("watching")),
            Stopping::No if self.working => Some(doing.unwrap_or_else(|| "working".to_owned())),
            Stopping::No => None,
        }
    }

    /// A text in one row, with nothing in it that a terminal would obey.
    fn row(&self, text: &str, tone: Tone, width: usize) -> Line<'static> {
        // Of what is much longer than a row no more than a row is looked at.
        let head: String = text.chars().take(4 * width + 64).collect();
        let line = shown(&head).split_whitespace().collect::<Vec<_>>().join(" ");
        Line::from(Span::styled(cut(&line, width), self.theme.style(tone)))
    }

    fn remarked(&self, width: usize, text: Option<&str>) -> Vec<Line<'static>> {
        let Some(text) = text else { return Vec::new() };
        let text = [Span::styled(shown(text).replace('\n', " "), self.theme.style(Tone::Warn))];
        let mut rows = hung(&text, width, &Span::raw(""), &Span::raw("  "));
        rows.truncate(REMARK);
        rows
    }

    /// What the lead writes right now.
    fn live(&self, width: usize, most: usize) -> Vec<Line<'static>> {
        let is_seen = self.working || self.facts.watched;
        if is_seen { self.transcript.live(width, most, self.theme) } else { Vec::new() }
    }

    /// The composer, or the line on which a question is answered.
    fn writing(&self, width: usize, most: usize) -> (Vec<Line<'static>>, (u16, u16)) {
        if self.question().is_some() && !self.is_drafting() {
            let prompt = if width < 20 { "› " } else { "answer › " };
            let room = width.saturating_sub(text_columns(prompt) + 1);
            // Of a long answer the end is seen, where the person writes.
            let tail = tail(&shown(self.answer.text()), room);
            let column = u16::try_from(text_columns(prompt) + text_columns(&tail)).unwrap_or(u16::MAX);
            let line = Line::from(vec![
                Span::styled(prompt.to_owned(), self.theme.style(Tone::Warn)),
                Span::styled(tail, Style::default()),
            ]);
            return (vec![line], (column, 0));
        }
        let (long, short) = self.hint();
        let hint = if text_columns(long) + 3 <= width { long } else { short };
        let composed = self.composer.lines(width, most, hint, self.theme);
        (composed.lines, composed.cursor)
    }

    /// What can be done where nothing is written, in full and in short.
    fn hint(&self) -> (&'static str, &'static str) {
        match self.stopping {
            _ if self.is_leaving => ("the session is being closed", "leaving"),
            Stopping::Cutting => ("what you write now is said next", "what you write waits"),
            Stopping::Asked => ("Esc again cuts off what is under way", "Esc again cuts it off"),
            Stopping::No if self.working => {
                ("Esc stops; what you write now is said next", "Esc stops; what you write waits")
            }
            Stopping::No if !self.sent.is_empty() => ("on its way to the lead", "on its way"),
            Stopping::No if self.facts.watched => {
                ("another process leads this session; you watch it", "you watch another process")
            }
            Stopping::No if self.can_go_on() && !self.queued.is_empty() => {
                ("Enter goes on and says what waits; /unsay takes it back", "Enter goes on, or /unsay")
            }
            Stopping::No if self.can_go_on() => {
                ("Enter goes on; what you say comes instead", "Enter goes on, or say something")
            }
            Stopping::No => {
                ("what is to be done? /help lists the commands", "what is to be done? /help helps")
            }
        }
    }

    /// What is asked, as far as there is room; remembers what stands there.
    fn asked(&mut self, width: usize, most: usize) -> Vec<Line<'static>> {
        let Some(asking) = self.questions.first() else {
            self.standing = None;
            return Vec::new();
        };
        let (rows, whole) = question::fitted(asking, width, most);
        if self.is_drafting() {
            // What is typed now belongs to the draft: the question waits until that is sent or cleared.
            let what = "a question waits: send (Enter) or clear (Ctrl-C) what you write first";
            let line = self.row(what, Tone::Warn, width);
            let mut rows: Vec<Line<'static>> =
                rows.into_iter().take(most.saturating_sub(1)).map(Line::from).collect();
            rows.extend((most > 0).then_some(line));
            return rows;
        }
        if self.standing != Some(asking.id) {
            // What was typed for another question is no answer to this one.
            self.answer = Field::default();
        }
        // Below this width a character may not fit at all, so that nothing counts as seen.
        self.standing = Some(asking.id);
        self.standing_whole = whole && width >= LEAST_WIDTH;
        let tone = |at: usize| if at == 0 { Tone::Warn } else { Tone::Plain };
        let line = |(at, row)| Line::from(Span::styled(row, self.theme.style(tone(at))));
        rows.into_iter().enumerate().map(line).collect()
    }

    /// What was said and is not in the history yet: the latest is seen in any case.
    fn waiting(&self, width: usize, most: usize) -> Vec<Line<'static>> {
        let sent = self.sent.iter().map(|text| ("› ", text));
        let all: Vec<_> = sent.chain(self.queued.iter().map(|text| ("next: ", text))).collect();
        let kept = if all.len() > most { most.saturating_sub(1) } else { all.len() };
        let mut lines = Vec::new();
        if kept < all.len() && most > 0 {
            lines.push(self.row(&format!("next: {} others, then", all.len() - kept), Tone::Dim, width));
        }
        let shown = all.iter().skip(all.len() - kept);
        lines.extend(shown.map(|(mark, text)| self.row(&format!("{mark}{text}"), Tone::Dim, width)));
        lines
    }

    /// The agents that work for the lead: a row per phase, and the agents that are at work right now.
    fn at_work(&self, width: usize, most: usize, now: u64) -> Vec<Line<'static>> {
        let below: Vec<_> = self.fleet.phases().into_iter().filter(|phase| phase.name != "lead").collect();
        if below.iter().all(|phase| phase.running == 0) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        for phase in below.iter().filter(|phase| phase.running > 0 || phase.waiting > 0).take(most) {
            let figures = [
                (phase.running, "running"),
                (phase.waiting, "waiting"),
                (phase.failed, "failed"),
                (phase.done, "done"),
            ];
            let parts: Vec<String> = figures
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
            lines.push(self.row(&format!("{}: {}", phase.name, parts.join(" · ")), Tone::Strong, width));
        }
        let only = RowFilter { state: Some(AgentState::Running), ..RowFilter::default() };
        let running: Vec<_> =
            self.fleet.agents(&only).into_iter().filter(|row| row.phase != "lead").collect();
        let room = most - lines.len();
        let kept = if running.len() > room { room.saturating_sub(1) } else { running.len() };
        let indented = |text: &str, tone: Tone| {
            let mut line = self.row(text, tone, width.saturating_sub(2));
            line.spans.insert(0, Span::raw("  "));
            line
        };
        for row in running.iter().take(kept) {
            let took = seconds(Fleet::since(now, row.since));
            // Of a long name enough is seen to tell it from others, so that there is room for what it does.
            let label = cut(&row.label, (width / 2).max(12));
            let last = if row.last == row.label { String::new() } else { self.fleet.last(row, now) };
            let text = format!("{} {label} · {} {took} · {last}", row.state.mark(), row.act);
            lines.push(indented(text.trim_end_matches([' ', '·']), Tone::Busy));
        }
        if kept < running.len() && room > 0 {
            lines.push(indented(&format!("… {} more: Ctrl-O shows all", running.len() - kept), Tone::Dim));
        }
        lines
    }
}

/// Below this width a question cannot be agreed to.
const LEAST_WIDTH: usize = 12;

/// The rows that are left.
struct Left(usize);

impl Left {
    /// Gives rows their place, as far as there is room.
    fn take(&mut self, mut rows: Vec<Line<'static>>) -> Vec<Line<'static>> {
        rows.truncate(self.0);
        self.0 -= rows.len();
        rows
    }
}

/// What is under way in so many columns: of `$ a long command · 12 s` the command is cut, not the time.
fn shortened(doing: &str, most: usize) -> String {
    match doing.rsplit_once(" · ") {
        Some((what, time)) if text_columns(doing) > most => {
            let room = most.saturating_sub(text_columns(time) + 3);
            format!("{} · {time}", cut(what.trim_end_matches(['…', ' ']), room))
        }
        _ => doing.to_owned(),
    }
}

/// The end of a text that fits, with a mark where something is left out.
fn tail(text: &str, room: usize) -> String {
    if text_columns(text) <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |piece: &&str| {
        used += text_columns(piece);
        used <= room
    };
    let pieces: Vec<&str> = text.graphemes(true).rev().take_while(fits).collect();
    std::iter::once("…").filter(|_| room > 0).chain(pieces.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_under_way_the_time_is_kept() {
        let check = |doing: &str, most: usize, expected: &str| {
            assert_eq!(shortened(doing, most), expected, "{doing} in {most}")
        };
        check("$ cargo test · 12 s", 30, "$ cargo test · 12 s");
        check("$ cargo test --workspace --all… · 12 s", 20, "$ cargo test… · 12 s");
        check("thinking about it", 5, "thinking about it");
        check("$ x · 1 min 23 s", 3, " · 1 min 23 s");
    }

    #[test]
    fn of_a_long_answer_the_end_is_seen() {
        let check = |text: &str, room: usize, expected: &str| {
            assert_eq!(tail(text, room), expected, "{text} in {room}")
        };
        check("abc", 3, "abc");
        check("abcd", 3, "…cd");
        check("a漢字", 4, "…字");
        check("a👨\u{200d}👩\u{200d}👧", 2, "…");
        check("abc", 0, "");
    }
}
