//! Pipes in the place of files: git is not waited for, and it does not outlive its host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_trees::{DiffForm, Error, HostPlaces, Keeper};
use tokio::time::timeout;

use crate::world::{World, command, like_commands, path_variable};

/// Much more than the patience with a git that stands still, and much less than for ever.
const LONG: Duration = Duration::from_secs(90);

/// Where the process that is killed finds its world.
const WORLD: &str = "CONVOKE_TEST_STALL";

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// What the whole way of a run says when this stands there, in time.
async fn said(world: &World) -> String {
    let work = async {
        let keeper = Keeper::open(&world.places, &world.dir, "s_1").await?;
        keeper.open_window("a_1").await?;
        keeper.close_window("a_1", "").await
    };
    let outcome = timeout(LONG, work).await.expect("nothing waits for a pipe");
    outcome.expect_err("git cannot have read it").to_string()
}

#[tokio::test]
async fn a_pipe_where_git_always_looks_is_named_at_once() {
    let names = [
        ".gitignore",
        ".gitattributes",
        ".git/HEAD",
        ".git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".git/index",
        ".git/info/exclude",
        ".git/packed-refs",
        ".git/objects/info/alternates",
    ];
    for name in names {
        let world = World::repository(&[("a", "1\n")]);
        pipe(&world.path(name));
        let since = Instant::now();
        let said = said(&world).await;
        assert!(said.contains(name) && said.contains("is a pipe"), "{name}: {said}");
        assert!(since.elapsed() < Duration::from_secs(8), "{name} was looked at before it was opened");
    }
}

#[tokio::test]
async fn a_pipe_that_git_finds_elsewhere_ends_its_patience_and_is_named() {
    let nested = World::repository(&[("a", "1\n"), ("deep/er/b", "1\n")]);
    pipe(&nested.path("deep/er/.gitignore"));
    let nested = said(&nested).await;
    assert!(nested.contains("stood still") && nested.contains("deep/er/.gitignore"), "{nested}");
}

#[tokio::test]
async fn a_pipe_among_included_settings_is_named_at_once() {
    // Every git of a run would wait there for as long as it is given.
    let included = World::repository(&[("a", "1\n")]);
    pipe(&included.path("settings"));
    included.git(["config", "include.path", "../settings"]);
    let said = said(&included).await;
    assert!(said.contains("settings") && said.contains("is a pipe"), "{said}");
}

#[tokio::test]
async fn neither_undo_nor_a_diff_waits_for_a_pipe() {
    let world = World::repository(&[("a", "1\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "2\n")).await;
    drop(keeper);
    pipe(&world.path(".git/HEAD"));
    let open = || Keeper::open(&world.places, &world.dir, "s_1");
    let undone = timeout(LONG, async { open().await?.undo(false).await.map(drop) }).await.unwrap();
    let shown = timeout(LONG, async { open().await?.diff(DiffForm::Patch).await.map(drop) }).await.unwrap();
    let forgotten = timeout(LONG, convoke_trees::forget(&world.places, &world.dir, "s_1")).await.unwrap();
    for outcome in [undone, shown, forgotten] {
        assert!(matches!(&outcome, Err(Error::Pipe { path }) if path.ends_with(".git/HEAD")), "{outcome:?}");
    }
}

/// Run by the test below as a process of its own; by itself it has nothing to do.
#[tokio::test]
async fn child_whose_git_waits_for_a_pipe() {
    let Some(root) = std::env::var_os(WORLD).map(PathBuf::from) else { return };
    let places = HostPlaces { path: path_variable(), state: root.join("state"), sight: like_commands() };
    let keeper = Keeper::open(&places, &root.join("work"), "s_1").await.unwrap();
    let _ = keeper.before().await;
}

/// The git processes that were started about a directory.
fn gits(dir: &Path) -> Vec<String> {
    let about = |process: &fs::DirEntry| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let is_git = words.next().is_some_and(|program| program.ends_with(b"/git"));
        is_git && String::from_utf8_lossy(&line).contains(dir.to_str().unwrap())
    };
    let all = fs::read_dir("/proc").unwrap().flatten().filter(about);
    all.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn a_host_that_is_killed_leaves_no_git_behind() {
    let world = World::repository(&[("a", "1\n"), ("deep/b", "1\n")]);
    pipe(&world.path("deep/.gitignore"));
    let root = world.dir.parent().unwrap();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stalls::child_whose_git_waits_for_a_pipe"])
        .env(WORLD, root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It waits as soon as it has opened everything up to the pipe, so it is seen twice by the same number.
    let since = Instant::now();
    let mut seen = Vec::new();
    loop {
        assert!(since.elapsed() < LONG, "no git was seen");
        let now = gits(&world.dir);
        if !now.is_empty() && now == seen {
            break;
        }
        seen = now;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    host.kill().unwrap();
    host.wait().unwrap();
    let since = Instant::now();
    while !gits(&world.dir).is_empty() {
        assert!(since.elapsed() < Duration::from_secs(8), "git outlives its host");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
