//! One agent in full: its turns, its commands and what they put out, folded from all its events. Held only
//! while the person looks at it.

use std::collections::HashMap;
use std::time::Duration;

use convoke_kernel::{
    AgentId, ApprovalGiven, Event, ExchangeClosed, Kept, ModelFailed, ModelReplied, Ran, ToolFinished,
    ToolStarted,
};

use super::labels::{Said, body, counted, line, said};
use crate::place::FilePosition;
use crate::reading::{Account, EntryKind, Step, kept_words, reply_figures};
use crate::text::seconds;

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
        let step = Step::of(event);
        match step {
            Step::CallStarted(e) => self.started(at, e),
            Step::CallEnded(e) => self.finished(at, e),
            Step::Asked(e) => drop(self.known.questions.insert(e.id.clone(), self.entries.len())),
            Step::Requested(_) => self.known.called_at = at,
            Step::Replied(e) => self.known.turn += u32::from(e.kept == Kept::Yes),
            Step::Started(_)
            | Step::Opened(_)
            | Step::CallMade(_)
            | Step::Reopened
            | Step::RequestFailed(_)
            | Step::Answered(_)
            | Step::Resumed(_)
            | Step::Closed(_)
            | Step::Aside(_) => {}
        }
        let Some(account) = Account::of(event) else { return };
        if let Step::Answered(e) = step {
            // It is told in the entry of what was asked.
            return self.answered(e, &account.title);
        }
        self.add(at, &account);
        match step {
            Step::CallMade(e) => drop(self.call(at, &e.call.id, &e.call.name, e.call.input.as_str())),
            Step::Replied(e) => self.replied(at, e),
            Step::RequestFailed(e) => self.failed(at, &account.title, e),
            Step::Closed(e) => self.closed(e),
            _ => {}
        }
    }

    fn answered(&mut self, event: &ApprovalGiven, title: &str) {
        let asked = self.known.questions.remove(&event.id);
        if let Some(entry) = asked.and_then(|place| self.entries.get_mut(place)) {
            (entry.came_to, entry.is_bad) = (line(title), !event.allow);
        }
    }

    fn started(&mut self, at: u64, event: &ToolStarted) {
        let place = self.known.calls.get(&event.id).map(|(place, _)| *place);
        let place = place.unwrap_or_else(|| self.call(at, &event.id, &event.name, event.input.as_str()));
        self.known.calls.insert(event.id.clone(), (place, Some(at)));
        if let Some(entry) = self.entries.get_mut(place) {
            entry.at = at;
        }
    }

    fn replied(&mut self, at: u64, event: &ModelReplied) {
        let ModelReplied { reply, kept, .. } = event;
        let took = span(self.known.called_at, at);
        if let Some(entry) = self.entries.last_mut() {
            entry.came_to = format!("{took} · {}{}", reply_figures(reply), kept_words(*kept));
            entry.is_bad = !matches!(kept, Kept::Yes | Kept::Summary);
        }
        if *kept == Kept::Yes {
            for tool in &reply.calls {
                self.call(at, &tool.id, &tool.name, tool.input.as_str());
            }
        }
    }

    fn failed(&mut self, at: u64, title: &str, event: &ModelFailed) {
        let took = span(self.known.called_at, at);
        if let Some(entry) = self.entries.last_mut() {
            entry.title = line(&format!("{title} after {took}"));
            if let Some(until) = event.retry_at {
                entry.came_to = format!("sent again in {}", span(at, until));
            }
        }
    }

    fn closed(&mut self, event: &ExchangeClosed) {
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

    fn add(&mut self, at: u64, account: &Account) {
        let Account { kind, title, body: text } = account;
        let turn = self.known.turn;
        let is_bad = *kind == EntryKind::Failure;
        let title = line(title);
        let body = body(text);
        let came_to = String::new();
        self.entries.push(Entry { at, kind: *kind, turn, title, came_to, is_bad, body, place: None });
    }
}

fn span(from: u64, to: u64) -> String {
    seconds(Duration::from_millis(to.saturating_sub(from)))
}
