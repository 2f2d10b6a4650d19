//! The embedded stores: a SQLite file that processes share, and memory, which is the same SQL without a file.

mod check;
mod committer;
mod file;
mod generation;
mod operations;
mod ops;
mod over;
mod store;
mod turn;
mod wait;
mod writer;

pub use check::Checked;
pub(crate) use store::Embedded;
