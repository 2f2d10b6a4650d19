//! The journal's operations on an embedded database, each inside a transaction that the caller opened.

use std::sync::LazyLock;

use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use crate::lease::Holder;
use crate::sql::{self, signed, unsigned};
use crate::text::Stored;
use crate::{
    Appended, Batch, Change, Error, FORMAT, Filter, KeyedInput, Lease, Listing, Options, Process, Pruned,
    Record, Refusal, Results, SignOfLife, StreamId, Submitted,
};

/// The tables in SQLite's words. SQLite compares text byte by byte anyway.
pub(super) static SCHEMA_SQLITE: LazyLock<String> =
    LazyLock::new(|| sql::schema("TEXT", "INTEGER PRIMARY KEY"));

const NOW: &str = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";
const ADD_EVENT: &str = "INSERT INTO events (stream, seq, at, event, blob) VALUES ($1, $2, $3, $4, $5)";
const ACK: &str = "UPDATE inputs SET acked = 1, body = NULL, blob = NULL WHERE stream = $1 AND key = $2";

/// Why an operation failed: something to tell the caller, or something SQLite said.
pub(crate) enum Fault {
    Told(Error),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl Fault {
    /// What to tell the caller of a write.
    pub(crate) fn writing(self, place: &str) -> Error {
        let told = |place, reason| Error::CannotWrite { place, reason };
        self.told(place, told)
    }

    /// What to tell the caller of a read.
    pub(crate) fn reading(self, place: &str) -> Error {
        let told = |place, reason| Error::Unavailable { place, reason };
        self.told(place, told)
    }

    fn told(self, place: &str, io: impl FnOnce(String, String) -> Error) -> Error {
        let error = match self {
            Self::Told(error) => return error,
            Self::Sql(error) => error,
        };
        let place = place.to_owned();
        let reason = error.to_string();
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::NoLargeFileSupport
                | ErrorCode::TooBig
                | ErrorCode::OutOfMemory,
            ) => io(place, reason),
            // The last one is what SQLite says when a process is stopped amid a change of the log's index.
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => {
                let reason = format!("another program keeps it locked ({reason})");
                Error::Unavailable { place, reason }
            }
            _ => Error::Corrupt { place, reason },
        }
    }
}

type Done<T> = Result<T, Fault>;

pub(crate) fn submit(rows: &Connection, input: &KeyedInput, at: u64) -> Done<Submitted> {
    run(rows, sql::NEW_STREAM, params![input.stream.as_str(), signed(at)])?;
    let stored = store(rows, &input.body)?;
    let added =
        run(rows, sql::ADD_INPUT, params![input.stream.as_str(), input.key, stored.inline, stored.digest])?;
    Ok(if added == 1 { Submitted::Accepted } else { Submitted::AlreadyKnown })
}

pub(crate) fn own(rows: &Connection, me: &Options, stream: &StreamId) -> Done<u64> {
    run(rows, sql::NEW_STREAM, params![stream.as_str(), 0])?;
    let now = now(rows)?;
    let held = rows.prepare_cached(sql::HOLDER)?.query_row([stream.as_str()], holder).optional()?.flatten();
    if let Some(holder) = held
        && holder.process.id != me.process.id
        && let Some(by) = holder.live(&me.process, now)
    {
        return Err(Error::Held { stream: stream.clone(), by: Box::new(by) }.into());
    }
    heartbeat(rows, me)?;
    let epoch: i64 = rows.prepare_cached(sql::NEXT_EPOCH)?.query_row([], |row| row.get(0))?;
    run(rows, sql::TAKE, params![me.process.id, epoch, stream.as_str()])?;
    Ok(unsigned(epoch))
}

pub(crate) fn heartbeat(rows: &Connection, me: &Options) -> Done<()> {
    let who = &me.process;
    let now = now(rows)?;
    let pid = i64::from(who.pid);
    let start = signed(who.start_time);
    run(rows, sql::BEAT, params![who.id, who.boot, who.pid_namespace, pid, start, me.ttl_ms(), now])?;
    run(rows, sql::FORGET_SILENT, [now - sql::SILENT_MS])?;
    Ok(())
}

pub(crate) fn sign_of_life(rows: &Connection, me: &Options, process: &str) -> Done<Option<SignOfLife>> {
    let now = now(rows)?;
    let found = rows.prepare_cached(sql::PROCESS)?.query_row([process], holder).optional()?.flatten();
    Ok(found.map(|holder| holder.sign(&me.process, now)))
}

pub(crate) fn holds(rows: &Connection, lease: &Lease) -> Done<bool> {
    let given = params![lease.stream.as_str(), lease.process, signed(lease.epoch)];
    Ok(rows.prepare_cached(sql::HOLDS)?.exists(given)?)
}

pub(crate) fn release(rows: &Connection, lease: &Lease) -> Done<()> {
    run(rows, sql::RELEASE, params![lease.stream.as_str(), lease.process, signed(lease.epoch)])?;
    Ok(())
}

