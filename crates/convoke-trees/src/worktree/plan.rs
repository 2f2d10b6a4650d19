//! The plan of an apply: every file with what it was and what it is to be. It is written down before the
//! first file is touched, so that an interrupted apply is known and can go on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk;
use super::merge::Side;
use crate::error::Error;
use crate::store::replace_file;

/// What an apply is going to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The commit that is applied.
    pub(super) work: String,
    /// Removals first, then the files that are written.
    pub(super) items: Vec<Item>,
    /// Files that need nothing.
    pub(super) already: Vec<String>,
}

/// One file of a plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Item {
    path: OsString,
    /// What was there; none for nothing.
    pub(super) from: Option<Side>,
    /// What is to be there; none for nothing.
    pub(super) to: Option<Side>,
}

impl Item {
    pub(super) fn new(path: PathBuf, from: Option<Side>, to: Option<Side>) -> Self {
        Self { path: path.into(), from, to }
    }

    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    pub(super) fn shown(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }
}

impl Plan {
    /// Puts removals first, so that a file can take the place of a directory and the other way round.
    pub(super) fn sort(&mut self) {
        self.items.sort_by(|a, b| (a.to.is_some(), &a.path).cmp(&(b.to.is_some(), &b.path)));
    }

    pub(super) fn load(path: &Path) -> Result<Option<Self>, Error> {
        if !disk::exists(path)? {
            return Ok(None);
        }
        let text = std::fs::read(path).map_err(Error::file("reading", path))?;
        let plan = serde_json::from_slice(&text);
        plan.map(Some).map_err(|_| Error::Unreadable { what: path.display().to_string() })
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(|error| Error::file("writing", path)(error.into()))?;
        replace_file(path, &text)
    }
}
