//! What a member of a team heard, called and said, in order, from its history alone. It knows the texts of
//! the harness by their first lines; all else in a user message is a wish of the person or the lead.

use serde_json::Value;

use super::letters::{self, Letter};
use super::memory;
use crate::read::{Call, Note, blocks, note, said, text_of, without_reminders};

/// Something that reached the member.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    /// A wish in words: of a person, or of the lead when it spawned this one.
    Asked(String),
    Mail(Vec<Letter>),
    /// A task that is in its hands now: its id and all that was said about it.
    Task {
        id: String,
        text: String,
    },
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    Received(Incoming),
    Called(Call),
    /// A reply without a call, which ends an exchange.
    Said(String),
}

/// The history of a member.
#[derive(Debug, Default)]
pub(super) struct MemberHistory {
    pub(super) events: Vec<Event>,
    /// Where the exchange that is under way begins.
    pub(super) opened: usize,
    /// How many tools were called, for ids that do not repeat.
    pub(super) calls_so_far: usize,
    /// Whether a summary is asked for, with which a new history begins.
    pub(super) summary_wanted: bool,
    /// Whether this history continues an earlier one.
    pub(super) continued: bool,
    /// The members that are alive, as the harness named them last.
    pub(super) members: Vec<String>,
    /// The text by which the harness asked for the last reply.
    pub(super) last_reply: Option<String>,
}

impl MemberHistory {
    pub(super) fn of(request: &Value) -> Self {
        let mut story = Self::default();
        for message in request["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let content = &message["content"];
            match message["role"].as_str() {
                Some("assistant") => story.reply(content),
                Some("user") => story.input(content),
                _ => {}
            }
        }
        story
    }

    fn reply(&mut self, content: &Value) {
        self.summary_wanted = false;
        let calls: Vec<Call> = blocks(content, "tool_use").map(Call::new).collect();
        if calls.is_empty() {
            self.events.push(Event::Said(said(content)));
            self.opened = self.events.len();
        }
        self.calls_so_far += calls.len();
        for call in calls {
            let rests = call.name == "idle";
            self.events.push(Event::Called(call));
            if rests {
                self.opened = self.events.len();
            }
        }
    }

    fn input(&mut self, content: &Value) {
        for result in blocks(content, "tool_result") {
            self.events.iter_mut().rev().any(|event| match event {
                Event::Called(call) => call.take(result),
                _ => false,
            });
            let low = said(&result["content"]).to_lowercase();
            if result["is_error"] == true
                && (low.contains("turn limit") || low.contains("this is the last reply"))
            {
                self.last_reply = Some(said(&result["content"]));
            }
        }
        match content {
            Value::String(text) => self.hear(text),
            _ => blocks(content, "text").for_each(|block| self.hear(&text_of(&block["text"]))),
        }
    }

    fn hear(&mut self, text: &str) {
        let text = without_reminders(text);
        let text = text.trim();
        if text.starts_with("[new history]") {
            self.summary_wanted = true;
        } else if text.starts_with("[history continued]") {
            self.continued = true;
            self.members = members(text);
            self.events = memory::events(text);
            let asked = memory::asked_last(text).and_then(|asked| heard(&asked));
            self.opened = self.events.len();
            if let Some(asked) = asked {
                let same = |event: &Event| matches!(event, Event::Received(other) if other.is_like(&asked));
                match self.events.iter().rposition(same) {
                    Some(at) => self.opened = at,
                    None => self.events.push(Event::Received(asked)),
                }
            }
        } else if text.starts_with("[who you are]") {
            self.members = members(text);
        } else if text.starts_with("[mail]") {
            self.last_reply = None;
            self.events.extend(heard(text).map(Event::Received));
        } else {
            match note(text) {
                Some(Note::LastReply) => self.last_reply = Some(text.to_owned()),
                Some(Note::GoOn) => self.last_reply = None,
                Some(Note::Nothing) => {}
                None => {
                    self.last_reply = None;
                    self.events.extend(heard(text).map(Event::Received));
                }
            }
        }
    }

    /// What was heard since a place, and where.
    pub(super) fn heard_since(&self, start: usize) -> impl Iterator<Item = (usize, &Incoming)> {
        self.events.iter().enumerate().skip(start).filter_map(|(at, event)| match event {
            Event::Received(heard) => Some((at, heard)),
            _ => None,
        })
    }

    /// What was called since a place.
    pub(super) fn calls_since(&self, start: usize) -> impl Iterator<Item = &Call> {
        self.events.iter().skip(start).filter_map(|event| match event {
            Event::Called(call) => Some(call),
            _ => None,
        })
    }

    /// The letters that were read since a place.
    pub(super) fn letters_since(&self, start: usize) -> impl Iterator<Item = &Letter> {
        let mails = self.heard_since(start).filter_map(|(_, heard)| match heard {
            Incoming::Mail(letters) => Some(letters),
            _ => None,
        });
        mails.flatten()
    }

    /// The wishes in words, and where.
    pub(super) fn asked(&self) -> impl Iterator<Item = (usize, &str)> {
        self.heard_since(0).filter_map(|(at, heard)| match heard {
            Incoming::Asked(text) => Some((at, text.as_str())),
            _ => None,
        })
    }
}

impl Incoming {
    /// Whether this is the same, told a second time.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Incoming::Asked(a), Incoming::Asked(b)) => alike(a, b),
            (Incoming::Mail(a), Incoming::Mail(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| (&a.from, &a.request) == (&b.from, &b.request))
            }
            (Incoming::Task { id: a, .. }, Incoming::Task { id: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// Whether two texts begin alike: one of them may have been shortened for a summary.
pub(super) fn alike(a: &str, b: &str) -> bool {
    a.trim().chars().take(memory::KEPT).eq(b.trim().chars().take(memory::KEPT))
}

/// The living members that a text of the harness names.
fn members(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("member: "));
    let alive =
        lines.filter(|line| !["stopped", "failed", "none beside you"].iter().any(|word| line.contains(word)));
    alive
        .filter_map(|line| Some(line.split_once(',')?.0.trim().to_owned()))
        .filter(|name| name != "lead")
        .collect()
}

/// What a text is to a member; none if it is empty.
fn heard(text: &str) -> Option<Incoming> {
    let text = text.trim();
    let id = |sign: &str| Some(text.strip_prefix(sign)?.split_once(']')?.0.trim().to_owned());
    if text.is_empty() {
        None
    } else if text.starts_with("[mail]") {
        Some(Incoming::Mail(letters::read(text)))
    } else if let Some(id) = id("[claimed ").or_else(|| id("[unfinished ")) {
        Some(Incoming::Task { id, text: text.to_owned() })
    } else {
        Some(Incoming::Asked(text.to_owned()))
    }
}

/// What stands behind the bar of a quoted line.
pub(in crate::team) fn unbarred(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('|')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}
