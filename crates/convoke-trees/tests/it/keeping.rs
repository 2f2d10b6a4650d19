//! Windows and steps: which agent changed what, while a person works in the same tree.

use std::fs;

use convoke_trees::{DiffForm, Error, Keeper, forget};

use crate::world::{World, changes, command, names, undo};

/// Twelve files, a person with staged, unstaged and untracked changes of their own, and a run that edits the
/// twelve.
#[tokio::test]
async fn a_run_that_edits_twelve_files_is_shown_and_taken_back_exactly() {
    let files: Vec<(String, String)> =
        (0..12).map(|n| (format!("src/f{n}.txt"), format!("line one\nline {n}\n"))).collect();
    let mut all: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    all.extend([
        ("mine/staged", "s\n"),
        ("mine/unstaged", "u\n"),
        ("mine/both", "b\n"),
        ("mine/gone", "g\n"),
        (".gitignore", "*.o\n"),
    ]);
    let world = World::repository(&all);
    world.write("mine/staged", "stashed\n");
    world.git(["stash", "-q"]);
    world.write("mine/staged", "s staged\n");
    world.git(["add", "mine/staged"]);
    world.write("mine/unstaged", "u unstaged\n");
    world.write("mine/both", "b staged\n");
    world.git(["add", "mine/both"]);
    world.write("mine/both", "b unstaged\n");
    world.remove("mine/gone");
    world.write("mine/untracked", "new\n");
    world.write("mine/ignored.o", "object\n");
    // Two of the twelve hold changes of the person's already.
    world.write("src/f0.txt", "line one\nline 0\nthe person's line\n");
    world.write("src/f1.txt", "line one, staged\nline 1\n");
    world.git(["add", "src/f1.txt"]);
    let tree = world.tree();
    let index = world.read(".git/index");
    let refs = || {
        let lines = String::from_utf8(world.git(["for-each-ref"])).unwrap();
        lines.lines().filter(|line| !line.contains("refs/convoke/")).map(str::to_owned).collect::<Vec<_>>()
    };
    let own_refs = refs();
    let status = world.git(["status", "--porcelain", "-z"]);

    let keeper = world.keeper("s_1").await;
    assert!(keeper.before().await.unwrap().first);
    for n in 0..12 {
        let agent = if n % 2 == 0 { "a_even" } else { "a_odd" };
        let closed = command(&keeper, agent, || {
            let name = format!("src/f{n}.txt");
            let mut text = world.read(&name);
            text.extend_from_slice(b"the run's line\n");
            world.write(&name, text);
        });
        assert_eq!(closed.await.changed.len(), 1);
        if n == 5 {
            // The person goes on meanwhile.
            world.write("mine/later", "typed while the run was at work\n");
        }
    }

    let mut expected: Vec<String> = (0..12)
        .map(|n| format!("Modified src/f{n}.txt {}", if n % 2 == 0 { "a_even" } else { "a_odd" }))
        .collect();
    expected.sort();
    assert_eq!(changes(&keeper).await, expected);
    let patch = String::from_utf8(keeper.diff(DiffForm::Patch).await.unwrap()).unwrap();
    assert_eq!(patch.matches("diff --git ").count(), 12);
    assert_eq!(patch.matches("\n+the run's line").count(), 12);
    assert!(!patch.contains("mine/") && !patch.contains("\n+the person's line"), "{patch}");

    let (restored, kept) = undo(&keeper).await;
    assert_eq!((restored.len(), kept.len()), (12, 0));
    world.remove("mine/later");
    assert_eq!(world.tree(), tree);
    assert!(world.read(".git/index") == index, "the person's index was written");
    assert_eq!(refs(), own_refs);
    assert_eq!(world.git(["status", "--porcelain", "-z"]), status);
    assert!(keeper.undo(false).await.unwrap().nothing_left());
    assert_eq!(changes(&keeper).await, [""; 0]);
}

