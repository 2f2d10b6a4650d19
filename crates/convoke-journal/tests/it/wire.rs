//! A wire between a journal and a PostgreSQL server, which a test can cut: at a commit, at any message, or
//! altogether.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_postgres::config::Host;

use crate::world::Database;

/// What the wire does to what a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Carries,
    /// Cuts the connection at a COMMIT that the server has not heard, so many times.
    CutsBefore(usize),
    /// Cuts the connection when the server has answered a COMMIT, so many times.
    CutsAfter(usize),
    /// Carries this many more messages and cuts at the next one, before the server has heard it; then it
    /// carries.
    CutsAt(usize),
    /// The same, but the server hears that message, and its answer gets lost.
    CutsBehind(usize),
    /// Cuts every connection, new ones too.
    IsDown,
}

pub(crate) struct Proxy {
    pub(crate) url: String,
    mode: Arc<Mutex<Wire>>,
    down: watch::Sender<bool>,
    _dir: tempfile::TempDir,
    _accepting: tokio::task::JoinSet<()>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

async fn server(config: &tokio_postgres::Config) -> Option<Box<dyn Stream>> {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    Some(match &config.get_hosts()[0] {
        Host::Unix(dir) => Box::new(UnixStream::connect(dir.join(format!(".s.PGSQL.{port}"))).await.ok()?),
        Host::Tcp(host) => Box::new(TcpStream::connect((host.as_str(), port)).await.ok()?),
    })
}

impl Proxy {
    pub(crate) async fn start(database: &Database) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let listener = UnixListener::bind(dir.path().join(".s.PGSQL.5432")).unwrap();
        let config: tokio_postgres::Config = database.url.parse().unwrap();
        let user = config.get_user().unwrap();
        let name = config.get_dbname().unwrap();
        let url = format!("postgres://{user}@/{name}?host={}", dir.path().display());
        let mode = Arc::new(Mutex::new(Wire::Carries));
        let (down, cut) = watch::channel(false);
        let seen = Arc::clone(&mode);
        let mut accepting = tokio::task::JoinSet::new();
        accepting.spawn(async move {
            let mut wires = tokio::task::JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let Some(server) = server(&config).await else { continue };
                let mode = Arc::clone(&seen);
                let mut cut = cut.clone();
                wires.spawn(async move {
                    tokio::select! {
                        () = carry(client, server, mode) => {}
                        _ = cut.wait_for(|down| *down) => {}
                    }
                });
            }
        });
        Self { url, mode, down, _dir: dir, _accepting: accepting }
    }

    pub(crate) fn set(&self, wire: Wire) {
        *self.mode.lock().unwrap() = wire;
        self.down.send_replace(wire == Wire::IsDown);
    }

    /// What the wire will do next. One that was to cut and carries has done so.
    pub(crate) fn mode(&self) -> Wire {
        *self.mode.lock().unwrap()
    }
}

/// Whether a message is carried to the server, and whether its answer comes back.
fn fate(mode: &Mutex<Wire>, commits: bool) -> (bool, bool) {
    let mut mode = mode.lock().unwrap();
    let (fate, next) = match *mode {
        Wire::Carries => ((true, true), Wire::Carries),
        Wire::IsDown => ((false, false), Wire::IsDown),
        Wire::CutsBefore(0) | Wire::CutsAfter(0) => ((true, true), Wire::Carries),
        Wire::CutsBefore(n) if commits => ((false, false), Wire::CutsBefore(n - 1)),
        Wire::CutsAfter(n) if commits => ((true, false), Wire::CutsAfter(n - 1)),
        Wire::CutsBefore(_) | Wire::CutsAfter(_) => ((true, true), *mode),
        Wire::CutsAt(0) => ((false, false), Wire::Carries),
        Wire::CutsBehind(0) => ((true, false), Wire::Carries),
        Wire::CutsAt(n) => ((true, true), Wire::CutsAt(n - 1)),
        Wire::CutsBehind(n) => ((true, true), Wire::CutsBehind(n - 1)),
    };
    *mode = next;
    fate
}

async fn carry(mut client: UnixStream, mut server: Box<dyn Stream>, mode: Arc<Mutex<Wire>>) {
    let mut said = vec![0; 1 << 16];
    let mut heard = vec![0; 1 << 16];
    loop {
        tokio::select! {
            n = client.read(&mut said) => {
                let Ok(n @ 1..) = n else { return };
                let commits = said[..n].windows(7).any(|window| window == b"COMMIT\0");
                let (arrives, answered) = fate(&mode, commits);
                if !arrives || server.write_all(&said[..n]).await.is_err() {
                    return;
                }
                if !answered {
                    // The answer was given, and it reaches no caller.
                    let _ = server.read(&mut heard).await;
                    return;
                }
            }
            n = server.read(&mut heard) => {
                let Ok(n @ 1..) = n else { return };
                if client.write_all(&heard[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}
