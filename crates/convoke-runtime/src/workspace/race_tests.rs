//! The race for a cited file: a background job exchanges a directory of the tree with a link to a hidden one
//! while citations are checked. The look by handle never reads the secret; the way it was done before, kept
//! here as a twin, does in the same run.
//!
//! `CONVOKE_SOAK_RACES=200` sets the number of tries, `CONVOKE_SOAK_SEED` the pauses between two exchanges.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};

use super::{Cited, Looked};

const SECRET: &str = "the secret line\n";
/// In how many bursts of looks the twin must have won once, or the race shows nothing.
const MOST_BURSTS: usize = 100_000;

#[test]
fn an_exchanged_directory_tells_nothing_of_hidden_files() {
    #[expect(clippy::disallowed_methods, reason = "the size of a test is the environment's to choose")]
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let tries = number("CONVOKE_SOAK_RACES").unwrap_or(50);
    let seed = number("CONVOKE_SOAK_SEED").unwrap_or(14);
    let place = tempfile::tempdir().unwrap();
    let top = place.path().canonicalize().unwrap();
    let tree = top.join("tree");
    let hidden = top.join("hidden");
    for dir in [tree.join("d"), hidden.clone()] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(tree.join("d/key"), "an open line\n").unwrap();
    fs::write(hidden.join("key"), SECRET).unwrap();
    symlink(&hidden, tree.join("link")).unwrap();
    let mut won = 0;
    let mut open = 0;
    let mut twin = 0;
    let mut bursts = 0;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&tree.join("d"), &tree.join("link"), seed, &done));
        let is_secret = |looked: &Looked| *looked == Looked::Text(SECRET.to_owned());
        while bursts < tries || (twin == 0 && bursts < MOST_BURSTS as u64) {
            bursts += 1;
            // One try is as many looks as a report may hold citations.
            let cited = Cited::open(&tree, Vec::new());
            let looked: Vec<Looked> = (0..20).map(|_| cited.read("d/key")).collect();
            won += usize::from(looked.iter().any(is_secret));
            open += looked.iter().filter(|looked| matches!(looked, Looked::Text(_))).count();
            twin += usize::from((0..20).any(|_| is_secret(&resolved_then_opened(&tree, "d/key"))));
        }
        done.store(true, Ordering::Relaxed);
    });
    println!(
        "seed {seed}: {bursts} tries, {won} won; against the old code {twin} won; {open} looks saw the open \
            file"
    );
    assert_eq!(won, 0, "the secret was told");
    assert!(twin > 0 && open > 0, "{twin} {open}");
}

#[test]
fn what_commands_may_not_read_in_the_tree_is_told_like_what_is_not_there() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().canonicalize().unwrap();
    fs::create_dir(tree.join("vault")).unwrap();
    fs::write(tree.join("vault/key"), SECRET).unwrap();
    fs::write(tree.join("open"), "said\n").unwrap();
    symlink("vault/key", tree.join("way_in")).unwrap();
    symlink("open", tree.join("way")).unwrap();
    let cited = Cited::open(&tree, vec![PathBuf::from("vault")]);
    for path in ["vault/key", "way_in", "./vault/../vault/key", "vault", "vault/nothing"] {
        assert_eq!(cited.read(path), Looked::Missing, "{path}");
    }
    assert_eq!(cited.read("way"), Looked::Text("said\n".to_owned()));
    assert_eq!(cited.read(tree.join("vault/key").to_str().unwrap()), Looked::Missing);
}

/// Exchanges two names again and again, with pauses that follow from the seed.
fn exchange(one: &Path, other: &Path, seed: u64, done: &AtomicBool) {
    let mut state = seed | 1;
    while !done.load(Ordering::Relaxed) {
        rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for _ in 0..state % 2_000 {
            std::hint::spin_loop();
        }
    }
}

/// How a cited file was looked up before: its path is resolved step by step, found to lie in the tree, and
/// then opened by its string.
fn resolved_then_opened(dir: &Path, path: &str) -> Looked {
    let Some((resolved, there)) = resolve(dir, Path::new(path)) else { return Looked::Missing };
    if !resolved.starts_with(dir) {
        return Looked::Outside;
    }
    if !there || !resolved.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Looked::Missing;
    }
    let file = fs::OpenOptions::new().read(true).custom_flags(0o400_000 | 0o4_000).open(&resolved);
    let text = file.and_then(std::io::read_to_string);
    text.map_or(Looked::Missing, Looked::Text)
}

fn resolve(root: &Path, path: &Path) -> Option<(PathBuf, bool)> {
    let mut at = root.to_owned();
    let mut there = true;
    let mut links = 0;
    let mut left: VecDeque<Step> = steps(path).collect();
    while let Some(step) = left.pop_front() {
        match step {
            Step::Root => {
                at = PathBuf::from("/");
                there = true;
            }
            Step::Up => drop(at.pop()),
            Step::Down(name) => {
                at.push(name);
                let meta = at.symlink_metadata();
                there &= meta.is_ok();
                if meta.is_ok_and(|meta| meta.is_symlink()) {
                    links += 1;
                    let target = at.read_link().ok().filter(|_| links <= 40)?;
                    at.pop();
                    steps(&target).rev().for_each(|step| left.push_front(step));
                }
            }
        }
    }
    Some((at, there))
}

enum Step {
    Root,
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|part| match part {
        Component::RootDir | Component::Prefix(_) => Some(Step::Root),
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
    })
}