#[tokio::test]
async fn what_changes_between_two_windows_is_not_the_runs() {
    let world = World::repository(&[("a", "1\n"), ("b", "1\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "2\n")).await;
    world.write("b", "the person's\n");
    world.write("c", "the person's\n");
    command(&keeper, "a_1", || world.write("d", "1\n")).await;
    assert_eq!(changes(&keeper).await, ["Modified a a_1", "Added d a_1"]);
    assert_eq!(names(&keeper).await, "M\ta\nA\td\n");
    let log = String::from_utf8(world.git(["log", "--format=%s", "refs/convoke/s_1/after"])).unwrap();
    let subjects: Vec<&str> = log.lines().collect();
    assert_eq!(subjects[..3], ["agent a_1", "outside", "agent a_1"]);
    assert!(subjects[3].starts_with("before "));
}

#[tokio::test]
async fn a_command_that_changes_nothing_is_no_step() {
    let world = World::repository(&[("a", "1\n")]);
    let keeper = world.keeper("s_1").await;
    let closed = command(&keeper, "a_1", || world.write("a", "1\n")).await;
    assert_eq!((closed.changed.len(), closed.left_out.len()), (0, 0));
    assert_eq!(world.git(["for-each-ref", "refs/convoke/s_1/after"]), b"");
    assert_eq!(names(&keeper).await, "");
}

#[tokio::test]
async fn the_tree_before_is_kept_once_and_found_again() {
    let world = World::repository(&[("a", "1\n")]);
    let keeper = world.keeper("s_1").await;
    assert!(keeper.before().await.unwrap().first);
    command(&keeper, "a_1", || world.write("a", "2\n")).await;
    drop(keeper);
    let keeper = world.keeper("s_1").await;
    assert!(!keeper.before().await.unwrap().first);
    command(&keeper, "a_2", || world.write("a", "3\n")).await;
    assert_eq!(changes(&keeper).await, ["Modified a a_1,a_2"]);
    assert_eq!(undo(&keeper).await.0, ["a"]);
    assert_eq!(world.read("a"), b"1\n");
}

#[tokio::test]
async fn what_a_crash_cut_off_is_the_agents_and_not_the_persons() {
    let world = World::repository(&[("a", "1\n"), ("b", "1\n")]);
    let keeper = world.keeper("s_1").await;
    keeper.open_window("a_1").await.unwrap();
    world.write("a", "half\n");
    drop(keeper);
    // Looking at a run that crashed, and going on with it, both find what the command had changed.
    assert_eq!(changes(&world.keeper("s_1").await).await, ["Modified a a_1"]);
    let keeper = world.keeper("s_1").await;
    keeper.open_window("a_2").await.unwrap();
    world.write("b", "half\n");
    drop(keeper);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_3", || world.write("c", "whole\n")).await;
    assert_eq!(changes(&keeper).await, ["Modified a a_1", "Modified b a_2", "Added c a_3"]);
    let log = String::from_utf8(world.git(["log", "--format=%s", "refs/convoke/s_1/after"])).unwrap();
    assert_eq!(log.lines().filter(|line| line.ends_with(" (interrupted)")).count(), 2, "{log}");
}

#[tokio::test]
async fn marks_that_a_stop_cut_off_at_any_moment_lose_nothing_and_blame_nobody_else() {
    let world = World::repository(&[("a", "0\n"), ("mine", "mine\n")]);
    let before = world.tree();
    let mut keeper = world.keeper("s_1").await;
    let mut cut = 0;
    for round in 0_u64..40 {
        let moment = std::time::Duration::from_millis(round * 7 % 41);
        // What is dropped half-way is what a stop does to it; a command runs only after a whole mark.
        if tokio::time::timeout(moment, keeper.open_window("a_1")).await.is_err() {
            cut += 1;
            keeper.open_window("a_1").await.unwrap();
        }
        world.write("a", format!("{round}\n"));
        world.write(format!("new-{round}"), "x\n");
        if tokio::time::timeout(moment, keeper.close_window("a_1", "")).await.is_err() {
            cut += 1;
            if round % 3 == 0 {
                drop(keeper);
                keeper = world.keeper("s_1").await;
            }
        }
    }
    assert!(cut > 10, "only {cut} marks were cut off");
    keeper.open_window("a_1").await.unwrap();
    keeper.close_window("a_1", "").await.unwrap();
    let changed = keeper.changes().await.unwrap();
    assert_eq!(changed.len(), 41);
    assert!(changed.iter().all(|file| file.agents == ["a_1"] && !file.mixed), "{changed:?}");
    assert_eq!(undo(&keeper).await.1, Vec::<String>::new());
    assert_eq!(world.tree(), before);
}

#[tokio::test]
async fn a_run_at_work_elsewhere_is_looked_at_and_not_disturbed() {
    let world = World::repository(&[("a", "1\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "2\n")).await;
    keeper.open_window("a_1").await.unwrap();
    world.write("a", "3\n");
    let other = world.keeper("s_1").await;
    assert_eq!(changes(&other).await, ["Modified a a_1"]);
    assert!(matches!(other.undo(false).await, Err(Error::Busy { .. })));
    assert!(matches!(other.open_window("a_2").await, Err(Error::Busy { .. })));
    assert!(matches!(forget(&world.places, &world.dir, "s_1").await, Err(Error::Busy { .. })));
    assert!(matches!(keeper.undo(false).await, Err(Error::Busy { .. })));
    assert_eq!(keeper.close_window("a_1", "").await.unwrap().changed.len(), 1);
    assert_eq!(undo(&other).await.0, ["a"]);
    assert_eq!(world.read("a"), b"1\n");
}

#[tokio::test]
async fn many_runs_in_one_repository_do_not_disturb_each_other() {
    let world = World::repository(&[("shared", "1\n")]);
    let mut work = tokio::task::JoinSet::new();
    for run in 0..8 {
        let places = world.places.clone();
        let dir = world.dir.clone();
        work.spawn(async move {
            let keeper = Keeper::open(&places, &dir, &format!("s_{run}")).await.unwrap();
            for turn in 0..3 {
                keeper.open_window("a_1").await.unwrap();
                fs::write(dir.join(format!("of_{run}_{turn}")), "x").unwrap();
                keeper.close_window("a_1", "").await.unwrap();
            }
            keeper
                .changes()
                .await
                .unwrap()
                .into_iter()
                .map(|file| file.path.display().to_string())
                .collect::<Vec<_>>()
        });
    }
    let found = work.join_all().await;
    for run in 0..8 {
        // What another run writes during a window cannot be told from the window's own; but nothing of one's
        // own is missed.
        let own = |names: &&Vec<String>| (0..3).all(|turn| names.contains(&format!("of_{run}_{turn}")));
        assert!(found.iter().any(|names| own(&names)), "run {run}: {found:?}");
    }
    for run in 0..8 {
        world.keeper(&format!("s_{run}")).await.undo(false).await.unwrap();
    }
    assert_eq!(world.tree().len(), 1);
}

#[tokio::test]
async fn what_was_kept_survives_gits_cleaning_up() {
    let world = World::repository(&[("a", "1\n")]);
    world.write("a", "uncommitted\n");
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "2\n")).await;
    world.git(["reflog", "expire", "--expire=now", "--all"]);
    world.git(["gc", "-q", "--prune=now"]);
    assert_eq!(undo(&keeper).await.0, ["a"]);
    assert_eq!(world.read("a"), b"uncommitted\n");
}

#[tokio::test]
async fn what_is_forgotten_and_cleaned_up_does_not_harm_the_next_run() {
    let world = World::repository(&[("a", "1\n")]);
    world.write("a", "uncommitted\n");
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "2\n")).await;
    undo(&keeper).await;
    drop(keeper);
    forget(&world.places, &world.dir, "s_1").await.unwrap();
    assert_eq!(world.git(["for-each-ref", "refs/convoke"]), b"");
    world.git(["gc", "-q", "--prune=now"]);
    assert!(matches!(world.keeper("s_1").await.changes().await, Err(Error::NotKept { .. })));
    // What is remembered of the files still names objects that are gone.
    let keeper = world.keeper("s_2").await;
    command(&keeper, "a_1", || world.write("a", "3\n")).await;
    assert_eq!(undo(&keeper).await.0, ["a"]);
    assert_eq!(world.read("a"), b"uncommitted\n");
    forget(&world.places, &world.dir, "never").await.unwrap();
}

#[tokio::test]
async fn a_run_without_git_is_forgotten_without_harm_to_another() {
    let world = World::plain();
    world.write("a", "1\n");
    for run in ["s_1", "s_2"] {
        command(&world.keeper(run).await, "a_1", || world.write("a", format!("{run}\n"))).await;
    }
    forget(&world.places, &world.dir, "s_1").await.unwrap();
    assert!(matches!(world.keeper("s_1").await.changes().await, Err(Error::NotKept { .. })));
    assert_eq!(undo(&world.keeper("s_2").await).await.0, ["a"]);
    assert_eq!(world.read("a"), b"s_1\n");
}

#[tokio::test]
async fn names_that_could_lead_elsewhere_are_refused() {
    let world = World::repository(&[("a", "1\n")]);
    for name in ["", "..", "a/b", "-x", "a b", "a\n"] {
        assert!(
            matches!(Keeper::open(&world.places, &world.dir, name).await, Err(Error::BadName { .. })),
            "{name:?}"
        );
        let keeper = world.keeper("s_1").await;
        assert!(matches!(keeper.open_window(name).await, Err(Error::BadName { .. })), "{name:?}");
    }
}

#[tokio::test]
async fn a_patch_is_taken_by_git_apply() {
    let world = World::repository(&[
        ("text", "one\ntwo\n"),
        ("gone", "x\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("d/e", "deep\n"),
    ]);
    world.write("binary", [0, 1, 2, 255]);
    world.commit("second");
    let copy = world.beside("copy");
    world.git(["clone", "-q", ".", copy.to_str().unwrap()]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.write("text", "one\r\ntwo\r\nno newline");
        world.write("binary", [0, 9, 9, 255, 0]);
        world.write("new binary", [0, 7, 0]);
        world.remove("gone");
        world.chmod("run.sh", 0o755);
        world.remove("d/e");
        std::os::unix::fs::symlink("nowhere", world.path("link")).unwrap();
    })
    .await;
    let stat = String::from_utf8(keeper.diff(DiffForm::Stat).await.unwrap()).unwrap();
    assert!(
        stat.contains("7 files changed") && stat.contains("mode change 100644 => 100755 run.sh"),
        "{stat}"
    );
    let patch = world.beside("patch");
    fs::write(&patch, keeper.diff(DiffForm::Patch).await.unwrap()).unwrap();
    world.git_in(&copy, [std::ffi::OsStr::new("apply"), patch.as_os_str()]);
    let copied = world.at(copy);
    let tree = copied.tree();
    let work = copied.beside("work");
    let original = copied.at(work);
    assert_eq!(
        original.tree().into_iter().filter(|(_, kind, _)| kind != "directory").collect::<Vec<_>>(),
        tree
    );
}
