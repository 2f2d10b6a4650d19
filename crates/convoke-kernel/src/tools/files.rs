//! The calls of the file tools, and what the rest has to know of each: which part of a tool it uses, and
//! which path it is about.

use serde_json::Value;

use super::narrow::Part;
use super::{FileEdit, GlobCall, GrepCall};

/// A call of a file tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCall {
    /// Show or change a file.
    Edit(FileEdit),
    /// Look for files.
    Glob(GlobCall),
    /// Look into files.
    Grep(GrepCall),
}

/// What the call of a file tool says about itself, in the file of the tool.
pub(super) trait AboutFile {
    /// The part of the tool that it uses; whether it writes follows from that.
    fn part(&self) -> &'static Part;

    /// The path it is about; `None` is the working directory.
    fn path(&self) -> Option<&str>;

    /// Makes it about another path.
    fn set_path(&mut self, path: String);
}

impl FileCall {
    fn about(&self) -> &dyn AboutFile {
        match self {
            FileCall::Edit(edit) => edit,
            FileCall::Glob(glob) => glob,
            FileCall::Grep(grep) => grep,
        }
    }

    fn about_mut(&mut self) -> &mut dyn AboutFile {
        match self {
            FileCall::Edit(edit) => edit,
            FileCall::Glob(glob) => glob,
            FileCall::Grep(grep) => grep,
        }
    }

    pub(crate) fn part(&self) -> &'static Part {
        self.about().part()
    }

    /// The path it is about, as it was written; `None` is the working directory.
    pub fn path(&self) -> Option<&str> {
        self.about().path()
    }

    /// The same call about another path.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        let mut call = self.clone();
        call.about_mut().set_path(path.to_owned());
        call
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        self.part().writes
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
