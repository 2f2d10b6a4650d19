//! The system calls by which the helper deals with its bash: files that it alone can change, gates, and the
//! news that bash has taken in a part of its script. Nothing here decides anything.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use super::check;

/// Makes a FIFO for its owner alone.
pub(crate) fn make_fifo(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the string has its NUL and lives as long as the call.
    check(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }).map(drop)
}

/// A file in memory that is written through this mapping alone: seals keep other processes from writing.
pub(crate) struct Text {
    file: OwnedFd,
    mapping: NonNull<u8>,
    room: usize,
    filled: bool,
}

impl Text {
    /// A file of this size.
    pub(crate) fn make(room: usize) -> io::Result<Self> {
        let size = libc::off_t::try_from(room).map_err(io::Error::other)?;
        let mut largest = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `largest` is valid for writing for the length of the call.
        check(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut largest) })?;
        // Beyond the limit the kernel does not refuse, it ends the process by a signal.
        if room as u64 > largest.rlim_cur {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // SAFETY: the name is a literal with its NUL; the result is a new descriptor that we alone own.
        let file = unsafe {
            let fd =
                check(libc::memfd_create(c"command".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING))?;
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: plain integers and an open descriptor.
        check(unsafe { libc::ftruncate(file.as_raw_fd(), size) })?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses, of a file that has this size.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), room, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        let mapping = NonNull::new(at.cast::<u8>()).filter(|_| at != libc::MAP_FAILED);
        let mapping = mapping.ok_or_else(io::Error::last_os_error)?;
        let text = Self { file, mapping, room, filled: false };
        let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL;
        // SAFETY: an open descriptor and plain integers.
        check(unsafe { libc::fcntl(text.file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        Ok(text)
    }

    /// Writes the beginning of the file. What has never been written is empty lines.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.room {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if !std::mem::replace(&mut self.filled, true) {
            // SAFETY: the mapping has `room` bytes, which the seals keep from shrinking, and is ours alone to
            // write.
            unsafe { std::ptr::write_bytes(self.mapping.as_ptr(), b'\n', self.room) };
        }
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.mapping.as_ptr(), bytes.len()) };
        Ok(())
    }
}

impl AsFd for Text {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this size and is not used after this.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.room) };
    }
}

/// Tells when the other end of a socket has read something of what was written.
pub(crate) struct Taken(OwnedFd);

impl Taken {
    /// Watches what is written to this socket.
    pub(crate) fn watch(socket: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: plain integers; the result is a new descriptor that we alone own.
        let watch = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        let mut wanted = libc::epoll_event { events: (libc::EPOLLOUT | libc::EPOLLET) as u32, u64: 0 };
        let add = libc::EPOLL_CTL_ADD;
        // SAFETY: both descriptors are open, and `wanted` is valid for the length of the call.
        check(unsafe { libc::epoll_ctl(watch.as_raw_fd(), add, socket.as_raw_fd(), &raw mut wanted) })?;
        Ok(Self(watch))
    }

    /// Whether something was read since this was last asked.
    pub(crate) fn happened(&self) -> bool {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: there is room for the one event that is asked for.
        unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, 0) > 0 }
    }
}

impl AsFd for Taken {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether the other end has read all that was written to this socket.
pub(crate) fn is_all_read(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut count: c_int = 0;
    // SAFETY: the request writes one int, for which `count` has room.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) })?;
    // The kernel counts its own records, which are larger than this, and takes the last one off a moment
    // after the news.
    Ok(count <= 1)
}
