//! The file, open for writing: one batch in one turn and one transaction, past processes that are stopped,
//! and on to the next generation of the file when there is one.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::committer::Job;
use super::file::{self, beside};
use super::generation::{Fate, Generation, JournalFiles};
use super::ops::Fault;
use super::over::{self, Proof};
use super::turn::{TURN, WriteTurns};
use super::wait::{PATIENCE, Wait, Waits};
use crate::{Error, Process, locks};

/// How many operations share a transaction at most, so that a turn stays short for the other processes.
const BATCH: usize = 256;

/// How long SQLite waits for its write lock before the writer looks which process has it.
const LOOK: Duration = Duration::from_millis(100);
/// How long a program that is none of ours may keep the write lock, if it runs, and if it is stopped or
/// cannot be seen.
const FOREIGN: Duration = Duration::from_secs(10);
const FOREIGN_STOPPED: Duration = Duration::from_secs(60);
/// How often a commit whose generation is being left looks what came of that.
const UNDECIDED: Duration = Duration::from_millis(5);

/// The byte of the log's index that the writing process has locked.
const WRITE_LOCK: u64 = 120;

/// Counts the batches, so that a copy shows whether it holds a given one.
const COUNT: &str = "INSERT INTO meta (name, value) VALUES ('batch', 1)
    ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value";

/// The file, open for writing.
pub(super) struct Writer {
    named: String,
    place: JournalFiles,
    me: Process,
    waits: Waits,
    turns: WriteTurns,
    generation: Generation,
    connection: Connection,
}

/// What an attempt at a batch came to.
enum Attempt {
    Done(Result<(), Error>),
    /// It did not count, and is to be made anew.
    Again,
}

/// A connection to the generation that is the journal now, which has read from it.
pub(super) fn connect(
    place: &JournalFiles,
    named: &str,
    set_up: impl Fn(&Connection) -> rusqlite::Result<()>,
) -> Result<(Generation, Connection), Error> {
    loop {
        let generation =
            place.current().map_err(|e| unreadable(named, &e))?.ok_or_else(|| vanished(named))?;
        let open = || {
            let connection = file::connect(&generation.path)?;
            set_up(&connection)?;
            // SQLite opens the log with the first read. If the generation is the current one even after that,
            // no process has begun to remove its files before, and this connection has the true ones.
            connection.query_row("SELECT count(*) FROM meta", [], |_| Ok(()))?;
            Ok(connection)
        };
        let opened = open();
        match place.fate(&generation).map_err(|e| unreadable(named, &e))? {
            Fate::Current => {
                let connection = opened.map_err(|error: rusqlite::Error| Fault::Sql(error).reading(named))?;
                return Ok((generation, connection));
            }
            Fate::Left => {}
            Fate::Gone => return Err(vanished(named)),
        }
    }
}

pub(super) fn vanished(named: &str) -> Error {
    Error::Vanished { place: named.to_owned() }
}

pub(super) fn unreadable(named: &str, error: &io::Error) -> Error {
    Error::Unavailable { place: named.to_owned(), reason: error.to_string() }
}

pub(super) fn undone(named: &str) -> Error {
    let reason = "another write of the same batch failed and the database undid them all".to_owned();
    Error::CannotWrite { place: named.to_owned(), reason }
}

impl Writer {
    pub(super) fn open(path: &Path, me: Process, waits: Waits) -> Result<Self, Error> {
        let named = path.display().to_string();
        let place = JournalFiles::find(path).map_err(|e| unreadable(&named, &e))?;
        let (generation, connection) = Self::connect(&place, &named)?;
        let refused = |e: io::Error| Error::CannotWrite { place: named.clone(), reason: e.to_string() };
        let turns = WriteTurns::open(place.base()).map_err(refused)?;
        Ok(Self { named, place, me, waits, turns, generation, connection })
    }

