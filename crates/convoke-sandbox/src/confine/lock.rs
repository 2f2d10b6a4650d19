//! What the helper does to itself before there is a bash, so that everything below inherits it: it hands its
//! view of the tree out, gives up capabilities, and lays limits, file rules and call filters upon itself.
//! None can be taken off again.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::filter::{Ipc, Sockets, filters};
use super::grants::{Grant, grants, marks};
use super::stage::Inner;
use crate::policy::{LayerSet, Limits, Network};
use crate::sys;

/// The newest version of Landlock whose rights are known here. Older kernels hold what they know.
const KNOWN: ABI = ABI::V6;

/// Bash keeps its private descriptors at numbers just below 200.
const FEWEST_FILES: u64 = 256;

/// What goes to the host before the door is shut.
pub(crate) struct Sent {
    /// The tree as it is seen from inside.
    pub(crate) root: OwnedFd,
    /// Where the host's proxy is to listen, inside.
    pub(crate) listener: Option<(OwnedFd, u16)>,
}

impl Sent {
    /// Opens what is to be sent.
    pub(crate) fn open(inner: &Inner) -> Result<Self, String> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let root = std::fs::File::options().read(true).custom_flags(flags).open(&inner.tree);
        let root =
            root.map_err(|error| format!("{} cannot be opened inside: {error}", inner.tree.display()))?;
        let listener = match inner.policy.network {
            Network::Hosts(_) => {
                let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|bound| {
                    let port = bound.local_addr()?.port();
                    Ok((OwnedFd::from(bound), port))
                });
                Some(bound.map_err(|error| format!("the proxy's place cannot be had: {error}"))?)
            }
            Network::Off | Network::On => None,
        };
        Ok(Self { root: root.into(), listener })
    }

    /// The descriptors, in the order in which the host expects them.
    pub(crate) fn descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        std::iter::once(self.root.as_fd()).chain(self.listener.as_ref().map(|(fd, _)| fd.as_fd())).collect()
    }
}

/// Shuts the door. After an error the process must end: it may be half confined.
pub(crate) fn shut(inner: &Inner) -> Result<(), String> {
    limit(&inner.policy.limits, inner.set).map_err(|error| format!("limits cannot be set: {error}"))?;
    sys::drop_capabilities(inner.keep_capabilities)
        .map_err(|error| format!("capabilities cannot be dropped: {error}"))?;
    sys::gain_no_privileges().map_err(|error| format!("new privileges cannot be ruled out: {error}"))?;
    rule_files(inner).map_err(|error| format!("file rules cannot be set: {error}"))?;
    let alone = inner.set == LayerSet::Landlock && inner.policy.network != Network::On;
    let sockets = if alone { Sockets::None } else { Sockets::Internet };
    let ipc = if inner.set == LayerSet::Landlock { Ipc::Shared } else { Ipc::Own };
    for filter in filters(sockets, ipc)? {
        seccompiler::apply_filter(&filter).map_err(|error| format!("calls cannot be filtered: {error}"))?;
    }
    verify(inner)
}

/// Puts the calling process apart from the helper, which it then can neither stop nor end. The init of a pid
/// namespace has no need of it. Kernels that have no rules for signals do nothing, which [`crate::hold`]
/// says.
pub(crate) fn part() -> std::io::Result<()> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::Signal);
    let parted = ruleset.and_then(Ruleset::create).and_then(landlock::RulesetCreated::restrict_self);
    parted.map(drop).map_err(std::io::Error::other)
}

fn limit(limits: &Limits, set: LayerSet) -> std::io::Result<()> {
    sys::lower_limit(libc::RLIMIT_CORE, 0)?;
    sys::lower_limit(libc::RLIMIT_FSIZE, limits.file_size)?;
    sys::lower_limit(libc::RLIMIT_NOFILE, limits.open_files.max(FEWEST_FILES))?;
    // Address space would count what is only reserved, of which some runtimes take terabytes.
    sys::lower_limit(libc::RLIMIT_DATA, limits.memory)?;
    // This counts every process of the user, in and out of the sandbox where they share a namespace; root is
    // not held.
    let others = if set == LayerSet::Landlock { threads_of_this_user() } else { 0 };
    sys::lower_limit(libc::RLIMIT_NPROC, others + limits.threads())
}

fn threads_of_this_user() -> u64 {
    let user = sys::effective_ids().0.to_string();
    let of_user = |status: &str| {
        let value =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        if value("Uid:")? == user { value("Threads:")?.parse::<u64>().ok() } else { None }
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| of_user(&std::fs::read_to_string(entry.path().join("status")).ok()?)).sum()
}

fn rule_files(inner: &Inner) -> Result<(), String> {
    let text = |error: landlock::RulesetError| error.to_string();
    let all = AccessFs::from_all(KNOWN);
    let ruleset =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all).map_err(text)?;
    let mut ruleset = ruleset.scope(Scope::from_all(KNOWN)).map_err(text)?;
    if inner.set == LayerSet::Landlock && inner.policy.network == Network::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN)).map_err(text)?;
    }
    let mut created = ruleset.create().map_err(text)?;
    let marks = marks(&inner.places, inner.policy.access, inner.set, &inner.tree, &inner.layered);
    for (path, grant) in grants(&marks, &mut list) {
        // Names of what is hidden are kept back where mounts do not do it.
        if grant == Grant::List && inner.set == LayerSet::Landlock {
            continue;
        }
        // What cannot be opened or has just gone needs no rule.
        let Ok((handle, is_directory)) = unlinked(&path) else { continue };
        let access = rights(is_directory, grant);
        created = created.add_rule(PathBeneath::new(handle.as_fd(), access)).map_err(text)?;
    }
    match created.restrict_self().map_err(text)?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel did not enforce them".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// A handle of what stands at a path, and whether that is a directory. No link is followed: a job that has a
/// place exchanged for one while the rules are made only takes rights away.
pub(crate) fn unlinked(path: &Path) -> std::io::Result<(OwnedFd, bool)> {
    // Without O_NOFOLLOW, with which a link at the end would be opened instead of refused.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let handle = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let is_directory = FileType::from_raw_mode(fstat(&handle)?.st_mode) == FileType::Directory;
    Ok((handle, is_directory))
}

/// Rights of directories cannot be given to files.
fn rights(is_directory: bool, grant: Grant) -> BitFlags<AccessFs> {
    let rights = match grant {
        Grant::List => AccessFs::ReadDir.into(),
        Grant::Read => AccessFs::from_read(KNOWN),
        Grant::Write => AccessFs::from_all(KNOWN),
    };
    if is_directory { rights } else { rights & AccessFs::from_file(KNOWN) }
}

fn list(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    // A symbolic link is nothing by itself; where it leads has its own rule.
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// Looks whether what was asked for is there, because a door that only seems shut is worse than none.
fn verify(inner: &Inner) -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("/proc cannot be read: {error}"))?;
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    for set in ["CapEff:", "CapPrm:"] {
        let held = value(set).and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(u64::MAX);
        if held & !inner.keep_capabilities != 0 {
            return Err(format!("capabilities {held:x} are still there"));
        }
    }
    if value("NoNewPrivs:") != Some("1") || value("Seccomp:") != Some("2") {
        return Err("the process is not locked after all".to_owned());
    }
    Ok(())
}
