//! Opens: the one way in which the host reads and writes files of a tree that commands or strangers have
//! touched.
//!
//! A [`Dir`] is a directory held open by its handle. Every path given to it is relative, is resolved by the
//! kernel beneath that handle, and is refused if it leads out of it; links on the way are refused, unless
//! [`Links::Inside`] allows those that stay beneath the handle. What stands at a path is looked at before it
//! is opened, so that no fifo, socket or device is opened, and it is looked at again through the handle that
//! is used, so that an exchange between the two looks gains nothing. Files are written beside their place and
//! renamed: a link that waits at the place is replaced or refused, and never followed.
//!
//! The crate exists so that the compiler and a test (`convoke-kernel/tests/it/tidy_doors.rs`) can keep
//! `std::fs` out of the code that works on a tree. It knows nothing of agents, git or settings, starts no
//! process and never waits.

mod dir;
mod error;
mod resolve;
mod write;

pub use dir::{Dir, Entry, named_file, read_whole};
pub use error::{Error, Kind};
pub use resolve::Links;
pub use rustix::fs::Stat;
pub use write::WriteTarget;
