//! The tools an agent is offered, and what counts as a usable call.

use serde_json::{Value, json};

use crate::wire::{INVALID_INPUT, ToolCall};

/// A call that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolRequest {
    /// Run a command in the agent's shell.
    Bash {
        /// The command.
        command: String,
    },
    /// Replace the agent's shell by a new one.
    RestartBash,
}

/// Declares `bash`. Endpoints that do not know Anthropic's own tool get the same contract with a schema: without
/// one, some of them offer the model a tool with no parameters.
pub(crate) fn bash(anthropic_tools: bool) -> Value {
    if anthropic_tools {
        return json!({"type": "bash_20250124", "name": "bash"});
    }
    json!({
        "name": "bash",
        "description": "Runs a command in a long-lived bash shell: directory, variables and background jobs stay from one call \
    to the next. Standard output and standard error come back together, with the exit code if it is not zero. Standard input is \
    closed. Give `command`, or `restart` set to true for a new shell.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line to run."},
                "restart": {"type": "boolean", "description": "True throws the shell away and starts a new one."}
            }
        }
    })
}

/// Reads a call; the error is the text the model gets as its result.
pub(crate) fn read(call: &ToolCall) -> Result<ToolRequest, String> {
    let input: Value = serde_json::from_str(call.input.as_str()).map_err(|e| format!("unreadable input: {e}"))?;
    if let Some(raw) = input.get(INVALID_INPUT) {
        let shown: String = raw.as_str().unwrap_or_default().chars().take(200).collect();
        return Err(format!(
            "Not run: the input of this call was not a JSON object. Send it again as valid JSON. It began: {shown}"
        ));
    }
    match call.name.as_str() {
        "bash" => read_bash(&input),
        other => Err(format!("unknown tool: {other}")),
    }
}

fn read_bash(input: &Value) -> Result<ToolRequest, String> {
    if input.get("restart") == Some(&Value::Bool(true)) {
        return Ok(ToolRequest::RestartBash);
    }
    match input.get("command").and_then(Value::as_str) {
        Some(command) if command.contains('\0') => Err("bash error: the command holds a NUL character.".to_owned()),
        Some(command) if !command.trim().is_empty() => Ok(ToolRequest::Bash { command: command.to_owned() }),
        _ => Err("bash error: no command was provided.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    fn check(name: &str, input: &str, expected: Result<ToolRequest, &str>) {
        let call = ToolCall { id: "t".into(), name: name.into(), input: Segment::from_json(input.to_owned()).unwrap() };
        match (read(&call), expected) {
            (Ok(got), Ok(want)) => assert_eq!(got, want),
            (Err(got), Err(want)) => assert!(got.contains(want), "{got:?} does not contain {want:?}"),
            (got, want) => panic!("{name} {input}: got {got:?}, wanted {want:?}"),
        }
    }

    #[test]
    fn d4_2_d4_3_calls_are_read_or_answered_with_what_is_wrong() {
        check("bash", r#"{"command":"ls"}"#, Ok(ToolRequest::Bash { command: "ls".into() }));
        check("bash", r#"{"restart":true}"#, Ok(ToolRequest::RestartBash));
        check("bash", r#"{"restart":false,"command":"ls"}"#, Ok(ToolRequest::Bash { command: "ls".into() }));
        check("bash", "{}", Err("bash error: no command was provided."));
        check("bash", r#"{"command":"  "}"#, Err("no command was provided"));
        check("bash", r#"{"command":7}"#, Err("no command was provided"));
        check("bash", r#"{"command":"a\u0000b"}"#, Err("NUL"));
        check("bash", r#"{"_invalid_json":"{\"comm"}"#, Err(r#"It began: {"comm"#));
    }

    #[test]
    fn d3_6_an_unknown_tool_is_named_in_its_error() {
        check("browse", "{}", Err("unknown tool: browse"));
    }
}
