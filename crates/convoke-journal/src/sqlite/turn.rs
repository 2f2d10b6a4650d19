//! Turns between processes that write to one file. Bare SQLite lets a busy writer come back
//! before a waiting one has woken up, again and again; here a process that waits has a
//! place that the one that leaves cannot pass.
//!
//! Turns are for fairness alone: SQLite itself makes sure that only one process writes. So the lock files of
//! a process that is stopped in its turn are simply replaced, and the others go on with new ones.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::file::beside;
use super::wait::Wait;
use crate::locks;

/// How often a waiting process looks which process it waits for.
const LOOK: Duration = Duration::from_millis(100);

/// The suffix of the file that is locked while writing. Processes of versions that know nothing of
/// generations never have it open (theirs was `-busy`), so it also says which processes can be left behind.
pub(super) const TURN: &str = "-turn";
const NEXT: &str = "-next";

/// Two locks that make a turnstile: `busy` is held while writing, `next` by the one process that waits for
/// `busy`.
struct Pair {
    next: File,
    busy: File,
    inodes: [u64; 2],
    /// Whether this process has let go of them. Its waiting thread may still be in the middle of `take`.
    left: AtomicBool,
}

/// The turnstile of one journal, as one committer sees it.
pub(super) struct WriteTurns {
    base: PathBuf,
    pair: Arc<Pair>,
    /// A thread that waits for the locks, because such a wait cannot be given up; begun when it is first
    /// needed.
    waiter: Option<Sender<Sender<io::Result<()>>>>,
}

/// The right to write one batch; gives way when it is dropped.
pub(super) struct Turn(Arc<Pair>);

