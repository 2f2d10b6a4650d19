//! The JSON form of a script. Every mistake is reported with its line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Reply, Script, calls_many, cut_at_max_tokens, empty, raw, refuses, says};
use crate::brain::Scripted;
use crate::fault::Fault;

/// A script file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the script is not usable, line {line}, column {column}: {problem}; correct it and start again")]
pub struct ScriptError {
    /// The line the reader had come to, from 1.
    pub line: usize,
    /// The column in that line.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
}

pub(super) fn read(text: &str) -> Result<Script, ScriptError> {
    let file: File<'_> = serde_json::from_str(text).map_err(|error| ScriptError::new(&error, 0, 0))?;
    let mut conversations = BTreeMap::new();
    for (name, written) in file.conversations {
        let replies =
            written.into_iter().map(|written| reply(text, written.get())).collect::<Result<_, _>>()?;
        conversations.insert(name, replies);
    }
    Ok(Script { conversations, faults: file.faults })
}

/// Each reply is read by itself, because only then is it known where a reply begins that makes no sense as a
/// whole.
fn reply(text: &str, written: &str) -> Result<Reply, ScriptError> {
    let before = &text[..written.as_ptr() as usize - text.as_ptr() as usize];
    let lines = before.matches('\n').count();
    let columns = before.rsplit('\n').next().map_or(0, str::len);
    let parsed: Written =
        serde_json::from_str(written).map_err(|error| ScriptError::new(&error, lines, columns))?;
    let nonsense = |problem| ScriptError { line: lines + 1, column: columns + 1, problem };
    if parsed.last_contains.is_some() {
        return Err(nonsense("`last_contains` belongs into an entry of `when`".to_owned()));
    }
    parsed.reply().map_err(nonsense)
}

impl ScriptError {
    /// An error in a piece of the file that begins after so many lines, and so many columns into the next
    /// one.
    fn new(error: &serde_json::Error, lines: usize, columns: usize) -> Self {
        let said = error.to_string();
        // serde_json appends the position to its text; here it stands in front.
        let problem = said.split(" at line ").next().unwrap_or(&said).to_owned();
        let column = if error.line() == 1 { columns + error.column() } else { error.column() };
        Self { line: lines + error.line(), column, problem }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow)]
    conversations: BTreeMap<String, Vec<&'a RawValue>>,
    #[serde(default)]
    faults: Vec<Fault>,
}

/// A reply as it is written: one of the ways to reply, and what modifies it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    says: Option<String>,
    calls: Option<Vec<Call>>,
    refuses: Option<String>,
    cut_at_max_tokens: Option<String>,
    empty: Option<bool>,
    raw: Option<Raw>,
    thinking: Option<String>,
    cut_below: Option<CutBelow>,
    after_ms: Option<u64>,
    #[serde(default)]
    fills_max_tokens: bool,
    last_contains: Option<String>,
    #[serde(default)]
    when: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    input: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutBelow {
    max_tokens: u64,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    content: Vec<Value>,
    stop_reason: String,
    stop_details: Option<Value>,
}

impl Written {
    fn reply(self) -> Result<Reply, String> {
        let mut reply =
            match (self.says, self.calls, self.refuses, self.cut_at_max_tokens, self.empty, self.raw) {
                (Some(text), None, None, None, None, None) => says(&text),
                (text, Some(calls), None, None, None, None) => {
                    let reply = calls_many(calls.iter().map(|call| (call.tool.as_str(), call.input.clone())));
                    text.map_or(reply.clone(), |text| reply.saying(&text))
                }
                (None, None, Some(explanation), None, None, None) => refuses(&explanation),
                (None, None, None, Some(partial), None, None) => cut_at_max_tokens(&partial),
                (None, None, None, None, Some(true), None) => empty(),
                (None, None, None, None, None, Some(Raw { content, stop_reason, stop_details })) => {
                    raw(Scripted { content, stop_reason, stop_details, ..Scripted::default() })
                }
                _ => {
                    let ways =
                        "says, calls (with or without says), refuses, cut_at_max_tokens, empty: true, raw";
                    return Err(format!("a reply needs exactly one of: {ways}"));
                }
            };
        if let Some(text) = self.thinking {
            reply = reply.thinking(&text);
        }
        if let Some(CutBelow { max_tokens, text }) = self.cut_below {
            reply = reply.cut_below(max_tokens, &text);
        }
        if let Some(milliseconds) = self.after_ms {
            reply = reply.after(Duration::from_millis(milliseconds));
        }
        if self.fills_max_tokens {
            reply = reply.fills_max_tokens();
        }
        for mut alternative in self.when {
            let needle =
                alternative.last_contains.take().ok_or("an entry of `when` needs `last_contains`")?;
            reply = reply.when_last_contains(&needle, alternative.reply()?);
        }
        Ok(reply)
    }
}
