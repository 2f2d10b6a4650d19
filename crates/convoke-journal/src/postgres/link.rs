//! The connections to a server that may go away for a while: a bounded pool, how long is waited for the
//! server, and what is told of it meanwhile.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime as PoolRuntime,
};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::{Config, NoTls};

use super::fault::{Fault, words};
use super::schema;
use crate::{Error, Location, Options, Outage};

/// How long one try to connect may take, unless the URL says otherwise.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server that does not even acknowledge packets is waited for, unless the URL says otherwise.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a server may take over one operation before it counts as one that does not answer.
const SLOW: Duration = Duration::from_secs(5);
/// The pause before an operation is tried again at all, and the longest pause between two tries to connect.
const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(1);

/// The connections of one store.
pub(super) struct Link {
    pool: Pool,
    pub(super) place: String,
    /// How long the server may be away.
    limit: Duration,
    outage: watch::Sender<Option<Outage>>,
    /// Of many operations that wait for the server, one at a time tries to reach it.
    turn: Mutex<()>,
}

/// One operation's patience.
#[derive(Default)]
pub(super) struct Waiting {
    /// When it lost its first connection.
    since: Option<Instant>,
    tries: u32,
}

impl Link {
    /// Prepares the pool; nothing is connected yet.
    pub(super) fn new(url: &str, options: &Options) -> Result<Self, Error> {
        let place = Location::Postgres(url.to_owned()).to_string();
        let bad = |reason: String| Error::BadLocation { given: place.clone(), reason };
        let mut config: Config = url.parse().map_err(|error| bad(words(&error)))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE).keepalives_idle(SILENCE);
        }
        let manager =
            Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let session = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
            Box::pin(async move { client.batch_execute(schema::SESSION).await.map_err(HookError::Backend) })
        });
        let connections = options.connections.max(1);
        let pool =
            Pool::builder(manager).max_size(connections).runtime(PoolRuntime::Tokio1).post_create(session);
        let pool = pool.build().map_err(|error| bad(error.to_string()))?;
        Ok(Self {
            pool,
            place,
            limit: options.outage,
            outage: watch::channel(None).0,
            turn: Mutex::default(),
        })
    }

    /// A connection, tried for once. An operation has one at a time and never waits for a second, so that a
    /// pool of any size is enough.
    pub(super) async fn client(&self) -> Result<Object, Fault> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                Fault::from(error)
            }
            PoolError::Closed => Fault::Told(self.unavailable("it is closed".to_owned())),
            error => Fault::Told(self.unavailable(error.to_string())),
        })
    }

    /// What is told of an outage.
    pub(super) fn outage(&self) -> watch::Receiver<Option<Outage>> {
        self.outage.subscribe()
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }

    /// How long the server may be away.
    pub(super) fn limit(&self) -> Option<Duration> {
        Some(self.limit)
    }

    /// Waits for one try of an operation, but no longer than `limit`: a server that has it and says nothing
    /// is away too.
    pub(super) async fn answer<T>(
        &self,
        limit: Option<Duration>,
        attempt: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let Some(limit) = limit else { return attempt.await };
        let began = Instant::now();
        let mut attempt = std::pin::pin!(attempt);
        if let Ok(done) = timeout_at(began + SLOW.min(limit), &mut attempt).await {
            return done;
        }
        let silent = "it does not answer";
        self.falters(began, silent);
        match timeout_at(began + limit, attempt).await {
            Ok(done) => done,
            Err(_) => Err(Fault::Lost(silent.to_owned())),
        }
    }

    /// The server has answered.
    pub(super) fn answers(&self) {
        self.outage.send_if_modified(|outage| outage.take().is_some());
    }

    /// A connection was lost: waits until it is worth trying again, or says that it has been waited for long
    /// enough.
    pub(super) async fn again(&self, waiting: &mut Waiting, why: String) -> Result<(), Error> {
        let now = Instant::now();
        let first = *waiting.since.get_or_insert(now);
        let since = self.falters(first, &why).min(first);
        let until = since + self.limit;
        waiting.tries = waiting.tries.saturating_add(1);
        if now >= until {
            let tried = (now - since).as_secs();
            let resume = "look whether the server runs, then resume";
            return Err(
                self.unavailable(format!("{why}; tried again for {tried} s, then given up: {resume}"))
            );
        }
        // Also a server that answers others: what it does to this operation alone must not be done without a
        // pause.
        sleep(jittered(SHORT * waiting.tries.min(8)).min(until - now)).await;
        let mut outage = self.outage.subscribe();
        let up = |outage: &Option<Outage>| outage.is_none();
        if up(&outage.borrow()) || waiting.tries == 1 {
            return Ok(());
        }
        let pause = jittered((SHORT * 2u32.saturating_pow(waiting.tries.min(8))).min(LONG));
        let turn = async {
            let _turn = self.turn.lock().await;
            sleep(pause).await;
        };
        tokio::select! {
            _ = timeout_at(until, turn) => {}
            _ = outage.wait_for(up) => {}
        }
        Ok(())
    }

    /// Notes that the server does not answer, and since when.
    fn falters(&self, since: Instant, why: &str) -> Instant {
        let mut began = since;
        self.outage.send_modify(|outage| {
            began = outage.as_ref().map_or(since, |outage| outage.since);
            *outage = Some(Outage { since: began, reason: why.to_owned() });
        });
        began
    }

    pub(super) fn unavailable(&self, reason: String) -> Error {
        Error::Unavailable { place: self.place.clone(), reason }
    }
}

/// Between half of a pause and all of it, so that operations that were
/// cut off together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let drawn = (RandomState::new().hash_one(0) % 1000) as u32;
    pause / 2 + pause / 2 * drawn / 1000
}
