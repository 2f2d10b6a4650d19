//! The terminal held still: while a question to the person stands there, nothing is drawn over it. There is one terminal
//! and whoever asks knows nothing of whoever draws, so this is one counter for the process. It prints nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static HELD: AtomicUsize = AtomicUsize::new(0);

/// How often it was held.
static TIMES: AtomicUsize = AtomicUsize::new(0);

/// Whoever draws holds it, so that a question never comes into the middle of a picture.
static PEN: Mutex<()> = Mutex::new(());

/// Nothing moves on the terminal for as long as this lives.
#[derive(Debug)]
#[must_use = "the terminal moves again as soon as this is dropped"]
pub(crate) struct Still(());

impl Still {
    /// Holds the terminal still, once what is being drawn is drawn.
    pub(crate) fn keep() -> Self {
        HELD.fetch_add(1, Ordering::SeqCst);
        TIMES.fetch_add(1, Ordering::SeqCst);
        let still = Self(());
        drop(Self::pen());
        still
    }

    /// Whether somebody does.
    pub(super) fn is_kept() -> bool {
        HELD.load(Ordering::SeqCst) > 0
    }

    /// How often somebody has: what was drawn before the last time is no longer where it was.
    pub(super) fn times() -> usize {
        TIMES.load(Ordering::SeqCst)
    }

    /// The right to draw. Whether the terminal is held still is looked at with it in hand.
    pub(super) fn pen() -> MutexGuard<'static, ()> {
        PEN.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}
