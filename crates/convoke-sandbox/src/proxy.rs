//! The one way out of a sandbox whose network is a list of hosts: an HTTP proxy for CONNECT and for plain
//! requests. It looks at names and addresses, never into what is encrypted, and connects to no address that
//! it has not checked. What an allowed host does with a request is that host's affair.

mod allow;
mod head;
mod pump;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use allow::{AllowList, Permission};
use head::{Answer, HEAD_CAP, Request, Target};

pub use allow::check_host;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
struct Timing {
    /// Until the head of a request is whole.
    head: Duration,
    /// To find the addresses of a name, and to connect to one of them.
    connect: Duration,
    /// Without a byte in either direction.
    idle: Duration,
    /// For the client to take an answer of ours.
    farewell: Duration,
}

const TIMING: Timing = Timing {
    head: Duration::from_secs(20),
    connect: Duration::from_secs(20),
    idle: Duration::from_secs(600),
    farewell: Duration::from_secs(2),
};

/// Connections at one time; more wait to be accepted.
const CONNECTIONS: usize = 256;

/// Serves the listener until the future is dropped, and every connection ends with it.
///
/// `allowed` are patterns as [`check_host`] takes them; others allow nothing. `refused` is told of everything
/// that was turned away, in the words that would allow it: `host`, or `host:port` for an unusual port.
pub async fn serve(listener: TcpListener, allowed: Vec<String>, refused: impl Fn(&str)) {
    serve_within(listener, allowed, refused, TIMING).await;
}

async fn serve_within(listener: TcpListener, allowed: Vec<String>, refused: impl Fn(&str), timing: Timing) {
    let allowed = Arc::new(AllowList::new(&allowed));
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let (tell, mut told) = mpsc::channel::<RefusedHost>(64);
    // Dropping the set ends every connection.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept(&listener, &room) => {
                if let Some((client, permit)) = accepted {
                    let allowed = Arc::clone(&allowed);
                    let tell = tell.clone();
                    connections.spawn(async move {
                        let _permit = permit;
                        Connection { client, allowed, tell, timing }.serve().await;
                    });
                }
            }
            Some((host, heard)) = told.recv() => {
                refused(&host);
                // The connection that told it may have ended meanwhile.
                let _ = heard.send(());
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((client, _)) => Some((client, permit)),
        Err(_) => {
            // Most likely there are no descriptors left, which passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// A host that was refused, and where to say that it has been noted.
type RefusedHost = (String, oneshot::Sender<()>);

/// One client.
struct Connection {
    client: TcpStream,
    allowed: Arc<AllowList>,
    tell: mpsc::Sender<RefusedHost>,
    timing: Timing,
}

impl Connection {
    /// Serves one request. Its connection is not used for another, which could be meant for another host.
    async fn serve(mut self) {
        let (request, rest) = match timeout(self.timing.head, self.read_head()).await {
            Ok(Ok(Some(read))) => read,
            // The client went away before it had asked for anything.
            Ok(Ok(None)) => return,
            Ok(Err(answer)) => return self.answer(answer).await,
            Err(_) => return self.answer(Answer::too_slow()).await,
        };
        let upstream = match self.connect(&request.target).await {
            Ok(upstream) => upstream,
            Err(answer) => return self.answer(answer).await,
        };
        // Small writes are to go out at once in both directions, as they came; where that cannot be had they
        // go out later.
        drop((self.client.set_nodelay(true), upstream.set_nodelay(true)));
        let idle = self.timing.idle;
        // Both ends of a connection see how it ends, and no other part needs to know.
        match request.forward {
            None => {
                if self.client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_ok() {
                    pump::tunnel(self.client, upstream, &rest, idle).await;
                }
            }
            Some(forward) => pump::exchange(self.client, upstream, &forward, &rest, idle).await,
        }
    }

    /// Reads until the head is whole. The rest is what came behind it.
    async fn read_head(&mut self) -> Result<Option<(Request, Vec<u8>)>, Answer> {
        let mut bytes = Vec::with_capacity(4096);
        loop {
            let before = bytes.len();
            let room = HEAD_CAP + 1 - before;
            match (&mut self.client).take(room as u64).read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
            if let Some((request, length)) = head::parse(&bytes)? {
                let rest = bytes.split_off(length);
                return Ok(Some((request, rest)));
            }
            if bytes.len() > HEAD_CAP {
                return Err(Answer::too_long());
            }
        }
    }

    /// Connects to an address of the target that may be connected to. The name is looked up once, so that the
    /// address that was checked is the one that is used.
    async fn connect(&self, target: &Target) -> Result<TcpStream, Answer> {
        let permission = self.allowed.permission(&target.host, target.port);
        if permission == Permission::None {
            return Err(self.refuse(target, Answer::not_allowed(target)).await);
        }
        let found = match target.host.parse() {
            Ok(address) => vec![SocketAddr::new(address, target.port)],
            Err(_) => {
                match timeout(self.timing.connect, tokio::net::lookup_host((&*target.host, target.port)))
                    .await
                {
                    Ok(Ok(found)) => found.collect(),
                    Ok(Err(error)) => {
                        return Err(Answer::unreachable(
                            target,
                            &format!("its name was not found ({error})"),
                        ));
                    }
                    Err(_) => return Err(Answer::unreachable(target, "its name was not found in time")),
                }
            }
        };
        let usable: Vec<SocketAddr> =
            found.iter().copied().filter(|address| self.allowed.may_reach(permission, *address)).collect();
        if usable.is_empty() && !found.is_empty() {
            return Err(self.refuse(target, Answer::internal_address(target, found[0].ip())).await);
        }
        let mut problem = "its name has no address".to_owned();
        for address in usable {
            match timeout(self.timing.connect, TcpStream::connect(address)).await {
                Ok(Ok(upstream)) => return Ok(upstream),
                Ok(Err(error)) => problem = error.to_string(),
                Err(_) => problem = "it did not answer in time".to_owned(),
            }
        }
        Err(Answer::unreachable(target, &problem))
    }

    async fn refuse(&self, target: &Target, answer: Answer) -> Answer {
        // The refusal is noted here before the client knows it, and so before the client's command can have
        // ended. Sending fails only when the proxy is about to end.
        let (heard, known) = oneshot::channel();
        if self.tell.send((target.pattern(), heard)).await.is_ok() {
            drop(known.await);
        }
        answer
    }

    /// Answers for ourselves and hangs up, but not before the client has had time to read: what it still
    /// sends would otherwise take our answer away from it.
    async fn answer(mut self, answer: Answer) {
        let farewell = async {
            self.client.write_all(answer.to_http().as_bytes()).await?;
            self.client.shutdown().await?;
            let mut ignored = [0; 4096];
            while self.client.read(&mut ignored).await? > 0 {}
            std::io::Result::Ok(())
        };
        // Whether the client cared to read it is its own affair.
        drop(timeout(self.timing.farewell, farewell).await);
    }
}
