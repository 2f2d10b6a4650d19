//! The journal's operations on PostgreSQL, each inside a transaction that the
//! caller opened. Many rows go in one statement.
//!
//! Transactions wait for each other's rows, so all of them take them in one order, else they would
//! deadlock: the lock on blobs, the stream's own row, the rows of shared streams, then blobs, streams,
//! inputs and results, each sorted by key, and acknowledgements last, because a transaction that sends an
//! acknowledged input again waits for them.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::Fault;
use super::marks;
use super::schema::LOCK;
use super::shared;
use crate::lease::Holder;
use crate::sql::{self, signed, unsigned};
use crate::text::Stored;
use crate::{
    Appended, Batch, Error, KeyedInput, Lease, Listing, Options, Process, Pruned, StreamId, Submitted, Update,
};

pub(super) const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const LOCK_STREAM: &str = "SELECT seq FROM streams WHERE stream = $1 FOR UPDATE";
const ADD_EVENTS: &str = "INSERT INTO events (stream, seq, at, event, blob)
    SELECT $1, $2 + n, $3, event, blob FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS t(event, blob, \
    n)";
const ACK: &str = "UPDATE inputs SET acked = 1, body = NULL, blob = NULL WHERE stream = $1 AND key = ANY($2)";
/// An insert waits for the transaction that is changing the row it collides with, here the append
/// of another stream's owner, which may be writing to us. So streams that can be seen are left
/// out, and only new ones are contended for.
pub(super) const NEW_STREAMS: &str = "INSERT INTO streams (stream, seq, epoch, created_at, updated_at)
    SELECT DISTINCT s, 0, 0, $1::bigint, $1::bigint FROM unnest($2::text[]) AS t(s)
    WHERE NOT EXISTS (SELECT 1 FROM streams WHERE stream = s) ORDER BY s
    ON CONFLICT (stream) DO NOTHING";
/// Numbered in the order of the batch, so that they wait in that order, but written in the order of their
/// keys.
const ADD_INPUTS: &str = "INSERT INTO inputs (n, stream, key, body, blob)
    SELECT n, stream, key, body, blob FROM (
        SELECT nextval(pg_get_serial_sequence('inputs', 'n')) AS n, stream, key, body, blob
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
        WITH ORDINALITY AS t(stream, key, body, blob, place) ORDER BY place
    ) AS numbered ORDER BY stream, key, n ON CONFLICT (stream, key) DO NOTHING";
const ADD_BLOBS: &str = "INSERT INTO blobs (digest, body)
    SELECT digest, body FROM unnest($1::text[], $2::text[]) AS t(digest, body) ORDER BY digest
    ON CONFLICT (digest) DO NOTHING";

pub(super) type Done<T> = Result<T, Fault>;
type Given<'a> = &'a (dyn ToSql + Sync);

pub(super) async fn submit(tx: &Transaction<'_>, input: &KeyedInput, at: u64) -> Done<Submitted> {
    let stored = Stored::new(&input.body);
    keep_blobs(tx, [&stored]).await?;
    add_blobs(tx, [&stored]).await?;
    let stream = input.stream.as_str();
    run(tx, sql::NEW_STREAM, &[&stream, &signed(at)]).await?;
    let added = run(tx, sql::ADD_INPUT, &[&stream, &input.key, &stored.inline, &stored.digest]).await?;
    Ok(if added == 1 { Submitted::Accepted } else { Submitted::AlreadyKnown })
}

pub(super) async fn own(tx: &Transaction<'_>, me: &Options, stream: &StreamId) -> Done<u64> {
    run(tx, sql::NEW_STREAM, &[&stream.as_str(), &0i64]).await?;
    if all(tx, LOCK_STREAM, &[&stream.as_str()]).await?.is_empty() {
        // It was pruned or has landed between the two statements; a lease of
        // a missing stream would be worth nothing.
        return Err(Fault::Again(format!("{stream} was removed meanwhile")));
    }
    if let Some(held) = holder_of(tx, stream).await?
        && held.process.id != me.process.id
        && let Some(by) = held.live(&me.process, now(tx).await?)
    {
        return Err(Error::Held { stream: stream.clone(), by: Box::new(by) }.into());
    }
    heartbeat(tx, me).await?;
    let epoch: i64 = one(tx, sql::NEXT_EPOCH).await?;
    run(tx, sql::TAKE, &[&me.process.id, &epoch, &stream.as_str()]).await?;
    Ok(unsigned(epoch))
}

pub(super) async fn heartbeat(tx: &Transaction<'_>, me: &Options) -> Done<()> {
    let who = &me.process;
    let now = now(tx).await?;
    let pid = i64::from(who.pid);
    let start = signed(who.start_time);
    let ttl = me.ttl_ms();
    run(tx, sql::BEAT, &[&who.id, &who.boot, &who.pid_namespace, &pid, &start, &ttl, &now]).await?;
    run(tx, sql::FORGET_SILENT, &[&(now - sql::SILENT_MS)]).await?;
    run(tx, marks::FORGET, &[&(now - sql::SILENT_MS)]).await?;
    Ok(())
}

