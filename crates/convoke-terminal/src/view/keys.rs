//! What each key means, depending on where one is: a line that is written, a question of yes or no, help, a
//! text, an agent, a list.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use convoke_view::{AgentState, RowFilter};

use crate::user_action::{QuestionAnswer, UserAction};

use super::footer::Pending;
use super::help;
use super::list::{Move, Rows};
use super::pager::Subject;
use super::prompt::{Prompt, Purpose, Typed};
use super::{Did, FleetView, Pane, Seen};

/// The states by which lists are filtered, in the order `f` goes through them.
const STATES: [Option<AgentState>; 6] = [
    None,
    Some(AgentState::Asks),
    Some(AgentState::Running),
    Some(AgentState::Failed),
    Some(AgentState::Waiting),
    Some(AgentState::Done),
];

impl FleetView {
    /// Finds out what a key means here.
    pub(super) fn take(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        if key.kind == KeyEventKind::Release {
            return Did::Nothing;
        }
        let had_remark = self.remark.take().is_some();
        let did = self.meaning(key, seen);
        if did == Did::Nothing && had_remark { Did::Changed } else { did }
    }

    fn meaning(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        if key.code == KeyCode::Char('l') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Did::Changed;
        }
        if self.writing.is_some() {
            return self.write(key, seen);
        }
        if let Some(pending) = self.pending.take() {
            return decide(pending, key);
        }
        if let Some(help) = &mut self.help {
            match movement(key) {
                Some(way) => help.scroll(way),
                None => self.help = None,
            }
            return Did::Changed;
        }
        if letter(key) == Some('?') {
            self.help = Some(help::pager());
            return Did::Changed;
        }
        if self.pager.is_some() {
            self.in_pager(key, seen)
        } else if self.inside {
            self.in_page(key, seen)
        } else {
            self.in_list(key, seen)
        }
    }

    fn in_pager(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        let Some(pager) = &mut self.pager else { return Did::Nothing };
        let is_question = matches!(pager.subject, Subject::Question(_));
        if let Some(way) = movement(key).or_else(|| (letter(key) == Some(' ')).then_some(Move::Screens(1))) {
            pager.scroll(way);
            return Did::Changed;
        }
        if is_back(key) {
            self.pager = None;
            return Did::Changed;
        }
        match letter(key) {
            Some(answer @ ('y' | 'n' | 'a')) if is_question => self.answer(answer, seen),
            Some('/') if !is_question => self.begin(Purpose::Search, ""),
            Some(next @ ('n' | 'N')) => match pager.next_hit(next == 'N') {
                true => Did::Changed,
                false => self.says("Nothing to go to: / searches."),
            },
            Some('o') => self.open_place(seen),
            _ => Did::Nothing,
        }
    }

    fn in_page(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        let Some(looked) = &mut self.looked else {
            self.inside = false;
            return Did::Changed;
        };
        if let Some(way) = movement(key) {
            looked.step(way);
            return Did::Changed;
        }
        if is_back(key) {
            self.inside = false;
            return Did::Changed;
        }
        match (key.code, letter(key)) {
            (KeyCode::Enter | KeyCode::Right, _) => self.go_into_entry(),
            (_, Some('/')) => self.begin(Purpose::Search, ""),
            (_, Some(next @ ('n' | 'N'))) => match looked.next_hit(next == 'N') {
                true => Did::Changed,
                false => self.says("Nothing to go to: / searches."),
            },
            (_, Some('F')) => {
                looked.toggle_follow();
                Did::Changed
            }
            (_, Some('o')) => self.open_place(seen),
            _ => self.in_any(key, seen),
        }
    }

    fn in_list(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        if let Some(way) = movement(key) {
            return self.step(way, seen);
        }
        match (key.code, letter(key)) {
            (KeyCode::Enter | KeyCode::Right, _) => self.go_in(seen),
            (KeyCode::Esc, _) if self.only != RowFilter::default() || self.run.is_some() => {
                self.only = RowFilter::default();
                self.run = None;
                Did::Changed
            }
            (KeyCode::Esc, _) | (_, Some('q')) => Did::Leaves,
            (_, Some('/' | 'f')) if self.pane == Pane::Questions => {
                self.says("Questions are not filtered, so that none is overlooked.")
            }
            (_, Some('/')) => {
                let text = self.only.text.clone();
                self.begin(Purpose::Filter, &text)
            }
            (_, Some('f')) => {
                let at = STATES.iter().position(|state| *state == self.only.state).unwrap_or(0);
                self.only.state = STATES[(at + 1) % STATES.len()];
                Did::Changed
            }
            (_, Some('g')) => self.next_run(seen),
            (_, Some('F')) => {
                self.follows = !self.follows;
                Did::Changed
            }
            (_, Some('o')) => self.open_place(seen),
            (_, Some(answer @ ('y' | 'n' | 'a'))) => self.answer(answer, seen),
            _ => self.in_any(key, seen),
        }
    }

    /// Keys that mean the same in a list and in an agent.
    fn in_any(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        let at = self.pane.index();
        match (key.code, letter(key)) {
            (KeyCode::Tab, _) => self.turn_to(Pane::ALL[(at + 1) % Pane::ALL.len()]),
            (KeyCode::BackTab, _) => self.turn_to(Pane::ALL[(at + Pane::ALL.len() - 1) % Pane::ALL.len()]),
            (_, Some(digit @ '1'..='5')) => self.turn_to(Pane::ALL[digit as usize - '1' as usize]),
            (_, Some('s')) => self.stop(seen),
            (_, Some('r')) => self.retry(seen),
            (_, Some('R')) => self.retry_run(seen),
            (_, Some('m')) => self.message(seen),
            _ => Did::Nothing,
        }
    }

    fn turn_to(&mut self, pane: Pane) -> Did {
        self.open(pane);
        Did::Changed
    }

    fn begin(&mut self, purpose: Purpose, text: &str) -> Did {
        self.writing = Some(Prompt::new(purpose, text));
        Did::Changed
    }

    /// Moves in the list, which then no longer follows what happened last. Where the chosen agent is shown
    /// beside the list, its history is asked for.
    fn step(&mut self, way: Move, seen: &Seen<'_>) -> Did {
        let rows = self.rows(seen);
        let height = self.frame.height;
        let standing = self.standing();
        let at = match standing.settle(&rows) {
            Some(at) => way.from(at, rows.len(), height),
            None => 0,
        };
        standing.choose(at, &rows);
        self.follows = false;
        match rows {
            Rows::Agents(rows) if self.frame.is_wide && at < rows.len() => self.look_at(&rows[at].id),
            _ => Did::Changed,
        }
    }

    /// The agents and findings of the next run, after the last of all runs.
    fn next_run(&mut self, seen: &Seen<'_>) -> Did {
        let runs = seen.fleet.runs();
        if runs.is_empty() {
            return self.says("No run of a workflow has begun.");
        }
        let next = self
            .run
            .as_ref()
            .map_or(Some(0), |run| runs.iter().position(|row| row.id == *run).map(|at| at + 1));
        self.run = next.and_then(|at| runs.get(at)).map(|row| row.id.clone());
        Did::Changed
    }

    /// Takes a key into the line that is being written.
    fn write(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Did {
        let Some(prompt) = &mut self.writing else { return Did::Nothing };
        match prompt.key(key) {
            Typed::Nothing => Did::Nothing,
            Typed::Changed => {
                self.filter_as_written();
                Did::Changed
            }
            Typed::GivenUp => {
                if prompt.purpose == Purpose::Filter {
                    self.only.text.clear();
                }
                self.writing = None;
                Did::Changed
            }
            Typed::Done => self.written(seen),
        }
    }

    /// Lists are filtered while the filter is being written.
    pub(super) fn filter_as_written(&mut self) {
        if let Some(Prompt { purpose: Purpose::Filter, text, .. }) = &self.writing {
            self.only.text.clone_from(text);
        }
    }

    fn written(&mut self, seen: &Seen<'_>) -> Did {
        let Some(Prompt { purpose, text, .. }) = self.writing.take() else { return Did::Nothing };
        let is_blank = text.trim().is_empty();
        match purpose {
            Purpose::Filter => Did::Changed,
            Purpose::Search if is_blank => Did::Changed,
            Purpose::Search => {
                let is_there = match (&mut self.pager, &mut self.looked) {
                    (Some(pager), _) => pager.search(&text),
                    (None, Some(looked)) => looked.search(&text),
                    (None, None) => false,
                };
                if is_there { Did::Changed } else { self.says("This text is not here.") }
            }
            Purpose::Message { .. } if is_blank => self.says("Nothing was written, so nothing is sent."),
            Purpose::Message { to, .. } => Did::Wants(UserAction::Message { to, text }),
            Purpose::Words(_) if is_blank => self.says("Nothing was written, so nothing is answered."),
            Purpose::Words(question) if seen.questions.iter().all(|asking| asking.id != question) => {
                self.says("This question needs no answer any more.")
            }
            Purpose::Words(question) => {
                self.answered();
                Did::Wants(UserAction::Answer { question, answer: QuestionAnswer::Text(text) })
            }
        }
    }
}

