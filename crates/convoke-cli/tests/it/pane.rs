//! A shell in a pane of a tmux server of its own, in which the binary runs as it would for a person: keys are
//! pressed, and what is shown is waited for. The server ends with the test, and nothing of any other one is
//! touched.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::stage::Stage;

/// How long anything may take to be seen: two cores, many tests at once.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(40);

/// What the shell shows when it waits for a command.
const PROMPT: &str = "ready>";

/// A shell in a terminal.
pub(crate) struct Pane {
    folder: TempDir,
    envs: Vec<(OsString, OsString)>,
    dir: PathBuf,
}

impl Pane {
    /// A shell in the stage's directory, with the stage's environment alone, in 80 columns and 24 rows.
    pub(crate) async fn open(stage: &Stage) -> Self {
        Self::with(stage, (80, 24), &[]).await
    }

    /// The same of another size and with more in the environment.
    pub(crate) async fn with(stage: &Stage, (columns, rows): (u16, u16), more: &[(&str, &str)]) -> Self {
        let plain = stage.command(&[]);
        let given =
            plain.as_std().get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let mut envs: Vec<(OsString, OsString)> = given.filter(|(name, _)| name != "PATH").collect();
        let binary = Path::new(env!("CARGO_BIN_EXE_convoke")).parent().unwrap();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(binary.to_owned()).chain(std::env::split_paths(&paths));
        envs.push(("PATH".into(), std::env::join_paths(all).unwrap()));
        envs.extend([("LANG", "C.UTF-8"), ("SHELL", "/bin/bash"), ("TERM", "xterm-256color")].map(own));
        envs.extend(more.iter().copied().map(own));
        let pane = Self { folder: tempfile::tempdir().unwrap(), envs, dir: stage.work() };
        let columns = columns.to_string();
        let rows = rows.to_string();
        // tmux says itself which terminal it is; a test that wants another one says so in the shell.
        let term =
            more.iter().find(|(name, _)| *name == "TERM").map_or("xterm-256color", |(_, value)| *value);
        let shell = format!("exec env TERM={term} PS1='{PROMPT} ' bash --norc --noprofile");
        pane.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, &shell]).await;
        pane.shows(PROMPT).await;
        pane
    }

    /// Types this, character by character as a keyboard would.
    pub(crate) async fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]).await;
    }

    /// Presses a key by its name: `Enter`, `C-o`, `M-Enter`, `Escape`.
    pub(crate) async fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]).await;
    }

    /// Types a line and Enter.
    pub(crate) async fn enter(&self, line: &str) {
        self.types(line).await;
        self.press("Enter").await;
    }

    /// Pastes this as a terminal does that was asked to mark what is pasted.
    pub(crate) async fn pastes(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]).await;
        self.tmux(&["paste-buffer", "-p", "-r"]).await;
    }

    /// Gives the terminal another size.
    pub(crate) async fn resize(&self, (columns, rows): (u16, u16)) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]).await;
    }

    /// What is on the screen.
    pub(crate) async fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).await
    }

    /// What is on the screen, with the sequences that colour it.
    pub(crate) async fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"]).await
    }

    /// What is on the screen and above it; rows that the terminal has broken are whole again.
    pub(crate) async fn all(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]).await
    }

    /// What tmux knows of the pane, by its own format.
    pub(crate) async fn knows(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format]).await.trim().to_owned()
    }

    /// Waits until this is on the screen, and gives the screen.
    pub(crate) async fn shows(&self, text: &str) -> String {
        self.until(&format!("{text:?} to be shown"), |screen| screen.contains(text)).await
    }

    /// Waits until all of this is on the screen at once. A picture can be caught half drawn, so a part that
    /// is looked for in the screen which another part was waited for may not be there yet.
    pub(crate) async fn shows_all(&self, parts: &[&str]) -> String {
        self.until(&format!("{parts:?} to be shown"), |screen| parts.iter().all(|part| screen.contains(part)))
            .await
    }

    /// Waits until this is on the screen no more.
    pub(crate) async fn hides(&self, text: &str) -> String {
        self.until(&format!("{text:?} to be gone"), |screen| !screen.contains(text)).await
    }

    /// Waits until the screen is as it should be, and gives it.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen().await;
            if is_so(&screen) {
                return screen;
            }
            if Instant::now() > deadline {
                panic!("waited in vain for {what}:\n{}", self.all().await.trim_end());
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until this many times this is on the screen or above it.
    pub(crate) async fn told(&self, text: &str, times: usize) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = self.all().await;
            if all.matches(text).count() >= times {
                return all;
            }
            assert!(
                Instant::now() < deadline,
                "waited in vain for {text:?} ({times} times):\n{}",
                all.trim_end()
            );
            sleep(LOOK).await;
        }
    }

    /// Waits for the shell, and checks that the terminal is as it was: nothing of the whole screen is left,
    /// and what is typed is seen.
    pub(crate) async fn is_usable(&self) {
        let is_last =
            |screen: &str| screen.trim_end().lines().last().is_some_and(|row| row.trim_end() == PROMPT);
        self.until("the shell to wait for a command", is_last).await;
        assert_eq!(
            self.knows("#{alternate_on} #{cursor_flag} #{wrap_flag} #{mouse_any_flag}").await,
            "0 1 1 0"
        );
        self.types("echo alive$((40+2))").await;
        self.shows("echo alive$((40+2))").await;
        self.press("Enter").await;
        self.shows("\nalive42\n").await;
    }

    async fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::from(self.command(arguments));
        let output = command.kill_on_drop(true).output().await.unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(tmux());
        command
            .arg("-u")
            .arg("-S")
            .arg(self.folder.path().join("s"))
            .args(["-f", "/dev/null"])
            .args(arguments);
        command.env_clear().envs(self.envs.iter().cloned()).current_dir(&self.dir);
        command
    }
}

/// Where tmux is. A program that is named by its path is started without a copy of this process, which is
/// large and looks at panes thousands of times.
pub(crate) fn tmux() -> &'static Path {
    static TMUX: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|directory| directory.join("tmux"));
        found.into_iter().find(|program| program.is_file()).unwrap()
    });
    &TMUX
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

fn own((name, value): (&str, &str)) -> (OsString, OsString) {
    (name.into(), value.into())
}
