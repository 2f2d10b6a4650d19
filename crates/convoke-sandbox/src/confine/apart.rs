//! The walls of one agent within the namespaces that bubblewrap has made for all: the template stands in
//! them, sees the whole machine beneath [`MACHINE`], and forks a helper into further namespaces. There the
//! helper mounts what its own policy says, by handle, and leaves the machine behind before there is a bash.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2};
use rustix::io::Errno;

use super::git;
use super::overlay::Overlays;
use super::own_git;
use super::places::Places;
use super::plan::{HELPER, Made, Mount, plan};
use super::stage::{Inner, c_path, capabilities, clear_ways, in_memory, make_private};
use crate::helper::{FORKS, HELPER_ARGUMENT, map_ids};
use crate::policy::{Access, LayerSet, Network};
use crate::sys::{self, Apart, Reach};
use crate::wire::{Confine, Form, ShellSetup};

/// Where a template sees the machine as it is, and where no command ever does.
const MACHINE: &str = "/run/convoke/machine";

/// Of a `/proc`, what must not be written by root either.
const PROC_COVERED: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// How helpers stand apart from a template of this user.
pub(crate) fn apart(own_network: bool) -> Apart {
    // Within a user namespace root could not touch files of other owners.
    Apart { user: sys::effective_ids().0 != 0, network: own_network }
}

/// Becomes bubblewrap, which becomes a template. Returns only to say why it could not.
pub(crate) fn become_template(bubblewrap: &Path, control: &UnixStream, own_network: bool) -> String {
    let started = (|| -> io::Result<io::Error> {
        let helper = std::env::current_exe()?;
        let mut words: Vec<OsString> = ["--unshare-ipc", "--unshare-uts", "--unshare-pid", "--as-pid-1"]
            .into_iter()
            .chain(own_network.then_some("--unshare-net"))
            .chain(apart(own_network).user.then_some("--unshare-user"))
            .chain(["--cap-add", "ALL", "--chdir", "/", "--ro-bind", "/", "/", "--tmpfs", "/run"])
            .chain(["--bind", "/", MACHINE, "--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc"])
            .map(OsString::from)
            .collect();
        words.extend(["--ro-bind".into(), helper.into_os_string(), HELPER.into()]);
        let mut arguments = Vec::new();
        for word in words {
            arguments.extend_from_slice(word.as_bytes());
            arguments.push(0);
        }
        let arguments = in_memory(&arguments)?;
        for fd in [control.as_fd(), arguments.as_fd()] {
            sys::keep_on_exec(fd)?;
        }
        let mut command = Command::new(bubblewrap);
        command.arg("--args").arg(arguments.as_raw_fd().to_string()).args(["--", HELPER]);
        Ok(command.args([HELPER_ARGUMENT, FORKS, if own_network { "1" } else { "0" }]).exec())
    })();
    let error = started.unwrap_or_else(|error| error);
    format!("{} could not be started: {error}", bubblewrap.display())
}

/// Makes the walls of one agent, in namespaces that were made for it.
pub(crate) fn enter_apart(
    confine: Confine,
    shell: Option<ShellSetup>,
    apart: Apart,
) -> Result<Inner, String> {
    let text = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let (user, group) = sys::effective_ids();
    if apart.user {
        map_ids(user, group)?;
        std::fs::write("/proc/sys/user/max_user_namespaces", "0")
            .map_err(text("further user namespaces cannot be ruled out"))?;
    }
    // Where the kernel has no such namespaces there is nothing to see.
    let _ = sys::hide_groups_above();
    sys::keep_mounts_private().map_err(text("mounts cannot be kept private"))?;
    if apart.network != (confine.policy.network != Network::On) {
        return Err("the template is for another network".to_owned());
    }
    if apart.network {
        sys::start_loopback().map_err(text("there is no loopback device"))?;
    }
    let root = directory(Path::new("/")).map_err(text("the root cannot be opened"))?;
    let machine = directory(Path::new(MACHINE)).map_err(text("the machine cannot be seen"))?;
    sys::change_root(machine.as_fd()).map_err(text("the machine cannot be entered"))?;
    let (inner, walls) = Walls::gather(confine, shell, apart)?;
    sys::change_root(root.as_fd()).map_err(text("the machine cannot be left"))?;
    drop(machine);
    own_places(inner.policy.limits.memory / 4).map_err(text("devices and processes cannot be mounted"))?;
    // What the walls put upon it covers it in any case, and no process below can take that away. The kernel
    // keeps what is mounted from being taken off one by one in a user namespace of another's making.
    let unmounted = sys::unmount(c"/run");
    if !apart.user {
        unmounted.map_err(text("the machine cannot be put away"))?;
    }
    walls.put()?;
    Ok(inner)
}

fn directory(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)
}

/// What every agent has of its own, whatever its policy: processes, terminals and shared memory.
fn own_places(shared_memory: u64) -> io::Result<()> {
    sys::mount_kernels(c"proc", c"", c"/proc", libc::MS_NODEV | libc::MS_NOEXEC)?;
    for covered in PROC_COVERED {
        let may_write = rustix::fs::access(covered, rustix::fs::Access::WRITE_OK).is_ok();
        if may_write {
            let path = c_path(Path::new(covered)).map_err(io::Error::other)?;
            let mount = sys::copy_mount(&path)?;
            sys::forbid_writing(mount.as_fd(), Reach::AllBelow)?;
            sys::put_mount(mount.as_fd(), place(Path::new(covered), true)?.as_fd())?;
        }
    }
    let terminals = c"newinstance,ptmxmode=0666,mode=620";
    sys::mount_kernels(c"devpts", terminals, c"/dev/pts", libc::MS_NOEXEC)?;
    let options = std::ffi::CString::new(format!("size={shared_memory},mode=1777"))?;
    sys::mount_kernels(c"tmpfs", &options, c"/dev/shm", libc::MS_NODEV)
}

