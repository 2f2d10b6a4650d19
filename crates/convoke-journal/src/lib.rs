//! Remembers: streams of events under leases, with the inputs that wait for them and the results they left,
//! in SQLite, PostgreSQL or memory. No rule of the agent loop is in here: events are opaque JSON text.
//!
//! * [`Journal`] is the whole contract, in prose, for every store.
//! * [`Location`] says where a journal is, [`Options`] which process opens it.
//! * [`StreamId`], [`Record`], [`Batch`] and [`KeyedInput`] are what goes in and comes out.
//! * [`Update`], [`Change`] and [`Changed`] change streams without an
//!   owner; [`Appended`] says what came of it.
//! * [`Lease`] is the right to append to a stream; [`Process`] is what holds it; [`Flight`] is the right to
//!   be the only one at work on a key.
//! * [`Outage`] says that the store is away, and since when.
//! * [`Checked`] is what a look at all of a journal came to.
//! * [`AwaitedProcess`] is the process that a write waits for, to be shown to a person.
//! * [`Error`] says what went wrong in words the caller can act on.

mod change;
mod error;
mod flight;
mod journal;
mod lease;
mod listing;
mod location;
mod locks;
mod outage;
mod postgres;
mod process;
mod sql;
mod sqlite;
mod stream;
mod text;
mod wake;

pub use change::{Appended, Change, Changed, Update};
pub use error::{Error, Refusal};
pub use flight::Flight;
pub use journal::Journal;
pub use lease::{Lease, LiveOwner, Options, SignOfLife};
pub use listing::{Filter, Listing, Pruned, Results};
pub use location::Location;
pub use locks::AwaitedProcess;
pub use outage::Outage;
pub use process::Process;
pub use sqlite::Checked;
pub use stream::{Batch, KeyedInput, Record, StreamId, Submitted};
pub use text::BLOB_ABOVE;

/// The format this version writes, and the newest it reads.
pub const FORMAT: u32 = 2;
