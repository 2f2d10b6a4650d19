//! The words in a message as the API has it: what people read of a piece of history.

use serde_json::Value;

/// The texts of a message's content.
pub fn message_text(message: &str) -> String {
    let value: Value = serde_json::from_str(message).unwrap_or_default();
    texts(&value["content"])
}

/// The texts of an array of blocks.
pub fn blocks_text(blocks: &str) -> String {
    texts(&serde_json::from_str(blocks).unwrap_or_default())
}

fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_its_texts_and_nothing_else() {
        let check = |message: &str, expected: &str| assert_eq!(message_text(message), expected, "{message}");
        check(r#"{"role":"user","content":"plain"}"#, "plain");
        check(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_use"},{"type":"text","text":"b"}]}"#,
            "a\n\nb",
        );
        check("no json", "");
        assert_eq!(blocks_text(r#"[{"type":"text","text":"a"}]"#), "a");
    }
}
