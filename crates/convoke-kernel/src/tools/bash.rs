//! `bash`: commands in the agent's shell.

use serde_json::{Value, json};

use super::narrow::Part;
use super::shown::{CallInput, Words};
use super::table::{Audience, Offer, Reading, Tool};
use super::{ToolRequest, Wanted};

pub(super) static TOOL: Tool = Tool {
    name: "bash",
    audience: Audience::All,
    parts: &[&COMMANDS],
    declare: |offer| offer.hands.has(&COMMANDS).then(|| declaration(offer)),
    read: Reading::Input(|input, _| read(input).map(Wanted::Run)),
    words,
    starts: None,
};

/// Commands.
pub static COMMANDS: Part = Part {
    name: "bash",
    aliases: &[],
    cannot: "run commands",
    asks_to: Some("run"),
    writes: true,
    is_command: true,
    is_lean: true,
};

/// Whether a call of this name runs a command in the agent's shell.
pub fn is_command(name: &str) -> bool {
    name == TOOL.name
}

/// Anthropic's own tool, which is declared without a schema.
pub fn bash_without_schema() -> Value {
    json!({"type": "bash_20250124", "name": TOOL.name})
}

/// Endpoints that do not know Anthropic's own tool get the same contract with a schema: without one, some of
/// them offer the model a tool with no parameters.
fn declaration(offer: &Offer<'_>) -> Value {
    if offer.anthropic_tools {
        return bash_without_schema();
    }
    json!({
        "name": TOOL.name,
        "description": "Runs a command in a long-lived bash shell: directory, variables and background jobs \
            stay from one call to the next. Standard output and standard error come back together, with the \
            exit code if it is not zero. Standard input is closed. Give `command`, or `restart` set to true \
            for a new shell.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line to run."},
                "restart": {"type": "boolean", "description": "True throws the shell away and starts a new \
                    one."}
            }
        }
    })
}

fn read(input: &Value) -> Result<ToolRequest, String> {
    if input.get("restart") == Some(&Value::Bool(true)) {
        return Ok(ToolRequest::RestartBash);
    }
    match input.get("command").and_then(Value::as_str) {
        Some(command) if command.contains('\0') => {
            Err("bash error: the command holds a NUL character.".to_owned())
        }
        Some(command) if !command.trim().is_empty() => Ok(ToolRequest::Bash { command: command.to_owned() }),
        _ => Err("bash error: no command was provided.".to_owned()),
    }
}

fn words(call: &CallInput<'_>) -> Words {
    const RESTART: &str = "(restart the shell)";
    let line = |what: &str| Some(format!("$ {what}"));
    let Some(command) = call.text("command") else {
        let is_command = call.input.get("restart").is_some();
        return Words {
            line: line(RESTART),
            title: line(RESTART).filter(|_| is_command),
            progress: is_command.then(|| RESTART.to_owned()),
            doing: is_command.then_some("command"),
            is_command,
            ..Words::default()
        };
    };
    Words {
        line: line(command.trim_start()),
        title: line(command),
        progress: Some(command.to_owned()),
        body: line(&command.trim_end().replace('\n', "\n> ")),
        record: line(&command.replace('\n', "\n> ")),
        doing: Some("command"),
        is_command: true,
        place: None,
    }
}
