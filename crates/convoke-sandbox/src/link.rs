//! The link to one helper: the socket to it, frames both ways and the descriptors that come with them. It
//! knows the order of the first frames and nothing of commands.

use std::collections::BTreeMap;
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

use crate::error::Error;
use crate::process::Process;
use crate::shell::HelperPath;
use crate::sys;
use crate::wire::{self, Confine, Decoder, Form, FromHelper, HoldChoice, ProcessHold, ShellSetup, ToHelper};

/// How long the helper may take to start, to end, or to end a command, before it is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// How the helper stands when it is confined.
#[derive(Debug)]
pub(crate) struct Confined {
    pub(crate) tree: String,
    pub(crate) proxy: Option<u16>,
    pub(crate) form: Form,
    /// The tree as it is seen from inside.
    pub(crate) root: OwnedFd,
    pub(crate) listener: Option<OwnedFd>,
}

/// The helper and the socket to it. When the socket closes the helper ends, so dropping this is enough.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) helper: Process,
    socket: UnixStream,
    decoder: Decoder,
    received: Vec<OwnedFd>,
}

impl Link {
    pub(crate) fn open(
        path: &HelperPath,
        env: &BTreeMap<String, String>,
        output: Stdio,
    ) -> Result<Self, Error> {
        let (ours, theirs) = StdUnixStream::pair().map_err(Error::system("making a socket"))?;
        let helper = Command::new(&path.program)
            .args(&path.args)
            .env_clear()
            .envs(env)
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| Error::HelperStart { program: path.program.clone(), source })?;
        Self::to(Process::Started(helper), ours)
    }

    /// The link to a process that has the other end of this socket.
    pub(crate) fn to(helper: Process, socket: StdUnixStream) -> Result<Self, Error> {
        let watching = Error::system("watching a socket");
        let socket =
            socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket)).map_err(watching)?;
        Ok(Self { helper, socket, decoder: Decoder::default(), received: Vec::new() })
    }

    /// Begins, and hears which hold was reached and how the helper stands if it was to be confined.
    pub(crate) async fn begin(
        &mut self,
        hold: HoldChoice,
        shell: Option<ShellSetup>,
        confine: Option<Confine>,
    ) -> Result<(ProcessHold, Option<Confined>), Error> {
        let confined = confine.is_some();
        self.say(&ToHelper::Begin { hold, shell, confine: confine.map(Box::new) }).await?;
        let hold = match self.hear().await? {
            FromHelper::Hello { hold } => hold,
            other => return Err(unexpected(&other)),
        };
        if !confined {
            return Ok((hold, None));
        }
        match self.hear().await? {
            FromHelper::Confined { tree, proxy, form } => {
                let mut received = std::mem::take(&mut self.received).into_iter();
                let root = received
                    .next()
                    .ok_or(Error::Protocol { problem: "the tree's handle is missing".to_owned() })?;
                Ok((hold, Some(Confined { tree, proxy, form, root, listener: received.next() })))
            }
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn say(&mut self, frame: &ToHelper) -> Result<(), Error> {
        let bytes = wire::encode(frame).map_err(|problem| Error::Protocol { problem })?;
        match self.socket.write_all(&bytes).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended().await),
        }
    }

    /// The same with descriptors, for a frame that is small.
    pub(crate) async fn say_with(
        &mut self,
        frame: &ToHelper,
        descriptors: &[std::os::fd::BorrowedFd<'_>],
    ) -> Result<(), Error> {
        let bytes = wire::encode(frame).map_err(|problem| Error::Protocol { problem })?;
        loop {
            self.socket.writable().await.map_err(Error::system("waiting for the helper"))?;
            let socket = &self.socket;
            let send = || sys::send_with_descriptors(socket.as_fd(), &bytes, descriptors);
            match socket.try_io(Interest::WRITABLE, send) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(self.ended().await),
            }
        }
    }

    /// The descriptors that have come and were not taken yet.
    pub(crate) fn take_received(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.received)
    }

    /// A second handle of the socket, to send one frame while no command runs.
    pub(crate) fn aside(&self) -> Result<StdUnixStream, Error> {
        self.socket
            .as_fd()
            .try_clone_to_owned()
            .map(StdUnixStream::from)
            .map_err(Error::system("sharing a socket"))
    }

    /// The next frame. May be dropped and called again without losing anything.
    pub(crate) async fn hear(&mut self) -> Result<FromHelper, Error> {
        let mut buffer = [0; 8 * 1024];
        loop {
            match self.decoder.next().map_err(|problem| Error::Protocol { problem })? {
                Some(FromHelper::Fatal { message }) => return Err(Error::HelperRefused { message }),
                Some(frame) => return Ok(frame),
                None => {}
            }
            self.socket.readable().await.map_err(Error::system("waiting for the helper"))?;
            let socket = &self.socket;
            match socket.try_io(Interest::READABLE, || sys::receive(socket.as_fd(), &mut buffer)) {
                Ok((count, received)) if count > 0 => {
                    self.decoder.feed(&buffer[..count]);
                    self.received.extend(received);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Err(self.ended().await),
            }
        }
    }

    /// The helper has closed its socket; says how it ended.
    async fn ended(&mut self) -> Error {
        let status = match timeout(Duration::from_secs(1), self.helper.wait()).await {
            Ok(Ok(status)) => status,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it still runs".to_owned(),
        };
        Error::HelperEnded { status }
    }

    pub(crate) fn kill(&mut self) {
        self.helper.kill();
    }

    pub(crate) async fn close(self) -> Result<(), Error> {
        let Self { mut helper, socket, .. } = self;
        drop(socket);
        match timeout(PATIENCE, helper.wait()).await {
            Ok(status) => status.map(drop).map_err(Error::system("waiting for the helper")),
            Err(_) => {
                helper.kill();
                Err(Error::HelperSilent { waited: PATIENCE })
            }
        }
    }
}

/// Waits for an answer, but not for ever.
pub(crate) async fn patient<T>(
    waited: Duration,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(waited, answer).await.unwrap_or(Err(Error::HelperSilent { waited }))
}

/// The error for a frame that was not asked for.
pub(crate) fn unexpected(frame: &FromHelper) -> Error {
    let name = match frame {
        FromHelper::Hello { .. } => "hello",
        FromHelper::Confined { .. } => "confined",
        FromHelper::Ready { .. } => "ready",
        FromHelper::Finished { .. } => "finished",
        FromHelper::Prepared => "prepared",
        FromHelper::Forked => "forked",
        FromHelper::Fatal { .. } => "fatal",
    };
    Error::Protocol { problem: format!("`{name}` came out of turn") }
}
