//! Turns between processes that write to one file. Bare SQLite lets a busy writer come back before a waiting one has
//! woken up, again and again; here whoever waits has a place that the one who leaves cannot pass.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::file::beside;

/// Two locks that make a turnstile: `busy` is held while writing, `next` by the one process that waits for `busy`.
pub(super) struct Turnstile {
    next: File,
    busy: File,
}

/// The right to write one batch; gives way when it is dropped.
pub(super) struct Turn<'a>(&'a File);

impl Turnstile {
    /// Opens the two lock files beside the database. They are empty, private, and never removed: a lock file that is
    /// replaced while somebody waits on it would let two in.
    pub(super) fn open(database: &Path) -> io::Result<Self> {
        let lock = |suffix| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(beside(database, suffix))
        };
        Ok(Self { next: lock("-next")?, busy: lock("-busy")? })
    }

    /// Waits for this process's turn.
    pub(super) fn take(&self) -> io::Result<Turn<'_>> {
        self.next.lock()?;
        let taken = self.busy.lock();
        self.next.unlock()?;
        taken.map(|()| Turn(&self.busy))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // An unlock of a lock we hold does not fail; if it did, closing the file at the end would do it.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::TryLockError;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn who_leaves_cannot_pass_who_waits() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Turnstile::open(&dir.path().join("journal.db")).unwrap();
        let (first, second, witness) = (open(), open(), open());
        let order = Mutex::new(Vec::new());
        let turn = first.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = second.take().unwrap();
                order.lock().unwrap().push("the one who waited");
            });
            let begin = Instant::now();
            while !matches!(witness.next.try_lock(), Err(TryLockError::WouldBlock)) {
                witness.next.unlock().unwrap();
                assert!(begin.elapsed() < Duration::from_secs(60), "nobody ever waits");
                std::thread::yield_now();
            }
            drop(turn);
            let _turn = first.take().unwrap();
            order.lock().unwrap().push("the one who left");
        });
        assert_eq!(*order.lock().unwrap(), ["the one who waited", "the one who left"]);
    }
}
