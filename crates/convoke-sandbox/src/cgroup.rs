//! Memory and process limits by control group, where one can be had, and the kill that nothing in a group
//! escapes. Only groups that this process made are written to: a new group is made below the one we are in,
//! and only where that is the top of what we see or has been delegated to us. Where some manager has put us
//! into a group of its own, that manager counts and kills by membership, so no process is moved out of its
//! sight.

mod place;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::policy::Limits;
use crate::sys;

use place::{Controller, Version};

/// What the groups of this machine offer to this process; where not, why not.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    /// A memory limit by the unified hierarchy.
    pub(crate) v2_memory: Result<(), String>,
    /// A process limit by the unified hierarchy.
    pub(crate) v2_pids: Result<(), String>,
    /// A memory limit by a hierarchy of its own.
    pub(crate) v1_memory: Result<(), String>,
    /// A process limit by a hierarchy of its own.
    pub(crate) v1_pids: Result<(), String>,
    /// The kill of a whole group at once.
    pub(crate) kill: Result<(), String>,
}

impl Offered {
    /// Whether any limit can be held by a group.
    pub(crate) fn any_limit(&self) -> bool {
        [&self.v2_memory, &self.v2_pids, &self.v1_memory, &self.v1_pids].into_iter().any(Result::is_ok)
    }
}

impl fmt::Display for Offered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |v2: &Result<(), String>, v1: &Result<(), String>| match (v2, v1) {
            (Ok(()), _) => "version 2".to_owned(),
            (_, Ok(())) => "version 1".to_owned(),
            (Err(two), Err(one)) if two == one => format!("no ({one})"),
            (Err(two), Err(one)) => format!("no (version 2: {two}; version 1: {one})"),
        };
        write!(out, "memory: {}", limit(&self.v2_memory, &self.v1_memory))?;
        write!(out, ", processes: {}", limit(&self.v2_pids, &self.v1_pids))?;
        match &self.kill {
            Ok(()) => write!(out, ", kill: at once"),
            Err(why) => write!(out, ", kill: one by one ({why})"),
        }
    }
}

/// Finds out what can be had, by really making a group and removing it.
pub(crate) fn offered() -> Offered {
    let attempt = |version, controller| {
        let base = place::base(version, controller)?;
        let directory = base.join(group_name("probe"));
        std::fs::create_dir(&directory)
            .map_err(|error| format!("no group can be made in {}: {error}", base.display()))?;
        let needed = controller.limit_file(version);
        let found =
            if directory.join(needed).exists() { Ok(()) } else { Err(format!("the group has no {needed}")) };
        // An empty group can always be removed; if not, the next sweep does it.
        drop(std::fs::remove_dir(&directory));
        found
    };
    Offered {
        v2_memory: attempt(Version::Two, Controller::Memory),
        v2_pids: attempt(Version::Two, Controller::Processes),
        v1_memory: attempt(Version::One, Controller::Memory),
        v1_pids: attempt(Version::One, Controller::Processes),
        kill: attempt(Version::Two, Controller::Kill),
    }
}

/// Processes that share their limits, and end together.
#[derive(Debug)]
pub(crate) struct Group {
    parts: Vec<Part>,
    /// How often each limit had struck when it was last asked.
    seen: [AtomicU64; 2],
}

/// The group's directory in one hierarchy, and what it is for there.
#[derive(Debug)]
struct Part {
    directory: PathBuf,
    version: Version,
    controllers: Vec<Controller>,
}

impl Group {
    /// Makes an empty group with these limits, as many of them as can be had. An error says why there is none
    /// at all.
    pub(crate) fn make(name: &str, limits: &Limits) -> Result<Self, String> {
        let mut group = Self { parts: Vec::new(), seen: [AtomicU64::new(0), AtomicU64::new(0)] };
        let mut reasons = Vec::new();
        for controller in [Controller::Memory, Controller::Processes, Controller::Kill] {
            // Hierarchies of version 1 know no kill; there processes are killed one by one.
            let versions: &[Version] =
                if controller == Controller::Kill { &[Version::Two] } else { &[Version::Two, Version::One] };
            for &version in versions {
                match group.take(name, version, controller, limits) {
                    Ok(()) => break,
                    Err(why) => reasons.push(why),
                }
            }
        }
        if group.parts.is_empty() { Err(reasons.join("; ")) } else { Ok(group) }
    }

    /// Takes one controller, in the directory of its hierarchy.
    fn take(
        &mut self,
        name: &str,
        version: Version,
        controller: Controller,
        limits: &Limits,
    ) -> Result<(), String> {
        let directory = place::base(version, controller)?.join(group_name(name));
        let known = self.parts.iter().position(|part| part.directory == directory);
        if known.is_none() {
            std::fs::create_dir(&directory)
                .map_err(|error| format!("the group {} cannot be made: {error}", directory.display()))?;
        }
        let written = settings(version, controller, limits).into_iter().try_for_each(|setting| {
            match put(&directory.join(setting.file), &setting.value) {
                Err(error) if setting.required => Err(format!("{} cannot be set: {error}", setting.file)),
                _ => Ok(()),
            }
        });
        match (written, known) {
            (Ok(()), Some(known)) => self.parts[known].controllers.push(controller),
            (Ok(()), None) => self.parts.push(Part { directory, version, controllers: vec![controller] }),
            (Err(why), None) => {
                drop(std::fs::remove_dir(&directory));
                return Err(why);
            }
            (Err(why), Some(_)) => return Err(why),
        }
        Ok(())
    }

