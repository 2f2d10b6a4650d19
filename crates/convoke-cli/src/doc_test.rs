//! `DOC_TEST_MODE`: a session with places of its own, so that trying out an example neither touches a project
//! nor leaves results of tiny limits in the real journal. Everything is removed at the end.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::failure::Failure;

/// Something small to look at, with something to find.
const SAMPLE: &str = "\
\"\"\"Two helpers, to have something to look at.\"\"\"


def average(numbers):
    # TODO: an empty list ends in a division by zero.
    return sum(numbers) / len(numbers)


def first_line(path):
    return open(path).readline()
";

/// The places of a session in `DOC_TEST_MODE`, as long as it lives.
#[derive(Debug)]
pub(crate) struct DocTest {
    dir: TempDir,
    own: TempDir,
}

impl DocTest {
    /// Makes the places.
    pub(crate) fn new() -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::failed(format!("no temporary directory for DOC_TEST_MODE: {error}"))
                .hint("is TMPDIR writable?")
        };
        let dir = tempfile::Builder::new().prefix("orchestration-").tempdir().map_err(cannot)?;
        let own = tempfile::Builder::new().prefix("convoke-doc-test-").tempdir().map_err(cannot)?;
        std::fs::write(dir.path().join("sample.py"), SAMPLE).map_err(cannot)?;
        Ok(Self { dir, own })
    }

    /// Where commands run.
    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap_or_else(|_| self.dir.path().to_owned())
    }

    /// Where the journal and everything else is kept: not where commands run.
    pub(crate) fn own(&self) -> &Path {
        self.own.path()
    }
}

/// Removes the places of a session, for a process that leaves at once and runs no destructors.
pub(crate) fn remove(places: &[PathBuf]) {
    for place in places {
        // The process leaves, so a failure can no longer be told.
        let _ = std::fs::remove_dir_all(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_hold_a_sample_and_are_gone_afterwards() {
        let doc = DocTest::new().unwrap();
        let dir = doc.dir();
        let own = doc.own().to_owned();
        assert!(dir.file_name().unwrap().to_str().unwrap().starts_with("orchestration-"));
        assert!(std::fs::read_to_string(dir.join("sample.py")).unwrap().contains("def average"));
        assert!(!own.starts_with(&dir));
        drop(doc);
        assert!(!dir.exists() && !own.exists());
    }
}
