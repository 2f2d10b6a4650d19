//! The host's side of a shell: starting its helper, running commands, reading their output, stopping. All
//! time limits are kept here; what they mean for an agent is the caller's to say.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::cage::{COUNT_EVERY, COUNT_JOBS_EVERY, Cage};
use crate::confine::Guard;
use crate::error::Error;
use crate::link::{Link, PATIENCE, patient, unexpected};
use crate::memory::Promise;
use crate::output::{Captured, OutputSpec, Sink};
use crate::policy::{Access, LayerSet, Policy};
use crate::process::Process;
use crate::state::{ShellState, with_defaults};
use crate::sys;
use crate::templates::{Kind, Templates};
use crate::wire::{self, FromHelper, HoldChoice, ProcessHold, ShellSetup, ToHelper};
use crate::writes::{Answering, WriteGate};

mod begin;

use begin::{Beginning, Begun};

/// Room for a background job's output between two commands, so that it is not held up at once.
const PIPE_BYTES: i32 = 1024 * 1024;

/// One read of output.
const CHUNK: usize = 64 * 1024;

/// JSON may need six bytes for one, so this always fits into a frame.
const MAX_COMMAND: usize = wire::MAX_FRAME / 8;

/// The executable to start as a helper, and its first arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone)]
pub struct ShellConfig {
    /// The helper.
    pub helper: HelperPath,
    /// The directory to begin in.
    pub cwd: PathBuf,
    /// The whole environment of the helper and the shell, plus `PAGER`, `GIT_PAGER`, `TERM` and
    /// `GIT_TERMINAL_PROMPT` where they are not given. What may be in it is the caller's decision.
    pub env: BTreeMap<String, String>,
    /// What an earlier shell left off with.
    pub restored: Option<ShellState>,
    /// Which hold to try for. With [`LayerSet::Namespaces`] it is always a pid namespace.
    pub hold: HoldChoice,
    /// What commands may do.
    pub policy: Policy,
    /// By which means that is enforced, as [`crate::hold`] said; `None` if the policy is off.
    pub layers: Option<LayerSet>,
    /// From what its helper is forked; those of one session share it.
    pub templates: Templates,
    /// What was said of those layers; a shell of which it is not true is not started.
    pub promise: Promise,
    /// What is asked before commands write in the workspace, where their policy lets them and the machine
    /// lets that be seen ([`Shell::is_traced`]).
    pub writes: Option<Arc<dyn WriteGate>>,
}

/// How a shell began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The directory it began in.
    pub cwd: PathBuf,
    /// The restored directory, if it no longer exists and `cwd` stands in for it.
    pub missing_cwd: Option<PathBuf>,
    /// Where the agent sees its tree, as [`Shell::tree`] says it.
    pub tree: PathBuf,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code; 128 and the signal if one killed it.
    Exited(i32),
    /// It and all it had started was killed at its deadline.
    DeadlinePassed,
    /// It and all it had started was killed because the caller wished so.
    Cancelled,
    /// It and all it had started was killed because it used more than its limits allow; older background jobs
    /// were killed too if the limit would have been passed without it.
    LimitPassed {
        /// Which limit, such as `4.0 GiB of memory`.
        what: String,
    },
    /// It is not known how, nor whether all of it ran: the shell could not be relied on any more, and was
    /// killed with all that the command had started.
    Unknown,
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
    /// Why functions and unexported variables are gone from here on, if they are: the command ended the
    /// shell, and the next one gets a new shell with `state`.
    pub shell_replaced: Option<String>,
    /// The hosts that were asked for while it ran and that the policy's list of hosts does not allow, in the
    /// words that would allow them; the first few if there are many. Empty where the network is no list.
    pub refused_hosts: Vec<String>,
    /// Whether something that it, or a command before it, started in the background still runs.
    pub jobs: bool,
    /// The files of the workspace, relative to it, that the shell or something it started still has open for
    /// writing. Empty where writes are not traced.
    pub held: Vec<PathBuf>,
}

