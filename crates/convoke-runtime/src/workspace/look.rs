//! A look at one cited file, with the sight of the agent's own file tools: beneath the tree's handle, and not
//! at what the agent's commands may not read.

use std::path::{Path, PathBuf};

use convoke_beneath::Dir;
use convoke_files::{Protected, Refused, Root};

use crate::library::lexical;

/// The largest file that is looked at.
const LARGEST: u64 = 8 << 20;

/// What was found at a cited path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Looked {
    /// A text file, and its whole text.
    Text(String),
    /// Nothing is there, or nothing that may be read.
    Missing,
    /// The path does not lie below the directory.
    Outside,
    /// The file is larger than 8 MiB.
    TooLarge,
    /// It is no file, or no text.
    NotText,
}

/// A directory in which cited files are looked up, held by its handle.
#[derive(Debug)]
pub(crate) struct Cited {
    dir: PathBuf,
    root: Option<Root>,
}

impl Cited {
    /// The directory as it is now, without what lies at or below these paths, which are relative to it.
    pub(crate) fn open(dir: &Path, hidden: Vec<PathBuf>) -> Self {
        // It was canonical when it was recorded: a link that stands there by now was put there.
        let opened = Dir::open_real(dir).ok();
        let nothing_written = Protected { writing: false, names: Vec::new() };
        let root =
            opened.map(|handle| Root::new(handle.into(), dir.to_owned(), nothing_written).hiding(hidden));
        Self { dir: dir.to_owned(), root }
    }

    /// Reads the text of a file. The path is relative to the directory, or absolute and below it; links are
    /// followed as far as they stay below it.
    pub(crate) fn read(&self, path: &str) -> Looked {
        let Some(root) = &self.root else { return Looked::Missing };
        let plain = lexical(&self.dir.join(path));
        let Ok(below) = plain.strip_prefix(&self.dir) else { return Looked::Outside };
        let Some(below) = below.to_str() else { return Looked::Missing };
        match root.read(if below.is_empty() { "." } else { below }, LARGEST) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => Looked::Text(text),
                _ => Looked::NotText,
            },
            Err(Refused::Outside { .. }) => Looked::Outside,
            Err(Refused::Large { .. }) => Looked::TooLarge,
            Err(refused @ Refused::Kind { .. }) if !refused.is_missing() => Looked::NotText,
            // What is hidden is told like what is not there: an answer must not say which of the two it is.
            Err(_) => Looked::Missing,
        }
    }
}
