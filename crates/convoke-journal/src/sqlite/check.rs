//! Looks whether a journal's file is whole: its log, its pages, and what its rows promise to each other. Only
//! reads, takes no turn, and says when it did not get through in time.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;

use super::file::beside;
use crate::text::digest;

/// What each row promises, and how many do not keep it. Events are numbered without gaps up to the number in
/// their stream's row, and are JSON; what is kept elsewhere is there.
const PROMISES: [(&str, &str); 5] = [
    (
        "streams whose events are not all there",
        "SELECT count(*) FROM streams s WHERE s.seq <> (SELECT count(*) FROM events e WHERE e.stream = \
            s.stream)
            OR s.seq <> (SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.stream = s.stream)",
    ),
    (
        "events of streams that are not there",
        "SELECT count(*) FROM events e WHERE NOT EXISTS (SELECT 1 FROM streams s WHERE s.stream = e.stream)",
    ),
    (
        "events that are no JSON",
        "SELECT count(*) FROM events WHERE event IS NOT NULL AND NOT json_valid(event)",
    ),
    (
        "events without a text",
        "SELECT count(*) FROM events e WHERE e.event IS NULL
            AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest = e.blob)",
    ),
    (
        "inputs without a text",
        "SELECT count(*) FROM inputs i WHERE i.acked = 0 AND i.body IS NULL
            AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest = i.blob)",
    ),
];

/// What a look at the whole journal came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// All of it was looked at.
    Whole,
    /// It took too long; what was looked at is whole.
    InPart,
}

/// Looks at the pages and the rows of an open journal, for so long at most. `Err` says what is damaged.
pub(super) fn rows(connection: &Connection, limit: Duration) -> Result<Checked, String> {
    let handle = connection.get_interrupt_handle();
    let (done, waiting) = mpsc::channel::<()>();
    let timer = std::thread::spawn(move || {
        let late = waiting.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            handle.interrupt();
        }
        late
    });
    let found = look(connection);
    drop(done);
    let late = timer.join().unwrap_or(false);
    match found {
        Err(_) if late => Ok(Checked::InPart),
        Err(error) => Err(error.to_string()),
        Ok(Some(damage)) => Err(damage),
        Ok(None) => Ok(Checked::Whole),
    }
}

fn look(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let pages: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if pages != "ok" {
        return Ok(Some(pages));
    }
    for (what, query) in PROMISES {
        let count: i64 = connection.query_row(query, [], |row| row.get(0))?;
        if count > 0 {
            return Ok(Some(format!("{count} {what}")));
        }
    }
    // A text may hold what is no UTF-8 and be JSON to SQLite all the same; nothing could read it.
    let mut events = connection.prepare("SELECT event FROM events WHERE event IS NOT NULL")?;
    let mut rows = events.query([])?;
    while let Some(row) = rows.next()? {
        if std::str::from_utf8(row.get_ref(0)?.as_bytes()?).is_err() {
            return Ok(Some("an event is no text".to_owned()));
        }
    }
    let mut blobs = connection.prepare("SELECT digest, body FROM blobs")?;
    let mut rows = blobs.query([])?;
    while let Some(row) = rows.next()? {
        let named: String = row.get(0)?;
        let body: String = row.get(1)?;
        if digest(&body) != named {
            return Ok(Some("a long text is not the one that was written".to_owned()));
        }
    }
    Ok(None)
}

const HEADER: usize = 32;
const FRAME: usize = 24;

/// Looks whether the log of a file is damaged before its end. SQLite takes a damaged frame for the end of the
/// log, which is right after a crash; if a transaction was committed behind it, that one is lost without a
/// word.
pub(super) fn log(database: &Path) -> Result<(), String> {
    let mut before = None;
    // A frame that is being written while this reads looks damaged; the next look finds it whole, or another
    // one.
    for _ in 0..3 {
        let log = match fs::read(beside(database, "-wal")) {
            Ok(log) => log,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let damage = damage(&log);
        if damage.is_none() || (before.is_some() && before != damage) {
            return Ok(());
        }
        before = damage;
        std::thread::sleep(Duration::from_millis(100));
    }
    before.map_or(Ok(()), |at| {
        Err(format!("its write-ahead log is damaged at byte {at}, and what was committed after is lost"))
    })
}

/// Where a log is damaged with something committed behind it.
fn damage(log: &[u8]) -> Option<usize> {
    if log.is_empty() {
        return None;
    }
    let header = log.get(..HEADER)?;
    let number = |bytes: &[u8], at: usize| {
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let magic = number(header, 0);
    let big = magic & 1 == 1;
    let page = number(header, 8) as usize;
    let sum = checksum(big, (0, 0), &header[..24]);
    let sane = magic & !1 == 0x377f_0682 && page.is_power_of_two() && (512..=65_536).contains(&page);
    if !sane || sum != (number(header, 24), number(header, 28)) {
        return Some(0);
    }
    let salt = &header[16..24];
    let mut sum = sum;
    let mut broken = None;
    for (index, frame) in log[HEADER..].chunks_exact(FRAME + page).enumerate() {
        // Frames of an earlier use of the log are left behind its end.
        let current = &frame[8..16] == salt;
        if broken.is_none() {
            let next = checksum(big, checksum(big, sum, &frame[..8]), &frame[FRAME..]);
            if current && next == (number(frame, 16), number(frame, 20)) {
                sum = next;
                continue;
            }
            broken = Some(HEADER + index * (FRAME + page));
        }
        let commits = number(frame, 4) != 0;
        if current && commits && broken != Some(HEADER + index * (FRAME + page)) {
            return broken;
        }
    }
    None
}

/// SQLite's checksum of a log.
fn checksum(big: bool, from: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let four = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    };
    bytes.chunks_exact(8).fold(from, |(first, second), eight| {
        let first = first.wrapping_add(word(&eight[..4])).wrapping_add(second);
        (first, second.wrapping_add(word(&eight[4..])).wrapping_add(first))
    })
}
