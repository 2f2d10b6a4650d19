//! The places a policy names, as they really are: without symbolic links, with what stands there. It looks at
//! the machine once and changes nothing, so that everything after it can be decided without looking.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::mounts::seen_again;
use crate::gitconfig::named_in;
use crate::policy::{Access, Policy};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Directory,
    File,
    Missing,
}

/// A path without symbolic links and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spot {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

/// All the places of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Places {
    pub(crate) workspace: PathBuf,
    pub(crate) private: PathBuf,
    pub(crate) hidden: Vec<Spot>,
    pub(crate) readable: Vec<Spot>,
    pub(crate) caches: Vec<Spot>,
    pub(crate) masked: Vec<Spot>,
    /// The home directory, if it is hidden and a private one takes its place.
    pub(crate) home: Option<PathBuf>,
    /// Whether git metadata stands at the top of the workspace.
    pub(crate) git: bool,
    /// What else in the workspace commands must not write: other metadata of repositories, what those name,
    /// and files that are shared with places outside.
    pub(crate) nested: Vec<PathBuf>,
    /// The machine's temporary directories, which are replaced by the private one.
    pub(crate) temporary: Vec<PathBuf>,
    /// Whether there is a `/run`, which is emptied.
    pub(crate) run: bool,
    /// The git dir of the agent's own, once it is made.
    pub(crate) own_git: Option<PathBuf>,
}

/// What only root can read, and commands of root must not.
const ROOT_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/pki/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ipsec.secrets",
    "/etc/ipsec.d/private",
    "/etc/swanctl/private",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/NetworkManager/system-connections",
    "/etc/netplan",
    "/etc/wpa_supplicant",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/docker/key.json",
    "/etc/mysql/debian.cnf",
    "/etc/security/opasswd",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/lib/etcd",
    "/var/lib/sss/db",
    "/var/lib/sss/secrets",
    "/var/lib/systemd/credential.secret",
    "/var/lib/private",
    "/var/spool/cron",
    "/var/spool/mail",
    "/var/mail",
    "/var/backups",
];

/// The most places in the workspace that are protected; each needs a few descriptors.
const MOST_GUARDED: usize = 128;

/// What lies in `/run` although programs cannot do without it: name resolution, and all of NixOS.
const NEEDED_OF_RUN: [&str; 2] = ["/etc/resolv.conf", "/run/current-system"];

/// Those that are no part of the workspace anyway. What lies in it, with nothing hidden in between, is shown,
/// written and guarded as the rest of the tree is; a place of its own would only come in the way of that.
fn apart(spots: Vec<Spot>, workspace: &Path, hidden: &[Spot]) -> Vec<Spot> {
    let within = |path: &Path| path.starts_with(workspace);
    let hidden_within = |path: &Path| {
        hidden.iter().any(|spot| spot.path != workspace && within(&spot.path) && path.starts_with(&spot.path))
    };
    spots.into_iter().filter(|spot| !within(&spot.path) || hidden_within(&spot.path)).collect()
}

impl Places {
    /// Looks at every place of the policy. A policy that cannot be meant is refused.
    pub(crate) fn look(policy: &Policy, home: Option<PathBuf>, root: bool) -> Result<Self, String> {
        let directory = |path: &Path, what: &str| {
            let spot = look(path);
            if spot.kind == Kind::Directory {
                Ok(spot.path)
            } else {
                Err(format!("{what} {} is no directory", path.display()))
            }
        };
        let workspace = directory(&policy.workspace, "the workspace")?;
        let private = directory(&policy.private, "the agent's private directory")?;
        if workspace.parent().is_none() {
            return Err("the root directory cannot be a workspace; name a directory below it".to_owned());
        }
        if private.starts_with(&workspace) {
            let private = private.display();
            let workspace = workspace.display();
            return Err(format!(
                "the private directory {private} lies in the workspace {workspace}; keep state elsewhere"
            ));
        }
        let mut known = HashMap::new();
        let mut find = |path: &Path| look_beside(path, &mut known);
        let mut hidden: Vec<Spot> = policy.hidden.iter().map(|path| find(path)).collect();
        hidden.push(find(&private));
        let mut masked: Vec<Spot> = policy.masked.iter().map(|path| find(path)).collect();
        if root {
            hidden.push(find(Path::new("/root")));
            masked.extend(ROOT_SECRETS.iter().map(|path| find(Path::new(path))));
            let keys = std::fs::read_dir("/etc/ssh").into_iter().flatten().flatten();
            let keys = keys.filter(|entry| entry.file_name().as_encoded_bytes().ends_with(b"key"));
            masked.extend(keys.map(|entry| find(&entry.path())));
        }
        show_again(&mut hidden);
        show_again(&mut masked);
        let mut readable: Vec<Spot> = policy.readable.iter().map(|path| find(path)).collect();
        readable.extend(NEEDED_OF_RUN.iter().map(|path| find(Path::new(path))));
        let caches = policy.caches.iter().map(|path| find(path)).collect();
        let real = |path: &str| look(Path::new(path)) == Spot { path: path.into(), kind: Kind::Directory };
        Ok(Self {
            // A link does not count as metadata: a command may have made it, and decided where it leads.
            git: workspace.join(".git").symlink_metadata().is_ok_and(|about| !about.is_symlink()),
            nested: Vec::new(),
            own_git: None,
            readable: apart(exists(readable), &workspace, &hidden),
            caches: apart(exists(caches), &workspace, &hidden),
            masked: exists(masked),
            hidden,
            temporary: ["/tmp", "/var/tmp"]
                .into_iter()
                .filter(|path| real(path))
                .map(PathBuf::from)
                .collect(),
            run: real("/run"),
            home: home.filter(|home| *home != workspace),
            workspace,
            private,
        })
    }
}

