//! A command of the person's own (`!cmd`): run by the person's shell, as the person and outside of the
//! sandbox, in the session's directory and without a keyboard. What it prints is shown; nothing of it reaches
//! the lead.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use convoke_terminal::{Screen, ScreenUpdate};
use convoke_view::seconds;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio::sync::mpsc::UnboundedSender;

use crate::failure::Failure;

/// More than this of what it prints is counted and not shown.
const MOST: usize = 100_000;

/// How long what it left behind may go on printing once it has ended.
const LATE: Duration = Duration::from_millis(200);

/// The command that runs, if one does.
#[derive(Debug, Clone, Default)]
pub(super) struct Shell(Arc<Mutex<Option<Running>>>);

#[derive(Debug)]
struct Running {
    group: Pid,
    /// Whether it was asked to end already.
    is_ending: bool,
}

/// What was printed so far, and how much of it is not kept.
#[derive(Default)]
struct Printed {
    bytes: Vec<u8>,
    more: usize,
}

impl Shell {
    /// Runs a command. One at a time: what two of them print could not be told apart.
    pub(super) fn run(
        &self,
        screen: &UnboundedSender<Screen>,
        dir: &Path,
        command: &str,
    ) -> Result<(), Failure> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Err(Failure::usage("a command of yours is still running").hint("Esc ends it"));
        }
        let cannot = |error: std::io::Error| Failure::failed(format!("your command cannot be run: {error}"));
        let shell =
            std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
        let (reader, writer) = std::io::pipe().map_err(cannot)?;
        let mut child = Command::new(shell)
            .arg("-c")
            .arg(command)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::from(writer.try_clone().map_err(cannot)?))
            .stderr(Stdio::from(writer))
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        *running = pid.map(|group| Running { group, is_ending: false });
        let shell = self.clone();
        let screen = screen.clone();
        let command = command.to_owned();
        let began = Instant::now();
        let tell = move |told: ScreenUpdate| drop(screen.send(Screen::Update(told)));
        tell(ScreenUpdate::Shell(Some(command.clone())));
        let printed = Arc::new(Mutex::new(Printed::default()));
        let kept = printed.clone();
        // A thread of its own: a process that the command left behind keeps the pipe open, and a runtime
        // waits for its own threads.
        let (over, reading) = tokio::sync::oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("own-command".to_owned())
            .spawn(move || {
                read(reader, &kept);
                drop(over);
            })
            .map_err(cannot)?;
        tokio::spawn(async move {
            let ended = child.wait().await;
            let _ = tokio::time::timeout(LATE, reading).await;
            *shell.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
            let text = printed.lock().unwrap_or_else(PoisonError::into_inner).text();
            tell(ScreenUpdate::Text { title: format!("! {command}"), text });
            let how = match ended {
                Ok(status) => status.to_string().replace("exit status: ", "exit "),
                Err(error) => format!("its end was not seen: {error}"),
            };
            let took = seconds(began.elapsed());
            tell(ScreenUpdate::Note(format!(
                "{how} · {took} · run as you, outside of the sandbox; the lead has not seen it"
            )));
            tell(ScreenUpdate::Shell(None));
        });
        Ok(())
    }

    /// Ends what runs: asks it to, and kills it the second time.
    pub(super) fn stop(&self) {
        if let Some(running) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let signal = if running.is_ending { Signal::KILL } else { Signal::TERM };
            running.is_ending = true;
            // One that has ended meanwhile needs no signal.
            let _ = kill_process_group(running.group, signal);
            // One that wanted the keyboard is stopped and would not hear of it.
            let _ = kill_process_group(running.group, Signal::CONT);
        }
    }
}

impl Printed {
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        match (self.more, text.trim().is_empty()) {
            (0, true) => "(no output)".to_owned(),
            (0, false) => text,
            (more, _) => format!("{}\n({more} bytes more are not shown)", text.trim_end()),
        }
    }
}

fn read(mut from: impl Read, printed: &Mutex<Printed>) {
    let mut piece = [0; 8_192];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = count.min(MOST.saturating_sub(printed.bytes.len()));
        printed.bytes.extend_from_slice(&piece[..kept]);
        printed.more += count - kept;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn a_command_of_the_persons_is_run_in_the_directory_shown_and_can_be_ended() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("here.txt"), "").unwrap();
        let (screen, mut told) = unbounded_channel();
        let shell = Shell::default();
        shell.run(&screen, dir.path(), "ls; echo wrong >&2; exit 3").unwrap();
        let mut said = Vec::new();
        while let Some(Screen::Update(told)) = told.recv().await {
            match told {
                ScreenUpdate::Text { title, text } => said.push(format!("{title}: {text}")),
                ScreenUpdate::Note(text) => said.push(text),
                ScreenUpdate::Shell(None) => break,
                _ => {}
            }
        }
        assert_eq!(said[0], "! ls; echo wrong >&2; exit 3: here.txt\nwrong\n");
        assert!(said[1].starts_with("exit 3 · ") && said[1].contains("outside of the sandbox"), "{said:?}");
        shell.run(&screen, dir.path(), "sleep 1000").unwrap();
        assert!(shell.run(&screen, dir.path(), "ls").is_err(), "one at a time");
        shell.stop();
        while !matches!(told.recv().await, Some(Screen::Update(ScreenUpdate::Shell(None)))) {}
    }
}
