//! From a policy to a helper that stands within it: overlays are mounted, bubblewrap is started around the
//! helper, and the forms that machines refuse are given up one by one, never for a weaker policy.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::beneath;
use super::git;
use super::overlay::Overlays;
use super::own_git;
use super::places::Places;
use super::plan::{HELPER, Made, Mount, plan, words};
use crate::copy::{self, CopyCap};
use crate::gitconfig;
use crate::helper::{HELPER_ARGUMENT, INNER, map_ids};
use crate::policy::{Access, LayerSet, Network, Policy};
use crate::program::{Sight, Unseen};
use crate::sys::{self, Pid};
use crate::trusted::trusted_program;
use crate::wire::{Confine, Form, ShellSetup};

/// Changing owners, and passing the rights of files: for root that works on another user's tree.
const OWNER_CAPABILITIES: u64 =
    (1 << libc_cap::CHOWN) | (1 << libc_cap::DAC_OVERRIDE) | (1 << libc_cap::FOWNER);

/// The numbers of the few capabilities that are ever kept.
mod libc_cap {
    pub(super) const CHOWN: u32 = 0;
    pub(super) const DAC_OVERRIDE: u32 = 1;
    pub(super) const FOWNER: u32 = 3;
}

/// What the helper writes from inside when it stands there.
const COMPLETE: &[u8] = b"complete";

/// The most files of a throwaway copy that is made file by file.
const COPY_FILES: u64 = 200_000;

/// Everything the helper must know inside.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Inner {
    pub(crate) set: LayerSet,
    pub(crate) policy: Policy,
    pub(crate) places: Places,
    /// What the agent takes for its workspace.
    pub(crate) tree: PathBuf,
    /// Caches with a writable layer.
    pub(crate) layered: Vec<PathBuf>,
    pub(crate) keep_capabilities: u64,
    pub(crate) form: Form,
    pub(crate) shell: Option<ShellSetup>,
}

/// Finds bubblewrap, but never one that lies in the workspace: a command may have put it there.
pub(crate) fn find_bubblewrap(path: Option<&OsStr>, never_below: &[&Path]) -> Option<PathBuf> {
    trusted_program("bwrap", path, never_below)
}

/// Starts bubblewrap with this executable inside. Returns the process to wait for; the other one, inside,
/// begins at [`read_inner`].
pub(crate) fn start_namespaces(
    descriptors: [&dyn AsFd; 2],
    Confine { policy, home, distrusted, guarded, .. }: Confine,
    shell: Option<ShellSetup>,
) -> Result<Pid, String> {
    let root = sys::effective_ids().0 == 0;
    let mut places = Places::look(&policy, home, root)?;
    places.find_nested(policy.access, guarded);
    // The path this process was given, and not the one that commands of an earlier shell may have left
    // behind.
    let path = std::env::var_os("PATH");
    let mut never_below: Vec<&Path> = vec![&places.workspace, &places.private];
    never_below.extend(distrusted.iter().map(PathBuf::as_path));
    let bubblewrap = find_bubblewrap(path.as_deref(), &never_below)
        .ok_or("bubblewrap is not installed (no bwrap was found)")?;
    let helper =
        std::env::current_exe().map_err(|error| format!("this executable cannot be found: {error}"))?;
    make_private(&places)?;
    places.own_git = own_git::make(&policy, &places)?;
    let overlays = policy.access == Access::ReadOnly || !places.caches.is_empty();
    let mut inner = Inner {
        set: LayerSet::Namespaces,
        tree: places.workspace.clone(),
        layered: Vec::new(),
        keep_capabilities: capabilities(&places),
        form: Form::default(),
        policy,
        places,
        shell,
    };
    let mut failures: Vec<String> = Vec::new();
    for form in forms(root, overlays) {
        inner.form = Form { failures: failures.clone(), ..form };
        match attempt(&bubblewrap, &helper, descriptors, &mut inner) {
            Ok(pid) => return Ok(pid),
            Err(why) if failures.contains(&why) => {}
            Err(why) => failures.push(why),
        }
    }
    Err(failures.join("; "))
}

