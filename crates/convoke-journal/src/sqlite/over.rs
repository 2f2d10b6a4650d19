//! Leaves a file behind whose write lock a stopped process holds, and goes on with a copy of it: the next
//! generation.
//!
//! The order is what makes it safe. A note of it is left first; then the holder is seen to be stopped, the
//! file and its log are copied, and the holder is seen not to have run meanwhile; then the copy gets its
//! name, which only one can have. A writer looks for such a note after its commit, so either its commit was
//! there to be copied, or it knows that it has to ask what became of it.
//! `docs/internals/decisions/0003-sqlite-turns.md` has the whole argument.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::{self, beside};
use super::generation::{Generation, JournalFiles};
use crate::Process;
use crate::locks::StoppedProcess;

/// The number of the last batch is in the row `batch` of the table `meta`; that of the last one that a
/// generation was made with is in the row of this name.
pub(super) fn row(number: u64) -> String {
    format!("over:{number}")
}

/// The row of `meta` with the inode of the file that a generation was copied from.
pub(super) const OF: &str = "over:of";

/// Why no process writes to the file while it is copied.
pub(super) enum Proof<'a> {
    /// The caller has the write lock.
    Mine,
    /// Another process has it and is stopped. The function looks which process has the lock.
    Stopped(StoppedProcess, &'a dyn Fn() -> Option<u32>),
}

impl Proof<'_> {
    fn holds(&self) -> bool {
        match self {
            Self::Mine => true,
            Self::Stopped(still, holder) => {
                holder() == Some(still.pid) && StoppedProcess::of(still.pid).as_ref() == Some(still)
            }
        }
    }
}

/// The steps, so that tests can end a process after each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Told,
    Copied,
    Whole,
    Named,
    Pointed,
}

/// How many intents this process has left.
static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// A note that a process is making the next generation. Removed when it is dropped.
struct Intent {
    file: PathBuf,
    draft: PathBuf,
}

