//! One agent in full: its turns, its commands and what they put out, folded from all its events. Held only
//! while the person looks at it.

use std::collections::HashMap;
use std::time::Duration;

use convoke_kernel::{
    AgentId, Event, ExchangeClosed, Kept, ModelFailed, ModelReplied, Outcome, Purpose, Ran, ToolFinished,
};

use super::labels::{Said, body, counted, line, said, senders};
use crate::place::FilePosition;
use crate::text::{blocks_text, dollars, kind_word, message_text, revealed, seconds, tokens};

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// What it was asked.
    Prompt,
    /// What it wrote.
    Text,
    /// A call, with what it came to once it has.
    Call,
    /// Letters.
    Mail,
    /// A question to a person.
    Question,
    /// Something went wrong.
    Failure,
    /// Something else that happened.
    Note,
    /// How it ended.
    End,
}

/// One thing that happened to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: u64,
    /// What it is.
    pub kind: EntryKind,
    /// The turn it belongs to, from 1; 0 is before the first.
    pub turn: u32,
    /// In one line: `$ cargo test`, `edit src/a.rs`, the first words of a reply.
    pub title: String,
    /// What it came to, in a few words: `exit 0 · 1.2 s · 14 lines`; blank while it runs.
    pub came_to: String,
    /// Whether it went wrong.
    pub is_bad: bool,
    /// All of it, harmless, with lines: the whole reply, the command and its whole output.
    pub body: String,
    /// The file it is about.
    pub place: Option<FilePosition>,
}

/// One agent in full.
#[derive(Debug, Clone)]
pub struct Page {
    /// The agent.
    pub agent: AgentId,
    /// What happened to it, in order.
    pub entries: Vec<Entry>,
    known: Known,
}

/// What later events refer to.
#[derive(Debug, Clone, Default)]
struct Known {
    last: Option<u64>,
    turn: u32,
    called_at: u64,
    /// The entries of calls, and when each was started, by id.
    calls: HashMap<String, (usize, Option<u64>)>,
    /// The entries of questions, by the id of their call.
    questions: HashMap<String, usize>,
}

impl Page {
    /// An agent of which nothing is known yet.
    pub fn new(agent: AgentId) -> Self {
        Self { agent, entries: Vec::new(), known: Known::default() }
    }

    /// Takes in an event; one that was heard before changes nothing.
    pub fn hear(&mut self, seq: u64, at: u64, event: &Event) {
        if self.known.last.is_some_and(|last| seq <= last) {
            return;
        }
        self.known.last = Some(seq);
        self.take(at, event);
    }

