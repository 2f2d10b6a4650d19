//! Whether calls can be reported here at all, and the process that makes them be looked into. Kernels before
//! 5.5, a filter of the same kind around this one, and rules about tracing stand in the way; which it is need
//! not be known, because a process that does nothing else shows it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::calls::{Act, From, act};
use crate::helper::gate;
use crate::sys::{self, ChildEnd, Instruction, Reports};

/// What the process opens, and cannot.
const NOWHERE: &str = "/proc/self/no-such-file";

/// How long it may take. It takes a fraction of a millisecond.
const PATIENCE: Duration = Duration::from_secs(5);

/// Has a process make two reported calls, reads what it names, refuses the first and lets the second go on.
pub(super) fn succeeds(program: &[Instruction]) -> io::Result<bool> {
    let (ours, theirs) = UnixStream::pair()?;
    let Some(pid) = sys::fork()? else {
        drop(ours);
        std::process::exit(if matches!(attempt(program, &theirs), Ok(true)) { 0 } else { 1 });
    };
    drop(theirs);
    let seen = look(&ours, pid);
    if !matches!(seen, Ok(true)) {
        sys::signal_child(pid, libc::SIGKILL);
    }
    let end = sys::reap(pid, sys::Waiting::Block)?;
    Ok(seen? && end.is_some_and(|(_, end)| end == ChildEnd::Exited(0)))
}

/// The process's part: true if both calls came back as they were answered.
fn attempt(program: &[Instruction], to: &UnixStream) -> io::Result<bool> {
    sys::die_with_parent()?;
    // It is a copy of the helper, which refuses this; programs that commands start allow it.
    sys::allow_tracing()?;
    let listener = sys::report_calls(program)?;
    sys::send_with_descriptors(to.as_fd(), &[0], &[listener.as_fd()])?;
    drop(listener);
    let open = || openat(CWD, NOWHERE, OFlags::WRONLY, Mode::empty()).err();
    Ok(open() == Some(Errno::CANCELED) && open() == Some(Errno::NOENT))
}

/// The helper's part: true if both calls were seen for what they are.
fn look(from: &UnixStream, pid: sys::Pid) -> io::Result<bool> {
    let until = Instant::now() + PATIENCE;
    let wait = |fd| -> io::Result<bool> {
        Ok(sys::wait_readable(&[fd], Some(until.saturating_duration_since(Instant::now())))?[0])
    };
    if !wait(from.as_fd())? {
        return Ok(false);
    }
    let Some(listener) = sys::receive(from.as_fd(), &mut [0])?.1.pop() else { return Ok(false) };
    for answer in [Some(libc::ECANCELED), None] {
        // A signal ends the wait early, and then there is nothing yet.
        while sys::reports(listener.as_fd()) == Reports::None {
            if !wait(listener.as_fd())? && Instant::now() >= until {
                return Ok(false);
            }
        }
        if sys::reports(listener.as_fd()) == Reports::Ended {
            return Ok(false);
        }
        let Some(call) = sys::take_call(listener.as_fd())? else { return Ok(false) };
        let Act::Open(name, _) = act(call.number, call.arguments) else { return Ok(false) };
        let text = gate::text(call.thread, name.address)?;
        let sees = call.thread == pid
            && name.from == From::Directory
            && text.as_deref() == Some(NOWHERE.as_bytes())
            && readlinkat(CWD, format!("/proc/{pid}/cwd"), Vec::new()).is_ok()
            && sys::still_waits(listener.as_fd(), call.id);
        if !sees {
            return Ok(false);
        }
        sys::answer_call(listener.as_fd(), call.id, answer);
    }
    Ok(true)
}
