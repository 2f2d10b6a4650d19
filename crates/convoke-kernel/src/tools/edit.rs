//! `str_replace_based_edit_tool`: text files are shown and changed. The name is Anthropic's, for their own
//! tool; agents can be given one half of it.

use serde_json::{Value, json};

use super::FileWork;
use super::files::{FileCall, read_path};
use super::narrow::Part;
use super::shown::{CallInput, Words};
use super::table::{Audience, Offer, Reading, Tool};

pub(super) static TOOL: Tool = Tool {
    name: "str_replace_based_edit_tool",
    audience: Audience::All,
    parts: &[&VIEW, &EDIT],
    declare,
    read: Reading::Input(|input, _| read(input).map(FileCall::wanted)),
    words,
    starts: None,
};

/// Reading files and directories.
pub(crate) static VIEW: Part = Part {
    name: "view",
    aliases: &["read", "ls"],
    cannot: "view files",
    asks_to: Some("read"),
    writes: false,
    is_command: false,
    is_lean: true,
};

/// Writing files.
pub(crate) static EDIT: Part = Part {
    name: "edit",
    aliases: &["write", "multiedit"],
    cannot: "create or change files",
    asks_to: Some("change"),
    writes: true,
    is_command: false,
    is_lean: true,
};

/// What the text editor is asked to do with the file or the directory that the call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEdit {
    /// Show a file or list a directory.
    View {
        /// First and last line, from 1; -1 is the end.
        range: Option<(i64, i64)>,
    },
    /// Write a file.
    Create {
        /// What it holds.
        text: String,
    },
    /// Replace the one place where a text stands.
    Replace {
        /// What stands there.
        old: String,
        /// What is to stand there.
        new: String,
    },
    /// Insert lines.
    Insert {
        /// Behind this line; 0 is the top.
        line: u64,
        /// What.
        text: String,
    },
}

impl FileCall {
    /// The call that shows a file or a directory.
    pub fn view(path: String) -> Self {
        Self::new(&VIEW, Some(path), FileWork::Edit(FileEdit::View { range: None }))
    }
}

/// Like `bash`, with a schema for endpoints that do not know Anthropic's own tool; and for agents that were
/// given only one half of it, because that tool can always do both.
fn declare(offer: &Offer<'_>) -> Option<Value> {
    let views = offer.hands.has(&VIEW);
    let edits = offer.hands.has(&EDIT);
    if !views && !edits {
        return None;
    }
    if offer.anthropic_tools && views && edits {
        return Some(json!({"type": "text_editor_20250728", "name": TOOL.name}));
    }
    if !edits {
        return Some(view());
    }
    let commands = ["view", "create", "str_replace", "insert"].split_at(usize::from(!views)).1;
    Some(json!({
        "name": TOOL.name,
        "description": "Reads and changes text files below the working directory. view shows a file with \
            line numbers, or what a directory holds; view_range limits it. create writes a whole file. \
            str_replace replaces old_str, which has to stand in the file exactly once, by new_str. insert \
            puts insert_text behind line insert_line (0: at the top). Line endings and encodings stay as \
            they are.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": commands},
                "path": {"type": "string", "description": "The file or directory."},
                "view_range": {"type": "array", "items": {"type": "integer"}, "description": "First and last \
                    line, from 1; -1 is the end."},
                "file_text": {"type": "string", "description": "For create: the whole content."},
                "old_str": {"type": "string", "description": "For str_replace: what stands there, to the \
                    letter."},
                "new_str": {"type": "string", "description": "For str_replace: what is to stand there."},
                "insert_line": {"type": "integer", "description": "For insert: the line before the new \
                    text."},
                "insert_text": {"type": "string", "description": "For insert: the new text."}
            },
            "required": ["command", "path"]
        }
    }))
}

/// The reading half of it.
fn view() -> Value {
    json!({
        "name": TOOL.name,
        "description": "Reads text files below the working directory: view shows a file with line numbers, \
            or what a directory holds; view_range limits it.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view"]},
                "path": {"type": "string", "description": "The file or directory."},
                "view_range": {"type": "array", "items": {"type": "integer"}, "description": "First and last \
                    line, from 1; -1 is the end."}
            },
            "required": ["command", "path"]
        }
    })
}

fn read(input: &Value) -> Result<FileCall, String> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    let needed = |name: &str| text(name).ok_or_else(|| format!("edit error: {name} is missing."));
    let command = needed("command")?;
    let path = read_path(text("path"), "edit")?;
    let edit = match command.as_str() {
        "view" => FileEdit::View { range: read_range(input.get("view_range"))? },
        "create" => FileEdit::Create { text: needed("file_text")? },
        "str_replace" => {
            let old = needed("old_str")?;
            if old.is_empty() {
                return Err(
                    "edit error: old_str is empty; quote what stands in the file, or use insert.".to_owned()
                );
            }
            // A model that means to delete leaves the new text out.
            FileEdit::Replace { old, new: text("new_str").unwrap_or_default() }
        }
        "insert" => {
            let line = input.get("insert_line").and_then(Value::as_u64);
            let line = line.ok_or("edit error: insert_line is missing; 0 is the top of the file.")?;
            // Both names have been used for it.
            let text = text("insert_text")
                .or_else(|| text("new_str"))
                .ok_or("edit error: insert_text is missing.")?;
            FileEdit::Insert { line, text }
        }
        "undo_edit" => {
            return Err(
                "edit error: there is no undo_edit; write the earlier text back with str_replace.".to_owned()
            );
        }
        other => {
            return Err(format!(
                "edit error: unknown command {other:?}; there are view, create, str_replace and insert."
            ));
        }
    };
    let part = if matches!(edit, FileEdit::View { .. }) { &VIEW } else { &EDIT };
    Ok(FileCall::new(part, Some(path), FileWork::Edit(edit)))
}

