//! What is run later and no patch shows: hooks and programs that git ignores, and settings of the repository
//! itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use convoke_trees::{ChangeKind, Keeper, Later, LaterKind, RunsLater};

use crate::world::{World, command};

const IGNORED: &str = ".husky/_/\n.envrc\nnode_modules/\ntarget/\nlocal/\n";

/// A repository whose hooks are in a directory that git ignores.
fn with_hooks() -> World {
    let world = World::repository(&[(".gitignore", IGNORED), ("src/main", "code\n")]);
    world.git(["config", "core.hooksPath", ".husky/_"]);
    world.write(".husky/_/pre-commit", "#!/bin/sh\n");
    world.write("node_modules/tool/run", "#!/bin/sh\nrun\n");
    world.chmod("node_modules/tool/run", 0o755);
    fs::create_dir(world.path("node_modules/.bin")).unwrap();
    symlink("../tool/run", world.path("node_modules/.bin/run")).unwrap();
    world.write("local/plain", "text\n");
    world
}

async fn later(keeper: &Keeper) -> Vec<String> {
    let RunsLater { files, whole } = keeper.runs_later().await.unwrap();
    assert!(whole);
    let line = |Later { path, how, count, kept, kind }: &Later| {
        let how = match how {
            ChangeKind::Added => 'A',
            ChangeKind::Deleted => 'D',
            ChangeKind::Modified | ChangeKind::ModeChanged => 'M',
        };
        let signs = [
            (*count > 1).then(|| format!(" x{count}")),
            (!kept).then(|| " lost".to_owned()),
            (*kind == LaterKind::Metadata).then(|| " metadata".to_owned()),
        ];
        format!("{how} {}{}", path.display(), signs.into_iter().flatten().collect::<String>())
    };
    files.iter().map(line).collect()
}

#[tokio::test]
async fn hooks_and_programs_that_git_ignores_are_listed_and_taken_back() {
    let world = with_hooks();
    let tree = world.tree();
    let keeper = world.keeper("s_1").await;
    let closed = command(&keeper, "a_1", || {
        world.write(".husky/_/pre-commit", "#!/bin/sh\nsteal\n");
        world.write(".husky/_/new", "#!/bin/sh\nsteal\n");
        world.write(".envrc", "steal\n");
        world.remove("node_modules/.bin/run");
        symlink("/evil", world.path("node_modules/.bin/run")).unwrap();
        world.remove("node_modules/tool/run");
        world.write("target/tool", "#!/bin/sh\n");
        world.chmod("target/tool", 0o755);
        world.write("target/data", "not run\n");
    })
    .await;
    assert_eq!(closed.changed, [], "no patch shows any of it");
    let expected = [
        "A .envrc",
        "A .husky/_/new",
        "M .husky/_/pre-commit",
        "M node_modules/.bin/run",
        "D node_modules/tool/run",
        "A target/tool",
    ];
    assert_eq!(later(&keeper).await, expected);
    let dry = keeper.undo(true).await.unwrap();
    assert_eq!((dry.restored.len(), dry.removed.len(), dry.kept.len()), (6, 3, 0));
    let undone = keeper.undo(false).await.unwrap();
    assert_eq!(
        (&undone.restored, &undone.removed, &undone.runs_later),
        (&dry.restored, &dry.removed, &Vec::new())
    );
    world.remove("target/data");
    fs::remove_dir(world.path("target")).unwrap();
    assert_eq!(world.tree(), tree);
    assert_eq!(world.mode("node_modules/tool/run"), 0o755);
    assert_eq!(later(&keeper).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_a_build_makes_is_counted_by_directory_and_is_no_reason_to_look_closer() {
    let world = with_hooks();
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        for number in 0..40 {
            let name = format!("target/debug/deps/app-{number}");
            world.write(&name, "x".repeat(70_000));
            world.chmod(&name, 0o755);
        }
        world.write("src/main", "changed\n");
    })
    .await;
    assert_eq!(later(&keeper).await, ["A target/debug x40 lost"]);
    let undone = keeper.undo(false).await.unwrap();
    assert_eq!((undone.restored, undone.kept), (vec![PathBuf::from("src/main")], Vec::new()));
    assert_eq!((undone.runs_later.len(), undone.runs_later[0].count), (1, 40), "told, and left where it is");
    assert!(world.path("target/debug/deps/app-0").exists());
}

#[tokio::test]
async fn what_was_there_before_and_what_a_person_changed_since_is_left_alone() {
    let world = with_hooks();
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.chmod("local/plain", 0o755);
        world.write(".envrc", "of the run\n");
        world.write(".husky/_/pre-commit", "of the run\n");
    })
    .await;
    assert_eq!(later(&keeper).await, ["A .envrc", "M .husky/_/pre-commit", "A local/plain lost"]);
    world.write(".envrc", "of the person\n");
    let undone = keeper.undo(false).await.unwrap();
    assert_eq!(undone.restored, [PathBuf::from(".husky/_/pre-commit")]);
    assert_eq!(
        undone.kept,
        [(PathBuf::from(".envrc"), "it was changed after the run's last change".to_owned())]
    );
    assert_eq!(
        fs::read(world.path("local/plain")).unwrap(),
        b"text\n",
        "it was no program before, and is not removed"
    );
}

#[tokio::test]
async fn settings_and_hooks_of_the_repository_are_compared_and_only_told_of() {
    let world = with_hooks();
    world.write(".hg/hgrc", "");
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || ()).await;
    assert_eq!(later(&keeper).await, Vec::<String>::new());
    let config = fs::read_to_string(world.path(".git/config")).unwrap();
    command(&keeper, "a_1", || {
        world.write(".git/config", format!("{config}[core]\n\tfsmonitor = steal\n"));
        world.write(".git/hooks/pre-push", "steal\n");
        world.write(".hg/hgrc", "[hooks]\n");
        world.git(["update-ref", "refs/heads/other", "HEAD"]);
    })
    .await;
    let expected = ["M .git/config lost metadata", "A .git/hooks/pre-push lost metadata"];
    let found = later(&keeper).await;
    assert_eq!(
        found.iter().filter(|line| line.contains(".git/")).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert!(found.contains(&"M .hg/hgrc lost metadata".to_owned()), "{found:?}");
    let undone = keeper.undo(false).await.unwrap();
    assert!(
        undone
            .runs_later
            .iter()
            .any(|later| later.kind == LaterKind::Metadata && later.path == Path::new(".git/config"))
    );
    assert!(
        fs::read_to_string(world.path(".git/config")).unwrap().contains("steal"),
        "a person decides about it"
    );
}

#[tokio::test]
async fn what_changes_after_the_last_look_is_not_the_runs_unless_it_goes_on() {
    let world = with_hooks();
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("src/main", "changed\n")).await;
    assert_eq!(later(&keeper).await, Vec::<String>::new());
    world.write(".envrc", "of the person\n");
    assert_eq!(later(&keeper).await, Vec::<String>::new());
    assert_eq!(keeper.undo(true).await.unwrap().restored, [PathBuf::from("src/main")]);
    command(&keeper, "a_1", || ()).await;
    assert_eq!(later(&keeper).await, ["A .envrc"], "the run went on, and who did it cannot be told any more");
}

#[tokio::test]
async fn a_line_about_the_run_is_noted_once() {
    let world = with_hooks();
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || ()).await;
    for line in ["one", "two", "one"] {
        keeper.note("a_1", line).await.unwrap();
    }
    assert_eq!(world.keeper("s_1").await.notes().unwrap(), ["one", "two"]);
}
