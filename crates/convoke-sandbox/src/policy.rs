//! What a shell may do, in plain words: which paths, which network, how much. Only data; how it is enforced
//! is said by [`crate::LayerSet`], and whether the machine can do that is decided by [`crate::hold`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a command may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// A throwaway copy of the workspace and a private temporary directory; the workspace itself never
    /// changes.
    ReadOnly,
    /// The workspace, but for its git metadata, and a private temporary directory.
    Workspace,
    /// Everything: nothing is confined.
    Off,
}

/// Which hosts a command may talk to over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// No host.
    Off,
    /// These hosts over HTTP and HTTPS, through a proxy of the host's: `crates.io`, `*.crates.io`,
    /// `host:8080`.
    Hosts(Vec<String>),
    /// All hosts.
    On,
}

/// How much one command and all it starts may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory, all processes together.
    pub memory: u64,
    /// Processes at one time.
    pub processes: u64,
    /// Bytes of one file. All that an agent may keep in its private directories is eight times this.
    pub file_size: u64,
    /// Open files of one process.
    pub open_files: u64,
}

impl Limits {
    /// Where the kernel counts threads as processes: a process may have some.
    pub(crate) fn threads(&self) -> u64 {
        self.processes.saturating_mul(4)
    }
}

impl Default for Limits {
    /// 4 GiB of memory, 512 processes, files of 2 GiB, 4,096 open files.
    fn default() -> Self {
        Self { memory: 4 << 30, processes: 512, file_size: 2 << 30, open_files: 4096 }
    }
}

/// What one shell may do. Paths need not be canonical; they are before anything is decided by them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What may be written.
    pub access: Access,
    /// Which hosts may be talked to.
    pub network: Network,
    /// How much may be used.
    pub limits: Limits,
    /// The tree that the agent works on.
    pub workspace: PathBuf,
    /// An existing directory of this agent alone, outside the workspace, that only its owner may enter. The
    /// temporary directory, the layers and the copy are kept in it and found there again by the next shell of
    /// the same agent. Those of other agents are out of its reach only if the directory above them is hidden.
    pub private: PathBuf,
    /// What must be unreadable, existing or not: the home directory, the journal, our state and
    /// configuration.
    pub hidden: Vec<PathBuf>,
    /// What may be read although it lies below something hidden.
    pub readable: Vec<PathBuf>,
    /// Toolchain directories below something hidden: readable, with a private writable layer where the
    /// machine has overlays, else read-only.
    pub caches: Vec<PathBuf>,
    /// Files and directories that are unreadable even below something readable: credentials.
    pub masked: Vec<PathBuf>,
    /// Gives the agent a git dir of its own in the place of that of the workspace, which is a worktree of
    /// ours.
    #[serde(default)]
    pub own_git: Option<OwnGit>,
}

/// What a git dir of an agent's own begins with. Commands read both places and write neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnGit {
    /// The metadata of the worktree in its repository.
    pub admin: PathBuf,
    /// The metadata that all worktrees of the repository share.
    pub common: PathBuf,
    /// The branch that commits go to.
    pub branch: String,
}

impl Policy {
    /// Nothing is confined in this tree.
    pub fn off(workspace: PathBuf) -> Self {
        Self {
            access: Access::Off,
            network: Network::On,
            limits: Limits::default(),
            workspace,
            private: PathBuf::new(),
            hidden: Vec::new(),
            readable: Vec::new(),
            caches: Vec::new(),
            masked: Vec::new(),
            own_git: None,
        }
    }
}

/// By which means a policy is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerSet {
    /// Bubblewrap's namespaces and mounts, and within them Landlock, seccomp and resource limits.
    Namespaces,
    /// Landlock, seccomp and resource limits alone, for machines that forbid namespaces.
    Landlock,
}
