//! The journal: one contract, told here in prose, for every store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

use crate::postgres::Postgres;
use crate::sqlite::Embedded;
use crate::wake::Wakers;
use crate::{
    Appended, AwaitedProcess, Batch, Change, Checked, Error, Filter, Flight, KeyedInput, Lease, Listing,
    LiveOwner, Location, Options, Outage, Pruned, Record, Results, SignOfLife, StreamId, Submitted, Update,
    flight, text,
};

/// A journal: streams of events, each written by one owner at a time, with the inputs that wait for that
/// owner; and shared streams, which are changed by functions of their state.
///
/// A clone is another handle of the same journal and costs nothing.
///
/// # What correctness depends on
///
/// * **One transaction.** Each method that changes something changes all of it or none, and what it changed
///   is durable when it returns `Ok`. What it returns as an error changed nothing, with one exception: after
///   [`Error::Unavailable`] from PostgreSQL the change may have been committed. Load the stream:
///   callers have to reload after a lost connection in any case.
/// * **Blips.** A PostgreSQL server that ends connections, restarts or cannot be reached is waited for, up to
///   [`Options::outage`]; only [`outage`](Self::outage) tells of it. What was under way is done again, and
///   whether a commit whose answer got lost was done is decided by looking: each operation leaves a mark of
///   its own in its transaction. The lease goes on meanwhile: a silent owner keeps it until another process
///   takes it.
/// * **The fence.** An append names the lease and the last event its caller knows. Both are compared in the
///   transaction that writes. A process that was believed dead and wakes up therefore cannot write a byte,
///   whatever any clock said; clocks decide only how long a silent owner is waited for.
/// * **Shared streams.** They have no owner. A function changes the state inside the transaction that writes:
///   updates of one stream happen one after the other, in whatever process, and none is lost.
/// * **Keys.** A stream knows an input by its key for as long as the stream exists, also after it was
///   acknowledged. So a sender that does not know whether an input arrived sends it again.
/// * **Process ids.** Leases belong to [`Process::id`](crate::Process::id), so every process needs its own.
/// * **Time.** `at` is the caller's clock and is only recorded. Leases are judged by the store's clock alone.
///
/// A future that is dropped does not take its change back: it may be done or not, as after a crash.
///
/// # What may repeat
///
/// `submit`, `heartbeat`, `release`, `prune` and all reads may be repeated freely. A repeated `append` fails
/// with [`Error::StaleSequence`], unless its batch had no events. `own` gives a new lease every time, and a
/// repeated `update` is a second one: a caller that does not know whether it happened looks at the state.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    location: Location,
    options: Options,
    wakers: Arc<Wakers>,
    /// The leases that are alive in this process.
    held: Mutex<HashMap<StreamId, Weak<()>>>,
    /// The flights that were dropped and not landed.
    abandoned: Mutex<Vec<Lease>>,
    /// Whether the store has a row for this process.
    registered: AtomicBool,
    /// How often the store was asked.
    asked: AtomicU64,
}

/// The stores: a closed set. Each of them has a method for every operation of the journal, by the same name
/// and with the same arguments; the compiler checks that, because [`with_store!`] writes the same call for
/// each.
enum Store {
    Embedded(Embedded),
    Postgres(Postgres),
}

/// Asks the store of a journal, whichever it is. A macro and no trait object: the methods are async and
/// borrow what they are given, and a trait for them would spell every signature a third time.
macro_rules! with_store {
    ($journal:ident, |$store:ident| $ask:expr) => {{
        $journal.shared.asked.fetch_add(1, Ordering::Relaxed);
        match &$journal.shared.store {
            Store::Embedded($store) => $ask,
            Store::Postgres($store) => $ask,
        }
    }};
}

impl Journal {
    /// Opens the journal at a place, and creates it if nothing is there. What is there and is not a journal
    /// this version knows is refused and left as it is, byte for byte.
    pub async fn open(location: Location, options: Options) -> Result<Self, Error> {
        let store = match &location {
            Location::Memory => Store::Embedded(Embedded::memory()?),
            Location::Sqlite(path) => {
                Store::Embedded(Embedded::file(path.clone(), options.process.clone()).await?)
            }
            Location::Postgres(url) => Store::Postgres(Postgres::open(url, &options).await?),
        };
        Ok(Self::new(store, location, options, Arc::default()))
    }

    /// Opens the same journal as another process would. For a journal in memory this is the only way to have
    /// two processes on it.
    pub async fn as_process(&self, options: Options) -> Result<Self, Error> {
        match &self.shared.store {
            Store::Embedded(memory @ Embedded::Memory(_)) => {
                let store = Store::Embedded(memory.clone());
                Ok(Self::new(store, Location::Memory, options, Arc::clone(&self.shared.wakers)))
            }
            _ => Self::open(self.shared.location.clone(), options).await,
        }
    }

