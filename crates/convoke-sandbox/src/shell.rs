//! The host's side of a shell: starting its helper, running commands, reading their output, stopping. All time limits
//! are kept here; what they mean for an agent is the caller's to say.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;
use crate::output::{Captured, OutputSpec, Sink};
use crate::state::{ShellState, with_defaults};
use crate::sys;
use crate::wire::{self, Decoder, FromHelper, Hold, HoldChoice, ShellSetup, ToHelper};

/// How long the helper may take to start, to end, or to end a command, before it is given up.
const PATIENCE: Duration = Duration::from_secs(15);

/// Room for a background job's output between two commands, so that it is not held up at once.
const PIPE_BYTES: i32 = 1024 * 1024;

/// One read of output.
const CHUNK: usize = 64 * 1024;

/// JSON may need six bytes for one, so this always fits into a frame.
const MAX_COMMAND: usize = wire::MAX_FRAME / 8;

/// The executable to start as a helper, and its first arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperPath {
    /// An executable that calls [`crate::helper_entry`] first in its `main`.
    pub program: PathBuf,
    /// What makes it a helper; [`crate::HELPER_ARGUMENT`] for ours.
    pub args: Vec<OsString>,
}

impl HelperPath {
    /// The executable with the usual argument.
    pub fn new(program: PathBuf) -> Self {
        Self { program, args: vec![crate::HELPER_ARGUMENT.into()] }
    }
}

/// How to start a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellConfig {
    /// The helper.
    pub helper: HelperPath,
    /// The directory to begin in.
    pub cwd: PathBuf,
    /// The whole environment of the helper and the shell, plus `PAGER`, `GIT_PAGER`, `TERM` and `GIT_TERMINAL_PROMPT` where
    /// they are not given. What may be in it is the caller's decision.
    pub env: BTreeMap<String, String>,
    /// What an earlier shell left off with.
    pub restored: Option<ShellState>,
    /// Which hold to try for.
    pub hold: HoldChoice,
}

/// How a shell began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The directory it began in.
    pub cwd: PathBuf,
    /// The restored directory, if it no longer exists and `cwd` stands in for it.
    pub missing_cwd: Option<PathBuf>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCommand {
    /// The text, as for `bash -c`.
    pub command: String,
    /// How long it may take.
    pub deadline: Duration,
    /// What to keep of its output.
    pub output: OutputSpec,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code; 128 and the signal if one killed it.
    Exited(i32),
    /// It and all it had started was killed at its deadline.
    DeadlinePassed,
    /// It and all it had started was killed because the caller wished so.
    Cancelled,
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// What it printed until then.
    pub output: Captured,
    /// The shell's directory and variables after it.
    pub state: ShellState,
    /// Why functions and unexported variables are gone from here on, if they are: the command ended the shell, and the
    /// next one gets a new shell with `state`.
    pub shell_replaced: Option<String>,
}

/// The long-lived shell of one agent. Dropping it kills everything below it.
#[derive(Debug)]
pub struct Shell {
    link: Link,
    output: pipe::Receiver,
    given: BTreeMap<String, String>,
    state: ShellState,
    opening: Opening,
    hold: Hold,
    last_id: u64,
    /// A command whose `run` was dropped half-way.
    unfinished: Option<u64>,
}

