//! The operations of the journal on an embedded store: each is one function of `ops`, done as a write or as a
//! read. The committer and the readers have threads of their own, so each takes its arguments along.

use tokio::sync::watch;

use super::ops;
use super::store::Embedded;
use crate::{
    Appended, Batch, Error, Filter, KeyedInput, Lease, Listing, Options, Outage, Pruned, Record, Results,
    SignOfLife, StreamId, Submitted, Update,
};

impl Embedded {
    /// A store in this process is never away.
    pub(crate) fn outage(&self) -> watch::Receiver<Option<Outage>> {
        watch::channel(None).1
    }

    pub(crate) async fn submit(&self, input: &KeyedInput, at: u64) -> Result<Submitted, Error> {
        let input = input.clone();
        self.write(move |rows| ops::submit(rows, &input, at)).await
    }

    pub(crate) async fn own(&self, me: &Options, stream: &StreamId) -> Result<u64, Error> {
        let me = me.clone();
        let stream = stream.clone();
        self.write(move |rows| ops::own(rows, &me, &stream)).await
    }

    pub(crate) async fn heartbeat(&self, me: &Options) -> Result<(), Error> {
        let me = me.clone();
        self.write(move |rows| ops::heartbeat(rows, &me)).await
    }

    pub(crate) async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let lease = lease.clone();
        self.write(move |rows| ops::release(rows, &lease)).await
    }

    pub(crate) async fn land(&self, flight: &Lease) -> Result<(), Error> {
        let flight = flight.clone();
        self.write(move |rows| ops::land(rows, &flight)).await
    }

    pub(crate) async fn leave(&self, me: &Options) -> Result<(), Error> {
        let me = me.clone();
        self.write(move |rows| ops::leave(rows, &me)).await
    }

    pub(crate) async fn prune(&self, me: &Options, streams: &[StreamId]) -> Result<Pruned, Error> {
        let me = me.clone();
        let streams = streams.to_vec();
        self.write(move |rows| ops::prune(rows, &me, &streams)).await
    }

    pub(crate) async fn forget_results(&self, before: u64) -> Result<u64, Error> {
        self.write(move |rows| ops::forget_results(rows, before)).await
    }

    pub(crate) async fn append(
        &self,
        lease: &Lease,
        expected: u64,
        batch: &Batch,
    ) -> Result<Appended, Error> {
        let lease = lease.clone();
        let batch = batch.clone();
        self.write(move |rows| ops::append(rows, &lease, expected, &batch)).await
    }

    pub(crate) async fn update(&self, update: &Update, at: u64) -> Result<String, Error> {
        let Update { stream, change } = update.clone();
        Ok(self.write(move |rows| ops::update(rows, &stream, at, &change)).await?.1)
    }

    pub(crate) async fn shared(&self, stream: &StreamId) -> Result<Option<String>, Error> {
        let stream = stream.clone();
        self.read(move |rows| ops::shared(rows, &stream)).await
    }

    pub(crate) async fn sign_of_life(
        &self,
        me: &Options,
        process: &str,
    ) -> Result<Option<SignOfLife>, Error> {
        let me = me.clone();
        let process = process.to_owned();
        self.read(move |rows| ops::sign_of_life(rows, &me, &process)).await
    }

    pub(crate) async fn holds(&self, lease: &Lease) -> Result<bool, Error> {
        let lease = lease.clone();
        self.read(move |rows| ops::holds(rows, &lease)).await
    }

    pub(crate) async fn load(&self, stream: &StreamId, after: u64) -> Result<Vec<Record>, Error> {
        let stream = stream.clone();
        self.read(move |rows| ops::load(rows, &stream, after)).await
    }

    pub(crate) async fn inputs(&self, stream: &StreamId) -> Result<Vec<KeyedInput>, Error> {
        let stream = stream.clone();
        self.read(move |rows| ops::inputs(rows, &stream)).await
    }

    pub(crate) async fn result_at(&self, key: &str) -> Result<Option<(String, u64)>, Error> {
        let key = key.to_owned();
        self.read(move |rows| ops::result_at(rows, &key)).await
    }

    pub(crate) async fn results_at(&self, keys: &[String]) -> Result<Results, Error> {
        let keys = keys.to_owned();
        self.read(move |rows| ops::results_at(rows, &keys)).await
    }

    pub(crate) async fn list(&self, me: &Options, filter: &Filter) -> Result<Vec<Listing>, Error> {
        let me = me.clone();
        let filter = filter.clone();
        self.read(move |rows| ops::list(rows, &me, &filter)).await
    }
}
