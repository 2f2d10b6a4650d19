//! What a key or a paste means, and what a stop, an answer and leaving look like from the keyboard. It says
//! what is wanted; nothing is done here.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Act, App, Picture, Stopping};
use crate::composer::{Given, KeyOutcome, command_help};
use crate::transcript::Block;
use crate::user_action::UserAction;
use crate::view::{Did, Pane, Seen};

impl App {
    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent, now: u64) -> Vec<Act> {
        self.dirty = true;
        let leaving = std::mem::take(&mut self.leaving);
        self.remark = None;
        match (key.code, key.modifiers) {
            (KeyCode::Char('z'), KeyModifiers::CONTROL) => return vec![Act::Suspend],
            (KeyCode::Char('l'), KeyModifiers::CONTROL) => return vec![Act::Redraw],
            (KeyCode::Char('o'), KeyModifiers::CONTROL) => {
                self.turn();
                return Vec::new();
            }
            _ => {}
        }
        match self.picture {
            Picture::Fleet => self.fleet_key(key, now),
            Picture::Session if self.is_asked() => self.answer_key(key, leaving),
            // It was meant for a question that has gone and is still seen: said to the lead it would be
            // nonsense.
            Picture::Session if self.is_gone() && is_written(key) => Vec::new(),
            Picture::Session => self.session_key(key, leaving),
        }
    }

    /// Takes what was pasted.
    pub(crate) fn paste(&mut self, text: &str) -> Vec<Act> {
        self.dirty = true;
        self.leaving = false;
        self.remark = None;
        match self.picture {
            Picture::Fleet => match self.view.paste(text) {
                Did::Wants(ask) => return self.wants(ask),
                Did::Nothing | Did::Changed | Did::Leaves => {}
            },
            Picture::Session if self.is_asked() => self.answer.paste(text),
            Picture::Session => self.composer.paste(text),
        }
        Vec::new()
    }

    /// From one picture to the other.
    fn turn(&mut self) {
        self.picture = match self.picture {
            Picture::Session => {
                self.view.open(if self.questions.is_empty() { Pane::Agents } else { Pane::Questions });
                Picture::Fleet
            }
            Picture::Fleet => Picture::Session,
        };
    }

    fn show(&mut self, pane: Pane) -> Vec<Act> {
        self.view.open(pane);
        self.picture = Picture::Fleet;
        Vec::new()
    }

    fn fleet_key(&mut self, key: KeyEvent, now: u64) -> Vec<Act> {
        if (key.code, key.modifiers) == (KeyCode::Char('c'), KeyModifiers::CONTROL) {
            self.picture = Picture::Session;
            return Vec::new();
        }
        let Self { view, fleet, facts, questions, theme, .. } = self;
        let seen = Seen { fleet, facts, questions, now, theme: *theme };
        match view.key(key, &seen) {
            Did::Wants(ask) => self.wants(ask),
            Did::Leaves => {
                self.picture = Picture::Session;
                Vec::new()
            }
            Did::Nothing | Did::Changed => Vec::new(),
        }
    }

    fn session_key(&mut self, key: KeyEvent, leaving: bool) -> Vec<Act> {
        match self.composer.key(key) {
            KeyOutcome::Done(ask) => {
                let acts = self.written(ask);
                self.remembered().into_iter().chain(acts).collect()
            }
            KeyOutcome::Wrong(why) => {
                self.remark = Some(why);
                Vec::new()
            }
            KeyOutcome::Wants(ask) => vec![Act::Send(ask)],
            KeyOutcome::Nothing | KeyOutcome::Changed => Vec::new(),
            KeyOutcome::NotMine => match (key.code, key.modifiers) {
                (KeyCode::Esc, _) => self.stop(),
                (KeyCode::Char('c'), KeyModifiers::CONTROL) => self.interrupt(leaving),
                (KeyCode::Char('d'), KeyModifiers::CONTROL) if self.composer.is_empty() => {
                    self.leave(leaving)
                }
                (KeyCode::Enter, _) => self.go_on(),
                (KeyCode::BackTab, _) => self.switch_mode(),
                _ => Vec::new(),
            },
        }
    }

    /// Switches orchestration mode on or off.
    fn switch_mode(&self) -> Vec<Act> {
        let other = if self.facts.mode { "off" } else { "on" };
        let given = Given { name: "mode".into(), words: vec![other.into()], rest: other.into() };
        vec![Act::Send(UserAction::Command(given))]
    }

    /// Something was written and is to be done.
    fn written(&mut self, ask: UserAction) -> Vec<Act> {
        match ask {
            UserAction::Say(text) => {
                let waiting = if self.working { &mut self.queued } else { &mut self.sent };
                waiting.push(text.clone());
                vec![Act::Send(UserAction::Say(text))]
            }
            UserAction::Command(given) => self.commanded(given),
            ask => vec![Act::Send(ask)],
        }
    }

    /// A command: what concerns the picture alone is done here, everything else is wanted.
    fn commanded(&mut self, given: Given) -> Vec<Act> {
        match given.name.as_str() {
            "help" => match command_help(given.words.first().map(String::as_str)) {
                Ok(text) => self.say(Block::Printed { title: "/help".into(), text }),
                Err(why) => self.remark = Some(why),
            },
            "agents" => return self.show(Pane::Agents),
            "findings" => return self.show(Pane::Findings),
            "quit" => return self.leave(true),
            name @ ("model" | "resume") if given.words.is_empty() && self.can_pick(name) => {
                if let KeyOutcome::Wants(ask) = self.composer.pick(name) {
                    return vec![Act::Send(ask)];
                }
            }
            _ => return vec![Act::Send(UserAction::Command(given))],
        }
        Vec::new()
    }

    /// Whether a command's argument can be picked: not in plain mode, nor where a bare `/resume` goes on.
    fn can_pick(&self, command: &str) -> bool {
        !self.is_plain && (command != "resume" || !self.can_go_on())
    }

    /// What was written and goes into the history file: no API keys, and no text that begins with a blank.
    fn remembered(&mut self) -> Vec<Act> {
        self.composer.remembered().into_iter().map(Act::Remember).collect()
    }

    /// Enter alone: what was left unfinished goes on.
    fn go_on(&self) -> Vec<Act> {
        if self.can_go_on() { vec![Act::Send(UserAction::GoOn)] } else { Vec::new() }
    }

    /// Stops safely, and cuts when it is asked for again.
    pub(super) fn stop(&mut self) -> Vec<Act> {
        if self.shell.is_some() {
            return vec![Act::Send(UserAction::StopShell)];
        }
        // What is on its way to the lead is work, too: asks are heard in their order.
        match (self.working || !self.sent.is_empty(), self.stopping) {
            (true, Stopping::No) => {
                self.stopping = Stopping::Asked;
                vec![Act::Send(UserAction::Stop)]
            }
            (true, Stopping::Asked) => {
                self.stopping = Stopping::Cutting;
                vec![Act::Send(UserAction::Cut)]
            }
            (true, Stopping::Cutting) | (false, _) => Vec::new(),
        }
    }

    fn interrupt(&mut self, leaving: bool) -> Vec<Act> {
        if !self.composer.is_empty() {
            self.composer.clear();
            return self.remembered();
        }
        self.stop_or_leave(leaving)
    }

    /// Ctrl-C pressed again and again leaves the session, whatever hangs.
    pub(super) fn stop_or_leave(&mut self, leaving: bool) -> Vec<Act> {
        let works = self.working || !self.sent.is_empty();
        if works && self.stopping != Stopping::Cutting { self.stop() } else { self.leave(leaving) }
    }

    pub(super) fn leave(&mut self, sure: bool) -> Vec<Act> {
        if sure {
            self.is_leaving = true;
            return vec![Act::Send(UserAction::Leave)];
        }
        self.leaving = true;
        let what = match self.working {
            true => "work is under way: once more stops it safely and leaves; it can be taken up later",
            false => "once more leaves; the session can be taken up later",
        };
        self.remark = Some(what.into());
        Vec::new()
    }

    /// The person wants this; a question that is answered is gone at once.
    pub(super) fn wants(&mut self, ask: UserAction) -> Vec<Act> {
        if let UserAction::Answer { question, .. } = &ask {
            self.questions.retain(|asking| asking.id != *question);
        }
        vec![Act::Send(ask)]
    }
}

/// Whether a key writes or sends something.
fn is_written(key: KeyEvent) -> bool {
    let alone = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    alone
        && matches!(
            key.code,
            KeyCode::Char(_) | KeyCode::Enter | KeyCode::Backspace | KeyCode::Delete | KeyCode::Tab
        )
}
