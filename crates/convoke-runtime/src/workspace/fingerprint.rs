//! One name for everything that is in a directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use convoke_beneath::Dir;
use convoke_sandbox::Sight;
use sha2::{Digest, Sha256};

use super::content::{finished, held_by, hex};
use super::listing::{WorkspaceError, head_tree, list, off_thread};

/// Goes first into the hash, so that another way of hashing gives other names.
const FORMAT: &[u8] = b"convoke workspace 2";

/// The fingerprint of what is below `dir`: of the relative path, kind, executable bit and content of what git
/// knows or would add, and of the tree that HEAD names (what is changed and what is committed differ by that
/// alone), where there is git, else of every file. Equal trees have equal fingerprints wherever and whenever
/// they were made; files that git ignores do not count.
pub(crate) async fn fingerprint(sight: &Sight, dir: &Path) -> Result<String, WorkspaceError> {
    named(sight, dir, None).await
}

/// The same without saved workflows and without the files that hold this program: mending a program changes
/// nothing of what its agents look at.
pub(crate) async fn fingerprint_beside(
    sight: &Sight,
    dir: &Path,
    source: &str,
) -> Result<String, WorkspaceError> {
    named(sight, dir, Some(source)).await
}

async fn named(sight: &Sight, dir: &Path, source: Option<&str>) -> Result<String, WorkspaceError> {
    let mut files = list(sight, dir).await?;
    let head = head_tree(sight, dir).await?;
    if source.is_some() {
        files.retain(|path| !is_saved_workflow(path));
    }
    let own = source
        .map(|source| [b"f", b"x"].map(|kind| finished(Sha256::new_with_prefix(kind).chain_update(source))));
    let top = dir.to_owned();
    off_thread(move |abandoned| {
        let dir = Dir::open(&top).map_err(WorkspaceError::refused(&top))?;
        let mut hasher = Sha256::new_with_prefix(FORMAT);
        hasher.update((head.len() as u64).to_le_bytes());
        hasher.update(head);
        for path in files {
            if abandoned.load(Ordering::Relaxed) {
                break;
            }
            let held = held_by(&dir, &path, abandoned).map_err(WorkspaceError::refused(&top.join(&path)))?;
            let Some(held) = held.filter(|held| own.is_none_or(|own| !own.contains(held))) else { continue };
            let name = path.as_os_str().as_bytes();
            // With its length before it, no name can be mistaken for a piece of another entry.
            hasher.update((name.len() as u64).to_le_bytes());
            hasher.update(name);
            hasher.update(held);
        }
        Ok(hex(&finished(hasher)))
    })
    .await
}

fn is_saved_workflow(path: &Path) -> bool {
    let parts: Vec<&[u8]> = path.iter().map(OsStrExt::as_bytes).collect();
    parts.windows(2).any(|pair| matches!(pair[0], b".convoke" | b".claude") && pair[1] == b"workflows")
}
