//! What happened to the directory while nobody was looking.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use convoke_sandbox::Sight;

use super::listing::git_names;

/// More names than a person reads.
const MOST: usize = 50;
/// A tree larger than this is not walked to the end: the answer is a courtesy, not a proof.
const MOST_FILES: usize = 50_000;

/// Files below `dir` that were modified after `at` (milliseconds), in order of name: what git knows or would add,
/// where there is git, else every visible file. Deletions show as the tracked files that are missing. `sight` is
/// how much git sees (see [`crate::Confine::sight`]).
pub async fn changed_since(sight: &Sight, dir: &Path, at: u64) -> Vec<String> {
    let mut changed: Vec<String> = match git_files(sight, dir).await {
        Some((present, mut missing)) => {
            missing.extend(present.into_iter().filter(|name| modified_after(&dir.join(name), at)));
            missing.into_iter().map(|name| name.to_string_lossy().into_owned()).collect()
        }
        None => walk(dir, at),
    };
    changed.sort();
    changed.dedup();
    changed.truncate(MOST);
    changed
}

fn modified_after(path: &Path, at: u64) -> bool {
    let modified = path.symlink_metadata().and_then(|meta| meta.modified()).ok();
    modified
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .is_some_and(|since| since > Duration::from_millis(at))
}

async fn git_files(sight: &Sight, dir: &Path) -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
    let patience = Duration::from_secs(10);
    let present = git_names(sight, dir, &["--cached", "--others", "--exclude-standard"], patience).await.ok()??;
    let missing = git_names(sight, dir, &["--deleted"], patience).await.ok()??;
    Some((present, missing))
}

fn walk(dir: &Path, at: u64) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut queue = vec![dir.to_owned()];
    while let Some(next) = queue.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if hidden || seen > MOST_FILES {
                continue;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => queue.push(path),
                Ok(_) if modified_after(&path, at) => {
                    let name = path.strip_prefix(dir).unwrap_or(&path);
                    found.push(name.to_string_lossy().into_owned());
                }
                _ => {}
            }
        }
    }
    found
}
