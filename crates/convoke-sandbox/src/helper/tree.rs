//! The processes below the helper, read from `/proc`, and their certain end. It touches nothing that is not
//! below.
//!
//! Without a pid namespace `/proc` shows every process of the machine, and with many shells at once each
//! helper would read what all the others started. So the helper walks down from itself by the lists of
//! children, which the kernel keeps. Such a list can miss a process while a sibling of it is being reaped:
//! what is counted is walked twice, and nothing is taken for gone before all of `/proc` has been read.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::sys::{self, Pid};
use crate::wire::ProcessHold;

/// One process for certain: a number may be used again, a number with its start time is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pid: Pid,
    started: u64,
}

/// Everything below the helper.
pub(crate) struct Tree {
    root: Pid,
    reach: Reach,
}

/// What of `/proc` is below the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All of it, also what was moved in from outside: the helper has a pid namespace of its own.
    Everything,
    /// What descends from the helper, as the lists of children say.
    Children,
    /// What descends from the helper, as the parents of all processes say: this kernel keeps no such lists.
    Parents,
}

struct Process {
    identity: Identity,
    parent: Pid,
    dead: bool,
    /// Resident memory.
    pages: u64,
}

/// How much is used below the helper.
pub(crate) struct Usage {
    pub(crate) processes: u64,
    /// Bytes, in which what processes share is counted for each of them.
    pub(crate) memory: u64,
}

/// What processes below hold by descriptor and what is in no process's own memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Bytes of files in memory, each once.
    pub(crate) memory_files: u64,
    /// Sockets, each once.
    pub(crate) sockets: u64,
    /// Descriptors of inotify, of which a user has few for everything.
    pub(crate) watchers: u64,
}

/// Every kernel we run on with the usual page; a larger one makes the first count smaller and the fair one
/// decides.
const PAGE: u64 = 4096;

impl Tree {
    /// The tree below the calling process.
    pub(crate) fn below_here(hold: &ProcessHold) -> Self {
        let root = Pid::try_from(std::process::id()).unwrap_or(1);
        let reach = match hold {
            ProcessHold::PidNamespace => Reach::Everything,
            _ if children(root, root).is_some() => Reach::Children,
            _ => Reach::Parents,
        };
        Self { root, reach }
    }

    /// All living processes below, but for `shell`.
    pub(crate) fn living(&self, shell: Option<Pid>) -> HashSet<Identity> {
        let living = || -> HashSet<Identity> {
            let all = self.look();
            let below = self.below(&all).into_iter();
            let wanted = below.filter(|process| !process.dead && Some(process.identity.pid) != shell);
            wanted.map(|process| process.identity).collect()
        };
        let mut seen = living();
        if self.reach == Reach::Children {
            seen.extend(living());
        }
        seen
    }

    /// How much everything below uses; the shell itself is no process of a command, but its memory counts.
    pub(crate) fn usage(&self, shell: Option<Pid>) -> Usage {
        let all = self.look();
        let below = self.below(&all);
        let living = below.iter().filter(|process| !process.dead && Some(process.identity.pid) != shell);
        let memory = below.iter().map(|process| process.pages.saturating_mul(PAGE)).sum();
        Usage { processes: living.count() as u64, memory }
    }