pub(crate) fn land(rows: &Connection, flight: &Lease) -> Done<()> {
    run(rows, sql::LAND, params![flight.stream.as_str(), flight.process, signed(flight.epoch)])?;
    Ok(())
}

pub(crate) fn leave(rows: &Connection, me: &Options) -> Done<()> {
    run(rows, sql::LAND_ALL, [&me.process.id])?;
    run(rows, sql::RELEASE_ALL, [&me.process.id])?;
    run(rows, sql::LEAVE, [&me.process.id])?;
    Ok(())
}

pub(crate) fn append(rows: &Connection, lease: &Lease, expected: u64, batch: &Batch) -> Done<Appended> {
    let stream = lease.stream.as_str();
    let count = signed(batch.events.len() as u64);
    let at = signed(batch.at);
    let epoch = signed(lease.epoch);
    let moved = params![count, at, batch.summary, stream, signed(expected), lease.process, epoch];
    if run(rows, sql::ADVANCE, moved)? == 0 {
        return Err(why_not(rows, lease, expected)?.into());
    }
    add_events(rows, stream, expected, at, &batch.events)?;
    let mut appended = Appended { seq: expected + batch.events.len() as u64, states: Vec::new() };
    for shared in &batch.updates {
        let (seq, state) = update(rows, &shared.stream, batch.at, &shared.change)?;
        if shared.stream == lease.stream {
            appended.seq = seq;
        }
        appended.states.push(state);
    }
    for key in &batch.acks {
        run(rows, ACK, [stream, key])?;
    }
    for input in &batch.inputs {
        submit(rows, input, batch.at)?;
    }
    for (key, json) in &batch.results {
        let stored = store(rows, json)?;
        run(rows, sql::PUT_RESULT, params![key, at, stored.inline, stored.digest])?;
    }
    Ok(appended)
}

/// Changes a shared stream. Returns the number of its last event now, and its new state.
pub(crate) fn update(rows: &Connection, shared: &StreamId, at: u64, change: &Change) -> Done<(u64, String)> {
    let stream = shared.as_str();
    let at = signed(at);
    run(rows, sql::NEW_STREAM, params![stream, at])?;
    let read = |row: &Row<'_>| Ok((unsigned(row.get(0)?), row.get(1)?));
    let (seq, state): (u64, Option<String>) = rows.prepare_cached(sql::SHARED)?.query_row([stream], read)?;
    let changed = change.decide(shared, state.as_deref())?;
    let count = changed.events.len() as u64;
    run(rows, sql::MOVE_SHARED, params![signed(count), at, changed.state, stream])?;
    add_events(rows, stream, seq, at, &changed.events)?;
    Ok((seq + count, changed.state))
}

fn add_events(rows: &Connection, stream: &str, after: u64, at: i64, events: &[String]) -> Done<()> {
    for (event, seq) in events.iter().zip(after + 1..) {
        let stored = store(rows, event)?;
        run(rows, ADD_EVENT, params![stream, signed(seq), at, stored.inline, stored.digest])?;
    }
    Ok(())
}

pub(crate) fn shared(rows: &Connection, stream: &StreamId) -> Done<Option<String>> {
    let state =
        rows.prepare_cached(sql::SHARED)?.query_row([stream.as_str()], |row| row.get(1)).optional()?;
    Ok(state.flatten())
}

fn why_not(rows: &Connection, lease: &Lease, expected: u64) -> Done<Error> {
    let stream = lease.stream.clone();
    let read =
        |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, i64>(2)?));
    let found = rows.prepare_cached(sql::STREAM)?.query_row([stream.as_str()], read).optional()?;
    Ok(match found {
        Some((seq, Some(owner), epoch)) if owner == lease.process && unsigned(epoch) == lease.epoch => {
            Error::StaleSequence { stream, expected, actual: unsigned(seq) }
        }
        _ => Error::LostLease { stream },
    })
}

pub(crate) fn load(rows: &Connection, stream: &StreamId, after: u64) -> Done<Vec<Record>> {
    let read = |row: &Row<'_>| {
        let seq = row.get(0)?;
        let at = row.get(1)?;
        let event = row.get(2)?;
        Ok(Record { stream: stream.clone(), seq: unsigned(seq), at: unsigned(at), event })
    };
    all(rows, sql::LOAD, params![stream.as_str(), signed(after)], read)
}

pub(crate) fn inputs(rows: &Connection, stream: &StreamId) -> Done<Vec<KeyedInput>> {
    let read = |row: &Row<'_>| Ok(KeyedInput { stream: stream.clone(), key: row.get(0)?, body: row.get(1)? });
    all(rows, sql::INPUTS, [stream.as_str()], read)
}

pub(crate) fn result_at(rows: &Connection, key: &str) -> Done<Option<(String, u64)>> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, unsigned(row.get(1)?)));
    Ok(rows.prepare_cached(sql::RESULT)?.query_row([key], read).optional()?)
}

/// More keys than this are asked for in several statements: there is a limit on what one may be given.
const KEYS: usize = 1_000;

