//! Where attempts are made: a home with secrets, a workspace, things outside that must stay as they are, and
//! an opponent whose commands run in the sandbox of the binary under test, or, for the twin, nowhere in
//! particular.

use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use convoke_sim::{Reply, SimConfig};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::attempt::{Cell, Side};
use crate::escapes::{bash, doing};
use crate::repo::{git, repository, write};
use crate::stage::{Seen, Stage};

#[path = "../kill/processes.rs"]
#[expect(clippy::duplicate_mod, reason = "the tests of kills look at processes in the same way")]
mod processes;

/// The line that must never be seen outside of the home.
pub(crate) const SECRET: &str = "tS3kret-line-of-a-hidden-file";
/// A program that has not ended, and has asked the model for nothing, for this long hangs. A whole race of a
/// dozen turns beside exchangers that take every processor may last longer; a host that waits at a pipe never
/// comes to its next request.
const HANGS: Duration = Duration::from_secs(45);
/// Where the binary is, when the test runs as a user that cannot read the build directory.
pub(crate) const BINARY_VARIABLE: &str = "CONVOKE_HOST_SIDE_BINARY";
/// The binary from before.
pub(crate) const OLD_BINARY_VARIABLE: &str = "CONVOKE_OLD_BINARY";
/// What stands in a victim while it is as it was.
const UNTOUCHED: &str = "as it was\n";

pub(crate) struct Field {
    pub(crate) stage: Stage,
    pub(crate) cell: Cell,
}

/// How a command of a person's ended.
pub(crate) enum DriveOutcome {
    Seen(Seen),
    /// It had to be killed; so many processes of it were left a moment later.
    Hung {
        left: usize,
    },
}

impl DriveOutcome {
    pub(crate) fn hung(&self) -> bool {
        matches!(self, Self::Hung { .. })
    }

    /// All that was printed.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Seen(seen) => format!("exit {:?}\n{}{}", seen.code, seen.stdout, seen.stderr),
            Self::Hung { left } => format!("it hung, and {left} processes outlived its end"),
        }
    }

    pub(crate) fn stdout(&self) -> &str {
        if let Self::Seen(seen) = self { &seen.stdout } else { "" }
    }

    /// The session that stderr names last.
    pub(crate) fn run(&self) -> String {
        let Self::Seen(seen) = self else { return "s_none".to_owned() };
        let words = seen.stderr.split_whitespace().chain(seen.stdout.split('"'));
        words.rev().find(|word| word.starts_with("s_") && word.len() == 18).unwrap_or("s_none").to_owned()
    }
}

impl Field {
    /// A home with secrets, and an empty workspace.
    pub(crate) fn bare(cell: Cell) -> Self {
        let field = Self { stage: Stage::bare(), cell };
        write(&field.home(), ".ssh/key", &format!("{SECRET}\n"));
        std::fs::create_dir(field.outside()).unwrap();
        field
    }

    /// The same with a repository.
    pub(crate) fn new(cell: Cell, files: &[(&str, &str)]) -> Self {
        let field = Self::bare(cell);
        repository(&field.stage, files);
        field
    }

    pub(crate) fn twin(&self) -> bool {
        self.cell.side == Side::Twin
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.stage.work()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.stage.home()
    }

    /// A place that commands cannot write and that is no home.
    pub(crate) fn outside(&self) -> PathBuf {
        self.home().parent().unwrap().join("outside")
    }

    /// A file outside that must stay as it is.
    pub(crate) fn victim(&self, name: &str) -> PathBuf {
        write(&self.outside(), name, UNTOUCHED);
        self.outside().join(name)
    }

    /// Whether a victim is no longer as it was.
    pub(crate) fn harmed(&self, name: &str) -> bool {
        std::fs::read_to_string(self.outside().join(name)).ok().as_deref() != Some(UNTOUCHED)
    }

    /// Whether a program of the opponent's has left this mark outside.
    pub(crate) fn marked(&self, name: &str) -> bool {
        self.outside().join(name).exists()
    }

    /// Whether the workspace's repository has an object with exactly this content.
    pub(crate) fn has_blob(&self, content: &str) -> bool {
        let id = blob_id(content);
        let (start, rest) = id.split_at(2);
        self.work().join(".git/objects").join(start).join(rest).exists()
            || !plain_git(&self.work(), &["cat-file", "-t", &id]).is_empty()
    }

    /// What the model was told or shown in any request.
    pub(crate) fn requests(&self) -> String {
        let Some(sim) = &self.stage.sim else { return String::new() };
        sim.requests().iter().map(|request| request.body.to_string()).collect()
    }

    /// What the model was told by its tools.
    pub(crate) fn told(&self) -> String {
        let Some(sim) = &self.stage.sim else { return String::new() };
        let told = |body: &Value| -> String {
            let messages = body["messages"].as_array().cloned().unwrap_or_default();
            messages
                .iter()
                .skip(1)
                .filter(|message| message["role"] == "user")
                .map(Value::to_string)
                .collect()
        };
        sim.requests().iter().map(|request| told(&request.body)).collect()
    }

    /// The opponent's commands, one after the other: in a session of the binary, or plainly.
    pub(crate) async fn commands(&mut self, commands: &[&str], flags: &[&str]) -> DriveOutcome {
        if !self.twin() {
            return self.replies(commands.iter().map(|command| bash(command)).collect(), flags).await;
        }
        for command in commands {
            self.plainly(command).await;
        }
        DriveOutcome::Seen(Seen { code: Some(0), stdout: String::new(), stderr: String::new() })
    }

