//! Worktrees: cut from a recorded base, found again, stored before they go.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use convoke_trees::{Base, Error, Finished, WorktreeError, WorktreeState, Worktrees};

use crate::worktree_repo::{RUN, Repo, files, git_in, names, write};

#[tokio::test]
async fn a_clean_checkout_is_cut_at_head_and_git_finds_it_clean() {
    let repo = Repo::new();
    let person = repo.person();
    let made = repo.create("a_1").await;
    assert_eq!(made.base, Base::Head { commit: repo.git(&["rev-parse", "HEAD"]).trim().to_owned() });
    assert!(made.base.to_string().starts_with("HEAD ("), "{}", made.base);
    assert_eq!(files(&made.top), files(&repo.top));
    assert_eq!(git_in(&made.top, &["status", "--porcelain"]), "");
    assert_eq!(git_in(&made.top, &["rev-parse", "refs/convoke/wf_1/a_1/base"]).trim(), made.base.commit());
    assert_eq!(repo.person(), person);
}

#[tokio::test]
async fn a_dirty_checkout_is_cut_at_a_snapshot_of_everything_but_ignored_files() {
    let repo = Repo::new();
    repo.write("a", "staged\n");
    repo.git(&["add", "a"]);
    repo.write("a", "staged, then changed\n");
    repo.write("untracked", "new\n");
    repo.write("target/built", "ignored\n");
    repo.write("forced.o", "ignored by pattern, tracked by force\n");
    repo.git(&["add", "-f", "forced.o"]);
    fs::remove_file(repo.top.join("b")).unwrap();
    let person = repo.person();
    let made = repo.create("a_1").await;
    assert!(matches!(made.base, Base::Snapshot { .. }), "{:?}", made.base);
    let commit = &made.base.commit()[..12];
    let head = repo.git(&["rev-parse", "HEAD"]);
    let expected =
        format!("a snapshot of the uncommitted changes ({commit}), on top of HEAD ({})", &head[..12]);
    assert_eq!(made.base.to_string(), expected);
    let mut wanted = files(&repo.top);
    wanted.remove(Path::new("target/built"));
    assert_eq!(files(&made.top), wanted);
    assert_eq!(repo.person(), person);
    assert_eq!(repo.finish("a_1").await, Finished::Removed);
}

#[tokio::test]
async fn the_same_names_lead_to_the_same_worktree_with_its_work() {
    let repo = Repo::new();
    let made = repo.create("a_1").await;
    write(&made.top, "mine", "work");
    repo.write("b", "the person went on\n");
    let again = repo.create("a_1").await;
    assert_eq!((again.base, again.path), (made.base, made.path));
    assert_eq!(fs::read(made.top.join("mine")).unwrap(), b"work");
    assert_ne!(repo.create("a_2").await.top, made.top);
}

#[tokio::test]
async fn a_subdirectory_has_its_counterpart_in_the_worktree() {
    let repo = Repo::new();
    let below = Worktrees::open(repo.places(), &repo.top.join("sub")).await.unwrap();
    let made = below.create(RUN, "a_1").await.unwrap();
    assert_eq!(made.path, made.top.join("sub"));
    assert_eq!(files(&made.top), files(&repo.top));
    write(&made.path, "c", "changed\n");
    let Finished::Kept { files, .. } = below.finish(RUN, "a_1").await.unwrap() else { panic!() };
    assert_eq!(files, ["sub/c"]);
}

#[tokio::test]
async fn an_unchanged_worktree_goes_without_a_trace() {
    let repo = Repo::new();
    let refs = repo.git(&["for-each-ref"]);
    let made = repo.create("a_1").await;
    assert_eq!(repo.finish("a_1").await, Finished::Removed);
    assert!(!made.top.exists());
    assert_eq!(repo.git(&["for-each-ref"]), refs);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repo.finish("a_1").await, Finished::Removed);
}

