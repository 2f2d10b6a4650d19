//! One bash and how it is spoken to.
//!
//! Bash reads a script from a private socket and the command of the moment from a file in memory that only
//! the helper can change, which it sources; the command itself is evaluated inside, with all redirections on
//! that one `eval`, so that bash undoes whatever the command does to them. Bash is held at two gates (see
//! [`super::gate`]): in front of the first word of the command, and when it is back at the top of its script.
//! There the helper looks, and takes the exit code and the directory from the kernel. Nothing that bash says
//! is believed but its exported variables, which are its own affair. Nothing of this is a variable, a
//! function or a secret. A shell that is not where it ought to be is given up: the code of its command is
//! then unknown, never guessed.
//!
//! A command is stopped by a signal whose trap returns from the sourced file, and lets every command return
//! that bash would go on with. So loops, functions and `wait` end too, and the shell keeps its state.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::gate::{self, Depth, Gate, Identity, Look};
use super::listing;
pub(crate) use super::listing::Env;
use super::script::{
    END, LONG_TEXT, OUT, REPORT, START, TEXT, end_gate, is_for_the_start, opening, quote, start_gate,
};
use super::trace::Tracer;
use crate::sys::{self, Pid};

/// The room for a command with its quotes; the larger one has it for the longest that the host sends.
const SHORT: usize = 64 * 1024;
const LONG: usize = crate::wire::MAX_FRAME / 2 + SHORT;

/// The most that is kept of what bash says. More is not needed, and every process below may write there.
const MOST_SAID: usize = 16 * 1024 * 1024;

/// How long bash may take to begin.
const BEGIN: Duration = Duration::from_secs(10);

/// How long bash may be where it ought not to be before it is given up. No code is told meanwhile; on a
/// machine that is busy with other things bash may stay between two of its steps for a good part of this.
const DOUBT: Duration = Duration::from_secs(1);

/// How often bash is looked at in quick succession when it is about to reach a gate, and the pause between.
const QUICK: usize = 12;
const QUICK_PAUSE: Duration = Duration::from_micros(20);

/// How often it is looked at while a command runs and nothing happens.
const RARELY: Duration = Duration::from_secs(1);

/// Bash's own, which say nothing that the directory does not.
const NOT_REPORTED: [&str; 5] = ["SHELLOPTS", "BASHOPTS", "SHLVL", "_", "PWD"];

/// What every bash of one session is started with.
pub(crate) struct Launcher {
    bash: PathBuf,
    output: OwnedFd,
    /// What each bash does to itself at its start, besides.
    before: Option<fn() -> io::Result<()>>,
}

/// What the kernel says of a command that has come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandReport {
    pub(crate) code: i32,
    /// `None` when the directory has been removed.
    pub(crate) cwd: Option<PathBuf>,
    /// Whether bash can go on: a command may have taken over descriptors that it needs.
    pub(crate) intact: bool,
}

/// What a look at bash came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing to tell yet.
    Wait,
    /// The command has ended.
    Ended(CommandReport),
    /// Bash has listed its variables and waits.
    Listed,
    /// Bash cannot be relied on any more, for this reason.
    Lost(&'static str),
}

/// Where bash is in our script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opening,
    Idle,
    Starting,
    Running,
    Ending,
    Listing,
}

/// A running bash.
pub(crate) struct Bash {
    pub(crate) pid: Pid,
    script: UnixStream,
    report: UnixStream,
    /// Readable when bash has taken in a part of its script.
    taken: sys::Taken,
    texts: [sys::Text; 2],
    letters: [Identity; 4],
    start: Gate,
    end: Gate,
    /// Learned before the first word of a command ran in this bash.
    at_start: Option<Option<Depth>>,
    at_end: Option<Depth>,
    program: Option<u64>,
    phase: Phase,
    since: Instant,
    doubt: Option<Instant>,
    /// A program that bash was replaced by (`exec`) says nothing any more.
    pub(crate) silent: bool,
    said: Vec<u8>,
    /// Set when the last command was stopped: the trap that stopped it must go first.
    stopped: bool,
}