    fn new(store: Store, location: Location, options: Options, wakers: Arc<Wakers>) -> Self {
        let held = Mutex::default();
        let abandoned = Mutex::default();
        let registered = AtomicBool::new(false);
        let asked = AtomicU64::new(0);
        let shared = Shared { store, location, options, wakers, held, abandoned, registered, asked };
        Self { shared: Arc::new(shared) }
    }

    /// Where this journal is.
    pub fn location(&self) -> &Location {
        &self.shared.location
    }

    /// The process that opened this handle, and its settings.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Whether the store is away, and since when. Only a PostgreSQL store ever is: operations wait for it
    /// meanwhile, as long as [`Options::outage`] says, and a watcher of this can tell a person what is waited
    /// for.
    pub fn outage(&self) -> watch::Receiver<Option<Outage>> {
        with_store!(self, |store| store.outage())
    }

    /// The process that a write of this process waits for, from two seconds on, and `None` when the wait is
    /// over: to be shown to a person. A provably stopped process is left behind after a second or two; if it
    /// goes on, it finds the journal where the others have taken it, and its leases decide what it may write.
    pub fn waits(&self) -> watch::Receiver<Option<AwaitedProcess>> {
        with_store!(self, |store| store.waits())
    }

    /// Looks whether a journal file is whole, for so long at most: its log, its pages and what its rows
    /// promise each other. Takes no turn. [`Error::Corrupt`] says what is damaged; a letter that became
    /// another one within an event is not seen. A PostgreSQL server keeps its own checksums and is not asked.
    pub async fn check(&self, limit: Duration) -> Result<Checked, Error> {
        with_store!(self, |store| store.check(limit).await)
    }

    /// Puts an input in a stream's queue, and creates the stream if it is new. Needs no lease. A key the
    /// stream has seen before changes nothing, even if the text differs.
    pub async fn submit(&self, input: &KeyedInput, at: u64) -> Result<Submitted, Error> {
        text::check_input(input)?;
        with_store!(self, |store| store.submit(input, at).await)
    }

    /// Takes the lease of a stream, and creates the stream if it is new.
    ///
    /// Fails with [`Error::Held`] while a live process owns it. An owner is not live if it is provably gone
    /// (same boot and pid namespace, and no such process), or if its last heartbeat is older than the
    /// patience it asked for, by the store's clock. The lease's epoch is greater than that of every earlier
    /// lease, which fences them off: they can append no more. The same process is refused too while it has a
    /// lease of this stream that is alive; a lease it has dropped it gets back at once.
    pub async fn own(&self, stream: &StreamId) -> Result<Lease, Error> {
        let me = &self.shared.options;
        let token = self.reserve(stream)?;
        self.shared.registered.store(true, Ordering::Relaxed);
        let epoch = with_store!(self, |store| store.own(me, stream).await)?;
        Ok(Lease { stream: stream.clone(), process: me.process.id.clone(), epoch, _token: token })
    }

    /// Renews all leases of this process, for its `lease_ttl` from now on. One row, however many leases. To
    /// be called several times per `lease_ttl` while anything is owned. Flights that were dropped are landed
    /// by it.
    pub async fn heartbeat(&self) -> Result<(), Error> {
        self.shared.registered.store(true, Ordering::Relaxed);
        with_store!(self, |store| store.heartbeat(&self.shared.options).await)?;
        self.land_abandoned().await
    }

    /// Whether this lease may still append: its stream has its owner and its epoch. A silent owner keeps its
    /// lease until another process takes it; a lost, released or pruned lease is never held again.
    ///
    /// The answer is about the moment of asking and permits nothing: another process may take over right
    /// after it. It is for stopping early what would be in vain. The fence is [`append`](Self::append), which
    /// asks for itself.
    pub async fn holds(&self, lease: &Lease) -> Result<bool, Error> {
        with_store!(self, |store| store.holds(lease).await)
    }

    /// What is known of a process by the name in its [`Options`]; nothing of one that closed its journal, or
    /// whose silence is so old that it was forgotten.
    pub async fn sign_of_life(&self, process: &str) -> Result<Option<SignOfLife>, Error> {
        with_store!(self, |store| store.sign_of_life(&self.shared.options, process).await)
    }

    /// Gives a stream back. The lease and its clones are worth nothing afterwards. A lease that was lost
    /// before is no error: its stream stays with its present owner.
    pub async fn release(&self, lease: &Lease) -> Result<(), Error> {
        with_store!(self, |store| store.release(lease).await)?;
        self.unreserve(lease);
        Ok(())
    }

