//! The host's side of asking before a command writes: what is asked, who answers, and the task that carries
//! questions and answers between a helper and the one who answers. It runs for as long as the shell lives,
//! whether a command runs or not, because a background job writes too.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Debug;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use crate::error::Error;
use crate::wire::{self, Answer, Decoder, Question};

/// Asked before a command begins to write a file; the command waits for the answer.
pub trait WriteGate: Debug + Send + Sync {
    /// Returns when all of these places may be written. Several may be asked for at the same time, and each is
    /// answered for itself. The future is dropped when what wanted to write has been ended, and when the
    /// shell ends.
    fn before_write(&self, paths: Vec<WritePath>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A place that is about to be written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WritePath {
    /// Relative to the workspace. Empty stands for the workspace itself: a process that cannot be looked into
    /// is about to write something, and what that is cannot be told.
    pub path: PathBuf,
    /// With everything below it: a directory that is new or moved.
    pub whole: bool,
}

/// The task that answers one helper. Dropping it ends the helper, so it lives as long as the shell.
#[derive(Debug)]
pub(crate) struct Answering(JoinHandle<()>);

impl Answering {
    /// Answers what comes through this socket as the gate says.
    pub(crate) fn begin(socket: OwnedFd, gate: Arc<dyn WriteGate>) -> Result<Self, Error> {
        let watching = Error::system("watching a socket");
        let socket = StdUnixStream::from(socket);
        let socket =
            socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket)).map_err(watching)?;
        let (reader, writer) = socket.into_split();
        let (answered, answers) = unbounded_channel();
        // Reading never waits for an answer or for room to write one: the helper, which has one thread, would
        // be held up.
        Ok(Self(tokio::spawn(async move {
            tokio::select! {
                () = hear(reader, gate, answered) => {}
                () = tell(writer, answers) => {}
            }
        })))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Takes questions until the helper has ended. All that is still open then is dropped.
async fn hear(mut reader: OwnedReadHalf, gate: Arc<dyn WriteGate>, answered: UnboundedSender<u64>) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 16 * 1024];
    let mut open = JoinSet::new();
    let mut handles: HashMap<u64, AbortHandle> = HashMap::new();
    loop {
        let read = tokio::select! {
            read = reader.read(&mut buffer) => read,
            Some(ended) = open.join_next() => match ended {
                Ok(id) => {
                    handles.remove(&id);
                    continue;
                }
                Err(error) if error.is_cancelled() => continue,
                // A gate that fails gives no leave: with the socket the helper ends, and nothing is written.
                Err(_) => return,
            },
        };
        match read {
            Ok(count) if count > 0 => decoder.feed(&buffer[..count]),
            _ => return,
        }
        loop {
            match decoder.next() {
                Ok(Some(Question::Ask { id, places })) => {
                    let asked = gate.before_write(places.into_iter().map(place).collect());
                    let answered = answered.clone();
                    let handle = open.spawn(async move {
                        asked.await;
                        // The end of the other half ends this one too.
                        let _ = answered.send(id);
                        id
                    });
                    handles.insert(id, handle);
                }
                Ok(Some(Question::Withdraw { id })) => {
                    if let Some(handle) = handles.remove(&id) {
                        handle.abort();
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// Passes answers on until the helper has ended.
async fn tell(mut writer: OwnedWriteHalf, mut answers: UnboundedReceiver<u64>) {
    while let Some(id) = answers.recv().await {
        let Ok(bytes) = wire::encode(&Answer { id }) else { return };
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

fn place((path, whole): (Vec<u8>, bool)) -> WritePath {
    WritePath { path: PathBuf::from(OsString::from_vec(path)), whole }
}
