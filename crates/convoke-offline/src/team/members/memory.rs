//! What goes from one history into the next: a summary that says truly what happened, one line for each
//! thing, and its reader. Commands and what they printed are left out: an agent that needs them looks again.

use serde_json::{Value, json};

use super::brief;
use super::history::{Event, Incoming, MemberHistory, unbarred};
use super::letters::Letter;
use crate::read::Call;

/// So much of a text is kept.
pub(super) const KEPT: usize = 1_500;

/// So many things are kept; wishes always are.
const MOST: usize = 60;

/// The summary with which a new history begins.
pub(super) fn summary(story: &MemberHistory) -> String {
    let lines: Vec<(bool, Value)> = story.events.iter().filter_map(line).collect();
    let mut skipped = lines.len().saturating_sub(MOST);
    let mut out = "Offline model: fixed rules, no intelligence. What happened, oldest first:\n".to_owned();
    for (asked, line) in lines {
        if skipped > 0 && !asked {
            skipped -= 1;
            continue;
        }
        out += &format!("- {line}\n");
    }
    let looks = story.calls_since(0).filter(|call| is_look(call)).count();
    out + &format!("Left out: {looks} commands and what they printed. Nothing else was decided or is known.")
}

/// What stood in the summary of a continued history.
pub(super) fn events(text: &str) -> Vec<Event> {
    let lines = text.lines().filter_map(unbarred).filter_map(|line| line.strip_prefix("- "));
    lines.filter_map(|line| event(&serde_json::from_str(line).ok()?)).collect()
}

/// What the agent was asked last, word for word, if the text continues a history.
pub(crate) fn asked_last(text: &str) -> Option<String> {
    let rest = text.strip_prefix("[history continued]")?.split_once("\nWhat you were asked last")?.1;
    let behind = rest.lines().skip(1).map_while(unbarred);
    Some(behind.collect::<Vec<_>>().join("\n"))
}

fn is_look(call: &Call) -> bool {
    ["bash", "glob", "grep", "str_replace_based_edit_tool"].contains(&call.name.as_str())
}

/// One thing as a line, and whether it is a wish.
fn line(event: &Event) -> Option<(bool, Value)> {
    Some(match event {
        Event::Received(Incoming::Asked(text)) => (true, json!({"asked": cut(text)})),
        Event::Received(Incoming::Task { id, text }) => (true, json!({"task": id, "text": cut(text)})),
        Event::Received(Incoming::Mail(letters)) => {
            let short = |letter: &Letter| Letter { text: brief(&letter.text, 400), ..letter.clone() };
            (false, json!({"letters": letters.iter().map(short).collect::<Vec<_>>()}))
        }
        Event::Said(text) => (false, json!({"said": brief(text, 300)})),
        Event::Called(call) if is_look(call) => return None,
        Event::Called(call) => {
            let mut input = call.input.clone();
            for member in input.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
                if let Value::String(text) = member {
                    *text = cut(text);
                }
            }
            let result = brief(call.result.as_deref().unwrap_or_default(), 300);
            (false, json!({"called": call.name, "input": input, "result": result, "is_error": call.is_error}))
        }
    })
}

fn event(line: &Value) -> Option<Event> {
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    if let Some(asked) = text("asked") {
        Some(Event::Received(Incoming::Asked(asked)))
    } else if let Some(id) = text("task") {
        Some(Event::Received(Incoming::Task { id, text: text("text").unwrap_or_default() }))
    } else if let Some(said) = text("said") {
        Some(Event::Said(said))
    } else if line["letters"].is_array() {
        Some(Event::Received(Incoming::Mail(serde_json::from_value(line["letters"].clone()).ok()?)))
    } else {
        let mut call = Call::new(&json!({"name": text("called")?, "input": line["input"], "id": ""}));
        call.result = text("result");
        call.is_error = line["is_error"] == true;
        Some(Event::Called(call))
    }
}

fn cut(text: &str) -> String {
    text.chars().take(KEPT).collect()
}