    /// Appends a batch as [`append_shared`](Self::append_shared) does, and returns the number of the stream's
    /// last event now.
    pub async fn append(&self, lease: &Lease, expected: u64, batch: &Batch) -> Result<u64, Error> {
        Ok(self.append_shared(lease, expected, batch).await?.seq)
    }

    /// Appends a batch to the lease's stream: its events after event number `expected` (0 for a new stream),
    /// and in the same transaction its acknowledgements, inputs for other streams, results, summary and
    /// updates of shared streams. Returns the number of the stream's last event now, and the states the
    /// updates led to.
    ///
    /// Fails with [`Error::LostLease`] if the lease has ended, else with [`Error::StaleSequence`] if the
    /// stream's last event is not number `expected`; nothing changes then. An acknowledged input is no longer
    /// in [`inputs`](Self::inputs), and its key stays known; acknowledging twice is acknowledging once. To
    /// put an input back in the queue, a batch submits it to its own stream under a new key. An input whose
    /// key its stream already knows is left out silently, as it is the same input sent again.
    ///
    /// The updates come after that check, in their order, as [`update`](Self::update) says; each sees the
    /// state the one before it has left, be it of this batch or of another. If one of them is declined,
    /// nothing of the batch happens.
    ///
    /// Other appends that are committed together with this one do not affect it otherwise, nor does it affect
    /// them.
    pub async fn append_shared(
        &self,
        lease: &Lease,
        expected: u64,
        batch: &Batch,
    ) -> Result<Appended, Error> {
        text::check_batch(batch)?;
        let appended = with_store!(self, |store| store.append(lease, expected, batch).await)?;
        self.shared.wakers.wake(&lease.stream);
        for update in &batch.updates {
            self.shared.wakers.wake(&update.stream);
        }
        Ok(appended)
    }

    /// Changes a shared stream: calls the function with its state, appends the events after those the stream
    /// has, and keeps and returns the new state. One transaction, no lease; a new stream is made. It should
    /// be a stream without an owner, for an owner would find it moved on.
    ///
    /// Fails with [`Error::Declined`] if the function says so or panics, and nothing changes then.
    pub async fn update(&self, stream: &StreamId, at: u64, change: &Change) -> Result<String, Error> {
        let update = Update { stream: stream.clone(), change: change.clone() };
        let state = with_store!(self, |store| store.update(&update, at).await)?;
        self.shared.wakers.wake(stream);
        Ok(state)
    }

    /// The state of a shared stream, as its last update left it.
    pub async fn shared(&self, stream: &StreamId) -> Result<Option<String>, Error> {
        with_store!(self, |store| store.shared(stream).await)
    }

    /// The events after number `after`, in order and without gaps. A stream that does not exist has none.
    pub async fn load(&self, stream: &StreamId, after: u64) -> Result<Vec<Record>, Error> {
        with_store!(self, |store| store.load(stream, after).await)
    }

    /// The inputs that are not acknowledged, in the order of their arrival. Looking does not consume.
    pub async fn inputs(&self, stream: &StreamId) -> Result<Vec<KeyedInput>, Error> {
        with_store!(self, |store| store.inputs(stream).await)
    }

    /// Waits until there are events after number `after`, and returns them. What this process appends is seen
    /// at once, what others append within a quarter of a second.
    pub async fn tail(&self, stream: &StreamId, after: u64) -> Result<Vec<Record>, Error> {
        let look = || async {
            let records = self.load(stream, after).await?;
            Ok((!records.is_empty()).then_some(records))
        };
        self.shared.wakers.until(stream, look).await
    }

    /// Waits until no flight of this key is under way, in this process or another, and begins one: the right
    /// to be the only one at work on it. To be asked for before work that others may be doing too; the caller
    /// then looks again whether the result is there by now. Keys are any text.
    ///
    /// The flight is a lease and ends like one: when it lands, when the journal is closed, and when its
    /// process is found gone or silent as [`own`](Self::own) says. Then two may be at work, and only one of
    /// them knows; a flight saves work and guards nothing. Waiting in the same process ends at once, across
    /// processes within a quarter of a second. It is no stream of the list, and nothing of it is left when it
    /// has landed.
    pub async fn single_flight(&self, key: &str) -> Result<Flight, Error> {
        let stream = flight::stream(key)?;
        let look = || async {
            let journal = self.clone();
            let stream = stream.clone();
            // In a task of its own, so that a waiter that is dropped amid this drops a flight and not a bare
            // lease.
            let attempt = async move { journal.own(&stream).await.map(|lease| Flight::new(journal, lease)) };
            match tokio::spawn(attempt).await {
                Ok(Ok(flight)) => Ok(Some(flight)),
                Ok(Err(Error::Held { .. })) => Ok(None),
                Ok(Err(error)) => Err(error),
                Err(ended) => {
                    let place = self.shared.location.to_string();
                    Err(Error::Unavailable { place, reason: ended.to_string() })
                }
            }
        };
        self.shared.wakers.until(&stream, look).await
    }

