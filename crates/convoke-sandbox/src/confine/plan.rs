//! Which mounts make a policy, as a pure function of the places it names. The places may lie in one another
//! in any way: the nearest one above a path decides, so the mounts are sorted from the root down and each
//! covers what came before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::places::{Kind, Places, Spot};
use crate::policy::Access;

/// Where the helper's executable stands inside.
pub(crate) const HELPER: &str = "/run/convoke/helper";

/// One mount, in the order in which they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mount {
    /// An empty directory that cannot be written.
    Empty(PathBuf),
    /// A file without content.
    Nothing(PathBuf),
    /// `from` appears at `at` and cannot be written.
    Read { from: PathBuf, at: PathBuf },
    /// `from` appears at `at` and can be written.
    Write { from: PathBuf, at: PathBuf },
}

impl Mount {
    /// Where it is made.
    pub(crate) fn at(&self) -> &Path {
        match self {
            Self::Empty(at) | Self::Nothing(at) | Self::Read { at, .. } | Self::Write { at, .. } => at,
        }
    }
}

/// What was made ready for this policy before the mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    /// What stands where the workspace is: itself, an overlay, or a copy.
    pub(crate) tree: PathBuf,
    /// The overlays of those caches that have one.
    pub(crate) caches: BTreeMap<PathBuf, PathBuf>,
    /// The private temporary directory.
    pub(crate) temporary: PathBuf,
    /// The private home directory.
    pub(crate) home: PathBuf,
    /// The helper's executable.
    pub(crate) helper: PathBuf,
}

/// What a path shows once its nearest mount is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// What the machine has there.
    Machine,
    /// Nothing of the machine.
    Other,
}

/// The mounts below a read-only root, from the root down.
pub(crate) fn plan(places: &Places, access: Access, made: &Made) -> Vec<Mount> {
    let mut wanted: BTreeMap<PathBuf, (Mount, Shows)> = BTreeMap::new();
    let mut want = |at: &Path, mount: Mount, shows: Shows| {
        wanted.insert(at.to_owned(), (mount, shows));
    };
    // What is wanted later replaces what is wanted earlier for the same path.
    for at in &places.temporary {
        want(at, Mount::Write { from: made.temporary.clone(), at: at.clone() }, Shows::Other);
    }
    if places.run {
        want(Path::new("/run"), Mount::Empty("/run".into()), Shows::Other);
    }
    for spot in &places.hidden {
        if let Some(mount) = cover(spot) {
            want(&spot.path, mount, Shows::Other);
        }
    }
    if let Some(home) = &places.home {
        want(home, Mount::Write { from: made.home.clone(), at: home.clone() }, Shows::Other);
    }
    for spot in &places.readable {
        want(&spot.path, Mount::Read { from: spot.path.clone(), at: spot.path.clone() }, Shows::Machine);
    }
    for Spot { path, .. } in &places.caches {
        let mount = match made.caches.get(path) {
            Some(from) => Mount::Write { from: from.clone(), at: path.clone() },
            None => Mount::Read { from: path.clone(), at: path.clone() },
        };
        want(path, mount, Shows::Machine);
    }
    let workspace = &places.workspace;
    want(workspace, Mount::Write { from: made.tree.clone(), at: workspace.clone() }, Shows::Machine);
    if access == Access::Workspace && places.git {
        let git = workspace.join(".git");
        want(&git, Mount::Read { from: git.clone(), at: git.clone() }, Shows::Machine);
    }
    if let Some(own) = &places.own_git {
        want(own, Mount::Write { from: own.clone(), at: own.clone() }, Shows::Machine);
    }
    for git in &places.nested {
        want(git, Mount::Read { from: git.clone(), at: git.clone() }, Shows::Machine);
    }
    for spot in &places.masked {
        if let Some(mount) = cover(spot) {
            want(&spot.path, mount, Shows::Other);
        }
    }
    if places.run {
        want(Path::new(HELPER), Mount::Read { from: made.helper.clone(), at: HELPER.into() }, Shows::Other);
    }
    let masked = |path: &Path| {
        let above = |spot: &&Spot| {
            path != spot.path && path.starts_with(&spot.path) && !workspace.starts_with(&spot.path)
        };
        places.masked.iter().any(|spot| above(&spot))
    };
    wanted.retain(|at, _| !masked(at));
    pin(&mut wanted, places, made);
    let is_git = |at: &PathBuf| *at == workspace.join(".git") || places.nested.contains(at);
    // The map is sorted by components, so what lies above comes first.
    let mut mounts: Vec<Mount> = Vec::new();
    for (at, (mount, _)) in &wanted {
        let above = at
            .ancestors()
            .skip(1)
            .find_map(|above| wanted.get(above))
            .map_or(Shows::Machine, |(_, shows)| *shows);
        let needless = match mount {
            Mount::Empty(_) | Mount::Nothing(_) => above == Shows::Other && at != Path::new("/run"),
            // An exception from hiding is needed only below something hidden, and must not forbid writing
            // elsewhere.
            Mount::Read { from, .. } if from == at && !is_git(at) => above == Shows::Machine,
            Mount::Read { .. } | Mount::Write { .. } => false,
        };
        if !needless {
            mounts.push(mount.clone());
        }
    }
    mounts
}