    fn connect(place: &JournalFiles, named: &str) -> Result<(Generation, Connection), Error> {
        let set_up = |connection: &Connection| {
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
        };
        let (generation, connection) = connect(place, named, set_up)?;
        connection.busy_timeout(LOOK).map_err(|error| Fault::Sql(error).writing(named))?;
        Ok((generation, connection))
    }

    /// Does one batch in one turn: the first job and all that have arrived since.
    pub(super) fn batch(&mut self, first: Box<dyn Job>, more: &Receiver<Box<dyn Job>>) {
        let mut jobs = vec![first];
        let outcome = self.in_turn(&mut jobs, more);
        for job in jobs {
            job.answer(outcome.clone());
        }
    }

    fn in_turn(&mut self, jobs: &mut Vec<Box<dyn Job>>, more: &Receiver<Box<dyn Job>>) -> Result<(), Error> {
        let waits = self.waits.clone();
        let mut wait = waits.begin();
        let named = self.named.clone();
        let refused = |e: io::Error| Error::CannotWrite { place: named.clone(), reason: e.to_string() };
        let mut _turn = self.turns.take(&mut wait).map_err(refused)?;
        loop {
            match self.attempt(jobs, more, &mut wait)? {
                Attempt::Done(outcome) => return outcome,
                Attempt::Again => jobs.iter_mut().for_each(|job| job.forget()),
            }
            // A process that was stopped and left behind has lost its turn; without one
            // it would compete with all that take turns.
            if !self.turns.is_current().map_err(refused)? {
                _turn = self.turns.take(&mut wait).map_err(refused)?;
            }
        }
    }

