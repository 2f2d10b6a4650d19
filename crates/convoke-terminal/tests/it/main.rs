//! The terminal, driven in a real one.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod ends;
mod pane;
mod stage;
