//! Policies as commands meet them: each access in each set of layers, and once more as an ordinary user.
//! Escapes by trickery have a suite of their own; here is what must work and what must plainly fail.

mod faults;
mod files;
mod places;
mod programs;
mod uncounted;
mod writes;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use convoke_sandbox::{
    Access, Ending, Finished, HoldChoice, LayerSet, Limits, Network, OutputSpec, Policy, RunCommand, Shell,
    ShellConfig, ShellState, Templates, hold, probe,
};
use tempfile::TempDir;

use crate::{LONG, helper, path, readable_copy};

/// Makes a test of each function, once for every set of layers.
macro_rules! in_both_sets {
    ($($name:ident)*) => {
        mod namespaces {
            $(#[tokio::test] async fn $name() {
                if crate::confine::holds(convoke_sandbox::LayerSet::Namespaces).await {
                    super::$name(convoke_sandbox::LayerSet::Namespaces).await
                }
            })*
        }
        mod landlock {
            $(#[tokio::test] async fn $name() {
                if crate::confine::holds(convoke_sandbox::LayerSet::Landlock).await {
                    super::$name(convoke_sandbox::LayerSet::Landlock).await
                }
            })*
        }
    };
}

pub(crate) use in_both_sets;

/// Whether this set can be had here; said if not.
pub(crate) async fn holds(set: LayerSet) -> bool {
    let layers = probe(&helper(), None, Path::new("/nowhere")).await.unwrap();
    let held = hold(&layers, Access::ReadOnly, &Network::Off, Some(set));
    let holds = held.as_ref().is_ok_and(|held| held.set == Some(set));
    if !holds {
        println!("not run: {set:?} cannot be had here: {held:?}, {layers:?}");
    }
    holds
}

/// A machine in small: a home with secrets, a project and a cache in it, and a journal beside it.
pub(crate) struct World {
    pub(crate) dir: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        for directory in [
            "home/project/src",
            "home/.ssh",
            "home/out",
            "home/.cache/tool",
            "journal",
            "state/a",
            "state/b",
            "elsewhere",
        ] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        for private in ["state/a", "state/b"] {
            std::fs::set_permissions(at(private), PermissionsExt::from_mode(0o700)).unwrap();
        }
        for (file, text) in [
            ("home/project/src/main", "code\n"),
            ("home/.ssh/key", "secret\n"),
            ("home/.gitconfig", "[user]\n\tname = secret\n"),
            ("home/out/full", "output\n"),
            ("home/.cache/tool/thing", "cached\n"),
            ("home/.cache/tool/credentials", "secret\n"),
            ("journal/db", "secret\n"),
            ("elsewhere/file", "public\n"),
        ] {
            std::fs::write(at(file), text).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        path(&self.dir).join(name)
    }

    pub(crate) fn policy(&self, access: Access, agent: &str) -> Policy {
        Policy {
            access,
            network: Network::Off,
            limits: Limits::default(),
            workspace: self.at("home/project"),
            private: self.at("state").join(agent),
            hidden: vec![
                self.at("home"),
                self.at("journal"),
                self.at("journal-to-come/db"),
                self.at("state"),
            ],
            readable: vec![self.at("home/out")],
            caches: vec![self.at("home/.cache/tool")],
            masked: vec![self.at("home/.cache/tool/credentials")],
            own_git: None,
        }
    }

    pub(crate) async fn shell(&self, set: LayerSet, policy: Policy) -> Inside {
        self.restored(set, policy, None).await
    }

    pub(crate) fn config(&self, set: LayerSet, policy: Policy, restored: Option<ShellState>) -> ShellConfig {
        let home = self.at("home").display().to_string();
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("GIVEN", "yes"), ("HOME", &home)];
        ShellConfig {
            helper: helper(),
            cwd: self.at("home/project"),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            restored,
            hold: HoldChoice::Best,
            policy,
            layers: Some(set),
            templates: Templates::default(),
            promise: Default::default(),
            writes: None,
        }
    }

    pub(crate) async fn restored(
        &self,
        set: LayerSet,
        policy: Policy,
        restored: Option<ShellState>,
    ) -> Inside {
        let shell = Shell::start(self.config(set, policy, restored)).await.unwrap();
        Inside { shell, full: self.at("full output") }
    }
}

/// A confined shell.
pub(crate) struct Inside {
    pub(crate) shell: Shell,
    pub(crate) full: PathBuf,
}

impl Inside {
    pub(crate) async fn run(&mut self, command: &str) -> Finished {
        let command = RunCommand {
            command: command.to_owned(),
            deadline: LONG,
            output: OutputSpec::new(self.full.clone()),
        };
        self.shell.run(command, std::future::pending()).await.unwrap()
    }

    /// Runs a command that must succeed, and compares what it printed.
    pub(crate) async fn check(&mut self, command: &str, text: &str) {
        let finished = self.run(command).await;
        assert_eq!(
            (finished.output.text.as_str(), &finished.ending),
            (text, &Ending::Exited(0)),
            "{command}"
        );
    }

    /// Runs a command that must fail.
    pub(crate) async fn refused(&mut self, command: &str) {
        let finished = self.run(command).await;
        assert_ne!(finished.ending, Ending::Exited(0), "{command}: {finished:?}");
    }
}

