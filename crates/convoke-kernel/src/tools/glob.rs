//! `glob`: files are looked for by their path.

use serde_json::{Value, json};

use super::files::{FileCall, flag, pattern, place};
use super::narrow::Part;
use super::table::{Audience, Reading, Tool};
use super::{FileWork, shown};

pub(super) static TOOL: Tool = Tool {
    name: "glob",
    audience: Audience::All,
    parts: &[&PART],
    declare: |offer| offer.hands.has(&PART).then(declaration),
    read: Reading::Input(|input, _| read(input).map(FileCall::wanted)),
    words: shown::search,
    starts: None,
};

static PART: Part = Part {
    name: "glob",
    aliases: &[],
    cannot: "look for files with glob",
    asks_to: None,
    writes: false,
    is_command: false,
    is_lean: false,
};

/// Which files are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobCall {
    /// The pattern.
    pub pattern: String,
    /// Whether hidden and ignored files count.
    pub all: bool,
}

fn declaration() -> Value {
    json!({
        "name": TOOL.name,
        "description": "Lists files whose path fits a pattern, such as **/*.rs or src/**/test_*.py, without \
            those that git ignores. Quicker than find, and its results are bounded. Several calls in one \
            reply run at the same time.",
        "input_schema": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The pattern; ** goes through directories."},
                "path": {"type": "string", "description": "Where to look; the working directory if absent."},
                "all": {"type": "boolean", "description": "True counts hidden and ignored files too."}
            },
            "required": ["pattern"],
            "additionalProperties": false
        }
    })
}

fn read(input: &Value) -> Result<FileCall, String> {
    let pattern = pattern(input, TOOL.name)?;
    let work = GlobCall { pattern, all: flag(input, "all") };
    Ok(FileCall::new(&PART, place(input, TOOL.name)?, FileWork::Glob(work)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_for_files_needs_a_pattern() {
        assert!(read(&json!({})).unwrap_err().contains("pattern is missing"));
    }
}