impl Shell {
    /// Starts a helper and its shell.
    pub async fn start(config: ShellConfig) -> Result<Self, Error> {
        if !config.cwd.is_dir() {
            return Err(Error::NoDirectory { path: config.cwd });
        }
        let given = with_defaults(config.env);
        let env = config.restored.as_ref().map_or_else(|| given.clone(), |state| state.over(&given));
        for env in [&given, &env] {
            if env.iter().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
                return Err(Error::NulByte { what: "the environment" });
            }
        }
        let (reader, writer) = std::io::pipe().map_err(Error::system("making a pipe"))?;
        sys::enlarge_pipe(reader.as_fd(), PIPE_BYTES);
        let mut link = Link::open(&config.helper, &given, Stdio::from(OwnedFd::from(writer)))?;
        let output = pipe::Receiver::from_owned_fd(reader.into()).map_err(Error::system("watching a pipe"))?;
        let setup = ShellSetup {
            cwd: config.restored.as_ref().map_or_else(|| config.cwd.clone(), |state| state.cwd.clone()),
            fallback_cwd: config.cwd,
            env: env.clone(),
        };
        let begin = async {
            let hold = link.begin(config.hold, Some(setup)).await?;
            match link.hear().await? {
                FromHelper::Ready { cwd, missing_cwd } => {
                    Ok((hold, Opening { cwd: cwd.into(), missing_cwd: missing_cwd.map(PathBuf::from) }))
                }
                other => Err(unexpected(&other)),
            }
        };
        let (hold, opening) = patient(begin).await?;
        let state = ShellState::between(opening.cwd.clone(), &given, &env);
        Ok(Self { link, output, given, state, opening, hold, last_id: 0, unfinished: None })
    }

    /// How surely everything dies with the helper.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// How the shell began.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// The directory and the exported variables after the last command.
    pub fn state(&self) -> &ShellState {
        &self.state
    }

    /// The process id of the helper, while it runs.
    pub fn helper_pid(&self) -> Option<u32> {
        self.link.helper.id()
    }

    /// Runs one command to its end, its deadline, or until `cancel` is ready, whichever comes first.
    ///
    /// But for a command that is refused ([`Error::NulByte`], [`Error::CommandTooLong`]), an error means that the shell is
    /// gone. If the future is dropped, the command is ended before the next one starts.
    pub async fn run(&mut self, command: RunCommand, cancel: impl Future<Output = ()>) -> Result<Finished, Error> {
        let RunCommand { command, deadline, output } = command;
        if command.contains('\0') {
            return Err(Error::NulByte { what: "the command" });
        }
        if command.len() > MAX_COMMAND {
            return Err(Error::CommandTooLong { bytes: command.len(), limit: MAX_COMMAND });
        }
        if let Some(id) = self.unfinished {
            let mut nowhere = Sink::new(OutputSpec { keep_chars: 0, full_file: PathBuf::new(), full_cap: 0 });
            self.link.say(&ToHelper::Kill { id }).await?;
            self.finish(id, PATIENCE, pin!(std::future::pending()), &mut nowhere).await?;
        }
        self.last_id += 1;
        let id = self.last_id;
        self.unfinished = Some(id);
        self.link.say(&ToHelper::Run { id, command }).await?;
        let mut sink = Sink::new(output);
        let over = self.finish(id, deadline, pin!(cancel), &mut sink).await?;
        Ok(Finished {
            ending: over.ending,
            output: sink.finish().await,
            state: self.state.clone(),
            shell_replaced: over.replaced,
        })
    }

    /// Kills everything below the helper and waits until it is gone.
    pub async fn stop(self) -> Result<(), Error> {
        self.link.close().await
    }

    async fn finish<C>(
        &mut self,
        id: u64,
        deadline: Duration,
        mut cancel: std::pin::Pin<&mut C>,
        sink: &mut Sink,
    ) -> Result<Over, Error>
    where
        C: Future<Output = ()>,
    {
        let mut timer = pin!(sleep(deadline));
        let mut stopped_by = None;
        let mut buffer = vec![0; CHUNK];
        let mut output_open = true;
        loop {
            let stop = tokio::select! {
                readable = self.output.readable(), if output_open => {
                    readable.map_err(Error::system("waiting for output"))?;
                    match self.output.try_read(&mut buffer) {
                        // Only a helper that is gone closes the pipe, and then the link says so.
                        Ok(0) => output_open = false,
                        Ok(count) => sink.push(&buffer[..count]).await,
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(Error::System { doing: "reading output", source: error }),
                    }
                    continue;
                }
                frame = self.link.hear() => match frame? {
                    FromHelper::Finished { id: about, code, killed, cwd, env, replaced } if about == id => {
                        self.drain(sink, &mut buffer).await?;
                        self.unfinished = None;
                        self.state = ShellState::between(cwd.into(), &self.given, &env);
                        let ending = stopped_by.filter(|_| killed).unwrap_or(Ending::Exited(code));
                        return Ok(Over { ending, replaced });
                    }
                    other => return Err(unexpected(&other)),
                },
                () = &mut timer => match stopped_by {
                    None => Ending::DeadlinePassed,
                    Some(_) => {
                        self.link.kill();
                        return Err(Error::HelperSilent { waited: PATIENCE });
                    }
                },
                () = &mut cancel, if stopped_by.is_none() => Ending::Cancelled,
            };
            stopped_by = Some(stop);
            timer.as_mut().reset(Instant::now() + PATIENCE);
            self.link.say(&ToHelper::Kill { id }).await?;
        }
    }

    /// Reads what is in the pipe at this moment and no more: a background job may hold it open, or fill it, for ever.
    async fn drain(&mut self, sink: &mut Sink, buffer: &mut [u8]) -> Result<(), Error> {
        let mut left = sys::bytes_waiting(self.output.as_fd()).map_err(Error::system("measuring output"))?;
        while left > 0 {
            self.output.readable().await.map_err(Error::system("waiting for output"))?;
            let room = left.min(buffer.len());
            match self.output.try_read(&mut buffer[..room]) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    left -= count;
                    sink.push(&buffer[..count]).await;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Error::System { doing: "reading output", source: error }),
            }
        }
        Ok(())
    }
}

