//! Undo: what is still as the run left it is restored, and everything else is named and left alone.

use std::fs;
use std::os::unix::fs::symlink;

use convoke_trees::Undone;

use crate::world::{World, changes, command, undo};

#[tokio::test]
async fn every_kind_of_change_is_taken_back() {
    for world in [World::repository(&[]), World::plain()] {
        world.write("modified", "old\n");
        world.write("crlf", "old\r\nlines\r\n");
        world.write("deleted/deep/file", "old\n");
        world.write("mode.sh", "x\n");
        world.write("private", "secret\n");
        world.chmod("private", 0o600);
        world.write("becomes_dir", "file\n");
        world.write("becomes_file/inside", "file\n");
        world.write("becomes_link", "file\n");
        symlink("old target", world.path("link")).unwrap();
        symlink("old target", world.path("unlinked")).unwrap();
        world.write("empty", "");
        let tree = world.tree();
        let keeper = world.keeper("s_1").await;
        let closed = command(&keeper, "a_1", || {
            world.write("modified", "new\n");
            world.write("crlf", "old\nlines\n");
            fs::remove_dir_all(world.path("deleted")).unwrap();
            world.chmod("mode.sh", 0o755);
            world.write("private", "changed\n");
            world.remove("becomes_dir");
            world.write("becomes_dir/a/b", "now a directory\n");
            fs::remove_dir_all(world.path("becomes_file")).unwrap();
            world.write("becomes_file", "now a file\n");
            for name in ["becomes_link", "link", "unlinked"] {
                world.remove(name);
            }
            symlink("modified", world.path("becomes_link")).unwrap();
            symlink("new target", world.path("link")).unwrap();
            world.write("made/by/run", "new\n");
            world.write("empty", "not any more");
        })
        .await;
        let dry = keeper.undo(true).await.unwrap();
        assert_eq!(dry.kept, []);
        let undone = keeper.undo(false).await.unwrap();
        assert_eq!((&undone.restored, &undone.kept), (&dry.restored, &dry.kept));
        assert_eq!((undone.back.is_some(), dry.back), (true, None));
        assert_eq!(undone.restored.len(), closed.changed.len());
        assert_eq!(world.tree(), tree);
        assert_eq!(world.mode("private"), 0o600);
        assert_eq!(keeper.undo(false).await.unwrap(), Undone::default());
    }
}

#[tokio::test]
async fn what_somebody_else_changed_since_is_left_alone() {
    let names = ["edited", "moded", "removed", "replaced", "linked", "same"];
    let world = World::repository(&names.map(|name| (name, "old\n")));
    world.write("deleted", "old\n");
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        for name in names {
            world.write(name, "the run's\n");
        }
        world.write("added", "the run's\n");
        world.write("dir/added", "the run's\n");
        world.remove("deleted");
    })
    .await;
    world.write("edited", "the person's\n");
    world.chmod("moded", 0o755);
    world.remove("removed");
    world.remove("replaced");
    fs::create_dir(world.path("replaced")).unwrap();
    world.remove("linked");
    symlink("edited", world.path("linked")).unwrap();
    world.write("same", "old\n");
    world.write("added", "the person's\n");
    world.write("deleted", "the person's\n");
    fs::rename(world.path("dir"), world.path("elsewhere")).unwrap();
    symlink("elsewhere", world.path("dir")).unwrap();
    let tree = world.tree();
    let (restored, kept) = undo(&keeper).await;
    assert_eq!(restored, [""; 0]);
    let expected = [
        "added: it was changed after the run's last change",
        "deleted: something else is in its place now",
        "dir/added: a file or a link is in the place of its directory now",
        "edited: it was changed after the run's last change",
        "linked: it was changed after the run's last change",
        "moded: it was changed after the run's last change",
        "removed: it is not there any more",
        "replaced: a directory is in its place now",
        "same: it is already as it was before the run",
    ];
    assert_eq!(kept, expected);
    assert_eq!(world.tree(), tree);
}

#[tokio::test]
async fn a_file_that_the_person_changed_between_two_commands_is_left_alone() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "1\n")).await;
    world.write("a", "2, the person's\n");
    command(&keeper, "a_1", || world.write("a", "3\n")).await;
    assert_eq!(changes(&keeper).await, ["Modified a a_1 mixed"]);
    assert_eq!(
        undo(&keeper).await.1,
        ["a: a person or another program changed it between two changes of the run"]
    );
    assert_eq!(world.read("a"), b"3\n");
}

#[tokio::test]
async fn a_dry_run_touches_nothing() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "1\n")).await;
    let refs = world.git(["for-each-ref"]);
    assert_eq!(keeper.undo(true).await.unwrap().restored.len(), 1);
    assert_eq!((world.read("a"), world.git(["for-each-ref"])), (b"1\n".to_vec(), refs));
}