impl Launcher {
    /// Finds bash.
    pub(crate) fn new(
        output: OwnedFd,
        path: Option<&OsStr>,
        before: Option<fn() -> io::Result<()>>,
    ) -> Result<Self, String> {
        let bash = find_bash(path).ok_or("bash was not found; install it")?;
        Ok(Self { bash, output, before })
    }

    /// Starts a bash in `cwd` with exactly these variables, and has its writes seen if that is wanted.
    pub(crate) fn start(&self, cwd: &Path, env: &Env, tracer: Option<&mut Tracer>) -> io::Result<Bash> {
        let (script, script_theirs) = UnixStream::pair()?;
        let (report, report_theirs) = UnixStream::pair()?;
        let temporary = env.get(OsStr::new("TMPDIR")).map(PathBuf::from).filter(|path| path.is_absolute());
        // In memory where that is allowed: a file that is made and removed on a disk costs more than all else
        // that is made here.
        let places: Vec<PathBuf> = [PathBuf::from("/dev/shm")]
            .into_iter()
            .chain(temporary)
            .chain([PathBuf::from("/tmp")])
            .chain([cwd.to_owned()])
            .collect();
        let start = Gate::make(&places)?;
        let end = Gate::make(&places)?;
        // Where files must be small, so must commands.
        let texts = [sys::Text::make(SHORT)?, sys::Text::make(LONG).or_else(|_| sys::Text::make(SHORT))?];
        let letters = [
            Identity::ours(texts[0].as_fd())?,
            Identity::ours(self.output.as_fd())?,
            Identity::ours(report_theirs.as_fd())?,
            start.identity(),
        ];
        let mut command = Command::new(&self.bash);
        command.args(["--noprofile", "--norc", "-s"]).current_dir(cwd).env_clear();
        command.envs(env.iter().filter(|(name, _)| is_for_the_start(name)));
        command.stdin(Stdio::from(OwnedFd::from(script_theirs))).stdout(Stdio::null()).stderr(Stdio::null());
        sys::prepare_child(&mut command);
        if let Some(before) = self.before {
            sys::before_exec(&mut command, before);
        }
        let child = {
            // Open under these numbers only for the moment in which bash inherits them.
            let _inherited = [
                sys::duplicate_as(texts[0].as_fd(), TEXT, false)?,
                sys::duplicate_as(texts[1].as_fd(), LONG_TEXT, false)?,
                sys::duplicate_as(self.output.as_fd(), OUT, false)?,
                sys::duplicate_as(report_theirs.as_fd(), REPORT, false)?,
                sys::duplicate_as(start.as_fd(), START, false)?,
                sys::duplicate_as(end.as_fd(), END, false)?,
            ];
            match tracer {
                Some(tracer) => tracer.spawn(&mut command)?,
                None => command.spawn()?,
            }
        };
        script.set_nonblocking(true)?;
        report.set_nonblocking(true)?;
        let mut bash = Bash {
            pid: Pid::try_from(child.id()).map_err(io::Error::other)?,
            taken: sys::Taken::watch(script.as_fd())?,
            script,
            report,
            texts,
            letters,
            start,
            end,
            at_start: None,
            at_end: None,
            program: None,
            phase: Phase::Opening,
            since: Instant::now(),
            doubt: None,
            silent: false,
            said: Vec::new(),
            stopped: false,
        };
        bash.tell(&opening(env));
        Ok(bash)
    }
}

impl Bash {
    /// Waits until bash has begun, and learns how deep it is at the top of its script. What bash may wait for
    /// itself is done meanwhile.
    pub(crate) fn wait_for_begin(
        &mut self,
        meanwhile: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        while self.phase == Phase::Opening {
            meanwhile()?;
            match gate::look(self.pid, &self.end) {
                Look::Held(depth) if gate::code(self.pid, &self.letters) == Some(0) => {
                    self.at_end = depth;
                    self.program = gate::program(self.pid);
                    self.go_on(Phase::Idle);
                    self.end.release().map_err(|error| format!("bash cannot be let go on: {error}"))?;
                }
                _ if gate::is_dead(self.pid) => return Err("bash ended at once".to_owned()),
                _ if self.since.elapsed() > BEGIN => {
                    return Err(format!("bash did not begin within {BEGIN:?}"));
                }
                _ => std::thread::sleep(QUICK_PAUSE * 5),
            }
        }
        Ok(())
    }