    /// Bytes of memory below, in which what processes share is divided among them, together with files in
    /// memory. Slow. Which part of such a file is mapped is not known, so that the larger of both counts.
    pub(crate) fn shared_fairly(&self, memory_files: u64) -> u64 {
        let all = self.look();
        let mut own = 0_u64;
        let mut shared = 0_u64;
        for process in self.below(&all) {
            let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.identity.pid));
            let bytes = |name: &str| -> Option<u64> {
                let line = rollup.as_ref().ok()?.lines().find_map(|line| line.strip_prefix(name))?;
                line.split_whitespace()
                    .next()?
                    .parse::<u64>()
                    .ok()
                    .map(|kibibytes| kibibytes.saturating_mul(1024))
            };
            let all = bytes("Pss:").unwrap_or(process.pages.saturating_mul(PAGE));
            let mapped = bytes("Pss_Shmem:").unwrap_or(0).min(all);
            own = own.saturating_add(all - mapped);
            shared = shared.saturating_add(mapped);
        }
        own.saturating_add(shared.max(memory_files))
    }

    /// What everything below holds by descriptor.
    pub(crate) fn held(&self) -> Held {
        let all = self.look();
        held_by(self.below(&all).into_iter().map(|process| process.identity.pid))
    }

    /// The files that everything below, the shell among it, can write through what it has open or mapped.
    /// `wanted` says of a path that the kernel gives whether it counts, and how it is called.
    pub(crate) fn open_for_writing(
        &self,
        shell: Option<Pid>,
        wanted: &dyn Fn(&[u8]) -> Option<PathBuf>,
    ) -> BTreeSet<PathBuf> {
        let mut open = BTreeSet::new();
        let all = self.look();
        for pid in self.below(&all).into_iter().map(|process| process.identity.pid) {
            open.extend(opened_for_writing(pid, wanted));
            // Bash maps nothing to write to it, and these lists are long.
            if Some(pid) != shell {
                open.extend(mapped_for_writing(pid, wanted));
            }
        }
        open
    }

    /// Kills everything below except the shell, what is in `keep`, and what descends from that other than
    /// through the shell. Returns how many it found: as long as that is not zero there may be more.
    ///
    /// All are stopped before the first is killed, until no new one appears, so that none can fork away
    /// meanwhile.
    pub(crate) fn kill_except(&self, keep: &HashSet<Identity>, shell: Option<Pid>) -> usize {
        const ROUNDS: usize = 50;
        let mut held = HashMap::new();
        let mut thorough = self.reach != Reach::Children;
        for _ in 0..ROUNDS {
            let all = if thorough { processes() } else { self.look() };
            let found = self.targets(&all, keep, shell).into_iter();
            let fresh: Vec<Identity> = found.filter(|identity| !held.contains_key(identity)).collect();
            let before = held.len();
            held.extend(fresh.into_iter().filter_map(|identity| {
                let process = hold(identity)?;
                process.signal(libc::SIGSTOP);
                Some((identity, process))
            }));
            if held.len() == before {
                if thorough {
                    break;
                }
                thorough = true;
            }
        }
        for process in held.values() {
            process.signal(libc::SIGKILL);
        }
        held.len()
    }

    /// Repeats [`Tree::kill_except`] until nothing is left, or the time is up.
    pub(crate) fn kill_until_gone(&self, keep: &HashSet<Identity>, shell: Option<Pid>, limit: Duration) {
        let since = Instant::now();
        while self.kill_except(keep, shell) > 0 && since.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn targets(
        &self,
        all: &HashMap<Pid, Process>,
        keep: &HashSet<Identity>,
        shell: Option<Pid>,
    ) -> Vec<Identity> {
        let kept = |process: &Process| {
            self.line(all, process)
                .take_while(|process| Some(process.identity.pid) != shell)
                .any(|process| keep.contains(&process.identity))
        };
        let wanted =
            |process: &&&Process| !process.dead && Some(process.identity.pid) != shell && !kept(process);
        self.below(all).iter().filter(wanted).map(|process| process.identity).collect()
    }

    /// The processes below; where that is cheaper than to find out, others too.
    fn look(&self) -> HashMap<Pid, Process> {
        match self.reach {
            Reach::Everything | Reach::Parents => processes(),
            Reach::Children => descendants(self.root),
        }
    }

    fn below<'a>(&self, all: &'a HashMap<Pid, Process>) -> Vec<&'a Process> {
        all.values()
            .filter(|process| process.identity.pid != self.root)
            .filter(|process| {
                self.reach == Reach::Everything
                    || self.line(all, process).last().is_some_and(|top| top.parent == self.root)
            })
            .collect()
    }

    /// A process, its parent, and so on, ending below the root.
    fn line<'a>(
        &self,
        all: &'a HashMap<Pid, Process>,
        from: &'a Process,
    ) -> impl Iterator<Item = &'a Process> {
        let up = move |process: &&'a Process| {
            (process.parent != self.root).then(|| all.get(&process.parent)).flatten()
        };
        // The listing is not taken at one instant, so a circle is thinkable; no real line is this long.
        std::iter::successors(Some(from), up).take(4096)
    }
}

