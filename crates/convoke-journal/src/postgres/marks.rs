//! Marks: how an operation finds out whether a transaction of its own was committed whose answer was lost.
//!
//! An operation has a number that no other operation has, and every transaction that tries it begins by
//! writing the number into a row that is the operation's alone for as long as it takes. If the number is
//! there already, an earlier try was committed. An earlier try that the server is still busy with holds the
//! row, so that the later one waits until its fate is decided: there is no moment in which both could be
//! committed.
//!
//! The rejected alternative is to ask the server for the fate of the transaction by its number
//! (`pg_xact_status`): a server that has crashed may give the number of a transaction that left no trace to
//! another one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use deadpool_postgres::Transaction;

use super::ops::{self, Done};
use crate::sql::signed;

/// Older versions neither know this table nor miss it, so it is no part of the format.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS marks (owner TEXT NOT NULL, slot BIGINT NOT NULL,
    op BIGINT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (owner, slot))";

const WRITE: &str = "INSERT INTO marks (owner, slot, op, at)
    VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ON CONFLICT (owner, slot) DO UPDATE SET op = excluded.op, at = excluded.at WHERE marks.op <> excluded.op";

/// Marks of operations that no caller can be waiting for any more.
pub(super) const FORGET: &str = "DELETE FROM marks WHERE at < $1";

/// Two stores of one process have names of their own, although the process has one.
static STORES: AtomicU64 = AtomicU64::new(0);

/// The rows of one store. There are as many as there were operations at once.
pub(super) struct Marks {
    owner: String,
    next: AtomicU64,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    free: Vec<u64>,
    made: u64,
}

/// One operation's row and number.
pub(super) struct Mark<'a> {
    marks: &'a Marks,
    slot: u64,
    op: u64,
}

impl Marks {
    pub(super) fn new(process: &str) -> Self {
        let owner = format!("{process}/{}", STORES.fetch_add(1, Ordering::Relaxed));
        Self { owner, next: AtomicU64::new(1), slots: Mutex::default() }
    }

    pub(super) fn mark(&self) -> Mark<'_> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.free.pop().unwrap_or_else(|| {
            slots.made += 1;
            slots.made
        });
        Mark { marks: self, slot, op: self.next.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Mark<'_> {
    /// Marks the transaction; `false` if an earlier one with this mark was committed.
    pub(super) async fn write(&self, tx: &Transaction<'_>) -> Done<bool> {
        Ok(ops::run(tx, WRITE, &[&self.marks.owner, &signed(self.slot), &signed(self.op)]).await? == 1)
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        // A try that goes on in the server although no caller waits for it any more holds the row until it
        // has ended.
        self.marks.slots.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.slot);
    }
}
