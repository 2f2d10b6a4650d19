//! The journal's file: looks at what is there with plain reads before SQLite may touch it, and makes new
//! journals whole or not at all. Never changes a file it refuses, and leaves nothing beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::generation::JournalFiles;
use super::ops::{Fault, SCHEMA_SQLITE};
use super::over;
use crate::{Error, FORMAT, Process, Refusal};

/// `Conv` in the header says that a SQLite file is ours.
const APPLICATION: u32 = 0x436f_6e76;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER: usize = 100;

/// Makes sure that a journal we know is at `path`: finds it, or creates it. Returns its place, and its
/// format, which may be an older one than ours and is then to be upgraded.
pub(super) fn prepare(path: &Path, process: &Process) -> Result<(JournalFiles, u32), Error> {
    let place = path.display().to_string();
    if !has_later(path)? {
        if examine(path, &place)?.is_none() {
            create(path, process)?;
        }
    } else {
        mend(path, process)?;
    }
    let unreadable =
        |error: io::Error| Error::Unavailable { place: place.clone(), reason: error.to_string() };
    let nowhere = || {
        let reason = "it is a link to nowhere; name a file".to_owned();
        Error::BadLocation { given: place.clone(), reason }
    };
    let found = match JournalFiles::find(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(nowhere()),
        Err(error) => return Err(unreadable(error)),
    };
    let current = found.current().map_err(unreadable)?.ok_or_else(nowhere)?;
    let format = examine(&current.path, &place)?.ok_or_else(nowhere)?;
    Ok((found, format))
}

/// Whether there are later generations of the journal at `path`.
fn has_later(path: &Path) -> Result<bool, Error> {
    match JournalFiles::find(path).and_then(|place| place.later()) {
        Ok(later) => Ok(!later.is_empty()),
        // There is no directory yet, or no way to look into it, which the next look says.
        Err(_) => Ok(false),
    }
}

