//! What the runner says: one line for each mutant on stdout, everything else on stderr.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Lines of several workers, one at a time.
#[derive(Default)]
pub(crate) struct Report(Mutex<()>);

impl Report {
    /// A result. A reader that has gone is no reason to stop: the exit code says the same.
    pub(crate) fn line(&self, line: &str) {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    /// News about the work.
    pub(crate) fn note(&self, line: &str) {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
