//! Reads the history: which task was given last, what was run for it since and what came of that. It trusts
//! nothing: a result that is not one of our own, whole, is a failure with the text that came instead.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::probes::Probe;

/// So many quotes, of at most 120 bytes, fit into one result when they are read again.
const MOST_QUOTES: usize = 50;

/// How texts of the harness begin that ask for nothing new.
const NOTES: [&str; 8] = [
    "Your last reply held no answer",
    "While this work was interrupted, files",
    "End with one call of",
    "[mail]",
    "[todo]",
    "[who you are]",
    "[work under way]",
    "[this conversation was forked]",
];

/// How the harness asks to go on after a hand-back.
const GO_ON: &str = "The work was cut short by its budget";

/// The first line of the command by which a lead scouts.
pub(super) const SCOUT: &str = "# Files and lines by directory and language";

/// How a text of the harness begins that asks for the last reply.
const HAND_BACK: [&str; 2] = ["The turn limit is reached", "The budget for this work is used up"];

/// What the harness says when the turns are used up.
const LAST_TURN: [&str; 2] = ["turn limit is reached", "hand back what you have"];

/// The last input from outside and what has happened since.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    pub(super) task: String,
    /// How many replies were given since, without those of a lead that scouted or fanned out.
    pub(super) replies: usize,
    /// How many tools were called in the whole conversation, for ids that do not repeat.
    pub(super) calls_so_far: usize,
    /// Whether the harness asks for the answer now.
    pub(super) handing_back: bool,
    /// The text by which the harness asked for the last reply. After it nothing may be refused and nothing
    /// called.
    pub(super) last_reply: Option<String>,
    /// Every tool call since, with what came of it.
    pub(super) calls: Vec<Call>,
    /// What the last reply before this input said.
    pub(super) earlier: String,
    /// How many replies were given since, of any kind.
    all_replies: usize,
    /// Whether later texts are notes, whatever they say: an agent's task does not change.
    one_task: bool,
    outcomes: Vec<(String, Result<Facts, String>)>,
}

/// One tool call and its result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) input: Value,
    id: String,
    /// What came back; none while it is under way.
    pub(super) result: Option<String>,
    pub(super) is_error: bool,
}

impl Call {
    pub(super) fn new(block: &Value) -> Self {
        let name = text_of(&block["name"]);
        let id = text_of(&block["id"]);
        Self { name, input: block["input"].clone(), id, result: None, is_error: false }
    }

    fn is_probe(&self) -> bool {
        self.name == "bash" && self.title() != SCOUT
    }

    /// Whether this is the result of the call; then it is kept.
    pub(super) fn take(&mut self, result: &Value) -> bool {
        let ours = result["tool_use_id"] == self.id;
        if ours {
            self.result = Some(said(&result["content"]));
            self.is_error = result["is_error"] == true;
        }
        ours
    }

    /// The first line of a command.
    pub(super) fn title(&self) -> &str {
        self.input["command"].as_str().and_then(|command| command.lines().next()).unwrap_or_default()
    }
}

/// What a probe came to.
#[derive(Debug)]
pub(super) enum Seen<'a> {
    /// It was not run.
    Nothing,
    /// It was run and brought nothing that can be used; `failures` says why.
    Failed,
    Facts(&'a Facts),
}

/// The lines a command of ours printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    counts: BTreeMap<String, u64>,
    kinds: BTreeMap<String, (u64, u64)>,
    pub(super) items: Vec<Item>,
    reread: BTreeMap<usize, String>,
}

/// The files of one language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Language<'a> {
    pub(super) name: &'a str,
    /// Those that were counted.
    pub(super) files: u64,
    pub(super) lines: u64,
    /// Those that could not be read, whose lines are not known.
    pub(super) locked: u64,
}

/// One finding: where it is and what stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) kind: String,
    pub(super) path: String,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) text: String,
}

impl Exchange {
    pub(super) fn of(request: &Value) -> Self {
        Self::read(request, false)
    }

    /// The history of an agent, whose first input is its task and whose later ones are notes.
    pub(super) fn of_agent(request: &Value) -> Self {
        Self::read(request, true)
    }

    fn read(request: &Value, one_task: bool) -> Self {
        let mut exchange = Self { one_task, ..Self::default() };
        let mut running: BTreeMap<String, String> = BTreeMap::new();
        for message in request["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let content = &message["content"];
            match message["role"].as_str() {
                Some("assistant") => {
                    let said = said(content);
                    if !said.trim().is_empty() {
                        exchange.earlier = said;
                    }
                    exchange.all_replies += 1;
                    // Scouting and fanning out are no turns of a review that is done alone.
                    let called: Vec<Call> = blocks(content, "tool_use").map(Call::new).collect();
                    exchange.replies += usize::from(called.is_empty() || called.iter().any(Call::is_probe));
                    for call in called {
                        exchange.calls_so_far += 1;
                        running.insert(call.id.clone(), call.title().to_owned());
                        exchange.calls.push(call);
                    }
                }
                Some("user") => {
                    exchange.take_results(content, &mut running);
                    exchange.take_texts(content);
                }
                _ => {}
            }
        }
        exchange
    }

