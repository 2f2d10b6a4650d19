//! Connections, transactions, and what became of a commit whose answer was lost. The operations are in `ops`.

use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Transaction,
};
use tokio_postgres::{Config, NoTls};

use super::fault::{Fault, words};
use super::ops::{self, Fate};
use super::schema;
use crate::sql::{self, signed, unsigned};
use crate::{
    Appended, Batch, Error, Filter, KeyedInput, Lease, Listing, Location, Options, Pruned, Record, SignOfLife,
    StreamId, Submitted, Update,
};

/// A few connections carry many agents: an append holds one for some milliseconds.
const CONNECTIONS: usize = 16;
/// How often a transaction is tried when the server breaks a deadlock or a pooled connection turns out to be dead.
/// More than there are connections, because after a restart of the server all of them are dead.
const TRIES: usize = CONNECTIONS + 4;
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server that does not even acknowledge packets is waited for, unless the URL says otherwise.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a lost commit is asked after, and how often.
const RESOLVE: Duration = Duration::from_secs(10);
const RESOLVE_PAUSE: Duration = Duration::from_millis(100);

/// A PostgreSQL database.
#[derive(Clone)]
pub(crate) struct Postgres {
    pool: Pool,
    place: String,
}

/// Does `$work` in a transaction, again if it is safe to, and yields a `Result<_, Fault>`. A macro because the work
/// borrows the transaction, and futures of such closures cannot be named as `Send`.
macro_rules! transact {
    ($store:ident, |$tx:ident| $work:expr) => {{
        let mut tries = 0;
        loop {
            tries += 1;
            let mut client = $store.client().await?;
            let done = match client.transaction().await {
                Ok($tx) => {
                    let done = $work.await;
                    finish($tx, done).await
                }
                Err(error) => Err(Fault::of_begin(error)),
            };
            match done {
                Err(Fault::Again(_)) if tries < TRIES => continue,
                done => break done,
            }
        }
    }};
}

