//! A directory to work in, a state directory beside it, and a person who uses git there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_sandbox::{Sight, Unseen};
use convoke_trees::{Closed, DiffForm, HostPlaces, Keeper};
use tempfile::TempDir;

pub(crate) struct World {
    root: TempDir,
    pub(crate) dir: PathBuf,
    pub(crate) places: HostPlaces,
}

pub(crate) fn path_variable() -> String {
    std::env::var_os("PATH").unwrap().into_string().unwrap()
}

/// Git sees what commands see, and nothing is hidden from them.
pub(crate) fn like_commands() -> Sight {
    Sight::LikeCommands(Unseen::default())
}

impl World {
    /// A directory without git.
    pub(crate) fn plain() -> Self {
        let root = TempDir::new().unwrap();
        let dir = root.path().canonicalize().unwrap().join("work");
        fs::create_dir(&dir).unwrap();
        let places =
            HostPlaces { path: path_variable(), state: root.path().join("state"), sight: like_commands() };
        Self { root, dir, places }
    }

    /// A repository without commits.
    pub(crate) fn empty_repository() -> Self {
        let world = Self::plain();
        world.git(["init", "-q", "-b", "main"]);
        world
    }

    /// A repository with these files committed.
    pub(crate) fn repository(files: &[(&str, &str)]) -> Self {
        let world = Self::empty_repository();
        for (name, text) in files {
            world.write(name, text);
        }
        world.commit("first");
        world
    }

    /// The same world, working in another directory of it.
    pub(crate) fn at(self, dir: PathBuf) -> Self {
        Self { dir, ..self }
    }

    /// The same world with another state directory, as if the first had been lost.
    pub(crate) fn without_state(self) -> Self {
        let places = HostPlaces { state: self.beside("other_state"), ..self.places.clone() };
        Self { places, ..self }
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(["add", "-A"]);
        self.git(["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// The person's git, with nothing of the machine's own settings.
    pub(crate) fn git<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I) -> Vec<u8> {
        self.git_in(&self.dir, args)
    }

    pub(crate) fn git_in<I: IntoIterator<Item: AsRef<OsStr>>>(&self, dir: &Path, args: I) -> Vec<u8> {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=person",
                "-c",
                "user.email=person@localhost",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(&args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.dir.join(Path::new(name.as_ref()))
    }

    /// A place beside the directory.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<OsStr>, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: impl AsRef<OsStr>) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn chmod(&self, name: impl AsRef<OsStr>, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn mode(&self, name: impl AsRef<OsStr>) -> u32 {
        self.path(name).metadata().unwrap().permissions().mode() & 0o777
    }

    /// The file by which processes take turns with a run's record.
    pub(crate) fn lock_of(&self, run: &str) -> PathBuf {
        let of_run = self.places.state.join("trees/runs").join(run);
        let record = std::fs::read_dir(of_run).unwrap().next().unwrap().unwrap();
        record.path().join("lock")
    }

    pub(crate) async fn keeper(&self, run: &str) -> Keeper {
        Keeper::open(&self.places, &self.dir, run).await.unwrap()
    }

    /// Everything in the directory but git's own: each path with its kind, whether it is executable, and its
    /// content.
    pub(crate) fn tree(&self) -> Vec<(PathBuf, String, Vec<u8>)> {
        let mut found = Vec::new();
        walk(&self.dir, &self.dir, &mut found);
        found.sort();
        found
    }
}

fn walk(top: &Path, dir: &Path, found: &mut Vec<(PathBuf, String, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name() == Some(OsStr::new(".git")) {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(top).unwrap().to_owned();
        if meta.is_dir() {
            found.push((name, "directory".to_owned(), Vec::new()));
            walk(top, &path, found);
        } else if meta.is_symlink() {
            found.push((
                name,
                "link".to_owned(),
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
            ));
        } else {
            let executable = meta.permissions().mode() & 0o100 != 0;
            found.push((name, format!("file {executable}"), fs::read(&path).unwrap()));
        }
    }
}

/// A command of an agent: what `work` changes is changed in a window.
pub(crate) async fn command(keeper: &Keeper, agent: &str, work: impl FnOnce()) -> Closed {
    keeper.open_window(agent).await.unwrap();
    work();
    keeper.close_window(agent, "a command").await.unwrap()
}

/// The run's changes as `how path agents`.
pub(crate) async fn changes(keeper: &Keeper) -> Vec<String> {
    let shown = |file: convoke_trees::ChangedFile| {
        let mixed = if file.mixed { " mixed" } else { "" };
        format!("{:?} {} {}{mixed}", file.how, file.path.display(), file.agents.join(","))
    };
    keeper.changes().await.unwrap().into_iter().map(shown).collect()
}

pub(crate) async fn names(keeper: &Keeper) -> String {
    String::from_utf8(keeper.diff(DiffForm::Names).await.unwrap()).unwrap()
}

/// Undoes, and returns what was restored and what was kept.
pub(crate) async fn undo(keeper: &Keeper) -> (Vec<String>, Vec<String>) {
    let undone = keeper.undo(false).await.unwrap();
    let restored = undone.restored.iter().map(|path| path.display().to_string()).collect();
    let kept = undone.kept.iter().map(|(path, why)| format!("{}: {why}", path.display())).collect();
    (restored, kept)
}