/// Makes the name of a journal lead to its last generation, if it should and does not: a process that made
/// that one may have been killed before. A name that was removed, or given to another file, is a person's
/// doing and is refused.
fn mend(path: &Path, process: &Process) -> Result<(), Error> {
    let place = path.display().to_string();
    let unreadable =
        |error: io::Error| Error::Unavailable { place: place.clone(), reason: error.to_string() };
    let found = JournalFiles::find(path).map_err(unreadable)?;
    let Some(last) = found.later().map_err(unreadable)?.last().copied() else { return Ok(()) };
    let file = found.file(last);
    let refuse =
        |found: String| Err(Error::Refused { place: place.clone(), refusal: Refusal::Torn { found } });
    match fs::symlink_metadata(found.base()) {
        Ok(base) if base.is_symlink() => {
            if fs::read_link(found.base()).ok() == found.target(last).ok() {
                return Ok(());
            }
        }
        Ok(base) => {
            let query = "SELECT value FROM meta WHERE name = $1";
            let of =
                looker(&file).and_then(|rows| rows.query_row(query, [over::OF], |row| row.get::<_, i64>(0)));
            if last > 1 || of.ok() != Some(base.ino().cast_signed()) {
                return refuse(format!(
                    "it is another file than the one that {} was made from",
                    file.display()
                ));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return refuse(format!("the file is missing, but {} is there", file.display()));
        }
        Err(error) => return Err(unreadable(error)),
    }
    let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    // It is convenient for other programs and nothing depends on it.
    let _ = found.point_to(last, &beside(found.base(), &format!(".new-{}-{attempt}", process.id)));
    Ok(())
}

/// Copies the log into the file as far as it can be done now, so that the file's header says its format: that
/// is where an older version looks before it refuses.
pub(super) fn settle(path: &Path) -> rusqlite::Result<()> {
    connect(path)?.execute_batch("PRAGMA wal_checkpoint(PASSIVE)")
}

/// A connection to an existing file, with what every connection needs.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// The path of a companion file: `journal.db` and `-wal` make `journal.db-wal`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The format of the journal in the file at `path`, which a person knows as `place`; `None` if nothing is
/// there.
fn examine(path: &Path, place: &str) -> Result<Option<u32>, Error> {
    let place = place.to_owned();
    let unreadable =
        |error: io::Error| Error::Unavailable { place: place.clone(), reason: error.to_string() };
    let refuse = |refusal| Err(Error::Refused { place: place.clone(), refusal });
    let looked = match look(path) {
        Ok(looked) => looked,
        Err(error) if error.kind() == ErrorKind::NotFound => return nothing(path, place),
        Err(error) => return Err(unreadable(error)),
    };
    let Some((meta, header)) = looked else {
        return Err(Error::BadLocation { given: place, reason: "it is not a file; name a file".to_owned() });
    };
    let known = header.len().min(MAGIC.len());
    if header[..known] != MAGIC[..known] {
        return refuse(Refusal::NotADatabase);
    }
    if header.len() < HEADER {
        return refuse(Refusal::Torn { found: format!("only {} bytes are left", meta.len()) });
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if number(68) != APPLICATION {
        let found = format!("a SQLite database with application id {:#010x}", number(68));
        return refuse(Refusal::Foreign { found });
    }
    match number(60) {
        1..=FORMAT => {}
        0 => return refuse(Refusal::Torn { found: "its format number is missing".to_owned() }),
        found => return refuse(Refusal::Newer { found, known: FORMAT }),
    }
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    // The page count in the header counts only if it was written together with the change counter.
    let pages = if number(24) == number(92) { u64::from(number(28)) } else { 0 };
    if page < 512 || meta.len() % page != 0 || meta.len() < pages * page {
        let found = format!("{} bytes are left of {}", meta.len(), pages * page);
        // While a write-ahead log is being copied into the file, or after a crash amid that, the file may be
        // shorter than it says; the log has the rest. Without a log, or if that does not add up, it is torn.
        if !has_log(path) || !adds_up(path) {
            return refuse(Refusal::Torn { found });
        }
    }
    // The log may hold a later format than the file.
    match if has_log(path) { logged_format(path) } else { Ok(number(60)) } {
        Ok(found) if found > FORMAT => refuse(Refusal::Newer { found, known: FORMAT }),
        Ok(found) => Ok(Some(found)),
        Err(error) => Err(Fault::Sql(error).reading(&place)),
    }
}

fn logged_format(path: &Path) -> rusqlite::Result<u32> {
    let connection = looker(path)?;
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// A connection for looking at a file that may be about to be refused. Closing the last connection would copy
/// the log into it; this one does not.
fn looker(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// The files this process has looked into, by device and inode, each open until the process ends.
///
/// SQLite's locks are POSIX locks, which belong to the process: closing any descriptor of a file gives up all
/// of them, also those of a connection that another journal of this process has to the same file. A program
/// that then closes the file elsewhere takes itself for the last one and removes the log we go on writing to
/// (the SQLite we bring looks twice before it does, older ones do not). So a descriptor that is not SQLite's
/// is never closed. While it is open its inode cannot become another file's, so the key stays true.
static LOOKED_INTO: Mutex<BTreeMap<(u64, u64), &'static File>> = Mutex::new(BTreeMap::new());

/// What the file system says about a file, and its first bytes; `None` if it is something else than a file.
fn look(path: &Path) -> io::Result<Option<(fs::Metadata, Vec<u8>)>> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Ok(None);
    }
    let file = looked_into(path)?;
    let mut header = vec![0; HEADER];
    let mut length = 0;
    while length < HEADER {
        match file.read_at(&mut header[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    header.truncate(length);
    Ok(Some((file.metadata()?, header)))
}

/// A file, open for as long as the process lives.
pub(super) fn looked_into(path: &Path) -> io::Result<&'static File> {
    let found = fs::metadata(path)?;
    let mut looked_into = LOOKED_INTO.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = looked_into.get(&(found.dev(), found.ino())) {
        return Ok(file);
    }
    // Leaked before anything else: the path may by now name a file that is in the map, and the second
    // descriptor must not be closed either.
    let file: &'static File = Box::leak(Box::new(File::open(path)?));
    let opened = file.metadata()?;
    Ok(looked_into.entry((opened.dev(), opened.ino())).or_insert(file))
}

/// A missing file is a place for a new journal, unless the log of a lost one lies there.
fn nothing(path: &Path, place: String) -> Result<Option<u32>, Error> {
    if has_log(path) {
        let found = "the file is missing, but its write-ahead log is there".to_owned();
        return Err(Error::Refused { place, refusal: Refusal::Torn { found } });
    }
    Ok(None)
}

fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() > 0)
}

fn adds_up(path: &Path) -> bool {
    let check = looker(path)
        .and_then(|rows| rows.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)));
    check.is_ok_and(|answer| answer == "ok")
}

/// How often this process has begun to make a journal.
static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// Builds the journal under a name of its own and links it into place, so that no other process ever sees
/// half of it. If another process was first, its journal stays and ours is thrown away.
fn create(path: &Path, process: &Process) -> Result<(), Error> {
    let failed = |reason: String| Error::CannotWrite { place: path.display().to_string(), reason };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|e| failed(e.to_string()))?;
    // Each attempt has a draft of its own: two that shared one would truncate what the other has linked into
    // place.
    let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    let draft = beside(path, &format!(".new-{}-{attempt}", process.id));
    let made = build(&draft).and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.to_string()),
        _ => File::open(parent).and_then(|dir| dir.sync_all()).map_err(|e| e.to_string()),
    });
    for suffix in ["", "-wal", "-shm"] {
        // The companions are usually gone already; a leftover draft is harmless.
        let _ = fs::remove_file(beside(&draft, suffix));
    }
    made.map_err(failed)
}

fn build(draft: &Path) -> Result<(), String> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(draft)
        .map_err(|e| e.to_string())?;
    let fill = || {
        let connection = connect(draft)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        let numbers = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT};");
        let schema = SCHEMA_SQLITE.as_str();
        connection.execute_batch(&format!("BEGIN; {numbers} {schema} COMMIT;"))?;
        connection.close().map_err(|(_, error)| error)
    };
    fill().map_err(|error: rusqlite::Error| error.to_string())
}
