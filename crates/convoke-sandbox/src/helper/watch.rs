//! The watch over how much a command and all it started use, for machines on which the kernel does not count
//! it. It only looks and says what was passed; the caller ends the command.

use std::time::{Duration, Instant};

use super::tree::Tree;
use crate::policy::Limits;
use crate::sys::Pid;

/// How often it looks while a command runs.
const EVERY: Duration = Duration::from_millis(100);

/// Watchers for changes of files, of which a user often has 128 in all: some are left for the person.
const WATCHERS: u64 = 48;

/// Sockets that are free, as far as memory is concerned: every program has some.
const FREE_SOCKETS: u64 = 64;

/// What one socket may keep back: the kernel's usual limit for a sender, and as much again.
const SOCKET: u64 = 2 * 212_992;

/// The watch over one shell.
pub(crate) struct Watchdog {
    limits: Limits,
    next: Instant,
}

impl Watchdog {
    /// A watch that keeps these limits.
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, next: Instant::now() + EVERY }
    }

    /// Whether it is time to look.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// How long until it wants to look again.
    pub(crate) fn due_in(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks if it is time, and says which limit has been passed.
    pub(crate) fn look(&mut self, tree: &Tree, shell: Option<Pid>) -> Option<String> {
        if !self.is_due() {
            return None;
        }
        let passed = self.passed(tree, shell);
        // Counted from the end of the look, so that a tree which takes long to look at still gets its turn.
        self.next = Instant::now() + EVERY;
        passed
    }

    /// Which limit is passed at this moment.
    pub(crate) fn passed(&self, tree: &Tree, shell: Option<Pid>) -> Option<String> {
        let usage = tree.usage(shell);
        if usage.processes > self.limits.processes {
            return Some(format!("{} processes at one time", self.limits.processes));
        }
        let held = tree.held();
        if held.watchers > WATCHERS {
            return Some(format!("{WATCHERS} inotify instances at one time"));
        }
        // The kernel does not say how much is in a socket of another process, so each is taken for full.
        let sockets = held.sockets.saturating_sub(FREE_SOCKETS).saturating_mul(SOCKET);
        let elsewhere = held.memory_files.saturating_add(sockets);
        // What is shared is counted for each process at first, and fairly only when that seems too much.
        let too_much = usage.memory.saturating_add(elsewhere) > self.limits.memory
            && tree.shared_fairly(held.memory_files).saturating_add(sockets) > self.limits.memory;
        too_much.then(|| format!("{} of memory", in_words(self.limits.memory)))
    }
}

/// A size as a person would say it.
fn in_words(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_the_unit_that_fits() {
        assert_eq!((in_words(4 << 30), in_words(64 << 20)), ("4.0 GiB".to_owned(), "64 MiB".to_owned()));
    }
}
