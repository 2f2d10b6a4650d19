//! What a model-written command can plant in a worktree, or a repository can carry, to have the host run a
//! program or touch what is not the worktree's: none of it works.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use convoke_trees::{Finished, WorktreeError};

use crate::worktree_repo::{RUN, Repo, files, git_in, names, write};

/// A program that leaves a mark if it is ever run.
struct Trap {
    program: PathBuf,
    mark: PathBuf,
}

impl Trap {
    fn new(repo: &Repo) -> Self {
        let program = repo.root.join("trap");
        let mark = repo.root.join("sprung");
        fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, mark }
    }

    /// Fills a git dir with everything that could have a program run.
    fn arm(&self, git_dir: &Path) {
        let program = self.program.display();
        let mut config =
            fs::OpenOptions::new().append(true).create(true).open(git_dir.join("config")).unwrap();
        let text = format!(
            "\n[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\teditor = {program}\n\tsshCommand = \
                {program}\n\
             [filter \"x\"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = \
             true\n[filter \"y\"]\n\tprocess = {program}\n\
             [diff]\n\texternal = {program}\n[diff \"x\"]\n\ttextconv = {program}\n\tcommand = {program}\n\
             [merge \"x\"]\n\tdriver = {program}\n[alias]\n\tadd = !{program}\n[gpg]\n\tprogram = {program}\n"
        );
        std::io::Write::write_all(&mut config, text.as_bytes()).unwrap();
        fs::create_dir_all(git_dir.join("hooks")).unwrap();
        for hook in [
            "post-checkout",
            "pre-commit",
            "post-index-change",
            "reference-transaction",
            "post-commit",
            "pre-auto-gc",
        ] {
            let _ = fs::remove_file(git_dir.join("hooks").join(hook));
            symlink(&self.program, git_dir.join("hooks").join(hook)).unwrap();
        }
    }

    fn sprung(&self) -> String {
        fs::read_to_string(&self.mark).unwrap_or_default()
    }
}

const ATTRIBUTES: &str = "* filter=x diff=x merge=x\nb filter=y\n";

/// Everything that the host does with a worktree.
async fn everything(repo: &Repo) -> Finished {
    let all = repo.worktrees().await;
    all.list(None).await.unwrap();
    all.diff(RUN, "a_1").await.unwrap();
    let done = all.finish(RUN, "a_1").await.unwrap();
    all.diff(RUN, "a_1").await.unwrap();
    all.apply(RUN, "a_1").await.unwrap();
    all.create(RUN, "a_1").await.unwrap();
    all.drop(RUN, "a_1", true).await.unwrap();
    done
}

#[tokio::test]
async fn programs_that_the_repository_itself_names_are_not_run() {
    let repo = Repo::new();
    let trap = Trap::new(&repo);
    repo.write(".gitattributes", ATTRIBUTES);
    repo.commit("attributes");
    repo.write("untracked", "dirty\n");
    trap.arm(&repo.top.join(".git"));
    let made = repo.create("a_1").await;
    assert_eq!(files(&made.top), files(&repo.top));
    write(&made.top, "a", "changed\n");
    write(&made.top, "b", "changed\n");
    everything(&repo).await;
    assert_eq!(trap.sprung(), "");
    // The trap is one: git itself, asked in the ordinary way, falls into it.
    let _ = std::process::Command::new("git").arg("status").current_dir(&repo.top).output().unwrap();
    assert_ne!(trap.sprung(), "");
}

#[tokio::test]
async fn a_git_file_that_an_agent_replaced_is_not_believed() {
    let repo = Repo::new();
    let trap = Trap::new(&repo);
    for replaced in ["a repository", "a pointer elsewhere", "a link", "nothing"] {
        let made = repo.create("a_1").await;
        let mark = made.top.join(".git");
        fs::remove_file(&mark).unwrap();
        let evil = repo.root.join("evil");
        let _ = fs::remove_dir_all(&evil);
        fs::create_dir(&evil).unwrap();
        git_in(&evil, &["init", "-q"]);
        trap.arm(&evil.join(".git"));
        match replaced {
            "a repository" => fs::rename(evil.join(".git"), &mark).unwrap(),
            "a pointer elsewhere" => {
                fs::write(&mark, format!("gitdir: {}\n", evil.join(".git").display())).unwrap()
            }
            "a link" => symlink(evil.join(".git"), &mark).unwrap(),
            _ => {}
        }
        write(&made.top, ".gitattributes", ATTRIBUTES);
        write(&made.top, "a", format!("{replaced}\n"));
        let person = repo.git(&["for-each-ref", "refs/heads/main"]);
        let done = everything(&repo).await;
        let Finished::Kept { ignored, files, .. } = done else { panic!("{replaced}: {done:?}") };
        assert_eq!(files, [".gitattributes", "a"], "{replaced}");
        assert_eq!(names(&ignored), if replaced == "nothing" { vec![] } else { vec![".git"] }, "{replaced}");
        assert_eq!(trap.sprung(), "", "{replaced}");
        assert_eq!(repo.git(&["for-each-ref", "refs/heads/main"]), person);
        repo.git(&["checkout", "-q", "."]);
        repo.git(&["clean", "-qfd"]);
    }
}

