//! The committer: the one thread that writes to a SQLite file, and the only holder of a write connection in this
//! process. Many operations that arrive together share one transaction and one fsync.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::file;
use super::ops::Fault;
use super::turn::Turnstile;
use crate::Error;

/// How many operations share a transaction at most, so that a turn stays short for the other processes.
const BATCH: usize = 256;

/// An operation: done on the connection (or refused with an error), it leaves the sending of its reply for after the
/// commit.
type Job = Box<dyn FnOnce(Result<&Connection, Error>) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Result<(), Error>)>;

/// The handle of the committer thread.
pub(super) struct Committer {
    place: String,
    queue: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    /// Starts the thread. The file is opened for writing at the first operation, so that readers never need to.
    pub(super) fn start(path: PathBuf) -> Result<Self, Error> {
        let place = path.display().to_string();
        let (queue, jobs) = channel();
        let unavailable = |e: std::io::Error| Error::Unavailable { place: place.clone(), reason: e.to_string() };
        let name = "journal-committer".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || run(&path, &jobs)).map_err(unavailable)?;
        Ok(Self { place, queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    /// Does `work` in the next transaction and answers when that is durable. Once this future was polled, dropping it
    /// does not take the work back.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, answer) = oneshot::channel();
        let place = self.place.clone();
        let job: Job = Box::new(move |connection| {
            let done = connection.and_then(|c| apart(c, work).map_err(|fault| fault.writing(&place)));
            // Nobody may be waiting any more; the work is done all the same.
            Box::new(move |commit| drop(sender.send(done.and_then(|value| commit.map(|()| value)))))
        });
        match &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            // A thread that has ended drops what it is sent, and with it the sender of the answer.
            Some(queue) => drop(queue.send(job)),
            None => drop(job),
        }
        let closed = || Error::Unavailable { place: self.place.clone(), reason: "it is closed".to_owned() };
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Lets the thread finish what is queued, and waits for its end. Blocks.
    pub(super) fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread was already answered by closed replies.
            let _ = thread.join();
        }
    }
}

/// Does `work` so that its failure undoes its own changes and nobody else's.
pub(super) fn apart<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    connection.prepare_cached("SAVEPOINT apart")?.execute([])?;
    let done = work(connection);
    if done.is_err() && !connection.is_autocommit() {
        connection.prepare_cached("ROLLBACK TO apart")?.execute([])?;
    }
    if !connection.is_autocommit() {
        connection.prepare_cached("RELEASE apart")?.execute([])?;
    }
    done
}

/// The file, open for writing.
struct Writer {
    connection: Connection,
    turns: Turnstile,
}

impl Writer {
    fn open(path: &std::path::Path) -> Result<Self, Error> {
        let refused =
            |e: std::io::Error| Error::CannotWrite { place: path.display().to_string(), reason: e.to_string() };
        let turns = Turnstile::open(path).map_err(refused)?;
        let open = || {
            let connection = file::connect(path)?;
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
            Ok(connection)
        };
        let connection = open().map_err(|e| Fault::Sql(e).writing(&path.display().to_string()))?;
        Ok(Self { connection, turns })
    }

    /// Does one batch in one turn: the first job and all that have arrived since.
    fn batch(&self, first: Job, jobs: &Receiver<Job>, place: &str) {
        let turn = match self.turns.take() {
            Ok(turn) => turn,
            Err(e) => return refuse([first], &Error::CannotWrite { place: place.to_owned(), reason: e.to_string() }),
        };
        let jobs = std::iter::once(first).chain(jobs.try_iter().take(BATCH - 1));
        if let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            return refuse(jobs, &Fault::Sql(error).writing(place));
        }
        let mut replies = Vec::new();
        for job in jobs {
            // Some errors (a full disk) make SQLite undo the whole transaction. What comes after must not be done
            // outside of one, and what came before is undone too.
            let open = !self.connection.is_autocommit();
            replies.push(job(if open { Ok(&self.connection) } else { Err(undone(place)) }));
        }
        let outcome = if self.connection.is_autocommit() {
            Err(undone(place))
        } else {
            self.connection.execute_batch("COMMIT").map_err(|error| Fault::Sql(error).writing(place))
        };
        if outcome.is_err() && !self.connection.is_autocommit() {
            // If even this fails, the next BEGIN says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        drop(turn);
        for reply in replies {
            reply(outcome.clone());
        }
    }
}

fn run(path: &std::path::Path, jobs: &Receiver<Job>) {
    let place = path.display().to_string();
    let mut writer = None;
    while let Ok(job) = jobs.recv() {
        let opened = match writer.take() {
            Some(writer) => Ok(writer),
            None => Writer::open(path),
        };
        match opened {
            Ok(ready) => writer.insert(ready).batch(job, jobs, &place),
            Err(error) => refuse([job], &error),
        }
    }
}

fn refuse(jobs: impl IntoIterator<Item = Job>, error: &Error) {
    for job in jobs {
        job(Err(error.clone()))(Ok(()));
    }
}

fn undone(place: &str) -> Error {
    let reason = "another write of the same batch failed and the database undid them all".to_owned();
    Error::CannotWrite { place: place.to_owned(), reason }
}

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