impl Intent {
    fn leave(place: &JournalFiles, from: &Generation, me: &Process) -> io::Result<Self> {
        let workshop = place.workshop();
        let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{attempt}", from.number, me.id);
        let file = workshop.join(&name);
        let draft = workshop.join(name + ".db");
        for _ in 0..100 {
            DirBuilder::new().recursive(true).mode(0o700).create(&workshop)?;
            let told = fs::write(&draft, who(me)).and_then(|()| fs::rename(&draft, &file));
            match told {
                Ok(()) => return Ok(Self { file, draft }),
                // Another process has removed the empty directory at this moment.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("its directory does not stay"))
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        forget(&self.file);
    }
}

/// Removes an intent with its draft. The intent goes last, so that one whose process is gone is found again.
fn forget(intent: &Path) {
    let draft = beside(intent, ".db");
    for name in
        [beside(&draft, "-wal"), beside(&draft, "-shm"), beside(&draft, "-link"), draft, intent.to_owned()]
    {
        // What cannot be removed is found again by the next process.
        let _ = fs::remove_file(name);
    }
    if let Some(workshop) = intent.parent() {
        // Fails while anything else is in it, as it should.
        let _ = fs::remove_dir(workshop);
    }
}

/// Whether a process may yet give a copy of this generation its name. The note of a process
/// that is gone is removed, because it never will; so is a note about an earlier
/// generation, whose next one has its name already.
pub(super) fn is_being_left(place: &JournalFiles, from: &Generation, me: &Process) -> io::Result<bool> {
    let entries = match fs::read_dir(place.workshop()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut found = false;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.split('-').next().and_then(|number| number.parse::<u64>().ok()) else {
            continue;
        };
        if name.contains(".db") {
            continue;
        }
        // A note that cannot be read was removed at this moment; the next look says so.
        let maker = fs::read_to_string(entry.path()).ok().and_then(|word| parse(&word));
        // The journal cannot be used from two machines, so another boot is an earlier one.
        let earlier = |boot: &str| !boot.is_empty() && !me.boot.is_empty() && boot != me.boot;
        let gone = maker.is_some_and(|maker| earlier(&maker.boot) || maker.is_gone(me));
        if gone || number < from.number {
            forget(&entry.path());
        } else {
            found |= number == from.number;
        }
    }
    Ok(found)
}

fn who(me: &Process) -> String {
    format!("{}\n{}\n{}\n{}\n", me.boot, me.pid_namespace, me.pid, me.start_time)
}

fn parse(word: &str) -> Option<Process> {
    let mut lines = word.strip_suffix('\n')?.split('\n');
    let boot = lines.next()?.to_owned();
    let pid_namespace = lines.next()?.to_owned();
    let pid = lines.next()?.parse().ok()?;
    let start_time = lines.next()?.parse().ok()?;
    Some(Process { id: String::new(), boot, pid_namespace, pid, start_time })
}

/// Makes the generation after `from`, if no process writes to that for as long as it takes. Afterwards there
/// is a later generation, made by this process or by another one, or there is an error and nothing has
/// changed.
pub(super) fn take_over(
    place: &JournalFiles,
    from: &Generation,
    me: &Process,
    proof: &Proof<'_>,
) -> io::Result<()> {
    take_over_by_steps(place, from, me, proof, |_| Ok(()))
}

fn take_over_by_steps(
    place: &JournalFiles,
    from: &Generation,
    me: &Process,
    proof: &Proof<'_>,
    after: impl Fn(Step) -> io::Result<()>,
) -> io::Result<()> {
    let moved = || io::Error::other("the process that holds it went on");
    let intent = Intent::leave(place, from, me)?;
    after(Step::Told)?;
    if !proof.holds() {
        return Err(moved());
    }
    // The file first: a page that is being copied into it from the log at this moment is in the log too, and
    // stays there for as long as the write lock is held.
    copy(file::looked_into(&from.path)?, &intent.draft)?;
    match File::open(beside(&from.path, "-wal")) {
        // SQLite has no lock on this file, so closing it gives none up.
        Ok(log) => copy(&log, &beside(&intent.draft, "-wal"))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    after(Step::Copied)?;
    if !proof.holds() {
        return Err(moved());
    }
    finish(&intent.draft, from).map_err(io::Error::other)?;
    File::open(&intent.draft)?.sync_all()?;
    after(Step::Whole)?;
    match fs::hard_link(&intent.draft, place.file(from.number + 1)) {
        // Another process was first: its copy is as good, and ours is thrown away.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        named => named?,
    }
    for dir in [place.workshop().as_path(), place.base().parent().unwrap_or(Path::new("/"))] {
        File::open(dir)?.sync_all()?;
    }
    after(Step::Named)?;
    // From here on it is done; a name that leads to the old file is mended by the next process that opens the
    // journal.
    let _ = place.point_to(from.number + 1, &beside(&intent.draft, "-link"));
    after(Step::Pointed)?;
    drop(intent);
    Ok(())
}

/// Makes one whole file of a copy and its log, as SQLite does after a crash: what was committed counts, and
/// nothing else.
fn finish(draft: &Path, from: &Generation) -> rusqlite::Result<()> {
    let connection = file::connect(draft)?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
    let last = "INSERT OR REPLACE INTO meta (name, value)
        SELECT $1, COALESCE((SELECT value FROM meta WHERE name = 'batch'), 0)";
    connection.execute(last, [row(from.number + 1)])?;
    let of = "INSERT OR REPLACE INTO meta (name, value) VALUES ($1, $2)";
    connection.execute(of, rusqlite::params![OF, from.inode().cast_signed()])?;
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy != 0 {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.close().map_err(|(_, error)| error)
}

fn copy(from: &File, to: &Path) -> io::Result<()> {
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        match from.read_at(&mut buffer, at) {
            Ok(0) => return Ok(()),
            Ok(more) => {
                to.write_all(&buffer[..more])?;
                at += more as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[path = "over_tests.rs"]
mod tests;
