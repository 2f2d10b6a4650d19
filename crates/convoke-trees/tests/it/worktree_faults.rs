//! Git itself fails: at every call in turn, before it did anything or after it did its part. Nothing is lost,
//! nothing is handed out that was not checked, and doing it again succeeds.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use convoke_sandbox::Sight;
use convoke_trees::{Finished, HostPlaces, WorktreeError, Worktrees};

use crate::worktree_repo::{Files, RUN, Repo, files, write};

/// A git that runs `script` around the real one. In it `$real` is the real git and `$count` counts its calls.
fn faulty(repo: &Repo, script: &str) -> HostPlaces {
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let bin = repo.root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let counter = repo.root.join("calls");
    let text = format!(
        "#!/bin/sh\nreal='{}'\necho >> '{counter}'\ncount=$(wc -l < '{counter}')\n{script}\nexec \"$real\" \
         \"$@\"\n",
        real.display(),
        counter = counter.display()
    );
    let _ = fs::remove_file(&counter);
    // Written by another process: while a file of ours is open for writing, a child started by another test
    // at the same moment has it open too, and then it cannot be run.
    let write = "printf %s \"$1\" > \"$2.new\" && chmod 755 \"$2.new\" && mv \"$2.new\" \"$2\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", write, "sh", &text]).arg(bin.join("git"));
    assert!(shell.status().unwrap().success());
    let places = repo.places();
    // A script cannot be confined as git is.
    HostPlaces { path: format!("{}:{}", bin.display(), places.path), sight: Sight::Everything, ..places }
}

/// The nth call fails without or after its effect.
fn failing(call: usize, after: bool) -> String {
    let first = if after { "\"$real\" \"$@\"; " } else { "" };
    format!("if [ $count -eq {call} ]; then {first}echo 'no space left' >&2; exit 128; fi")
}

fn calls(repo: &Repo) -> usize {
    fs::read_to_string(repo.root.join("calls")).unwrap().lines().count()
}

fn stored_or_there(repo: &Repo, agent: &str, done: &Files, what: &str) {
    let top: PathBuf = repo.root.join(format!("state/worktrees/{RUN}/{agent}/tree"));
    if top.exists() {
        assert_eq!(&files(&top), done, "{what}");
    } else {
        let tree = repo.git(&["ls-tree", "-r", "--name-only", &format!("refs/convoke/{RUN}/{agent}/work")]);
        assert_eq!(tree.lines().count(), done.len(), "{what}");
    }
}

#[tokio::test]
async fn git_failing_at_every_call_of_finish_loses_nothing() {
    let repo = Repo::new();
    repo.write("untracked", "of the person\n");
    let person = repo.person();
    for call in 1.. {
        let agent = format!("a_{call}");
        let what = format!("call {call}");
        let made = repo.create(&agent).await;
        write(&made.top, "a", "changed\n");
        write(&made.top, "new/file", "work\n");
        fs::remove_file(made.top.join("b")).unwrap();
        let done = files(&made.top);
        let places = faulty(&repo, &failing(call, call % 2 == 0));
        // A fault can be overcome by looking again; then all must be as it should be.
        if let Ok(all) = Worktrees::open(places, &repo.top).await {
            let _ = all.finish(RUN, &agent).await;
        }
        let ended = calls(&repo) < call;
        stored_or_there(&repo, &agent, &done, &what);
        assert_eq!(repo.person(), person, "{what}");
        let again = repo.finish(&agent).await;
        assert!(matches!(&again, Finished::Kept { branch: Some(_), path: None, .. }), "{what}: {again:?}");
        assert_eq!(files(&repo.create(&agent).await.top), done, "{what}");
        if ended {
            assert!(call > 15, "only {call} calls");
            println!("finish: {} calls of git, each failed", call - 1);
            break;
        }
    }
}

#[tokio::test]
async fn git_failing_at_every_call_of_create_hands_out_nothing_wrong() {
    let repo = Repo::new();
    repo.write("untracked", "of the person\n");
    let person = repo.person();
    let wanted = files(&repo.top);
    for call in 1.. {
        let places = faulty(&repo, &failing(call, call % 2 == 0));
        let agent = format!("a_{call}");
        if let Ok(all) = Worktrees::open(places, &repo.top).await
            && let Ok(made) = all.create(RUN, &agent).await
        {
            assert_eq!(files(&made.top), wanted, "call {call}");
        }
        let ended = calls(&repo) < call;
        assert_eq!(files(&repo.create(&agent).await.top), wanted, "call {call}");
        assert_eq!(repo.person(), person, "call {call}");
        if ended {
            assert!(call > 15, "only {call} calls");
            break;
        }
    }
}

#[tokio::test]
async fn a_checkout_that_is_not_its_base_is_not_handed_out() {
    let repo = Repo::new();
    for damage in ["echo rot >> a", "rm sub/c", "chmod +x b", "echo > extra", "rm b; ln -s a b"] {
        let script =
            format!("case \"$*\" in *'read-tree --reset -u'*) \"$real\" \"$@\"; {damage}; exit 0;; esac");
        let all = Worktrees::open(faulty(&repo, &script), &repo.top).await.unwrap();
        let made = all.create(RUN, "a_1").await;
        assert!(matches!(made, Err(WorktreeError::NotItsBase { .. })), "{damage}: {made:?}");
        assert!(!repo.root.join("state/worktrees/wf_1/a_1/tree").exists(), "{damage}");
    }
    assert_eq!(files(&repo.create("a_1").await.top), files(&repo.top));
}
