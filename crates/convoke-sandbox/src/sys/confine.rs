//! The system calls by which a process confines itself: namespaces, mounts, capabilities, limits, and handing
//! descriptors out before the door is shut. Nothing here decides anything.

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::{Pid, check, check_long};

/// The most descriptors that one message carries.
const MAX_DESCRIPTORS: usize = 4;

/// Forks. `None` is the child.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the helper has a single thread, so no lock can be held by a thread that does not exist in the
    // child.
    let pid = check(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// Enters a mount namespace of its own, and a user namespace if asked for, in which no mount reaches the
/// others.
pub(crate) fn unshare_mounts(new_user: bool) -> io::Result<()> {
    let user = if new_user { libc::CLONE_NEWUSER } else { 0 };
    // SAFETY: plain integers.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS | user) }).map(drop)
}

/// Mounts made from here on are seen in this mount namespace alone.
pub(crate) fn keep_mounts_private() -> io::Result<()> {
    let none = std::ptr::null();
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: every pointer is a literal with its NUL or null where the call allows it.
    check(unsafe { libc::mount(none, c"/".as_ptr(), none, flags, none.cast()) }).map(drop)
}

/// Mounts a filesystem that is made rather than found: an overlay, or one in memory.
pub(crate) fn mount_made(kind: &CStr, options: &CStr, at: &CStr) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: all four are strings with their NUL that live as long as the call.
    check(unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) })
        .map(drop)
}

/// A second descriptor for the same, at this number or the next free one above it, closed on exec.
pub(crate) fn duplicate_above(fd: BorrowedFd<'_>, least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `fd` is open for the length of the call; the result is a new descriptor that we alone own.
    unsafe {
        let new = check(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least))?;
        Ok(OwnedFd::from_raw_fd(new))
    }
}

/// Lets the next program inherit the descriptor.
pub(crate) fn keep_on_exec(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open and the argument a plain integer.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) }).map(drop)
}

/// Takes over a descriptor that the program was started with. The caller has been told its number by the
/// process that started it, and takes each number once.
pub(crate) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: plain integers; a number that is not open is an error.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, as just seen, and by the caller's promise no other object owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Lowers a resource limit for good. It is never raised.
pub(crate) fn lower_limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    lower_limits(resource, value, value)
}

/// The same with a lower limit at which the process is only warned, by a signal.
pub(crate) fn lower_limits(resource: libc::__rlimit_resource_t, warned: u64, value: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing for the length of the call.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    let most = limit.rlim_max.min(value);
    let limit = libc::rlimit { rlim_cur: most.min(warned), rlim_max: most };
    // SAFETY: `limit` is valid for reading for the length of the call.
    check(unsafe { libc::setrlimit(resource, &raw const limit) }).map(drop)
}

/// No program started from here on can gain rights by being executed.
pub(crate) fn gain_no_privileges() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// The version of Landlock that the kernel offers.
pub(crate) fn landlock_abi() -> io::Result<u32> {
    const ASK_VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel looks at no memory and makes no descriptor.
    let abi =
        check_long(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, ASK_VERSION) })?;
    Ok(abi as u32)
}

/// Gives up every capability but those in the mask, for this process and, where the kernel lets it, for all
/// it starts.
pub(crate) fn drop_capabilities(keep: u64) -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    for capability in (0..64).filter(|capability| keep & (1 << capability) == 0) {
        // SAFETY: plain integers. A kernel without this capability, or a process that may not drop it here,
        // is no error: `gain_no_privileges` holds in any case.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability as libc::c_ulong, 0, 0, 0) };
    }
    // SAFETY: plain integers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: version 3 reads and writes one header and two of these records, for which there is room.
    check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    for (part, keep) in data.iter_mut().zip([keep as u32, (keep >> 32) as u32]) {
        part.permitted &= keep;
        part.effective = part.permitted;
        part.inheritable = 0;
    }
    // SAFETY: as above.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) }).map(drop)
}

/// Writes bytes together with descriptors; the receiver gets both in one read.
pub(crate) fn send_with_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut room = Room::new();
    let size = size_of::<RawFd>() * fds.len().min(MAX_DESCRIPTORS);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: an all-zero msghdr is valid; it is given one part, and a control buffer large enough for
    // MAX_DESCRIPTORS of which CMSG_SPACE of what is sent is used. CMSG_FIRSTHDR of such a buffer is not null
    // and its data has `size` bytes of room.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size as libc::c_uint) as _;
        let control = libc::CMSG_FIRSTHDR(&raw const message);
        (*control).cmsg_level = libc::SOL_SOCKET;
        (*control).cmsg_type = libc::SCM_RIGHTS;
        (*control).cmsg_len = libc::CMSG_LEN(size as libc::c_uint) as _;
        let data = libc::CMSG_DATA(control).cast::<RawFd>();
        for (index, fd) in fds.iter().take(MAX_DESCRIPTORS).enumerate() {
            data.add(index).write_unaligned(fd.as_raw_fd());
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    // The first write of a new socket is far smaller than its buffer, so it is never cut short.
    if check_long(sent as libc::c_long)? as usize == bytes.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// Reads what is there, and takes the descriptors that came with it.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut room = Room::new();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut received = Vec::new();
    // SAFETY: as in `send_with_descriptors`; the kernel fills the control buffer with whole headers, of which
    // only those that carry descriptors are read, each no further than its own length. They were made for us
    // alone.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Room>() as _;
        let count = check_long(
            libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) as libc::c_long
        )?;
        let mut control = libc::CMSG_FIRSTHDR(&raw const message);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_RIGHTS {
                let bytes = ((*control).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(control).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    received.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            control = libc::CMSG_NXTHDR(&raw const message, control);
        }
        Ok((count as usize, received))
    }
}

/// Space for one control message with `MAX_DESCRIPTORS`, aligned as its header must be.
#[repr(align(8))]
struct Room([u8; 64]);

impl Room {
    fn new() -> Self {
        Self([0; 64])
    }
}
