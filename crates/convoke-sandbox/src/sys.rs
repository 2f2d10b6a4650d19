//! Thin, typed wrappers of the system calls that the standard library does not offer. All `unsafe` of Convoke
//! is here; nothing here decides anything.

mod confine;
mod fork;
mod notify;
mod program;
mod shell;
mod worker;

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

pub(crate) use self::confine::*;
pub(crate) use self::fork::*;
pub(crate) use self::notify::*;
pub(crate) use self::program::*;
pub(crate) use self::shell::*;
pub(crate) use self::worker::*;

/// A process id.
pub(crate) type Pid = libc::pid_t;

fn check(result: c_int) -> io::Result<c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Leaves the terminal and the host's process group.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: takes no arguments and touches no memory of ours.
    check(unsafe { libc::setsid() }).map(drop)
}

/// The effective user and group.
pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: both calls take no arguments and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Makes `fd` appear also as descriptor `number`, closed on exec or not. Whatever was at `number` is closed;
/// the caller has made sure that no object owns it.
pub(crate) fn duplicate_as(fd: BorrowedFd<'_>, number: RawFd, close_on_exec: bool) -> io::Result<OwnedFd> {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    // SAFETY: `fd` is open for the length of the call.
    let new = check(unsafe { libc::dup3(fd.as_raw_fd(), number, flags) })?;
    // SAFETY: dup3 has just made this descriptor, and by the caller's promise nothing else owns its number.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}

/// The same for the descriptors 0, 1 and 2, which no `OwnedFd` owns.
pub(crate) fn duplicate_as_standard(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    debug_assert!((0..=2).contains(&number), "only the standard descriptors have no owner");
    // SAFETY: `fd` is open for the length of the call; the standard descriptors may be replaced at any time.
    check(unsafe { libc::dup2(fd.as_raw_fd(), number) }).map(drop)
}

/// Borrows a standard descriptor.
pub(crate) fn standard(number: RawFd) -> BorrowedFd<'static> {
    debug_assert!((0..=2).contains(&number), "only the standard descriptors are always open");
    // SAFETY: the standard library opens 0, 1 and 2 at start where they are closed, and we never close them.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Closes every descriptor from `first` on. Only for the helper's first moments, when nothing above `first`
/// has an owner.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    // SAFETY: by the caller's promise no live object of ours owns any of these descriptors.
    match check_long(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) }) {
        Ok(_) => Ok(()),
        // Kernels before 5.9 lack the call, so the open descriptors are listed and closed one by one.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .collect();
            for number in open.into_iter().filter(|&number| number >= first) {
                // SAFETY: as above. The one of the listing itself is closed already, which is a harmless
                // error.
                unsafe { libc::close(number) };
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The kernel kills this process when its parent ends.
pub(crate) fn die_with_parent() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Orphans among the descendants become children of this process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }).map(drop)
}

/// Other processes of the same user can no longer trace this one or take its descriptors.
pub(crate) fn refuse_tracing() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) }).map(drop)
}

/// Takes that back, for a moment: what this process says of itself in `/proc` is its own to write again.
pub(crate) fn allow_tracing() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) }).map(drop)
}

/// Forks into a new pid and mount namespace, and a new user namespace if asked for. `None` is the child, its
/// init.
pub(crate) fn fork_into_namespaces(new_user: bool) -> io::Result<Option<Pid>> {
    let user = if new_user { libc::CLONE_NEWUSER } else { 0 };
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | user | libc::SIGCHLD;
    // SAFETY: without CLONE_VM and with no stack given this is a fork. The helper has a single thread, so no
    // lock can be held by a thread that does not exist in the child.
    let pid = check_long(unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) })?;
    Ok((pid != 0).then_some(pid as Pid))
}

/// Cuts this mount namespace off from the others and mounts a `/proc` that shows only this pid namespace.
pub(crate) fn mount_own_proc() -> io::Result<()> {
    let none = std::ptr::null();
    let proc = c"proc".as_ptr();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: every pointer is a literal with its NUL or null where the call allows it.
    check(unsafe { libc::mount(none, c"/".as_ptr(), none, private, none.cast()) })?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: as above.
    check(unsafe { libc::mount(proc, c"/proc".as_ptr(), proc, flags, none.cast()) }).map(drop)
}

/// Whether to wait for a child or only to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Block,
    Look,
}

/// How a child ended, as a shell says it: its exit code, or 128 and the signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    Exited(i32),
    Signalled(i32),
}

impl ChildEnd {
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
        }
    }
}

