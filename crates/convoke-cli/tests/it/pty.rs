//! The binary in a terminal of its own, as an ordinary user where the suite runs as root: what it shows is
//! waited for, and what a person would type is typed.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

use crate::stage::{Stage, patiently};

const NOBODY: u32 = 65_534;

/// A terminal with the binary in it.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: watch::Receiver<String>,
    reading: tokio::task::JoinHandle<()>,
    /// How much of what is shown has been waited for.
    seen: usize,
}

/// What stood on the terminal, every byte of it, and how it ended.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
}

impl Shown {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.text);
        self
    }
}

impl Terminal {
    /// Starts the binary with these arguments, quoted as for a shell, in a terminal of 80 columns.
    pub(crate) fn open(stage: &Stage, args: &str) -> Self {
        Self::sized(stage, 80, args)
    }

    pub(crate) fn sized(stage: &Stage, columns: u32, args: &str) -> Self {
        let binary = env!("CARGO_BIN_EXE_convoke");
        let line = format!("stty rows 40 cols {columns}; exec {binary} {args}");
        let mut command = as_somebody(stage, binary);
        command.args(["script", "-qec", &line, "/dev/null"]).current_dir(stage.work()).env_clear();
        let plain = stage.command(&[]);
        command.envs(plain.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm").env("SHELL", "/bin/sh").kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let mut screen = child.stdout.take().unwrap();
        let (show, shown) = watch::channel(String::new());
        let reading = tokio::spawn(async move {
            let mut bytes = vec![0; 4_096];
            // A character may come in two pieces; the rest of it waits for the next.
            let mut rest = Vec::new();
            while let Ok(read @ 1..) = screen.read(&mut bytes).await {
                rest.extend_from_slice(&bytes[..read]);
                let whole = match std::str::from_utf8(&rest) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text: Vec<u8> = rest.drain(..whole).collect();
                show.send_modify(|all| all.push_str(&String::from_utf8(text).unwrap()));
            }
        });
        Self { child, keys, shown, reading, seen: 0 }
    }

    /// Waits until this is shown, after everything that was waited for before.
    pub(crate) async fn shows(&mut self, text: &str) {
        let from = self.seen;
        let ending = self.shown.clone();
        let waited = self.shown.wait_for(|all| all[from..].contains(text));
        let found = patiently(&format!("{text:?} on the terminal"), waited).await;
        let at = match found {
            Ok(all) => from + all[from..].find(text).unwrap() + text.len(),
            Err(_) => panic!("it ended without {text:?}: {}", &ending.borrow()[from..]),
        };
        self.seen = at;
    }

    /// Types this.
    pub(crate) async fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    /// Waits for the end.
    pub(crate) async fn end(mut self) -> Shown {
        let status = patiently("the terminal to close", self.child.wait()).await.unwrap();
        patiently("the terminal to be read", &mut self.reading).await.unwrap();
        Shown { code: status.code(), text: self.shown.borrow().clone() }
    }
}

/// A command that runs another one as an ordinary user, if this is root and that user can get at the binary.
fn as_somebody(stage: &Stage, binary: &str) -> Command {
    let drop = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let place = stage.home().parent().unwrap().to_owned();
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_root {
        own(&place);
        let reaches = std::process::Command::new("setpriv").args(drop).args(["test", "-x", binary]).status();
        if reaches.is_ok_and(|status| status.success()) {
            let mut command = Command::new("setpriv");
            command.args(drop);
            return command;
        }
        let note = format!("an ordinary user cannot reach {binary}: this is tried as root alone\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
    }
    Command::new("env")
}

/// Gives everything here to the ordinary user.
fn own(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path());
        }
    }
}
