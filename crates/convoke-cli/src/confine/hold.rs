//! Finds out what holds commands on this machine and makes what a runtime needs for it. What cannot be held
//! is told here, before anything is spent or written down.

use std::ffi::OsStr;
use std::path::Path;

use convoke_kernel::{Confinement, Network, Sandbox};
use convoke_runtime::{Confine, HelperPath, UserDirs, access, lies_inside, listed_home};
use convoke_sandbox::{LayerSet, Layers, ProbeMemory, Promise, Sight};

use super::guard::check_places;
use crate::failure::Failure;
use crate::paths;
use crate::settings::{Settings, Wanted};

/// What holds the commands of a session.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// For the runtime.
    pub(crate) confine: Confine,
    /// For the record.
    pub(crate) confinement: Confinement,
}

/// Whether what was found out at an earlier start counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probing {
    /// Where it was true for the same machine, user and programs.
    Remembered,
    /// Never: each layer is tried.
    Anew,
}

/// What the machine offers for commands that work in a directory, and where that is remembered.
pub(crate) async fn layers(
    settings: &Settings,
    dir: &Path,
    probing: Probing,
) -> Result<(Layers, Option<ProbeMemory>), Failure> {
    let helper = HelperPath::new(paths::own_executable()?);
    let path = settings.command_env.get("PATH").map(OsStr::new);
    // Nowhere that commands could write.
    let memory = (!lies_inside(&settings.state_dir, dir)).then(|| ProbeMemory::below(&settings.state_dir));
    let found = match (&memory, probing) {
        (Some(memory), Probing::Remembered) => memory.layers(&helper, path, dir).await,
        (Some(memory), Probing::Anew) => memory.anew(&helper, path, dir).await,
        (None, _) => convoke_sandbox::probe(&helper, path, dir).await,
    };
    found.map(|layers| (layers, memory)).map_err(|error| {
        Failure::usage(format!("nothing can be found out about what confines commands here: {error}"))
            .hint("`convoke doctor` looks closer; to run commands with all your rights, say --sandbox off")
    })
}

/// Holds what a new session wants in a directory, or says why that cannot be.
pub(crate) async fn hold(settings: &Settings, dir: &Path) -> Result<Held, Failure> {
    let Wanted { sandbox, network, .. } = &settings.confine;
    held(settings, dir, *sandbox, network).await
}

/// Holds what a session was started with again, by what this machine offers.
pub(crate) async fn hold_again(
    settings: &Settings,
    dir: &Path,
    recorded: &Confinement,
) -> Result<Held, Failure> {
    same(recorded, &settings.confine)?;
    held(settings, dir, recorded.sandbox, &recorded.network).await
}

async fn held(settings: &Settings, dir: &Path, sandbox: Sandbox, network: &Network) -> Result<Held, Failure> {
    // What is recorded, told to the model and handed to the helper is text.
    if dir.to_str().is_none() {
        return Err(Failure::usage(format!("the name of the directory {} is not UTF-8", dir.display()))
            .hint("rename the part of its path that is not, and start again; nothing was started or spent"));
    }
    check_places(settings, dir)?;
    let (layers, memory) = match sandbox {
        Sandbox::Off => (unheld(settings)?, None),
        _ => layers(settings, dir, Probing::Remembered).await?,
    };
    let found = convoke_sandbox::hold(
        &layers,
        access(sandbox),
        &convoke_runtime::network(network),
        settings.confine.at_most,
    );
    let found = found.map_err(|cannot| {
        Failure::usage(format!("commands cannot be confined here: {}", cannot.why))
            .hint(cannot.remedy)
            .hint("`convoke doctor` lists every layer and what to do about it; nothing was started or spent")
    })?;
    let confinement =
        Confinement { sandbox, network: network.clone(), held_by: found.layers, weaker: found.weaker };
    let promise = Promise { own_processes: found.own_processes, memory };
    let confine = Confine { set: found.set, promise, ..surroundings(settings, dir) };
    Ok(Held { confine, confinement })
}