/// Directories that lead to something covered in a place that can be written become mounts of themselves:
/// what is mounted upon cannot be renamed, so no command can carry what is covered to a place where the next
/// shell would show it. The same for nested git metadata, in whose place no command is to put something else.
fn pin(wanted: &mut BTreeMap<PathBuf, (Mount, Shows)>, places: &Places, made: &Made) {
    let covers = |(mount, _): &(Mount, Shows)| matches!(mount, Mount::Empty(_) | Mount::Nothing(_));
    let covered = wanted.iter().filter(|(at, about)| covers(about) || places.nested.contains(at));
    let covered: Vec<PathBuf> = covered.map(|(at, _)| at.clone()).collect();
    let writable = made.caches.iter().chain([(&places.workspace, &made.tree)]);
    for (root, from) in writable {
        for at in covered.iter().filter(|at| at.starts_with(root)) {
            let between = at.ancestors().skip(1).take_while(|above| above.starts_with(root) && above != root);
            for above in between.filter(|above| {
                !covered.iter().any(|other| above.starts_with(other) && other.starts_with(root))
            }) {
                let Ok(rest) = above.strip_prefix(root) else { continue };
                let itself = Mount::Write { from: from.join(rest), at: above.to_owned() };
                wanted.entry(above.to_owned()).or_insert((itself, Shows::Machine));
            }
        }
    }
}

fn cover(spot: &Spot) -> Option<Mount> {
    match spot.kind {
        Kind::Directory => Some(Mount::Empty(spot.path.clone())),
        Kind::File => Some(Mount::Nothing(spot.path.clone())),
        // There is nothing to mount upon; the file rules keep it unreadable should it come to be.
        Kind::Missing => None,
    }
}

