//! The kernel from outside, and the tidiness of the whole tree: this crate builds first and fastest.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod doors;
mod snapshots;
mod tidy;
mod tidy_docs;
mod tidy_doors;
mod tidy_tools;
