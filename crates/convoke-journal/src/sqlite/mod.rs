//! The embedded stores: a SQLite file that processes share, and memory, which is the same SQL without a file.

mod committer;
mod file;
pub(crate) mod ops;
mod store;
mod turn;

pub(crate) use store::Embedded;
