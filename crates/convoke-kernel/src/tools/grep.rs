//! `grep`: files are looked into with a regular expression.

use serde_json::{Value, json};

use super::files::{FileCall, flag, pattern, place};
use super::narrow::Part;
use super::table::{Audience, Reading, Tool};
use super::{FileWork, shown};

pub(super) static TOOL: Tool = Tool {
    name: "grep",
    audience: Audience::All,
    parts: &[&PART],
    declare: |offer| offer.hands.has(&PART).then(declaration),
    read: Reading::Input(|input, _| read(input).map(FileCall::wanted)),
    words: shown::search,
    starts: None,
};

static PART: Part = Part {
    name: "grep",
    aliases: &[],
    cannot: "look into files with grep",
    asks_to: None,
    writes: false,
    is_command: false,
    is_lean: false,
};

/// What is looked for in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepCall {
    /// The regular expression.
    pub pattern: String,
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

fn declaration() -> Value {
    json!({
        "name": TOOL.name,
        "description": "Searches the contents of files with a regular expression (Rust's syntax) and gives \
            path:line:text, without files that git ignores and without binary ones. Quicker than grep -r, \
            and its results are bounded. Several calls in one reply run at the same time.",
        "input_schema": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression."},
                "path": {"type": "string", "description": "A file or directory; the working directory if \
                    absent."},
                "glob": {"type": "string", "description": "Only files whose path fits, such as *.py."},
                "ignore_case": {"type": "boolean", "description": "True if case does not matter."},
                "context": {"type": "integer", "description": "Lines to show around each match."},
                "files_only": {"type": "boolean", "description": "True gives only the names of the files."},
                "all": {"type": "boolean", "description": "True counts hidden and ignored files too."}
            },
            "required": ["pattern"],
            "additionalProperties": false
        }
    })
}

fn read(input: &Value) -> Result<FileCall, String> {
    let glob = input.get("glob").and_then(Value::as_str).filter(|glob| !glob.is_empty());
    let work = GrepCall {
        pattern: pattern(input, TOOL.name)?,
        glob: glob.map(str::to_owned),
        ignore_case: flag(input, "ignore_case"),
        context: input.get("context").and_then(Value::as_u64).unwrap_or(0),
        files_only: flag(input, "files_only"),
        all: flag(input, "all"),
    };
    Ok(FileCall::new(&PART, place(input, TOOL.name)?, FileWork::Grep(work)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_in_files_needs_a_pattern() {
        assert!(read(&json!({"pattern": ""})).unwrap_err().contains("pattern is missing"));
        let call = read(&json!({"pattern": "a", "path": " ", "context": 2, "files_only": true})).unwrap();
        let FileWork::Grep(grep) = call.work else { panic!("{call:?}") };
        assert_eq!((call.path, grep.context, grep.files_only, grep.ignore_case), (None, 2, true, false));
    }
}
