//! The system calls by which the host starts a program of its own: locked before it begins, and without
//! copying the host's memory. Nothing here decides anything.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use seccompiler::BpfProgram;

use super::{Pid, Waiting, check, check_long, die_with_parent, gain_no_privileges, reap};

/// A program with all that it begins with. Everything is prepared whole: between the start and the exec
/// nothing is allocated.
pub(crate) struct Launch {
    /// Where it is.
    pub(crate) program: CString,
    /// Its arguments, with its name before them.
    pub(crate) args: Vec<CString>,
    /// Its environment, as `NAME=VALUE`.
    pub(crate) env: Vec<CString>,
    /// Where it begins.
    pub(crate) cwd: CString,
    /// Its input, output and error output.
    pub(crate) standard: [OwnedFd; 3],
    /// File rules; none for a program that sees everything.
    pub(crate) ruleset: Option<OwnedFd>,
    /// Call filters, in the order in which they are to be laid on.
    pub(crate) filters: Arc<Vec<BpfProgram>>,
}

/// A program that was started and has to be reaped.
pub(crate) struct Launched {
    /// Its process, which leads a process group of its own.
    pub(crate) leader: Pid,
    /// Can be read when it has ended.
    pub(crate) ended: OwnedFd,
}

/// What the child needs, as plain pointers and numbers, and where it says why it could not begin.
struct Begin<'a> {
    launch: &'a Launch,
    argv: &'a [*const c_char],
    envp: &'a [*const c_char],
    parent: Pid,
    failed: c_int,
}

/// Room for the child's few calls.
const STACK: usize = 128 * 1024;

/// Starts a program that ends with the calling *thread*, gains no privileges, and is held by what the launch
/// says. If any of it fails the program does not begin.
///
/// A fork would copy the tables of all the host's memory for a child that needs none of it. So the child
/// borrows that memory, as that of `posix_spawn` does, and this thread stands still until the child has
/// become another program or has ended.
pub(crate) fn launch(launch: &Launch) -> io::Result<Launched> {
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let argv = pointers(&launch.args);
    let envp = pointers(&launch.env);
    // SAFETY: takes no arguments and cannot fail.
    let parent = unsafe { libc::getpid() };
    let mut begin = Begin { launch, argv: &argv, envp: &envp, parent, failed: 0 };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut ended: c_int = -1;
    // SAFETY: the stack is ours, aligned, and given by its end, from which it grows down. Stack, `begin` and
    // all it points to live longer than the child borrows this memory: with CLONE_VFORK the call returns when
    // that is over. No signal is delivered to the child before its handlers are those of no program, so no
    // code of ours but `begun` runs in it. The kernel writes one descriptor to `ended`.
    let pid = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let top = stack.as_mut_ptr_range().end;
        let pid =
            check(libc::clone(begun, top.cast(), flags, (&raw mut begin).cast::<c_void>(), &raw mut ended));
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        pid?
    };
    // SAFETY: the kernel has just made this descriptor, closed on exec, and we alone own it.
    let ended = unsafe { OwnedFd::from_raw_fd(ended) };
    // SAFETY: `failed` was written by the child through a pointer, before it ended.
    match unsafe { (&raw const begin.failed).read_volatile() } {
        0 => Ok(Launched { leader: pid, ended }),
        error => {
            reap(pid, Waiting::Block)?;
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// The child's only function: it becomes the program, or says why not and ends.
extern "C" fn begun(begin: *mut c_void) -> c_int {
    // SAFETY: `launch` passes a pointer to this type and waits while it is used.
    let begin = unsafe { &mut *begin.cast::<Begin<'_>>() };
    let error = match become_program(begin) {
        Ok(()) => libc::ENOEXEC,
        Err(error) => error.raw_os_error().unwrap_or(libc::EINVAL),
    };
    begin.failed = error;
    // SAFETY: ends this process alone, and runs nothing that was registered for the host's end.
    unsafe { libc::_exit(127) }
}

fn become_program(begin: &Begin<'_>) -> io::Result<()> {
    let Begin { launch, argv, envp, parent, .. } = begin;
    forget_handlers();
    // SAFETY: plain integers and strings with their NUL that live as long as the call.
    unsafe {
        check(libc::setpgid(0, 0))?;
        for (number, fd) in (0..).zip(&launch.standard) {
            check(libc::dup2(fd.as_raw_fd(), number))?;
        }
        check(libc::chdir(launch.cwd.as_ptr()))?;
    }
    die_with_parent()?;
    // The parent may have ended before the line above, and then no signal comes.
    // SAFETY: takes no arguments and cannot fail.
    if unsafe { libc::getppid() } != *parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    gain_no_privileges()?;
    if let Some(ruleset) = &launch.ruleset {
        restrict(ruleset.as_raw_fd())?;
    }
    for filter in launch.filters.iter() {
        lay_on(filter)?;
    }
    // SAFETY: an all-zero set is valid and then emptied; the lists end with a null pointer and hold strings
    // with their NUL.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        check(libc::execve(launch.program.as_ptr(), argv.as_ptr(), envp.as_ptr())).map(drop)
    }
}

/// Every signal does by default what it does to a new program, the broken pipe included, which the host
/// ignores.
fn forget_handlers() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: plain integers. Two signals cannot be changed, and some numbers are the C library's own;
        // then nothing happens.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn restrict(ruleset: RawFd) -> io::Result<()> {
    // SAFETY: plain integers.
    check_long(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) }).map(drop)
}

fn lay_on(filter: &BpfProgram) -> io::Result<()> {
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_ptr().cast_mut().cast() };
    // SAFETY: the kernel reads `len` instructions, which have the layout of its own, and one record that says
    // where they are.
    let laid =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    check_long(laid).map(drop)
}

/// Whether this is the thread that the process began with.
pub(crate) fn is_main_thread() -> bool {
    // SAFETY: both take no arguments and cannot fail.
    unsafe { libc::gettid() == libc::getpid() }
}
