//! The shell as its users see it: real helpers, real bash, real kills.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and print their figures"
)]

mod confine;
mod copy;
mod denial;
mod ending;
mod escape;
mod forgery;
mod hosting;
mod memory;
mod orphans;
mod output;
mod proxy;
mod session;
mod templates;
mod worker;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use convoke_sandbox::{
    Ending, Finished, HelperPath, HoldChoice, OutputSpec, Policy, RunCommand, Shell, ShellConfig, ShellState,
    Templates,
};
use tempfile::TempDir;

/// Longer than anything takes on a busy machine; nothing that passes waits this long.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Makes a test of each function, once for every form of hold.
macro_rules! in_both_holds {
    ($($name:ident)*) => {
        mod pid_namespace {
            $(#[tokio::test] async fn $name() { super::$name(convoke_sandbox::HoldChoice::Best).await })*
        }
        mod subreaper {
            $(#[tokio::test] async fn $name() { super::$name(convoke_sandbox::HoldChoice::Subreaper).await })*
        }
    };
}
pub(crate) use in_both_holds;

/// A shell in a directory of its own.
pub(crate) struct ShellFixture {
    pub(crate) shell: Shell,
    pub(crate) dir: TempDir,
}

/// Names the helper where the tests run as a user who cannot read the build directory.
pub(crate) const HELPER_VARIABLE: &str = "CONVOKE_TEST_HELPER";

pub(crate) fn helper() -> HelperPath {
    let given = std::env::var_os(HELPER_VARIABLE).map(PathBuf::from);
    HelperPath::new(given.unwrap_or(env!("CARGO_BIN_EXE_convoke-sandbox-helper").into()))
}

/// The build directory need not be readable for others. Another process copies: a descriptor of ours that is
/// open for writing would be inherited by the children of tests running beside this one, and the copy could
/// not be executed.
pub(crate) fn readable_copy(program: &Path, dir: &Path) -> PathBuf {
    let copy = dir.join(program.file_name().unwrap());
    assert!(Command::new("cp").arg(program).arg(&copy).status().unwrap().success());
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

pub(crate) fn config(dir: &TempDir, hold: HoldChoice, restored: Option<ShellState>) -> ShellConfig {
    let env = [("PATH", "/usr/bin:/bin"), ("GIVEN", "yes")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let policy = Policy::off(path(dir));
    ShellConfig {
        helper: helper(),
        cwd: path(dir),
        env: BTreeMap::from(env),
        restored,
        hold,
        policy,
        layers: None,
        templates: Templates::default(),
        promise: Default::default(),
        writes: None,
    }
}

/// The directory's name without symbolic links.
pub(crate) fn path(dir: &TempDir) -> PathBuf {
    dir.path().canonicalize().unwrap()
}

impl ShellFixture {
    pub(crate) async fn new(hold: HoldChoice) -> Self {
        let dir = TempDir::new().unwrap();
        let shell = Shell::start(config(&dir, hold, None)).await.unwrap();
        Self { shell, dir }
    }

    pub(crate) fn command(&self, command: &str, deadline: Duration) -> RunCommand {
        RunCommand {
            command: command.to_owned(),
            deadline,
            output: OutputSpec::new(self.dir.path().join("full output")),
        }
    }

    pub(crate) async fn run(&mut self, command: &str) -> Finished {
        self.run_within(command, LONG).await
    }

    pub(crate) async fn run_within(&mut self, command: &str, deadline: Duration) -> Finished {
        let command = self.command(command, deadline);
        self.shell.run(command, std::future::pending()).await.unwrap()
    }

    /// Runs a command that must keep the shell, and compares its exit code and all it printed.
    pub(crate) async fn check(&mut self, command: &str, code: i32, text: &str) {
        let finished = self.run(command).await;
        assert_eq!(finished.output.text, text, "{command}: {finished:?}");
        assert_eq!(finished.ending, Ending::Exited(code), "{command}: {finished:?}");
        assert_eq!(finished.shell_replaced, None, "{command}");
    }
}

/// A number of seconds that no other process sleeps for, by which the processes of one test are found.
pub(crate) fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("3000.{:07}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How many living processes sleep for this long.
pub(crate) fn sleepers(seconds: &str) -> usize {
    let wanted = format!("sleep\0{seconds}\0");
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|cmdline| cmdline.ends_with(wanted.as_bytes()))
        .count()
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < LONG, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
