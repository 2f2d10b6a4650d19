//! A real process, killed for real while it makes and finishes worktrees.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_trees::{Finished, HostPlaces, Worktrees};

use crate::worktree_repo::{RUN, Repo, files, write};
use crate::world::like_commands;

const ROOT: &str = "CONVOKE_TEST_WORKTREE_ROOT";

fn work(top: &Path) {
    write(top, "a", "changed by the agent\n");
    write(top, "new/file", "untracked work\n");
    let _ = fs::remove_file(top.join("b"));
}

/// Run by the test below as a process of its own; by itself it has nothing to do.
#[tokio::test]
async fn child_that_makes_and_finishes_a_worktree() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else { return };
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let agent = fs::read_to_string(root.join("agent")).unwrap();
    let places = HostPlaces { path, state: root.join("state"), sight: like_commands() };
    let all = Worktrees::open(places, &root.join("repo")).await.unwrap();
    eprintln!("begun");
    let made = all.create(RUN, &agent).await.unwrap();
    if !root.join("worked").exists() {
        work(&made.top);
        fs::write(root.join("worked"), "").unwrap();
    }
    let done = all.finish(RUN, &agent).await.unwrap();
    assert!(matches!(done, Finished::Kept { .. }), "{done:?}");
}

#[tokio::test]
async fn kill_nine_at_any_moment_loses_nothing_and_touches_nothing() {
    let repo = Repo::new();
    for number in 0..200 {
        repo.write(&format!("many/{number}"), format!("{number}\n"));
    }
    repo.write("untracked", "of the person\n");
    let person = repo.person();
    let wanted = {
        let copy = repo.create("a_model").await;
        work(&copy.top);
        files(&copy.top)
    };
    let child = |agent: &str| {
        fs::write(repo.root.join("agent"), agent).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "worktree_kill::child_that_makes_and_finishes_a_worktree", "--nocapture"]);
        child.env(ROOT, &repo.root).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // How long a whole one takes says over which span the kills are to be spread.
    let begun = |child: &mut std::process::Child| {
        let mut word = [0; 5];
        child.stderr.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"begun");
        Instant::now()
    };
    let mut whole = child("a_whole");
    let start = begun(&mut whole);
    assert!(whole.wait().unwrap().success());
    let span = start.elapsed();
    let mut killed = 0;
    for kill in 0..24u32 {
        let agent = format!("a_{kill}");
        fs::remove_file(repo.root.join("worked")).unwrap();
        let mut dying = child(&agent);
        let start = begun(&mut dying);
        let moment = span * kill / 24;
        while start.elapsed() < moment && dying.try_wait().unwrap().is_none() {
            std::thread::park_timeout(Duration::from_micros(200));
        }
        killed += u32::from(dying.try_wait().unwrap().is_none());
        let _ = dying.kill();
        dying.wait().unwrap();
        let top = repo.root.join(format!("state/worktrees/{RUN}/{agent}/tree"));
        if repo.root.join("worked").exists() && top.exists() {
            assert_eq!(files(&top), wanted, "kill {kill}");
        }
        let mut again = child(&agent);
        begun(&mut again);
        assert!(again.wait().unwrap().success(), "kill {kill}: {:?}", {
            let mut said = String::new();
            again.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            said
        });
        assert_eq!(files(&repo.create(&agent).await.top), wanted, "kill {kill}");
        assert_eq!(repo.person(), person, "kill {kill}");
    }
    assert!(killed > 3, "only {killed} of 24 were killed in time");
    println!("killed {killed} of 24, spread over {span:?}");
}
