//! Under which policy an agent's commands and file tools work: what the agent's spec says, in the terms of the sandbox.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use convoke_kernel::{AgentSpec, Network, Sandbox};
use convoke_sandbox::{Access, LayerSet, Limits, Policy, Sight, Unseen};

/// What the machine and the person's surroundings give to hold agents with.
#[derive(Debug, Clone)]
pub struct Confine {
    /// The layers that hold. Without any, agents whose spec wants them held get no command at all.
    pub set: Option<LayerSet>,
    /// What must be unreadable: the home directory, the journal, our state and settings.
    pub hidden: Vec<PathBuf>,
    /// What may be read although it is hidden.
    pub readable: Vec<PathBuf>,
    /// Toolchain directories that are hidden: readable, with a private writable layer.
    pub caches: Vec<PathBuf>,
    /// Credentials within them.
    pub masked: Vec<PathBuf>,
    /// What one command may use.
    pub limits: Limits,
    /// Where the private directories of agents are made.
    pub private: PathBuf,
}

impl Confine {
    /// Nothing can be held here: for tests, and for people who said so.
    pub fn nothing(private: PathBuf) -> Self {
        let none = Vec::new;
        let limits = Limits::default();
        Self { set: None, hidden: none(), readable: none(), caches: none(), masked: none(), limits, private }
    }

    /// The policy of an agent, and the layers that hold it. It makes the agent's private directory.
    pub(crate) fn policy(
        &self,
        agent: &str,
        spec: &AgentSpec,
        outputs: &Path,
    ) -> Result<(Policy, Option<LayerSet>), String> {
        let workspace = PathBuf::from(&spec.dir);
        let access = access(spec.confinement.sandbox);
        if access == Access::Off {
            return Ok((Policy::off(workspace), None));
        }
        let Some(set) = self.set else {
            return Err("this agent's commands have to be confined, and nothing here can do that".to_owned());
        };
        let private = self.private_of(agent);
        let made = make_private(&private).and_then(|()| std::fs::create_dir_all(outputs));
        made.map_err(|error| format!("{} cannot be made: {error}", private.display()))?;
        let mut readable = self.readable.clone();
        readable.push(outputs.to_owned());
        readable.extend(repository(&workspace, &self.hidden));
        let policy = Policy {
            access,
            network: network(&spec.confinement.network),
            limits: self.limits,
            workspace,
            private,
            hidden: self.hidden.clone(),
            readable,
            caches: self.caches.clone(),
            masked: self.masked.clone(),
        };
        Ok((policy, Some(set)))
    }

    /// How much git sees when it is asked about a directory: what commands there see, or everything where nothing is held.
    pub fn sight(&self, dir: &Path) -> Sight {
        if self.set.is_none() {
            return Sight::Everything;
        }
        let shown = [self.readable.clone(), self.caches.clone(), repository(dir, &self.hidden)];
        Sight::LikeCommands(Unseen {
            hidden: self.hidden.clone(),
            readable: shown.concat(),
            masked: self.masked.clone(),
        })
    }

    /// Where an agent's throwaway copy and temporary files are.
    pub(crate) fn private_of(&self, agent: &str) -> PathBuf {
        self.private.join(agent)
    }
}

/// What commands may write, in the sandbox's terms.
pub fn access(sandbox: Sandbox) -> Access {
    match sandbox {
        Sandbox::ReadOnly => Access::ReadOnly,
        Sandbox::Workspace => Access::Workspace,
        Sandbox::Off => Access::Off,
    }
}

