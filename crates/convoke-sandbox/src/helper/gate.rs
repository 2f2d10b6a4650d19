//! Where bash stands, by what the kernel says of the process and never by what bash says of itself.
//!
//! A gate is a FIFO without a name. Bash opens it in a redirection and is held there, because no writer is
//! there, until the helper has looked and lets it go on. What was looked at: the depth of bash's stack, which
//! is the same each time for the same place in our script and which no function, trap or sourced text can
//! have, since it runs further down; and the exit code, which our script spells with descriptors, two bits
//! each. A descriptor of a process is changed by that process alone, and it is held.
//!
//! A gate that was opened stays open until bash is seen behind it: a signal, like the one that a job has
//! ended, takes bash out of its wait, and it comes to the gate a second time.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::sys::{self, Pid};

/// The descriptors that spell the exit code, lowest bits first, and how many bits each stands for.
pub(super) const DIGITS: [i32; 4] = [231, 232, 233, 234];
const BITS: usize = 2;

/// Shows which gate bash is at: this descriptor is a copy of it.
pub(super) const MARK: i32 = 230;

/// What is opened at a gate.
pub(super) const OPENED: i32 = 229;

/// A FIFO that cannot be found by name.
pub(super) struct Gate {
    fifo: File,
    identity: Identity,
    /// The writer that is waited for, while the gate is open.
    writer: Option<File>,
}

impl Gate {
    /// Makes one in the first of these directories in which that can be done, and takes its name away.
    pub(super) fn make(directories: &[PathBuf]) -> io::Result<Self> {
        let mut why = io::Error::from(io::ErrorKind::NotFound);
        for directory in directories {
            match Self::make_in(directory) {
                Ok(gate) => return Ok(gate),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn make_in(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!(".gate-{}", sys::random_token()?));
        sys::make_fifo(&path)?;
        let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        std::fs::remove_file(&path)?;
        let fifo = opened?;
        let identity = Identity::ours(fifo.as_fd())?;
        Ok(Self { fifo, identity, writer: None })
    }

    /// Lets the process that is held here go on, also if a signal makes it come here again.
    pub(super) fn release(&mut self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let again = format!("/proc/self/fd/{}", self.fifo.as_raw_fd());
        self.writer = Some(File::options().write(true).custom_flags(libc::O_NONBLOCK).open(again)?);
        Ok(())
    }

    /// Holds what comes here from now on. It is for when the process that was let go on is seen behind it.
    pub(super) fn close(&mut self) {
        self.writer = None;
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }

    /// Whether the process has this gate as its mark.
    fn is_mark_of(&self, pid: Pid) -> bool {
        Identity::of(pid, MARK) == Some(self.identity)
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }
}

/// How deep a process is in its calls while it waits in the kernel: its stack pointer and the place it called
/// from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    stack: u64,
    place: u64,
}

/// What a process is seen to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It runs, or waits for something else.
    Busy,
    /// It waits for more of its script.
    Reading,
    /// It is held at the gate, at this depth; `None` where the kernel does not tell depths.
    Held(Option<Depth>),
}

/// Looks at a process that may be held at this gate.
pub(super) fn look(pid: Pid, gate: &Gate) -> Look {
    match std::fs::read_to_string(format!("/proc/{pid}/syscall")) {
        Ok(text) => match parse_call(&text) {
            Some((libc::SYS_read, 0, _)) => Look::Reading,
            Some((number, _, depth)) if is_open(number) && gate.is_mark_of(pid) => Look::Held(Some(depth)),
            _ => Look::Busy,
        },
        // Hardened kernels keep it back. Then the mark and the sleep have to do.
        Err(_) if is_asleep(pid) && gate.is_mark_of(pid) => Look::Held(None),
        Err(_) => Look::Busy,
    }
}

/// Whether a thread that was let make this call may still be in it: it runs, or waits in one like it.
pub(super) fn may_be_at(thread: Pid, call: i64) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{thread}/syscall")) else { return false };
    match text.split_ascii_whitespace().next() {
        Some(word) => word.parse().map_or(true, |number: i64| number == call),
        None => false,
    }
}

/// The exit code that is spelled by the descriptors of a process that is held.
pub(super) fn code(pid: Pid, letters: &[Identity; 4]) -> Option<i32> {
    let mut code = 0;
    for (index, digit) in DIGITS.into_iter().enumerate() {
        let found = Identity::of(pid, digit)?;
        let letter = letters.iter().position(|letter| *letter == found)?;
        code |= i32::try_from(letter).ok()? << (BITS * index);
    }
    Some(code)
}

/// The words that spell `$?` with these descriptors, in a redirection, when the four letters stand at `first`
/// and after it.
pub(super) fn spelling(first: i32) -> String {
    let digit = |(index, digit): (usize, &i32)| format!(r#"{digit}<&"$(($?>>{}&3|{first}))""#, BITS * index);
    DIGITS.iter().enumerate().map(digit).collect::<Vec<_>>().join(" ")
}

/// What a descriptor leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    node: u64,
}

