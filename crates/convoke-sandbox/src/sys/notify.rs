//! The system calls by which a process is told of the calls of others and lets each go on or fail: a filter
//! that reports, and the descriptor through which it reports. Nothing here decides anything.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(crate) use libc::sock_filter as Instruction;

use super::{check, check_long, send_with_descriptors};

/// A call that waits to be let go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// By which it is answered. One that has been given up by its caller stands for nothing any more.
    pub(crate) id: u64,
    /// The thread that makes it.
    pub(crate) thread: super::Pid,
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
}

/// Lays a filter on this thread that reports calls, and gives back where it does. It cannot be taken off.
///
/// It allocates nothing, so that it can be called between fork and exec.
pub(crate) fn report_calls(program: &[Instruction]) -> io::Result<OwnedFd> {
    let length = libc::c_ushort::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let mut refused = io::Error::from(io::ErrorKind::Unsupported);
    // The first keeps signals from calling a process back from a wait that has been reported. Kernels before
    // 5.19 do not know it, and there the call is made and reported again.
    for flags in [listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listen] {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: the program is valid for reading for the length of the call, with its length given; the
        // kernel only reads it.
        match check_long(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) }) {
            // SAFETY: the kernel has just made this descriptor for us alone, closed on exec.
            Ok(fd) => return Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) }),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// Has a program begin with such a filter; where it reports comes through this socket with one byte.
pub(crate) fn report_calls_on_exec(command: &mut Command, program: Vec<Instruction>, to: OwnedFd) {
    let begin = move || send_with_descriptors(to.as_fd(), &[0], &[report_calls(&program)?.as_fd()]);
    // SAFETY: the closure makes system calls on memory that it owns, and allocates nothing.
    unsafe { command.pre_exec(begin) };
}

/// Whether there is something to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    None,
    Some,
    /// All processes with the filter have ended.
    Ended,
}

/// Looks whether calls are reported.
pub(crate) fn reports(listener: BorrowedFd<'_>) -> Reports {
    let mut polled = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one record, valid for reading and writing for the length of the call.
    let count = unsafe { libc::poll(&raw mut polled, 1, 0) };
    match polled.revents {
        _ if count <= 0 => Reports::None,
        events if events & libc::POLLIN != 0 => Reports::Some,
        _ => Reports::Ended,
    }
}

/// Takes a reported call. None if what was there has been given up. It waits where there never was one.
pub(crate) fn take_call(listener: BorrowedFd<'_>) -> io::Result<Option<Call>> {
    // SAFETY: an all-zero record is valid, and is what the kernel asks for.
    let mut taken: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the request writes one such record, for which there is room.
    let result =
        check(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut taken) });
    match result {
        Ok(_) => Ok(Some(Call {
            id: taken.id,
            thread: taken.pid as super::Pid,
            number: i64::from(taken.data.nr),
            arguments: taken.data.args,
        })),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the caller still waits, and so is the process that was named.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the request reads one number, which is valid for the length of the call.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) };
    result == 0
}

/// Lets a call go on as if it had not been reported, or fail with this error. That its caller has given it up
/// is no error.
pub(crate) fn answer_call(listener: BorrowedFd<'_>, id: u64, error: Option<c_int>) {
    let flags = if error.is_some() { 0 } else { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 };
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error: error.map_or(0, |error| -error), flags };
    // SAFETY: the request reads one such record, which is valid for the length of the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
}
