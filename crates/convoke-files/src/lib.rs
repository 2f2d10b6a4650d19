//! Edits and searches files by handle: the text editor, glob and grep tools.
//!
//! The host holds a directory handle of an agent's tree and calls [`edit`], [`glob`] and [`grep`] with it;
//! each answers with the text the model reads, or with a [`Refused`] whose text says what to do next. Nothing
//! here ever turns the handle into a path: a name is resolved by the kernel beneath the handle, so that
//! neither a link, a `..` nor a directory swapped at the wrong moment leads out of the tree. The crate knows
//! nothing of agents, journals or the environment, starts no process, and never waits on a fifo or a device.

mod beneath;
mod caps;
mod editor;
mod glob;
mod grep;
mod ignored;
mod line_ends;
mod listing;
mod refused;
mod replace;
mod root;
mod show;
mod text;
mod view;
mod walk;
mod write;

pub use caps::Caps;
pub use editor::{Change, Done, Edit, edit};
pub use glob::{Glob, Sort, glob};
pub use grep::{Grep, Mode, grep};
pub use refused::Refused;
pub use root::{Protected, Root};
