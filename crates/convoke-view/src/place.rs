//! A place in a file, as findings and calls name it.

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    /// The file, as it was named: relative to the session's directory, or absolute.
    pub path: String,
    /// The line.
    pub line: Option<u64>,
}