    /// Hands a command to bash.
    pub(crate) fn run(&mut self, command: &str) -> io::Result<()> {
        let mut text = b"\\builtin eval -- ".to_vec();
        text.extend_from_slice(&quote(format!("{}\n{command}", start_gate()).as_bytes()));
        let closed =
            [LONG_TEXT, TEXT, OUT, REPORT, START, END].map(|number| format!("{number}<&-")).join(" ");
        text.extend_from_slice(
            format!(" >&{START} >&{REPORT} >&{OUT} 2>&1 </dev/null {closed}\n").as_bytes(),
        );
        // Behind it is what an earlier command left.
        text.extend_from_slice(b"\\builtin return \"$?\"\n");
        let (file, number) = if text.len() <= SHORT { (0, TEXT) } else { (1, LONG_TEXT) };
        self.texts[file].put(&text)?;
        let clean =
            if std::mem::take(&mut self.stopped) { "\\builtin trap - DEBUG; \\builtin set +T\n" } else { "" };
        self.said.clear();
        self.go_on(Phase::Starting);
        self.tell(format!("{clean}\\builtin source /dev/fd/{number}\n").as_bytes());
        self.tell(
            end_gate(&format!("\\builtin declare -px >&{REPORT}; \\builtin printf '\\0' >&{REPORT}"))
                .as_bytes(),
        );
        Ok(())
    }

