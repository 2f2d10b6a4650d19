//! Reads the history: which task was given last, what was run for it since and what came of that. It trusts nothing: a
//! result that is not one of our own, whole, is a failure with the text that came instead.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::probes::Probe;

/// So many quotes, of at most 120 bytes, fit into one result when they are read again.
const MOST_QUOTES: usize = 50;

/// How texts of the harness begin that ask for nothing new.
const NOTES: [&str; 2] = ["Your last reply held no answer", "While this work was interrupted, files"];

/// What the harness says when the turns are used up.
const LAST_TURN: [&str; 2] = ["turn limit is reached", "hand back what you have"];

/// The last input from outside and what has happened since.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    pub(super) task: String,
    /// How many replies were given since.
    pub(super) replies: usize,
    /// How many tools were called in the whole conversation, for ids that do not repeat.
    pub(super) calls_so_far: usize,
    /// Whether the harness asks for the answer now.
    pub(super) handing_back: bool,
    outcomes: Vec<(String, Result<Facts, String>)>,
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
    /// Those that could not be read, whose lines nobody knows.
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
        let mut exchange = Self::default();
        let mut running: BTreeMap<String, String> = BTreeMap::new();
        for message in request["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let content = &message["content"];
            match message["role"].as_str() {
                Some("assistant") => {
                    exchange.replies += 1;
                    for call in blocks(content, "tool_use") {
                        exchange.calls_so_far += 1;
                        let title =
                            call["input"]["command"].as_str().and_then(|c| c.lines().next()).unwrap_or_default();
                        running.insert(text_of(&call["id"]), title.to_owned());
                    }
                }
                Some("user") => {
                    exchange.take_results(content, &mut running);
                    exchange.take_text(&said(content));
                }
                _ => {}
            }
        }
        exchange
    }

    fn take_results(&mut self, content: &Value, running: &mut BTreeMap<String, String>) {
        for result in blocks(content, "tool_result") {
            let text = said(&result["content"]);
            let facts = Facts::parse(&text).ok_or_else(|| short(&text));
            self.handing_back |= facts.is_err() && text.to_lowercase().contains("turn limit");
            if let Some(title) = running.remove(&text_of(&result["tool_use_id"])) {
                self.outcomes.push((title, facts));
            }
        }
    }

    fn take_text(&mut self, text: &str) {
        let text = without_reminders(text);
        let text = text.trim();
        if text.is_empty() || NOTES.iter().any(|note| text.starts_with(note)) {
            return;
        }
        let low = text.to_lowercase();
        if self.replies > 0 && LAST_TURN.iter().any(|sign| low.contains(sign)) {
            self.handing_back = true;
            return;
        }
        *self = Self { task: text.to_owned(), calls_so_far: self.calls_so_far, ..Self::default() };
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
        let items =
            facts.flat_map(|facts| facts.items.iter().filter(|item| item.kind != "untested" || !facts.is_partial()));
        items.filter(|item| !item.text.is_empty()).take(MOST_QUOTES)
    }

    /// What was run and failed: the probe's title and the reason.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes.iter().filter_map(|(title, outcome)| Some((title.as_str(), outcome.as_ref().err()?.as_str())))
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
        self.languages().iter().filter(|row| known.contains(&row.name)).map(|row| row.files + row.locked).sum()
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

fn blocks<'a>(content: &'a Value, kind: &'static str) -> impl Iterator<Item = &'a Value> {
    content.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter(move |block| block["type"] == kind)
}

fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => blocks(content, "text").map(|block| text_of(&block["text"])).collect::<Vec<_>>().join("\n"),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The text without what the harness put in as a marked reminder.
fn without_reminders(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("<system-reminder>") {
        kept.push_str(&rest[..start]);
        rest = rest[start..].split_once("</system-reminder>").map_or("", |(_, after)| after);
    }
    kept + rest
}

/// The first line of a result that could not be read, for the report.
fn short(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing came back");
    let ours = line.strip_prefix("# ").filter(|_| text.trim().lines().count() > 1);
    let line = ours.map_or(line.trim_start_matches(['#', ' ']), |_| "the result did not come whole");
    let line: String = line.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect();
    if line.chars().count() > 100 { line.chars().take(100).collect::<String>() + "…" } else { line }
}

/// Undoes the encoding of paths in the commands.
fn decoded(path: &str) -> String {
    path.replace("%0A", "\n").replace("%09", "\t").replace("%0D", "\r").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_was_cut_is_no_result_and_a_cut_line_is_no_line() {
        assert_eq!(Facts::parse("N\tgit\t1\t.\nI\t0\thit\ta.rs\t3\t3\tfn"), None);
        let facts = Facts::parse("I\t0\thit\ta.rs\t3\t3\tfn\n[cut]\nI\t0\thit\ta%0Ab.rs\t4\t4\tx\t.\nend").unwrap();
        let places: Vec<(&str, u64)> = facts.items.iter().map(|item| (item.path.as_str(), item.first)).collect();
        assert_eq!(places, [("a\nb.rs", 4)]);
    }
}
