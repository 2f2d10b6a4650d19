//! The directory that agents work in: what is there, what has changed, and a look at a single file. It never
//! writes, and it runs nothing that the directory names.

mod content;
mod fingerprint;
mod listing;
mod look;
mod looks;
#[cfg(test)]
mod race_tests;
mod since;
mod snapshot;
#[cfg(test)]
mod tests;

pub(crate) use content::digests;
pub(crate) use fingerprint::{fingerprint, fingerprint_beside};
pub use listing::WorkspaceError;
pub(crate) use look::{Cited, Looked};
pub(crate) use looks::Looks;
pub use since::changed_since;
pub(crate) use snapshot::Snapshot;
