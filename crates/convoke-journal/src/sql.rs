//! The statements both databases understand, and what their rows mean. Parameters are `$1`, `$2`, … in the
//! order of their first appearance, because SQLite numbers them by that.
//!
//! What differs between the two (clock, row locks, arrays, schema details) is in `sqlite` and `postgres`.

use crate::FORMAT;

/// Streams: `owner` is a process id while a process has the lease,
/// `epoch` the fencing number of the last lease.
pub(crate) const NEW_STREAM: &str = "INSERT INTO streams (stream, seq, epoch, created_at, updated_at)
    VALUES ($1, 0, 0, $2, $2) ON CONFLICT (stream) DO NOTHING";

pub(crate) const STREAM: &str = "SELECT seq, owner, epoch FROM streams WHERE stream = $1";

pub(crate) const TAKE: &str = "UPDATE streams SET owner = $1, epoch = $2 WHERE stream = $3";

/// One row if the lease is the one that may append: what `ADVANCE` asks about it.
pub(crate) const HOLDS: &str = "SELECT 1 FROM streams WHERE stream = $1 AND owner = $2 AND epoch = $3";

pub(crate) const RELEASE: &str =
    "UPDATE streams SET owner = NULL WHERE stream = $1 AND owner = $2 AND epoch = $3";

pub(crate) const RELEASE_ALL: &str = "UPDATE streams SET owner = NULL WHERE owner = $1";

/// The heart of every append: it moves the stream only if lease and sequence are as the caller says.
pub(crate) const ADVANCE: &str = "UPDATE streams SET seq = seq + $1, updated_at = $2,
    created_at = CASE WHEN created_at = 0 THEN $2 ELSE created_at END, summary = COALESCE($3, summary)
    WHERE stream = $4 AND seq = $5 AND owner = $6 AND epoch = $7";

/// Shared streams: the folded state is in the stream's row, however long it is, because every update replaces
/// it and a blob would stay behind each time.
pub(crate) const SHARED: &str = "SELECT seq, state FROM streams WHERE stream = $1";

/// The heart of every update: the stream moves on with its state. The caller
/// has the row locked, or the whole database.
pub(crate) const MOVE_SHARED: &str = "UPDATE streams SET seq = seq + $1, updated_at = $2,
    created_at = CASE WHEN created_at = 0 THEN $2 ELSE created_at END, state = $3 WHERE stream = $4";

/// Flights: streams of the journal's own whose names begin with `flight:`, and which hold nothing but a
/// lease.
pub(crate) const FLIGHTS: &str =
    "SELECT stream FROM streams WHERE stream >= 'flight:' AND stream < 'flight;'";

pub(crate) const LAND: &str = "DELETE FROM streams WHERE stream = $1 AND owner = $2 AND epoch = $3";

pub(crate) const LAND_ALL: &str = "DELETE FROM streams
    WHERE owner = $1 AND stream >= 'flight:' AND stream < 'flight;'";

pub(crate) const NEXT_EPOCH: &str = "UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value";

/// Processes: one heartbeat row each.
pub(crate) const BEAT: &str = "INSERT INTO processes (id, boot, pid_namespace, pid, start_time, ttl, beat)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET boot = excluded.boot,
    pid_namespace = excluded.pid_namespace, pid = excluded.pid, start_time = excluded.start_time, ttl = \
    excluded.ttl,
    beat = excluded.beat";

pub(crate) const LEAVE: &str = "DELETE FROM processes WHERE id = $1";

pub(crate) const FORGET_SILENT: &str = "DELETE FROM processes WHERE beat < $1
    AND NOT EXISTS (SELECT 1 FROM streams WHERE owner = processes.id)";

/// A process row that owns nothing and has been silent this long is deleted.
pub(crate) const SILENT_MS: i64 = 24 * 60 * 60 * 1000;

pub(crate) const HOLDER: &str = "SELECT p.id, p.boot, p.pid_namespace, p.pid, p.start_time, p.ttl, p.beat
    FROM streams s JOIN processes p ON p.id = s.owner WHERE s.stream = $1";

pub(crate) const PROCESS: &str = "SELECT p.id, p.boot, p.pid_namespace, p.pid, p.start_time, p.ttl, p.beat
    FROM processes p WHERE p.id = $1";

/// Inputs: an acknowledged one keeps its key, so that it is recognised when it comes again, and loses its
/// text.
pub(crate) const ADD_INPUT: &str = "INSERT INTO inputs (stream, key, body, blob) VALUES ($1, $2, $3, $4)
    ON CONFLICT (stream, key) DO NOTHING";

pub(crate) const INPUTS: &str = "SELECT i.key, COALESCE(i.body, b.body) FROM inputs i
    LEFT JOIN blobs b ON b.digest = i.blob WHERE i.stream = $1 AND i.acked = 0 ORDER BY i.n";