#[tokio::test]
async fn an_undo_that_was_cut_off_is_repeated() {
    let world = World::repository(&[("a", "0\n"), ("b", "0\n"), ("d/c", "0\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        for name in ["a", "b", "d/c"] {
            world.write(name, "1\n");
        }
    })
    .await;
    drop(keeper);
    // As a crash leaves it: one file is restored, the next is written and has not got its name, and the mark
    // stands.
    world.write("a", "0\n");
    world.write(".convoke-undo-s_1", "0\n");
    let runs = world.places.state.join("trees/runs/s_1");
    let record = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    fs::write(record.join("window"), "undo").unwrap();
    let keeper = world.keeper("s_1").await;
    assert_eq!(changes(&keeper).await, ["Modified b a_1", "Modified d/c a_1"]);
    assert_eq!(undo(&keeper).await, (vec!["b".to_owned(), "d/c".to_owned()], vec![]));
    assert_eq!(world.git(["status", "--porcelain"]), b"");
}

#[tokio::test]
async fn work_after_an_undo_can_be_undone_again() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "1\n")).await;
    undo(&keeper).await;
    world.write("a", "the person's\n");
    command(&keeper, "a_2", || world.write("a", "2\n")).await;
    assert_eq!(changes(&keeper).await, ["Modified a a_2"]);
    assert_eq!(undo(&keeper).await.0, ["a"]);
    assert_eq!(world.read("a"), b"the person's\n");
}

/// An agent that edits `.gitignore` brings files into view that the person had all along.
#[tokio::test]
async fn files_that_were_ignored_are_never_removed() {
    let world = World::repository(&[(".gitignore", ".env\nbuild/\n*.key\n"), ("sub/.gitignore", "notes\n")]);
    world.write(".env", "the person's secret\n");
    world.write("build/out", "the person's build\n");
    world.write("sub/notes", "the person's notes\n");
    world.write("sub/my.key", "the person's key\n");
    world.write("sub/:(glob)*\n\u{e4}.key", "the person's key\n");
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.write(".gitignore", "!.env\n");
        world.remove("sub/.gitignore");
        world.write("new", "the run's\n");
    })
    .await;
    assert_eq!(
        changes(&keeper).await,
        ["Modified .gitignore a_1", "Added new a_1", "Deleted sub/.gitignore a_1"]
    );
    command(&keeper, "a_1", || world.write(".env", "changed\n")).await;
    assert_eq!(undo(&keeper).await.0, [".gitignore", "new", "sub/.gitignore"]);
    for name in [".env", "build/out", "sub/notes", "sub/my.key", "sub/:(glob)*\n\u{e4}.key"] {
        assert!(world.path(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn directories_that_were_there_before_stay() {
    let world = World::repository(&[("kept/file", "x\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.write("kept/new", "x\n");
        world.write("made/new", "x\n");
        world.write("used/new", "x\n");
    })
    .await;
    world.remove("kept/file");
    world.write("used/by_person", "x\n");
    undo(&keeper).await;
    let places: Vec<bool> = ["kept", "made", "used"].iter().map(|name| world.path(name).exists()).collect();
    assert_eq!(places, [true, false, true]);
}

#[tokio::test]
async fn an_undo_tells_removed_files_from_restored_ones_and_that_ignore_rules_were_changed() {
    let world = World::repository(&[("a", "1\n"), ("gone", "2\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.write("a", "changed\n");
        world.write("new", "new\n");
        world.remove("gone");
    })
    .await;
    for dry in [true, false] {
        let undone = keeper.undo(dry).await.unwrap();
        assert_eq!(undone.restored, ["a", "gone", "new"].map(std::path::PathBuf::from));
        assert_eq!(undone.removed, [std::path::PathBuf::from("new")].into());
        assert!(!undone.rules_changed);
    }
    command(&keeper, "a_1", || {
        world.write(".gitignore", "hidden\n");
        world.write("hidden", "nobody sees it\n");
    })
    .await;
    assert!(keeper.undo(true).await.unwrap().rules_changed);
    assert!(keeper.undo(false).await.unwrap().rules_changed);
    assert!(!keeper.undo(false).await.unwrap().rules_changed);
}

#[tokio::test]
async fn a_deleted_file_comes_back_with_the_permissions_that_it_had() {
    let world = World::repository(&[("key", "secret\n"), ("tool", "x\n"), ("open", "1\n")]);
    world.chmod("key", 0o600);
    world.chmod("tool", 0o700);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("other", "1\n")).await;
    // A file is made from outside of the run while the run goes on.
    world.write("late", "secret too\n");
    world.chmod("late", 0o640);
    command(&keeper, "a_1", || ["key", "tool", "open", "late"].iter().for_each(|name| world.remove(name)))
        .await;
    assert_eq!(undo(&keeper).await.1, Vec::<String>::new());
    let modes = ["key", "tool", "late"].map(|name| world.mode(name));
    assert_eq!(modes, [0o600, 0o700, 0o640]);
    assert_eq!(world.mode("open") & 0o600, 0o600);
}
