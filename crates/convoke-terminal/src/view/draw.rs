//! The whole picture: which part is drawn where, at which size. Every frame is drawn from what is seen now,
//! and of every list only the rows that are on the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use convoke_view::{AgentRow, PhaseRow};

use crate::text::Tone;

use super::agents::{Share, Shown};
use super::layout::{self, Boxes, Parts};
use super::list::Rows;
use super::page::{Look, draw_facts};
use super::pager::Subject;
use super::paint::{self, RowWriter};
use super::{FleetView, Frame, Pane, Seen, agents, findings, footer, header, mail, questions, tasks};

impl FleetView {
    /// Draws everything, and says where the cursor stands if something is being written.
    pub(super) fn draw_all(
        &mut self,
        seen: &Seen<'_>,
        area: Rect,
        buffer: &mut Buffer,
    ) -> Option<(u16, u16)> {
        let area = area.intersection(buffer.area);
        paint::clear(buffer, area);
        self.frame = Frame::default();
        let mut parts = layout::parts(area, self.writing.is_some() || self.pending.is_some());
        let text = match (&self.writing, &self.pending, &self.remark) {
            (Some(_), _, _) | (None, None, None) => None,
            (None, Some(pending), _) => Some((pending.question(), Tone::Warn)),
            (None, None, Some((text, is_bad))) => {
                Some((text.clone(), if *is_bad { Tone::Warn } else { Tone::Plain }))
            }
        };
        if let Some((text, _)) = text.as_ref().filter(|_| parts.footer.height > 0) {
            let more = footer::rows_of(text, area).saturating_sub(1);
            parts.body.height = parts.body.height.saturating_sub(more);
            parts.footer = Rect { y: parts.footer.y - more, height: 1 + more, ..parts.footer };
        }
        let front = self.rows(seen);
        let chosen = self.settle(&front);
        let body = self.draw_top(seen, front.len(), &parts, buffer);
        self.draw_body(seen, &front, body, buffer);
        match (&self.writing, text) {
            (Some(prompt), _) => return prompt.draw(buffer, parts.footer, seen.theme),
            (None, Some((text, tone))) => footer::draw_text(buffer, parts.footer, &text, tone, seen.theme),
            (None, None) => {
                let (hints, back) = self.hints(&front, chosen, seen);
                footer::draw_keys(buffer, parts.footer, &hints, back, seen.theme);
            }
        }
        None
    }

    /// Chooses the row in which something happened last, where the list follows that, and the first row of a
    /// list that was just opened.
    fn settle(&mut self, front: &Rows<'_>) -> Option<usize> {
        let is_fresh = std::mem::take(&mut self.is_fresh);
        let follows = self.follows && !self.inside && self.pager.is_none();
        let standing = self.standing();
        if let Some(at) = front.latest().filter(|_| follows) {
            standing.choose(at, front);
        }
        if standing.settle(front).is_none() && is_fresh {
            standing.choose(0, front);
        }
        standing.settle(front)
    }

    /// Draws the rows at the top, with one that says how lists are filtered if they are. Returns what is left
    /// of the body.
    fn draw_top(&self, seen: &Seen<'_>, passing: usize, parts: &Parts, buffer: &mut Buffer) -> Rect {
        let run = self.run.as_ref().and_then(|run| seen.fleet.runs().iter().find(|row| row.id == *run));
        let pane = self.pane;
        let only = &self.only;
        let follows = self.follows;
        let lists = header::Lists { pane, passing, only, run: run.map(|run| run.title.as_str()), follows };
        header::draw(buffer, parts.header, seen, &lists, parts.tabs.height > 0);
        if parts.tabs.height > 0 {
            header::draw_tabs(buffer, parts.tabs, seen, &lists);
        }
        let filter = header::filter(&lists);
        let body = parts.body;
        let is_list = !self.inside && self.pager.is_none() && self.help.is_none();
        if filter.is_empty() || !is_list || pane == Pane::Questions || body.height < 3 {
            return body;
        }
        RowWriter::at(buffer, body, 0, seen.theme).put(&filter, Tone::Warn);
        Rect { y: body.y + 1, height: body.height - 1, ..body }
    }

