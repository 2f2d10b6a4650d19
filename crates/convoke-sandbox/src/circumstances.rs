//! What decides what a sandbox can hold here: the kernel, who runs this and within what, and the programs
//! that are used. It reads a few small files and starts nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::confine::find_bubblewrap;
use crate::helper::find_bash;
use crate::shell::HelperPath;
use crate::sys;

/// Switches of the kernel that forbid namespaces, mounts within them, or a look at other processes.
const SWITCHES: [&str; 6] = [
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/apparmor_restrict_unprivileged_unconfined",
    "kernel/yama/ptrace_scope",
    "user/max_user_namespaces",
    "user/max_pid_namespaces",
];

/// The namespaces that this process is in: a container has others than the machine it runs on.
const NAMESPACES: [&str; 5] = ["user", "mnt", "pid", "net", "cgroup"];

/// What of `/proc/self/status` decides: who this is, and what is forbidden to it already.
const STATUS: [&str; 6] = ["Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp"];

/// For what a probe holds. Two that are equal would find the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Circumstances {
    /// This form of the record; another one knows other things.
    form: u32,
    boot: String,
    kernel: String,
    landlock: u32,
    process: String,
    namespaces: Vec<Option<PathBuf>>,
    /// What a security module calls this process, and when its profiles were last changed.
    label: String,
    profiles: Option<Identity>,
    switches: BTreeMap<String, String>,
    /// Where commands find programs.
    path: Option<String>,
    bubblewrap: Option<Identity>,
    bash: Option<Identity>,
    own: Option<Identity>,
}

/// One file, so that a new version under the same name is another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    mode: u32,
    /// In seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(path: Option<PathBuf>) -> Option<Self> {
        let path = path?;
        let about = path.metadata().ok()?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            size: about.size(),
            mode: about.mode(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
            path,
        })
    }
}

impl Circumstances {
    /// The record's form. It grows whenever a probe tries something else than before.
    const FORM: u32 = 1;

    /// Looks around. The arguments are those of a probe.
    pub(crate) fn look(helper: &HelperPath, path: Option<&OsStr>, workspace: &Path) -> Self {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default().trim_end().to_owned();
        let status = read("/proc/self/status");
        let process: Vec<&str> =
            status.lines().filter(|line| STATUS.iter().any(|word| line.starts_with(word))).collect();
        let namespace = |name: &&str| std::fs::read_link(format!("/proc/self/ns/{name}")).ok();
        let switch = |name: &&str| ((*name).to_owned(), read(&format!("/proc/sys/{name}")));
        Self {
            form: Self::FORM,
            boot: read("/proc/sys/kernel/random/boot_id"),
            kernel: read("/proc/version"),
            landlock: sys::landlock_abi().unwrap_or_default(),
            process: process.join("\n"),
            namespaces: NAMESPACES.iter().map(namespace).collect(),
            label: read("/proc/self/attr/current").trim_end_matches('\0').to_owned(),
            profiles: Identity::of(Some("/etc/apparmor.d".into())),
            switches: SWITCHES.iter().map(switch).collect(),
            path: path.map(|path| path.to_string_lossy().into_owned()),
            bubblewrap: Identity::of(find_bubblewrap(path, &[workspace])),
            bash: Identity::of(find_bash(path)),
            own: Identity::of(Some(helper.program.clone())),
        }
    }

    /// Whether enough could be found out to compare: without the number of the boot nothing is told apart.
    pub(crate) fn can_be_compared(&self) -> bool {
        !self.boot.is_empty() && !self.process.is_empty() && self.own.is_some()
    }
}

/// Seconds since the machine was started: a clock that is never set.
pub(crate) fn uptime() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}
