//! Where a case runs: a fresh journal of some kind, which several processes may open.

use std::io::Write;
use std::time::Duration;

use convoke_journal::{Batch, Error, Journal, KeyedInput, Lease, Location, Options, Process, StreamId};
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// How long anything may take before a test says that it never comes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    location: Location,
    /// A journal in memory lives as long as a handle of it.
    memory: Option<Journal>,
    _dir: Option<TempDir>,
}

impl World {
    pub(crate) async fn memory() -> Self {
        let memory = Journal::open(Location::Memory, someone()).await.unwrap();
        Self { location: Location::Memory, memory: Some(memory), _dir: None }
    }

    pub(crate) fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { location: Location::Sqlite(dir.path().join("journal.db")), memory: None, _dir: Some(dir) }
    }

    pub(crate) fn at(location: Location) -> Self {
        Self { location, memory: None, _dir: None }
    }

    /// Opens the journal as a process that is alive.
    pub(crate) async fn open(&self) -> Journal {
        self.open_as(someone()).await
    }

    pub(crate) async fn open_as(&self, options: Options) -> Journal {
        match &self.memory {
            Some(memory) => memory.as_process(options).await.unwrap(),
            None => Journal::open(self.location.clone(), options).await.unwrap(),
        }
    }
}

/// A database of its own on the test server, or `None` (said on stderr, for the test script to count).
pub(crate) struct Database {
    pub(crate) url: String,
    server: String,
    name: String,
}

impl Database {
    pub(crate) async fn create(test: &str) -> Option<Self> {
        let Some(server) = std::env::var_os("CONVOKE_TEST_POSTGRES") else {
            // Not with eprintln, which the test harness keeps to itself when a test passes; and in one piece.
            let line = format!("SKIPPED: {test}: CONVOKE_TEST_POSTGRES is not set\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        };
        let server = server.into_string().unwrap();
        let name = format!("t{:032x}", u128::from_ne_bytes(random()));
        administer(&server, &format!("CREATE DATABASE {name}")).await;
        let (place, query) = server.split_once('?').unwrap_or((&server, ""));
        let (host, _) = place.rsplit_once('/').unwrap();
        Some(Self { url: format!("{host}/{name}?{query}"), name, server })
    }

    pub(crate) async fn run(&self, statements: &str) {
        administer(&self.url, statements).await;
    }

    /// How many connections there are to it, but for the one that counts them.
    pub(crate) async fn connections(&self) -> i64 {
        let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
        let count = client.query_one(count, &[&self.name]).await.unwrap().get(0);
        drop(client);
        driver.await.unwrap().unwrap();
        count
    }

    pub(crate) async fn remove(self) {
        administer(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

async fn administer(url: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    drop(client);
    driver.await.unwrap().unwrap();
}

pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bits = [0; N];
    getrandom::fill(&mut bits).unwrap();
    bits
}

/// A process of its own name that is alive, because it is this one.
pub(crate) fn someone() -> Options {
    Options::new(Process::current(random()))
}

/// A process of this boot that is provably gone: no pid is that high.
pub(crate) fn somebody_gone() -> Options {
    Options::new(Process { pid: u32::MAX, ..Process::current(random()) })
}

pub(crate) fn stream(name: &str) -> StreamId {
    name.parse().unwrap()
}

pub(crate) fn input(to: &str, key: &str, body: &str) -> KeyedInput {
    KeyedInput { stream: stream(to), key: key.to_owned(), body: body.to_owned() }
}

pub(crate) fn event(number: usize) -> String {
    format!(r#"{{"type":"counted","number":{number}}}"#)
}

/// A batch of one event.
pub(crate) fn one(number: usize) -> Batch {
    Batch::events(1000, [event(number)])
}

/// The events of a stream.
pub(crate) async fn events(journal: &Journal, name: &str) -> Vec<String> {
    journal.load(&stream(name), 0).await.unwrap().into_iter().map(|record| record.event).collect()
}

/// The keys that wait in a stream.
pub(crate) async fn waiting(journal: &Journal, name: &str) -> Vec<String> {
    journal.inputs(&stream(name)).await.unwrap().into_iter().map(|input| input.key).collect()
}

pub(crate) async fn own(journal: &Journal, name: &str) -> Lease {
    journal.own(&stream(name)).await.unwrap()
}

/// Waits for something that must come, with the one global deadline.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("it never came")
}

#[track_caller]
pub(crate) fn assert_lost<T: std::fmt::Debug>(done: Result<T, Error>) {
    assert!(matches!(done, Err(Error::LostLease { .. })), "expected a lost lease, got {done:?}");
}

#[track_caller]
pub(crate) fn assert_held<T: std::fmt::Debug>(done: Result<T, Error>, by: &Options) {
    match done {
        Err(Error::Held { by: owner, .. }) => assert_eq!(owner.process, by.process),
        other => panic!("expected it to be held, got {other:?}"),
    }
}