/// What comes of what was pending. Any key but the one that is asked for means no.
fn decide(pending: Pending, key: KeyEvent) -> Did {
    match (pending, letter(key)) {
        (Pending::Stop(agent, _), Some('y')) => Did::Wants(UserAction::StopAgent(agent)),
        (Pending::RetryRun(run, _), Some('y')) => Did::Wants(UserAction::RetryRun(run)),
        (Pending::Open(places), Some(digit @ '1'..='9')) => {
            match places.into_iter().nth(digit as usize - '1' as usize) {
                Some(place) => Did::Wants(UserAction::Edit(place)),
                None => Did::Changed,
            }
        }
        _ => Did::Changed,
    }
}

/// The character of a key that was pressed alone, or with Shift.
fn letter(key: KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(c) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => Some(c),
        _ => None,
    }
}

fn movement(key: KeyEvent) -> Option<Move> {
    match (key.code, letter(key)) {
        (KeyCode::Down, _) | (_, Some('j')) => Some(Move::AnswerMethod(1)),
        (KeyCode::Up, _) | (_, Some('k')) => Some(Move::AnswerMethod(-1)),
        (KeyCode::PageDown, _) => Some(Move::Screens(1)),
        (KeyCode::PageUp, _) => Some(Move::Screens(-1)),
        (KeyCode::Home, _) => Some(Move::Home),
        (KeyCode::End, _) => Some(Move::End),
        _ => None,
    }
}

/// One step back.
fn is_back(key: KeyEvent) -> bool {
    matches!(key.code, KeyCode::Esc | KeyCode::Left) || letter(key) == Some('q')
}