    fn attempt(
        &mut self,
        jobs: &mut Vec<Box<dyn Job>>,
        more: &Receiver<Box<dyn Job>>,
        wait: &mut Wait<'_>,
    ) -> Result<Attempt, Error> {
        match self.fate()? {
            Fate::Current => {}
            Fate::Left => self.follow()?,
            Fate::Gone => return Err(vanished(&self.named)),
        }
        if let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            if is_busy(&error) {
                self.get_past(wait)?;
                return Ok(Attempt::Again);
            }
            return self.unless_left(Fault::Sql(error).writing(&self.named));
        }
        let committed = self.transact(jobs, more);
        if committed.is_err() && !self.connection.is_autocommit() {
            // If even this fails, the next BEGIN says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        match committed {
            Ok(number) if self.counts(number, wait)? => Ok(Attempt::Done(Ok(()))),
            Ok(_) => Ok(Attempt::Again),
            Err(error) => self.unless_left(error),
        }
    }

    /// What went wrong on a file that was left behind says nothing about the journal.
    fn unless_left(&self, error: Error) -> Result<Attempt, Error> {
        match self.fate()? {
            Fate::Left => Ok(Attempt::Again),
            Fate::Current => Ok(Attempt::Done(Err(error))),
            Fate::Gone => Err(vanished(&self.named)),
        }
    }

    /// Does the jobs in the transaction that has begun and commits it. Returns the number of the batch.
    fn transact(&self, jobs: &mut Vec<Box<dyn Job>>, more: &Receiver<Box<dyn Job>>) -> Result<i64, Error> {
        let mut done = 0;
        while done < jobs.len() {
            // Some errors (a full disk) make SQLite undo the whole transaction. What comes after must not be
            // done outside of one, and what came before is undone too.
            let open = !self.connection.is_autocommit();
            jobs[done].attempt(if open { Ok(&self.connection) } else { Err(undone(&self.named)) });
            done += 1;
            if done == jobs.len() && done < BATCH {
                jobs.extend(more.try_recv());
            }
        }
        if self.connection.is_autocommit() {
            return Err(undone(&self.named));
        }
        let commit = || {
            let number = self.connection.prepare_cached(COUNT)?.query_row([], |row| row.get(0))?;
            self.connection.execute_batch("COMMIT").map(|()| number)
        };
        commit().map_err(|error| Fault::Sql(error).writing(&self.named))
    }

    /// Whether a batch that was committed is in the journal. It is not if its file was left behind before,
    /// and then this has gone on to the next one.
    fn counts(&mut self, number: i64, wait: &mut Wait<'_>) -> Result<bool, Error> {
        let began = Instant::now();
        loop {
            // In this order: the note of a copy is removed after the copy has its name.
            let undecided = over::is_being_left(&self.place, &self.generation, &self.me);
            let undecided = undecided.map_err(|e| unreadable(&self.named, &e))?;
            match self.fate()? {
                Fate::Current if !undecided => return Ok(true),
                Fate::Current => {}
                Fate::Gone => return Err(vanished(&self.named)),
                Fate::Left => {
                    let row = over::row(self.generation.number + 1);
                    self.follow()?;
                    return self.last_of(&row).map(|last| number <= last);
                }
            }
            if began.elapsed() >= PATIENCE {
                self.decide(wait)?;
            }
            std::thread::sleep(UNDECIDED);
        }
    }

    /// The number of the last batch that is in a copy.
    fn last_of(&self, row: &str) -> Result<i64, Error> {
        let query = "SELECT value FROM meta WHERE name = $1";
        let last = self.connection.query_row(query, [row], |row| row.get(0));
        last.map_err(|error| Fault::Sql(error).reading(&self.named))
    }

    /// Ends the wait for a process that has left a note that it makes the next generation and does not: makes
    /// it here. One of the two copies gets the name; what is in that one is the journal.
    fn decide(&mut self, wait: &mut Wait<'_>) -> Result<(), Error> {
        match self.connection.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => {
                let made = over::take_over(&self.place, &self.generation, &self.me, &Proof::Mine);
                let _ = self.connection.execute_batch("ROLLBACK");
                made.map_err(|e| Error::CannotWrite { place: self.named.clone(), reason: e.to_string() })
            }
            Err(error) if is_busy(&error) => self.get_past(wait),
            Err(error) => Err(Fault::Sql(error).writing(&self.named)),
        }
    }

    /// Another process has SQLite's write lock, with or without a turn. Waits for it, and goes on without it
    /// if it is one of ours and provably stopped.
    fn get_past(&mut self, wait: &mut Wait<'_>) -> Result<(), Error> {
        let index = beside(&self.generation.path, "-shm");
        let holder = || locks::byte_holder(fs::metadata(&index).ok()?.ino(), WRITE_LOCK);
        let pid = holder();
        let ours = pid.is_some_and(|pid| locks::has_open(pid, &beside(self.place.base(), TURN)));
        let still = pid.and_then(|pid| wait.standstill(pid));
        wait.tell(pid);
        if let (true, Some(still)) = (ours, still) {
            let proof = Proof::Stopped(still, &holder);
            // What prevents it now (it went on, the disk is full) may be over at the next look.
            let _ = over::take_over(&self.place, &self.generation, &self.me, &proof);
            return Ok(());
        }
        let running = pid.is_some_and(|pid| locks::StoppedProcess::of(pid).is_none());
        let limit = if running { FOREIGN } else { FOREIGN_STOPPED };
        if ours || wait.lasted() < limit {
            return Ok(());
        }
        let who = locks::AwaitedProcess::on(pid, wait.lasted());
        let reason = format!("another program keeps it locked ({who}); end it or let it go on, then resume");
        Err(Error::Unavailable { place: self.named.clone(), reason })
    }

    fn fate(&self) -> Result<Fate, Error> {
        self.place.fate(&self.generation).map_err(|e| unreadable(&self.named, &e))
    }

    /// Goes on with the generation that is the journal now.
    fn follow(&mut self) -> Result<(), Error> {
        (self.generation, self.connection) = Self::connect(&self.place, &self.named)?;
        Ok(())
    }
}

/// Whether another process is in the way. One that is stopped while it changes the head of the
/// log's index, which is there twice, keeps the others from reading it; SQLite gives up after
/// ten seconds and calls it a failed protocol.
fn is_busy(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}