/// Which hold this machine allows, for the doctor.
pub async fn probe_hold(helper: &HelperPath) -> Result<Hold, Error> {
    let mut link = Link::open(helper, &BTreeMap::new(), Stdio::null())?;
    let hold = patient(link.begin(HoldChoice::Best, None)).await?;
    link.close().await?;
    Ok(hold)
}

struct Over {
    ending: Ending,
    replaced: Option<String>,
}

/// The helper and the socket to it. When the socket closes the helper ends, so dropping this is enough.
#[derive(Debug)]
struct Link {
    helper: Child,
    socket: UnixStream,
    decoder: Decoder,
}

impl Link {
    fn open(path: &HelperPath, env: &BTreeMap<String, String>, output: Stdio) -> Result<Self, Error> {
        let (ours, theirs) = StdUnixStream::pair().map_err(Error::system("making a socket"))?;
        ours.set_nonblocking(true).map_err(Error::system("making a socket"))?;
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
        let socket = UnixStream::from_std(ours).map_err(Error::system("watching a socket"))?;
        Ok(Self { helper, socket, decoder: Decoder::default() })
    }

    async fn begin(&mut self, hold: HoldChoice, shell: Option<ShellSetup>) -> Result<Hold, Error> {
        self.say(&ToHelper::Begin { hold, shell }).await?;
        match self.hear().await? {
            FromHelper::Hello { hold } => Ok(hold),
            other => Err(unexpected(&other)),
        }
    }

    async fn say(&mut self, frame: &ToHelper) -> Result<(), Error> {
        let bytes = wire::encode(frame).map_err(|problem| Error::Protocol { problem })?;
        match self.socket.write_all(&bytes).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended().await),
        }
    }

    /// The next frame. May be dropped and called again without losing anything.
    async fn hear(&mut self) -> Result<FromHelper, Error> {
        let mut buffer = [0; 8 * 1024];
        loop {
            match self.decoder.next().map_err(|problem| Error::Protocol { problem })? {
                Some(FromHelper::Fatal { message }) => return Err(Error::HelperRefused { message }),
                Some(frame) => return Ok(frame),
                None => {}
            }
            self.socket.readable().await.map_err(Error::system("waiting for the helper"))?;
            match self.socket.try_read(&mut buffer) {
                Ok(count) if count > 0 => self.decoder.feed(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Err(self.ended().await),
            }
        }
    }

    /// The helper has closed its socket; says how it ended.
    async fn ended(&mut self) -> Error {
        let status = match timeout(Duration::from_secs(1), self.helper.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it still runs".to_owned(),
        };
        Error::HelperEnded { status }
    }

    fn kill(&mut self) {
        // That it has ended already is all right.
        let _ = self.helper.start_kill();
    }

    async fn close(self) -> Result<(), Error> {
        let Self { mut helper, socket, .. } = self;
        drop(socket);
        match timeout(PATIENCE, helper.wait()).await {
            Ok(status) => status.map(drop).map_err(Error::system("waiting for the helper")),
            Err(_) => {
                let _ = helper.start_kill();
                Err(Error::HelperSilent { waited: PATIENCE })
            }
        }
    }
}

async fn patient<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(PATIENCE, answer).await.unwrap_or(Err(Error::HelperSilent { waited: PATIENCE }))
}

fn unexpected(frame: &FromHelper) -> Error {
    let name = match frame {
        FromHelper::Hello { .. } => "hello",
        FromHelper::Ready { .. } => "ready",
        FromHelper::Finished { .. } => "finished",
        FromHelper::Fatal { .. } => "fatal",
    };
    Error::Protocol { problem: format!("`{name}` came out of turn") }
}