/// The forms to try, the surest first.
fn forms(root: bool, overlays: bool) -> Vec<Form> {
    let mut forms = Vec::new();
    // Root first tries without a user namespace, because within one it could not touch files of other owners.
    let users: &[bool] = if root { &[false, true] } else { &[true] };
    for own_proc in [true, false] {
        for &user_namespace in users {
            for overlay in [true, false] {
                for no_more_users in [true, false] {
                    if (overlay && !overlays) || (no_more_users && !user_namespace) {
                        continue;
                    }
                    forms.push(Form { user_namespace, own_proc, overlay, no_more_users, ..Form::default() });
                }
            }
        }
    }
    forms
}

fn attempt(
    bubblewrap: &Path,
    helper: &Path,
    descriptors: [&dyn AsFd; 2],
    inner: &mut Inner,
) -> Result<Pid, String> {
    if !inner.form.overlay && inner.policy.access == Access::ReadOnly {
        copy_for_mount(inner)?;
    }
    let text = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let (mut status, status_writer) = io::pipe().map_err(text("no pipe"))?;
    let (mut errors, errors_writer) = io::pipe().map_err(text("no pipe"))?;
    match sys::fork().map_err(text("no process"))? {
        None => {
            drop((status, errors));
            let why = become_bubblewrap(
                bubblewrap,
                helper,
                descriptors,
                inner,
                status_writer.into(),
                &errors_writer,
            );
            // The parent reads this where bubblewrap's own words would be.
            let _ = (&errors_writer).write_all(why.as_bytes());
            std::process::exit(1)
        }
        Some(child) => {
            drop((status_writer, errors_writer));
            let mut said = [0; COMPLETE.len()];
            if status.read_exact(&mut said).is_ok() && said == COMPLETE {
                let _ = sys::refuse_tracing();
                return Ok(child);
            }
            let mut why = String::new();
            let _ = errors.read_to_string(&mut why);
            let _ = sys::reap(child, sys::Waiting::Block);
            let why = why.trim();
            Err(if why.is_empty() { "bubblewrap ended at once".to_owned() } else { why.to_owned() })
        }
    }
}

/// Runs in the child. Returns only to say why it could not.
fn become_bubblewrap(
    bubblewrap: &Path,
    helper: &Path,
    descriptors: [&dyn AsFd; 2],
    inner: &mut Inner,
    status: OwnedFd,
    errors: &dyn AsFd,
) -> String {
    match prepare(helper, inner) {
        Err(why) => why,
        Ok(Prepared { arguments, program, held }) => {
            let started = (|| -> io::Result<io::Error> {
                sys::die_with_parent()?;
                let memo = in_memory(&serde_json::to_vec(inner)?)?;
                let arguments = in_memory(&arguments)?;
                for fd in [
                    descriptors[0].as_fd(),
                    descriptors[1].as_fd(),
                    status.as_fd(),
                    memo.as_fd(),
                    arguments.as_fd(),
                ] {
                    sys::keep_on_exec(fd)?;
                }
                held.iter().try_for_each(|held| sys::keep_on_exec(held.as_fd()))?;
                sys::duplicate_as_standard(errors.as_fd(), 2)?;
                let mut command = Command::new(bubblewrap);
                command.env_clear().current_dir("/");
                command.arg("--args").arg(arguments.as_raw_fd().to_string()).arg("--").arg(program);
                command.args([HELPER_ARGUMENT, INNER]);
                command.args([memo.as_raw_fd().to_string(), status.as_raw_fd().to_string()]);
                Ok(command.exec())
            })();
            let error = started.unwrap_or_else(|error| error);
            format!("{} could not be started: {error}", bubblewrap.display())
        }
    }
}

/// What bubblewrap is started with.
struct Prepared {
    /// Its arguments, each with a NUL behind it.
    arguments: Vec<u8>,
    /// The helper's path inside.
    program: PathBuf,
    /// What is mounted by handle, git metadata above all.
    held: Vec<File>,
}

