//! Which process holds a lock on a file, and whether that process is stopped, as the kernel says it
//! in `/proc`. Only looks; never signals a process and opens no file that is locked, because
//! closing one would give up locks of our own.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// A lock that a process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// `POSIX` or `FLOCK`.
    pub(crate) kind: String,
    pub(crate) pid: u32,
    inode: u64,
    /// The first byte it is for, and the last one if it has an end.
    range: (u64, Option<u64>),
}

/// The process that has the `flock` on a file, if the kernel tells.
pub(crate) fn flock_holder(inode: u64) -> Option<u32> {
    locks().into_iter().find(|held| held.kind == "FLOCK" && held.inode == inode).map(|held| held.pid)
}

/// The process that has the POSIX lock on one byte of a file, if the kernel tells.
pub(crate) fn byte_holder(inode: u64, byte: u64) -> Option<u32> {
    let covers = |range: (u64, Option<u64>)| range.0 <= byte && range.1.is_none_or(|last| byte <= last);
    let found = |held: &Held| held.kind == "POSIX" && held.inode == inode && covers(held.range);
    locks().into_iter().find(found).map(|held| held.pid)
}

fn locks() -> Vec<Held> {
    // Where it cannot be read nothing is provable, and the caller waits.
    fs::read_to_string("/proc/locks").unwrap_or_default().lines().filter_map(parse).collect()
}

/// One line, such as `7: POSIX ADVISORY WRITE 4711 fe:00:131090 120 120`. A waiter's line has `->` and is no
/// lock; a read lock is of no interest here, and a process outside of our pid namespace has the pid 0.
fn parse(line: &str) -> Option<Held> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, kind, _, "WRITE", pid, file, first, last] = words.as_slice() else { return None };
    let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
    let inode = file.rsplit(':').next()?.parse().ok()?;
    let first = first.parse().ok()?;
    let last = if *last == "EOF" { None } else { Some(last.parse().ok()?) };
    Some(Held { kind: (*kind).to_owned(), pid, inode, range: (first, last) })
}

/// A process of which every thread is stopped, by a signal or by a debugger. Two equal values prove that it
/// has not run in between: a thread that ran was switched away from afterwards, and the kernel counts that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoppedProcess {
    pub(crate) pid: u32,
    start_time: u64,
    threads: Vec<(u32, u64)>,
}

impl StoppedProcess {
    /// Looks at a process. `None` means "not provable", not "running".
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let start_time = crate::process::start_time(pid)?;
        let mut threads = Vec::new();
        for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
            let task = task.ok()?;
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let thread = task.file_name().to_str()?.parse().ok()?;
            threads.push((thread, stopped_switches(&status)?));
        }
        threads.sort_unstable();
        let same = crate::process::start_time(pid)? == start_time;
        (same && !threads.is_empty()).then_some(Self { pid, start_time, threads })
    }
}

/// How often a thread that is stopped now was switched away from; `None` if it is not stopped.
fn stopped_switches(status: &str) -> Option<u64> {
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let state = value("State:")?;
    if !state.starts_with(['T', 't']) {
        return None;
    }
    let count = |name| value(name)?.parse::<u64>().ok();
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}

/// Whether a process has a file of this name open, even one that was removed since.
pub(crate) fn has_open(pid: u32, name: &Path) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let removed = format!("{} (deleted)", name.display());
    let is_it = |link: std::path::PathBuf| link == name || link.as_os_str() == removed.as_str();
    open.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(is_it))
}

/// The process that is waited for, as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedProcess {
    /// Its pid, if the kernel tells.
    pub pid: Option<u32>,
    /// Its command line, shortened; empty if it cannot be read.
    pub command: String,
    /// Whether every thread of it is stopped.
    pub stopped: bool,
    /// For how long it has been waited for.
    pub waited: Duration,
}

impl AwaitedProcess {
    pub(crate) fn on(pid: Option<u32>, waited: Duration) -> Self {
        let command = pid.map(command).unwrap_or_default();
        let stopped = pid.is_some_and(|pid| StoppedProcess::of(pid).is_some());
        Self { pid, command, stopped, waited }
    }
}

impl std::fmt::Display for AwaitedProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "the journal is held by process {pid}")?,
            None => write!(f, "the journal is held by a process that cannot be seen from here")?,
        }
        if !self.command.is_empty() {
            write!(f, " ({})", self.command)?;
        }
        let state = if self.stopped { ", which is stopped" } else { "" };
        write!(f, "{state}; waiting for it since {} s", self.waited.as_secs())
    }
}

/// How many characters of a command line are shown.
const COMMAND: usize = 60;

fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> =
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let told = words.join(" ");
    let mut short: String = told.trim().chars().take(COMMAND).collect();
    if short.len() < told.trim().len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read_and_waiters_are_not_holders() {
        let held = parse("7: POSIX  ADVISORY  WRITE 4711 fe:00:131090 120 120").unwrap();
        assert_eq!(
            (held.kind.as_str(), held.pid, held.inode, held.range),
            ("POSIX", 4711, 131_090, (120, Some(120)))
        );
        let held = parse("3: FLOCK  ADVISORY  WRITE 12 00:2f:99 0 EOF").unwrap();
        assert_eq!((held.kind.as_str(), held.range), ("FLOCK", (0, None)));
        assert_eq!(parse("3: -> FLOCK  ADVISORY  WRITE 12 00:2f:99 0 EOF"), None);
        assert_eq!(parse("8: POSIX  ADVISORY  READ  4711 fe:00:131090 123 123"), None);
        assert_eq!(
            parse("9: FLOCK  ADVISORY  WRITE 0 00:2f:99 0 EOF"),
            None,
            "a process of another pid namespace"
        );
    }

    #[test]
    fn a_stopped_process_stands_still_and_one_that_ran_in_between_does_not() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let signal = |name: &str| {
            let sent =
                std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
            assert!(sent.success());
        };
        let pid = child.id();
        let stopped = || loop {
            if let Some(still) = StoppedProcess::of(pid) {
                // The switch away from the thread may not be counted yet when it is first seen stopped.
                if StoppedProcess::of(pid).as_ref() == Some(&still) {
                    return still;
                }
            }
            std::thread::yield_now();
        };
        assert_eq!(StoppedProcess::of(std::process::id()), None);
        signal("-STOP");
        let first = stopped();
        assert_eq!(StoppedProcess::of(pid), Some(first.clone()));
        assert!(
            AwaitedProcess::on(Some(pid), Duration::ZERO)
                .to_string()
                .contains("sleep 1000), which is stopped")
        );
        signal("-CONT");
        while StoppedProcess::of(pid).is_some() {
            std::thread::yield_now();
        }
        signal("-STOP");
        assert_ne!(stopped(), first, "it has run in between");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(StoppedProcess::of(pid), None);
    }
}
