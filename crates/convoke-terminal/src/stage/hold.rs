//! The hold on the terminal: raw keys, the guard, and the panic hook that lets go before a message is
//! printed. It knows how to let go and nothing of what is drawn.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, kill_current_process_group};

use super::guard::Guard;
use super::{CLEAR_FROM_HERE, LEAVE_WHOLE, PASTE_OFF, SHOW_CURSOR, SYNC_OFF, WRAP_ON};

/// What the terminal shows of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picture {
    /// The region at the bottom.
    Inline,
    /// The whole screen.
    Whole,
    /// Nothing: another program has the terminal for a while.
    Lent,
    /// Nothing any more.
    Back,
}

impl Picture {
    /// As it is told to the guard.
    pub(super) fn byte(self) -> u8 {
        match self {
            Self::Inline => b'0',
            Self::Whole => b'1',
            Self::Lent => b'l',
            Self::Back => b'q',
        }
    }

    /// From what the guard was told.
    pub(super) fn of(byte: u8) -> Option<Self> {
        [Self::Inline, Self::Whole, Self::Lent, Self::Back].into_iter().find(|picture| picture.byte() == byte)
    }
}

/// The way back from a picture to a terminal that a shell can use. `above`: how many rows of the region are
/// above the cursor, where that is known; where it is not, the region stays and the shell goes on below it.
pub(super) fn way_back(picture: Picture, above: Option<u16>) -> Vec<u8> {
    if matches!(picture, Picture::Lent | Picture::Back) {
        return Vec::new();
    }
    let mut bytes = [b"\x1b[0m", SYNC_OFF, WRAP_ON].concat();
    if picture == Picture::Whole {
        bytes.extend_from_slice(LEAVE_WHOLE);
    }
    match above {
        Some(0) => {}
        Some(rows) => bytes.extend_from_slice(format!("\x1b[{rows}A").as_bytes()),
        None => bytes.extend_from_slice(b"\r\n"),
    }
    [&bytes, CLEAR_FROM_HERE, SHOW_CURSOR, PASTE_OFF].concat()
}

/// A hold on the terminal.
pub(super) struct Hold {
    shared: Arc<Shared>,
    guard: Option<Guard>,
    earlier: Arc<Hook>,
    is_over: bool,
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync + 'static;

/// What the panic hook knows too.
struct Shared {
    terminal: File,
    picture: AtomicU8,
    above: AtomicU16,
    /// The thread that draws: if it panics, nothing will be drawn any more.
    owner: ThreadId,
    /// What was said by panics of other threads; the session goes on, and says it where it can be read.
    said: Mutex<Vec<String>>,
}

impl Hold {
    /// Takes the terminal. If no guard can be started, the session runs without: that is better than none.
    pub(super) fn take(guarded: bool) -> io::Result<Self> {
        let terminal = match OpenOptions::new().read(true).write(true).open("/dev/tty") {
            Ok(terminal) => terminal,
            Err(_) => File::from(io::stdout().as_fd().try_clone_to_owned()?),
        };
        let guard = if guarded { Guard::start(&terminal).ok() } else { None };
        let shared = Arc::new(Shared {
            terminal,
            picture: AtomicU8::new(Picture::Lent.byte()),
            above: AtomicU16::new(0),
            owner: thread::current().id(),
            said: Mutex::default(),
        });
        let earlier: Arc<Hook> = Arc::from(panic::take_hook());
        let hooked = Arc::clone(&shared);
        let before = Arc::clone(&earlier);
        panic::set_hook(Box::new(move |info| hooked.panicked(info, &*before)));
        let mut hold = Self { shared, guard, earlier, is_over: false };
        match hold.resume() {
            Ok(()) => Ok(hold),
            Err(e) => {
                hold.release()?;
                Err(e)
            }
        }
    }

    /// What is shown is about to change, or has changed.
    pub(super) fn shows(&mut self, picture: Picture) {
        if self.shared.picture.swap(picture.byte(), Ordering::SeqCst) != picture.byte() {
            self.guard.iter_mut().for_each(|guard| guard.tell(picture));
        }
    }

    /// How many rows of the region are above the cursor.
    pub(super) fn stands_below(&self, rows: u16) {
        self.shared.above.store(rows, Ordering::SeqCst);
    }