impl Postgres {
    /// Connects, and finds or creates the tables.
    pub(crate) async fn open(url: &str) -> Result<Self, Error> {
        let place = Location::Postgres(url.to_owned()).to_string();
        let bad = |reason: String| Error::BadLocation { given: place.clone(), reason };
        let mut config: Config = url.parse().map_err(|error| bad(words(&error)))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE).keepalives_idle(SILENCE);
        }
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let session = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
            Box::pin(async move { client.batch_execute(schema::SESSION).await.map_err(HookError::Backend) })
        });
        let pool = Pool::builder(manager).max_size(CONNECTIONS).runtime(Runtime::Tokio1).post_create(session);
        let pool = pool.build().map_err(|error| bad(error.to_string()))?;
        let store = Self { pool, place };
        let mut client = store.client().await?;
        schema::prepare(&mut client, &store.place).await.map_err(|fault| fault.told(&store.place))?;
        Ok(store)
    }

    pub(crate) async fn submit(&self, input: &KeyedInput, at: u64) -> Result<Submitted, Error> {
        self.tell(transact!(self, |tx| ops::submit(&tx, input, at)))
    }

    pub(crate) async fn own(&self, me: &Options, stream: &StreamId) -> Result<u64, Error> {
        self.tell(transact!(self, |tx| ops::own(&tx, me, stream)))
    }

    pub(crate) async fn heartbeat(&self, me: &Options) -> Result<(), Error> {
        self.tell(transact!(self, |tx| ops::heartbeat(&tx, me)))
    }

    pub(crate) async fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.tell(transact!(self, |tx| ops::release(&tx, lease)))
    }

    pub(crate) async fn land(&self, flight: &Lease) -> Result<(), Error> {
        self.tell(transact!(self, |tx| ops::land(&tx, flight)))
    }

    pub(crate) async fn leave(&self, me: &Options) -> Result<(), Error> {
        self.tell(transact!(self, |tx| ops::leave(&tx, me)))
    }

    pub(crate) async fn prune(&self, me: &Options, streams: &[StreamId]) -> Result<Pruned, Error> {
        self.tell(transact!(self, |tx| ops::prune(&tx, me, streams)))
    }

    pub(crate) async fn forget_results(&self, before: u64) -> Result<u64, Error> {
        self.tell(transact!(self, |tx| ops::forget_results(&tx, before)))
    }

    pub(crate) async fn append(&self, lease: &Lease, expected: u64, batch: &Batch) -> Result<Appended, Error> {
        let mut fate = None;
        let done = transact!(self, |tx| ops::append(&tx, lease, expected, batch, &mut fate));
        self.settle(done, fate).await
    }

    pub(crate) async fn update(&self, update: &Update, at: u64) -> Result<Appended, Error> {
        let mut fate = None;
        let done = transact!(self, |tx| ops::update(&tx, update, at, &mut fate));
        self.settle(done, fate).await
    }

    pub(crate) async fn shared(&self, stream: &StreamId) -> Result<Option<String>, Error> {
        let rows = self.read(sql::SHARED, &[&stream.as_str()]).await?;
        Ok(rows.first().and_then(|row| row.get(1)))
    }

    pub(crate) async fn sign_of_life(&self, me: &Options, process: &str) -> Result<Option<SignOfLife>, Error> {
        let now = self.read(ops::NOW, &[]).await?.first().map_or(0, |row| row.get(0));
        let rows = self.read(sql::PROCESS, &[&process]).await?;
        Ok(rows.first().and_then(ops::holder).map(|holder| holder.sign(&me.process, now)))
    }

    pub(crate) async fn holds(&self, lease: &Lease) -> Result<bool, Error> {
        let given: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&lease.stream.as_str(), &lease.process, &signed(lease.epoch)];
        Ok(!self.read(sql::HOLDS, &given).await?.is_empty())
    }

    pub(crate) async fn load(&self, stream: &StreamId, after: u64) -> Result<Vec<Record>, Error> {
        let rows = self.read(sql::LOAD, &[&stream.as_str(), &signed(after)]).await?;
        let record = |row: tokio_postgres::Row| {
            let event = self.resolved(row.get(2))?;
            Ok(Record { stream: stream.clone(), seq: unsigned(row.get(0)), at: unsigned(row.get(1)), event })
        };
        rows.into_iter().map(record).collect()
    }

    pub(crate) async fn inputs(&self, stream: &StreamId) -> Result<Vec<KeyedInput>, Error> {
        let rows = self.read(sql::INPUTS, &[&stream.as_str()]).await?;
        let input = |row: tokio_postgres::Row| {
            Ok(KeyedInput { stream: stream.clone(), key: row.get(0), body: self.resolved(row.get(1))? })
        };
        rows.into_iter().map(input).collect()
    }

    pub(crate) async fn result_at(&self, key: &str) -> Result<Option<(String, u64)>, Error> {
        let rows = self.read(sql::RESULT, &[&key]).await?;
        rows.first().map(|row| Ok((self.resolved(row.get(0))?, unsigned(row.get(1))))).transpose()
    }

    pub(crate) async fn list(&self, me: &Options, filter: &Filter) -> Result<Vec<Listing>, Error> {
        let now = self.read(ops::NOW, &[]).await?.first().map_or(0, |row| row.get(0));
        let (from, to) = filter.range();
        let rows = self.read(sql::LIST, &[&from, &to, &filter.limit()]).await?;
        rows.iter().map(|row| ops::listing(row, me, now)).collect()
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }

    async fn client(&self) -> Result<Object, Error> {
        let unavailable = |reason| Error::Unavailable { place: self.place.clone(), reason };
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                unavailable(words(&error))
            }
            PoolError::Closed => unavailable("it is closed".to_owned()),
            error => unavailable(error.to_string()),
        })
    }

    async fn read(
        &self,
        statement: &str,
        given: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let client = self.client().await?;
            let rows = match client.prepare_cached(statement).await {
                Ok(prepared) => client.query(&prepared, given).await,
                Err(error) => Err(error),
            };
            match rows {
                // Looking twice does no harm, and the connection may have been dead since before we took it.
                Err(error) if error.is_closed() && tries < TRIES => continue,
                rows => return self.tell(rows.map_err(Fault::from)),
            }
        }
    }

    fn resolved(&self, text: Option<String>) -> Result<String, Error> {
        let corrupt = || Error::Corrupt { place: self.place.clone(), reason: sql::DANGLING.to_owned() };
        text.ok_or_else(corrupt)
    }

    fn tell<T>(&self, done: Result<T, Fault>) -> Result<T, Error> {
        done.map_err(|fault| fault.told(&self.place))
    }

    async fn settle(&self, done: Result<Appended, Fault>, fate: Option<Fate>) -> Result<Appended, Error> {
        match (done, fate) {
            (Err(Fault::Unknown(why)), Some(fate)) => self.resolve(fate, &why).await,
            (done, _) => self.tell(done),
        }
    }

    /// Finds out what became of an append whose commit got no answer. The server remembers the fate of every
    /// transaction. It must also show the stream moved on: a standby that took over may have lost what the old server
    /// had committed, and given the number to another transaction.
    async fn resolve(&self, fate: Fate, why: &str) -> Result<Appended, Error> {
        let Fate { transaction, stream, appended } = fate;
        let fate = "SELECT pg_xact_status($1::text::xid8),
            EXISTS (SELECT 1 FROM streams WHERE stream = $2 AND seq >= $3)";
        let ask = async {
            loop {
                let rows = self.read(fate, &[&transaction, &stream.as_str(), &signed(appended.seq)]).await;
                let row = rows.as_ref().ok().and_then(|rows| rows.first());
                match row.map(|row| (row.get::<_, Option<&str>>(0), row.get(1))) {
                    Some((Some("committed"), true)) => return Some(true),
                    Some((Some("aborted"), _)) => return Some(false),
                    Some((Some("committed") | None, _)) => return None,
                    // Still in progress, or the server is not back yet.
                    _ => tokio::time::sleep(RESOLVE_PAUSE).await,
                }
            }
        };
        let place = self.place.clone();
        match tokio::time::timeout(RESOLVE, ask).await {
            Ok(Some(true)) => Ok(appended),
            Ok(Some(false)) => {
                let reason = format!("{why}; the change was not committed and nothing changed: try again");
                Err(Error::Unavailable { place, reason })
            }
            Ok(None) | Err(_) => Err(Fault::Unknown(why.to_owned()).told(&place)),
        }
    }
}

async fn finish<T>(tx: Transaction<'_>, done: Result<T, Fault>) -> Result<T, Fault> {
    match done {
        Ok(value) => tx.commit().await.map(|()| value).map_err(Fault::of_commit),
        Err(fault) => {
            // If the rollback does not arrive, the connection is gone, and with it the transaction.
            let _ = tx.rollback().await;
            Err(fault)
        }
    }
}
