//! What a single path holds, as a digest. Files are streamed, links are not followed, and nothing is opened that could
//! make the reader wait.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use super::listing::{is_gone, off_thread};

/// What each of these paths below `dir` holds now, as the digest of its kind and content; `None` for what is not there
/// or does not lie below `dir`.
pub(crate) async fn digests(dir: &Path, paths: &[String]) -> BTreeMap<String, Option<String>> {
    let (dir, paths) = (dir.to_owned(), paths.to_vec());
    off_thread(move |abandoned| {
        let look = |path: &String| {
            let below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
            let held = if below { held_by(&dir.join(path), abandoned) } else { Ok(None) };
            // A file that cannot be read to its end is there, and equals no other.
            held.unwrap_or_else(|_| Some(marked(b'u'))).map(|digest| hex(&digest))
        };
        paths.iter().map(|path| (path.clone(), look(path))).collect()
    })
    .await
}

/// The digest of what is at this path: of its kind and, for a file or a link, its content.
pub(super) fn held_by(path: &Path, abandoned: &AtomicBool) -> io::Result<Option<[u8; 32]>> {
    let looked = path.symlink_metadata().and_then(|meta| {
        if meta.is_symlink() {
            let target = path.read_link()?;
            return Ok(finished(Sha256::new_with_prefix(b"l").chain_update(target.as_os_str().as_bytes())));
        }
        if meta.is_dir() {
            return Ok(marked(b'd'));
        }
        if !meta.is_file() {
            return Ok(marked(b'o'));
        }
        let file = open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Ok(marked(b'o'));
        }
        let hasher = Sha256::new_with_prefix(if meta.mode() & 0o100 == 0 { b"f" } else { b"x" });
        streamed(file, hasher, abandoned)
    });
    match looked {
        Ok(digest) => Ok(Some(digest)),
        Err(error) if is_gone(&error) => Ok(None),
        // Agents are not more than we are: what we may not read, they do not know either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Some(marked(b'u'))),
        Err(error) => Err(error),
    }
}

/// Opens what was a file a moment ago, and may have become a link or a pipe since.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn finished(hasher: Sha256) -> [u8; 32] {
    hasher.finalize().into()
}

fn streamed(mut file: File, mut hasher: Sha256, abandoned: &AtomicBool) -> io::Result<[u8; 32]> {
    let mut buffer = vec![0; 64 * 1024];
    while !abandoned.load(Ordering::Relaxed) {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(finished(hasher))
}

/// The digest of something whose content does not count.
fn marked(kind: u8) -> [u8; 32] {
    finished(Sha256::new_with_prefix([kind]))
}