    /// Whether there is something on the terminal that has to be taken back.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.shared.picture(), Picture::Inline | Picture::Whole)
    }

    /// What was said by panics of other threads.
    pub(super) fn said(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether panics of other threads have said something.
    pub(super) fn has_said(&self) -> bool {
        !self.shared.said.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Lets go of the keys.
    pub(super) fn pause(&mut self) -> io::Result<()> {
        let let_go = disable_raw_mode();
        self.shows(Picture::Lent);
        let_go
    }

    /// Tells the guard which process has the terminal while it is lent.
    pub(super) fn lent_to(&mut self, pid: Option<u32>) {
        self.guard.iter_mut().for_each(|guard| guard.tell_borrower(pid));
    }

    /// Takes the keys again. In the background this stops the process, so the guard is told only afterwards:
    /// until then the terminal belongs to another program.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.shows(Picture::Inline);
        Ok(())
    }

    /// Lets go for good.
    pub(super) fn release(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        let let_go = disable_raw_mode();
        self.shows(Picture::Back);
        self.guard.take().into_iter().for_each(Guard::dismiss);
        // While this thread panics the hook is in use and cannot be changed; it does nothing any more but
        // what the earlier one did.
        if !thread::panicking() {
            let earlier = Arc::clone(&self.earlier);
            panic::set_hook(Box::new(move |info| earlier(info)));
        }
        let_go
    }
}

impl Shared {
    fn picture(&self) -> Picture {
        Picture::of(self.picture.load(Ordering::SeqCst)).unwrap_or(Picture::Back)
    }

    fn panicked(&self, info: &PanicHookInfo<'_>, earlier: &Hook) {
        let picture = self.picture();
        let is_shown = matches!(picture, Picture::Inline | Picture::Whole);
        if is_shown && thread::current().id() == self.owner {
            // The guard still believes in the picture: if the unwinding is cut short, it gives the terminal
            // back once more, which does no harm.
            self.picture.store(Picture::Back.byte(), Ordering::SeqCst);
            let _ = (&self.terminal).write_all(&way_back(picture, Some(self.above.load(Ordering::SeqCst))));
            let _ = disable_raw_mode();
            earlier(info);
        } else if is_shown && io::stderr().is_terminal() {
            self.said.lock().unwrap_or_else(PoisonError::into_inner).push(message(info));
        } else {
            earlier(info);
        }
    }
}

fn message(info: &PanicHookInfo<'_>) -> String {
    let place =
        info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    let thread = thread::current();
    let name = thread.name().unwrap_or("without a name");
    format!(
        "a part of Convoke broke (thread {name}{place}): {}",
        info.payload_as_str().unwrap_or("no message")
    )
}

/// Stops this process group as Ctrl-Z does, and returns when it goes on. The stop may reach another thread
/// first, so this one waits for the signal that ends it; where stopping is impossible (there is no process
/// that could continue us) it comes back after a second.
pub(super) fn stop_here() -> io::Result<()> {
    let goes_on = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(signal_hook::consts::SIGCONT, Arc::clone(&goes_on))?;
    let stopped = kill_current_process_group(Signal::TSTP);
    let deadline = Instant::now() + Duration::from_secs(1);
    while stopped.is_ok() && !goes_on.load(Ordering::SeqCst) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(2));
    }
    signal_hook::low_level::unregister(registered);
    Ok(stopped?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_undoes_what_the_picture_did_and_nothing_else() {
        let check = |picture, above, expected: &str| {
            assert_eq!(String::from_utf8(way_back(picture, above)).unwrap(), expected, "{picture:?}");
        };
        let begin = "\x1b[0m\x1b[?2026l\x1b[?7h";
        let end = "\r\x1b[K\x1b7\x1b[B\x1b[J\x1b8\x1b[?25h\x1b[?2004l";
        check(Picture::Back, Some(3), "");
        check(Picture::Lent, None, "");
        check(Picture::Inline, None, &format!("{begin}\r\n{end}"));
        check(Picture::Inline, Some(0), &format!("{begin}{end}"));
        check(Picture::Inline, Some(3), &format!("{begin}\x1b[3A{end}"));
        check(Picture::Whole, None, &format!("{begin}\x1b[?1049l\r\n{end}"));
    }
}
