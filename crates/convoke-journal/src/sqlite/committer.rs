//! The committer: the one thread that writes to a SQLite file, and the only holder of a write connection in
//! this process. Many operations that arrive together share one transaction and one fsync.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::ops::Fault;
use super::wait::Waits;
use super::writer::{Writer, undone};
use crate::{Error, Process};

/// An operation that is to be done in a transaction with others.
pub(super) trait Job: Send {
    /// Does it on the connection, or is refused with an error. Called again if the transaction has to begin
    /// anew.
    fn attempt(&mut self, rows: Result<&Connection, Error>);

    /// Forgets the result of an attempt that did not count.
    fn forget(&mut self);

    /// Sends the reply, after the commit.
    fn answer(self: Box<Self>, commit: Result<(), Error>);
}

struct Work<T, F> {
    work: F,
    place: String,
    done: Option<Result<T, Error>>,
    sender: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: Fn(&Connection) -> Result<T, Fault> + Send> Job for Work<T, F> {
    fn attempt(&mut self, rows: Result<&Connection, Error>) {
        self.done =
            Some(rows.and_then(|rows| apart(rows, &self.work).map_err(|fault| fault.writing(&self.place))));
    }

    fn forget(&mut self) {
        self.done = None;
    }

    fn answer(self: Box<Self>, commit: Result<(), Error>) {
        let undone = || Err(undone(&self.place));
        let answer = match (self.done, commit) {
            (Some(done), commit) => done.and_then(|value| commit.map(|()| value)),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => undone(),
        };
        // The caller may have stopped waiting; the work is done all the same.
        drop(self.sender.send(answer));
    }
}

/// The handle of the committer thread.
pub(super) struct Committer {
    place: String,
    queue: Mutex<Option<Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    /// Starts the thread. The file is opened for writing at the first operation, so that readers never need
    /// to.
    pub(super) fn start(path: PathBuf, me: Process, waits: Waits) -> Result<Self, Error> {
        let place = path.display().to_string();
        let (queue, jobs) = channel();
        let unavailable =
            |e: std::io::Error| Error::Unavailable { place: place.clone(), reason: e.to_string() };
        let thread = std::thread::Builder::new().name("journal-committer".to_owned());
        let thread = thread.spawn(move || run(&path, &me, &waits, &jobs)).map_err(unavailable)?;
        Ok(Self { place, queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    /// Does `work` in the next transaction and answers when that is durable. Once this future was polled,
    /// dropping it does not take the work back. The work is done again if the transaction has to begin anew.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, answer) = oneshot::channel();
        let job = Box::new(Work { work, place: self.place.clone(), done: None, sender });
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

/// Does `work` so that its failure undoes its own changes and no other job's.
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

fn run(path: &Path, me: &Process, waits: &Waits, jobs: &Receiver<Box<dyn Job>>) {
    let mut writer = None;
    while let Ok(job) = jobs.recv() {
        let opened = match writer.take() {
            Some(writer) => Ok(writer),
            None => Writer::open(path, me.clone(), waits.clone()),
        };
        match opened {
            Ok(ready) => writer.insert(ready).batch(job, jobs),
            Err(error) => job.answer(Err(error)),
        }
    }
}

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
