//! What confining git costs: a snapshot, and one command of git's, by a git that sees what commands see over
//! one that sees everything. Rounds are interleaved; medians and ratios are printed.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use convoke_sandbox::{Git, Sight, Unseen};
use convoke_trees::{HostPlaces, Keeper};

const ROUNDS: usize = 40;
const FILES: usize = 2_000;

fn main() {
    tokio::runtime::Runtime::new().unwrap().block_on(compare());
}

async fn compare() {
    let root =
        std::env::temp_dir().canonicalize().unwrap().join(format!("convoke-bench-{}", std::process::id()));
    let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    let sights = [("confined", Sight::LikeCommands(Unseen::default())), ("everything", Sight::Everything)];
    let mut keepers = Vec::new();
    for (name, sight) in &sights {
        let dir = repository(&root.join(name));
        let places = HostPlaces {
            path: path.clone(),
            state: root.join(format!("{name}-state")),
            sight: sight.clone(),
        };
        let keeper = Keeper::open(&places, &dir, "s_1").await.unwrap();
        keeper.before().await.unwrap();
        keepers.push((dir, keeper, Git::new(places.git(&root.join(name)).unwrap(), sight.clone())));
    }
    // The host is no small process, and starting another must not cost more for that.
    let ballast = vec![1_u8; 100 << 20];
    let mut windows = [Vec::new(), Vec::new()];
    let mut calls = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (index, (dir, keeper, git)) in keepers.iter().enumerate() {
            std::fs::write(dir.join("0/0"), format!("{round}\n")).unwrap();
            let since = Instant::now();
            keeper.open_window("a_1").await.unwrap();
            keeper.close_window("a_1", "").await.unwrap();
            windows[index].push(since.elapsed() / 2);
            let since = Instant::now();
            let said = git.call().repository(dir, dir).args(["rev-parse", "HEAD"]).run().await.unwrap();
            calls[index].push(since.elapsed());
            assert_eq!(said.code, 0);
        }
    }
    assert!(ballast.iter().all(|byte| *byte == 1));
    for (what, [confined, open]) in [("one snapshot of a window", windows), ("one git", calls)] {
        let confined = median(confined);
        let open = median(open);
        let ratio = confined.as_secs_f64() / open.as_secs_f64();
        println!("{what}: confined {confined:.2?}, not {open:.2?}, ratio {ratio:.2}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

fn repository(dir: &Path) -> PathBuf {
    for number in 0..FILES {
        let file = dir.join(format!("{}/{number}", number / 50));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{number}\n")).unwrap();
    }
    for args in ["init -q", "add -A", "-c user.name=p -c user.email=p@p commit -qm first"] {
        assert!(Command::new("git").args(args.split(' ')).current_dir(dir).status().unwrap().success());
    }
    dir.to_owned()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