impl Identity {
    /// Of our own descriptor.
    pub(super) fn ours(fd: BorrowedFd<'_>) -> io::Result<Self> {
        File::from(fd.try_clone_to_owned()?)
            .metadata()
            .map(|about| Self { device: about.dev(), node: about.ino() })
    }

    /// Of a descriptor of the process.
    pub(super) fn of(pid: Pid, number: i32) -> Option<Self> {
        let about = std::fs::metadata(format!("/proc/{pid}/fd/{number}")).ok()?;
        Some(Self { device: about.dev(), node: about.ino() })
    }
}

/// The physical directory of the process; `None` when it has been removed.
pub(super) fn directory(pid: Pid) -> Option<PathBuf> {
    let link = format!("/proc/{pid}/cwd");
    let path = std::fs::read_link(&link).ok().filter(|path| path.is_absolute())?;
    let same = |one: std::fs::Metadata, other: std::fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    same(std::fs::metadata(&link).ok()?, std::fs::metadata(&path).ok()?).then_some(path)
}

/// A text with its end mark in the memory of a thread, without the mark. None where there is none that could
/// be a path; an error where the process does not let itself be looked into.
pub(super) fn text(thread: Pid, address: u64) -> io::Result<Option<Vec<u8>>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    let memory = File::open(format!("/proc/{thread}/mem"))?;
    // It ends where nothing is mapped, which may be right behind the text.
    let count = memory.read_at(&mut bytes, address).unwrap_or(0);
    bytes.truncate(count);
    Ok(bytes.iter().position(|&byte| byte == 0).map(|end| {
        bytes.truncate(end);
        bytes
    }))
}

/// Where the kernel began the stack of the program that the process runs: another program has another.
pub(super) fn program(pid: Pid) -> Option<u64> {
    const START_OF_STACK: usize = 25;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(START_OF_STACK)?.parse().ok()
}

/// The call that a process waits in, its first argument, and the depth.
fn parse_call(text: &str) -> Option<(libc::c_long, u64, Depth)> {
    let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [call, first, .., stack, place] = words[..] else { return None };
    let call = call.parse().ok().filter(|call| *call >= 0)?;
    Some((call, number(first)?, Depth { stack: number(stack)?, place: number(place)? }))
}

fn is_open(call: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_open {
        return true;
    }
    call == libc::SYS_openat
}

fn is_asleep(pid: Pid) -> bool {
    state(pid) == Some('S')
}

/// Whether the process has ended and only waits to be reaped.
pub(super) fn is_dead(pid: Pid) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether the kernel lets this process see how deep its children are.
pub(crate) fn sees_depth() -> bool {
    // From 2 on only a process that may trace everything sees it.
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    matches!(scope.trim(), "" | "0" | "1") && std::fs::read("/proc/self/syscall").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_call_is_read_with_its_depth_and_a_running_process_has_none() {
        let held = "257 0xffffff9c 0x1 0x0 0x0 0x0 0x0 0x7ffd10 0x7f20\n";
        let depth = Depth { stack: 0x7ff_d10, place: 0x7f20 };
        assert_eq!(parse_call(held), Some((257, 0xffff_ff9c, depth)));
        for other in ["running\n", "-1 0x7ffd10 0x7f20\n", ""] {
            assert_eq!(parse_call(other), None, "{other}");
        }
    }

    #[test]
    fn a_gate_lets_in_also_what_comes_after_its_release_until_it_is_closed() {
        use std::os::fd::AsRawFd;
        let mut gate = Gate::make(&[std::env::temp_dir()]).unwrap();
        let path = format!("/proc/self/fd/{}", gate.as_fd().as_raw_fd());
        let come = || {
            let (passed, news) = std::sync::mpsc::channel();
            let path = path.clone();
            std::thread::spawn(move || passed.send(File::open(path).map(drop)));
            news
        };
        let soon = std::time::Duration::from_millis(100);
        gate.release().unwrap();
        assert!(come().recv_timeout(soon * 100).is_ok_and(|opened| opened.is_ok()));
        gate.close();
        let held = come();
        assert!(held.recv_timeout(soon).is_err());
        gate.release().unwrap();
        assert!(held.recv_timeout(soon * 100).is_ok_and(|opened| opened.is_ok()));
    }

    #[test]
    fn a_process_is_seen_with_its_descriptors_and_its_directory() {
        let here = Pid::try_from(std::process::id()).unwrap();
        let gate = Gate::make(&["/no/such/directory".into(), std::env::temp_dir()]).unwrap();
        let other = Gate::make(&[std::env::temp_dir()]).unwrap();
        let copy = gate.as_fd().try_clone_to_owned().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&copy);
        let found = Identity::of(here, number);
        assert!(found == Some(gate.identity()) && found != Some(other.identity()));
        assert_eq!(directory(here), std::env::current_dir().ok());
        assert!(program(here).is_some_and(|stack| stack > 0));
        assert_eq!(code(here, &[gate.identity(); 4]), None, "nothing is spelled here");
    }
}
