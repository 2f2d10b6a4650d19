//! What a session changes, as far as it can be shown and taken back: where that is kept, what a session left
//! behind, and the worktree of a lead that works in one. `convoke-trees` does the keeping; here it is tied to
//! sessions of the journal.

mod checkout;
mod failures;
mod forget;
mod lead_tree;
mod left;
mod places;

pub(crate) use checkout::{Checkout, LEAD};
pub(crate) use forget::forget;
pub(crate) use lead_tree::LeadTree;
pub(crate) use left::{Left, later_line, later_of, not_kept_line, not_kept_words, unlooked_line, worktrees};
pub(crate) use places::{cannot_take_back, places, places_for};