impl Pair {
    fn open(base: &Path) -> io::Result<Self> {
        let lock = |suffix| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(beside(base, suffix))
        };
        let next = lock(NEXT)?;
        let busy = lock(TURN)?;
        let inodes = [next.metadata()?.ino(), busy.metadata()?.ino()];
        Ok(Self { next, busy, inodes, left: AtomicBool::new(false) })
    }

    /// Whether these are the files that other processes lock, and this one too.
    fn is_current(&self, base: &Path) -> io::Result<bool> {
        if self.left.load(Ordering::SeqCst) {
            return Ok(false);
        }
        for (suffix, inode) in [NEXT, TURN].into_iter().zip(self.inodes) {
            match fs::symlink_metadata(beside(base, suffix)) {
                Ok(found) if found.ino() == inode => {}
                Ok(_) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Waits for both locks. A lock that this file has already is had again at once.
    fn take(&self) -> io::Result<()> {
        self.next.lock()?;
        let taken = if self.left.load(Ordering::SeqCst) { Ok(()) } else { self.busy.lock() };
        self.next.unlock()?;
        taken
    }

    /// Lets go of both locks, also while the waiting thread is about to take them: the two files are replaced
    /// one after the other, so this `next` may be the one that all others wait for, and this `busy` that of a
    /// stopped process. The mark comes first: a thread that gets `next` after this unlock sees the mark and
    /// gives it back.
    fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
        // An unlock of an open file does not fail.
        let _ = (self.next.unlock(), self.busy.unlock());
    }

    /// Takes both locks if they are free. If only the first is, it is kept: a waiting process must not lose
    /// its place.
    fn try_take(&self) -> io::Result<bool> {
        let tried = |tried: Result<(), TryLockError>| match tried {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        };
        if !tried(self.next.try_lock())? || !tried(self.busy.try_lock())? {
            return Ok(false);
        }
        self.next.unlock()?;
        Ok(true)
    }

    /// The processes in the way: the one whose turn it is, or else the one that waits for that.
    fn holders(&self) -> impl Iterator<Item = u32> {
        [self.inodes[1], self.inodes[0]].into_iter().filter_map(locks::flock_holder)
    }
}

impl WriteTurns {
    /// Opens the two lock files beside the database. They are empty and private.
    pub(super) fn open(base: &Path) -> io::Result<Self> {
        Ok(Self { base: base.to_owned(), pair: Arc::new(Pair::open(base)?), waiter: None })
    }

    /// Waits for this process's turn, however long the processes at
    /// work take, and past those that are stopped.
    pub(super) fn take(&mut self, wait: &mut Wait<'_>) -> io::Result<Turn> {
        let taken = self.take_current(wait);
        if taken.is_err() {
            // A process that has given up must not be in the way of the others.
            self.pair.leave();
        }
        taken
    }

    /// Whether the turn that was taken last is still one: its files may have been replaced while this process
    /// was stopped.
    pub(super) fn is_current(&self) -> io::Result<bool> {
        self.pair.is_current(&self.base)
    }

    fn take_current(&mut self, wait: &mut Wait<'_>) -> io::Result<Turn> {
        loop {
            if !self.pair.is_current(&self.base)? {
                self.renew()?;
            }
            if self.pair.try_take()? || self.wait(wait)? {
                let turn = Turn(Arc::clone(&self.pair));
                // The files may have been replaced while we waited for them; then this is no turn.
                if self.pair.is_current(&self.base)? {
                    return Ok(turn);
                }
            }
        }
    }

    /// Waits for the locks; `false` if they are no longer the ones to wait for.
    fn wait(&mut self, wait: &mut Wait<'_>) -> io::Result<bool> {
        let answer = self.ask()?;
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(taken) => return taken.map(|()| true),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("no connection waits for the turn"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !self.pair.is_current(&self.base)? {
                self.renew()?;
                return Ok(false);
            }
            let holders: Vec<u32> = self.pair.holders().collect();
            if holders.iter().any(|pid| wait.is_stopped(*pid)) {
                self.replace()?;
                return Ok(false);
            }
            wait.tell(holders.first().copied());
        }
    }

    fn ask(&mut self) -> io::Result<Receiver<io::Result<()>>> {
        let (sender, answer) = channel();
        let waiter = match &self.waiter {
            Some(waiter) => waiter,
            None => {
                let (requests, asked) = channel::<Sender<io::Result<()>>>();
                let pair = Arc::clone(&self.pair);
                let wait = move || {
                    for answer in asked {
                        // A committer that no longer waits must not have the turn.
                        if answer.send(pair.take()).is_err() {
                            pair.leave();
                        }
                    }
                };
                std::thread::Builder::new().name("journal-turn".to_owned()).spawn(wait)?;
                self.waiter.insert(requests)
            }
        };
        // If the thread is gone, the answer says so.
        let _ = waiter.send(sender);
        Ok(answer)
    }

    /// Removes the lock files, unless that has been done, and goes on with new ones.
    fn replace(&mut self) -> io::Result<()> {
        if self.pair.is_current(&self.base)? {
            for suffix in [NEXT, TURN] {
                match fs::remove_file(beside(&self.base, suffix)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        self.renew()
    }

    fn renew(&mut self) -> io::Result<()> {
        self.pair.leave();
        self.waiter = None;
        self.pair = Arc::new(Pair::open(&self.base)?);
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // An unlock of a lock we hold does not fail; if it did, closing the file at the end would do it.
        let _ = self.0.busy.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Instant;

    use super::*;
    use crate::sqlite::wait::Waits;

    #[test]
    fn who_leaves_cannot_pass_who_waits() {
        let dir = tempfile::tempdir().unwrap();
        let open = || WriteTurns::open(&dir.path().join("journal.db")).unwrap();
        let mut first = open();
        let mut second = open();
        let witness = open();
        let order = Mutex::new(Vec::new());
        let waits = Waits::default();
        let turn = first.take(&mut waits.begin()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = second.take(&mut waits.begin()).unwrap();
                order.lock().unwrap().push("the one who waited");
            });
            let begin = Instant::now();
            while !matches!(witness.pair.next.try_lock(), Err(TryLockError::WouldBlock)) {
                witness.pair.next.unlock().unwrap();
                assert!(begin.elapsed() < Duration::from_secs(60), "no connection ever waits");
                std::thread::yield_now();
            }
            drop(turn);
            let _turn = first.take(&mut waits.begin()).unwrap();
            order.lock().unwrap().push("the one who left");
        });
        assert_eq!(*order.lock().unwrap(), ["the one who waited", "the one who left"]);
    }

    #[test]
    fn when_the_lock_files_are_replaced_everybody_goes_on_with_the_new_ones() {
        let dir = tempfile::tempdir().unwrap();
        let open = || WriteTurns::open(&dir.path().join("journal.db")).unwrap();
        let mut stuck = open();
        let mut first = open();
        let mut second = open();
        let waits = Waits::default();
        let old = stuck.take(&mut waits.begin()).unwrap();
        first.replace().unwrap();
        let turn = first.take(&mut waits.begin()).unwrap();
        assert!(!second.pair.is_current(&second.base).unwrap());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(second.take(&mut waits.begin()).unwrap()));
            drop(old);
            let again = scope.spawn(|| drop(stuck.take(&mut waits.begin()).unwrap()));
            drop(turn);
            waiting.join().unwrap();
            again.join().unwrap();
        });
        assert_eq!(second.pair.inodes, first.pair.inodes);
        assert_eq!(stuck.pair.inodes, first.pair.inodes);
    }

    /// The two files are removed one after the other. A process that looks in between waits with the new
    /// `next` for the old turn, which is that of a stopped process: it must not keep the others from the new
    /// one.
    #[test]
    fn a_wait_that_began_between_the_two_removals_is_in_the_way_of_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("journal.db");
        let open = || WriteTurns::open(&base).unwrap();
        let mut stuck = open();
        let mut first = open();
        let mut second = open();
        let waits = Waits::default();
        let _old = stuck.take(&mut waits.begin()).unwrap();
        fs::remove_file(beside(&base, NEXT)).unwrap();
        let (sender, turns) = channel();
        let own = sender.clone();
        std::thread::spawn(move || own.send(second.take(&mut Waits::default().begin()).map(drop)));
        // A new `next` that is locked says that it waits.
        let began = Instant::now();
        while !File::open(beside(&base, NEXT))
            .is_ok_and(|next| matches!(next.try_lock(), Err(TryLockError::WouldBlock)))
        {
            assert!(began.elapsed() < Duration::from_secs(60), "it never waits");
            std::thread::yield_now();
        }
        fs::remove_file(beside(&base, TURN)).unwrap();
        std::thread::spawn(move || sender.send(first.take(&mut Waits::default().begin()).map(drop)));
        for _ in 0..2 {
            turns.recv_timeout(Duration::from_secs(20)).expect("both wait for the old turn").unwrap();
        }
    }
}