#[tokio::test]
async fn changed_content_of_every_kind_is_stored_byte_for_byte_before_the_directory_goes() {
    let repo = Repo::new();
    // Attributes that would have git change the bytes on their way in or out.
    repo.write(".gitattributes", "* text=auto eol=crlf ident\n*.u16 working-tree-encoding=UTF-16\n");
    repo.write("crlf", "$Id$\r\nb\r\n");
    repo.commit("attributes");
    repo.write("forced.o", "tracked by force\n");
    repo.git(&["add", "-f", "forced.o"]);
    let made = repo.create("a_1").await;
    assert_eq!(files(&made.top), files(&repo.top));
    write(&made.top, "mixed", "a\r\nb\nc\r");
    write(&made.top, "x.u16", [0xff, 0xfe, 0x41]);
    write(&made.top, "with space/-dash/\"quote\"\n", "odd");
    write(&made.top, "binary", [0, 255, 13, 10]);
    write(&made.top, "forced.o", "changed though ignored");
    fs::write(made.top.join(OsStr::from_bytes(b"not \xff utf-8")), "x").unwrap();
    fs::set_permissions(made.top.join("b"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(made.top.join("a")).unwrap();
    fs::remove_dir_all(made.top.join("sub")).unwrap();
    symlink("/etc/passwd", made.top.join("sub")).unwrap();
    let done = files(&made.top);
    let Finished::Kept { branch, commit, ignored, path, .. } = repo.finish("a_1").await else { panic!() };
    assert_eq!((branch.as_deref(), ignored.len(), path), (Some("convoke/wf_1/a_1"), 0, None));
    assert!(!made.top.exists());
    for name in ["convoke/wf_1/a_1", "refs/convoke/wf_1/a_1/work"] {
        assert_eq!(repo.git(&["rev-parse", name]).trim(), commit);
    }
    repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(files(&repo.create("a_1").await.top), done);
}

#[tokio::test]
async fn ignored_files_are_listed_and_kept_until_dropped() {
    let repo = Repo::new();
    let made = repo.create("a_1").await;
    write(&made.top, "target/debug/big", "built");
    write(&made.top, "sub/x.o", "object");
    let Finished::Unchanged { ignored, path } = repo.finish("a_1").await else { panic!() };
    assert_eq!((names(&ignored), path), (vec!["sub/x.o".to_owned(), "target/".to_owned()], made.top.clone()));
    write(&made.top, "a", "changed\n");
    let Finished::Kept { ignored, path, files, .. } = repo.finish("a_1").await else { panic!() };
    assert_eq!(
        (names(&ignored), path),
        (vec!["sub/x.o".to_owned(), "target/".to_owned()], Some(made.top.clone()))
    );
    assert_eq!(files, ["a"]);
    assert_eq!(fs::read(made.top.join("target/debug/big")).unwrap(), b"built");
    let dropped = repo.worktrees().await.drop(RUN, "a_1", true).await.unwrap();
    assert_eq!(names(&dropped.ignored), ["sub/x.o", "target/"]);
    assert!(!made.top.exists());
    assert_eq!(repo.git(&["for-each-ref", "refs/convoke", "refs/heads/convoke"]), "");
    assert_eq!(repo.git(&["show", &format!("{}:a", dropped.commit.unwrap())]), "changed\n");
}

#[tokio::test]
async fn list_diff_and_drop_tell_what_there_is() {
    let repo = Repo::new();
    let all = repo.worktrees().await;
    let made = repo.create("a_1").await;
    write(&made.top, "a", "changed\n");
    write(&made.top, "bin", [0, 1, 2]);
    let entry = &all.list(None).await.unwrap()[0];
    assert_eq!(
        (entry.state, entry.applied, &entry.path),
        (WorktreeState::Working, false, &Some(made.top.clone()))
    );
    assert_eq!(entry.files, ["a", "bin"]);
    let patch = all.diff(RUN, "a_1").await.unwrap();
    repo.finish("a_1").await;
    assert_eq!(all.diff(RUN, "a_1").await.unwrap(), patch);
    let entry = &all.list(Some(RUN)).await.unwrap()[0];
    assert_eq!((entry.state, &entry.path, entry.files.len()), (WorktreeState::Stored, &None, 2));
    assert_eq!(all.list(Some("wf_2")).await.unwrap(), []);
    fs::write(repo.root.join("patch"), &patch).unwrap();
    repo.git(&["apply", "--check", "../patch"]);

    let refused = all.drop(RUN, "a_1", false).await;
    assert!(
        matches!(&refused, Err(WorktreeError::NotApplied { files, .. }) if files.len() == 2),
        "{refused:?}"
    );
    repo.git(&["checkout", "-q", "convoke/wf_1/a_1"]);
    let refused = all.drop(RUN, "a_1", true).await;
    assert!(matches!(&refused, Err(WorktreeError::BranchInUse { .. })), "{refused:?}");
    repo.git(&["checkout", "-q", "main"]);
    all.drop(RUN, "a_1", true).await.unwrap();
    assert!(matches!(all.drop(RUN, "a_1", true).await, Err(WorktreeError::Unknown { .. })));
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
}

#[tokio::test]
async fn a_branch_that_somebody_else_moved_is_left_to_them_and_the_work_is_still_stored() {
    let repo = Repo::new();
    write(&repo.create("a_1").await.top, "a", "changed\n");
    repo.finish("a_1").await;
    repo.git(&["branch", "-f", "convoke/wf_1/a_1", "main"]);
    repo.write("b", "of the person\n");
    repo.commit("second");
    repo.git(&["branch", "-f", "convoke/wf_1/a_1", "main"]);
    write(&repo.create("a_1").await.top, "a", "changed again\n");
    let Finished::Kept { branch, commit, remarks, .. } = repo.finish("a_1").await else { panic!() };
    assert_eq!(branch, None);
    assert!(remarks[0].contains("has commits that are not the agent's"), "{remarks:?}");
    assert_eq!(repo.git(&["show", &format!("{commit}:a")]), "changed again\n");
    assert_eq!(repo.git(&["rev-parse", "convoke/wf_1/a_1"]), repo.git(&["rev-parse", "main"]));
}

#[tokio::test]
async fn where_no_worktree_can_be_cut_an_error_says_what_to_do() {
    let repo = Repo::empty(&["init", "-q"]);
    let none = repo.worktrees().await.create(RUN, "a_1").await;
    assert!(matches!(&none, Err(WorktreeError::NoCommit { .. })), "{none:?}");
    assert!(none.unwrap_err().to_string().contains("commit something"));

    let plain = tempfile::tempdir().unwrap();
    let none = Worktrees::open(repo.places(), plain.path()).await;
    assert!(matches!(none, Err(WorktreeError::Trees(Error::NoRepository { .. }))));

    let bare = Repo::empty(&["init", "-q", "--bare"]);
    let none = Worktrees::open(bare.places(), &bare.top).await;
    assert!(matches!(none, Err(WorktreeError::Trees(Error::NoRepository { .. }))));

    let inside = convoke_trees::HostPlaces { state: repo.top.join("state"), ..repo.places() };
    fs::create_dir_all(repo.top.join("below")).unwrap();
    let none = Worktrees::open(inside, &repo.top.join("below")).await;
    assert!(matches!(none, Err(WorktreeError::Trees(Error::StateInside { .. }))));

    let repo = Repo::new();
    for name in ["", "..", "a/b", "a b", "before"] {
        let none = repo.worktrees().await.create(RUN, name).await;
        assert!(matches!(none, Err(WorktreeError::Trees(Error::BadName { .. }))), "{name:?}");
    }
    write(&repo.root, "state/worktrees/wf_1/a_1/tree/foreign", "x");
    let none = repo.worktrees().await.create(RUN, "a_1").await;
    assert!(matches!(none, Err(WorktreeError::Occupied { .. })));
    assert!(repo.root.join("state/worktrees/wf_1/a_1/tree/foreign").exists());
}

/// A worktree is cut, has the files of the checkout, is changed, and the change is stored; the person's
/// things stay.
async fn check_round(repo: &Repo, top: &Path) {
    let files_before = files(top);
    let all = Worktrees::open(repo.places(), top).await.unwrap();
    let head = fs::read(top.join(".git")).unwrap_or_default();
    let made = all.create(RUN, "a_1").await.unwrap();
    assert_eq!(files(&made.top), files_before);
    assert_eq!(git_in(&made.top, &["status", "--porcelain"]), "");
    assert_eq!(git_in(&made.top, &["rev-parse", "HEAD"]).trim(), made.base.commit());
    write(&made.top, "new", "work\n");
    let done = all.finish(RUN, "a_1").await.unwrap();
    let Finished::Kept { commit, files: changed, .. } = done else { panic!("{done:?}") };
    assert_eq!(changed, ["new"]);
    assert_eq!(git_in(top, &["show", &format!("{commit}:new")]), "work\n");
    assert_eq!(files(top), files_before);
    assert_eq!(fs::read(top.join(".git")).unwrap_or_default(), head);
    all.apply(RUN, "a_1").await.unwrap();
    assert_eq!(fs::read(top.join("new")).unwrap(), b"work\n");
    all.drop(RUN, "a_1", false).await.unwrap();
}

#[tokio::test]
async fn repositories_of_every_kind_work() {
    let repo = Repo::with(&["init", "-q", "--object-format=sha256"]);
    check_round(&repo, &repo.top).await;

    let repo = Repo::with(&["init", "-q", "--ref-format=reftable"]);
    check_round(&repo, &repo.top).await;

    // Shallow.
    let repo = Repo::new();
    repo.write("b", "2\n");
    repo.commit("second");
    let shallow = repo.root.join("shallow");
    repo.git(&[
        "clone",
        "-q",
        "--depth=1",
        &format!("file://{}", repo.top.display()),
        shallow.to_str().unwrap(),
    ]);
    check_round(&repo, &shallow).await;

    // A linked worktree of the person's own.
    let linked = repo.root.join("linked");
    repo.git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap(), "HEAD~1"]);
    check_round(&repo, &linked).await;

    // In the middle of a merge, with a locked index.
    let repo = Repo::new();
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a", "main\n");
    repo.commit("main");
    let merge = std::process::Command::new("git")
        .args(["merge", "-q", "side"])
        .current_dir(&repo.top)
        .output()
        .unwrap();
    assert!(!merge.status.success());
    fs::write(repo.top.join(".git/index.lock"), "").unwrap();
    let index = fs::read(repo.top.join(".git/index")).unwrap();
    check_round(&repo, &repo.top).await;
    assert_eq!(fs::read(repo.top.join(".git/index")).unwrap(), index);
}

