//! Keeps trees: what a run changed and which agent changed it, taking it back, and worktrees of agents.
//!
//! Trees are git's objects: in the repository that a directory lies in, under `refs/convoke/`, else in a
//! private one below the state directory. A repository's index, branches, stash and settings are never
//! touched, and no program that it names is ever run.
//!
//! The crate knows nothing of agents but their names, and it does not decide which of them may write.

mod asking;
mod claims;
mod diff;
mod error;
mod git;
mod handle;
mod ignored;
mod keeper;
mod later;
mod layout;
mod links;
mod modes;
mod overlaps;
mod parts;
mod places;
mod record;
mod size;
mod steps;
mod stops;
mod store;
mod taken_over;
mod tree;
mod turn;
mod undo;
mod window_files;
mod windows;
mod worktree;

#[cfg(test)]
mod window_crash_tests;

pub use claims::Place;
pub use diff::DiffForm;
pub use error::Error;
pub use keeper::{Keeper, Kept, forget};
pub use later::{Later, LaterKind, RunsLater};
pub use overlaps::Overlap;
pub use places::HostPlaces;
pub use steps::{ChangeKind, ChangedFile};
pub use tree::LeftOut;
pub use turn::{Actor, Fence, FenceAnswer, Holder};
pub use undo::Undone;
pub use windows::{Begun, Closed};
pub use worktree::{
    Applied, Base, Conflict, Dropped, Finished, Worktree, WorktreeEntry, WorktreeError, WorktreeState,
    Worktrees,
};