#[tokio::test]
async fn a_repository_planted_in_a_worktree_runs_nothing_and_is_kept() {
    let repo = Repo::new();
    let other = Repo::new();
    let trap = Trap::new(&repo);
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        other.top.to_str().unwrap(),
        "module",
    ]);
    repo.commit("module");
    let made = repo.create("a_1").await;
    for place in ["module", "sub", "fresh"] {
        let dir = made.top.join(place);
        fs::create_dir_all(&dir).unwrap();
        git_in(&dir, &["init", "-q"]);
        write(&dir, "inner", "work\n");
        write(&dir, ".gitattributes", ATTRIBUTES);
        git_in(&dir, &["add", "inner"]);
        git_in(&dir, &["commit", "-qm", "inner"]);
        write(&dir, "inner", "more\n");
        trap.arm(&dir.join(".git"));
    }
    let done = repo.finish("a_1").await;
    let (Finished::Kept { ignored, .. } | Finished::Unchanged { ignored, .. }) = &done else {
        panic!("{done:?}")
    };
    for place in ["module", "fresh"] {
        assert!(
            names(ignored).iter().any(|name| name.trim_end_matches('/') == place),
            "{place}: {ignored:?}"
        );
    }
    for place in ["module", "sub", "fresh"] {
        assert_eq!(fs::read(made.top.join(place).join("inner")).unwrap(), b"more\n");
    }
    let listed = repo.worktrees().await.list(None).await.unwrap();
    assert!(!listed[0].files.contains(&"sub/c".to_owned()), "{listed:?}");
    repo.worktrees().await.diff(RUN, "a_1").await.unwrap();
    repo.worktrees().await.drop(RUN, "a_1", true).await.unwrap();
    assert_eq!(trap.sprung(), "");
}

#[tokio::test]
async fn links_that_lead_out_are_stored_as_links_and_never_followed() {
    let repo = Repo::new();
    let outside = repo.root.join("outside");
    write(&outside, "secret", "s");
    let made = repo.create("a_1").await;
    fs::remove_dir_all(made.top.join("sub")).unwrap();
    symlink(&outside, made.top.join("sub")).unwrap();
    fs::remove_file(made.top.join("a")).unwrap();
    symlink(outside.join("secret"), made.top.join("a")).unwrap();
    write(&made.top, "target/keep", "ignored");
    symlink(&outside, made.top.join("target/out")).unwrap();
    fs::create_dir(made.top.join("target/locked")).unwrap();
    fs::set_permissions(made.top.join("target/locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let done = repo.finish("a_1").await;
    let Finished::Kept { commit, files, .. } = &done else { panic!("{done:?}") };
    assert_eq!(files, &["a", "sub", "sub/c"]);
    assert!(repo.git(&["ls-tree", commit, "sub"]).starts_with("120000 blob"));
    repo.worktrees().await.drop(RUN, "a_1", true).await.unwrap();
    assert!(!made.top.exists());
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"s");
}

#[tokio::test]
async fn what_cannot_be_stored_is_listed_and_kept_and_not_taken_for_removed() {
    let repo = Repo::new();
    repo.write("closed/file", "x\n");
    repo.commit("more");
    let made = repo.create("a_1").await;
    for pipe in ["b", "pipe"] {
        let _ = fs::remove_file(made.top.join(pipe));
        assert!(std::process::Command::new("mkfifo").arg(made.top.join(pipe)).status().unwrap().success());
    }
    write(&made.top, "fine", "work\n");
    write(&made.top, ".GIT/config", "git stores no spelling of this\n");
    let shut = |name: &str, mode| {
        fs::set_permissions(made.top.join(name), fs::Permissions::from_mode(mode)).unwrap()
    };
    shut("closed", 0o000);
    shut("a", 0o000);
    // Root reads these all the same.
    let shut_out = fs::read_dir(made.top.join("closed")).is_err();
    let done = repo.finish("a_1").await;
    let Finished::Kept { commit, files, ignored, .. } = &done else { panic!("{done:?}") };
    let mut wanted = vec![".GIT", "b", "pipe"];
    if shut_out {
        wanted.extend(["a", "closed"]);
        wanted.sort_unstable();
    }
    assert_eq!(names(ignored), wanted);
    assert_eq!(files, &["fine"]);
    assert_eq!(repo.git(&["show", &format!("{commit}:fine")]), "work\n");
    shut("closed", 0o700);
    assert!(made.top.join("pipe").exists() && made.top.join(".GIT/config").exists());
    repo.worktrees().await.drop(RUN, "a_1", true).await.unwrap();
    assert!(!made.top.exists());
}

#[tokio::test]
async fn what_no_commit_can_hold_is_dropped_only_by_force_and_named_by_apply() {
    let repo = Repo::new();
    let made = repo.create("a_1").await;
    write(&made.top, "b", "work\n");
    write(&made.top, "target/made", "ignored\n");
    write(&made.top, "target/nested/.git/HEAD", "ignored too\n");
    let all = repo.worktrees().await;
    assert_eq!(all.apply(RUN, "a_1").await.unwrap().not_stored, Vec::<PathBuf>::new());
    git_in(&made.top, &["init", "-q", "inner"]);
    write(&made.top, "inner/file", "only here\n");
    fs::File::create(made.top.join("large")).unwrap().set_len((100 << 20) + 1).unwrap();

    let expected = ["inner", "large"].map(PathBuf::from);
    assert_eq!(all.list(None).await.unwrap()[0].not_stored, expected);
    assert_eq!(all.apply(RUN, "a_1").await.unwrap().not_stored, expected);
    let refused = all.drop(RUN, "a_1", false).await;
    assert!(
        matches!(&refused, Err(WorktreeError::NotStored { files, .. }) if files.len() == 2),
        "{refused:?}"
    );
    assert!(made.top.join("inner/file").exists());

    // What git ignores goes with the worktree, as it always did.
    fs::remove_dir_all(made.top.join("inner")).unwrap();
    fs::remove_file(made.top.join("large")).unwrap();
    let dropped = all.drop(RUN, "a_1", false).await.unwrap();
    assert_eq!(dropped.ignored, [PathBuf::from("target")]);
    assert!(!made.top.exists());
}