pub(crate) fn results_at(rows: &Connection, keys: &[String]) -> Done<Results> {
    let mut found = Results::new();
    for keys in keys.chunks(KEYS) {
        let places = vec!["?"; keys.len()].join(",");
        let mut statement = rows.prepare(&format!("{} IN ({places})", sql::RESULTS))?;
        let read = |row: &Row<'_>| Ok((row.get(2)?, (row.get(0)?, unsigned(row.get(1)?))));
        let read = statement.query_map(rusqlite::params_from_iter(keys), read)?;
        for one in read {
            let (key, result) = one?;
            found.insert(key, result);
        }
    }
    Ok(found)
}

pub(crate) fn list(rows: &Connection, me: &Options, filter: &Filter) -> Done<Vec<Listing>> {
    let now = now(rows)?;
    let (from, to) = filter.range();
    let read = |row: &Row<'_>| {
        let owner = holder(row)?.and_then(|holder| holder.live(&me.process, now));
        let stream = StreamId::new(row.get::<_, String>(7)?).map_err(|e| conversion(7, e))?;
        let summary = row.get(8)?;
        let seq = unsigned(row.get(9)?);
        let created_at = unsigned(row.get(10)?);
        let updated_at = unsigned(row.get(11)?);
        Ok(Listing { stream, summary, seq, created_at, updated_at, owner })
    };
    all(rows, sql::LIST, params![from, to, filter.limit()], read)
}

pub(crate) fn prune(rows: &Connection, me: &Options, streams: &[StreamId]) -> Done<Pruned> {
    let now = now(rows)?;
    let mut pruned = Pruned::default();
    for stream in streams {
        let name = [stream.as_str()];
        let held = rows.prepare_cached(sql::HOLDER)?.query_row(name, holder).optional()?.flatten();
        if held.and_then(|holder| holder.live(&me.process, now)).is_some() {
            pruned.held.push(stream.clone());
            continue;
        }
        pruned.events += run(rows, sql::PRUNE_EVENTS, name)? as u64;
        pruned.inputs += run(rows, sql::PRUNE_INPUTS, name)? as u64;
        if run(rows, sql::PRUNE_STREAM, name)? > 0 {
            pruned.removed.push(stream.clone());
        }
    }
    // Flights whose holders are gone, and which no process has wanted since.
    for flight in all(rows, sql::FLIGHTS, [], |row| row.get::<_, String>(0))? {
        let held = rows.prepare_cached(sql::HOLDER)?.query_row([&flight], holder).optional()?.flatten();
        if held.and_then(|holder| holder.live(&me.process, now)).is_none() {
            run(rows, sql::PRUNE_STREAM, [&flight])?;
        }
    }
    pruned.blobs = run(rows, sql::PRUNE_BLOBS, [])? as u64;
    Ok(pruned)
}

pub(crate) fn forget_results(rows: &Connection, before: u64) -> Done<u64> {
    let gone = run(rows, sql::PRUNE_RESULTS, [signed(before)])?;
    run(rows, sql::PRUNE_BLOBS, [])?;
    Ok(gone as u64)
}

/// Makes the tables ours, if another process has not done it since we looked.
pub(super) fn upgrade(rows: &Connection, place: &str) -> Done<()> {
    let found: u32 = rows.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > FORMAT {
        let refusal = Refusal::Newer { found, known: FORMAT };
        return Err(Error::Refused { place: place.to_owned(), refusal }.into());
    }
    rows.execute_batch(&format!("{} PRAGMA user_version = {FORMAT};", sql::upgrade(found)))?;
    Ok(())
}

/// The owner in the first seven columns, if there is one.
fn holder(row: &Row<'_>) -> rusqlite::Result<Option<Holder>> {
    let Some(id) = row.get(0)? else { return Ok(None) };
    let pid: i64 = row.get(3)?;
    let start: i64 = row.get(4)?;
    let pid = u32::try_from(pid).map_err(|e| conversion(3, e))?;
    let boot = row.get(1)?;
    let pid_namespace = row.get(2)?;
    let start_time = unsigned(start);
    let process = Process { id, boot, pid_namespace, pid, start_time };
    Ok(Some(Holder { process, ttl: row.get(5)?, beat: row.get(6)? }))
}

fn conversion(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

fn store<'a>(rows: &Connection, text: &'a str) -> Done<Stored<'a>> {
    let stored = Stored::new(text);
    if let Some((digest, body)) = stored.blob() {
        run(rows, sql::ADD_BLOB, [digest, body])?;
    }
    Ok(stored)
}

fn now(rows: &Connection) -> Done<i64> {
    one(rows, NOW)
}

fn one<T: FromSql>(rows: &Connection, statement: &str) -> Done<T> {
    Ok(rows.prepare_cached(statement)?.query_row([], |row| row.get(0))?)
}

fn run(rows: &Connection, statement: &str, given: impl rusqlite::Params) -> Done<usize> {
    Ok(rows.prepare_cached(statement)?.execute(given)?)
}

fn all<T>(
    rows: &Connection,
    statement: &str,
    given: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Done<Vec<T>> {
    Ok(rows.prepare_cached(statement)?.query_map(given, read)?.collect::<rusqlite::Result<_>>()?)
}
