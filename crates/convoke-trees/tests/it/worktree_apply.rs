//! Applying a worktree: all of it or nothing, and every conflict named.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use convoke_trees::{Applied, WorktreeError, WorktreeState};

use crate::worktree_repo::{RUN, Repo, files, write};

async fn apply(repo: &Repo) -> Result<Applied, WorktreeError> {
    repo.worktrees().await.apply(RUN, "a_1").await
}

#[tokio::test]
async fn everything_an_agent_did_arrives_and_the_index_stays() {
    let repo = Repo::new();
    repo.write("a", "staged\n");
    repo.git(&["add", "a"]);
    let made = repo.create("a_1").await;
    write(&made.top, "b", "changed\n");
    write(&made.top, "new/deep/file", "new\n");
    fs::remove_file(made.top.join("sub/c")).unwrap();
    fs::set_permissions(made.top.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("b", made.top.join("link")).unwrap();
    write(&made.top, "target/x", "ignored");
    let mut wanted = files(&made.top);
    let index = fs::read(repo.top.join(".git/index")).unwrap();
    wanted.remove(std::path::Path::new("target/x"));
    let applied = apply(&repo).await.unwrap();
    assert_eq!(applied.files, ["a", "b", "link", "new/deep/file", "sub/c"]);
    assert_eq!(files(&repo.top), wanted);
    assert!(!repo.top.join("sub").exists());
    assert_eq!(fs::read(repo.top.join(".git/index")).unwrap(), index);
    let entry = &repo.worktrees().await.list(None).await.unwrap()[0];
    assert_eq!((entry.state, entry.applied), (WorktreeState::Kept, true));
    repo.worktrees().await.drop(RUN, "a_1", false).await.unwrap();
}

#[tokio::test]
async fn text_changed_on_both_sides_is_merged_and_what_is_already_there_is_said() {
    let repo = Repo::new();
    let made = repo.create("a_1").await;
    write(&made.top, "a", "agent\n2\n3\n4\n5\n6\n7\n8\n9\n");
    write(&made.top, "b", "both\n");
    repo.write("a", "1\n2\n3\n4\n5\n6\n7\n8\nperson\n");
    repo.write("b", "both\n");
    let applied = apply(&repo).await.unwrap();
    assert_eq!((applied.files, applied.already), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(fs::read_to_string(repo.top.join("a")).unwrap(), "agent\n2\n3\n4\n5\n6\n7\n8\nperson\n");
}

#[tokio::test]
async fn any_conflict_stops_everything_and_all_of_them_are_listed() {
    let repo = Repo::new();
    for name in ["gone", "edited", "way", "bin"] {
        repo.write(name, [0, 1]);
    }
    repo.commit("more");
    let made = repo.create("a_1").await;
    write(&made.top, "a", "agent\n2\n3\n4\n5\n6\n7\n8\n9\n");
    write(&made.top, "fine", "would be written\n");
    write(&made.top, "both", "of the agent\n");
    write(&made.top, "gone", "changed\n");
    write(&made.top, "bin", [0, 2]);
    write(&made.top, "dir/file", "x");
    write(&made.top, "linked/file", "x");
    write(&made.top, "taken", "x");
    fs::remove_file(made.top.join("edited")).unwrap();
    repo.write("a", "person\n2\n3\n4\n5\n6\n7\n8\n9\n");
    repo.write("both", "of the person\n");
    repo.write("edited", "changed\n");
    repo.write("bin", [0, 3]);
    repo.write("dir", "a file\n");
    repo.write("taken/other", "a directory\n");
    fs::remove_file(repo.top.join("gone")).unwrap();
    symlink(&repo.root, repo.top.join("linked")).unwrap();
    let before = repo.person();
    let Err(WorktreeError::Conflict(conflict)) = apply(&repo).await else { panic!() };
    let listed: Vec<&str> = conflict.files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(listed, ["a", "bin", "both", "dir/file", "edited", "gone", "linked/file", "taken"]);
    assert!(conflict.to_string().starts_with("8 conflicts\n  a: both sides"), "{conflict}");
    assert_eq!(repo.person(), before);
    assert!(!repo.root.join("file").exists());
}

#[tokio::test]
async fn a_directory_and_a_file_can_take_each_others_place() {
    let repo = Repo::new();
    let made = repo.create("a_1").await;
    fs::remove_file(made.top.join("a")).unwrap();
    write(&made.top, "a/now/a/directory", "x");
    fs::remove_dir_all(made.top.join("sub")).unwrap();
    write(&made.top, "sub", "now a file\n");
    let wanted = files(&made.top);
    apply(&repo).await.unwrap();
    assert_eq!(files(&repo.top), wanted);
}

#[tokio::test]
async fn what_was_applied_is_not_applied_twice_and_later_work_is_brought_over() {
    let repo = Repo::new();
    let made = repo.create("a_1").await;
    write(&made.top, "a", "first\n");
    apply(&repo).await.unwrap();
    let again = apply(&repo).await.unwrap();
    assert_eq!((again.files.len(), again.already.len()), (0, 1));
    repo.write("b", "of the person\n");
    repo.commit("the person goes on");
    write(&made.top, "a", "second\n");
    assert!(!repo.worktrees().await.list(None).await.unwrap()[0].applied);
    assert_eq!(apply(&repo).await.unwrap().files, ["a"]);
    assert_eq!(fs::read_to_string(repo.top.join("a")).unwrap(), "second\n");
    assert_eq!(fs::read_to_string(repo.top.join("b")).unwrap(), "of the person\n");
    // Taken back by the person, it can be applied again.
    repo.git(&["checkout", "-q", "."]);
    repo.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(apply(&repo).await.unwrap().files, ["a"]);
}

#[tokio::test]
async fn an_unchanged_worktree_applies_nothing() {
    let repo = Repo::new();
    repo.create("a_1").await;
    assert_eq!(apply(&repo).await.unwrap(), Applied::default());
    assert!(matches!(repo.worktrees().await.apply(RUN, "a_2").await, Err(WorktreeError::Unknown { .. })));
}
