//! Which files of the directory have changed since a given time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_beneath::{Dir, Kind};
use convoke_sandbox::Sight;

use super::listing::git_names;

/// More names than a person reads.
const MOST: usize = 50;
/// A tree larger than this is not walked to the end: the answer is a courtesy, not a proof.
const MOST_FILES: usize = 50_000;
/// In a second.
const NANOS: i128 = 1_000_000_000;

/// Files below `dir` that were modified after `at` (milliseconds), in order of name: what git knows or would
/// add, where there is git, else every visible file. Deletions show as the tracked files that are missing.
/// `sight` is how much git sees (see [`crate::Confine::sight`]).
pub async fn changed_since(sight: &Sight, dir: &Path, at: u64) -> Vec<String> {
    let files = git_files(sight, dir).await;
    let Ok(dir) = Dir::open(dir) else { return Vec::new() };
    let found = match files {
        Some((present, mut missing)) => {
            missing.extend(present.into_iter().filter(|name| modified_after(&dir, name, at)));
            missing
        }
        None => walk(&dir, at),
    };
    let mut changed: Vec<String> =
        found.into_iter().map(|name| name.to_string_lossy().into_owned()).collect();
    changed.sort();
    changed.dedup();
    changed.truncate(MOST);
    changed
}

fn modified_after(dir: &Dir, path: &Path, at: u64) -> bool {
    let modified =
        dir.look(path).map(|stat| i128::from(stat.st_mtime) * NANOS + i128::from(stat.st_mtime_nsec));
    modified.is_ok_and(|nanos| nanos > i128::from(at) * (NANOS / 1_000))
}

async fn git_files(sight: &Sight, dir: &Path) -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
    let patience = Duration::from_secs(10);
    let present =
        git_names(sight, dir, &["--cached", "--others", "--exclude-standard"], patience).await.ok()??;
    let missing = git_names(sight, dir, &["--deleted"], patience).await.ok()??;
    Some((present, missing))
}

fn walk(dir: &Dir, at: u64) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut queue = vec![PathBuf::new()];
    while let Some(next) = queue.pop() {
        for entry in dir.entries(&next).unwrap_or_default() {
            seen += 1;
            let hidden = entry.name.as_encoded_bytes().starts_with(b".");
            if hidden || seen > MOST_FILES {
                continue;
            }
            let path = next.join(&entry.name);
            if entry.kind == Kind::Directory {
                queue.push(path);
            } else if modified_after(dir, &path, at) {
                found.push(path);
            }
        }
    }
    found
}
