//! Finds out what the machine offers by really starting each thing once. It decides nothing: see
//! [`crate::hold`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::cage::Cage;
use crate::cgroup;
use crate::confine::find_bubblewrap;
use crate::error::Error;
use crate::helper::{find_bash, sees_depth};
use crate::layers::{Layer, Layers};
use crate::link::{Confined, Link, PATIENCE, patient, unexpected};
use crate::policy::{Access, LayerSet, Limits, Network, Policy};
use crate::program::program_version;
use crate::shell::HelperPath;
use crate::sys;
use crate::wire::{Confine, FromHelper, HoldChoice, ProcessHold, ShellSetup, ToHelper};

/// Tries every layer once, without leaving anything behind. `path` is where bubblewrap is looked for besides
/// the usual places, but never in the workspace, which commands can write.
pub async fn probe(helper: &HelperPath, path: Option<&OsStr>, workspace: &Path) -> Result<Layers, Error> {
    try_all(helper, path, workspace).await.map(|found| found.layers)
}

/// What was found when everything was tried.
pub(crate) struct Found {
    pub(crate) layers: Layers,
    /// Whether what is missing was refused; else a helper came to nothing, which need not happen again.
    pub(crate) lasting: bool,
}

/// What is found out without a process, and so at every start: control groups, and who this is.
pub(crate) fn look_without_processes(layers: Layers) -> Layers {
    cgroup::sweep();
    let cgroup = cgroup::offered();
    Layers {
        cgroup: Layer { works: cgroup.any_limit(), detail: cgroup.to_string() },
        cgroup_whole: (cgroup.v2_memory.is_ok() || cgroup.v1_memory.is_ok())
            && (cgroup.v2_pids.is_ok() || cgroup.v1_pids.is_ok()),
        root: sys::effective_ids().0 == 0,
        shell_hidden: !sees_depth(),
        ..layers
    }
}

/// The same as [`probe`], and whether it would be found again.
pub(crate) async fn try_all(
    helper: &HelperPath,
    path: Option<&OsStr>,
    workspace: &Path,
) -> Result<Found, Error> {
    let bubblewrap = find_bubblewrap(path, &[workspace]);
    let place = ProbeDir::make()?;
    let (version, namespaces, landlock) = tokio::join!(
        version(bubblewrap.as_deref()),
        attempt(helper, path, workspace, &place, LayerSet::Namespaces),
        attempt(helper, path, workspace, &place, LayerSet::Landlock),
    );
    let looked = tokio::task::spawn_blocking(|| look_without_processes(Layers::default())).await;
    let mut layers = looked.map_err(|error| Error::System {
        doing: "looking at control groups",
        source: std::io::Error::other(error),
    })?;
    let refused = |error: &Error| matches!(error, Error::HelperRefused { .. });
    let lasting =
        namespaces.as_ref().err().is_none_or(refused) && landlock.as_ref().err().is_none_or(refused);
    match namespaces {
        Ok((_, confined, bash)) => {
            layers.bash_in_namespaces = bash;
            let at = bubblewrap.map_or_else(String::new, |path| format!(" at {}", path.display()));
            let user = if confined.form.user_namespace { ", in a user namespace" } else { "" };
            let process = match confined.form.own_proc {
                true => String::new(),
                false => format!(", without a pid namespace ({})", confined.form.failures.join("; ")),
            };
            layers.bubblewrap = Layer::works(format!("{version}{at}{user}{process}"));
            layers.own_proc = confined.form.own_proc;
            layers.overlay = match confined.form.overlay {
                true => Layer::works("copies and caches have layers of their own"),
                false => Layer::missing(confined.form.failures.join("; ")),
            };
        }
        Err(error) => {
            layers.bubblewrap = Layer::missing(because(&error));
            layers.overlay = Layer::missing("needs bubblewrap");
        }
    }
    match (landlock, sys::landlock_abi()) {
        (Ok((hold, _, bash)), Ok(abi)) => {
            layers.bash_in_landlock = bash;
            layers.landlock = Layer::works(format!("version {abi}"));
            layers.landlock_abi = abi;
            layers.seccomp = Layer::works("filters hold");
            layers.hold = match hold {
                ProcessHold::PidNamespace => Layer::works("pid namespace"),
                ProcessHold::Subreaper { why } => Layer::missing(why),
            };
        }
        (Err(error), Ok(abi)) => {
            layers.landlock = Layer::works(format!("version {abi}"));
            layers.landlock_abi = abi;
            layers.seccomp = Layer::missing(because(&error));
            layers.hold = Layer::missing("not tried");
        }
        (_, Err(error)) => {
            layers.landlock = Layer::missing(format!("the kernel says: {error}"));
            layers.seccomp = Layer::missing("not tried without Landlock");
            layers.hold = Layer::missing("not tried");
        }
    }
    Ok(Found { layers, lasting })
}

