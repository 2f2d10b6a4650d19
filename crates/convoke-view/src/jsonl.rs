//! `--output jsonl`: every event as a line while it happens, and one line at the end. The event's own text is
//! passed on as the journal has it; only the budget is added. `SessionEvent::read_line` reads it again.

use serde_json::Value;

/// The version of the envelope.
pub(crate) const VERSION: u32 = 1;

/// An event in its envelope, without a line break. The text comes through unchanged, also that of a newer
/// version, but for one thing: a tool's input may hold line breaks between its members, as the model wrote
/// it, and those would end the line. JSON has none inside strings, so blanks say the same.
pub fn event_line(stream: &str, seq: u64, at: u64, event: &str) -> String {
    let members = event.strip_prefix('{').unwrap_or(event).replace(['\n', '\r'], " ");
    format!("{{\"v\":{VERSION},\"stream\":\"{stream}\",\"seq\":{seq},\"at\":{at},{members}")
}

/// The last line: what the run came to.
pub fn end_line(report: Value) -> String {
    let mut line = serde_json::Map::new();
    line.insert("v".to_owned(), VERSION.into());
    line.insert("type".to_owned(), "run_ended".into());
    if let Value::Object(members) = report {
        line.extend(members);
    }
    Value::Object(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stands_in_its_envelope_on_one_line() {
        let line = event_line("a_x", 7, 12, "{\"type\":\"tool_started\",\"input\":{\n\"a\":\r\n1}}");
        assert_eq!(
            line,
            r#"{"v":1,"stream":"a_x","seq":7,"at":12,"type":"tool_started","input":{ "a":  1}}"#
        );
    }

    #[test]
    fn the_last_line_begins_with_its_envelope() {
        assert_eq!(
            end_line(serde_json::json!({"status": "done"})),
            r#"{"v":1,"type":"run_ended","status":"done"}"#
        );
    }
}
