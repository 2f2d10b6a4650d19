//! The calls of the file tools: what they ask for, and what is wrong with one that asks for nothing.

use serde_json::Value;

/// What the text editor is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEdit {
    /// Show a file or list a directory.
    View {
        /// Which.
        path: String,
        /// First and last line, from 1; -1 is the end.
        range: Option<(i64, i64)>,
    },
    /// Write a file.
    Create {
        /// Which.
        path: String,
        /// What it holds.
        text: String,
    },
    /// Replace the one place where a text stands.
    Replace {
        /// In which file.
        path: String,
        /// What stands there.
        old: String,
        /// What is to stand there.
        new: String,
    },
    /// Insert lines.
    Insert {
        /// In which file.
        path: String,
        /// Behind this line; 0 is the top.
        line: u64,
        /// What.
        text: String,
    },
}

impl FileEdit {
    /// The file it is about.
    pub fn path(&self) -> &str {
        match self {
            FileEdit::View { path, .. }
            | FileEdit::Create { path, .. }
            | FileEdit::Replace { path, .. }
            | FileEdit::Insert { path, .. } => path,
        }
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        !matches!(self, FileEdit::View { .. })
    }
}

/// Which files are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobCall {
    /// The pattern.
    pub pattern: String,
    /// Below this directory.
    pub path: Option<String>,
    /// Whether hidden and ignored files count.
    pub all: bool,
}

/// What is looked for in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepCall {
    /// The regular expression.
    pub pattern: String,
    /// Below this directory, or in this file.
    pub path: Option<String>,
    /// Only in files whose path fits this glob.
    pub glob: Option<String>,
    /// Whether case does not matter.
    pub ignore_case: bool,
    /// Lines shown around each match.
    pub context: u64,
    /// Whether only the names of files are wanted.
    pub files_only: bool,
    /// Whether hidden and ignored files count.
    pub all: bool,
}

pub(super) fn read_edit(input: &Value) -> Result<FileEdit, String> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    let needed = |name: &str| text(name).ok_or_else(|| format!("edit error: {name} is missing."));
    let command = needed("command")?;
    let path = read_path(text("path"), "edit")?;
    match command.as_str() {
        "view" => Ok(FileEdit::View { path, range: read_range(input.get("view_range"))? }),
        "create" => Ok(FileEdit::Create { path, text: needed("file_text")? }),
        "str_replace" => {
            let old = needed("old_str")?;
            if old.is_empty() {
                return Err("edit error: old_str is empty; quote what stands in the file, or use insert.".to_owned());
            }
            // A model that means to delete leaves the new text out.
            Ok(FileEdit::Replace { path, old, new: text("new_str").unwrap_or_default() })
        }
        "insert" => {
            let line = input.get("insert_line").and_then(Value::as_u64);
            let line = line.ok_or("edit error: insert_line is missing; 0 is the top of the file.")?;
            // Both names have been used for it.
            let text = text("insert_text").or_else(|| text("new_str")).ok_or("edit error: insert_text is missing.")?;
            Ok(FileEdit::Insert { path, line, text })
        }
        "undo_edit" => {
            Err("edit error: there is no undo_edit; write the earlier text back with str_replace.".to_owned())
        }
        other => Err(format!("edit error: unknown command {other:?}; there are view, create, str_replace and insert.")),
    }
}

fn read_path(path: Option<String>, tool: &str) -> Result<String, String> {
    match path {
        Some(path) if path.contains('\0') => Err(format!("{tool} error: the path holds a NUL character.")),
        Some(path) if !path.trim().is_empty() => Ok(path),
        _ => Err(format!("{tool} error: path is missing.")),
    }
}

fn read_range(range: Option<&Value>) -> Result<Option<(i64, i64)>, String> {
    let Some(range) = range.filter(|range| !range.is_null()) else { return Ok(None) };
    match range.as_array().map(Vec::as_slice) {
        Some([first, last]) => match (first.as_i64(), last.as_i64()) {
            (Some(first), Some(last)) if first >= 1 && (last >= first || last == -1) => Ok(Some((first, last))),
            _ => Err("edit error: view_range is [first, last], from 1; -1 as last is the end.".to_owned()),
        },
        _ => Err("edit error: view_range is a list of two line numbers.".to_owned()),
    }
}

pub(super) fn read_glob(input: &Value) -> Result<GlobCall, String> {
    let pattern = pattern(input, "glob")?;
    Ok(GlobCall { pattern, path: place(input, "glob")?, all: flag(input, "all") })
}

pub(super) fn read_grep(input: &Value) -> Result<GrepCall, String> {
    let glob = input.get("glob").and_then(Value::as_str).filter(|glob| !glob.is_empty());
    Ok(GrepCall {
        pattern: pattern(input, "grep")?,
        path: place(input, "grep")?,
        glob: glob.map(str::to_owned),
        ignore_case: flag(input, "ignore_case"),
        context: input.get("context").and_then(Value::as_u64).unwrap_or(0),
        files_only: flag(input, "files_only"),
        all: flag(input, "all"),
    })
}

fn pattern(input: &Value, tool: &str) -> Result<String, String> {
    let pattern = input.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty());
    pattern.map(str::to_owned).ok_or_else(|| format!("{tool} error: pattern is missing."))
}

fn place(input: &Value, tool: &str) -> Result<Option<String>, String> {
    match input.get("path").and_then(Value::as_str).filter(|path| !path.trim().is_empty()) {
        Some(path) => read_path(Some(path.to_owned()), tool).map(Some),
        None => Ok(None),
    }
}

fn flag(input: &Value, name: &str) -> bool {
    input.get(name) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(input: Value, expected: Result<FileEdit, &str>) {
        match (read_edit(&input), expected) {
            (Ok(got), Ok(want)) => assert_eq!(got, want),
            (Err(got), Err(want)) => assert!(got.contains(want), "{got:?} does not contain {want:?}"),
            (got, want) => panic!("{input}: got {got:?}, wanted {want:?}"),
        }
    }

    #[test]
    fn the_four_commands_of_the_editor_are_read() {
        let path = || "a".to_owned();
        check(json!({"command": "view", "path": "a"}), Ok(FileEdit::View { path: path(), range: None }));
        let ranged = FileEdit::View { path: path(), range: Some((2, -1)) };
        check(json!({"command": "view", "path": "a", "view_range": [2, -1]}), Ok(ranged));
        let created = FileEdit::Create { path: path(), text: String::new() };
        check(json!({"command": "create", "path": "a", "file_text": ""}), Ok(created));
        let deleted = FileEdit::Replace { path: path(), old: "x".into(), new: String::new() };
        check(json!({"command": "str_replace", "path": "a", "old_str": "x"}), Ok(deleted));
        let inserted = FileEdit::Insert { path: path(), line: 0, text: "t".into() };
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

    #[test]
    fn searches_need_a_pattern() {
        assert!(read_glob(&json!({})).unwrap_err().contains("pattern is missing"));
        assert!(read_grep(&json!({"pattern": ""})).unwrap_err().contains("pattern is missing"));
        let grep = read_grep(&json!({"pattern": "a", "path": " ", "context": 2, "files_only": true})).unwrap();
        assert_eq!((grep.path, grep.context, grep.files_only, grep.ignore_case), (None, 2, true, false));
    }
}
