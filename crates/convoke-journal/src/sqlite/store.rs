//! The two embedded stores behind one pair of verbs: `write` is durable and atomic, `read` sees what is committed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::committer::{Committer, apart};
use super::file;
use super::ops::{self, Fault, SCHEMA_SQLITE};
use crate::{Error, FORMAT, Process};

/// How many idle read connections are kept. More readers than that open their own and close them again.
const IDLE_READERS: usize = 4;

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
    path: PathBuf,
    place: String,
    committer: Committer,
    readers: Mutex<Option<Vec<Connection>>>,
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
        let (place, file) = (path.display().to_string(), path.clone());
        let (store, format) = blocking(&place, move || {
            let format = file::prepare(&path, &process)?;
            let place = path.display().to_string();
            let committer = Committer::start(path.clone())?;
            let store = Sqlite { path, place, committer, readers: Mutex::new(Some(Vec::new())) };
            // One look now, so that a file that cannot be read is refused here and not in the middle of a run.
            store.read(|rows| rows.query_row("SELECT count(*) FROM meta", [], |_| Ok(())).map_err(Fault::Sql))?;
            Ok((store, format))
        })
        .await?;
        if format < FORMAT {
            let named = place.clone();
            store.committer.write(move |rows| ops::upgrade(rows, &named)).await?;
            // The upgrade is done and durable; if this fails it is merely told to older versions later.
            let _ = blocking(&place, move || Ok(file::settle(&file))).await;
        }
        Ok(Self::File(Arc::new(store)))
    }

    /// Does `work` in a transaction of which either everything is durable afterwards, or nothing.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
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
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Memory(rows) => {
                let rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                work(&rows).map_err(|fault| fault.reading("memory"))
            }
            Self::File(store) => {
                let own = Arc::clone(store);
                blocking(&store.place, move || own.read(work)).await
            }
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
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Error> {
        let idle = match &mut *self.readers.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(idle) => idle.pop(),
            None => {
                return Err(Error::Unavailable { place: self.place.clone(), reason: "it is closed".to_owned() });
            }
        };
        let connection = match idle {
            Some(connection) => connection,
            None => self.reader().map_err(|error| Fault::Sql(error).reading(&self.place))?,
        };
        let done = work(&connection).map_err(|fault| fault.reading(&self.place));
        if let Some(idle) = &mut *self.readers.lock().unwrap_or_else(PoisonError::into_inner)
            && idle.len() < IDLE_READERS
        {
            idle.push(connection);
        }
        done
    }

    fn reader(&self) -> rusqlite::Result<Connection> {
        let connection = file::connect(&self.path)?;
        connection.execute_batch("PRAGMA query_only = ON")?;
        Ok(connection)
    }
}

/// Runs what blocks on a thread that may.
async fn blocking<T: Send + 'static>(
    place: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Error::Unavailable { place: place.to_owned(), reason: error.to_string() }),
    }
}
