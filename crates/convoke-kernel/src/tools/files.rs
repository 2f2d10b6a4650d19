//! What is the same for the calls of all file tools: which part of a tool a call uses, and which path it is
//! about. What is done there is in the file of the tool.

use serde_json::Value;

use super::narrow::Part;
use super::{FileWork, ToolRequest, Wanted};

/// A call of a file tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCall {
    /// The part of the tool that it uses; whether it writes follows from that.
    part: &'static Part,
    /// The path it is about, as it was written; `None` is the working directory. Of the editor it always
    /// names a file or a directory.
    pub path: Option<String>,
    /// What is done there.
    pub work: FileWork,
}

impl FileCall {
    pub(super) fn new(part: &'static Part, path: Option<String>, work: FileWork) -> Self {
        Self { part, path, work }
    }

    /// What a call asks for that was read as this.
    pub(super) fn wanted(self) -> Wanted {
        Wanted::Run(ToolRequest::File(self))
    }

    pub(crate) fn part(&self) -> &'static Part {
        self.part
    }

    /// The path it is about, as it was written; `None` is the working directory.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The same call about another path.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        Self { path: Some(path.to_owned()), ..self.clone() }
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        self.part.writes
    }
}

pub(super) fn read_path(path: Option<String>, tool: &str) -> Result<String, String> {
    match path {
        Some(path) if path.contains('\0') => Err(format!("{tool} error: the path holds a NUL character.")),
        Some(path) if !path.trim().is_empty() => Ok(path),
        _ => Err(format!("{tool} error: path is missing.")),
    }
}

pub(super) fn pattern(input: &Value, tool: &str) -> Result<String, String> {
    let pattern = input.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty());
    pattern.map(str::to_owned).ok_or_else(|| format!("{tool} error: pattern is missing."))
}

pub(super) fn place(input: &Value, tool: &str) -> Result<Option<String>, String> {
    match input.get("path").and_then(Value::as_str).filter(|path| !path.trim().is_empty()) {
        Some(path) => read_path(Some(path.to_owned()), tool).map(Some),
        None => Ok(None),
    }
}

pub(super) fn flag(input: &Value, name: &str) -> bool {
    input.get(name) == Some(&Value::Bool(true))
}
