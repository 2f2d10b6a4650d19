//! The helper's loop: it hands commands to bash, reaps every orphan, ends commands on request, and replaces a
//! bash that has ended. It keeps no time of its own but the grace it gives bash, and when the host's socket
//! closes all is over.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::bash::{Bash, Env, Launcher, Step};
use super::trace::Tracer;
use super::tree::{Identity, Tree};
use super::watch::Watchdog;
use super::{say, say_with};
use crate::confine;
use crate::policy::Limits;
use crate::sys::{self, ChildEnd};
use crate::wire::{Decoder, FromHelper, ProcessHold, ShellSetup, ToHelper};

/// How long bash has to come back from a command that is being ended, while all that the command started is
/// killed.
const GRACE: Duration = Duration::from_secs(5);

/// How often the processes of a command that is being ended are looked for.
const KILL_EVERY: Duration = Duration::from_millis(5);

/// How long the last processes are waited for. Only one stuck in the kernel lives on after a kill.
const KILL_LIMIT: Duration = Duration::from_secs(3);

/// Serves until the host goes away. `confined` is how much may be used and where the tree stands. An error is for the host to read, and the end as well.
pub(crate) fn serve(
    control: &mut UnixStream,
    output: OwnedFd,
    hold: &ProcessHold,
    setup: ShellSetup,
    confined: Option<(Limits, PathBuf)>,
) -> Result<(), String> {
    let tree = Tree::below_here(hold);
    let namespace = *hold == ProcessHold::PidNamespace;
    // A command must not be able to stop the helper; the init of a namespace is safe from it anyway.
    let before = (confined.is_some() && !namespace).then_some(confine::part as fn() -> io::Result<()>);
    let mut init = Init::start(control, output, tree, setup, confined, before)?;
    let served = init.serve();
    // In a namespace the kernel does this, and more surely, when init ends.
    if !namespace {
        init.tree.kill_until_gone(&HashSet::new(), None, KILL_LIMIT);
    }
    served
}

struct Init<'a> {
    control: &'a mut UnixStream,
    decoder: Decoder,
    signals: File,
    tree: Tree,
    launcher: Launcher,
    /// Has the host asked before commands write, where that is wanted and possible.
    tracer: Option<Tracer>,
    /// What the next bash begins with.
    cwd: PathBuf,
    env: Env,
    fallback_cwd: PathBuf,
    bash: Option<Bash>,
    running: Option<Running>,
    /// Looks after limits where the shell is confined.
    watchdog: Option<Watchdog>,
    /// Whether background jobs are to be looked after while no command runs.
    jobs: bool,
    /// Why bash is or was replaced, until an outcome has said so.
    replaced: Vec<String>,
}

struct Running {
    id: u64,
    /// Its exit code, as soon as that is known.
    code: Option<i32>,
    /// What was there before, and is not touched when the command is ended.
    before: HashSet<Identity>,
    ending: Option<Ending>,
}

struct Ending {
    since: Instant,
    bash_killed: bool,
    /// Which limit was passed, if that is why.
    limit: Option<String>,
}

impl<'a> Init<'a> {
    fn start(
        control: &'a mut UnixStream,
        output: OwnedFd,
        tree: Tree,
        setup: ShellSetup,
        confined: Option<(Limits, PathBuf)>,
        before: Option<fn() -> io::Result<()>>,
    ) -> Result<Self, String> {
        let signals =
            sys::child_signals().map_err(|error| format!("the ends of children cannot be seen: {error}"))?;
        let env: Env = setup.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let launcher =
            Launcher::new(output, env.get(std::ffi::OsStr::new("PATH")).map(AsRef::as_ref), before)?;
        let (limits, at) = confined.unzip();
        let traced = at.filter(|_| setup.traced).and_then(|at| Tracer::begin(&at));
        let (tracer, writes) = traced.unzip();
        let missing_cwd = (!setup.cwd.is_dir()).then(|| setup.cwd.to_string_lossy().into_owned());
        let mut init = Self {
            control,
            decoder: Decoder::default(),
            signals: File::from(signals),
            tree,
            launcher,
            tracer,
            cwd: if missing_cwd.is_some() { setup.fallback_cwd.clone() } else { setup.cwd },
            env,
            fallback_cwd: setup.fallback_cwd,
            bash: None,
            running: None,
            watchdog: limits.map(Watchdog::new),
            jobs: false,
            replaced: Vec::new(),
        };
        init.start_bash()?;
        let cwd = init.cwd.to_string_lossy().into_owned();
        let ready = FromHelper::Ready { cwd, missing_cwd, traced: writes.is_some() };
        match writes {
            Some(writes) => say_with(init.control, &ready, writes.as_fd())?,
            None => say(init.control, &ready)?,
        }
        Ok(init)
    }