/// Whether there is a bash that this user may execute, or why not. `path` is where it is looked for. It is
/// not started: where nothing is to be held, nothing is tried.
pub fn look_for_bash(path: Option<&OsStr>) -> Result<(), String> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let bash = find_bash(path).ok_or("bash was not found")?;
    accessat(CWD, &bash, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|errno| format!("{}: {}", bash.display(), std::io::Error::from(errno)))
}

fn environment(path: Option<&OsStr>) -> BTreeMap<String, String> {
    path.and_then(OsStr::to_str).map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect()
}

fn because(error: &Error) -> String {
    match error {
        Error::HelperRefused { message } => message.clone(),
        other => other.to_string(),
    }
}

async fn version(bubblewrap: Option<&Path>) -> String {
    let Some(program) = bubblewrap else { return String::new() };
    program_version(program).await.unwrap_or_default()
}

async fn attempt(
    helper: &HelperPath,
    path: Option<&OsStr>,
    workspace: &Path,
    place: &ProbeDir,
    set: LayerSet,
) -> Result<(ProcessHold, Confined, Option<String>), Error> {
    let private = place.0.join(if set == LayerSet::Namespaces { "n" } else { "l" });
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&private)
        .map_err(Error::system("making a directory for the probe"))?;
    let policy = Policy {
        access: Access::ReadOnly,
        network: Network::Off,
        limits: Limits::default(),
        workspace: place.0.join("tree"),
        private,
        hidden: Vec::new(),
        readable: Vec::new(),
        caches: Vec::new(),
        masked: Vec::new(),
        own_git: None,
    };
    let mut env = environment(path);
    let confine =
        Confine { set, policy, home: None, distrusted: vec![workspace.to_owned()], guarded: Vec::new() };
    Cage::adapt(&mut env, &confine);
    let mut link = Link::open(helper, &env, Stdio::null())?;
    let cwd = place.0.join("tree");
    // With a shell, as every agent has it: a bash that cannot be run is found out now, and not by the first
    // command of each.
    let shell = ShellSetup { fallback_cwd: cwd.clone(), cwd, env, traced: false };
    let (hold, confined) =
        patient(PATIENCE, link.begin(HoldChoice::Best, Some(shell), Some(confine))).await?;
    let confined = confined.ok_or(Error::Protocol { problem: "the helper is not confined".to_owned() })?;
    let bash = patient(PATIENCE, try_bash(&mut link)).await.err().map(|error| because(&error));
    link.close().await?;
    Ok((hold, confined, bash))
}

/// The code that a bash is asked for; one that ends by itself does not happen to give it.
const ASKED: i32 = 42;

/// Whether bash runs a command.
async fn try_bash(link: &mut Link) -> Result<(), Error> {
    match link.hear().await? {
        FromHelper::Ready { .. } => {}
        other => return Err(unexpected(&other)),
    }
    link.say(&ToHelper::Run { id: 1, command: format!("(exit {ASKED})") }).await?;
    match link.hear().await? {
        FromHelper::Finished { code: Some(ASKED), replaced: None, .. } => Ok(()),
        FromHelper::Finished { replaced, .. } => {
            let message = replaced.unwrap_or_else(|| "it did not run a command to its end".to_owned());
            Err(Error::HelperRefused { message })
        }
        other => Err(unexpected(&other)),
    }
}

/// A directory with a small tree, gone when this is dropped.
struct ProbeDir(PathBuf);

impl ProbeDir {
    fn make() -> Result<Self, Error> {
        let making = Error::system("making a directory for the probe");
        let token = sys::random_token().map_err(Error::system("asking for random bytes"))?;
        let place = std::env::temp_dir().join(format!("convoke-probe-{token}"));
        let make = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
        make(&place).and_then(|()| make(&place.join("tree"))).map_err(making)?;
        Ok(Self(place))
    }
}

impl Drop for ProbeDir {
    fn drop(&mut self) {
        crate::remove::remove_private(&self.0);
    }
}
