//! Where the binary is tried: a home and a directory of its own, an environment with nothing in it, and a
//! simulator to talk to. Everything is waited for; nothing is slept through.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use convoke_sim::{SimConfig, Simulator};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// Generous: two cores, many tests at once.
const PATIENCE: Duration = Duration::from_secs(90);

/// The key that must never be seen.
pub(crate) const KEY: &str = "sk-ant-secret-0123456789abcdef";

/// A home, a directory to work in, and the simulator that answers.
pub(crate) struct Stage {
    place: TempDir,
    /// The simulator, if there is one.
    pub(crate) sim: Option<Simulator>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Seen {
    /// Insists on an exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// stdout as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// stdout as lines of JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    /// The command that stderr says goes on with the session, as arguments.
    #[track_caller]
    pub(crate) fn resume_args(&self) -> Vec<String> {
        let line = self.stderr.lines().find_map(|line| line.strip_prefix("resume: convoke "));
        let line = line.unwrap_or_else(|| panic!("no resume command: {}", self.stderr));
        line.split(' ').map(str::to_owned).collect()
    }
}

/// Checked here and not by each test, so that no test can forget it: every request that was sent was legal.
impl Drop for Stage {
    fn drop(&mut self) {
        // A test that has failed already says more than a second failure would.
        if !std::thread::panicking() {
            self.check_requests();
        }
    }
}

impl Stage {
    /// A stage without a server.
    pub(crate) fn bare() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("home")).unwrap();
        std::fs::create_dir(place.path().join("work")).unwrap();
        Self { place, sim: None }
    }

    /// A simulator answers by this script, and is taken for Anthropic's API.
    pub(crate) async fn with(sim: impl Into<SimConfig>) -> Self {
        let mut stage = Self::bare();
        stage.turn_to(sim).await;
        stage
    }

    /// Another simulator answers from now on: one that has heard nothing of the conversations so far.
    pub(crate) async fn turn_to(&mut self, sim: impl Into<SimConfig>) {
        self.check_requests();
        self.sim = Some(Simulator::start(sim).await.unwrap());
        let config = self.home().join(".config/convoke");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!("[endpoints.\"{}\"]\nprofile = \"anthropic\"\n", self.sim().url());
        std::fs::write(config.join("config.toml"), text).unwrap();
    }

    fn check_requests(&self) {
        for request in self.sim.iter().flat_map(Simulator::requests) {
            assert!(request.verdict.is_accepted(), "request {}: {:?}", request.index, request.verdict);
            assert_eq!(request.prefix_break, None, "request {}", request.index);
        }
    }

    pub(crate) fn sim(&self) -> &Simulator {
        self.sim.as_ref().unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.place.path().join("home")
    }

    /// The directory the agent works in.
    pub(crate) fn work(&self) -> PathBuf {
        self.place.path().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home().join(".local/state/convoke")
    }

    /// Another program in the same surroundings.
    pub(crate) fn prepare(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.work()).kill_on_drop(true).stdin(Stdio::null());
        command.env("HOME", self.home()).env("TMPDIR", self.place.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if let Some(sim) = &self.sim {
            command.env("ANTHROPIC_BASE_URL", sim.url()).env("ANTHROPIC_API_KEY", KEY);
        }
        command
    }

    /// The binary with these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.prepare(Path::new(env!("CARGO_BIN_EXE_convoke")));
        command.args(args);
        command
    }

    /// The binary by way of a shell, which can limit it first; `$@` are the arguments.
    pub(crate) fn shell(&self, script: &str, args: &[&str]) -> Command {
        let mut command = self.prepare(Path::new("bash"));
        command.args(["-c", script, env!("CARGO_BIN_EXE_convoke")]).args(args);
        command
    }

    /// Runs the binary to its end.
    pub(crate) async fn run(&self, args: &[&str]) -> Seen {
        to_its_end(self.command(args)).await
    }

    /// Starts the binary.
    pub(crate) fn start(&self, args: &[&str]) -> Started {
        Started::of(self.command(args))
    }
}

/// Runs a command to its end.
pub(crate) async fn to_its_end(mut command: Command) -> Seen {
    let output = patiently("the command to end", command.output()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Seen { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A command that is under way.
pub(crate) struct Started {
    child: Child,
    told: watch::Receiver<String>,
    talk: tokio::task::JoinHandle<()>,
}

impl Started {
    /// Starts a command.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, told) = watch::channel(String::new());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let talk = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                tell.send_modify(|all| {
                    all.push_str(&line);
                    all.push('\n');
                });
            }
        });
        Self { child, told, talk }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Sends a signal, by its short name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let status = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Waits until stderr says this.
    pub(crate) async fn says(&mut self, text: &str) {
        patiently(text, self.told.wait_for(|all| all.contains(text))).await.unwrap();
    }

    /// Waits until stdout has a line, and reads it.
    pub(crate) async fn first_line(&mut self) -> String {
        let mut line = Vec::new();
        let stdout = self.child.stdout.as_mut().unwrap();
        while !line.ends_with(b"\n") {
            line.push(stdout.read_u8().await.unwrap());
        }
        String::from_utf8(line).unwrap()
    }

    /// Waits for the end without reading what stands on stdout.
    pub(crate) async fn code(mut self) -> Option<i32> {
        patiently("the process to end", self.child.wait()).await.unwrap().code()
    }

    /// Waits for the end.
    pub(crate) async fn end(mut self) -> Seen {
        let mut stdout = String::new();
        patiently("stdout to end", self.child.stdout.take().unwrap().read_to_string(&mut stdout))
            .await
            .unwrap();
        let status = patiently("the process to end", self.child.wait()).await.unwrap();
        patiently("stderr to end", &mut self.talk).await.unwrap();
        let stderr = self.told.borrow().clone();
        Seen { code: status.code(), stdout, stderr }
    }
}

/// Waits, but not for ever.
pub(crate) async fn patiently<T>(what: &str, wait: impl Future<Output = T>) -> T {
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("waited too long for: {what}"))
}
