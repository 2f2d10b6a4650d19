//! Where groups of ours may be made. Reads what the kernel says of this process and its mounts; of what it
//! finds it takes only what is the top of our view or has been delegated to us.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::sys;

/// A generation of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// One hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

/// Something that a group can do for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Processes,
    /// No controller to the kernel: every group of version 2 has it.
    Kill,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
            Self::Kill => "kill",
        }
    }

    /// The file by which one sees that a group has this.
    pub(super) fn limit_file(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Memory, Version::One) => "memory.limit_in_bytes",
            (Self::Memory, Version::Two) => "memory.max",
            (Self::Processes, _) => "pids.max",
            (Self::Kill, _) => "cgroup.kill",
        }
    }
}

/// The directory below which groups of ours may be made for this controller, which is enabled there.
pub(super) fn base(version: Version, controller: Controller) -> Result<PathBuf, String> {
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"));
    let own = locate(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?, version, controller)?;
    let base = own.top.join(&own.below);
    let is_ours = own.below.as_os_str().is_empty() || (version == Version::Two && is_delegated(&base));
    if !is_ours {
        return Err(format!(
            "the group {} that this process is in is managed by another program",
            own.below.display()
        ));
    }
    if version == Version::Two && controller != Controller::Kill {
        enable(&base, controller)?;
    }
    Ok(base)
}

/// Our own group: where its hierarchy is mounted, and what lies between that and the group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) top: PathBuf,
    pub(super) below: PathBuf,
}

/// Finds our own group from the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`.
pub(super) fn locate(
    mounts: &str,
    groups: &str,
    version: Version,
    controller: Controller,
) -> Result<Own, String> {
    let absent = || match version {
        Version::One => format!("there is no {} hierarchy of version 1", controller.name()),
        Version::Two => "there is no hierarchy of version 2".to_owned(),
    };
    let has = |list: &str| list.split(',').any(|name| name == controller.name());
    // Of a mount: … root mountpoint options … - type source super-options
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut kind = kind.split(' ');
        let root = place.next()?;
        let top = place.next()?;
        let filesystem = kind.next()?;
        let options = kind.nth(1)?;
        let fits = match version {
            Version::One => filesystem == "cgroup" && has(options),
            Version::Two => filesystem == "cgroup2",
        };
        fits.then_some((root, top))
    });
    // Of a group: hierarchy:controllers:path, with hierarchy 0 for version 2.
    let group = groups.lines().find_map(|line| {
        let (hierarchy, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let fits = match version {
            Version::One => has(controllers),
            Version::Two => hierarchy == "0",
        };
        fits.then_some(path)
    });
    let ((root, top), group) = mount.zip(group).ok_or_else(absent)?;
    let below = Path::new(group)
        .strip_prefix(root)
        .map_err(|_| format!("the group {group} that this process is in cannot be seen from here"))?;
    // Once we have moved into a leaf of our own, see `enable`, the group is the one above.
    let below = match below.file_name() {
        Some(name) if *name == *own_leaf() => below.parent().unwrap_or(below),
        _ => below,
    };
    Ok(Own { top: top.into(), below: below.to_owned() })
}

/// Whether a group below the top has been handed to us to do with as we like: it belongs to our user, or its
/// manager has marked it so.
fn is_delegated(group: &Path) -> bool {
    let (user, _) = sys::effective_ids();
    let owned = user != 0 && group.metadata().is_ok_and(|metadata| metadata.uid() == user);
    owned
        || ["user.delegate", "trusted.delegate"].into_iter().any(|mark| {
            let mut value = [0_u8; 8];
            rustix::fs::getxattr(group, mark, &mut value[..]).is_ok_and(|length| value[..length] == *b"1")
        })
}

/// Where this process goes when its group is to have groups below it, since a group with limits below it may
/// have no processes of its own.
fn own_leaf() -> String {
    super::group_name("host")
}

/// Lets the groups below `base` have a controller.
fn enable(base: &Path, controller: Controller) -> Result<(), String> {
    let name = controller.name();
    let lists = |file: &str| {
        std::fs::read_to_string(base.join(file))
            .is_ok_and(|text| text.split_whitespace().any(|listed| listed == name))
    };
    if !lists("cgroup.controllers") {
        return Err(format!("version 2 has no {name} controller here"));
    }
    if lists("cgroup.subtree_control") {
        return Ok(());
    }
    let control = || super::put(&base.join("cgroup.subtree_control"), &format!("+{name}"));
    let failed = |error: io::Error| {
        format!(
            "the {name} controller cannot be enabled in {}: {error}; start in a scope of its own, as by \
             systemd-run --user --scope --property=Delegate=yes",
            base.display()
        )
    };
    match control() {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy && is_alone(base) => {
            let leaf = base.join(own_leaf());
            match std::fs::create_dir(&leaf) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                _ => {}
            }
            super::put(&leaf.join("cgroup.procs"), &std::process::id().to_string()).map_err(failed)?;
            control().map_err(failed)
        }
        other => other.map_err(failed),
    }
}

/// Whether this process is the only one in the group, so that no other is moved.
fn is_alone(group: &Path) -> bool {
    let own = std::process::id().to_string();
    std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| text.lines().all(|pid| pid == own))
}