impl Places {
    /// Looks for metadata in the workspace, if commands may write it, and adds what was found before of which
    /// that is true.
    pub(crate) fn find_nested(&mut self, access: Access, guarded: Vec<PathBuf>) {
        if access != Access::Workspace {
            return;
        }
        let within = |spot: &&Spot| spot.path.starts_with(&self.workspace) && spot.path != self.workspace;
        let closed: Vec<&Path> =
            self.hidden.iter().chain(&self.masked).filter(within).map(|spot| spot.path.as_path()).collect();
        let mut nested = super::git::nested(&self.workspace, &closed);
        let tops: Vec<PathBuf> = nested.iter().filter_map(|git| git.parent().map(Path::to_owned)).collect();
        let named = tops.iter().flat_map(|top| named_in(top, None));
        for path in guarded.into_iter().chain(named) {
            let is_closed = closed.iter().any(|closed| path.starts_with(closed) || closed.starts_with(&path));
            let top = self.workspace.join(".git");
            let known =
                nested.iter().any(|other| path.starts_with(other)) || (self.git && path.starts_with(top));
            if path.starts_with(&self.workspace)
                && path.exists()
                && !is_closed
                && !known
                && nested.len() < MOST_GUARDED
            {
                nested.push(path);
            }
        }
        self.nested = nested;
    }
}

/// Adds the other places at which the same directories and files are seen, by mounts.
fn show_again(spots: &mut Vec<Spot>) {
    let listed = super::mounts::listed();
    let again = spots.iter().flat_map(|spot| seen_again(&listed, &spot.path)).map(|path| look(&path));
    let again: Vec<Spot> = again.filter(|spot| spot.kind != Kind::Missing && !spots.contains(spot)).collect();
    spots.extend(again);
}

/// The home directory that the environment names, if the policy hides it. Programs look there for their
/// settings, and many fail if they find the door shut rather than nothing; so a private one, empty and
/// writable, takes its place.
pub(crate) fn hidden_home(policy: &Policy, named: Option<&str>) -> Option<PathBuf> {
    let home = look(Path::new(named?));
    let workspace = look(&policy.workspace).path;
    let hidden = policy.hidden.iter().any(|hidden| home.path.starts_with(look(hidden).path));
    (hidden && home.kind == Kind::Directory && home.path != workspace).then_some(home.path)
}

/// Where a path leads. One that does not exist is followed as far as it does.
pub(crate) fn look(path: &Path) -> Spot {
    match path.canonicalize() {
        Ok(path) => {
            let kind = if path.is_dir() { Kind::Directory } else { Kind::File };
            Spot { path, kind }
        }
        Err(_) => {
            let rest = path.file_name().unwrap_or(OsStr::new(""));
            let path = match path.parent() {
                Some(parent) if parent != path && parent.is_absolute() => look(parent).path.join(rest),
                _ => path.to_owned(),
            };
            Spot { path, kind: Kind::Missing }
        }
    }
}

/// The same for one of many that lie beside each other: where their directories lead is found out once.
fn look_beside(path: &Path, known: &mut HashMap<PathBuf, Option<PathBuf>>) -> Spot {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return look(path) };
    let real = known.entry(above.to_owned()).or_insert_with(|| above.canonicalize().ok());
    let Some(path_there) = real.as_ref().map(|real| real.join(name)) else { return look(path) };
    match path_there.symlink_metadata() {
        Ok(about) if !about.is_symlink() => {
            Spot { path: path_there, kind: if about.is_dir() { Kind::Directory } else { Kind::File } }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Spot { path: path_there, kind: Kind::Missing },
        _ => look(path),
    }
}

fn exists(spots: Vec<Spot>) -> Vec<Spot> {
    spots.into_iter().filter(|spot| spot.kind != Kind::Missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_the_workspace_is_no_place_of_its_own_unless_something_hides_it_there() {
        let spot = |path: &str| Spot { path: path.into(), kind: Kind::Directory };
        let check = |workspace: &str, hidden: &[&str], path: &str, expected: bool| {
            let hidden: Vec<Spot> = hidden.iter().map(|path| spot(path)).collect();
            let kept = apart(vec![spot(path)], Path::new(workspace), &hidden);
            assert_eq!(!kept.is_empty(), expected, "{workspace} {hidden:?} {path}");
        };
        check("/w", &["/home/me"], "/home/me/.cargo", true);
        check("/w", &["/home/me"], "/w/.cargo", false);
        check("/home/me/w", &["/home/me"], "/home/me/w/.cargo", false);
        check("/home", &["/home/me"], "/home/me/.cargo", true);
        check("/home/me", &["/home/me"], "/home/me/.cargo", false);
    }
}
