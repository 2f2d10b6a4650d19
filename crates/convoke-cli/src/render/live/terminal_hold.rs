//! The terminal held still: while a question to the person stands there, nothing is drawn over it. The code
//! that asks knows nothing of the code that draws, so both are given the same lock. It prints nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What keeps questions and pictures on one terminal apart. Clones are the same lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct TerminalLock(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// How many questions stand there now.
    held: AtomicUsize,
    /// How often it was held.
    times: AtomicUsize,
    /// Held while something is drawn, so that a question never comes into the middle of a picture.
    pen: Mutex<()>,
}

/// Nothing moves on the terminal for as long as this lives.
#[derive(Debug)]
#[must_use = "the terminal moves again as soon as this is dropped"]
pub(crate) struct TerminalHold(TerminalLock);

impl TerminalLock {
    /// Holds the terminal still, once what is being drawn is drawn.
    pub(crate) fn hold(&self) -> TerminalHold {
        self.0.held.fetch_add(1, Ordering::SeqCst);
        self.0.times.fetch_add(1, Ordering::SeqCst);
        let hold = TerminalHold(self.clone());
        drop(self.pen());
        hold
    }

    /// Whether the terminal is held still now.
    pub(super) fn is_held(&self) -> bool {
        self.0.held.load(Ordering::SeqCst) > 0
    }

    /// How often it has been held still: what was drawn before the last time is no longer where it was.
    pub(super) fn times(&self) -> usize {
        self.0.times.load(Ordering::SeqCst)
    }

    /// The right to draw. Whether the terminal is held still is looked at with it in hand.
    pub(super) fn pen(&self) -> MutexGuard<'_, ()> {
        self.0.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TerminalHold {
    fn drop(&mut self) {
        self.0.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}
