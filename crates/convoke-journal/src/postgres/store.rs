//! Each of the journal's operations as something that is tried until it is done: in a transaction, again when
//! the server breaks a deadlock, and again when the connection was lost, as long as `link` has patience. The
//! operations are in `ops`.
//!
//! What makes a second try harmless: `own` gives a new lease, and no caller has the one that got lost; a
//! heartbeat, a release, a landing and a leave do nothing the second time; everything else is marked (see
//! `marks`), and if an earlier try turns out to have been committed, what it had come to is the answer.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tokio::sync::watch;

use super::fault::Fault;
use super::link::{Link, Waiting};
use super::marks::{Mark, Marks};
use super::ops;
use super::schema;
use crate::sql::{self, signed, unsigned};
use crate::{
    Appended, Batch, Checked, Error, Filter, KeyedInput, Lease, Listing, Options, Outage, Pruned, Record,
    Results, SignOfLife, StreamId, Submitted, Update,
};

/// How often a transaction is tried when the server breaks a deadlock.
const TRIES: usize = 20;

/// A PostgreSQL database.
#[derive(Clone)]
pub(crate) struct Postgres {
    link: Arc<Link>,
    marks: Arc<Marks>,
}

/// Does `$work` in transactions until one of them is done, and yields a `Result<_, Error>`. `$mark` is for
/// work that must not be done twice, `$limit` is how long one try may take. A macro because the work borrows
/// the transaction, and futures of such closures cannot be named as `Send`.
macro_rules! transact {
    ($store:ident, $mark:expr, $limit:expr, |$tx:ident| $work:expr) => {{
        let mark: Option<Mark<'_>> = $mark;
        let mut waiting = Waiting::default();
        let mut tries = 0;
        // What the last try has come to, if it was committed.
        let mut answer = None;
        loop {
            tries += 1;
            let done = match $store.link.client().await {
                Ok(mut client) => {
                    let attempt = async {
                        let $tx = client.transaction().await?;
                        let done = match begin(&$tx, mark.as_ref()).await {
                            Ok(true) => {
                                answer = None;
                                $work.await
                            }
                            // It is done, and what it came to is known.
                            Ok(false) => return Ok(drop($tx.rollback().await)),
                            Err(fault) => Err(fault),
                        };
                        finish($tx, done, &mut answer).await
                    };
                    let done = $store.link.answer($limit, attempt).await;
                    discard_if_lost(client, &done);
                    done
                }
                Err(fault) => Err(fault),
            };
            match $store.next(done, &mut waiting, tries).await {
                Ok(Some(())) => {
                    break answer.ok_or_else(|| $store.corrupt("a mark is there that no process has made"));
                }
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        }
    }};
}

impl Postgres {
    /// Connects, and finds or creates the tables. A server that is not there is an error at
    /// once: nothing depends on it yet. One that takes the connection and says nothing is waited
    /// for as long as one that goes away later.
    pub(crate) async fn open(url: &str, options: &Options) -> Result<Self, Error> {
        let link = Link::new(url, options)?;
        let told = |fault: Fault| fault.told(&link.place);
        let ready = async {
            let mut client = link.client().await.map_err(told)?;
            schema::prepare(&mut client, &link.place).await.map_err(told)
        };
        let limit = options.outage;
        let silent = |_| link.unavailable(format!("it does not answer; waited for {} s", limit.as_secs()));
        tokio::time::timeout(limit, ready).await.map_err(silent)??;
        Ok(Self { link: Arc::new(link), marks: Arc::new(Marks::new(&options.process.id)) })
    }

    /// Whether the server answers, and since when it does not.
    pub(crate) fn outage(&self) -> watch::Receiver<Option<Outage>> {
        self.link.outage()
    }

    /// No process keeps another one waiting for the server as a whole.
    pub(crate) fn waits(&self) -> watch::Receiver<Option<crate::AwaitedProcess>> {
        watch::channel(None).1
    }

    /// The server keeps checksums of its own and is not asked.
    pub(crate) async fn check(&self, _: Duration) -> Result<Checked, Error> {
        Ok(Checked::Whole)
    }

    pub(crate) async fn submit(&self, input: &KeyedInput, at: u64) -> Result<Submitted, Error> {
        transact!(self, Some(self.marks.mark()), self.link.limit(), |tx| ops::submit(&tx, input, at))
    }

    pub(crate) async fn own(&self, me: &Options, stream: &StreamId) -> Result<u64, Error> {
        transact!(self, None, self.link.limit(), |tx| ops::own(&tx, me, stream))
    }

    pub(crate) async fn heartbeat(&self, me: &Options) -> Result<(), Error> {
        transact!(self, None, self.link.limit(), |tx| ops::heartbeat(&tx, me))
    }

    pub(crate) async fn release(&self, lease: &Lease) -> Result<(), Error> {
        transact!(self, None, self.link.limit(), |tx| ops::release(&tx, lease))
    }

    pub(crate) async fn land(&self, flight: &Lease) -> Result<(), Error> {
        transact!(self, None, self.link.limit(), |tx| ops::land(&tx, flight))
    }

    pub(crate) async fn leave(&self, me: &Options) -> Result<(), Error> {
        transact!(self, None, self.link.limit(), |tx| ops::leave(&tx, me))
    }

    pub(crate) async fn prune(&self, me: &Options, streams: &[StreamId]) -> Result<Pruned, Error> {
        // However much there is to remove.
        transact!(self, Some(self.marks.mark()), None, |tx| ops::prune(&tx, me, streams))
    }

    pub(crate) async fn forget_results(&self, before: u64) -> Result<u64, Error> {
        // However much there is to remove.
        transact!(self, Some(self.marks.mark()), None, |tx| ops::forget_results(&tx, before))
    }

    pub(crate) async fn append(
        &self,
        lease: &Lease,
        expected: u64,
        batch: &Batch,
    ) -> Result<Appended, Error> {
        transact!(self, Some(self.marks.mark()), self.link.limit(), |tx| ops::append(
            &tx, lease, expected, batch
        ))
    }

    pub(crate) async fn update(&self, update: &Update, at: u64) -> Result<String, Error> {
        let updated: Result<Appended, Error> =
            transact!(self, Some(self.marks.mark()), self.link.limit(), |tx| ops::update(&tx, update, at));
        Ok(updated?.states.pop().unwrap_or_default())
    }

    pub(crate) async fn shared(&self, stream: &StreamId) -> Result<Option<String>, Error> {
        let rows = self.read(sql::SHARED, &[&stream.as_str()]).await?;
        Ok(rows.first().and_then(|row| row.get(1)))
    }

    pub(crate) async fn sign_of_life(
        &self,
        me: &Options,
        process: &str,
    ) -> Result<Option<SignOfLife>, Error> {
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

    pub(crate) async fn results_at(&self, keys: &[String]) -> Result<Results, Error> {
        let statement = format!("{} = ANY($1)", sql::RESULTS);
        let rows = self.read(&statement, &[&keys]).await?;
        let result =
            |row: &tokio_postgres::Row| Ok((row.get(2), (self.resolved(row.get(0))?, unsigned(row.get(1)))));
        rows.iter().map(result).collect()
    }

    pub(crate) async fn list(&self, me: &Options, filter: &Filter) -> Result<Vec<Listing>, Error> {
        let now = self.read(ops::NOW, &[]).await?.first().map_or(0, |row| row.get(0));
        let (from, to) = filter.range();
        let rows = self.read(sql::LIST, &[&from, &to, &filter.limit()]).await?;
        rows.iter().map(|row| ops::listing(row, me, now)).collect()
    }

    pub(crate) async fn close(&self) -> Result<(), Error> {
        self.link.close();
        Ok(())
    }

    /// Reads, which may be repeated freely.
    async fn read(
        &self,
        statement: &str,
        given: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Error> {
        let mut waiting = Waiting::default();
        let mut tries = 0;
        loop {
            tries += 1;
            let done = match self.link.client().await {
                Ok(client) => {
                    let attempt = async {
                        let prepared = client.prepare_cached(statement).await?;
                        Ok(client.query(&prepared, given).await?)
                    };
                    let done = self.link.answer(self.link.limit(), attempt).await;
                    discard_if_lost(client, &done);
                    done
                }
                Err(fault) => Err(fault),
            };
            if let Some(rows) = self.next(done, &mut waiting, tries).await? {
                return Ok(rows);
            }
        }
    }

    /// What follows from a try: an answer, an error, or another try, when it is time for it.
    async fn next<T>(
        &self,
        done: Result<T, Fault>,
        waiting: &mut Waiting,
        tries: usize,
    ) -> Result<Option<T>, Error> {
        if !matches!(done, Err(Fault::Lost(_))) {
            self.link.answers();
        }
        match done {
            Ok(value) => Ok(Some(value)),
            Err(Fault::Again(_)) if tries < TRIES => Ok(None),
            Err(Fault::Lost(why)) => self.link.again(waiting, why).await.map(|()| None),
            Err(fault) => Err(fault.told(&self.link.place)),
        }
    }

    fn resolved(&self, text: Option<String>) -> Result<String, Error> {
        text.ok_or_else(|| self.corrupt(sql::DANGLING))
    }

    fn corrupt(&self, reason: &str) -> Error {
        Error::Corrupt { place: self.link.place.clone(), reason: reason.to_owned() }
    }
}

async fn begin(tx: &Transaction<'_>, mark: Option<&Mark<'_>>) -> Result<bool, Fault> {
    match mark {
        Some(mark) => mark.write(tx).await,
        None => Ok(true),
    }
}

/// Commits what was done. What it came to is in `answer` before the commit, whose own answer may get lost.
async fn finish<T>(tx: Transaction<'_>, done: Result<T, Fault>, answer: &mut Option<T>) -> Result<(), Fault> {
    match done {
        Ok(value) => {
            *answer = Some(value);
            Ok(tx.commit().await?)
        }
        Err(fault) => {
            // If the rollback does not arrive, the connection is gone, and with it the transaction.
            let _ = tx.rollback().await;
            Err(fault)
        }
    }
}

/// A connection whose answer was not waited for must not carry the next question.
fn discard_if_lost<T>(client: Object, done: &Result<T, Fault>) {
    if matches!(done, Err(Fault::Lost(_))) {
        drop(Object::take(client));
    }
}
