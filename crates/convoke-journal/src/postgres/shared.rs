//! Updates of shared streams on PostgreSQL, inside a transaction that the caller opened: their rows are
//! locked in the order of their names, the functions are asked, and what they said is written. Concurrent
//! updaters take turns at the lock.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::fault::Fault;
use super::ops::{self, Done};
use crate::sql::{self, signed, unsigned};
use crate::text::Stored;
use crate::{Error, StreamId, Update};

const LOCK_SHARED: &str =
    "SELECT stream, seq, state FROM streams WHERE stream = ANY($1) ORDER BY stream FOR UPDATE";

/// What the updates of a batch come to.
#[derive(Default)]
pub(super) struct Shared {
    /// Each stream that is changed, by its name.
    moved: BTreeMap<String, Moved>,
    /// The state after each update.
    pub(super) states: Vec<String>,
}

#[derive(Default)]
struct Moved {
    /// The number of its last event before the events below.
    seq: u64,
    state: Option<String>,
    events: Vec<String>,
}

/// Locks the streams of these updates, made if they are new, and asks the functions.
pub(super) async fn decide(tx: &Transaction<'_>, updates: &[Update], at: i64) -> Done<Shared> {
    if updates.is_empty() {
        return Ok(Shared::default());
    }
    let mut streams: Vec<&str> = updates.iter().map(|update| update.stream.as_str()).collect();
    streams.sort_unstable();
    streams.dedup();
    ops::run(tx, ops::NEW_STREAMS, &[&at, &streams]).await?;
    let rows = ops::all(tx, LOCK_SHARED, &[&streams]).await?;
    if rows.len() < streams.len() {
        // Another process has removed one between the two statements.
        return Err(Fault::Again("a shared stream was removed meanwhile".to_owned()));
    }
    Ok(fold(&rows, updates)?)
}

fn fold(rows: &[Row], updates: &[Update]) -> Result<Shared, Error> {
    let found =
        |row: &Row| (row.get(0), Moved { seq: unsigned(row.get(1)), state: row.get(2), events: Vec::new() });
    let mut shared = Shared { moved: rows.iter().map(found).collect(), states: Vec::new() };
    for update in updates {
        let moved = shared.moved.entry(update.stream.to_string()).or_default();
        let changed = update.change.decide(&update.stream, moved.state.as_deref())?;
        moved.events.extend(changed.events);
        moved.state = Some(changed.state.clone());
        shared.states.push(changed.state);
    }
    Ok(shared)
}

impl Shared {
    /// The number of a stream's last event when this is written, if it is one of those that are changed.
    pub(super) fn seq(&self, stream: &StreamId) -> Option<u64> {
        self.moved.get(stream.as_str()).map(|moved| moved.seq + moved.events.len() as u64)
    }

    /// The events, as they go into their rows.
    pub(super) fn texts(&self) -> Vec<Stored<'_>> {
        self.moved.values().flat_map(|moved| &moved.events).map(|event| Stored::new(event)).collect()
    }

    /// Writes it all down but the blobs.
    pub(super) async fn write(&self, tx: &Transaction<'_>, at: i64) -> Done<()> {
        for (stream, moved) in &self.moved {
            let count = signed(moved.events.len() as u64);
            ops::run(tx, sql::MOVE_SHARED, &[&count, &at, &moved.state, stream]).await?;
            let texts: Vec<Stored<'_>> = moved.events.iter().map(|event| Stored::new(event)).collect();
            ops::add_events(tx, stream, moved.seq, at, &texts).await?;
        }
        Ok(())
    }
}