#[tokio::test]
async fn submodules_are_said_and_what_an_agent_puts_there_is_kept() {
    let repo = Repo::new();
    let other = Repo::new();
    let source = other.top.to_str().unwrap();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "module"]);
    repo.commit("module");
    let made = repo.create("a_1").await;
    assert!(matches!(made.base, Base::Head { .. }), "{:?}", made.base);
    assert_eq!(made.remarks, ["submodules are not checked out in it: module"]);
    assert_eq!(repo.finish("a_1").await, Finished::Removed);
    let made = repo.create("a_1").await;
    write(&made.top, "module/mine", "work");
    let done = repo.finish("a_1").await;
    let Finished::Unchanged { ignored, .. } = &done else { panic!("{done:?}") };
    assert_eq!(names(ignored), ["module"]);
    assert_eq!(fs::read(made.top.join("module/mine")).unwrap(), b"work");
    fs::remove_dir_all(made.top.join("module")).unwrap();
    assert_eq!(repo.finish("a_1").await, Finished::Removed);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_worktrees_are_made_at_once_in_one_repository() {
    let repo = std::sync::Arc::new(Repo::new());
    repo.write("untracked", "dirty\n");
    let person = repo.person();
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let repo = std::sync::Arc::clone(&repo);
            tokio::spawn(async move {
                let agent = format!("a_{number}");
                let made = repo.create(&agent).await;
                write(&made.top, "mine", format!("{number}\n"));
                repo.finish(&agent).await
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let Finished::Kept { commit, files, .. } = task.await.unwrap() else { panic!() };
        assert_eq!(files, ["mine"]);
        assert_eq!(repo.git(&["show", &format!("{commit}:mine")]), format!("{number}\n"));
    }
    assert_eq!(repo.worktrees().await.list(None).await.unwrap().len(), 16);
    assert_eq!(repo.person(), person);
}

#[tokio::test]
async fn a_worktree_of_many_files_is_made_and_stored_in_a_time_that_is_printed() {
    let repo = Repo::new();
    for number in 0..1_000 {
        repo.write(&format!("many/{}/{number}", number % 50), format!("file {number}\n"));
    }
    repo.commit("many");
    let before = std::time::Instant::now();
    let made = repo.create("a_1").await;
    let created = before.elapsed();
    write(&made.top, "many/1/1", "changed\n");
    let before = std::time::Instant::now();
    let Finished::Kept { files, .. } = repo.finish("a_1").await else { panic!() };
    assert_eq!(files, ["many/1/1"]);
    println!("1,000 files: created in {created:?}, finished in {:?}", before.elapsed());
}