/// The mounts of one policy, each with what is to be seen there.
struct Walls(Vec<(Mount, Option<OwnedFd>)>);

impl Walls {
    /// Looks at the machine, makes what the agent has of its own there, and takes what is to be mounted by
    /// handle. It runs where the machine is seen as it is.
    fn gather(
        Confine { policy, home, guarded, .. }: Confine,
        shell: Option<ShellSetup>,
        apart: Apart,
    ) -> Result<(Inner, Self), String> {
        let root = sys::effective_ids().0 == 0;
        let mut places = Places::look(&policy, home, root)?;
        if !places.run {
            return Err(format!("{MACHINE} would not be covered, because this machine has no /run"));
        }
        places.find_nested(policy.access, guarded);
        make_private(&places)?;
        places.own_git = own_git::make(&policy, &places)?;
        let overlays = policy.access == Access::ReadOnly || !places.caches.is_empty();
        let mut made = Made {
            tree: places.workspace.clone(),
            caches: std::collections::BTreeMap::new(),
            temporary: places.private.join("tmp"),
            home: places.private.join("home"),
            helper: PathBuf::from("/"),
        };
        let layers = Overlays::new(&places.private, apart.user, policy.limits.memory / 2, policy.access);
        if policy.access == Access::ReadOnly {
            made.tree = layers.mount("tree", &places.workspace)?;
        }
        for spot in &places.caches {
            // A cache without a layer of its own is still a cache that can be read.
            if let Ok(at) = layers.mount_cache(&spot.path) {
                made.caches.insert(spot.path.clone(), at);
            }
        }
        let mut mounts = plan(&places, policy.access, &made);
        // No helper is started inside: this process is it.
        mounts.retain(|mount| mount.at() != Path::new(HELPER));
        let held = git::hold(&mut mounts, &places, policy.access, &made.tree)?;
        clear_ways(&mounts, &places, &made)
            .map_err(|error| format!("places for mounts cannot be made: {error}"))?;
        let walls: Result<Vec<_>, String> =
            mounts.into_iter().map(|mount| take(&mount).map(|handle| (mount, handle))).collect();
        let walls = Self(walls?);
        drop(held);
        let form = Form {
            user_namespace: apart.user,
            own_proc: true,
            overlay: overlays,
            no_more_users: apart.user,
            failures: Vec::new(),
        };
        let inner = Inner {
            set: LayerSet::Namespaces,
            tree: places.workspace.clone(),
            layered: made.caches.keys().cloned().collect(),
            keep_capabilities: capabilities(&places),
            form,
            policy,
            places,
            shell,
        };
        Ok((inner, walls))
    }

    /// Mounts all of it, from the root down.
    fn put(self) -> Result<(), String> {
        let mut empty = Vec::new();
        for (mount, handle) in self.0 {
            let failed = |error: io::Error| format!("{} cannot be mounted: {error}", mount.at().display());
            let at = c_path(mount.at())?;
            let shows_directory = match &handle {
                Some(handle) => is_directory(handle).map_err(failed)?,
                None => true,
            };
            let upon = place(mount.at(), shows_directory).map_err(failed)?;
            match handle {
                Some(handle) => sys::put_mount(handle.as_fd(), upon.as_fd()).map_err(failed)?,
                None => {
                    drop(upon);
                    sys::mount_kernels(c"tmpfs", c"mode=0755", &at, libc::MS_NODEV).map_err(failed)?;
                    empty.push(directory(mount.at()).map_err(failed)?);
                }
            }
        }
        // Only at the end, because other mounts stand on directories that are made in these.
        for directory in empty {
            sys::forbid_writing(directory.as_fd(), Reach::This)
                .map_err(|error| format!("an empty directory cannot be closed: {error}"))?;
        }
        Ok(())
    }
}

/// What is to be seen at a mount, by handle; nothing for an empty directory.
fn take(mount: &Mount) -> Result<Option<OwnedFd>, String> {
    let (from, writable) = match mount {
        Mount::Empty(_) => return Ok(None),
        Mount::Nothing(_) => (Path::new("/dev/null"), false),
        Mount::Read { from, .. } => (from.as_path(), false),
        Mount::Write { from, .. } => (from.as_path(), true),
    };
    let failed = |error: io::Error| format!("{} cannot be mounted: {error}", from.display());
    let handle = sys::copy_mount(&c_path(from)?).map_err(failed)?;
    if !writable {
        sys::forbid_writing(handle.as_fd(), Reach::AllBelow).map_err(failed)?;
    }
    Ok(Some(handle))
}

fn is_directory(handle: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(handle)?.st_mode) == FileType::Directory)
}

/// What is mounted upon, made if it is not there: in the agent's own directories, where the way was cleared
/// of links, or on a directory that was emptied. No link is followed.
fn place(at: &Path, is_directory: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = |path: &Path| openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    match open(at) {
        Err(Errno::NOENT) => {}
        opened => return opened.map_err(io::Error::from),
    }
    let above: Vec<&Path> = at.ancestors().skip(1).take_while(|above| open(above).is_err()).collect();
    let directories = above.into_iter().rev().chain(is_directory.then_some(at));
    for path in directories.filter(|path| path.components().next_back() != Some(Component::RootDir)) {
        mkdirat(CWD, path, Mode::from_raw_mode(0o755))?;
    }
    if !is_directory {
        File::options().write(true).create_new(true).open(at)?;
    }
    open(at).map_err(io::Error::from)
}