    fn serve(&mut self) -> Result<(), String> {
        loop {
            let mut watched = vec![self.control.as_fd(), self.signals.as_fd()];
            watched.extend(self.bash.iter().flat_map(Bash::watched));
            watched.extend(self.tracer.iter().flat_map(Tracer::watched));
            let pause = match &self.running {
                Some(Running { ending: Some(_), .. }) => Some(KILL_EVERY),
                None if !self.jobs => None,
                _ => self.watchdog.as_ref().map(Watchdog::due_in),
            };
            let pause = pause.into_iter().chain(self.bash.as_ref().and_then(Bash::impatience)).min();
            let ready =
                sys::wait_readable(&watched, pause).map_err(|error| format!("waiting failed: {error}"))?;
            if let Some(tracer) = &mut self.tracer
                && !tracer.serve()?
            {
                return Ok(());
            }
            if ready[1] {
                self.reap()?;
            }
            self.step()?;
            if ready[0] && !self.obey()? {
                return Ok(());
            }
            self.watch()?;
            self.watch_jobs();
            self.go_on_ending();
        }
    }

    /// Reads what the host says; false when it is gone.
    fn obey(&mut self) -> Result<bool, String> {
        let mut buffer = [0; 64 * 1024];
        match self.control.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => self.decoder.feed(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(format!("the host cannot be heard: {error}")),
        }
        while let Some(frame) = self.decoder.next()? {
            match frame {
                ToHelper::Run { id, command } => self.run(id, &command)?,
                ToHelper::Kill { id } => self.begin_ending(id, None)?,
                ToHelper::KillJobs => self.kill_jobs(),
                ToHelper::Begin { .. } => return Err("`begin` came twice".to_owned()),
                ToHelper::Prepare { .. } | ToHelper::Fork => {
                    return Err("a frame for a template came to a shell".to_owned());
                }
            }
        }
        Ok(true)
    }

    fn run(&mut self, id: u64, command: &str) -> Result<(), String> {
        if self.running.is_some() {
            return Err("a command came while another was running".to_owned());
        }
        // A background job may have ended bash since the last command.
        self.reap()?;
        if self.bash.is_none() {
            self.start_bash()?;
        }
        let Some(bash) = &mut self.bash else { return Err("there is no shell".to_owned()) };
        bash.wait_for_begin(&mut || self.tracer.as_mut().map_or(Ok(()), |tracer| tracer.serve().map(drop)))?;
        let before = self.tree.living(Some(bash.pid));
        bash.run(command).map_err(|error| format!("the command cannot be stored: {error}"))?;
        self.running = Some(Running { id, code: None, before, ending: None });
        Ok(())
    }