fn read_range(range: Option<&Value>) -> Result<Option<(i64, i64)>, String> {
    let Some(range) = range.filter(|range| !range.is_null()) else { return Ok(None) };
    match range.as_array().map(Vec::as_slice) {
        Some([first, last]) => match (first.as_i64(), last.as_i64()) {
            (Some(first), Some(last)) if first >= 1 && (last >= first || last == -1) => {
                Ok(Some((first, last)))
            }
            _ => Err("edit error: view_range is [first, last], from 1; -1 as last is the end.".to_owned()),
        },
        _ => Err("edit error: view_range is a list of two line numbers.".to_owned()),
    }
}

fn words(call: &CallInput<'_>) -> Words {
    let path = call.told("path");
    let command = call.told("command");
    let word = match command {
        "str_replace" | "insert" => "edit",
        other => other,
    };
    let lines = call.input.get("view_range").and_then(Value::as_array).map(|range| {
        let range: Vec<String> = range.iter().map(Value::to_string).collect();
        format!(":{}", range.join("-").replace("--1", "-"))
    });
    let line = Some(format!("{word} {path}{}", lines.unwrap_or_default()));
    if call.text("command").is_none() {
        return Words { line, ..Words::default() };
    }
    let number = |value: Option<&Value>| value.and_then(Value::as_u64);
    let at = |line: Option<u64>| Some((path.to_owned(), line));
    let marked =
        |mark: char, text: &str| text.lines().map(|line| format!("\n{mark} {line}")).collect::<String>();
    let said = |title: String, more: String| Words {
        body: Some(format!("{title}{more}")),
        title: Some(title),
        doing: Some("editing"),
        ..Words::default()
    };
    let words = match command {
        "view" => {
            let first = number(call.input.get("view_range").and_then(|range| range.get(0)));
            Words { doing: Some("looking"), place: at(first), ..said(format!("view {path}"), String::new()) }
        }
        "create" => {
            let whole = marked('+', call.told("file_text"));
            Words { place: at(None), ..said(format!("create {path}"), whole) }
        }
        "str_replace" => {
            let change =
                format!("{}{}", marked('-', call.told("old_str")), marked('+', call.told("new_str")));
            Words { place: at(None), ..said(format!("edit {path}"), change) }
        }
        "insert" => {
            let first = number(call.input.get("insert_line")).map(|line| line.saturating_add(1));
            let whole = marked('+', call.told("insert_text"));
            Words { place: at(first), ..said(format!("insert into {path}"), whole) }
        }
        other => Words { body: None, ..said(format!("{other} {path}"), String::new()) },
    };
    Words { line, ..words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(input: Value, expected: Result<FileEdit, &str>) {
        match (read(&input), expected) {
            (Ok(got), Ok(want)) => {
                assert_eq!(got.writes(), !matches!(want, FileEdit::View { .. }));
                assert_eq!((got.path(), &got.work), (Some("a"), &FileWork::Edit(want)));
            }
            (Err(got), Err(want)) => assert!(got.contains(want), "{got:?} does not contain {want:?}"),
            (got, want) => panic!("{input}: got {got:?}, wanted {want:?}"),
        }
    }

    #[test]
    fn the_four_commands_of_the_editor_are_read() {
        check(json!({"command": "view", "path": "a"}), Ok(FileEdit::View { range: None }));
        let ranged = FileEdit::View { range: Some((2, -1)) };
        check(json!({"command": "view", "path": "a", "view_range": [2, -1]}), Ok(ranged));
        let created = FileEdit::Create { text: String::new() };
        check(json!({"command": "create", "path": "a", "file_text": ""}), Ok(created));
        let deleted = FileEdit::Replace { old: "x".into(), new: String::new() };
        check(json!({"command": "str_replace", "path": "a", "old_str": "x"}), Ok(deleted));
        let inserted = FileEdit::Insert { line: 0, text: "t".into() };
        check(json!({"command": "insert", "path": "a", "insert_line": 0, "insert_text": "t"}), Ok(inserted));
    }

    #[test]
    fn a_call_that_cannot_be_done_says_what_is_missing() {
        check(json!({}), Err("command is missing"));
        check(json!({"command": "view"}), Err("path is missing"));
        check(json!({"command": "view", "path": "a\0b"}), Err("NUL"));
        check(json!({"command": "view", "path": "a", "view_range": [3, 2]}), Err("from 1"));
        check(json!({"command": "view", "path": "a", "view_range": "3"}), Err("two line numbers"));
        check(json!({"command": "create", "path": "a"}), Err("file_text is missing"));
        check(json!({"command": "str_replace", "path": "a", "old_str": ""}), Err("old_str is empty"));
        check(json!({"command": "insert", "path": "a", "insert_text": "t"}), Err("insert_line is missing"));
        check(json!({"command": "undo_edit", "path": "a"}), Err("no undo_edit"));
        check(json!({"command": "fly", "path": "a"}), Err("unknown command"));
    }
}