    fn draw_body(&mut self, seen: &Seen<'_>, front: &Rows<'_>, body: Rect, buffer: &mut Buffer) {
        if body.is_empty() {
            return;
        }
        if let Some(help) = &mut self.help {
            return help.draw(buffer, body, seen.theme);
        }
        match layout::boxes(body) {
            Some(boxes) => self.draw_boxes(seen, front, &boxes, buffer),
            None if self.pager.is_some() => self.draw_pager(seen, body, buffer),
            None if self.inside => self.draw_page(seen, None, body, buffer),
            None => self.draw_list(self.pane, seen, front, body, buffer, true),
        }
    }

    /// A large screen: the agents on the left, the chosen one on the right, tasks, mail and findings below
    /// it.
    fn draw_boxes(&mut self, seen: &Seen<'_>, front: &Rows<'_>, boxes: &Boxes, buffer: &mut Buffer) {
        self.frame.is_wide = true;
        let theme = seen.theme;
        let of_pane = |view: &Self, pane| Rows::of(pane, seen, &view.only, view.run.as_ref());
        let in_list = !self.inside && self.pager.is_none();
        let has_keys = in_list && self.pane == Pane::Agents;
        let inner = paint::frame(buffer, boxes.list, "Agents", has_keys, theme);
        let others = (self.pane != Pane::Agents).then(|| of_pane(self, Pane::Agents));
        let agents = others.as_ref().unwrap_or(front);
        self.draw_list(Pane::Agents, seen, agents, inner, buffer, has_keys);
        if self.pager.is_some() {
            let inner = paint::frame(buffer, boxes.right, "In full", true, theme);
            return self.draw_pager(seen, inner, buffer);
        }
        if self.pane == Pane::Questions && !self.inside {
            let inner = paint::frame(buffer, boxes.page, "Questions", true, theme);
            self.draw_list(Pane::Questions, seen, front, inner, buffer, true);
        } else {
            let chosen = match (agents, self.lists[Pane::Agents.index()].settle(agents)) {
                (Rows::Agents(rows), Some(at)) if !self.inside => rows.get(at).copied(),
                _ => None,
            };
            let inner = paint::frame(buffer, boxes.page, "Turns", self.inside, theme);
            self.draw_page(seen, chosen, inner, buffer);
        }
        for (pane, area) in
            [(Pane::Tasks, boxes.tasks), (Pane::Mail, boxes.mail), (Pane::Findings, boxes.findings)]
        {
            let has_keys = in_list && self.pane == pane;
            let inner = paint::frame(buffer, area, pane.name(), has_keys, theme);
            let others = (self.pane != pane).then(|| of_pane(self, pane));
            self.draw_list(pane, seen, others.as_ref().unwrap_or(front), inner, buffer, has_keys);
        }
    }

    fn draw_pager(&mut self, seen: &Seen<'_>, area: Rect, buffer: &mut Buffer) {
        let Some(pager) = &mut self.pager else { return };
        pager.draw(buffer, area, seen.theme);
        if let Subject::Question(id) = pager.subject
            && pager.is_seen()
            && area.width >= questions::LEAST_WIDTH
        {
            self.read.insert(id);
        }
    }

    /// The agent that is looked at; beside a list the chosen one, of which there may be nothing but its row
    /// yet.
    fn draw_page(&mut self, seen: &Seen<'_>, chosen: Option<&AgentRow>, area: Rect, buffer: &mut Buffer) {
        let has_keys = self.inside && self.pager.is_none();
        let theme = seen.theme;
        let now = seen.now;
        let looked = self.looked.as_mut().filter(|looked| chosen.is_none_or(|row| row.id == *looked.agent()));
        match (looked, chosen) {
            (Some(looked), _) => {
                let row = seen.fleet.agent(looked.agent());
                looked.draw(buffer, area, &Look { row, now, has_keys, theme });
            }
            (None, Some(row)) => {
                self.frame.beside = Some(row.id.clone());
                let below = draw_facts(buffer, area, &row.id, &Look { row: Some(row), now, has_keys, theme });
                paint::say_empty(buffer, below, "Enter reads its turns.", theme);
            }
            (None, None) => {
                paint::say_empty(buffer, area, "The turns of the chosen agent stand here.", theme)
            }
        }
    }

