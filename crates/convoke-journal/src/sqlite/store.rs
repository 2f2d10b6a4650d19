//! The two embedded stores behind one pair of verbs: `write` is durable and atomic, `read` sees what is
//! committed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::watch;

use super::committer::{Committer, apart};
use super::generation::{Fate, Generation, JournalFiles};
use super::ops::{self, Fault, SCHEMA_SQLITE};
use super::wait::Waits;
use super::writer::{self, unreadable, vanished};
use super::{Checked, check, file, over};
use crate::{AwaitedProcess, Error, FORMAT, Process};

/// How many idle read connections are kept. More readers than that open their own and close them again.
const IDLE_READERS: usize = 4;

/// How long a read waits to learn which of two files counts.
const UNDECIDED: Duration = Duration::from_secs(2);

/// A store inside this process.
#[derive(Clone)]
pub(crate) enum Embedded {
    /// A database without a file. Every operation is short, so a lock is held for it.
    Memory(Arc<Mutex<Connection>>),
    /// A database file, with its committer and its readers.
    File(Arc<Sqlite>),
}

/// An open SQLite file.
pub(crate) struct Sqlite {
    place: String,
    files: JournalFiles,
    me: Process,
    waits: Waits,
    committer: Committer,
    readers: Mutex<Option<Vec<Reader>>>,
}

/// A connection that only reads, and what it reads from.
struct Reader {
    generation: Generation,
    connection: Connection,
}

impl Embedded {
    /// A new, empty store in memory.
    pub(crate) fn memory() -> Result<Self, Error> {
        let open = || {
            let connection = Connection::open_in_memory()?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.execute_batch(SCHEMA_SQLITE.as_str()).map(|()| connection)
        };
        let connection = open().map_err(|error| Fault::Sql(error).reading("memory"))?;
        Ok(Self::Memory(Arc::new(Mutex::new(connection))))
    }

    /// The journal at `path`, created if nothing is there, upgraded if it is of an older format.
    pub(crate) async fn file(path: PathBuf, process: Process) -> Result<Self, Error> {
        let place = path.display().to_string();
        let (store, format) = blocking(&place, move || {
            let (files, format) = file::prepare(&path, &process)?;
            let place = path.display().to_string();
            let waits = Waits::default();
            let readers = Mutex::new(Some(Vec::new()));
            let committer = Committer::start(path, process.clone(), waits.clone())?;
            let store = Sqlite { place, files, me: process, waits, committer, readers };
            // One look now, so that a file that cannot be read is refused here and not in the middle of a
            // run.
            store.read(&|rows: &Connection| {
                rows.query_row("SELECT count(*) FROM meta", [], |_| Ok(())).map_err(Fault::Sql)
            })?;
            Ok((store, format))
        })
        .await?;
        if format < FORMAT {
            let named = place.clone();
            store.committer.write(move |rows| ops::upgrade(rows, &named)).await?;
            // The upgrade is done and durable; if this fails, older versions merely learn of it later.
            let files = store.files.clone();
            let settle = move || files.current().map(|file| file.map(|file| file::settle(&file.path)));
            let _ = blocking(&place, move || Ok(settle())).await;
        }
        Ok(Self::File(Arc::new(store)))
    }

    /// Does `work` in a transaction of which either everything is durable afterwards, or nothing.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Memory(rows) => {
                let rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                apart(&rows, work).map_err(|fault| fault.writing("memory"))
            }
            Self::File(store) => store.committer.write(work).await,
        }
    }

    /// Does `work` on what is committed.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Memory(rows) => {
                let rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                work(&rows).map_err(|fault| fault.reading("memory"))
            }
            Self::File(store) => {
                let own = Arc::clone(store);
                blocking(&store.place, move || own.read(&work)).await
            }
        }
    }

    /// Looks whether all of it is whole, for so long at most.
    pub(crate) async fn check(&self, limit: Duration) -> Result<Checked, Error> {
        let Self::File(store) = self else { return Ok(Checked::Whole) };
        let own = Arc::clone(store);
        let place = store.place.clone();
        blocking(&store.place, move || {
            let damaged = |reason| Error::Corrupt { place: place.clone(), reason };
            let Some(current) = own.files.current().map_err(|e| unreadable(&place, &e))? else {
                return Err(vanished(&place));
            };
            check::log(&current.path).map_err(damaged)?;
            own.read(&|rows: &Connection| Ok(check::rows(rows, limit)))?.map_err(damaged)
        })
        .await
    }

    /// Where waits for other processes are reported; for a store in memory there are none.
    pub(crate) fn waits(&self) -> watch::Receiver<Option<AwaitedProcess>> {
        match self {
            Self::Memory(_) => watch::channel(None).1,
            Self::File(store) => store.waits.hear(),
        }
    }

    /// Finishes the writes that are queued and closes the connections.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        let Self::File(store) = self else { return Ok(()) };
        let own = Arc::clone(store);
        blocking(&store.place, move || {
            own.committer.close();
            own.readers.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(())
        })
        .await
    }
}

impl Sqlite {
    /// Reads, and reads again if the file was left behind meanwhile: what was committed to it last may not
    /// count.
    fn read<T>(&self, work: &impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, Error> {
        let began = Instant::now();
        loop {
            let reader = self.reader()?;
            let done = work(&reader.connection).map_err(|fault| fault.reading(&self.place));
            // In this order: the note of a copy is removed after the copy has its name.
            let undecided = over::is_being_left(&self.files, &reader.generation, &self.me).unwrap_or(false);
            let fate = self.files.fate(&reader.generation).map_err(|e| unreadable(&self.place, &e))?;
            match fate {
                // A reader is never kept waiting for long: making the next generation is a matter of a copy.
                Fate::Current if !undecided || began.elapsed() >= UNDECIDED => {
                    self.give_back(reader);
                    return done;
                }
                Fate::Current => std::thread::sleep(Duration::from_millis(20)),
                Fate::Left => {}
                Fate::Gone => return Err(vanished(&self.place)),
            }
        }
    }

    /// An idle reader of the journal as it is now, or a new one.
    fn reader(&self) -> Result<Reader, Error> {
        loop {
            let idle = match &mut *self.readers.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(idle) => idle.pop(),
                None => {
                    return Err(Error::Unavailable {
                        place: self.place.clone(),
                        reason: "it is closed".to_owned(),
                    });
                }
            };
            let Some(reader) = idle else {
                let set_up = |connection: &Connection| connection.execute_batch("PRAGMA query_only = ON");
                let (generation, connection) = writer::connect(&self.files, &self.place, set_up)?;
                return Ok(Reader { generation, connection });
            };
            match self.files.fate(&reader.generation).map_err(|e| unreadable(&self.place, &e))? {
                Fate::Current => return Ok(reader),
                Fate::Left => {}
                Fate::Gone => return Err(vanished(&self.place)),
            }
        }
    }

    fn give_back(&self, reader: Reader) {
        if let Some(idle) = &mut *self.readers.lock().unwrap_or_else(PoisonError::into_inner)
            && idle.len() < IDLE_READERS
        {
            idle.push(reader);
        }
    }
}

/// Runs blocking work on a thread that may block.
async fn blocking<T: Send + 'static>(
    place: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Error::Unavailable { place: place.to_owned(), reason: error.to_string() }),
    }
}
