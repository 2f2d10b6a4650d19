//! How views call a call. The words stand in the file of the tool, so that every view says the same thing and
//! a new tool is shown by all of them; what no tool says for itself is the call as it is. The text is foreign
//! and raw: a view makes it harmless and as short as it needs.

use serde_json::Value;

use super::table::row;
use crate::wire::INVALID_INPUT;

/// What a tool says about a call of it; what it leaves out is shown as for every tool.
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub(crate) line: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) progress: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) record: Option<String>,
    pub(crate) doing: Option<&'static str>,
    pub(crate) is_command: bool,
    pub(crate) place: Option<(String, Option<u64>)>,
}

/// A call, as a tool reads it for its words: it may be one that was refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallInput<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Value,
}

impl CallInput<'_> {
    /// A member that holds text.
    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.input.get(member).and_then(Value::as_str)
    }

    /// The same, or nothing.
    pub(crate) fn told(&self, member: &str) -> &str {
        self.text(member).unwrap_or_default()
    }

    /// How many things a member lists.
    pub(crate) fn listed(&self, member: &str) -> Option<usize> {
        self.input.get(member).and_then(Value::as_array).map(Vec::len)
    }
}

/// A call as views show it.
#[derive(Debug)]
pub struct Shown<'a> {
    name: &'a str,
    raw: &'a str,
    input: Value,
    words: Words,
}

/// How a call is shown. A tool that is not in the table, such as one of the embedding program, is shown by
/// its name and its input.
pub fn shown<'a>(name: &'a str, input: &'a str) -> Shown<'a> {
    let value: Value = serde_json::from_str(input).unwrap_or_default();
    let words = row(name).map(|tool| (tool.words)(&CallInput { name, input: &value })).unwrap_or_default();
    Shown { name, raw: input, input: value, words }
}

impl Shown<'_> {
    /// In a conversation, on one line: `$ cargo test`, `view src/a.rs:3-9`.
    pub fn line(&self) -> String {
        match &self.words.line {
            _ if self.input.get(INVALID_INPUT).is_some() => {
                format!("{} (its input was no JSON)", self.name)
            }
            Some(line) => line.clone(),
            None if self.input.as_object().is_none_or(serde_json::Map::is_empty) => self.name.to_owned(),
            None => self.as_it_is(),
        }
    }

    /// In the row of an agent: `$ cargo test`, `edit src/a.rs`.
    pub fn title(&self) -> String {
        self.words.title.clone().unwrap_or_else(|| self.as_it_is())
    }

    /// In the progress of a run without a screen; a command without its prompt.
    pub fn progress(&self) -> String {
        self.words.progress.clone().unwrap_or_else(|| self.as_it_is())
    }

    /// All of what is asked for, with lines.
    pub fn body(&self) -> String {
        self.words.body.clone().unwrap_or_else(|| format!("{} {}", self.name, self.raw))
    }

    /// All of it again, in the record of a session, where nothing is left out.
    pub fn record(&self) -> String {
        self.words.record.clone().unwrap_or_else(|| format!("{} {}", self.name, self.raw))
    }

    /// What an agent that makes this call is at, in one word.
    pub fn doing(&self) -> &'static str {
        self.words.doing.unwrap_or("calling")
    }

    /// Whether it runs something in a shell.
    pub fn is_command(&self) -> bool {
        self.words.is_command
    }

    /// The file it is about, and a line of it.
    pub fn place(&self) -> Option<(&str, Option<u64>)> {
        self.words.place.as_ref().map(|(path, line)| (path.as_str(), *line))
    }

    fn as_it_is(&self) -> String {
        format!("{} {}", self.name, self.input)
    }
}

/// For a tool whose calls are shown as they are.
pub(crate) fn as_it_is(_: &CallInput<'_>) -> Words {
    Words::default()
}

/// For a tool that looks for something in files.
pub(crate) fn search(call: &CallInput<'_>) -> Words {
    let below = call.text("path").map(|path| format!(" in {path}")).unwrap_or_default();
    let said = format!("{} {}{below}", call.name, call.told("pattern"));
    Words {
        line: Some(said.clone()),
        title: Some(said),
        doing: Some("looking"),
        place: call.text("path").map(|path| (path.to_owned(), None)),
        ..Words::default()
    }
}

/// How many of something there are.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