/// Makes the overlays and says what is to be mounted.
fn prepare(helper: &Path, inner: &mut Inner) -> Result<Prepared, String> {
    let mut made = Made {
        tree: inner.places.workspace.clone(),
        caches: std::collections::BTreeMap::new(),
        temporary: inner.places.private.join("tmp"),
        home: inner.places.private.join("home"),
        helper: helper.to_owned(),
    };
    if inner.form.overlay {
        let (user, group) = sys::effective_ids();
        sys::unshare_mounts(inner.form.user_namespace)
            .map_err(|error| format!("no mount namespace: {error}"))?;
        if inner.form.user_namespace {
            map_ids(user, group)?;
        }
        sys::keep_mounts_private().map_err(|error| format!("mounts cannot be kept private: {error}"))?;
        let Inner { policy, places, form, .. } = &*inner;
        let memory = policy.limits.memory / 2;
        let overlays = Overlays::new(&places.private, form.user_namespace, memory, policy.access);
        if inner.policy.access == Access::ReadOnly {
            made.tree = overlays.mount("tree", &inner.places.workspace)?;
        }
        for spot in &inner.places.caches {
            // A cache without a layer of its own is still a cache that can be read.
            if let Ok(at) = overlays.mount_cache(&spot.path) {
                made.caches.insert(spot.path.clone(), at);
            }
        }
    } else if inner.policy.access == Access::ReadOnly {
        made.tree = inner.places.private.join("copy");
    }
    inner.layered = made.caches.keys().cloned().collect();
    let mut mounts = plan(&inner.places, inner.policy.access, &made);
    let held = git::hold(&mut mounts, &inner.places, inner.policy.access, &made.tree)?;
    clear_ways(&mounts, &inner.places, &made)
        .map_err(|error| format!("places for mounts cannot be made: {error}"))?;
    let mut arguments: Vec<OsString> = Vec::new();
    arguments.extend(namespaces(inner).into_iter().map(OsString::from));
    arguments.extend(words(&mounts, inner.form.own_proc, inner.policy.limits.memory / 4));
    let program = if inner.places.run { PathBuf::from(HELPER) } else { helper.to_owned() };
    let mut bytes = Vec::new();
    for argument in &arguments {
        if argument.as_bytes().contains(&0) {
            return Err("a path contains a NUL byte".to_owned());
        }
        bytes.extend_from_slice(argument.as_bytes());
        bytes.push(0);
    }
    Ok(Prepared { arguments: bytes, program, held })
}