    /// How often this journal has asked its store so far: one for each query and each transaction, however
    /// many rows they are about. What is done for many things at once should not grow with their number.
    pub fn times_asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// The result that was last remembered under this key.
    pub async fn result(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.result_at(key).await?.map(|(json, _)| json))
    }

    /// The result that was last remembered under this key, and the time of the batch it came with.
    pub async fn result_at(&self, key: &str) -> Result<Option<(String, u64)>, Error> {
        with_store!(self, |store| store.result_at(key).await)
    }

    /// The same for any number of keys in one query. A key under which nothing is remembered is not in the
    /// answer.
    pub async fn results_at(&self, keys: &[String]) -> Result<Results, Error> {
        if keys.is_empty() {
            return Ok(Results::new());
        }
        with_store!(self, |store| store.results_at(keys).await)
    }

    /// The streams, newest first (by creation, then by id, descending), with the owners that are alive.
    /// Shared streams are among them; flights are not.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Listing>, Error> {
        with_store!(self, |store| store.list(&self.shared.options, filter).await)
    }

    /// Removes streams with their events, inputs and shared state, and blobs nothing refers to any more.
    /// Streams that a live process owns (this one included) are left alone and named in the answer; streams
    /// that do not exist are passed over. Results stay: see [`forget_results`](Self::forget_results). A
    /// pruned stream's keys are forgotten, so an old input that is sent again makes the stream anew. What is
    /// left of flights whose process is gone goes too.
    pub async fn prune(&self, streams: &[StreamId]) -> Result<Pruned, Error> {
        with_store!(self, |store| store.prune(&self.shared.options, streams).await)
    }

    /// Removes results remembered before a time, and says how many.
    pub async fn forget_results(&self, before: u64) -> Result<u64, Error> {
        with_store!(self, |store| store.forget_results(before).await)
    }

    /// Finishes what is under way, gives up all leases of this process and closes the store; for SQLite the
    /// committer has ended when this returns. Every handle of this journal is closed by it. A journal that is
    /// dropped instead finishes its writes too, but its leases wait to be broken.
    pub async fn close(&self) -> Result<(), Error> {
        with_store!(self, |store| {
            let left = match self.shared.registered.swap(false, Ordering::Relaxed) {
                true => store.leave(&self.shared.options).await,
                false => Ok(()),
            };
            store.close().await.and(left)
        })
    }

    /// Notes that this process is about to have a lease, so that it cannot get two.
    fn reserve(&self, stream: &StreamId) -> Result<Arc<()>, Error> {
        let mut held = self.held();
        if held.get(stream).is_some_and(|token| token.strong_count() > 0) {
            let process = self.shared.options.process.clone();
            let by = Box::new(LiveOwner { process, silent_for: Duration::ZERO });
            return Err(Error::Held { stream: stream.clone(), by });
        }
        held.retain(|_, token| token.strong_count() > 0);
        let token = Arc::new(());
        held.insert(stream.clone(), Arc::downgrade(&token));
        Ok(token)
    }

    /// Notes that a lease has ended, so that this process can have another.
    fn unreserve(&self, lease: &Lease) {
        let mut held = self.held();
        let ours = held.get(&lease.stream).is_some_and(|token| token.as_ptr() == Arc::as_ptr(&lease._token));
        if ours {
            held.remove(&lease.stream);
        }
    }

    /// Ends a flight and lets the next one go.
    pub(crate) async fn land(&self, flight: &Lease) -> Result<(), Error> {
        with_store!(self, |store| store.land(flight).await)?;
        self.unreserve(flight);
        self.shared.wakers.wake(&flight.stream);
        Ok(())
    }

    /// Ends a flight in this process alone. Its row is left for the next heartbeat.
    pub(crate) fn abandon(&self, flight: Lease) {
        self.unreserve(&flight);
        // Without the token, which would count as a live lease.
        let bare = Lease { _token: Arc::default(), ..flight };
        let stream = bare.stream.clone();
        self.abandoned().push(bare);
        self.shared.wakers.wake(&stream);
    }

    async fn land_abandoned(&self) -> Result<(), Error> {
        // One that is looked at stays in the list until it has landed; landing twice is landing once.
        loop {
            let Some(flight) = self.abandoned().last().cloned() else { return Ok(()) };
            self.land(&flight).await?;
            self.abandoned().retain(|other| other.epoch != flight.epoch);
        }
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<Lease>> {
        self.shared.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<StreamId, Weak<()>>> {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
