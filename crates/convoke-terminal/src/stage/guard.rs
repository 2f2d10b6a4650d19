//! The guard: a small process beside the session that gives the terminal back if the session cannot do it any
//! more, because it was killed. It waits at one end of a line to the session and does nothing as long as that
//! lives; it draws nothing and reads no keys.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, QueueSelector, Termios, Winsize, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr, tcsetwinsize,
};

use super::hold::{Picture, way_back};

/// What the first argument of a process is that guards a terminal.
pub const GUARD_ARGUMENT: &str = "__convoke-guard";

/// How long a guard may take to start, to leave, and to write its last words to a terminal that takes
/// nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// To be called first in `main`: if this process is a guard, it guards and never returns.
pub fn guard_entry() {
    if is_guard() {
        // An error can be reported to no other process: the guard gives back what it can.
        let _ = watch();
        std::process::exit(0);
    }
}

fn is_guard() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == GUARD_ARGUMENT)
}

/// The session's side of a guard.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    line: UnixStream,
}

impl Guard {
    /// Starts a guard for the terminal, and waits until it has seen how that is set: afterwards it may be
    /// changed. The guard gets no environment, because secrets are in it, and a process group of its own,
    /// because keys that stop the session must not stop it.
    pub(super) fn start(terminal: &File) -> io::Result<Self> {
        // A program that forgets `guard_entry` would start itself again and again.
        if is_guard() {
            return Err(io::Error::other(
                "this process was started as a guard, and its main does not call guard_entry first",
            ));
        }
        let (mut line, theirs) = UnixStream::pair()?;
        let process = Command::new(std::env::current_exe()?)
            .arg(GUARD_ARGUMENT)
            .stdin(OwnedFd::from(theirs))
            .stdout(terminal.try_clone()?)
            .stderr(Stdio::null())
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        line.set_read_timeout(Some(PATIENCE))?;
        let is_ready = line.read_exact(&mut [0]);
        let mut guard = Self { process, line };
        is_ready.inspect_err(|_| guard.end())?;
        Ok(guard)
    }

    /// Tells it what the terminal shows. A guard that is gone cannot be told, and the session goes on without
    /// it.
    pub(super) fn tell(&mut self, picture: Picture) {
        let _ = self.line.write_all(&[picture.byte()]);
    }

    /// Tells it which process has the terminal now: it would be left alone with it if the session died.
    pub(super) fn tell_borrower(&mut self, pid: Option<u32>) {
        let _ = self.line.write_all(borrower(pid).as_bytes());
    }

    /// Tells it that everything was given back, and sees it off.
    pub(super) fn dismiss(mut self) {
        self.tell(Picture::Back);
        let _ = self.line.shutdown(std::net::Shutdown::Write);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        self.end();
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The guard's own life: standard input is the line to the session, standard output the terminal.
fn watch() -> io::Result<()> {
    // No signal may end the guard before the session, and one that writes to a terminal in the background is
    // stopped unless it blocks that.
    SigSet::all().thread_block()?;
    let stdout = io::stdout();
    let terminal = stdout.as_fd();
    let before = tcgetattr(terminal)?;
    let mut line = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    line.write_all(b"!")?;
    match last_heard(&mut line) {
        // An editor whose session is gone would go on taking keys that are meant for a shell.
        (Picture::Lent, Some(pid)) => Ok(kill_process(pid, Signal::HUP)?),
        (Picture::Back | Picture::Lent, _) => Ok(()),
        (picture, _) => rescue(terminal, &before, picture),
    }
}

/// A borrower as it is told: in letters that mean nothing else.
fn borrower(pid: Option<u32>) -> String {
    let letter = |digit: char| char::from(b'A' + u8::try_from(digit.to_digit(16).unwrap_or(0)).unwrap_or(0));
    let letters: String = pid.map(|pid| format!("{pid:x}").chars().map(letter).collect()).unwrap_or_default();
    format!("<{letters}>")
}

/// What the session said last before its end of the line was closed: what the terminal shows, and which
/// process has the terminal.
fn last_heard(line: &mut impl Read) -> (Picture, Option<Pid>) {
    let mut picture = Picture::Back;
    let mut number = 0i32;
    let mut bytes = [0; 64];
    loop {
        let count = match line.read(&mut bytes) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return (picture, Pid::from_raw(number)),
            Ok(count) => count,
        };
        for byte in &bytes[..count] {
            match byte {
                b'<' => number = 0,
                b'A'..=b'P' => number = number.saturating_mul(16).saturating_add(i32::from(byte - b'A')),
                byte => picture = Picture::of(*byte).unwrap_or(picture),
            }
        }
    }
}

/// Gives the terminal back in place of the session.
fn rescue(terminal: BorrowedFd<'_>, before: &Termios, picture: Picture) -> io::Result<()> {
    // A terminal that takes no output would hold the guard for ever.
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        std::process::exit(1);
    });
    let mut out = File::from(terminal.try_clone_to_owned()?);
    // A shell may have been faster: then the terminal is set as the shell wants it. If not, what was typed
    // was meant for the session, and a shell must not take it for commands.
    if tcgetattr(terminal).is_ok_and(|now| is_raw(&now)) {
        tcflush(terminal, QueueSelector::IFlush)?;
        tcsetattr(terminal, OptionalActions::Now, before)?;
    }
    out.write_all(&way_back(picture, None))?;
    draw_again(terminal)
}

/// Whether the terminal is set as a session sets it. What line editors of shells set is less than that.
fn is_raw(termios: &Termios) -> bool {
    let local = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    !termios.local_modes.intersects(local) && !termios.output_modes.contains(OutputModes::OPOST)
}

/// Makes the program that has the terminal now draw again: its prompt may have gone with the screen that was
/// left. Line editors do so only if the size changes, so it changes for a moment.
fn draw_again(terminal: BorrowedFd<'_>) -> io::Result<()> {
    let size = tcgetwinsize(terminal)?;
    let other = Winsize { ws_row: size.ws_row.saturating_add(1), ..size };
    tcsetwinsize(terminal, other)?;
    thread::sleep(Duration::from_millis(50));
    // The terminal may have become larger or smaller meanwhile: that size stays.
    if tcgetwinsize(terminal)?.ws_row == other.ws_row {
        tcsetwinsize(terminal, size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_what_the_session_said_last() {
        let check = |said: &[u8], expected| assert_eq!(last_heard(&mut &*said).0, expected, "{said:?}");
        check(b"", Picture::Back);
        check(b"0", Picture::Inline);
        check(b"01", Picture::Whole);
        check(b"010", Picture::Inline);
        check(b"01l", Picture::Lent);
        check(b"01q", Picture::Back);
        check(b"1?", Picture::Whole);
    }

    #[test]
    fn who_has_the_terminal_meanwhile_is_known_by_its_number() {
        let check = |said: String, expected: Option<i32>| {
            let heard = last_heard(&mut said.as_bytes());
            assert_eq!(
                (heard.0, heard.1.map(Pid::as_raw_nonzero).map(i32::from)),
                (Picture::Lent, expected),
                "{said}"
            );
        };
        check(format!("01l{}", borrower(Some(4_711))), Some(4_711));
        check(format!("01l{}{}", borrower(Some(4_711)), borrower(None)), None);
        check(format!("{}0l{}", borrower(Some(1)), borrower(Some(0x10_1111))), Some(0x10_1111));
        check("0l".to_owned(), None);
    }
}