/// What these processes hold by descriptor.
fn held_by(processes: impl Iterator<Item = Pid>) -> Held {
    let mut held = Held::default();
    let mut files = HashSet::new();
    let mut sockets = HashSet::new();
    for pid in processes {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
        for path in entries.into_iter().flatten().flatten().map(|entry| entry.path()) {
            let Ok(link) = std::fs::read_link(&path) else { continue };
            match link.as_os_str().as_encoded_bytes() {
                name if name.starts_with(b"/memfd:") => {
                    let Ok(file) = std::fs::metadata(&path) else { continue };
                    if files.insert((file.dev(), file.ino())) {
                        held.memory_files =
                            held.memory_files.saturating_add(file.blocks().saturating_mul(512));
                    }
                }
                name if name.starts_with(b"socket:") => drop(sockets.insert(link)),
                b"anon_inode:inotify" => held.watchers += 1,
                _ => {}
            }
        }
    }
    held.sockets = sockets.len() as u64;
    held
}

/// The files that a process has open for writing.
fn opened_for_writing(pid: Pid, wanted: &dyn Fn(&[u8]) -> Option<PathBuf>) -> Vec<PathBuf> {
    let writes = |number: &OsStr| {
        let about = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.display())).ok()?;
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let mode = i32::from_str_radix(flags.trim(), 8).ok()? & libc::O_ACCMODE;
        (mode != libc::O_RDONLY).then_some(())
    };
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let file = |entry: std::fs::DirEntry| {
        let place = wanted(std::fs::read_link(entry.path()).ok()?.as_os_str().as_bytes())?;
        writes(&entry.file_name())?;
        // What has no name any more is in no tree.
        let about = std::fs::metadata(entry.path()).ok()?;
        (about.is_file() && about.nlink() > 0).then_some(place)
    };
    entries.filter_map(file).collect()
}

/// The files that a process has mapped so that it can write them, whether they are open or not.
fn mapped_for_writing(pid: Pid, wanted: &dyn Fn(&[u8]) -> Option<PathBuf>) -> Vec<PathBuf> {
    let list = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let shared = list.split(|byte| *byte == b'\n').filter_map(|line| {
        let (_, rest) = line.split_at_checked(line.iter().position(|byte| *byte == b' ')? + 1)?;
        let is_shared = rest.get(1) == Some(&b'w') && rest.get(3) == Some(&b's');
        is_shared.then_some(&rest[rest.iter().position(|byte| *byte == b'/')?..])
    });
    shared.filter(|path| !path.ends_with(b" (deleted)")).filter_map(wanted).collect()
}

/// Holds the process if it is still the one that was seen.
fn hold(identity: Identity) -> Option<sys::Held> {
    let held = sys::hold_process(identity.pid)?;
    (read(identity.pid)?.identity == identity).then_some(held)
}

fn processes() -> HashMap<Pid, Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, read(pid)?)))
        .collect()
}

/// Every process that descends from `root`, by the lists of children.
fn descendants(root: Pid) -> HashMap<Pid, Process> {
    let mut found = HashMap::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            for pid in children(parent, thread).unwrap_or_default() {
                if let Entry::Vacant(place) = found.entry(pid)
                    && let Some(process) = read(pid)
                {
                    place.insert(process);
                    parents.push(pid);
                }
            }
        }
    }
    found
}

