//! The system calls of a template and of what is forked from it: namespaces of its own, a tree of mounts that
//! is put together by handle, and the loopback device. Nothing here decides anything.

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Pid, check, check_long};

/// Which namespaces a forked process gets besides those that every one gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) user: bool,
    pub(crate) network: bool,
}

/// Forks into pid, mount, IPC and UTS namespaces of its own. `None` is the child, its init.
pub(crate) fn fork_apart(apart: Apart) -> io::Result<Option<Pid>> {
    let mut flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    flags |= if apart.user { libc::CLONE_NEWUSER } else { 0 };
    flags |= if apart.network { libc::CLONE_NEWNET } else { 0 };
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with no stack given this is a fork. The template has a single thread, so
    // no lock can be held by a thread that does not exist in the child.
    let pid = check_long(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok((pid != 0).then_some(pid as Pid))
}

/// What is above the group of this process in the tree of control groups is not seen from here on.
pub(crate) fn hide_groups_above() -> io::Result<()> {
    // SAFETY: a plain integer.
    check(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }).map(drop)
}

/// Takes this directory for the root and enters it.
pub(crate) fn change_root(to: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    check(unsafe { libc::fchdir(to.as_raw_fd()) })?;
    // SAFETY: the path is a literal with its NUL.
    check(unsafe { libc::chroot(c".".as_ptr()) })?;
    // SAFETY: as above.
    check(unsafe { libc::chdir(c"/".as_ptr()) }).map(drop)
}

/// A copy of the mount at a path with all below it, which is nowhere yet. A link at the end is followed.
pub(crate) fn copy_mount(path: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the path is a string with its NUL that lives as long as the call.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })?;
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// Which mounts a change is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    This,
    AllBelow,
}

/// Nothing can be written by way of this mount from here on.
pub(crate) fn forbid_writing(mount: BorrowedFd<'_>, reach: Reach) -> io::Result<()> {
    let attributes =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let below = if reach == Reach::AllBelow { libc::AT_RECURSIVE } else { 0 };
    let flags = libc::AT_EMPTY_PATH | below;
    let size = size_of::<libc::mount_attr>();
    // SAFETY: the descriptor is open, the path a literal with its NUL, and the attributes are valid for
    // reading for the length of the call, with their size given.
    check_long(unsafe {
        let attributes = &raw const attributes;
        libc::syscall(libc::SYS_mount_setattr, mount.as_raw_fd(), c"".as_ptr(), flags, attributes, size)
    })
    .map(drop)
}

/// Puts a mount that is nowhere yet upon a directory or a file.
pub(crate) fn put_mount(mount: BorrowedFd<'_>, upon: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    let empty = c"".as_ptr();
    // SAFETY: both descriptors are open and both paths literals with their NUL.
    check_long(unsafe {
        libc::syscall(libc::SYS_move_mount, mount.as_raw_fd(), empty, upon.as_raw_fd(), empty, flags)
    })
    .map(drop)
}

/// Mounts a filesystem of the kernel's own with these flags besides `nosuid`.
pub(crate) fn mount_kernels(kind: &CStr, options: &CStr, at: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let flags = libc::MS_NOSUID | flags;
    // SAFETY: all four are strings with their NUL that live as long as the call.
    check(unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) })
        .map(drop)
}

/// Takes what is mounted at a path away, with all below it.
pub(crate) fn unmount(at: &CStr) -> io::Result<()> {
    // SAFETY: the path is a string with its NUL that lives as long as the call.
    check(unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Starts the loopback device of a network namespace.
pub(crate) fn start_loopback() -> io::Result<()> {
    // SAFETY: plain integers; the result is a new descriptor that we alone own.
    let socket = unsafe {
        let number = check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        OwnedFd::from_raw_fd(number)
    };
    // SAFETY: an all-zero ifreq is valid; its name is filled with a NUL behind it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = letter as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request reads one ifreq, which is valid for the length of the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) }).map(drop)
}

/// Watches the handle of a process: it is readable when the process has ended.
pub(crate) fn watch_end(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, and stays so for as long as it is registered, because it is owned by
    // what registers it.
    Ok(unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) }?)
}