    fn start_bash(&mut self) -> Result<(), String> {
        let gone = self.cwd.clone();
        for directory in [self.cwd.clone(), self.fallback_cwd.clone(), PathBuf::from("/")] {
            match self.launcher.start(&directory, &self.env, self.tracer.as_mut()) {
                Ok(bash) => {
                    if directory != gone {
                        let gone = gone.display();
                        let now = directory.display();
                        self.replaced.push(format!("{gone} cannot be entered, so the shell is in {now}"));
                        self.cwd = directory;
                    }
                    self.bash = Some(bash);
                    return Ok(());
                }
                // The same error stands for a missing directory and a missing bash; the last attempt tells.
                Err(error) if directory.as_os_str() == "/" || directory.is_dir() => {
                    return Err(format!("bash could not be started in {}: {error}", directory.display()));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Takes the ends of all children that have ended.
    fn reap(&mut self) -> Result<(), String> {
        let mut signal = [0; 1024];
        while matches!(self.signals.read(&mut signal), Ok(count) if count > 0) {}
        while let Some((pid, end)) = sys::reap(-1, sys::Waiting::Look)
            .map_err(|error| format!("children cannot be reaped: {error}"))?
        {
            if let Some(bash) = self.bash.take_if(|bash| bash.pid == pid) {
                self.bash_ended(bash, end)?;
            }
        }
        Ok(())
    }

    fn bash_ended(&mut self, mut bash: Bash, end: ChildEnd) -> Result<(), String> {
        bash.listen();
        let killed = self
            .running
            .as_ref()
            .and_then(|running| running.ending.as_ref())
            .is_some_and(|it| it.bash_killed);
        if self.replaced.is_empty() {
            self.replaced.push(match end {
                _ if killed => {
                    "the shell did not react when its command was stopped, and was killed".to_owned()
                }
                ChildEnd::Exited(code) => format!("the shell ended with exit code {code}"),
                ChildEnd::Signalled(signal) => format!("the shell was killed by signal {signal}"),
            });
        }
        let (cwd, env) = bash.last_words();
        self.learn(cwd, env);
        let code = self.running.as_ref().and_then(|running| running.code).unwrap_or(end.code());
        self.finish(Some(code))
    }

    /// Looks at bash, and tells the host when a command is over.
    fn step(&mut self) -> Result<(), String> {
        let Some(bash) = &mut self.bash else { return Ok(()) };
        match bash.step() {
            Step::Wait => Ok(()),
            Step::Ended(report) => {
                self.learn(report.cwd, None);
                if let Some(running) = &mut self.running {
                    running.code = Some(report.code);
                }
                if report.intact {
                    return Ok(());
                }
                self.give_up("the command took over descriptors that the shell needs");
                self.finish(Some(report.code))
            }
            Step::Listed => {
                let env = bash.variables();
                self.learn(None, env);
                let code = self.running.as_ref().and_then(|running| running.code);
                self.finish(code)
            }
            Step::Lost(why) => {
                self.give_up(why);
                // Whether the command has ended is not known either.
                if let Some(running) = &self.running {
                    self.tree.kill_until_gone(&running.before, None, KILL_LIMIT);
                }
                self.finish(None)
            }
        }
    }

    fn give_up(&mut self, why: &str) {
        self.replaced.push(why.to_owned());
        // From here on it is an orphan like any other.
        if let Some(bash) = self.bash.take() {
            sys::signal_child(bash.pid, libc::SIGKILL);
        }
    }

    fn learn(&mut self, cwd: Option<PathBuf>, env: Option<Env>) {
        self.cwd = cwd.unwrap_or(std::mem::take(&mut self.cwd));
        if let Some(mut env) = env {
            // Bash hands on what it could not name itself, and does not list it.
            let named = |name: &OsString| {
                name.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            };
            env.extend(std::mem::take(&mut self.env).into_iter().filter(|(name, _)| !named(name)));
            self.env = env;
        }
    }

    /// Ends the command that has passed a limit.
    fn watch(&mut self) -> Result<(), String> {
        let shell = self.bash.as_ref().map(|bash| bash.pid);
        let Some(id) =
            self.running.as_ref().filter(|running| running.ending.is_none()).map(|running| running.id)
        else {
            return Ok(());
        };
        match self.watchdog.as_mut().and_then(|watchdog| watchdog.look(&self.tree, shell)) {
            Some(limit) => self.begin_ending(id, Some(limit)),
            None => Ok(()),
        }
    }

    /// Ends all background jobs if together they pass a limit while no command runs. Bash says so when it
    /// next looks.
    fn watch_jobs(&mut self) {
        let Some(watchdog) = self.watchdog.as_mut().filter(|watchdog| watchdog.is_due()) else { return };
        if self.running.is_some() || !self.jobs {
            return;
        }
        let shell = self.bash.as_ref().map(|bash| bash.pid);
        if watchdog.look(&self.tree, shell).is_some() {
            self.kill_jobs();
        }
        self.jobs = !self.tree.living(shell).is_empty();
    }

    fn kill_jobs(&mut self) {
        if self.running.is_none() {
            let shell = self.bash.as_ref().map(|bash| bash.pid);
            self.tree.kill_until_gone(&HashSet::new(), shell, KILL_LIMIT);
        }
    }

    fn begin_ending(&mut self, id: u64, limit: Option<String>) -> Result<(), String> {
        // A command that has just finished is answered already.
        let Some(running) = self.running.as_mut().filter(|running| running.id == id) else { return Ok(()) };
        if running.ending.is_none() {
            running.ending = Some(Ending { since: Instant::now(), bash_killed: false, limit });
            if let Some(bash) = &mut self.bash {
                bash.interrupt();
                // After the signal, which then is there when bash comes back from its call.
                if let Some(tracer) = &mut self.tracer {
                    tracer.refuse(bash.pid)?;
                }
            }
        }
        Ok(())
    }

    fn go_on_ending(&mut self) {
        let (Some(running), Some(bash)) = (&mut self.running, &self.bash) else { return };
        let Some(ending) = &mut running.ending else { return };
        // When bash is back there is only its listing to wait for; what is left is killed after that.
        if running.code.is_none() {
            self.tree.kill_except(&running.before, Some(bash.pid));
        }
        if ending.since.elapsed() > GRACE && !ending.bash_killed {
            ending.bash_killed = true;
            sys::signal_child(bash.pid, libc::SIGKILL);
        }
    }

    /// Tells the host that the command, if there is one, is over.
    fn finish(&mut self, code: Option<i32>) -> Result<(), String> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let shell = self.bash.as_ref().map(|bash| bash.pid);
        if running.ending.is_some() {
            self.tree.kill_until_gone(&running.before, shell, KILL_LIMIT);
            // If it was not this command alone that used so much, then the older jobs go too.
            if self.watchdog.as_ref().is_some_and(|watchdog| watchdog.passed(&self.tree, shell).is_some()) {
                self.tree.kill_until_gone(&HashSet::new(), shell, KILL_LIMIT);
            }
        }
        self.jobs = self.watchdog.is_some();
        let held = match &mut self.tracer {
            Some(tracer) => tracer.command_over(&self.tree, shell)?,
            None => Default::default(),
        };
        let replaced = std::mem::take(&mut self.replaced);
        let outcome = FromHelper::Finished {
            id: running.id,
            code,
            killed: running.ending.is_some(),
            limit: running.ending.and_then(|ending| ending.limit),
            cwd: self.cwd.to_string_lossy().into_owned(),
            env: text_only(&self.env),
            replaced: (!replaced.is_empty()).then(|| replaced.join("; ")),
            jobs: !self.tree.living(shell).is_empty(),
            held: held.into_iter().map(|path| path.into_os_string().into_vec()).collect(),
        };
        say(self.control, &outcome)
    }
}

fn text_only(env: &Env) -> BTreeMap<String, String> {
    env.iter()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
        .collect()
}
