//! What a process is, and how another one can prove that it is gone. Reads `/proc`; sends no signals.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A process, named so that a later one cannot be mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// A random name: `p_` and 20 hexadecimal digits.
    pub id: String,
    /// The boot of the machine it runs on; empty if that could not be read.
    pub boot: String,
    /// The pid namespace its pid belongs to; empty if that could not be read.
    pub pid_namespace: String,
    /// Its pid in that namespace.
    pub pid: u32,
    /// When it started, in clock ticks since the boot.
    pub start_time: u64,
}

impl Process {
    /// This process, under a name made of these random bits. Where `/proc` cannot tell, the fields stay empty
    /// and no other process can prove that this one is gone; its leases then end by expiry alone.
    pub fn current(id_bits: [u8; 10]) -> Self {
        let id = id_bits.iter().fold("p_".to_owned(), |id, byte| id + &format!("{byte:02x}"));
        let pid = std::process::id();
        let boot =
            fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
        // A procfs mounted for another pid namespace shows other pids than ours: what it says proves nothing.
        let own_proc = fs::read_link("/proc/self").is_ok_and(|link| link == Path::new(&pid.to_string()));
        let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|text| parse_stat(&text));
        match (namespace, stat) {
            (Ok(pid_namespace), Some(stat)) if own_proc => {
                Self { id, boot, pid_namespace, pid, start_time: stat.start_time }
            }
            _ => Self { id, boot, pid_namespace: String::new(), pid, start_time: 0 },
        }
    }

    /// Whether this process has provably ended, as seen by `observer`, which must be the calling process:
    /// same boot, same pid namespace, and no process with this pid and start time. `false` means "not
    /// provable", not "alive".
    pub fn is_gone(&self, observer: &Process) -> bool {
        if self.boot.is_empty() || self.boot != observer.boot {
            return false;
        }
        if self.pid_namespace.is_empty() || self.pid_namespace != observer.pid_namespace {
            return false;
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            Ok(text) => match parse_stat(&text) {
                Some(stat) => stat.start_time != self.start_time || (stat.dead && self.has_no_threads()),
                None => false,
            },
            // Under `hidepid` other users' processes look absent; then process 1 looks absent too.
            Err(error) => error.kind() == ErrorKind::NotFound && Path::new("/proc/1/stat").exists(),
        }
    }

    /// A zombie whose leader ended early may still have threads at work.
    fn has_no_threads(&self) -> bool {
        fs::read_dir(format!("/proc/{}/task", self.pid)).is_ok_and(|tasks| tasks.count() <= 1)
    }
}

/// When the process with this pid has started, in clock ticks since the boot.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    Some(parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?.start_time)
}

struct Stat {
    dead: bool,
    start_time: u64,
}

/// The command name is in parentheses and may contain anything, so fields are counted from the last
/// parenthesis.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(Stat { dead, start_time: fields.get(19)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_confuse_the_start_time() {
        let text = "42 (a) Z 1 (b)) S 1 42 42 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 7777 1 1";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.dead, stat.start_time), (false, 7777));
    }

    #[test]
    fn the_current_process_is_not_gone() {
        let me = Process::current([1; 10]);
        assert_eq!(me.id, "p_01010101010101010101");
        assert!(!me.is_gone(&me));
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let me = Process::current([1; 10]);
        let earlier = Process { start_time: me.start_time.wrapping_sub(1), ..me.clone() };
        assert!(earlier.is_gone(&me));
    }

    #[test]
    fn nothing_is_provable_across_boots_or_pid_namespaces() {
        let me = Process::current([1; 10]);
        let dead = Process { pid: u32::MAX, ..me.clone() };
        assert!(dead.is_gone(&me));
        assert!(!Process { boot: "another".into(), ..dead.clone() }.is_gone(&me));
        assert!(!Process { pid_namespace: "pid:[1]".into(), ..dead.clone() }.is_gone(&me));
        assert!(!Process { pid_namespace: String::new(), ..dead }.is_gone(&me));
    }

    #[test]
    fn a_zombie_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let me = Process::current([1; 10]);
        let path = format!("/proc/{}/stat", child.id());
        let stat = |text: String| parse_stat(&text).unwrap();
        let zombie = loop {
            let seen = stat(fs::read_to_string(&path).unwrap());
            if seen.dead {
                break Process { pid: child.id(), start_time: seen.start_time, ..me.clone() };
            }
            std::thread::yield_now();
        };
        assert!(zombie.is_gone(&me));
        child.wait().unwrap();
        assert!(zombie.is_gone(&me));
    }
}