pub(crate) fn root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

#[tokio::test]
async fn the_probe_is_quick_and_says_what_it_found() {
    let since = Instant::now();
    let layers = probe(&helper(), None, Path::new("/nowhere")).await.unwrap();
    println!("the probe took {:?}", since.elapsed());
    let lines = layers.lines();
    assert_eq!(lines.len(), 6);
    for (layer, works, detail) in lines {
        println!("{layer:12} {works:5} {detail}");
        assert!(works || !detail.is_empty(), "{layer} says why not");
    }
}

#[tokio::test]
async fn a_policy_that_cannot_be_meant_is_refused_in_words() {
    let world = World::new();
    let mut policy = world.policy(Access::Workspace, "a");
    policy.private = world.at("home/project/src");
    let config = ShellConfig {
        helper: helper(),
        cwd: world.at("home/project"),
        env: [].into(),
        restored: None,
        hold: HoldChoice::Best,
        policy,
        layers: Some(LayerSet::Landlock),
        templates: Templates::default(),
        promise: Default::default(),
        writes: None,
    };
    let unheld = ShellConfig { layers: None, ..config.clone() };
    assert!(
        matches!(Shell::start(unheld).await, Err(convoke_sandbox::Error::NotHeld)),
        "never unconfined by omission"
    );
    let error = Shell::start(config).await.unwrap_err();
    assert!(error.to_string().contains("lies in the workspace"), "{error}");
}

/// These tests as another process runs them: started by `wrapper`, with a temporary directory that every user
/// may enter. Each filter names a test.
fn again(wrapper: &[&str], temporary: &Path, filters: &[&str]) {
    let programs = TempDir::new().unwrap();
    std::fs::set_permissions(programs.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let helper = readable_copy(&helper().program, programs.path());
    let tests = readable_copy(&std::env::current_exe().unwrap(), programs.path());
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(tests)
        .args(filters)
        .args(["--nocapture", "--skip", "outside::"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TMPDIR", temporary)
        .env(crate::HELPER_VARIABLE, helper)
        .current_dir(temporary)
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs of the tests above in other circumstances.
mod outside {
    use super::*;

    const SOME: [&str; 5] =
        ["writes_land", "git_metadata", "a_throwaway_copy", "nothing_lives_on", "confine::the_probe"];

    pub(super) const AS_NOBODY: [&str; 6] =
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

    pub(super) fn open_directory() -> TempDir {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        dir
    }

    #[test]
    fn as_an_ordinary_user_all_of_this_holds_too() {
        if root() {
            again(&AS_NOBODY, open_directory().path(), &["confine::"]);
        } else {
            println!("this is an ordinary user: the half for root was not run");
        }
    }

    #[test]
    fn inside_another_sandbox_with_and_without_its_own_proc_the_policies_hold() {
        if !Path::new("/usr/bin/bwrap").exists() {
            println!("not run: there is no bubblewrap");
            return;
        }
        let dir = open_directory();
        let place = dir.path().to_str().unwrap();
        let common = [
            "bwrap",
            "--unshare-user",
            "--unshare-pid",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--bind",
            "/tmp",
            "/tmp",
            "--bind",
            place,
            place,
        ];
        // The third is what many containers look like: parts of /proc are covered, so no other can be
        // mounted.
        for proc in [&[][..], &["--proc", "/proc"], &["--proc", "/proc", "--tmpfs", "/proc/fs"]] {
            let user = if root() { &AS_NOBODY[..] } else { &[] };
            // In the first the numbers in /proc are those of another namespace, so this one is left out.
            let wrapper: Vec<&str> = user
                .iter()
                .chain(&common)
                .chain(proc)
                .copied()
                .filter(|word| *word != "--unshare-pid" || !proc.is_empty())
                .collect();
            again(&wrapper, dir.path(), &SOME);
        }
    }

    #[test]
    fn where_no_overlay_can_be_mounted_the_copy_is_made_file_by_file() {
        if !root() {
            println!("not run: only root can make a place without overlays");
            return;
        }
        let dir = open_directory();
        let at = |name: &str| {
            let at = dir.path().join(name);
            std::fs::create_dir_all(&at).unwrap();
            std::fs::set_permissions(&at, PermissionsExt::from_mode(0o777)).unwrap();
            at.to_str().unwrap().to_owned()
        };
        // An overlay over an overlay is as deep as the kernel goes.
        let [lower, upper, work, once, upper2, work2, twice] =
            ["l", "u", "w", "once", "u2", "w2", "twice"].map(at);
        let script = format!(
            "mount -t overlay o -o lowerdir={lower},upperdir={upper},workdir={work} {once} && \
             mount -t overlay o -o lowerdir={lower}:{once},upperdir={upper2},workdir={work2} {twice} && \
             chmod 777 {twice} && TMPDIR={twice} && export TMPDIR && \"$@\""
        );
        for user in [&[][..], &AS_NOBODY[..]] {
            let wrapper: Vec<&str> =
                ["unshare", "-m", "sh", "-c", &script, "sh"].iter().chain(user).copied().collect();
            again(&wrapper, dir.path(), &SOME);
        }
    }
}