    fn take(&mut self, at: u64, event: &Event) {
        match event {
            Event::AgentStarted(e) => {
                let effort =
                    e.spec.capabilities.effort.as_deref().map(|effort| format!(" · effort {effort}"));
                let model = &e.spec.model;
                let effort = effort.unwrap_or_default();
                let turns = e.spec.limits.max_turns;
                let system = blocks_text(e.spec.system.as_str());
                self.note(at, &format!("{model}{effort} · at most {turns} turns"), &system);
            }
            Event::ExchangeOpened(e) if e.letters.is_empty() => {
                self.add(at, EntryKind::Prompt, &e.text, &e.text)
            }
            Event::ExchangeOpened(e) => {
                self.add(at, EntryKind::Mail, &format!("mail from {}", senders(&e.letters)), &e.text);
            }
            Event::MailDelivered(e) => {
                let title = format!("mail from {}", senders(&e.letters));
                self.add(at, EntryKind::Mail, &title, &message_text(e.message.as_str()));
            }
            Event::CallMade(e) => {
                self.add(at, EntryKind::Prompt, &e.text, &e.text);
                self.call(at, &e.call.id, &e.call.name, e.call.input.as_str());
            }
            Event::ExchangeReopened(e) => self.note(at, &format!("exchange {} goes on", e.exchange), ""),
            Event::ExchangeStopped(e) => self.note(at, &format!("stopped by {}", e.by), ""),
            Event::ModelCalled(e) => {
                self.known.called_at = at;
                match (e.attempt, e.purpose) {
                    (1, Purpose::Turn) => {}
                    (1, Purpose::HandBack) => self.note(at, "the agent is to hand back what it has", ""),
                    (1, Purpose::Summary) => self.note(at, "a summary for a new history is asked for", ""),
                    (attempt, _) => {
                        self.note(at, &format!("request {} again, attempt {attempt}", e.call), "")
                    }
                }
            }
            Event::ModelReplied(e) => self.replied(at, e),
            Event::ModelFailed(e) => self.failed(at, e),
            Event::RoomRefused(e) => {
                self.add(at, EntryKind::Failure, "no room for another request", &e.failure.message);
            }
            Event::NoteAppended(e) => self.note(at, "note to the agent", &message_text(e.message.as_str())),
            Event::ApprovalAsked(e) => {
                self.known.questions.insert(e.id.clone(), self.entries.len());
                let whole = revealed(&format!("{}\nbecause {}", e.what, e.why));
                self.add(at, EntryKind::Question, &revealed(&e.what), &whole);
            }
            Event::ApprovalGiven(e) => {
                let came_to = line(&format!("{} by {}", if e.allow { "allowed" } else { "refused" }, e.by));
                let asked = self.known.questions.remove(&e.id);
                if let Some(entry) = asked.and_then(|place| self.entries.get_mut(place)) {
                    (entry.came_to, entry.is_bad) = (came_to, !e.allow);
                }
            }
            Event::ToolStarted(e) => {
                let place = self.known.calls.get(&e.id).map(|(place, _)| *place);
                let place = place.unwrap_or_else(|| self.call(at, &e.id, &e.name, e.input.as_str()));
                self.known.calls.insert(e.id.clone(), (place, Some(at)));
                if let Some(entry) = self.entries.get_mut(place) {
                    entry.at = at;
                }
            }
            Event::ToolFinished(e) => self.finished(at, e),
            Event::ResultsAppended(e) => match (e.hand_back, e.stuck) {
                (true, true) => self.note(at, "goes in circles: one turn is left to hand back", ""),
                (true, false) => self.note(at, "turn limit reached: one turn is left to hand back", ""),
                (false, true) => self.note(at, "told that it makes the same call again and again", ""),
                (false, false) => {}
            },
            Event::ModeSet(e) => {
                self.note(at, &format!("orchestration mode {}", if e.on { "on" } else { "off" }), "")
            }
            Event::CompactionAsked(e) => self.note(at, "a new history is asked for", &e.focus),
            Event::HistoryCompacted(e) => {
                self.note(
                    at,
                    &format!("new history; {} tokens were left behind", tokens(e.tokens)),
                    &e.summary,
                );
            }
            Event::HistoryForked(e) => {
                let of = format!("begins with the history of {} up to exchange {}", e.session, e.exchange);
                self.note(at, &of, &e.task);
            }
            Event::Retuned(e) => {
                let effort = e.capabilities.effort.as_deref().map(|effort| format!(" · effort {effort}"));
                self.note(at, &format!("from now on: {}{}", e.model, effort.unwrap_or_default()), "");
            }
            Event::EndpointLearnt(e) => {
                let heard = || "others of the session have told it what the server does not take".to_owned();
                self.note(at, &e.line().unwrap_or_else(heard), &e.said);
            }
            Event::InputRejected(e) => {
                let title = format!("set aside: {}", e.input);
                self.add(at, EntryKind::Failure, &title, &e.why);
            }
            Event::Resumed(e) if e.changed.is_empty() => self.note(at, "resumed", ""),
            Event::Resumed(e) => self.note(at, "resumed; changed meanwhile:", &e.changed.join("\n")),
            Event::ExchangeClosed(e) => self.closed(at, e),
        }
    }

    fn replied(&mut self, at: u64, event: &ModelReplied) {
        let ModelReplied { call, reply, kept } = event;
        self.known.turn += u32::from(*kept == Kept::Yes);
        let dropped = match kept {
            Kept::Yes => "",
            Kept::Cut => " · not kept: cut at max_tokens",
            Kept::Empty => " · not kept: empty",
            Kept::Refused => " · not kept: refused",
            Kept::WindowFull => " · not kept: the window was full",
            Kept::Unusable => " · not kept: its tool calls reuse ids",
            Kept::Summary => " · the summary of a new history",
        };
        let usage = &reply.usage;
        let came_to = format!(
            "{} · {} in ({} from cache), {} out · {}{dropped}",
            span(self.known.called_at, at),
            tokens(usage.prompt_tokens()),
            tokens(usage.cache_read_tokens),
            tokens(usage.output_tokens),
            dollars(reply.cost_nano),
        );
        let detail = reply.stop_detail.as_deref().map(|detail| format!("\n{detail}")).unwrap_or_default();
        let silent = format!("reply {call}");
        let title = if reply.text.trim().is_empty() { &silent } else { &reply.text };
        self.add(at, EntryKind::Text, title, &format!("{}{detail}", reply.text));
        if let Some(entry) = self.entries.last_mut() {
            (entry.came_to, entry.is_bad) = (came_to, !matches!(kept, Kept::Yes | Kept::Summary));
        }
        if *kept == Kept::Yes {
            for tool in &reply.calls {
                self.call(at, &tool.id, &tool.name, tool.input.as_str());
            }
        }
    }

