//! Rules about the model's existence and about sizes.

use convoke_claude::{Model, Models};
use serde_json::{Map, Value};

use super::{Asked, Checked, EndpointKind, Incoming, Rule, refuse};
use crate::accounts::{Prompt, Tokenizer};

/// The row of the model that is asked for. A generic server takes any name.
pub(super) fn model(body: &Map<String, Value>, models: &Models, endpoint: EndpointKind) -> Checked<Model> {
    let id = body["model"].as_str().unwrap_or_default();
    let model = models.get(id);
    // Short aliases such as `opus` are the client's own; the API has never heard of them.
    let known = models.knows(id) && (model.id == id || id.starts_with("claude-"));
    if !known && endpoint.is_anthropics() {
        return refuse(Rule::UnknownModel, format!("model: {id}"));
    }
    Ok(model)
}

pub(super) fn check(asked: &Asked<'_>, incoming: &Incoming<'_>) -> Checked {
    let max_tokens = asked.body["max_tokens"].as_i64().unwrap_or(i64::MAX);
    if max_tokens < 0 {
        return refuse(Rule::MaxTokensNegative, "max_tokens: Input should be greater than or equal to 0");
    }
    if max_tokens == 0 {
        nothing_to_say(asked)?;
    }
    let Model { id, max_output, window, .. } = &asked.model;
    // The caps of a model that is only assumed are the client's guess, not the server's law.
    if asked.model.assumed {
        return Ok(());
    }
    if max_tokens > i64::from(*max_output) {
        let text = format!(
            "max_tokens: {max_tokens} > {max_output}, which is the maximum allowed number of output tokens \
                for {id}"
        );
        return refuse(Rule::MaxTokensOverCap, text);
    }
    let tokenizer = Tokenizer::for_conversation(incoming.conversation);
    let tokens = Prompt::read(incoming.body, &asked.model, tokenizer).tokens();
    if tokens > *window {
        return refuse(
            Rule::PromptTooLong,
            format!("prompt is too long: {tokens} tokens > {window} maximum"),
        );
    }
    Ok(())
}

/// Zero output tokens only warm the cache, and cannot be combined with what asks for output.
fn nothing_to_say(asked: &Asked<'_>) -> Checked {
    let forced =
        asked.member("tool_choice").is_some_and(|choice| choice["type"] == "any" || choice["type"] == "tool");
    let format = asked.member("output_config").is_some_and(|config| config.get("format").is_some());
    let with = if asked.member("stream") == Some(&Value::Bool(true)) {
        "stream"
    } else if asked.thinking_type() == Some("enabled") {
        "thinking.type.enabled"
    } else if format {
        "output_config.format"
    } else if forced {
        "a forced tool_choice"
    } else {
        return Ok(());
    };
    refuse(Rule::MaxTokensZero, format!("max_tokens: 0 is not supported together with {with}"))
}
