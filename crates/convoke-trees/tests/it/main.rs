//! The tests of this crate, in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "all of this crate is tests"
)]

mod beyond;
mod fenced;
mod hooks;
mod keeping;
mod kept;
mod later;
mod odd;
mod side_by_side;
mod sight;
mod stalls;
mod trust;
mod undoing;
mod unwritable;
mod worktree;
mod worktree_apply;
mod worktree_faults;
mod worktree_hostile;
mod worktree_kill;
mod worktree_repo;
mod world;