    fn failed(&mut self, at: u64, event: &ModelFailed) {
        let ModelFailed { call, attempt, failure, retry_at } = event;
        let took = span(self.known.called_at, at);
        let title =
            format!("request {call}, attempt {attempt} failed ({}) after {took}", kind_word(failure.kind));
        let id = failure.request_id.as_ref().map(|id| format!("\nrequest id {id}")).unwrap_or_default();
        self.add(at, EntryKind::Failure, &title, &format!("{}{id}", failure.message));
        if let (Some(entry), Some(until)) = (self.entries.last_mut(), retry_at) {
            entry.came_to = format!("sent again in {}", span(at, *until));
        }
    }

    fn closed(&mut self, at: u64, event: &ExchangeClosed) {
        match &event.outcome {
            Outcome::Ok { text } => {
                let why = event.degraded.as_deref().unwrap_or_default();
                self.add(at, EntryKind::End, "answered", &apart(why, text));
            }
            Outcome::Failed { kind, message, text } => {
                let back =
                    if event.taken_back { "; the prompt was taken back and can be given again" } else { "" };
                let title = format!("failed ({}){back}", kind_word(*kind));
                self.add(at, EntryKind::End, &title, &apart(message, text));
            }
        }
        if let Some(entry) = self.entries.last_mut() {
            entry.is_bad = event.outcome.failure().is_some();
            if let Some(why) = &event.degraded {
                entry.came_to = format!("degraded: {}", line(why));
            }
        }
    }

    /// Adds the entry of a call that has been made, and says where it is.
    fn call(&mut self, at: u64, id: &str, name: &str, input: &str) -> usize {
        let Said { title, body, place, .. } = said(name, input);
        let turn = self.known.turn;
        let kind = EntryKind::Call;
        self.known.calls.insert(id.to_owned(), (self.entries.len(), None));
        self.entries.push(Entry {
            at,
            kind,
            turn,
            title,
            came_to: String::new(),
            is_bad: false,
            body,
            place,
        });
        self.entries.len() - 1
    }

    fn finished(&mut self, at: u64, event: &ToolFinished) {
        let (place, started) = match self.known.calls.remove(&event.id) {
            Some(known) => known,
            // Its beginning was not heard.
            None => (self.call(at, &event.id, "(a call)", "{}"), None),
        };
        let turn = self.known.turn;
        let result = &event.result;
        let Some(entry) = self.entries.get_mut(place) else { return };
        let how = match (result.ran, result.exit_code) {
            (Ran::Done, Some(code)) => format!("exit {code}"),
            (Ran::Done, None) if result.is_error => "failed".to_owned(),
            (Ran::Done, None) => "done".to_owned(),
            (Ran::Interrupted, _) => "interrupted, outcome unknown".to_owned(),
            (Ran::Refused, _) => "refused".to_owned(),
        };
        let took = started.map(|start| span(start, at));
        let lines = Some(result.text.trim_end().lines().count()).filter(|lines| *lines > 0);
        let parts = [Some(how), took, lines.map(|lines| counted(lines, "line"))];
        entry.came_to = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        entry.is_bad =
            result.is_error || result.ran != Ran::Done || result.exit_code.is_some_and(|code| code != 0);
        entry.turn = entry.turn.min(turn);
        let full =
            result.full_output.as_ref().map(|path| format!("\nfull output: {path}")).unwrap_or_default();
        let output = body(&format!("{}{full}", result.text.trim_end()));
        if !output.is_empty() {
            entry.body = format!("{}\n\n{output}", entry.body);
        }
        self.known.questions.remove(&event.id);
    }

    fn note(&mut self, at: u64, title: &str, text: &str) {
        self.add(at, EntryKind::Note, title, text);
    }

    fn add(&mut self, at: u64, kind: EntryKind, title: &str, text: &str) {
        let turn = self.known.turn;
        let is_bad = kind == EntryKind::Failure;
        let title = line(title);
        let body = body(text);
        let came_to = String::new();
        self.entries.push(Entry { at, kind, turn, title, came_to, is_bad, body, place: None });
    }
}

/// What was said of an end, and what was answered, with a blank line between them.
fn apart(said: &str, answer: &str) -> String {
    let parts = [said, answer].into_iter().map(str::trim_end).filter(|part| !part.trim().is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

fn span(from: u64, to: u64) -> String {
    seconds(Duration::from_millis(to.saturating_sub(from)))
}
