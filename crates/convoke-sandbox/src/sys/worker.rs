//! The system calls by which a process becomes one that only computes. Nothing here decides anything.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// The request that the libc crate names on some machines only; its number is one everywhere.
const F_SETSIG: libc::c_int = 10;

/// Whether this is one end of a pipe.
pub(crate) fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Fifo)
}

/// The kernel kills this process when the other end of this pipe, into which nothing is ever written, is
/// closed. Unlike a death signal it does not depend on which of the parent's threads lives on.
pub(crate) fn die_when_closed(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let fd = pipe.as_raw_fd();
    // SAFETY: the descriptor is open and all arguments are plain integers.
    unsafe {
        check(libc::fcntl(fd, libc::F_SETOWN, libc::getpid()))?;
        check(libc::fcntl(fd, F_SETSIG, libc::SIGKILL))?;
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        check(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC))?;
        // The kernel gives no error for a descriptor that cannot do it, so the flag is read back.
        if check(libc::fcntl(fd, libc::F_GETFL))? & libc::O_ASYNC == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
    }
    Ok(())
}

/// Leaves faults to the kernel, which ends the process; the standard library would first write about them.
pub(crate) fn default_faults() -> io::Result<()> {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: plain integers; the default action runs no code of ours.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// All threads take their memory from one heap: further ones reserve much more than they use, and count
/// processors by reading files.
pub(crate) fn keep_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain integers. A refusal only costs memory.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Has the C library settle on a time zone, for which it looks at the environment and at files, once.
pub(crate) fn read_time_zone() {
    // SAFETY: an all-zero `tm` is valid, and both it and the time are valid for the length of the call.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const EPOCH, &raw mut parts);
    }
}

/// Some time.
static EPOCH: libc::time_t = 0;

/// Bytes in a page.
pub(crate) fn page_size() -> u64 {
    // SAFETY: plain integers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}
