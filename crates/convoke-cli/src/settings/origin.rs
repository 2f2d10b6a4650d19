//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is built in.
    Default,
    /// It stands in a configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One line of `convoke config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// The key, as a configuration file writes it.
    pub(crate) key: String,
    /// Its value, secrets masked; `None` if it is not set.
    pub(crate) value: Option<String>,
    /// Where it came from.
    pub(crate) origin: Origin,
    /// Where a project that is not trusted states it too, which does not count.
    pub(crate) ignored: Option<Origin>,
}

/// A configuration file that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// The layer: `user` or `project`.
    pub(crate) layer: &'static str,
    /// Where it is, or would be.
    pub(crate) path: PathBuf,
    /// Whether it is there.
    pub(crate) found: bool,
}