/// The same mounts in bubblewrap's words, with the directories it makes itself.
pub(crate) fn words(mounts: &[Mount], own_proc: bool, shared_memory: u64) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut say = |parts: &[&Path]| words.extend(parts.iter().map(|part| part.as_os_str().to_owned()));
    let path = |text: &'static str| Path::new(text);
    say(&[path("--ro-bind"), path("/"), path("/"), path("--dev"), path("/dev")]);
    say(&[path("--size"), Path::new(&shared_memory.to_string()), path("--perms"), path("1777")]);
    say(&[path("--tmpfs"), path("/dev/shm"), path("--remount-ro"), path("/dev")]);
    if own_proc {
        say(&[path("--proc"), path("/proc")]);
    }
    for mount in mounts {
        match mount {
            Mount::Empty(at) => say(&[path("--tmpfs"), at]),
            Mount::Nothing(at) => say(&[path("--ro-bind"), path("/dev/null"), at]),
            Mount::Read { from, at } => say(&[path("--ro-bind"), from, at]),
            Mount::Write { from, at } => say(&[path("--bind"), from, at]),
        }
    }
    // Only at the end, because the mounts in between stand on directories that are made in these.
    for mount in mounts {
        if let Mount::Empty(at) = mount {
            say(&[path("--remount-ro"), at]);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str) -> Spot {
        Spot { path: path.into(), kind: Kind::Directory }
    }

    fn file(path: &str) -> Spot {
        Spot { path: path.into(), kind: Kind::File }
    }

    fn places(workspace: &str) -> Places {
        Places {
            workspace: workspace.into(),
            private: "/state/a1".into(),
            hidden: vec![directory("/home/me"), directory("/state/a1")],
            readable: Vec::new(),
            caches: Vec::new(),
            masked: Vec::new(),
            home: None,
            git: false,
            nested: Vec::new(),
            temporary: vec!["/tmp".into()],
            run: false,
            own_git: None,
        }
    }

    fn made(workspace: &str) -> Made {
        Made {
            tree: workspace.into(),
            caches: BTreeMap::new(),
            temporary: "/state/a1/tmp".into(),
            home: "/state/a1/home".into(),
            helper: "/usr/bin/convoke".into(),
        }
    }

    /// Compares in short form: `-` empty, `0` nothing, `r` read, `w` write; the source only where it is
    /// another path.
    fn check(places: &Places, made: &Made, expected: &[&str]) {
        let short = |mount: &Mount| {
            let two = |sign: &str, from: &Path, at: &Path| match from == at {
                true => format!("{sign} {}", at.display()),
                false => format!("{sign} {} = {}", at.display(), from.display()),
            };
            match mount {
                Mount::Empty(at) => format!("- {}", at.display()),
                Mount::Nothing(at) => format!("0 {}", at.display()),
                Mount::Read { from, at } => two("r", from, at),
                Mount::Write { from, at } => two("w", from, at),
            }
        };
        let found: Vec<String> = plan(places, Access::Workspace, made).iter().map(short).collect();
        assert_eq!(found, expected);
    }

    const TEMPORARY: &str = "w /tmp = /state/a1/tmp";

    #[test]
    fn a_workspace_below_home_comes_back_after_home_was_emptied() {
        check(
            &places("/home/me/p"),
            &made("/home/me/p"),
            &["- /home/me", "w /home/me/p", "- /state/a1", TEMPORARY],
        );
    }

    #[test]
    fn home_below_the_workspace_is_emptied_in_it() {
        check(&places("/home"), &made("/home"), &["w /home", "- /home/me", "- /state/a1", TEMPORARY]);
    }

    #[test]
    fn a_workspace_that_is_home_stays_and_its_secrets_do_not() {
        let mut places = places("/home/me");
        places.masked = vec![directory("/home/me/.ssh"), file("/home/me/.netrc")];
        let expected = ["w /home/me", "0 /home/me/.netrc", "- /home/me/.ssh", "- /state/a1", TEMPORARY];
        check(&places, &made("/home/me"), &expected);
    }

    #[test]
    fn git_metadata_is_read_only_and_caches_come_back_with_their_layers() {
        let mut places = places("/home/me/p");
        places.git = true;
        places.caches = vec![directory("/home/me/.cargo"), directory("/home/me/.rustup")];
        places.masked = vec![file("/home/me/.cargo/credentials.toml")];
        let mut made = made("/home/me/p");
        made.caches.insert("/home/me/.cargo".into(), "/state/a1/mnt/0".into());
        let expected = [
            "- /home/me",
            "w /home/me/.cargo = /state/a1/mnt/0",
            "0 /home/me/.cargo/credentials.toml",
            "r /home/me/.rustup",
            "w /home/me/p",
            "r /home/me/p/.git",
            "- /state/a1",
            TEMPORARY,
        ];
        check(&places, &made, &expected);
    }

    #[test]
    fn the_journal_below_something_readable_stays_hidden_and_what_is_readable_below_that_comes_back() {
        let mut places = places("/w");
        places.hidden.extend([directory("/home/me/out/journal"), file("/home/me/out/key")]);
        places.readable =
            vec![directory("/home/me/out"), directory("/home/me/out/journal/mine"), directory("/usr/share")];
        let expected = [
            "- /home/me",
            "r /home/me/out",
            "- /home/me/out/journal",
            "r /home/me/out/journal/mine",
            "0 /home/me/out/key",
            "- /state/a1",
            TEMPORARY,
            "w /w",
        ];
        check(&places, &made("/w"), &expected);
    }

    #[test]
    fn nothing_below_a_mask_comes_back_but_the_workspace() {
        let mut places = places("/w/mask/p");
        places.masked = vec![directory("/w/mask"), directory("/home/me/m")];
        places.readable = vec![directory("/home/me/m/r"), directory("/w/mask/other")];
        let expected =
            ["- /home/me", "- /state/a1", TEMPORARY, "- /w/mask", "r /w/mask/other", "w /w/mask/p"];
        check(&places, &made("/w/mask/p"), &expected);
    }

    #[test]
    fn what_is_missing_needs_no_mount_and_what_is_readable_inside_the_workspace_stays_writable() {
        let mut places = places("/w");
        places.hidden.push(Spot { path: "/w/none".into(), kind: Kind::Missing });
        places.readable = vec![directory("/w/out")];
        check(&places, &made("/w"), &["- /home/me", "- /state/a1", TEMPORARY, "w /w"]);
    }

    #[test]
    fn a_tree_in_the_temporary_directory_is_mounted_into_the_private_one() {
        let mut places = places("/tmp/x/w");
        places.private = "/tmp/x/p".into();
        places.hidden = vec![directory("/tmp/x/p"), directory("/tmp/x/journal")];
        places.readable = vec![directory("/tmp/x/out")];
        let mut made = made("/tmp/x/p/mnt/tree");
        made.temporary = "/tmp/x/p/tmp".into();
        let expected = ["w /tmp = /tmp/x/p/tmp", "r /tmp/x/out", "w /tmp/x/w = /tmp/x/p/mnt/tree"];
        check(&places, &made, &expected);
    }

    #[test]
    fn directories_that_lead_to_something_covered_in_the_workspace_are_pinned() {
        let mut places = places("/w");
        places.masked = vec![file("/w/a/b/key"), file("/w/h/x/key")];
        places.hidden = vec![directory("/w/h"), directory("/c")];
        places.caches = vec![directory("/c/x")];
        places.masked.push(file("/c/x/y/key"));
        places.temporary.clear();
        let mut made = made("/o");
        made.caches.insert("/c/x".into(), "/p".into());
        let cache = ["- /c", "w /c/x = /p", "w /c/x/y = /p/y", "0 /c/x/y/key"];
        let tree = ["w /w = /o", "w /w/a = /o/a", "w /w/a/b = /o/a/b", "0 /w/a/b/key", "- /w/h"];
        check(&places, &made, &[&cache[..], &tree].concat());
    }

    #[test]
    fn nested_git_metadata_is_read_only_and_the_way_to_it_pinned() {
        let mut places = places("/w");
        places.git = true;
        places.nested = vec!["/w/a/b/.git".into()];
        places.temporary = Vec::new();
        places.hidden = Vec::new();
        check(&places, &made("/w"), &["w /w", "r /w/.git", "w /w/a", "w /w/a/b", "r /w/a/b/.git"]);
    }

    #[test]
    fn a_hidden_home_is_replaced_by_the_private_one() {
        let mut places = places("/home/me/p");
        places.home = Some("/home/me".into());
        places.temporary = Vec::new();
        places.caches = vec![directory("/home/me/.cargo")];
        let expected = ["w /home/me = /state/a1/home", "r /home/me/.cargo", "w /home/me/p", "- /state/a1"];
        check(&places, &made("/home/me/p"), &expected);
    }

    #[test]
    fn run_is_emptied_and_holds_the_helper_alone() {
        let mut places = places("/w");
        places.run = true;
        places.hidden = vec![directory("/run/me")];
        places.temporary = Vec::new();
        check(&places, &made("/w"), &["- /run", "r /run/convoke/helper = /usr/bin/convoke", "w /w"]);
    }
}