/// Nothing is tried where nothing is to be held; that there is a bash to work with is only looked for.
fn unheld(settings: &Settings) -> Result<Layers, Failure> {
    let path = settings.command_env.get("PATH").map(OsStr::new);
    convoke_sandbox::look_for_bash(path).map_err(|why| {
        Failure::usage(format!("bash does not run here ({why})"))
            .hint("agents work with bash: see that it is installed and that you may execute it")
            .hint("nothing was started or spent")
    })?;
    Ok(Layers::default())
}

/// A session goes on as it was begun: what its agents were told about their surroundings stays true. That
/// nothing is held is not inherited, though: each resume has to say it again.
fn same(recorded: &Confinement, now: &Wanted) -> Result<(), Failure> {
    let anew = "a session keeps what it was started with; to change it, give the task anew with --fresh";
    if now.sandbox_by_flag && now.sandbox != recorded.sandbox {
        let was = recorded.sandbox.name();
        let is = now.sandbox.name();
        return Err(
            Failure::usage(format!("this session was started with --sandbox {was}, not {is}")).hint(anew)
        );
    }
    if now.network_by_flag && now.network != recorded.network {
        return Err(Failure::usage("this session was started with another choice of --network").hint(anew));
    }
    if recorded.sandbox == Sandbox::Off && !now.sandbox_by_flag {
        return Err(Failure::usage(
            "nothing confines the commands of this session: it was started with --sandbox \
            off, or before there was a sandbox",
        )
        .hint("to go on like that, with all your rights, say --sandbox off again")
        .hint("or give the task anew: what is done is taken up where it can be"));
    }
    Ok(())
}

/// How much git sees of a directory and around it: no more than commands there do. Where a person said that
/// nothing is to be held, and where the kernel could hold nothing, so that every session that is to be held
/// is refused, it sees what the person does.
pub(crate) fn sight(settings: &Settings, dir: &Path) -> Sight {
    if settings.confine.sandbox == Sandbox::Off || !convoke_sandbox::can_confine() {
        return Sight::Everything;
    }
    Confine { set: Some(LayerSet::Landlock), ..surroundings(settings, dir) }.sight(dir)
}

/// What is hidden and shown around this session.
fn surroundings(settings: &Settings, dir: &Path) -> Confine {
    // It is shown where it would be hidden. That it cannot be found was told before.
    let executable = paths::own_executable().unwrap_or_default();
    let journal = settings.journal.file();
    let around = UserDirs {
        env: settings.surroundings.variables(),
        listed_home: listed_home(),
        dir,
        state: &settings.state_dir,
        config: settings.files.first().and_then(|file| file.path.parent()),
        journal,
        executable: &executable,
    };
    around.confine(settings.command_env.get("PATH").map(String::as_str), settings.private_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        recorded: (Sandbox, Network),
        flag: Option<Sandbox>,
        network: Option<Network>,
        expected: Option<&str>,
    ) {
        let recorded = Confinement { sandbox: recorded.0, network: recorded.1, ..Confinement::default() };
        let now = Wanted {
            sandbox: flag.unwrap_or(Sandbox::Workspace),
            sandbox_by_flag: flag.is_some(),
            network_by_flag: network.is_some(),
            network: network.unwrap_or(Network::Off),
            at_most: None,
        };
        let said = same(&recorded, &now).err().map(|failure| failure.message);
        match expected {
            None => assert_eq!(said, None),
            Some(part) => assert!(said.as_deref().is_some_and(|said| said.contains(part)), "{said:?}"),
        }
    }

    #[test]
    fn a_run_goes_on_under_its_own_policy_and_off_is_said_each_time() {
        use Sandbox::{Off, ReadOnly, Workspace};
        check((ReadOnly, Network::Off), None, None, None);
        check((Workspace, Network::On), None, None, None);
        check((Workspace, Network::Off), Some(Workspace), None, None);
        check((Workspace, Network::Off), Some(Off), None, Some("--sandbox workspace, not off"));
        check((Workspace, Network::Off), Some(ReadOnly), None, Some("--sandbox workspace, not read-only"));
        check((ReadOnly, Network::Off), None, Some(Network::On), Some("another choice of --network"));
        check((Off, Network::On), None, None, Some("nothing confines"));
        check((Off, Network::On), Some(Off), None, None);
    }
}