/// Events, results and blobs.
pub(crate) const LOAD: &str = "SELECT e.seq, e.at, COALESCE(e.event, b.body) FROM events e
    LEFT JOIN blobs b ON b.digest = e.blob WHERE e.stream = $1 AND e.seq > $2 ORDER BY e.seq";

pub(crate) const ADD_BLOB: &str =
    "INSERT INTO blobs (digest, body) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING";

pub(crate) const PUT_RESULT: &str = "INSERT INTO results (key, at, body, blob) VALUES ($1, $2, $3, $4)
    ON CONFLICT (key) DO UPDATE SET at = excluded.at, body = excluded.body, blob = excluded.blob";

pub(crate) const RESULT: &str = "SELECT COALESCE(r.body, b.body), r.at FROM results r
    LEFT JOIN blobs b ON b.digest = r.blob WHERE r.key = $1";

/// The same for many keys; which ones is for each database to add, in its own words.
pub(crate) const RESULTS: &str = "SELECT COALESCE(r.body, b.body), r.at, r.key FROM results r
    LEFT JOIN blobs b ON b.digest = r.blob WHERE r.key";

pub(crate) const LIST: &str = "SELECT p.id, p.boot, p.pid_namespace, p.pid, p.start_time, p.ttl, p.beat,
    s.stream, s.summary, s.seq, s.created_at, s.updated_at
    FROM streams s LEFT JOIN processes p ON p.id = s.owner
    WHERE s.stream >= $1 AND s.stream < $2 AND NOT (s.stream >= 'flight:' AND s.stream < 'flight;')
    ORDER BY s.created_at DESC, s.stream DESC LIMIT $3";

pub(crate) const PRUNE_EVENTS: &str = "DELETE FROM events WHERE stream = $1";
pub(crate) const PRUNE_INPUTS: &str = "DELETE FROM inputs WHERE stream = $1";
pub(crate) const PRUNE_STREAM: &str = "DELETE FROM streams WHERE stream = $1";
pub(crate) const PRUNE_RESULTS: &str = "DELETE FROM results WHERE at < $1";

pub(crate) const PRUNE_BLOBS: &str = "DELETE FROM blobs
    WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.blob = blobs.digest)
    AND NOT EXISTS (SELECT 1 FROM inputs WHERE inputs.blob = blobs.digest)
    AND NOT EXISTS (SELECT 1 FROM results WHERE results.blob = blobs.digest)";

/// What an error says when a promised blob is missing.
pub(crate) const DANGLING: &str = "a row refers to a blob that is not there";

/// The tables of format 1. `{text}` is text compared byte by byte, `{serial}` a number that grows with every
/// row.
const SCHEMA: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO meta (name, value) VALUES ('format', 1), ('epoch', 0);
CREATE TABLE streams (stream {text} PRIMARY KEY, seq BIGINT NOT NULL, owner TEXT, epoch BIGINT NOT NULL, \
summary TEXT,
    created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE INDEX streams_owner ON streams (owner) WHERE owner IS NOT NULL;
CREATE TABLE processes (id TEXT PRIMARY KEY, boot TEXT NOT NULL, pid_namespace TEXT NOT NULL, pid BIGINT NOT \
NULL,
    start_time BIGINT NOT NULL, ttl BIGINT NOT NULL, beat BIGINT NOT NULL);
CREATE TABLE blobs (digest {text} PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE events (stream {text} NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, event TEXT, blob {text},
    PRIMARY KEY (stream, seq));
CREATE INDEX events_blob ON events (blob) WHERE blob IS NOT NULL;
CREATE TABLE inputs (n {serial}, stream {text} NOT NULL, key {text} NOT NULL, body TEXT, blob {text},
    acked BIGINT NOT NULL DEFAULT 0, UNIQUE (stream, key));
CREATE INDEX inputs_waiting ON inputs (stream, n) WHERE acked = 0;
CREATE INDEX inputs_blob ON inputs (blob) WHERE blob IS NOT NULL;
CREATE TABLE results (key {text} PRIMARY KEY, at BIGINT NOT NULL, body TEXT, blob {text});
CREATE INDEX results_blob ON results (blob) WHERE blob IS NOT NULL;
";

/// What each later format adds, from 2 on. A new journal is one of format 1 with all of this done to it, so
/// that old journals and new ones end up the same.
const UPGRADES: [&str; FORMAT as usize - 1] = ["
ALTER TABLE streams ADD COLUMN state TEXT;
UPDATE meta SET value = 2 WHERE name = 'format';
"];

/// The tables, in one database's words.
pub(crate) fn schema(text: &str, serial: &str) -> String {
    SCHEMA.replace("{text}", text).replace("{serial}", serial) + &upgrade(1)
}

/// What turns the tables of an older format into ours.
pub(crate) fn upgrade(from: u32) -> String {
    UPGRADES.iter().skip(from.saturating_sub(1) as usize).copied().collect()
}

/// A number on its way into a row. Databases know no unsigned numbers; ours are far below the border.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number on its way out of a row.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
