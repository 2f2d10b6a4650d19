//! The server: a port, the connections on it, and what tests may ask of it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use convoke_claude::Models;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::accounts::{self, Accounts, Bill, RateLimits, SimClock};
use crate::brain::Brain;
use crate::conversation::ConversationNames;
use crate::exchange;
use crate::fault::{Fault, FaultKind, FaultQueue};
use crate::gate::{HoldState, ReplyHold};
use crate::history::Histories;
use crate::received::{Received, Retention};
use crate::rules::EndpointKind;
use crate::script::Script;

/// The largest body the API takes.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// How a [`Simulator`] is to be.
pub struct SimConfig {
    /// What decides the replies.
    pub brain: Arc<dyn Brain>,
    /// Which kind of server is played.
    pub endpoint: EndpointKind,
    /// The models it serves.
    pub models: Models,
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The largest body that is not refused, in bytes.
    pub max_body: usize,
    /// How much of each request is kept.
    pub keep: Retention,
    /// The faults it begins with.
    pub faults: Vec<Fault>,
    /// The clock that cache entries and rate limits go by.
    pub clock: SimClock,
    /// The rate limits; `None`: no limits, and headers that say there is plenty of room.
    pub limits: Option<RateLimits>,
}

impl SimConfig {
    /// Anthropic's API with these replies, on a free port of this machine.
    pub fn new(brain: impl Brain + 'static) -> Self {
        Self {
            brain: Arc::new(brain),
            endpoint: EndpointKind::default(),
            models: Models::builtin(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            max_body: MAX_BODY,
            keep: Retention::default(),
            faults: Vec::new(),
            clock: SimClock::default(),
            limits: None,
        }
    }

    /// The same, playing another kind of server.
    #[must_use]
    pub fn endpoint(mut self, endpoint: EndpointKind) -> Self {
        self.endpoint = endpoint;
        self
    }
}

impl From<Script> for SimConfig {
    fn from(script: Script) -> Self {
        let faults = script.faults.clone();
        Self { faults, ..Self::new(script) }
    }
}

/// A running Messages API server. It ends, with every connection, when it is dropped.
pub struct Simulator {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Simulator {
    /// Starts a server.
    pub async fn start(config: impl Into<SimConfig>) -> io::Result<Self> {
        let config = config.into();
        let listener = TcpListener::bind(config.listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(config));
        let server = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server })
    }

    /// The base URL, without a slash at its end; the API is at `/v1/messages` below it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock(&self.shared.log).clone()
    }

    /// Waits until there have been this many requests, and gives them back. How long to wait at most is the
    /// caller's to say.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Received> {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.shared.arrived.subscribe().wait_for(|arrived| *arrived >= count).await;
        self.requests()
    }

    /// What all requests so far cost, by the simulator's own count and arithmetic.
    pub fn bill(&self) -> Bill {
        let accounts = self.shared.lock(&self.shared.accounts);
        accounts::bill(accounts.entries(), &self.shared.config.models)
    }

    /// Sets other rate limits from now on. Their buckets are full; requests under way go on counting as
    /// running.
    pub fn set_limits(&self, limits: Option<RateLimits>) {
        let now = self.shared.config.clock.now();
        self.shared.lock(&self.shared.accounts).limit(limits, now);
    }

    /// Asks for a fault. Faults are used in the order they were asked for, by legal requests that fit them,
    /// one each.
    pub fn push_fault(&self, fault: Fault) {
        self.shared.lock(&self.shared.faults).push(fault);
    }

    /// How many of the faults asked for have not been used up.
    pub fn faults_left(&self) -> usize {
        self.shared.lock(&self.shared.faults).len()
    }

    /// Holds the next reply of this conversation at this position, once it has sent `after` events (at most
    /// all but the last).
    pub fn hold(&self, conversation: &str, position: usize, after: usize) -> ReplyHold {
        let state = HoldState::new(conversation, position, after);
        self.shared.lock(&self.shared.holds).push(Arc::clone(&state));
        ReplyHold::new(state)
    }

    /// Ends the server and cuts its connections.
    pub async fn shutdown(mut self) {
        self.server.abort();
        // An aborted task ends in an error, which is what was asked for.
        let _ = (&mut self.server).await;
    }

    /// Serves until the server fails or is shut down, for a program that does nothing else.
    pub async fn run(mut self) {
        let _ = (&mut self.server).await;
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) config: SimConfig,
    pub(crate) histories: Mutex<Histories>,
    pub(crate) accounts: Mutex<Accounts>,
    log: Mutex<Vec<Received>>,
    arrived: watch::Sender<usize>,
    faults: Mutex<FaultQueue>,
    holds: Mutex<Vec<Arc<HoldState>>>,
}

impl Shared {
    fn new(mut config: SimConfig) -> Self {
        let mut faults = FaultQueue::default();
        std::mem::take(&mut config.faults).into_iter().for_each(|fault| faults.push(fault));
        let mut accounts = Accounts::default();
        accounts.limit(config.limits, config.clock.now());
        Self {
            config,
            histories: Mutex::default(),
            accounts: Mutex::new(accounts),
            log: Mutex::default(),
            arrived: watch::channel(0).0,
            faults: Mutex::new(faults),
            holds: Mutex::default(),
        }
    }

    /// A lock that a panic elsewhere does not spoil: every critical section here leaves its data whole.
    pub(crate) fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a request down under the next number, and wakes waiting tests once `then` is done with it.
    pub(crate) fn record(&self, mut received: Received, then: impl FnOnce(usize)) {
        let mut log = self.lock(&self.log);
        let index = log.len();
        received.index = index;
        log.push(received);
        drop(log);
        then(index);
        self.arrived.send_modify(|arrived| *arrived = (*arrived).max(index + 1));
    }

    /// Adds to what was written down about a request.
    pub(crate) fn update(&self, index: usize, change: impl FnOnce(&mut Received)) {
        if let Some(received) = self.lock(&self.log).get_mut(index) {
            change(received);
        }
    }

    pub(crate) fn take_fault(&self, place: &ConversationNames) -> Option<FaultKind> {
        self.lock(&self.faults).take(place)
    }

    /// The holds that catch a reply at this place; each catches only one.
    pub(crate) fn take_holds(&self, place: &ConversationNames) -> Vec<Arc<HoldState>> {
        self.lock(&self.holds).extract_if(.., |hold| hold.fits(place)).collect()
    }
}

/// Takes connections until it is aborted; the set of them goes with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&shared)))),
                // Out of file descriptors, most likely: others may become free.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Small events must leave at once, as they do from the real API.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let shared = Arc::clone(&shared);
        async move { answer(request.map(Body::new), shared).await }
    });
    // A connection that ends in an error was cut by one of the two sides; both know.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// A response, or an error that makes the server drop the connection without one.
async fn answer(request: Request, shared: Arc<Shared>) -> io::Result<Response> {
    let cut = || io::Error::new(io::ErrorKind::ConnectionAborted, "cut on demand");
    exchange::answer(request, shared).await.ok_or_else(cut)
}
