//! Under which policy an agent's commands and file tools work: what the agent's spec says, in the terms of the sandbox.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use convoke_kernel::{AgentSpec, Network, Sandbox};
use convoke_sandbox::{Access, LayerSet, Limits, Policy};

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
        let access = match spec.confinement.sandbox {
            Sandbox::Off => return Ok((Policy::off(workspace), None)),
            Sandbox::ReadOnly => Access::ReadOnly,
            Sandbox::Workspace => Access::Workspace,
        };
        let Some(set) = self.set else {
            return Err("this agent's commands have to be confined, and nothing here can do that".to_owned());
        };
        let private = self.private_of(agent);
        let made = make_private(&private).and_then(|()| std::fs::create_dir_all(outputs));
        made.map_err(|error| format!("{} cannot be made: {error}", private.display()))?;
        let mut readable = self.readable.clone();
        readable.push(outputs.to_owned());
        readable.extend(repository(&workspace));
        let policy = Policy {
            access,
            network: match &spec.confinement.network {
                Network::Off => convoke_sandbox::Network::Off,
                Network::Hosts(hosts) => convoke_sandbox::Network::Hosts(hosts.clone()),
                Network::On => convoke_sandbox::Network::On,
            },
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

    /// Where an agent's throwaway copy and temporary files are.
    pub(crate) fn private_of(&self, agent: &str) -> PathBuf {
        self.private.join(agent)
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The repository that a directory belongs to, as far as it lies outside of it: git in a subdirectory, or in a worktree,
/// reads what stands further up.
fn repository(dir: &Path) -> Vec<PathBuf> {
    let Some(top) = dir.ancestors().find(|place| place.join(".git").symlink_metadata().is_ok()) else {
        return Vec::new();
    };
    let mut places = if top == dir { Vec::new() } else { vec![top.to_owned()] };
    // A worktree's `.git` is a file that names its own directory, and that names the one all worktrees share.
    let read = |file: PathBuf| std::fs::read_to_string(file).ok();
    if let Some(text) = read(top.join(".git"))
        && let Some(named) = text.trim().strip_prefix("gitdir:")
    {
        let own = top.join(named.trim());
        let shared = read(own.join("commondir")).map(|text| own.join(text.trim()));
        places.extend(shared);
        places.push(own);
    }
    places
}

/// Removes an agent's private directory. What cannot be removed is left for the next prune.
pub(crate) async fn remove_private(path: PathBuf) {
    let _ = tokio::task::spawn_blocking(move || convoke_sandbox::remove_private(&path)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_in_a_subdirectory_or_a_worktree_can_read_its_repository() {
        let place = tempfile::tempdir().unwrap();
        let (top, sub, tree) = (place.path().join("r"), place.path().join("r/src"), place.path().join("w"));
        for dir in [&sub, &tree, &top.join(".git/worktrees/w")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        assert_eq!(repository(&top), Vec::<PathBuf>::new());
        assert_eq!(repository(&sub), std::slice::from_ref(&top));
        let own = top.join(".git/worktrees/w");
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        std::fs::write(own.join("commondir"), "../..\n").unwrap();
        assert_eq!(repository(&tree), [own.join("../.."), own]);
    }
}