pub(super) async fn release(tx: &Transaction<'_>, lease: &Lease) -> Done<()> {
    run(tx, sql::RELEASE, &[&lease.stream.as_str(), &lease.process, &signed(lease.epoch)]).await?;
    Ok(())
}

pub(super) async fn land(tx: &Transaction<'_>, flight: &Lease) -> Done<()> {
    run(tx, sql::LAND, &[&flight.stream.as_str(), &flight.process, &signed(flight.epoch)]).await?;
    Ok(())
}

pub(super) async fn leave(tx: &Transaction<'_>, me: &Options) -> Done<()> {
    run(tx, sql::LAND_ALL, &[&me.process.id]).await?;
    run(tx, sql::RELEASE_ALL, &[&me.process.id]).await?;
    run(tx, sql::LEAVE, &[&me.process.id]).await?;
    Ok(())
}

pub(super) async fn append(
    tx: &Transaction<'_>,
    lease: &Lease,
    expected: u64,
    batch: &Batch,
) -> Done<Appended> {
    let stream = lease.stream.as_str();
    let events: Vec<Stored<'_>> = batch.events.iter().map(|event| Stored::new(event)).collect();
    let bodies: Vec<Stored<'_>> = batch.inputs.iter().map(|input| Stored::new(&input.body)).collect();
    let mut results: Vec<(&str, Stored<'_>)> =
        batch.results.iter().map(|(key, json)| (key.as_str(), Stored::new(json))).collect();
    // A stable sort: of two results with one key the later one still counts.
    results.sort_by_key(|(key, _)| *key);
    let texts = || events.iter().chain(&bodies).chain(results.iter().map(|(_, stored)| stored));
    match batch.updates.is_empty() {
        true => keep_blobs(tx, texts()).await?,
        // How long their texts will be is not known before their rows are locked, and then it is too late to
        // wait.
        false => keep_all_blobs(tx).await?,
    }
    let count = signed(batch.events.len() as u64);
    let at = signed(batch.at);
    let epoch = signed(lease.epoch);
    let given: [Given<'_>; 7] =
        [&count, &at, &batch.summary, &stream, &signed(expected), &lease.process, &epoch];
    if run(tx, sql::ADVANCE, &given).await? == 0 {
        return Err(why_not(tx, lease, expected).await?.into());
    }
    let shared = shared::decide(tx, &batch.updates, at).await?;
    add_blobs(tx, texts().chain(&shared.texts())).await?;
    add_events(tx, stream, expected, at, &events).await?;
    shared.write(tx, at).await?;
    if !batch.inputs.is_empty() {
        let streams: Vec<&str> = batch.inputs.iter().map(|input| input.stream.as_str()).collect();
        let keys: Vec<&str> = batch.inputs.iter().map(|input| input.key.as_str()).collect();
        let (inline, digests) = columns(&bodies);
        run(tx, NEW_STREAMS, &[&at, &streams]).await?;
        run(tx, ADD_INPUTS, &[&streams, &keys, &inline, &digests]).await?;
    }
    for (key, stored) in &results {
        run(tx, sql::PUT_RESULT, &[key, &at, &stored.inline, &stored.digest]).await?;
    }
    if !batch.acks.is_empty() {
        run(tx, ACK, &[&stream, &batch.acks]).await?;
    }
    let seq = shared.seq(&lease.stream).unwrap_or(expected + batch.events.len() as u64);
    Ok(Appended { seq, states: shared.states })
}

/// Changes a shared stream that goes with no append.
pub(super) async fn update(tx: &Transaction<'_>, update: &Update, at: u64) -> Done<Appended> {
    keep_all_blobs(tx).await?;
    let shared = shared::decide(tx, std::slice::from_ref(update), signed(at)).await?;
    add_blobs(tx, &shared.texts()).await?;
    shared.write(tx, signed(at)).await?;
    Ok(Appended { seq: shared.seq(&update.stream).unwrap_or_default(), states: shared.states })
}

pub(super) async fn add_events(
    tx: &Transaction<'_>,
    stream: &str,
    after: u64,
    at: i64,
    events: &[Stored<'_>],
) -> Done<()> {
    if !events.is_empty() {
        let (inline, digests) = columns(events);
        run(tx, ADD_EVENTS, &[&stream, &signed(after), &at, &inline, &digests]).await?;
    }
    Ok(())
}

async fn why_not(tx: &Transaction<'_>, lease: &Lease, expected: u64) -> Done<Error> {
    let stream = lease.stream.clone();
    let rows = all(tx, sql::STREAM, &[&stream.as_str()]).await?;
    let found = rows.first().map(|row| (row.get(0), row.get::<_, Option<&str>>(1), row.get(2)));
    Ok(match found {
        Some((seq, Some(owner), epoch)) if owner == lease.process && unsigned(epoch) == lease.epoch => {
            Error::StaleSequence { stream, expected, actual: unsigned(seq) }
        }
        _ => Error::LostLease { stream },
    })
}

pub(super) async fn prune(tx: &Transaction<'_>, me: &Options, streams: &[StreamId]) -> Done<Pruned> {
    // See `keep_blobs`.
    run(tx, "SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let mut sorted: Vec<&StreamId> = streams.iter().collect();
    sorted.sort();
    let mut pruned = Pruned::default();
    for stream in sorted {
        let name: [Given<'_>; 1] = [&stream.as_str()];
        all(tx, LOCK_STREAM, &name).await?;
        if let Some(held) = holder_of(tx, stream).await?
            && held.live(&me.process, now(tx).await?).is_some()
        {
            pruned.held.push(stream.clone());
            continue;
        }
        pruned.events += run(tx, sql::PRUNE_EVENTS, &name).await?;
        pruned.inputs += run(tx, sql::PRUNE_INPUTS, &name).await?;
        if run(tx, sql::PRUNE_STREAM, &name).await? > 0 {
            pruned.removed.push(stream.clone());
        }
    }
    // Flights whose holders are gone, and which no process has wanted since.
    let now = now(tx).await?;
    for row in all(tx, sql::FLIGHTS, &[]).await? {
        let flight = StreamId::new(row.get::<_, String>(0))?;
        all(tx, LOCK_STREAM, &[&flight.as_str()]).await?;
        let held = holder_of(tx, &flight).await?;
        if held.and_then(|holder| holder.live(&me.process, now)).is_none() {
            run(tx, sql::PRUNE_STREAM, &[&flight.as_str()]).await?;
        }
    }
    pruned.blobs = run(tx, sql::PRUNE_BLOBS, &[]).await?;
    Ok(pruned)
}

pub(super) async fn forget_results(tx: &Transaction<'_>, before: u64) -> Done<u64> {
    run(tx, "SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let gone = run(tx, sql::PRUNE_RESULTS, &[&signed(before)]).await?;
    run(tx, sql::PRUNE_BLOBS, &[]).await?;
    Ok(gone)
}

pub(super) fn listing(row: &Row, me: &Options, now: i64) -> Result<Listing, Error> {
    Ok(Listing {
        owner: holder(row).and_then(|holder| holder.live(&me.process, now)),
        stream: StreamId::new(row.get::<_, String>(7))?,
        summary: row.get(8),
        seq: unsigned(row.get(9)),
        created_at: unsigned(row.get(10)),
        updated_at: unsigned(row.get(11)),
    })
}

async fn holder_of(tx: &Transaction<'_>, stream: &StreamId) -> Done<Option<Holder>> {
    Ok(all(tx, sql::HOLDER, &[&stream.as_str()]).await?.first().and_then(holder))
}

/// The owner in the first seven columns, if there is one.
pub(super) fn holder(row: &Row) -> Option<Holder> {
    let id = row.get::<_, Option<String>>(0)?;
    // A number that cannot be a pid belongs to no process of this machine; expiry decides then.
    let pid = u32::try_from(row.get::<_, i64>(3)).unwrap_or(u32::MAX);
    let start_time = unsigned(row.get(4));
    let process = Process { id, boot: row.get(1), pid_namespace: row.get(2), pid, start_time };
    Some(Holder { process, ttl: row.get(5), beat: row.get(6) })
}

async fn keep_all_blobs(tx: &Transaction<'_>) -> Done<()> {
    run(tx, "SELECT pg_advisory_xact_lock_shared($1)", &[&LOCK]).await.map(drop)
}

/// A transaction that refers to a blob holds this lock, shared, so that
/// it finds none that is about to be pruned.
async fn keep_blobs<'a>(tx: &Transaction<'_>, texts: impl IntoIterator<Item = &'a Stored<'a>>) -> Done<()> {
    if texts.into_iter().any(|text| text.blob().is_some()) {
        keep_all_blobs(tx).await?;
    }
    Ok(())
}

async fn add_blobs<'a>(tx: &Transaction<'_>, texts: impl IntoIterator<Item = &'a Stored<'a>>) -> Done<()> {
    let (digests, bodies): (Vec<&str>, Vec<&str>) = texts.into_iter().filter_map(Stored::blob).unzip();
    if !digests.is_empty() {
        run(tx, ADD_BLOBS, &[&digests, &bodies]).await?;
    }
    Ok(())
}

fn columns<'a>(texts: &'a [Stored<'a>]) -> (Vec<Option<&'a str>>, Vec<Option<&'a str>>) {
    texts.iter().map(|text| (text.inline, text.digest.as_deref())).unzip()
}

async fn now(tx: &Transaction<'_>) -> Done<i64> {
    one(tx, NOW).await
}

async fn one(tx: &Transaction<'_>, statement: &str) -> Done<i64> {
    let prepared = tx.prepare_cached(statement).await?;
    Ok(tx.query_one(&prepared, &[]).await?.try_get(0)?)
}

pub(super) async fn all(tx: &Transaction<'_>, statement: &str, given: &[Given<'_>]) -> Done<Vec<Row>> {
    let prepared = tx.prepare_cached(statement).await?;
    Ok(tx.query(&prepared, given).await?)
}

pub(super) async fn run(tx: &Transaction<'_>, statement: &str, given: &[Given<'_>]) -> Done<u64> {
    let prepared = tx.prepare_cached(statement).await?;
    Ok(tx.execute(&prepared, given).await?)
}
