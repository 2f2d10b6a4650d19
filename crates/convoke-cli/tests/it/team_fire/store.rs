//! Where the journal of a team under fire lives: a file, or a database of its own whose connections can be
//! cut.

use std::io::Write as _;

use convoke_journal::{Journal, Location, Options, Process};
use convoke_runtime::Ids;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

pub(crate) enum Store {
    Sqlite(TempDir),
    Postgres {
        /// Where databases are made.
        server: String,
        name: String,
        url: String,
    },
}

impl Store {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// A database of its own; where there is no server the test is skipped, loudly.
    pub(crate) async fn postgres(test: &str) -> Option<Self> {
        let Some(server) = std::env::var_os("CONVOKE_TEST_POSTGRES") else {
            // Written past the test harness, which would keep it to itself; `scripts/test` counts these
            // lines.
            let line = format!("SKIPPED: {test}: CONVOKE_TEST_POSTGRES is not set\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        };
        let server = server.into_string().unwrap();
        let bits = Ids::random().bits().unwrap();
        let name = bits.iter().fold("fire".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        administer(&server, &format!("CREATE DATABASE {name}")).await;
        let (place, query) = server.split_once('?').unwrap_or((&server, ""));
        let (host, _) = place.rsplit_once('/').unwrap();
        let url = format!("{host}/{name}?{query}");
        Some(Self::Postgres { server, name, url })
    }

    /// The journal as `--journal` names it.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Sqlite(dir) => dir.path().join("journal.db").to_str().unwrap().to_owned(),
            Self::Postgres { url, .. } => url.clone(),
        }
    }

    /// The journal as one more process sees it.
    pub(crate) async fn open(&self) -> Journal {
        let location = match self {
            Self::Sqlite(dir) => Location::Sqlite(dir.path().join("journal.db")),
            Self::Postgres { url, .. } => Location::Postgres(url.clone()),
        };
        let process = Process::current(Ids::random().bits().unwrap());
        Journal::open(location, Options::new(process)).await.unwrap()
    }

    /// Cuts some connections, of any process; says how many.
    pub(crate) async fn cut(&self) -> usize {
        let Self::Postgres { server, name, .. } = self else { return 0 };
        let (client, driver) = connect(server).await;
        let cut = format!(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = \
             '{name}' ORDER BY random() LIMIT 4) AS picked"
        );
        let rows = client.query(&cut, &[]).await.unwrap();
        drop(client);
        driver.await.unwrap();
        rows.len()
    }

    /// What was made for the test goes with it.
    pub(crate) async fn remove(self) {
        if let Self::Postgres { server, name, .. } = self {
            administer(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

async fn connect(url: &str) -> (Client, tokio::task::JoinHandle<()>) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    (client, tokio::spawn(async move { connection.await.unwrap() }))
}

async fn administer(url: &str, statements: &str) {
    let (client, driver) = connect(url).await;
    client.batch_execute(statements).await.unwrap();
    drop(client);
    driver.await.unwrap();
}
