//! What the file tools do, by behaviour.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and print their figures"
)]

mod disk;
mod edits;
mod escapes;
mod hiding;
mod races;
mod searches;
mod tree;
mod views;
