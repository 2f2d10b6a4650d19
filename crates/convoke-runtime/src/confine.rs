//! Under which policy an agent's commands and file tools work: what the agent's spec says, in the terms of
//! the sandbox.

use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Kind, Links};
use convoke_kernel::{AgentSpec, Network, Sandbox};
use convoke_sandbox::{
    Access, LatePaths, LayerSet, Limits, OwnGit, Policy, Promise, Sight, Templates, Unseen,
};

/// What the machine and the person's surroundings give to hold agents with.
#[derive(Debug, Clone)]
pub struct Confine {
    /// The layers that hold. Without any, agents whose spec wants them held get no command at all.
    pub set: Option<LayerSet>,
    /// What was said of those layers, to which every shell is held.
    pub promise: Promise,
    /// What must be unreadable: the home directory, the journal, our state and settings.
    pub hidden: Vec<PathBuf>,
    /// What may be read although it is hidden.
    pub readable: Vec<PathBuf>,
    /// Toolchain directories that are hidden: readable, with a private writable layer.
    pub caches: Vec<PathBuf>,
    /// Credentials within them.
    pub masked: Vec<PathBuf>,
    /// Private files of the person elsewhere: looked for when the first command or git is confined.
    pub own_files: LatePaths,
    /// What one command may use.
    pub limits: Limits,
    /// Where the private directories of agents are made.
    pub private: PathBuf,
    /// From what the helpers of shells are forked; clones share them.
    pub templates: Templates,
}

impl Confine {
    /// Nothing can be held here: for tests, and for people who said so.
    pub fn nothing(private: PathBuf) -> Self {
        let none = Vec::new;
        let limits = Limits::default();
        let templates = Templates::default();
        Self {
            set: None,
            promise: Promise::default(),
            hidden: none(),
            readable: none(),
            caches: none(),
            masked: none(),
            own_files: LatePaths::default(),
            limits,
            private,
            templates,
        }
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
        let made = Dir::make_named(&private, None, 0o700).and_then(|_| Dir::make_named(outputs, None, 0o777));
        made.map_err(|error| format!("{} cannot be made: {}", private.display(), error.reason()))?;
        let mut readable = self.readable.clone();
        readable.push(outputs.to_owned());
        let shown = repository(&workspace, &self.hidden);
        let own_git = own_git(&workspace, &self.private).filter(|own| shown.contains(&own.common));
        readable.extend(shown);
        let policy = Policy {
            access,
            network: network(&spec.confinement.network),
            limits: self.limits,
            workspace,
            private,
            hidden: self.hidden.clone(),
            readable,
            caches: self.caches.clone(),
            masked: self.all_masked().cloned().collect(),
            own_git,
        };
        Ok((policy, Some(set)))
    }

    /// How much git sees when it is asked about a directory: what commands there see, or everything where
    /// nothing is held.
    pub fn sight(&self, dir: &Path) -> Sight {
        if self.set.is_none() {
            return Sight::Everything;
        }
        let shown = [self.readable.clone(), self.caches.clone(), repository(dir, &self.hidden)];
        Sight::LikeCommands(Unseen {
            hidden: self.hidden.clone(),
            readable: shown.concat(),
            masked: self.masked.clone(),
            found: self.own_files.clone(),
        })
    }

    /// What an agent's commands may not read within its directory, relative to it.
    pub(crate) fn hidden_in(&self, spec: &AgentSpec) -> Vec<PathBuf> {
        match spec.confinement.sandbox {
            Sandbox::Off => Vec::new(),
            _ => hidden_below(Path::new(&spec.dir), self.hidden.iter().chain(self.all_masked())),
        }
    }