/// What commands may reach, in the sandbox's terms.
pub fn network(network: &Network) -> convoke_sandbox::Network {
    match network {
        Network::Off => convoke_sandbox::Network::Off,
        Network::Hosts(hosts) => convoke_sandbox::Network::Hosts(hosts.clone()),
        Network::On => convoke_sandbox::Network::On,
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The git metadata that a directory belongs to, as far as they lie outside of it: git in a subdirectory, in a worktree or in a
/// submodule reads what stands further up. What commands could have written is not believed: nothing is shown that does
/// not point back here by itself, and no repository of a whole hidden directory.
fn repository(dir: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(dir) = dir.canonicalize() else { return Vec::new() };
    let Some(top) = dir.ancestors().find(|place| place.join(".git").symlink_metadata().is_ok()) else {
        return Vec::new();
    };
    let git = top.join(".git");
    let is_plain = git.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let mut places = Vec::new();
    if is_plain && top != dir {
        places.push(git);
    } else if !is_plain {
        places.extend(pointed_to(&dir, top, &git));
    }
    let shows_too_much = |place: &PathBuf| {
        let within = |hidden: &PathBuf| hidden.canonicalize().unwrap_or_else(|_| hidden.clone()).starts_with(place);
        hidden.iter().any(within) || hidden.iter().any(|hidden| Path::new(hidden) == top)
    };
    if places.iter().any(shows_too_much) { Vec::new() } else { places }
}

/// Where a `.git` file leads: a worktree's own metadata and those it shares, or a submodule's.
fn pointed_to(dir: &Path, top: &Path, git: &Path) -> Vec<PathBuf> {
    let read = |file: PathBuf| std::fs::read_to_string(file).ok();
    let own = read(git.to_owned()).and_then(|text| Some(top.join(text.trim().strip_prefix("gitdir:")?.trim())));
    let Some(own) = own.and_then(|own| own.canonicalize().ok()).filter(|own| !own.starts_with(dir)) else {
        return Vec::new();
    };
    // A worktree's metadata name the `.git` file that names them; nobody in here could have written that.
    let back = read(own.join("gitdir")).and_then(|text| Path::new(text.trim()).canonicalize().ok());
    let shared = own.parent().filter(|parent| parent.ends_with("worktrees")).and_then(Path::parent);
    if let (Some(back), Some(shared)) = (back, shared)
        && back == git
    {
        return vec![shared.to_owned()];
    }
    let above = dir.ancestors().skip(1).any(|above| own.starts_with(above.join(".git/modules")));
    if above { vec![own] } else { Vec::new() }
}

/// Removes an agent's private directory. What cannot be removed is left for the next prune.
pub(crate) async fn remove_private(path: PathBuf) {
    let _ = tokio::task::spawn_blocking(move || convoke_sandbox::remove_private(&path)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(dirs: &[&Path]) {
        dirs.iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
    }

    #[test]
    fn git_in_a_subdirectory_a_worktree_or_a_submodule_can_read_its_metadata() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (top, sub, tree) = (place.join("r"), place.join("r/src"), place.join("w"));
        let (own, module) = (top.join(".git/worktrees/w"), top.join(".git/modules/m"));
        make(&[&sub, &tree, &own, &module, &top.join("m")]);
        assert_eq!(repository(&top, &[]), Vec::<PathBuf>::new());
        assert_eq!(repository(&sub, &[]), [top.join(".git")], "and nothing else of what stands above");
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        std::fs::write(own.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        assert_eq!(repository(&tree, &[]), [top.join(".git")]);
        std::fs::write(top.join("m/.git"), "gitdir: ../.git/modules/m\n").unwrap();
        assert_eq!(repository(&top.join("m"), &[]), [module]);
    }

    #[test]
    fn w88_a_pointer_that_a_command_wrote_opens_nothing() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (home, work) = (place.join("home"), place.join("home/work"));
        make(&[&work.join("fake/worktrees/x"), &home.join("state")]);
        let hidden = [home.clone(), home.join("state")];
        let check = |pointer: &Path| {
            std::fs::write(work.join(".git"), format!("gitdir: {}\n", pointer.display())).unwrap();
            assert_eq!(repository(&work, &hidden), Vec::<PathBuf>::new(), "{}", pointer.display());
        };
        check(&home);
        check(&home.join("state"));
        check(Path::new("../state"));
        let own = work.join("fake/worktrees/x");
        std::fs::write(own.join("gitdir"), format!("{}\n", work.join(".git").display())).unwrap();
        std::fs::write(own.join("commondir"), format!("{}\n", home.display())).unwrap();
        check(&own);
    }

    #[test]
    fn a_home_directory_under_git_is_not_shown() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        make(&[&home.join(".git"), &home.join("work")]);
        assert_eq!(repository(&home.join("work"), std::slice::from_ref(&home)), Vec::<PathBuf>::new());
    }
}
