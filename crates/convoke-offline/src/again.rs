//! What a crash cut off is run again. A result that says "interrupted, outcome unknown" tells nothing about
//! what was looked for, so the same command is called once more, a bounded number of times. Once it has come,
//! the history is read as if it had never been cut: one rule for all parts that the offline model plays,
//! instead of one in each of them.

use serde_json::{Value, json};

use super::policy::{Answer, call_tools};
use super::read::{Note, blocks, note, said, text_of, without_reminders};

/// So often a command is run again. A run that is killed more often than that in one and the same command
/// gets a report with a gap.
const MOST: usize = 4;

/// How results begin that stand for a command of which nothing is known.
const CUT: [&str; 3] = [
    "Interrupted: Convoke was stopped while",
    "(not run: a person stopped Convoke)",
    "bash error: the shell was lost, outcome unknown",
];

/// What the last line of a command says that was cut off in an orderly way.
const CUT_LINE: &str = "(interrupted: a person stopped Convoke;";

/// Tools whose calls of ours can be repeated: they look.
const LOOKS: [&str; 4] = ["bash", "glob", "grep", "str_replace_based_edit_tool"];

/// A history as it would be if nothing had been cut off.
pub(super) struct Whole {
    /// The request with that history.
    pub(super) request: Value,
    /// Calls that are in the real history and not in this one.
    left_out: usize,
    /// What is to be run again now, if anything.
    again: Vec<(String, Value)>,
}

impl Whole {
    pub(super) fn of(request: &Value) -> Self {
        let mut reading = Reading::default();
        for message in request["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
            match message["role"].as_str() {
                Some("assistant") => reading.reply(message),
                Some("user") => reading.input(message.clone()),
                _ => reading.kept.push(message.clone()),
            }
        }
        let mut request = request.clone();
        let Reading { kept, cut, left_out, tries, is_asked_anew, .. } = reading;
        if left_out > 0 {
            request["messages"] = Value::Array(kept);
        }
        let goes_on = !is_asked_anew && tries < MOST;
        let again = cut.into_iter().filter(|_| goes_on).map(|made| (made.name, made.input)).collect();
        Self { request, left_out, again }
    }

    /// The reply that runs again what was cut off; none if nothing was.
    pub(super) fn again(&self) -> Option<Answer> {
        let calls: Vec<(&str, Value)> =
            self.again.iter().map(|(name, input)| (name.as_str(), input.clone())).collect();
        (!calls.is_empty())
            .then(|| call_tools("That was cut off before it ended; once more.", calls, self.calls_so_far()))
    }

    fn calls_so_far(&self) -> usize {
        let messages = self.request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        messages.iter().map(|message| blocks(&message["content"], "tool_use").count()).sum()
    }

    /// The reply with ids that do not repeat in the real history either.
    pub(super) fn renumbered(&self, mut answer: Answer) -> Answer {
        for block in
            answer.content.iter_mut().filter(|block| self.left_out > 0 && block["type"] == "tool_use")
        {
            let id = text_of(&block["id"]);
            if let Some((head, number)) = id.rsplit_once('_')
                && let Ok(number) = number.parse::<usize>()
            {
                block["id"] = json!(format!("{head}_{}", number + self.left_out));
            }
        }
        answer
    }
}

/// One call of a reply.
#[derive(Debug, Clone)]
struct Made {
    /// Its id in the history that is kept, under which its result stands.
    id: String,
    /// The id of its latest repetition.
    latest: String,
    name: String,
    input: Value,
}

/// The history as far as it was read.
#[derive(Default)]
struct Reading {
    kept: Vec<Value>,
    /// The calls of the last reply that was kept.
    made: Vec<Made>,
    /// Those of them whose result is not known.
    cut: Vec<Made>,
    left_out: usize,
    /// How often they were run again.
    tries: usize,
    /// Whether a person has asked for something else behind them, or for the last reply.
    is_asked_anew: bool,
}

impl Reading {
    fn reply(&mut self, message: &Value) {
        let made = |block: &Value| {
            let id = text_of(&block["id"]);
            let name = text_of(&block["name"]);
            Made { latest: id.clone(), id, name, input: block["input"].clone() }
        };
        let made: Vec<Made> = blocks(&message["content"], "tool_use").map(made).collect();
        let same = |(a, b): (&Made, &Made)| a.name == b.name && a.input == b.input;
        self.is_asked_anew = false;
        if !made.is_empty() && made.len() == self.cut.len() && made.iter().zip(&self.cut).all(same) {
            self.left_out += made.len();
            self.tries += 1;
            self.cut.iter_mut().zip(made).for_each(|(cut, again)| cut.latest = again.latest);
        } else {
            self.made = made;
            self.cut = Vec::new();
            self.tries = 0;
            self.kept.push(message.clone());
        }
    }

    fn input(&mut self, mut message: Value) {
        for text in texts(&message) {
            self.is_asked_anew |= !matches!(note(&text), Some(Note::Nothing | Note::GoOn));
        }
        let again = std::mem::take(&mut self.cut);
        let is_here = |made: &&Made| {
            blocks(&message["content"], "tool_result").any(|result| result["tool_use_id"] == *made.latest)
        };
        // What this message does not tell of is still not known.
        self.cut.extend(again.iter().filter(|made| !is_here(made)).cloned());
        for result in blocks(&message["content"], "tool_result") {
            let is_of = |made: &&Made| result["tool_use_id"] == *made.latest;
            let Some(made) = again.iter().find(is_of).or_else(|| self.made.iter().find(is_of)) else {
                continue;
            };
            if made.latest != made.id {
                replace(&mut self.kept, &made.id, result);
            }
            if LOOKS.contains(&made.name.as_str()) && is_cut(result) {
                self.cut.push(made.clone());
            }
            self.is_asked_anew |= said(&result["content"]).to_lowercase().contains("this is the last reply");
        }
        if let Some(blocks) = message["content"].as_array_mut() {
            let repeats = |block: &Value| again.iter().any(|made| block["tool_use_id"] == *made.latest);
            blocks.retain(|block| block["type"] != "tool_result" || !repeats(block));
            if blocks.is_empty() {
                return;
            }
        }
        self.kept.push(message);
    }
}

/// Puts what a repetition brought where the result of the call stands that it repeats.
fn replace(kept: &mut [Value], id: &str, by: &Value) {
    for message in kept.iter_mut().rev() {
        let Some(blocks) = message["content"].as_array_mut() else { continue };
        let is_it = |block: &&mut Value| block["type"] == "tool_result" && block["tool_use_id"] == *id;
        if let Some(block) = blocks.iter_mut().find(is_it) {
            *block = by.clone();
            block["tool_use_id"] = json!(id);
            return;
        }
    }
}

fn is_cut(result: &Value) -> bool {
    let text = said(&result["content"]);
    let cut =
        CUT.iter().any(|sign| text.starts_with(sign)) || text.lines().any(|line| line.starts_with(CUT_LINE));
    result["is_error"] == true && cut
}

/// The texts of a message without what is marked as a reminder.
fn texts(message: &Value) -> Vec<String> {
    let texts: Vec<String> = match &message["content"] {
        Value::String(text) => vec![text.clone()],
        content => blocks(content, "text").map(|block| text_of(&block["text"])).collect(),
    };
    let bare = texts.iter().map(|text| without_reminders(text).trim().to_owned());
    bare.filter(|text| !text.is_empty()).collect()
}