    /// What is hidden even within something readable.
    fn all_masked(&self) -> impl Iterator<Item = &PathBuf> {
        self.masked.iter().chain(self.own_files.get())
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

/// Which of these paths lie in a directory, relative to it.
pub(crate) fn hidden_below<'a>(dir: &Path, hidden: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let dir = real(dir);
    let below = hidden.filter_map(|path| real(path).strip_prefix(&dir).ok().map(PathBuf::from));
    below.filter(|path| !path.as_os_str().is_empty()).collect()
}

/// The git metadata that a directory belongs to, as far as they lie outside of it: git in a subdirectory, in
/// a worktree or in a submodule reads what stands further up. What commands could have written is not
/// believed: nothing is shown that does not point back here by itself, and no repository of a whole hidden
/// directory.
fn repository(dir: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(dir) = dir.canonicalize() else { return Vec::new() };
    let Ok(root) = Dir::open(Path::new("/")) else { return Vec::new() };
    let kind = |place: &Path| root.kind(&place.strip_prefix("/").ok()?.join(".git")).ok()?;
    let Some((top, kind)) = dir.ancestors().find_map(|place| Some((place, kind(place)?))) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    match kind {
        Kind::Directory if top != dir => places.push(top.join(".git")),
        Kind::File => places.extend(pointed_to(&dir, top)),
        _ => {}
    }
    let shows_too_much = |place: &PathBuf| {
        let within =
            |hidden: &PathBuf| hidden.canonicalize().unwrap_or_else(|_| hidden.clone()).starts_with(place);
        hidden.iter().any(within) || hidden.iter().any(|hidden| Path::new(hidden) == top)
    };
    if places.iter().any(shows_too_much) { Vec::new() } else { places }
}

/// More than any pointer of git's.
const LONGEST: u64 = 64 << 10;

/// What a git dir of the agent's own begins with, if the directory is a worktree of Convoke's, whose place
/// and name only the host can have given it: `<state>/worktrees/<run>/<agent>/tree`, with its metadata in the
/// repository. Elsewhere git cannot write.
fn own_git(dir: &Path, private: &Path) -> Option<OwnGit> {
    let dir = dir.canonicalize().ok()?;
    let state = private.parent()?.canonicalize().ok()?;
    let mut parts = dir.strip_prefix(state.join("worktrees")).ok()?.iter();
    let run = parts.next()?.to_str()?;
    let agent = parts.next()?.to_str()?;
    if parts.next()? != "tree" || parts.next().is_some() {
        return None;
    }
    let (admin, common) = linked(&dir, &dir)?;
    let is_its_own = admin.file_name()?.to_str()? == format!("convoke-{run}-{agent}");
    is_its_own.then(|| OwnGit { admin, common, branch: format!("convoke/{run}/{agent}") })
}

/// Where a `.git` file leads: to the metadata that a worktree shares, or to a submodule's.
fn pointed_to(dir: &Path, top: &Path) -> Vec<PathBuf> {
    if let Some((_, shared)) = linked(dir, top) {
        return vec![shared];
    }
    let Some(own) = pointer(dir, top) else { return Vec::new() };
    let above = dir.ancestors().skip(1).any(|above| own.starts_with(above.join(".git/modules")));
    if above { vec![own] } else { Vec::new() }
}

/// The metadata of a worktree, and those that it shares.
fn linked(dir: &Path, top: &Path) -> Option<(PathBuf, PathBuf)> {
    let own = pointer(dir, top)?;
    // A worktree's metadata name the `.git` file that names them; commands in the sandbox cannot write there.
    let back = Path::new(read(&own, "gitdir")?.trim()).canonicalize().ok()?;
    let shared =
        own.parent().filter(|parent| parent.ends_with("worktrees")).and_then(Path::parent)?.to_owned();
    (back == top.join(".git")).then_some((own, shared))
}

/// Where a `.git` file leads, if that is outside of the directory.
fn pointer(dir: &Path, top: &Path) -> Option<PathBuf> {
    let own = read(top, ".git").and_then(|text| Some(top.join(text.trim().strip_prefix("gitdir:")?.trim())));
    own.and_then(|own| own.canonicalize().ok()).filter(|own| !own.starts_with(dir))
}

fn read(dir: &Path, name: &str) -> Option<String> {
    let root = Dir::open(Path::new("/")).ok()?;
    let bytes = root.read(&dir.strip_prefix("/").ok()?.join(name), Links::Refused, LONGEST).ok()?;
    String::from_utf8(bytes).ok()
}

/// The same for an agent that has ended, but for commits that its tree may not hold.
pub(crate) async fn end_private(path: PathBuf) {
    let _ = tokio::task::spawn_blocking(move || convoke_sandbox::end_private(&path)).await;
}

/// What is said of commits that an agent left and that are in no file of its worktree, as the rest of a
/// sentence.
pub fn left_commits(private: &Path) -> String {
    convoke_sandbox::kept_git(private).map_or_else(String::new, |git| {
        let git = git.display();
        format!(
            "; a stash, or branches beside what it had checked out last, are kept in {git} until the run \
            is pruned"
        )
    })
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
        let top = place.join("r");
        let sub = place.join("r/src");
        let tree = place.join("w");
        let own = top.join(".git/worktrees/w");
        let module = top.join(".git/modules/m");
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
    fn only_a_worktree_of_convokes_gets_a_git_dir_of_its_own() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let private = place.join("state/private");
        let common = place.join("r/.git");
        let worktree = |tree: &Path, admin: &str| {
            let admin = common.join("worktrees").join(admin);
            make(&[&private, tree, &admin]);
            std::fs::write(tree.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
            std::fs::write(admin.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
            own_git(tree, &private)
        };
        let tree = place.join("state/worktrees/s_1/a_1/tree");
        let own = worktree(&tree, "convoke-s_1-a_1").unwrap();
        assert_eq!((own.branch.as_str(), &own.common), ("convoke/s_1/a_1", &common));
        assert_eq!(worktree(&tree, "convoke-s_1-a_2"), None, "metadata of another");
        assert_eq!(worktree(&place.join("state/worktrees/s_1/a_1/other"), "convoke-s_1-a_1"), None);
        assert_eq!(worktree(&place.join("mine"), "mine"), None, "a person's own");
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
    fn a_pointer_that_is_a_pipe_or_a_link_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let top = place.join("r");
        let tree = place.join("w");
        let own = top.join(".git/worktrees/w");
        make(&[&tree, &own]);
        assert!(std::process::Command::new("mkfifo").arg(tree.join(".git")).status().unwrap().success());
        assert_eq!(repository(&tree, &[]), Vec::<PathBuf>::new());
        std::fs::remove_file(tree.join(".git")).unwrap();
        std::fs::write(tree.join("pointer"), format!("gitdir: {}\n", own.display())).unwrap();
        std::fs::write(own.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        std::os::unix::fs::symlink("pointer", tree.join(".git")).unwrap();
        assert_eq!(repository(&tree, &[]), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_home_directory_under_git_is_not_shown() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        make(&[&home.join(".git"), &home.join("work")]);
        assert_eq!(repository(&home.join("work"), std::slice::from_ref(&home)), Vec::<PathBuf>::new());
    }
}
