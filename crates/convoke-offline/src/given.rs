//! A tool that the task has called word for word, "call the tool ticket with {"id": 7}": so a program that
//! gives an agent a tool of its own can try it without a key. What the tool said is the answer.

use serde_json::{Deserializer, Value};

use crate::policy::{Answer, call_tools, text};
use crate::read::Exchange;

const CALL: &str = "call the tool ";
const WITH: &str = " with ";

/// The reply to a task that has a declared tool called; none if it does not.
pub(super) fn answer(request: &Value) -> Option<Answer> {
    let exchange = Exchange::of(request);
    let (name, input) = wanted(&exchange.task)?;
    let tools = request["tools"].as_array()?;
    if !tools.iter().any(|tool| tool["name"] == name.as_str()) {
        return None;
    }
    let Some(call) = exchange.calls.iter().rfind(|call| call.name == name) else {
        return Some(match exchange.handing_back {
            true => text(&format!("The tool {name} was not called: the work ended before that.")),
            false => call_tools("", vec![(&name, input)], exchange.calls_so_far),
        });
    };
    let result = call.result.as_deref().unwrap_or_default();
    let verb = if call.is_error { "failed" } else { "said" };
    Some(text(&format!("The tool {name} {verb}: {result}")))
}

/// The name and the input in "call the tool NAME with {…}".
fn wanted(task: &str) -> Option<(String, Value)> {
    let begin = task.to_ascii_lowercase().find(CALL)? + CALL.len();
    let (name, rest) = task[begin..].split_once(WITH)?;
    let input = Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?;
    let name = name.trim_matches(['`', '"', '\'']);
    (!name.contains(' ') && input.is_object()).then(|| (name.to_owned(), input))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(task: &str, more: &[Value]) -> Value {
        let mut messages = vec![json!({"role": "user", "content": task})];
        messages.extend(more.iter().cloned());
        json!({"tools": [{"name": "ticket"}], "messages": messages})
    }

    #[test]
    fn a_declared_tool_is_called_word_for_word_and_its_result_is_the_answer() {
        let task = r#"Call the tool ticket with {"id": 7}, and say what it says."#;
        let first = answer(&request(task, &[])).unwrap();
        let call = first.content[0].clone();
        assert_eq!((&call["name"], &call["input"]), (&json!("ticket"), &json!({"id": 7})));
        let result = |error: bool, text: &str| {
            let result =
                json!({"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": error});
            let messages = [
                json!({"role": "assistant", "content": [call.clone()]}),
                json!({"role": "user", "content": [result]}),
            ];
            answer(&request(task, &messages)).unwrap().content[0]["text"].clone()
        };
        assert_eq!(result(false, "ticket 7 is open"), "The tool ticket said: ticket 7 is open");
        assert_eq!(result(true, "no such ticket"), "The tool ticket failed: no such ticket");
    }

    #[test]
    fn what_is_not_declared_or_not_said_word_for_word_is_not_called() {
        for task in [
            r#"Call the tool other with {"id": 7}"#,
            "Call the tool ticket with the number 7",
            "Call the tool ticket",
            r#"Call the tool of the ticket with {"id": 7}"#,
            "Is ticket 7 open?",
        ] {
            assert_eq!(answer(&request(task, &[])), None, "{task}");
        }
    }
}
