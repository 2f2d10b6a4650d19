//! How much one call may read, show and take: the numbers, and the deadline made
//! from one of them. It decides nothing else.

use std::time::{Duration, Instant};

/// The bounds of one call. Whatever they cut off is said in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Characters one answer may have, a few closing remarks apart.
    pub view_chars: usize,
    /// Characters of one line that are shown.
    pub line_chars: usize,
    /// Bytes a file may have to be edited, or to be viewed other than line by line from its beginning.
    pub file_bytes: u64,
    /// Paths, matching lines or directory entries one answer may list.
    pub results: usize,
    /// Directories below each other that a search goes down.
    pub depth: usize,
    /// Bytes a search may hold of one line, or of one file where a pattern spans lines.
    pub search_bytes: usize,
    /// How long one call may look around before it says what it has.
    pub time: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            view_chars: 40_000,
            line_chars: 2_000,
            file_bytes: 16 << 20,
            results: 250,
            depth: 128,
            search_bytes: 16 << 20,
            time: Duration::from_secs(10),
        }
    }
}

impl Caps {
    /// The moment at which a call that starts now must come to its end.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline(Instant::now().checked_add(self.time))
    }
}

/// A moment to stop at; none when the time given is beyond what the clock can count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Whether the moment has come.
    pub(crate) fn passed(self) -> bool {
        self.0.is_some_and(|moment| Instant::now() >= moment)
    }
}