    fn take_results(&mut self, content: &Value, running: &mut BTreeMap<String, String>) {
        for result in blocks(content, "tool_result") {
            let text = said(&result["content"]);
            self.calls.iter_mut().rev().any(|call| call.take(result));
            let facts = Facts::parse(&text).ok_or_else(|| short(&text));
            let low = if facts.is_err() { text.to_lowercase() } else { String::new() };
            self.handing_back |= low.contains("turn limit") || low.contains("this is the last reply");
            // Only commands have a title; other calls are read by the code that made them.
            let title = running.remove(&text_of(&result["tool_use_id"]));
            if let Some(title) = title.filter(|title| !title.is_empty()) {
                self.outcomes.push((title, facts));
            }
        }
    }

    /// The texts of one message. Those that ask for the last reply are no part of a task, also before any
    /// reply.
    fn take_texts(&mut self, content: &Value) {
        let texts: Vec<String> = match content {
            Value::String(text) => vec![text.clone()],
            _ => blocks(content, "text").map(|block| text_of(&block["text"])).collect(),
        };
        let mut rest = Vec::new();
        let mut note = None;
        for text in texts {
            let begun = self.all_replies > 0 || !self.task.is_empty() || !rest.is_empty();
            if begun && HAND_BACK.iter().any(|sign| text.trim_start().starts_with(sign)) {
                note = Some(text);
            } else if !(begun && NOTES.iter().any(|sign| text.trim_start().starts_with(sign))) {
                // A note of the harness in the message that carries the task is no part of it either.
                rest.push(text);
            }
        }
        self.take_text(&rest.join("\n"));
        if note.is_some() {
            self.handing_back = true;
            self.last_reply = note;
        }
    }

    fn take_text(&mut self, text: &str) {
        let text = without_reminders(text);
        let text = super::team::asked_last(text.trim()).unwrap_or(text);
        let text = text.trim();
        self.handing_back |= text.starts_with("End with one call of");
        if text.is_empty() || NOTES.iter().any(|note| text.starts_with(note)) {
            return;
        }
        if text.starts_with(GO_ON) {
            self.handing_back = false;
            self.last_reply = None;
            self.replies = self.replies.saturating_sub(1);
            return;
        }
        let low = text.to_lowercase();
        if self.all_replies > 0 && LAST_TURN.iter().any(|sign| low.contains(sign)) {
            self.handing_back = true;
            self.last_reply = Some(text.to_owned());
            return;
        }
        if self.one_task && !self.task.is_empty() {
            return;
        }
        let earlier = std::mem::take(&mut self.earlier);
        let calls_so_far = self.calls_so_far;
        let one_task = self.one_task;
        *self = Self { task: text.to_owned(), calls_so_far, one_task, earlier, ..Self::default() };
    }

    /// What this probe came to: its last whole result, or why there is none.
    pub(super) fn seen(&self, probe: &Probe) -> Seen<'_> {
        let mut seen = Seen::Nothing;
        for (title, outcome) in &self.outcomes {
            if title == probe.title() {
                match outcome {
                    Ok(facts) => seen = Seen::Facts(facts),
                    Err(_) if !matches!(seen, Seen::Facts(_)) => seen = Seen::Failed,
                    Err(_) => {}
                }
            }
        }
        seen
    }

    /// The findings that the report quotes, in the order they were found.
    pub(super) fn quoted(&self) -> impl Iterator<Item = &Item> {
        let facts = self.outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
        let items = facts.flat_map(|facts| {
            facts.items.iter().filter(|item| item.kind != "untested" || !facts.is_partial())
        });
        items.filter(|item| !item.text.is_empty()).take(MOST_QUOTES)
    }

    /// What was run and failed: the probe's title and the reason.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes
            .iter()
            .filter_map(|(title, outcome)| Some((title.as_str(), outcome.as_ref().err()?.as_str())))
    }
}

