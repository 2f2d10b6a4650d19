//! What undo cannot do, or could do wrong: what it removes can be brought back, what was never kept is named,
//! and what is too large is not copied.

use std::fs::{self, File};
use std::process::Command;

use convoke_trees::Error;

use crate::world::{World, changes, command, undo};

/// Runs the line that an undo gave, with the name of a file in its place.
fn bring_back(line: &str, name: &str) {
    let line = line.replace("FILE", name);
    let output = Command::new("sh").args(["-c", line.as_str()]).current_dir("/").output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn what_an_undo_removed_can_be_brought_back() {
    let below = World::repository(&[("it's here/kept", "1\n"), (".gitattributes", "* text eol=crlf\n")]);
    let below = {
        let dir = below.path("it's here");
        below.at(dir)
    };
    for world in [World::repository(&[("kept", "1\n")]), World::plain(), below] {
        world.write("kept", "1\n");
        let keeper = world.keeper("s_1").await;
        command(&keeper, "a_1", || {
            world.write("kept", "2\n");
            world.write("notes/mine", "the person wrote this while a command ran\n");
        })
        .await;
        let undone = keeper.undo(false).await.unwrap();
        assert_eq!(undone.restored.len(), 2);
        assert!(!world.path("notes").exists());
        let back = undone.back.unwrap();
        bring_back(&back, "notes/mine");
        assert_eq!(world.read("notes/mine"), b"the person wrote this while a command ran\n");
        assert_eq!(world.read("kept"), b"1\n");
        bring_back(&back, "kept");
        assert_eq!(world.read("kept"), b"2\n");
    }
}

#[tokio::test]
async fn what_background_jobs_wrote_between_two_windows_is_their_agents() {
    let world = World::repository(&[("a", "0\n"), ("b", "0\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || world.write("a", "1\n")).await;
    world.write("a", "2, a job's\n");
    world.write("made", "a job's\n");
    keeper.claim("a_1").await.unwrap();
    keeper.open_window("a_2").await.unwrap();
    // Within a window it is known which agent makes the changes.
    world.write("b", "1\n");
    keeper.claim("a_1").await.unwrap();
    keeper.close_window("a_2", "").await.unwrap();
    world.write("b", "2, the person's\n");
    assert_eq!(changes(&keeper).await, ["Modified a a_1", "Modified b a_2", "Added made a_1"]);
    let (restored, kept) = undo(&keeper).await;
    assert_eq!(restored, ["a", "made"]);
    assert_eq!(kept, ["b: it was changed after the run's last change"]);
}

#[tokio::test]
async fn what_could_not_be_kept_is_remembered_over_the_run_and_told_by_undo() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.write("a", "1\n");
        File::create(world.path("large")).unwrap().set_len((100 << 20) + 1).unwrap();
    })
    .await;
    command(&keeper, "a_1", || {
        fs::remove_file(world.path("large")).unwrap();
        world.git(["init", "-q", "nested"]);
    })
    .await;
    drop(keeper);
    let keeper = world.keeper("s_1").await;
    let shown = |out: &[convoke_trees::LeftOut]| out.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected = ["large: larger than 100 MiB", "nested: a repository of its own"];
    assert_eq!(shown(&keeper.left_out().unwrap()), expected);
    for dry in [true, false, false] {
        assert_eq!(shown(&keeper.undo(dry).await.unwrap().not_kept), expected);
    }
    assert_eq!(world.keeper("s_2").await.left_out().unwrap(), []);
}

#[tokio::test]
async fn a_huge_directory_without_a_repository_is_not_copied_unasked() {
    let world = World::plain();
    for number in 0..11 {
        File::create(world.path(format!("part{number}"))).unwrap().set_len(100 << 20).unwrap();
    }
    let keeper = world.keeper("s_1").await;
    for error in [keeper.before().await.unwrap_err(), keeper.open_window("a_1").await.unwrap_err()] {
        assert!(matches!(error, Error::TooLarge { files: 11, .. }), "{error}");
        let text = error.to_string();
        for part in ["11 files with 1100 MiB", "1024 MiB", "git init", "--sandbox read-only"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // What is not kept for its size does not count.
    for number in 1..11 {
        File::create(world.path(format!("part{number}"))).unwrap().set_len((100 << 20) + 1).unwrap();
    }
    assert_eq!(keeper.before().await.unwrap().left_out.len(), 10);
}
