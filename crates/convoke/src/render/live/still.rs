//! The terminal held still: while a question to the person stands there, nothing is drawn over it. There is one terminal
//! and whoever asks knows nothing of whoever draws, so this is one counter for the process. It prints nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

static HELD: AtomicUsize = AtomicUsize::new(0);

/// Nothing moves on the terminal for as long as this lives.
#[derive(Debug)]
#[must_use = "the terminal moves again as soon as this is dropped"]
pub(crate) struct Still(());

impl Still {
    /// Holds the terminal still.
    pub(crate) fn keep() -> Self {
        HELD.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Whether somebody does.
    pub(super) fn is_kept() -> bool {
        HELD.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}