impl Facts {
    /// Reads a result; none if it did not come to its end.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut facts = Self::default();
        let mut whole = false;
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields.as_slice() {
                ["end"] => whole = true,
                ["N", name, number, "."] => {
                    facts.counts.insert((*name).to_owned(), number.parse().ok()?);
                }
                ["K", kind, number, files, "."] => {
                    facts.kinds.insert((*kind).to_owned(), (number.parse().ok()?, files.parse().ok()?));
                }
                ["R", index, text, "."] => {
                    facts.reread.insert(index.parse().ok()?, (*text).to_owned());
                }
                ["I", _, kind, path, first, last, text, "."] => facts.items.push(Item {
                    kind: (*kind).to_owned(),
                    path: decoded(path),
                    first: first.parse().ok()?,
                    last: last.parse().ok()?,
                    text: (*text).to_owned(),
                }),
                _ => {}
            }
        }
        whole.then_some(facts)
    }

    /// A number the command counted; nought if it printed none of that name.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// How many findings of a kind there are, and in how many files.
    pub(super) fn kind(&self, kind: &str) -> (u64, u64) {
        self.kinds.get(kind).copied().unwrap_or_default()
    }

    /// How many findings there are of all kinds.
    pub(super) fn total(&self) -> u64 {
        self.kinds.values().map(|(number, _)| number).sum()
    }

    /// Languages with their files and lines, the largest first.
    pub(super) fn languages(&self) -> Vec<Language<'_>> {
        let named = |name: &'static str| self.counts.keys().filter_map(move |key| key.strip_prefix(name));
        let names: BTreeSet<&str> = named("files_").chain(named("locked_")).collect();
        let row = |name| Language {
            name,
            files: self.count(&format!("files_{name}")),
            lines: self.count(&format!("lines_{name}")),
            locked: self.count(&format!("locked_{name}")),
        };
        let mut rows: Vec<Language<'_>> = names.into_iter().map(row).collect();
        rows.sort_by(|a, b| (b.lines, b.files).cmp(&(a.lines, a.files)).then(a.name.cmp(b.name)));
        rows
    }

    /// How many files there are, without those left out: readable or not.
    pub(super) fn files(&self) -> u64 {
        self.readable() + self.count("locked")
    }

    /// How many of them may be read.
    pub(super) fn readable(&self) -> u64 {
        self.languages().iter().map(|row| row.files).sum::<u64>() + self.count("big")
    }

    /// How many of them are of a language that is looked into, readable or not.
    pub(super) fn sources(&self) -> u64 {
        let known = super::probes::source_languages();
        self.languages()
            .iter()
            .filter(|row| known.contains(&row.name))
            .map(|row| row.files + row.locked)
            .sum()
    }

    /// How many files and directories could not be read.
    pub(super) fn unread(&self) -> (u64, u64) {
        (self.count("locked"), self.count("closed"))
    }

    /// Whether there may be source files that were not looked into, because there are so many.
    pub(super) fn is_partial(&self) -> bool {
        self.count("stopped") + self.count("capped") > 0
    }

    /// Whether it was to look into source files and could not read a single one.
    pub(super) fn looked_into_nothing(&self) -> bool {
        self.count("scanned") + self.count("marked_generated") == 0 && self.unread() != (0, 0)
    }

    /// A line that was read again.
    pub(super) fn reread(&self, index: usize) -> Option<&str> {
        self.reread.get(&index).map(String::as_str)
    }
}

pub(super) fn blocks<'a>(content: &'a Value, kind: &'static str) -> impl Iterator<Item = &'a Value> {
    content
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter(move |block| block["type"] == kind)
}

pub(super) fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => blocks(content, "text").map(|block| text_of(&block["text"])).collect::<Vec<_>>().join("\n"),
    }
}

pub(super) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What a text of the harness is for an agent whose later texts are read one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    /// It asks for nothing new.
    Nothing,
    /// It asks for the last reply.
    LastReply,
    /// It takes that back.
    GoOn,
}

/// What a text is, if it is a note of the harness.
pub(super) fn note(text: &str) -> Option<Note> {
    let text = text.trim_start();
    let low = text.to_lowercase();
    if HAND_BACK.iter().any(|sign| text.starts_with(sign)) || LAST_TURN.iter().any(|sign| low.contains(sign))
    {
        Some(Note::LastReply)
    } else if text.starts_with(GO_ON) {
        Some(Note::GoOn)
    } else {
        NOTES.iter().any(|sign| text.starts_with(sign)).then_some(Note::Nothing)
    }
}

/// The text without what the harness put in as a marked reminder.
pub(super) fn without_reminders(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("<system-reminder>") {
        kept.push_str(&rest[..start]);
        rest = rest[start..].split_once("</system-reminder>").map_or("", |(_, after)| after);
    }
    kept + rest
}

/// The first line of a result that could not be read, for the report.
pub(super) fn short(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing came back");
    let ours = line.strip_prefix("# ").filter(|_| text.trim().lines().count() > 1);
    let line = ours.map_or(line.trim_start_matches(['#', ' ']), |_| "the result did not come whole");
    let line: String = line.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect();
    if line.chars().count() > 100 { line.chars().take(100).collect::<String>() + "…" } else { line }
}

/// Undoes the encoding of paths in the commands.
pub(super) fn decoded(path: &str) -> String {
    path.replace("%0A", "\n").replace("%09", "\t").replace("%0D", "\r").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_was_cut_is_no_result_and_a_cut_line_is_no_line() {
        assert_eq!(Facts::parse("N\tgit\t1\t.\nI\t0\thit\ta.rs\t3\t3\tfn"), None);
        let facts =
            Facts::parse("I\t0\thit\ta.rs\t3\t3\tfn\n[cut]\nI\t0\thit\ta%0Ab.rs\t4\t4\tx\t.\nend").unwrap();
        let places: Vec<(&str, u64)> =
            facts.items.iter().map(|item| (item.path.as_str(), item.first)).collect();
        assert_eq!(places, [("a\nb.rs", 4)]);
    }
}