/// The children that a thread of a process has started; `None` where the kernel does not list them.
fn children(pid: Pid, thread: Pid) -> Option<Vec<Pid>> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok()?;
    Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

fn read(pid: Pid) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// The second field is the name in parentheses, which may itself hold anything, so the rest begins at the
/// last one.
fn parse(pid: Pid, stat: &[u8]) -> Option<Process> {
    let end_of_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    let pages = fields.nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    Some(Process { identity: Identity { pid, started }, parent, dead, pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: Pid, parent: Pid) -> (Pid, Process) {
        (pid, Process { identity: Identity { pid, started: 1 }, parent, dead: false, pages: 1 })
    }

    fn check(reach: Reach, keep: &[Pid], expected: &[Pid]) {
        // 10 is the helper, 11 the shell, 12 an older job with a child 13, 14 a new child of the shell with a
        // child 15, 16 an orphan, 20 a process that is not below the helper.
        let all = HashMap::from([
            process(1, 0),
            process(10, 1),
            process(11, 10),
            process(12, 11),
            process(13, 12),
            process(14, 11),
            process(15, 14),
            process(16, 10),
            process(20, 1),
        ]);
        let keep = keep.iter().map(|&pid| Identity { pid, started: 1 }).collect();
        let tree = Tree { root: if reach == Reach::Everything { 1 } else { 10 }, reach };
        let mut found: Vec<Pid> =
            tree.targets(&all, &keep, Some(11)).iter().map(|identity| identity.pid).collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn children_of_kept_jobs_are_kept_and_strangers_are_not_below() {
        check(Reach::Parents, &[12], &[14, 15, 16]);
        check(Reach::Children, &[12], &[14, 15, 16]);
        check(Reach::Parents, &[], &[12, 13, 14, 15, 16]);
    }

    #[test]
    fn in_its_own_namespace_everything_is_below() {
        check(Reach::Everything, &[10, 12], &[14, 15, 20]);
    }

    #[test]
    fn what_is_held_by_descriptor_is_counted_once() {
        let here = Pid::try_from(std::process::id()).unwrap();
        let before = held_by([here].into_iter());
        let mut file = crate::sys::memory_file().map(std::fs::File::from).unwrap();
        std::io::Write::write_all(&mut file, &vec![1; 64 << 20]).unwrap();
        let _copy = file.try_clone().unwrap();
        let _pair = std::os::unix::net::UnixStream::pair().unwrap();
        let after = held_by([here, here].into_iter());
        let grown = after.memory_files.saturating_sub(before.memory_files);
        assert!((64 << 20..128 << 20).contains(&grown), "{before:?} {after:?}");
    }

    #[test]
    fn a_walk_by_children_finds_what_all_of_proc_says_is_below() {
        let here = Pid::try_from(std::process::id()).unwrap();
        let script = "sleep 600 & (sleep 601 & exec sleep 602) & echo ready; wait";
        let mut shell = std::process::Command::new("bash")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let root = Pid::try_from(shell.id()).unwrap();
        let below = |reach| Tree { root, reach }.living(None);
        // The second shell may still be about to start its own.
        while below(Reach::Parents).len() < 3 {
            std::thread::yield_now();
        }
        assert_eq!(below(Reach::Children), below(Reach::Parents));
        assert!(descendants(here).len() >= 4);
        let walked = Tree { root, reach: Reach::Children };
        assert_eq!(walked.kill_except(&HashSet::new(), None), 3);
        walked.kill_until_gone(&HashSet::new(), None, Duration::from_secs(10));
        assert!(below(Reach::Parents).is_empty());
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_reader() {
        let line = b"7 (a) b) S 3 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = parse(7, line).unwrap();
        assert_eq!((process.identity.started, process.parent, process.dead), (4711, 3, false));
    }
}
