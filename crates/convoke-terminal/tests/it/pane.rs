//! A shell in a pane of a tmux server of its own, and the waiting for what is seen in it. No test of another
//! process is touched.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long anything may take to be seen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A shell in a pane. Its server ends with it.
pub(crate) struct Pane {
    folder: TempDir,
}

impl Pane {
    /// A bash of 80 columns and 24 rows that has shown its prompt, `ready> `.
    pub(crate) fn open() -> Self {
        let pane = Self { folder: tempfile::tempdir().unwrap() };
        let shell = ["env", "PS1=ready> ", "bash", "--norc", "--noprofile"];
        pane.tmux(&[&["new-session", "-d", "-x", "80", "-y", "24"], shell.as_slice()].concat());
        pane.until("the prompt", || pane.screen().contains("ready>"));
        pane
    }

    /// A pane in which the program has shown its region.
    pub(crate) fn with_program() -> Self {
        let pane = Self::open();
        pane.enter(&program().display().to_string());
        pane.sees("STATUS count");
        pane
    }

    /// Types a line.
    pub(crate) fn enter(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    /// Presses keys by their names.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Gives the pane this size.
    pub(crate) fn resize(&self, columns: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", "24"]);
    }

    /// What the pane shows.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Everything that the pane has shown and shows; rows that it has broken are joined.
    pub(crate) fn all(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// What tmux knows of the pane.
    pub(crate) fn knows(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format]).trim().to_owned()
    }

    /// Waits until this is on the screen.
    pub(crate) fn sees(&self, text: &str) {
        self.until(text, || self.screen().contains(text));
    }

    /// Waits until this is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "waited in vain for {what}:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Sends a signal to the program, not to its guard.
    pub(crate) fn signal(&self, signal: Signal) {
        let found = self.programs(false);
        let [program] = found.as_slice() else { panic!("one program is to run here, not {found:?}") };
        kill(Pid::from_raw(*program), signal).unwrap();
    }

    /// The programs in this pane (or the guards) by their number.
    pub(crate) fn programs(&self, guards: bool) -> Vec<i32> {
        let terminal = std::fs::metadata(self.knows("#{pane_tty}")).unwrap().rdev();
        let numbers = std::fs::read_dir("/proc").unwrap();
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        numbers.filter(|number| is_program(*number, terminal, guards).unwrap_or(false)).collect()
    }

    /// The shell has the terminal again and it is as it was.
    pub(crate) fn is_usable(&self) {
        self.until("the end of the program", || self.programs(false).is_empty());
        self.until("the end of the guard", || self.programs(true).is_empty());
        self.sees("ready>");
        self.enter("echo alive$((40+2))");
        self.sees("alive42");
        assert_eq!(self.knows("#{alternate_on} #{cursor_flag} #{wrap_flag} #{mouse_any_flag}"), "0 1 1 0");
        self.enter("clear; stty -a; echo all$((40+2))");
        self.sees("all42");
        let settings = self.screen();
        for setting in ["isig", "icanon", "echo", "opost", "icrnl"] {
            assert!(settings.split_whitespace().any(|word| word == setting), "{setting} is off:\n{settings}");
        }
    }

    /// Closes the terminal, and waits until these have ended.
    pub(crate) fn close(&self, numbers: &[i32]) {
        self.tmux(&["kill-server"]);
        let deadline = Instant::now() + PATIENCE;
        let lives = |number: &i32| {
            std::fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|words| !words.is_empty())
        };
        while numbers.iter().any(lives) {
            assert!(Instant::now() < deadline, "one of {numbers:?} lives on");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        assert!(status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(self.folder.path().join("s"))
            .args(["-f", "/dev/null"])
            .args(arguments);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.folder.path());
        command.env("LC_ALL", "C.UTF-8").env("SHELL", "/bin/bash").env("TERM", "xterm");
        command
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

/// The program on a stage.
pub(crate) fn program() -> PathBuf {
    example("stage")
}

/// One of the programs for these tests: cargo builds them along with the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(program.exists(), "build it first: cargo build -p convoke-terminal --example {name}");
    program
}

/// Whether a process is the program (or its guard) and lives in this terminal; `None` if it is gone.
fn is_program(number: i32, terminal: u64, guards: bool) -> Option<bool> {
    let words = std::fs::read_to_string(format!("/proc/{number}/cmdline")).ok()?;
    let state = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let fields: Vec<&str> = state.rsplit(')').next()?.split_whitespace().collect();
    let is_here = fields.get(4)?.parse() == Ok(terminal);
    let is_ours = Path::new(words.split('\0').next()?).parent() == program().parent();
    Some(is_here && is_ours && words.contains("__convoke-guard") == guards)
}