/// Takes the end of one child: of `pid`, or of any for -1. `None` when there is none to take.
pub(crate) fn reap(pid: Pid, waiting: Waiting) -> io::Result<Option<(Pid, ChildEnd)>> {
    let mut status = 0;
    let flags = if waiting == Waiting::Block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: `status` is valid for writing for the length of the call.
        match check(unsafe { libc::waitpid(pid, &raw mut status, flags) }) {
            Ok(0) => return Ok(None),
            Ok(pid) if libc::WIFEXITED(status) => {
                return Ok(Some((pid, ChildEnd::Exited(libc::WEXITSTATUS(status)))));
            }
            Ok(pid) => return Ok(Some((pid, ChildEnd::Signalled(libc::WTERMSIG(status))))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Sends a signal to a process that cannot have been replaced by another: our own child that has not been
/// reaped.
pub(crate) fn signal_child(pid: Pid, signal: c_int) {
    // SAFETY: plain integers. That the process is gone already is no error here.
    unsafe { libc::kill(pid, signal) };
}

/// Sends a signal to the process group led by our own child.
pub(crate) fn signal_group(leader: Pid, signal: c_int) {
    // SAFETY: plain integers. That the group is gone already is no error here.
    unsafe { libc::kill(-leader, signal) };
}

/// A process held by descriptor, so that its number cannot come to mean another process.
pub(crate) enum Held {
    Descriptor(OwnedFd),
    /// Before Linux 5.3 there is only the number.
    Number(Pid),
}

/// Holds a process. `None` if it is gone.
pub(crate) fn hold_process(pid: Pid) -> Option<Held> {
    // SAFETY: plain integers; the result is a new descriptor.
    match check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }) {
        // SAFETY: the kernel has just made this descriptor for us alone.
        Ok(fd) => Some(Held::Descriptor(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            Some(Held::Number(pid))
        }
        Err(_) => None,
    }
}

/// Sends a signal to the process behind a descriptor; that it is gone already is no error.
pub(crate) fn signal_held(process: BorrowedFd<'_>, signal: c_int) {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open and a null siginfo means the plain signal.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, none, 0) };
}

impl Held {
    /// Sends a signal; that the process is gone already is no error.
    pub(crate) fn signal(&self, signal: c_int) {
        match self {
            Self::Descriptor(fd) => signal_held(fd.as_fd(), signal),
            Self::Number(pid) => signal_child(*pid, signal),
        }
    }
}

/// Blocks SIGCHLD and returns a descriptor that is readable when a child has ended.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero sigset_t is valid to hand to sigemptyset, which initialises it before it is used.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        set
    };
    // SAFETY: `set` is initialised; the result is a new descriptor that we alone own.
    unsafe {
        let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Lets a program begin with no signal blocked and die when this process does.
pub(crate) fn prepare_child(command: &mut Command) {
    let begin = || {
        // SAFETY: as in `child_signals`; both calls are allowed between fork and exec.
        unsafe {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        }
        die_with_parent()
    };
    // SAFETY: the closure makes only async-signal-safe calls and allocates nothing.
    unsafe { command.pre_exec(begin) };
}

/// Has a program do something more to itself before it begins.
pub(crate) fn before_exec(command: &mut Command, act: fn() -> io::Result<()>) {
    // SAFETY: only the helper does this. It has one thread, so no lock that `act` needs is held at the fork.
    unsafe { command.pre_exec(act) };
}

/// Waits until one of the descriptors can be read or has been hung up; says which.
pub(crate) fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    let timeout = timeout.map_or(-1, |timeout| c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX));
    // SAFETY: the vector is valid for reading and writing and its length is given.
    match check(unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        Err(_) => Ok(vec![false; fds.len()]),
        Ok(_) => Ok(polled.iter().map(|polled| polled.revents != 0).collect()),
    }
}

/// How many bytes can be read from a pipe right now.
pub(crate) fn bytes_waiting(pipe: BorrowedFd<'_>) -> io::Result<usize> {
    let mut count: c_int = 0;
    // SAFETY: FIONREAD writes one int, for which `count` has room.
    check(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Asks for a larger pipe; whether it was granted does not matter.
pub(crate) fn enlarge_pipe(pipe: BorrowedFd<'_>, bytes: c_int) {
    // SAFETY: the descriptor is open and the argument is a plain integer.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

/// A file that exists only in memory and is closed on exec.
pub(crate) fn memory_file() -> io::Result<OwnedFd> {
    // SAFETY: the name is a literal with its NUL; the result is a new descriptor that we alone own.
    unsafe {
        let fd = check(libc::memfd_create(c"command".as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// 128 random bits as text that cannot be guessed.
pub(crate) fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    // SAFETY: the buffer is valid for writing and its length is given. Requests this small are never cut
    // short.
    check_long(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } as libc::c_long)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
