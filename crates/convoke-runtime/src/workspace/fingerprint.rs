//! One name for everything that is in a directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use super::content::{finished, held_by, hex};
use super::listing::{WorkspaceError, head_tree, list, off_thread};

/// Goes first into the hash, so that another way of hashing gives other names.
const FORMAT: &[u8] = b"convoke workspace 2";

/// The fingerprint of what is below `dir`: of the relative path, kind, executable bit and content of what git knows or
/// would add, and of the tree that HEAD names (what is changed and what is committed differ by that alone), where there is
/// git, else of every file. Equal trees have equal fingerprints wherever and whenever they
/// were made; files that git ignores do not count.
pub(crate) async fn fingerprint(dir: &Path) -> Result<String, WorkspaceError> {
    let (files, head) = (list(dir).await?, head_tree(dir).await?);
    let dir = dir.to_owned();
    off_thread(move |abandoned| {
        let mut hasher = Sha256::new_with_prefix(FORMAT);
        hasher.update((head.len() as u64).to_le_bytes());
        hasher.update(head);
        for path in files {
            if abandoned.load(Ordering::Relaxed) {
                break;
            }
            let whole = dir.join(&path);
            let held = held_by(&whole, abandoned).map_err(WorkspaceError::unreadable(&whole))?;
            let Some(held) = held else { continue };
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