    /// One command of the opponent's where nothing holds it.
    pub(crate) async fn plainly(&self, command: &str) -> DriveOutcome {
        let mut bash = self.stage.prepare(Path::new("bash"));
        bash.args(["-c", command]);
        self.ended(bash).await
    }

    /// A session whose model does this.
    pub(crate) async fn replies(&mut self, replies: Vec<Reply>, flags: &[&str]) -> DriveOutcome {
        self.stage.turn_to(doing(replies)).await;
        self.person(&[flags, &["--sandbox-layers", self.cell.layers, "--fresh", "do", "it"]].concat()).await
    }

    /// This simulator answers from now on.
    pub(crate) async fn turn_to(&mut self, sim: impl Into<SimConfig>) {
        self.stage.turn_to(sim).await;
    }

    /// The binary under test, as a person calls it.
    pub(crate) async fn person(&self, args: &[&str]) -> DriveOutcome {
        self.ended(self.command(args)).await
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.stage.prepare(&binary(self.cell.side));
        command.args(args);
        command
    }

    /// Waits for the end of a program, and kills it with all that it left behind if there is none.
    pub(crate) async fn ended(&self, mut command: Command) -> DriveOutcome {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = child.id().unwrap();
        let waiting = tokio::spawn(child.wait_with_output());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let asked = || self.stage.sim.as_ref().map_or(0, |sim| sim.requests().len());
        let mut requests = asked();
        let mut until = Instant::now() + HANGS;
        while !waiting.is_finished() && (Instant::now() < until || asked() > requests) {
            if Instant::now() >= until {
                (requests, until) = (asked(), Instant::now() + HANGS);
            }
            sleep(Duration::from_millis(5)).await;
        }
        if waiting.is_finished() {
            let output = waiting.await.unwrap().unwrap();
            let stdout = text(output.stdout);
            let stderr = text(output.stderr);
            return DriveOutcome::Seen(Seen { code: output.status.code(), stdout, stderr });
        }
        kill(pid);
        let left = self.left_after(Duration::from_secs(5)).await;
        let left = left.len();
        self.kill_all();
        let _ = timeout(Duration::from_secs(10), waiting).await;
        DriveOutcome::Hung { left }
    }

    /// Processes of this place that live on, once they have had this long to end.
    pub(crate) async fn left_after(&self, patience: Duration) -> Vec<String> {
        let until = Instant::now() + patience;
        loop {
            let left = processes::ours(&[self.home().parent().unwrap()]);
            if left.is_empty() || Instant::now() > until {
                return left.keys().map(|pid| processes::cmdline(*pid)).collect();
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Whether some process of this place sleeps in the kernel's opening of a file, as one does that waits at
    /// a pipe.
    pub(crate) fn waits_in_open(&self) -> bool {
        let ours = processes::ours(&[self.home().parent().unwrap()]);
        let numbers: &[&str] = if cfg!(target_arch = "aarch64") { &["56 "] } else { &["2 ", "257 "] };
        let opening = |pid: &u32| {
            let at = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
            numbers.iter().any(|number| at.starts_with(number))
        };
        ours.keys().any(opening)
    }

    /// Ends every process of this place, each by its own id.
    pub(crate) fn kill_all(&self) {
        let own = std::process::id();
        for (pid, began) in processes::ours(&[self.home().parent().unwrap()]) {
            if pid != own && processes::started_at(pid) == Some(began) {
                kill(pid);
            }
        }
    }
}

fn kill(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
}

fn binary(side: Side) -> PathBuf {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    match side {
        Side::Old => named(OLD_BINARY_VARIABLE).unwrap(),
        _ => named(BINARY_VARIABLE).unwrap_or_else(|| env!("CARGO_BIN_EXE_convoke").into()),
    }
}

/// The name that git gives to this content.
pub(crate) fn blob_id(content: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    git(Path::new("/"), &["hash-object", "--no-filters", file.path().to_str().unwrap()]).trim().to_owned()
}

/// Git as a person or an unsuspecting program runs it: whatever the repository says holds. A failure prints
/// nothing.
pub(crate) fn plain_git(dir: &Path, args: &[&str]) -> String {
    let mut command = std::process::Command::new("timeout");
    command.env("EDITOR", "true").env("VISUAL", "true").args(["20", "git"]);
    command.current_dir(dir).args(["-c", "user.name=me", "-c", "user.email=me@example.invalid"]).args(args);
    command.env("HOME", dir.parent().unwrap().join("home")).stdin(Stdio::null());
    let output = command.output().unwrap();
    if output.status.success() { String::from_utf8_lossy(&output.stdout).into_owned() } else { String::new() }
}

/// Whether a program comes to wait at a pipe that stands under one of these names, from which only a writer
/// could free it.
pub(crate) async fn waits_at(mut command: Command, names: &[PathBuf]) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + HANGS;
    // The kernel lets a writer in at once only if a process reads there, or waits to read.
    let has_reader = |name: &PathBuf| {
        let writer = std::fs::OpenOptions::new().write(true).custom_flags(nix::libc::O_NONBLOCK).open(name);
        writer.is_ok_and(|writer| writer.metadata().is_ok_and(|found| found.file_type().is_fifo()))
    };
    while Instant::now() < until && child.try_wait().unwrap().is_none() {
        if names.iter().any(has_reader) {
            let _ = child.start_kill();
            let _ = child.wait().await;
            return true;
        }
        sleep(Duration::from_millis(2)).await;
    }
    false
}