/// The long-lived shell of one agent. Dropping it kills everything below it.
#[derive(Debug)]
pub struct Shell {
    link: Link,
    output: pipe::Receiver,
    given: BTreeMap<String, String>,
    state: ShellState,
    opening: Opening,
    hold: ProcessHold,
    cage: Option<Cage>,
    guard: Guard,
    last_id: u64,
    /// A command whose `run` was dropped half-way.
    unfinished: Option<u64>,
    jobs: Option<JobsWatch>,
    answering: Option<Answering>,
}

/// The eye on what background jobs store while no command runs.
#[derive(Debug)]
struct JobsWatch(JoinHandle<()>);

impl Drop for JobsWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Shell {
    /// Starts a helper and its shell.
    pub async fn start(config: ShellConfig) -> Result<Self, Error> {
        if !config.cwd.is_dir() {
            return Err(Error::NoDirectory { path: config.cwd });
        }
        if config.policy.access != Access::Off && config.layers.is_none() {
            return Err(Error::NotHeld);
        }
        let mut confine = Cage::wanted(&config.policy, config.layers, &config.env);
        let guard = match (&mut confine, config.layers) {
            (Some(confine), Some(set)) => {
                let policy = config.policy.clone();
                let home = config.env.get("HOME").map(PathBuf::from);
                let looked =
                    tokio::task::spawn_blocking(move || Guard::look(&policy, set, home.as_deref())).await;
                let guard = looked
                    .map_err(|error| Error::system("looking at the tree")(std::io::Error::other(error)))?;
                confine.guarded = [guard.named.as_slice(), &guard.shared].concat();
                guard
            }
            _ => Guard::default(),
        };
        let cwd =
            if confine.is_some() { config.cwd.canonicalize().unwrap_or(config.cwd) } else { config.cwd };
        let kind = Kind::of(&config.helper, &config.env, confine.as_ref());
        let mut given = with_defaults(config.env);
        if let Some(confine) = &confine {
            Cage::adapt(&mut given, confine);
        }
        let env = config.restored.as_ref().map_or_else(|| given.clone(), |state| state.over(&given));
        for env in [&given, &env] {
            if env.iter().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
                return Err(Error::NulByte { what: "the environment" });
            }
        }
        let (reader, writer) = std::io::pipe().map_err(Error::system("making a pipe"))?;
        sys::enlarge_pipe(reader.as_fd(), PIPE_BYTES);
        let writer = OwnedFd::from(writer);
        let output =
            pipe::Receiver::from_owned_fd(reader.into()).map_err(Error::system("watching a pipe"))?;
        let begin = Beginning {
            helper: config.helper,
            hold: config.hold,
            setup: ShellSetup {
                cwd: config.restored.as_ref().map_or_else(|| cwd.clone(), |state| state.cwd.clone()),
                fallback_cwd: cwd,
                env: env.clone(),
                traced: config.writes.is_some()
                    && confine.is_some()
                    && config.policy.access == Access::Workspace,
            },
            confine,
        };
        let hosts =
            begin.confine.as_ref().map(|confine| (confine.policy.network.clone(), confine.policy.limits));
        let begun = begin.from_template(&config.templates, kind, &given, writer).await;
        let begun = config.promise.check(begun, |begun| &begun.hold)?;
        let Begun { link, hold, confined, cwd, missing_cwd, group, writes } = begun;
        let answering = writes.zip(config.writes).map(|(socket, gate)| Answering::begin(socket, gate));
        let cage = match (confined, hosts) {
            (Some(confined), Some((network, limits))) => {
                Some(Cage::new(confined, network, limits, config.policy.private, group, &mut given)?)
            }
            _ => None,
        };
        let tree = cage.as_ref().map_or(config.policy.workspace, |cage| cage.tree.clone());
        let opening = Opening { cwd: cwd.into(), missing_cwd: missing_cwd.map(PathBuf::from), tree };
        let env = config.restored.as_ref().map_or_else(|| given.clone(), |state| state.over(&given));
        let state = ShellState::between(opening.cwd.clone(), &given, &env);
        Ok(Self {
            link,
            output,
            given,
            state,
            opening,
            hold,
            cage,
            guard,
            last_id: 0,
            unfinished: None,
            jobs: None,
            answering: answering.transpose()?,
        })
    }

    /// The tree as it is seen from inside the sandbox: a handle beneath which files can be opened and show
    /// what commands see, overlays and read-only places included. `None` if nothing is confined.
    pub fn root(&self) -> Option<BorrowedFd<'_>> {
        self.cage.as_ref().map(|cage| cage.root.as_fd())
    }

    /// The path under which the agent sees its tree: the workspace, or where its copy stands if nothing can
    /// be mounted.
    pub fn tree(&self) -> &Path {
        &self.opening.tree
    }

    /// What in the workspace is run or obeyed later when its repository is used, as its configuration names
    /// it, existing or not. Where there are mounts commands cannot write it; tools that write files for an
    /// agent must not either.
    pub fn named_by_git(&self) -> &[PathBuf] {
        &self.guard.named
    }

    /// What a person should know of how the workspace was made ready, a line each; told by the first shell
    /// that found it.
    pub fn notes(&self) -> &[String] {
        &self.guard.notes
    }

    /// How surely everything dies with the helper.
    pub fn hold(&self) -> &ProcessHold {
        &self.hold
    }

    /// Whether commands ask before they write in the workspace.
    pub fn is_traced(&self) -> bool {
        self.answering.is_some()
    }

    /// How the shell began.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// The directory and the exported variables after the last command.
    pub fn state(&self) -> &ShellState {
        &self.state
    }

    /// Whether the helper was forked from a template, and not started for this shell alone.
    pub fn is_forked(&self) -> bool {
        matches!(self.link.helper, Process::Forked(_))
    }

    /// The process id of the helper, while it runs.
    pub fn helper_pid(&self) -> Option<u32> {
        self.link.helper.id()
    }

    /// Runs one command to its end, its deadline, or until `cancel` is ready, whichever comes first.
    ///
    /// But for a command that is refused ([`Error::NulByte`], [`Error::CommandTooLong`]), an error means that
    /// the shell is gone. If the future is dropped, the command is ended before the next one starts.
    pub async fn run(
        &mut self,
        command: RunCommand,
        cancel: impl Future<Output = ()>,
    ) -> Result<Finished, Error> {
        let RunCommand { command, deadline, output } = command;
        if command.contains('\0') {
            return Err(Error::NulByte { what: "the command" });
        }
        if command.len() > MAX_COMMAND {
            return Err(Error::CommandTooLong { bytes: command.len(), limit: MAX_COMMAND });
        }
        self.end_watch().await;
        if let Some(id) = self.unfinished {
            let mut nowhere = Sink::new(OutputSpec { keep_chars: 0, full_file: PathBuf::new(), full_cap: 0 });
            self.link.say(&ToHelper::Kill { id }).await?;
            self.finish(id, PATIENCE, pin!(std::future::pending()), &mut nowhere).await?;
        }
        self.last_id += 1;
        let id = self.last_id;
        self.unfinished = Some(id);
        // What background jobs asked for meanwhile is not this command's.
        let asked = |cage: &Option<Cage>| cage.as_ref().map(Cage::refused_hosts).unwrap_or_default();
        drop(asked(&self.cage));
        self.link.say(&ToHelper::Run { id, command }).await?;
        let mut sink = Sink::new(output);
        let over = self.finish(id, deadline, pin!(cancel), &mut sink).await?;
        if over.jobs {
            self.jobs = self.watch_jobs()?;
        }
        Ok(Finished {
            ending: over.ending,
            output: sink.finish().await,
            state: self.state.clone(),
            shell_replaced: over.replaced,
            refused_hosts: asked(&self.cage),
            jobs: over.jobs,
            held: over.held,
        })
    }

    /// Kills everything below the helper and waits until it is gone.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.end_watch().await;
        self.link.close().await
    }

    /// Ends the watch over background jobs, which has a handle of the link: as long as it lives the helper
    /// does too, and what it may be saying at this moment must not be mixed with what is said next.
    async fn end_watch(&mut self) {
        if let Some(mut watch) = self.jobs.take() {
            watch.0.abort();
            let _ = (&mut watch.0).await;
        }
    }

    /// Has background jobs ended if they store too much before the next command.
    fn watch_jobs(&self) -> Result<Option<JobsWatch>, Error> {
        let Some(cage) = &self.cage else { return Ok(None) };
        let mut disk = cage.disk(COUNT_JOBS_EVERY);
        let mut aside = self.link.aside()?;
        let order = wire::encode(&ToHelper::KillJobs).map_err(|problem| Error::Protocol { problem })?;
        let watch = tokio::spawn(async move {
            disk.filled().await;
            // The socket has room for it; and a helper that is gone has taken its jobs along.
            let _ = aside.write_all(&order);
        });
        Ok(Some(JobsWatch(watch)))
    }

    async fn finish<C>(
        &mut self,
        id: u64,
        deadline: Duration,
        mut cancel: std::pin::Pin<&mut C>,
        sink: &mut Sink,
    ) -> Result<CommandEnd, Error>
    where
        C: Future<Output = ()>,
    {
        let mut timer = pin!(sleep(deadline));
        let mut stopped_by = None;
        let mut buffer = vec![0; CHUNK];
        let mut output_open = true;
        let mut disk = self.cage.as_ref().map(|cage| cage.disk(COUNT_EVERY));
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
                    FromHelper::Finished { id: about, code, killed, limit, cwd, env, replaced, jobs, held }
                        if about == id =>
                    {
                        self.drain(sink, &mut buffer).await?;
                        self.unfinished = None;
                        self.state = ShellState::between(cwd.into(), &self.given, &env);
                        let by_kernel = self.cage.as_ref().and_then(|cage| cage.struck(code != Some(0)));
                        let limit = limit.or(by_kernel).map(|what| Ending::LimitPassed { what });
                        let ended = code.map_or(Ending::Unknown, Ending::Exited);
                        let ending = stopped_by.filter(|_| killed).or(limit).unwrap_or(ended);
                        let held = held.into_iter().map(|path| OsString::from_vec(path).into()).collect();
                        return Ok(CommandEnd { ending, replaced, jobs, held });
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
                what = filled(&mut disk), if stopped_by.is_none() => Ending::LimitPassed { what },
            };
            stopped_by = Some(stop);
            timer.as_mut().reset(Instant::now() + PATIENCE);
            self.link.say(&ToHelper::Kill { id }).await?;
        }
    }

    /// Reads what is in the pipe at this moment and no more: a background job may hold it open, or fill it,
    /// for ever.
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
pub async fn probe_hold(helper: &HelperPath) -> Result<ProcessHold, Error> {
    let mut link = Link::open(helper, &BTreeMap::new(), Stdio::null())?;
    let (hold, _) = patient(PATIENCE, link.begin(HoldChoice::Best, None, None)).await?;
    link.close().await?;
    Ok(hold)
}

/// Waits until the agent's private directories hold too much; for ever where nothing is confined.
async fn filled(disk: &mut Option<crate::cage::Disk>) -> String {
    match disk {
        Some(disk) => disk.filled().await,
        None => std::future::pending().await,
    }
}

struct CommandEnd {
    ending: Ending,
    replaced: Option<String>,
    jobs: bool,
    held: Vec<PathBuf>,
}