/// Mounts into the private directories stand where commands of an earlier shell may have left links, which
/// must not lead the making of mount points out of there.
pub(super) fn clear_ways(mounts: &[Mount], places: &Places, made: &Made) -> io::Result<()> {
    let private = places
        .temporary
        .iter()
        .map(|at| (at, &made.temporary))
        .chain(places.home.iter().map(|at| (at, &made.home)));
    for (root, from) in private {
        for mount in mounts {
            match mount.at().strip_prefix(root) {
                Ok(rest) if !rest.as_os_str().is_empty() => beneath::clear(from, rest)?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn namespaces(inner: &Inner) -> Vec<&'static str> {
    let mut words =
        vec!["--die-with-parent", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--chdir", "/"];
    if inner.form.own_proc {
        words.extend(["--as-pid-1", "--unshare-pid"]);
    }
    if inner.policy.network != Network::On {
        words.push("--unshare-net");
    }
    if inner.form.user_namespace {
        words.push("--unshare-user");
    }
    if inner.form.no_more_users {
        words.push("--disable-userns");
    }
    words.extend(["--cap-drop", "ALL"]);
    let kept = [
        (libc_cap::CHOWN, "CAP_CHOWN"),
        (libc_cap::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
        (libc_cap::FOWNER, "CAP_FOWNER"),
    ];
    for (number, name) in kept {
        if inner.keep_capabilities & (1 << number) != 0 {
            words.extend(["--cap-add", name]);
        }
    }
    words
}

/// Root keeps the rights over owners only where its tree belongs to another user.
pub(super) fn capabilities(places: &Places) -> u64 {
    let (user, _) = sys::effective_ids();
    let foreign = places.workspace.metadata().is_ok_and(|top| top.uid() != user);
    if user == 0 && foreign { OWNER_CAPABILITIES } else { 0 }
}

/// Begins inside: takes over what [`start_namespaces`] left, and says that it stands.
pub(crate) fn read_inner() -> Result<Inner, String> {
    let number = |index: usize| {
        let argument = std::env::args_os().nth(index);
        argument.and_then(|argument| argument.to_str()?.parse::<i32>().ok()).filter(|number| *number > 4)
    };
    let (memo, status) = number(3).zip(number(4)).ok_or("the helper was not started by itself")?;
    let taken = |number| sys::inherited(number).map_err(|error| format!("a descriptor is missing: {error}"));
    let memo = taken(memo)?;
    let status = taken(status)?;
    let mut text = Vec::new();
    let mut memo = File::from(memo);
    memo.rewind()
        .and_then(|()| memo.read_to_end(&mut text))
        .map_err(|error| format!("the memo cannot be read: {error}"))?;
    let inner: Inner =
        serde_json::from_slice(&text).map_err(|error| format!("the memo is not valid: {error}"))?;
    if inner.form.own_proc && std::process::id() != 1 {
        return Err("the pid namespace has another init".to_owned());
    }
    File::from(status).write_all(COMPLETE).map_err(|error| format!("the outer helper is gone: {error}"))?;
    Ok(inner)
}

/// The same for the set without namespaces: the copy is made, and nothing is mounted.
pub(crate) fn enter_landlock(
    Confine { policy, home, .. }: Confine,
    shell: Option<ShellSetup>,
) -> Result<Inner, String> {
    let mut places = Places::look(&policy, home, sys::effective_ids().0 == 0)?;
    if matches!(policy.network, Network::Hosts(_)) {
        return Err("a list of allowed hosts needs namespaces".to_owned());
    }
    make_private(&places)?;
    places.own_git = own_git::make(&policy, &places)?;
    link_home(&places).map_err(|error| format!("the private home cannot be made: {error}"))?;
    let tree = if policy.access == Access::ReadOnly {
        copy_tree(&policy, &places)?
    } else {
        places.workspace.clone()
    };
    Ok(Inner {
        set: LayerSet::Landlock,
        tree,
        layered: Vec::new(),
        keep_capabilities: capabilities(&places),
        form: Form::default(),
        policy,
        places,
        shell,
    })
}

fn copy_tree(policy: &Policy, places: &Places) -> Result<PathBuf, String> {
    let to = places.private.join("copy");
    let cap = CopyCap { files: COPY_FILES, bytes: policy.limits.file_size.saturating_mul(2) };
    let Policy { hidden, readable, masked, .. } = policy.clone();
    let sight = Sight::LikeCommands(Unseen { hidden, readable, masked, ..Unseen::default() });
    copy::make(&places.workspace, &to, cap, &sight).map_err(|error| error.to_string())?;
    // What is hidden in the workspace must not be found in its copy.
    for spot in places.hidden.iter().chain(&places.masked) {
        if let Ok(rest) = spot.path.strip_prefix(&places.workspace) {
            beneath::remove(&to, rest)
                .map_err(|error| format!("{} cannot be left out of the copy: {error}", rest.display()))?;
        }
    }
    Ok(to)
}

/// A copy that will stand at the workspace's own path cannot point to the metadata that stood there; those
/// are mounted.
fn copy_for_mount(inner: &Inner) -> Result<(), String> {
    let git = copy_tree(&inner.policy, &inner.places)?.join(".git");
    if inner.places.workspace.join(".git").is_dir() && git.is_file() {
        std::fs::remove_file(&git)
            .and_then(|()| std::fs::create_dir(&git))
            .map_err(|error| format!("{}: {error}", git.display()))?;
    }
    Ok(())
}

pub(super) fn make_private(places: &Places) -> Result<(), String> {
    for name in ["tmp", "home"] {
        let at = places.private.join(name);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&at);
        made.map_err(|error| format!("{} cannot be made: {error}", at.display()))?;
    }
    let given = places.home.as_deref().and_then(gitconfig::reduced);
    let put = given.map_or(Ok(()), |text| beneath::put(&places.private.join("home"), ".gitconfig", &text));
    put.map_err(|error| format!("settings for git cannot be made: {error}"))
}

/// Where nothing can be mounted, what is allowed of the home directory is linked into the private one.
fn link_home(places: &Places) -> io::Result<()> {
    let Some(home) = &places.home else { return Ok(()) };
    for spot in places.readable.iter().chain(&places.caches) {
        if let Ok(rest) = spot.path.strip_prefix(home) {
            beneath::link(&places.private.join("home"), rest, &spot.path)?;
        }
    }
    Ok(())
}

pub(super) fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(sys::memory_file()?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// A path as the kernel takes it.
pub(crate) fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path contains a NUL byte".to_owned())
}
