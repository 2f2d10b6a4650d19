//! What the host keeps for one confined shell: the handle of its tree, its proxy, its control group, and an
//! eye on how much it stores. Dropping it ends the proxy and removes the group.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener as StdTcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::cgroup::Group;
use crate::confine::{hidden_home, own_programs};
use crate::error::Error;
use crate::helper::{PROXY_VARIABLES, proxy_variables};
use crate::link::Confined;
use crate::policy::{Access, LayerSet, Limits, Network, Policy};
use crate::proxy;
use crate::wire::Confine;

/// All that an agent keeps in its private directories, as a multiple of its largest file.
const STORED: u64 = 8;

/// The most refused hosts that are noted; a command that tries more is not helped by their names.
const REFUSED: usize = 32;

/// How often what is stored is counted, at the most.
pub(crate) const COUNT_EVERY: Duration = Duration::from_secs(1);

/// The same while only background jobs run and nothing changes.
pub(crate) const COUNT_JOBS_EVERY: Duration = Duration::from_secs(5);

/// The host's part of one sandbox.
#[derive(Debug)]
pub(crate) struct Cage {
    pub(crate) tree: PathBuf,
    pub(crate) root: OwnedFd,
    private: PathBuf,
    limits: Limits,
    group: Option<Group>,
    proxy: Option<AbortHandle>,
    refused: Refused,
}

/// The hosts that the proxy has turned away since they were last asked for.
#[derive(Debug, Clone, Default)]
struct Refused(Arc<Mutex<BTreeSet<String>>>);

impl Refused {
    fn note(&self, host: &str) {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < REFUSED {
            hosts.insert(host.to_owned());
        }
    }

    fn take(&self) -> Vec<String> {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *hosts).into_iter().collect()
    }
}

impl Cage {
    /// A copy of a large tree takes longer than a helper may otherwise.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

    /// What the helper is to be told, if anything is to be confined.
    pub(crate) fn wanted(
        policy: &Policy,
        layers: Option<LayerSet>,
        env: &BTreeMap<String, String>,
    ) -> Option<Confine> {
        let set = layers.filter(|_| policy.access != Access::Off)?;
        let home = hidden_home(policy, env.get("HOME").map(String::as_str));
        Some(Confine { set, policy: policy.clone(), home, distrusted: Vec::new(), guarded: Vec::new() })
    }

    /// Points the environment at places and proxies that exist inside.
    pub(crate) fn adapt(env: &mut BTreeMap<String, String>, confine: &Confine) {
        let temporary = match confine.set {
            LayerSet::Namespaces => PathBuf::from("/tmp"),
            LayerSet::Landlock => confine.policy.private.join("tmp"),
        };
        env.insert("TMPDIR".to_owned(), temporary.to_string_lossy().into_owned());
        if confine.set == LayerSet::Landlock && confine.home.is_some() {
            env.insert("HOME".to_owned(), confine.policy.private.join("home").to_string_lossy().into_owned());
        }
        if confine.set == LayerSet::Landlock && confine.policy.own_git.is_some() {
            let programs = own_programs(&confine.policy.private).to_string_lossy().into_owned();
            env.entry("PATH".to_owned())
                .and_modify(|path| *path = format!("{programs}:{path}"))
                .or_insert(programs);
        }
        if matches!(confine.policy.network, Network::Hosts(_)) {
            env.retain(|name, _| !PROXY_VARIABLES.iter().any(|variable| variable.eq_ignore_ascii_case(name)));
        }
    }

    /// Puts the helper into a group of its own before it starts anything. Without one the helper's own watch
    /// holds.
    pub(crate) fn group(confine: &Confine, helper: Option<u32>) -> Option<Group> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let limits = confine.policy.limits;
        // A thread counts as a process in a group; single processes are counted by the helper.
        let limits = Limits { processes: limits.threads(), ..limits };
        let group = Group::make(&format!("shell{}", NEXT.fetch_add(1, Ordering::Relaxed)), &limits).ok()?;
        group.add(helper?).ok().map(|()| group)
    }

    /// Takes over what the helper sent, and serves its proxy. What the helper added to the environment is
    /// counted as given.
    pub(crate) fn new(
        confined: Confined,
        network: Network,
        limits: Limits,
        private: PathBuf,
        group: Option<Group>,
        given: &mut BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        given.extend(confined.proxy.into_iter().flat_map(|port| proxy_variables(port, &network)));
        let refused = Refused::default();
        let proxy = match (network, confined.listener) {
            (Network::Hosts(hosts), Some(listener)) => {
                let listener = StdTcpListener::from(listener);
                listener.set_nonblocking(true).map_err(Error::system("watching the proxy's socket"))?;
                let listener =
                    TcpListener::from_std(listener).map_err(Error::system("watching the proxy's socket"))?;
                let noted = refused.clone();
                let serving = proxy::serve(listener, hosts, move |host: &str| noted.note(host));
                Some(tokio::spawn(serving).abort_handle())
            }
            _ => None,
        };
        Ok(Self { tree: confined.tree.into(), root: confined.root, private, limits, group, proxy, refused })
    }

    /// Whether the kernel has killed something of a failed command because of a limit.
    pub(crate) fn struck(&self, failed: bool) -> Option<String> {
        // Asked in any case, so that a strike is not counted for the next command.
        let what = self.group.as_ref().and_then(Group::killed)?;
        (what == "memory" && failed).then(|| "the memory of its control group".to_owned())
    }

    /// The hosts that were refused since this was last asked.
    pub(crate) fn refused_hosts(&self) -> Vec<String> {
        self.refused.take()
    }

    /// An eye on what is stored, for the length of one command, or of the background jobs that it left.
    pub(crate) fn disk(&self, at_most_every: Duration) -> Disk {
        let most = self.limits.file_size.saturating_mul(STORED);
        Disk { private: self.private.clone(), most, pause: COUNT_EVERY, at_most_every, last: 0 }
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if let Some(proxy) = &self.proxy {
            proxy.abort();
        }
    }
}

/// Counts what an agent stores outside its workspace.
pub(crate) struct Disk {
    private: PathBuf,
    most: u64,
    pause: Duration,
    /// How long the pause becomes while nothing changes.
    at_most_every: Duration,
    last: u64,
}

impl Disk {
    /// Ready when too much is stored. May be dropped and called again.
    pub(crate) async fn filled(&mut self) -> String {
        loop {
            sleep(self.pause).await;
            let private = self.private.clone();
            let most = self.most;
            let since = Instant::now();
            let stored = tokio::task::spawn_blocking(move || stored(&private, most)).await.unwrap_or(0);
            if stored > most {
                return format!("{} MiB in private files", most >> 20);
            }
            let quiet = std::mem::replace(&mut self.last, stored) == stored;
            let pause = if quiet { (self.pause * 2).min(self.at_most_every) } else { COUNT_EVERY };
            // A tree that takes long to count is counted less often.
            self.pause = pause.max(since.elapsed() * 20);
        }
    }
}

/// Bytes stored below a directory; counting ends when there are too many.
fn stored(directory: &Path, most: u64) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut sum = 0_u64;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            sum = sum.saturating_add(about.blocks() * 512);
            if about.is_dir() {
                open.push(entry.path());
            }
            if sum > most {
                return sum;
            }
        }
    }
    sum
}
