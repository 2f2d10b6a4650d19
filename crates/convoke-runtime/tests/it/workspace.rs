//! Looking at what changed in a directory, which may belong to a person who means harm.

use std::path::Path;
use std::process::Command;

use convoke_runtime::changed_since;
use convoke_sandbox::{Sight, Unseen};

fn git(dir: &Path, args: &[&str]) {
    assert!(Command::new("git").args(args).current_dir(dir).status().unwrap().success(), "{args:?}");
}

#[tokio::test]
async fn looking_at_a_repository_runs_nothing_that_it_names() {
    let repository = tempfile::tempdir().unwrap();
    let dir = repository.path();
    git(dir, &["init", "--quiet"]);
    std::fs::write(dir.join("kept.txt"), "old").unwrap();
    git(dir, &["add", "kept.txt"]);
    git(dir, &["config", "core.fsmonitor", "touch ran #"]);
    let sight = Sight::LikeCommands(Unseen::default());
    assert_eq!(changed_since(&sight, dir, 0).await, ["kept.txt"]);
    assert!(!dir.join("ran").exists(), "the repository's own program was run");
    std::fs::remove_file(dir.join("kept.txt")).unwrap();
    assert_eq!(
        changed_since(&sight, dir, u64::MAX / 2).await,
        ["kept.txt"],
        "a tracked file that is gone has changed"
    );
}