    fn draw_list(
        &mut self,
        pane: Pane,
        seen: &Seen<'_>,
        rows: &Rows<'_>,
        area: Rect,
        buffer: &mut Buffer,
        has_keys: bool,
    ) {
        let chosen = self.lists[pane.index()].settle(rows);
        if rows.len() == 0 {
            return paint::say_empty(buffer, area, &self.empty(pane), seen.theme);
        }
        let area = match (rows, chosen) {
            (Rows::Questions(asked), Some(at)) => {
                let (list, between, below) = layout::question(area, asked.len());
                let line = "─".repeat(usize::from(between.width));
                RowWriter::at(buffer, between, 0, seen.theme).put(&line, Tone::Dim);
                if questions::draw_whole(buffer, below, &asked[at], seen.theme) {
                    self.frame.whole_question = Some(asked[at].id);
                }
                list
            }
            _ => area,
        };
        let height = usize::from(area.height);
        if has_keys {
            self.frame.height = height;
        }
        let shown = match rows {
            Rows::Agents(rows) => agents::shown(rows, height >= 10),
            rows => (0..rows.len()).map(Shown::Agent).collect(),
        };
        let at = chosen.and_then(|chosen| shown.iter().position(|row| *row == Shown::Agent(chosen)));
        // A heading right above the chosen row is seen with it.
        let heading =
            at.and_then(|at| at.checked_sub(1)).filter(|at| matches!(shown[*at], Shown::Heading(_)));
        let standing = &mut self.lists[pane.index()];
        if height > 1 {
            standing.scroll_to(heading, shown.len(), height);
        }
        let top = standing.scroll_to(at, shown.len(), height);
        let inner = paint::scroll_bar(buffer, area, shown.len(), top, seen.theme);
        let on_screen = || shown.iter().skip(top).take(height);
        let share = match rows {
            Rows::Agents(rows) => Share::of(on_screen().filter_map(|item| match item {
                Shown::Agent(at) => rows.get(*at).map(|row| (*row, seen.fleet.last(row, seen.now))),
                Shown::Heading(_) => None,
            })),
            _ => Share::default(),
        };
        let group = Group { rows, phases: &seen.fleet.phases(), share };
        for (row, item) in (0..).zip(on_screen()) {
            draw_row(buffer, inner, row, &group, *item, seen);
            if *item == Shown::Agent(chosen.unwrap_or(usize::MAX)) && (has_keys || pane == Pane::Agents) {
                RowWriter::at(buffer, inner, row, seen.theme).put("›", Tone::Key);
                if has_keys {
                    paint::choose(buffer, inner, row, seen.theme);
                }
            }
        }
    }

    /// What is said in an empty list: what would be there, or that the filter lets nothing pass.
    fn empty(&self, pane: Pane) -> String {
        let is_filtered = !self.only.text.is_empty() || self.only.state.is_some();
        let of_a_run = self.run.is_some() && matches!(pane, Pane::Agents | Pane::Findings);
        if pane != Pane::Questions && (is_filtered || of_a_run) {
            return "Nothing passes the filter. Esc takes it away.".to_owned();
        }
        let text = match pane {
            Pane::Agents => agents::NOBODY,
            Pane::Tasks => tasks::NONE,
            Pane::Mail => mail::NONE,
            Pane::Findings => findings::NONE,
            Pane::Questions => questions::NONE,
        };
        text.to_owned()
    }
}

/// What the rows of a list have in common.
struct Group<'a> {
    rows: &'a Rows<'a>,
    phases: &'a [PhaseRow],
    share: Share,
}

fn draw_row(buffer: &mut Buffer, area: Rect, row: u16, group: &Group<'_>, item: Shown, seen: &Seen<'_>) {
    let Group { rows, phases, share } = *group;
    let at = match (item, rows) {
        (Shown::Heading(at), Rows::Agents(rows)) => {
            let name = &rows[at].phase;
            let phase = phases.iter().find(|phase| phase.name == *name);
            return agents::draw_heading(buffer, area, row, name, phase, seen.theme);
        }
        (Shown::Heading(_), _) => return,
        (Shown::Agent(at), _) => at,
    };
    let mut writer = RowWriter::at(buffer, area, row, seen.theme);
    writer.skip(1);
    match rows {
        Rows::Agents(rows) => {
            agents::draw(&mut writer, rows[at], &seen.fleet.last(rows[at], seen.now), share, seen.now);
        }
        Rows::Tasks(rows) => tasks::draw(&mut writer, rows[at]),
        Rows::Mail(rows) => mail::draw(&mut writer, rows[at], seen.now),
        Rows::Findings(rows) => findings::draw(&mut writer, rows[at]),
        Rows::Questions(rows) => questions::draw(&mut writer, &rows[at]),
    }
}