    /// Puts a process into the group. What it starts from then on is in the group too.
    pub(crate) fn add(&self, pid: u32) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| put(&part.directory.join("cgroup.procs"), &pid.to_string()))
    }

    /// Which limit has struck since this was last asked, if one has.
    pub(crate) fn killed(&self) -> Option<&'static str> {
        [(Controller::Memory, "memory"), (Controller::Processes, "processes")]
            .into_iter()
            .zip(&self.seen)
            .filter(|((controller, _), seen)| {
                let count = self.strikes(*controller);
                seen.swap(count, Ordering::Relaxed) < count
            })
            .map(|((_, what), _)| what)
            .next()
    }

    fn strikes(&self, controller: Controller) -> u64 {
        let part = self.parts.iter().find(|part| part.controllers.contains(&controller));
        let (file, key) = match (controller, part.map(|part| part.version)) {
            (Controller::Memory, Some(Version::Two)) => ("memory.events", "oom_kill"),
            (Controller::Memory, Some(Version::One)) => ("memory.oom_control", "oom_kill"),
            (Controller::Processes, Some(_)) => ("pids.events", "max"),
            _ => return 0,
        };
        let text = part.and_then(|part| std::fs::read_to_string(part.directory.join(file)).ok());
        text.map_or(0, |text| count(&text, key))
    }

    /// Kills everything in the group, whatever it has become since it was put there.
    pub(crate) fn kill(&self) {
        let at_once = self.parts.iter().find(|part| part.controllers.contains(&Controller::Kill));
        // All are in every part, so one part that can do it at once is enough.
        match at_once {
            Some(part) => kill_all(&part.directory),
            None => self.parts.iter().for_each(|part| kill_all(&part.directory)),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut left: Vec<PathBuf> = self.parts.iter().map(|part| part.directory.clone()).collect();
        left.retain(|directory| !remove(directory));
        if !left.is_empty() {
            self.kill();
            // Killed processes need a moment to go; a thread waits for that, not the caller.
            std::thread::spawn(move || {
                for _ in 0..500 {
                    left.iter().for_each(|directory| kill_all(directory));
                    left.retain(|directory| !remove(directory));
                    if left.is_empty() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
        }
    }
}

/// Removes the groups of processes that are gone, with whatever is left in them. Never those of a living
/// process, nor of one in another pid namespace, of which it cannot be told.
pub(crate) fn sweep() {
    let hierarchies = [
        (Version::Two, Controller::Kill),
        (Version::One, Controller::Memory),
        (Version::One, Controller::Processes),
    ];
    for base in
        hierarchies.into_iter().filter_map(|(version, controller)| place::base(version, controller).ok())
    {
        let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_left_over)) {
            kill_all(&entry.path());
            // What does not go at once goes with the next sweep.
            drop(std::fs::remove_dir(entry.path()));
        }
    }
}

/// The name of a group: the process that made it, its pid namespace, and what it is for.
fn group_name(name: &str) -> String {
    let plain: String =
        name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').take(64).collect();
    format!("convoke-{}-{}-{plain}", std::process::id(), pid_namespace())
}

/// Whether a group of this name was made by a process that is provably gone.
fn is_left_over(name: &str) -> bool {
    let mut words = name.split('-');
    let (Some("convoke"), Some(pid), Some(namespace)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let Ok(pid) = pid.parse::<u32>() else { return false };
    namespace == pid_namespace()
        && Path::new("/proc/self").exists()
        && matches!(Path::new(&format!("/proc/{pid}")).try_exists(), Ok(false))
}

/// The number of our pid namespace, in which alone our process ids mean something.
fn pid_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// One file to write. What is not required is absent on some machines, and nothing else depends on it.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    file: &'static str,
    value: String,
    required: bool,
}

/// The helper, the shell and what they start for themselves are in the group but are no part of a command.
const OWN_PROCESSES: u64 = 8;

/// What is to be written for a limit.
fn settings(version: Version, controller: Controller, limits: &Limits) -> Vec<Setting> {
    let setting = |file, value: u64, required| Setting { file, value: value.to_string(), required };
    match (controller, version) {
        // Without a limit of its own, what does not fit into memory would only move to the swap.
        (Controller::Memory, Version::Two) => {
            vec![setting("memory.max", limits.memory, true), setting("memory.swap.max", 0, false)]
        }
        (Controller::Memory, Version::One) => vec![
            setting("memory.limit_in_bytes", limits.memory, true),
            setting("memory.memsw.limit_in_bytes", limits.memory, false),
        ],
        (Controller::Processes, _) => {
            vec![setting("pids.max", limits.processes.saturating_add(OWN_PROCESSES), true)]
        }
        (Controller::Kill, _) => Vec::new(),
    }
}

/// The number behind a key in a file of `key number` lines.
fn count(text: &str, key: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == key).and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
}

/// Writes to a file of the kernel's, which is there or is not: none is ever made.
fn put(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Whether the group is gone now.
fn remove(directory: &Path) -> bool {
    match std::fs::remove_dir(directory) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn kill_all(directory: &Path) {
    if put(&directory.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let members = || -> Vec<sys::Pid> {
        let text = std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).filter(|&pid| pid > 1).collect()
    };
    // A process that is forked meanwhile is found in the next round.
    for _ in 0..20 {
        let found = members();
        if found.is_empty() {
            return;
        }
        let held: Vec<_> = found.into_iter().filter_map(|pid| Some((pid, sys::hold_process(pid)?))).collect();
        // Only a process that is still a member while we hold it is the process that we saw.
        let still = members();
        held.iter()
            .filter(|(pid, _)| still.contains(pid))
            .for_each(|(_, process)| process.signal(libc::SIGKILL));
    }
}