    /// What is waited for besides the end of the process: words of bash, and that it took in more of its
    /// script.
    pub(crate) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        (!self.silent).then(|| self.report.as_fd()).into_iter().chain([self.taken.as_fd()])
    }

    /// How soon bash is to be looked at again although nothing has happened.
    pub(crate) fn impatience(&self) -> Option<Duration> {
        let soon = || (self.since.elapsed() / 4).clamp(Duration::from_millis(1), Duration::from_millis(20));
        match self.phase {
            Phase::Starting | Phase::Ending | Phase::Listing => Some(soon()),
            // The kernel tells when it is time; this is for a kernel that does not.
            Phase::Running => Some(RARELY),
            Phase::Opening | Phase::Idle => None,
        }
    }

    /// Looks where bash is, more than once if it is about to come to a gate.
    pub(crate) fn step(&mut self) -> Step {
        self.listen();
        let took = self.taken.happened();
        for _ in 0..if took { QUICK } else { 1 } {
            match self.look() {
                Step::Wait if matches!(self.phase, Phase::Starting | Phase::Ending) => {
                    std::thread::sleep(QUICK_PAUSE)
                }
                step => return step,
            }
        }
        Step::Wait
    }

    fn look(&mut self) -> Step {
        if self.phase == Phase::Running && self.has_taken_all() {
            self.go_on(Phase::Ending);
        }
        match self.phase {
            Phase::Opening | Phase::Idle | Phase::Running => Step::Wait,
            Phase::Starting => self.look_at_start(),
            Phase::Ending => self.look_at_end(),
            Phase::Listing if self.said.contains(&0) || gate::look(self.pid, &self.end) == Look::Reading => {
                self.listen();
                self.end.close();
                self.go_on(Phase::Idle);
                Step::Listed
            }
            Phase::Listing => Step::Wait,
        }
    }

    fn look_at_start(&mut self) -> Step {
        match gate::look(self.pid, &self.start) {
            Look::Held(depth) if *self.at_start.get_or_insert(depth) == depth => {
                // After its opening bash is seen behind the other gate only here.
                self.end.close();
                self.go_on(Phase::Running);
                match self.start.release() {
                    Ok(()) => Step::Wait,
                    Err(_) => Step::Lost("the shell could not be let go on"),
                }
            }
            seen => {
                let passed = matches!(gate::look(self.pid, &self.end), Look::Held(_));
                self.doubt(passed || seen != Look::Busy, "the shell did not run the command as it was given")
            }
        }
    }

    fn look_at_end(&mut self) -> Step {
        match gate::look(self.pid, &self.end) {
            Look::Held(depth) if depth == self.at_end && gate::program(self.pid) == self.program => {
                let Some(code) = gate::code(self.pid, &self.letters) else {
                    return Step::Lost("the command took over descriptors that the shell needs");
                };
                let cwd = gate::directory(self.pid);
                let intact = (TEXT..)
                    .zip(self.letters)
                    .all(|(number, ours)| Identity::of(self.pid, number) == Some(ours));
                self.said.clear();
                self.start.close();
                self.go_on(Phase::Listing);
                match self.end.release() {
                    Ok(()) => Step::Ended(CommandReport { code, cwd, intact }),
                    Err(_) => Step::Lost("the shell could not be let go on"),
                }
            }
            seen => {
                self.doubt(seen != Look::Busy, "the shell did not come back from the command as it should")
            }
        }
    }

    /// Gives bash up if it stays where it ought not to be.
    fn doubt(&mut self, doubtful: bool, why: &'static str) -> Step {
        // Until it has taken in all of its script, it may only have to read on.
        if !doubtful || !self.has_taken_all() {
            self.doubt = None;
            return Step::Wait;
        }
        if self.doubt.get_or_insert_with(Instant::now).elapsed() > DOUBT {
            Step::Lost(why)
        } else {
            Step::Wait
        }
    }

    fn go_on(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
        self.doubt = None;
    }

    fn has_taken_all(&self) -> bool {
        sys::is_all_read(self.script.as_fd()).unwrap_or(false)
    }

    /// Takes in what bash has said.
    pub(crate) fn listen(&mut self) {
        let mut buffer = [0; 16 * 1024];
        while !self.silent {
            match self.report.read(&mut buffer) {
                Ok(0) => self.silent = true,
                Ok(count) if self.said.len() < MOST_SAID => self.said.extend_from_slice(&buffer[..count]),
                // A process that goes on writing there shall not keep the helper busy either.
                Ok(_) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.silent = true,
            }
        }
    }

    /// The exported variables, if bash has listed them.
    pub(crate) fn variables(&self) -> Option<Env> {
        let end = self.said.iter().position(|&byte| byte == 0)?;
        listing::parse(&self.said[..end]).map(without_own)
    }

    /// What bash said when it ended, if it could: its directory and its variables.
    pub(crate) fn last_words(&self) -> (Option<PathBuf>, Option<Env>) {
        let mut parts = self.said.split(|&byte| byte == 0).rev().skip(1);
        let env = parts.next().and_then(listing::parse).map(without_own);
        let cwd =
            parts.next().and_then(|line| line.strip_suffix(b"\n")).filter(|path| path.starts_with(b"/"));
        (cwd.map(|path| PathBuf::from(OsStr::from_bytes(path))), env)
    }

    /// Lets the command of the moment return as soon as bash gets to it.
    pub(crate) fn interrupt(&mut self) {
        self.stopped = true;
        sys::signal_child(self.pid, libc::SIGRTMAX());
    }

    fn tell(&mut self, script: &[u8]) {
        // The script is far smaller than the socket's buffer. If bash has just ended the write fails, and its
        // end is seen by the signal that follows.
        let _ = self.script.write_all(script);
    }
}

fn without_own(mut env: Env) -> Env {
    env.retain(|name, _| !NOT_REPORTED.iter().any(|own| name == own));
    env
}

/// The bash that is started. The usual places come first, so that a directory which commands can write does
/// not choose the shell. What is found runs where commands run, behind the same door, so it need not be more
/// trusted than they are.
pub(crate) fn find_bash(path: Option<&OsStr>) -> Option<PathBuf> {
    ["/usr/bin", "/bin"]
        .into_iter()
        .map(PathBuf::from)
        .chain(path.into_iter().flat_map(std::env::split_paths).filter(|directory| directory.is_absolute()))
        .map(|directory| directory.join("bash"))
        .find(|program| program.is_file())
}
