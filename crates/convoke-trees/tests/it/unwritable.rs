//! A repository that this user cannot write: trees are kept apart from it, and no worktree is made there.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_trees::{Error, HostPlaces, Keeper, WorktreeError, Worktrees, forget};

use crate::world::{World, changes, command, like_commands, path_variable, undo};

/// Where the process that plays the other user finds its world.
const WORLD: &str = "CONVOKE_TEST_UNWRITABLE";

fn chmod_all(dir: &Path, directories: u32, files: u32) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            chmod_all(&path, directories, files);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(files)).unwrap();
        }
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(directories)).unwrap();
}

fn listed(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(listed(&path));
        }
        all.push(path);
    }
    all.sort();
    all
}

#[tokio::test]
async fn in_a_repository_that_cannot_be_written_trees_are_kept_apart() {
    if let Some(root) = std::env::var_os(WORLD) {
        return check(Path::new(&root)).await;
    }
    let world = World::repository(&[("a", "1\n"), ("b/c", "2\n")]);
    let root = world.beside(".").canonicalize().unwrap();
    fs::write(world.path(".git/info/exclude"), "secret\n").unwrap();
    world.write("secret", "mine\n");
    fs::create_dir(root.join("state")).unwrap();
    let name = "unwritable::in_a_repository_that_cannot_be_written_trees_are_kept_apart";
    let program = root.join("test");
    // Copied by another process: a child of another test could inherit our handle, and then the copy could
    // not be run.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    chmod_all(&root, 0o777, 0o777);
    chmod_all(&world.path(".git"), 0o555, 0o444);
    let mut again = Command::new(program);
    again.args(["--exact", name, "--nocapture"]).env(WORLD, &root).current_dir("/");
    if root.metadata().unwrap().uid() == 0 {
        again.uid(65_534).gid(65_534);
    }
    let seen = again.output().unwrap();
    chmod_all(&world.path(".git"), 0o755, 0o644);
    let said = String::from_utf8_lossy(&seen.stdout);
    assert!(
        seen.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&seen.stderr)
    );
}

/// What the user who cannot write the repository sees.
async fn check(root: &Path) {
    let dir = root.join("work");
    let places = HostPlaces { path: path_variable(), state: root.join("state"), sight: like_commands() };
    let before = listed(&dir.join(".git"));
    let keeper = Keeper::open(&places, &dir, "s_1").await.unwrap();
    assert!(keeper.apart().is_some_and(|place| place.starts_with(&places.state)));
    command(&keeper, "a_1", || {
        fs::write(dir.join("a"), "changed\n").unwrap();
        fs::write(dir.join("new"), "new\n").unwrap();
        fs::remove_file(dir.join("b/c")).unwrap();
    })
    .await;
    assert_eq!(changes(&keeper).await, ["Modified a a_1", "Deleted b/c a_1", "Added new a_1"]);
    drop(keeper);

    let keeper = Keeper::open(&places, &dir, "s_1").await.unwrap();
    let (restored, kept) = undo(&keeper).await;
    assert_eq!((restored, kept), (["a", "b/c", "new"].map(str::to_owned).to_vec(), Vec::new()));
    assert_eq!(fs::read(dir.join("a")).unwrap(), b"1\n");
    assert_eq!(fs::read(dir.join("b/c")).unwrap(), b"2\n");
    assert_eq!(fs::read(dir.join("secret")).unwrap(), b"mine\n");
    assert!(!dir.join("new").exists());
    forget(&places, &dir, "s_1").await.unwrap();

    let worktrees = Worktrees::open(places, &dir).await.unwrap();
    let refused = worktrees.create("s_2", "a_1").await;
    assert!(matches!(refused, Err(WorktreeError::Trees(Error::NotWritable { .. }))), "{refused:?}");
    assert_eq!(worktrees.list(None).await.unwrap(), []);
    assert_eq!(listed(&dir.join(".git")), before);
}
