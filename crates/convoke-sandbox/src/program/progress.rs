//! Whether a program gets on, as the kernel tells: it stands still when none of its processes has run or
//! wants to run, and none waits for a disk. It looks into `/proc` and changes nothing.

use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::sys::Pid;

/// How far a program has come.
pub(super) struct Progress {
    leader: Pid,
    patience: Duration,
    seen: String,
    since: Instant,
    looked: Instant,
}

impl Progress {
    pub(super) fn new(leader: Pid, patience: Duration) -> Self {
        let now = Instant::now();
        Self { leader, patience, seen: String::new(), since: now, looked: now }
    }

    /// Looks, at most once in a tenth of the patience. When the program has stood still for too long, says
    /// what it waits for, as far as that can be seen.
    pub(super) fn stalled(&mut self) -> Option<Option<PathBuf>> {
        if self.looked.elapsed() < self.patience / 10 {
            return None;
        }
        self.looked = Instant::now();
        let now = look(self.leader);
        if now.busy || now.ran != self.seen {
            self.seen = now.ran;
            self.since = Instant::now();
            return None;
        }
        (self.since.elapsed() >= self.patience).then(|| waiting_for(self.leader))
    }
}

/// How all processes of a program stand.
#[derive(Default)]
struct Look {
    /// What the kernel counts of each thread's running, in its own words.
    ran: String,
    /// Whether a thread runs, wants to, or waits for a disk.
    busy: bool,
}

fn look(leader: Pid) -> Look {
    let mut found = Look::default();
    let mut processes = vec![leader.to_string()];
    while let Some(process) = processes.pop() {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for task in tasks.map(|entry| entry.path()) {
            let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
            let stat = read("stat");
            // The name before it stands in brackets and may hold anything.
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            found.busy |= matches!(state, Some('R' | 'D'));
            found.ran.push_str(&read("schedstat"));
            // The same in ticks, for kernels that do not count more finely.
            found.ran.extend(
                stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').skip(11).take(4).collect::<String>()),
            );
            processes.extend(read("children").split_whitespace().map(str::to_owned));
        }
    }
    found
}

/// The file that a process waits to open or to read, by the system call that it is in.
fn waiting_for(process: Pid) -> Option<PathBuf> {
    let call = fs::read_to_string(format!("/proc/{process}/syscall")).ok()?;
    let mut words = call.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut argument = |index: usize| u64::from_str_radix(words.nth(index)?.strip_prefix("0x")?, 16).ok();
    match number {
        libc::SYS_openat => text_at(process, argument(1)?),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => text_at(process, argument(0)?),
        libc::SYS_read | libc::SYS_pread64 => {
            fs::read_link(format!("/proc/{process}/fd/{}", argument(0)?)).ok()
        }
        _ => None,
    }
}

/// A string with its NUL in the memory of a process.
fn text_at(process: Pid, address: u64) -> Option<PathBuf> {
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let mut bytes = Vec::new();
    // Page by page, because what follows may not be there.
    while bytes.len() < 4096 && !bytes.contains(&0) {
        let at = address + bytes.len() as u64;
        let mut part = vec![0; 4096 - (at % 4096) as usize];
        let count = memory.read_at(&mut part, at).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
    }
    let end = bytes.iter().position(|byte| *byte == 0)?;
    bytes.truncate(end);
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}
