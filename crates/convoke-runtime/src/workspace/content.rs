//! What a single path holds, as a digest. Files are streamed, links are not followed, and nothing is opened
//! that could make the reader wait.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use convoke_beneath::{Dir, Error, Kind, Links};
use sha2::{Digest, Sha256};

use super::listing::{is_gone, off_thread};

/// What each of these paths below `dir` holds now, as the digest of its kind and content; `None` for what is
/// not there or does not lie below `dir`.
pub(crate) async fn digests(dir: &Path, paths: &[String]) -> BTreeMap<String, Option<String>> {
    let dir = dir.to_owned();
    let paths = paths.to_vec();
    off_thread(move |abandoned| {
        let dir = Dir::open(&dir).ok();
        let look = |path: &String| match held_by(dir.as_ref()?, Path::new(path), abandoned) {
            Ok(held) => held.map(|digest| hex(&digest)),
            Err(Error::Outside { .. }) => None,
            // A file that cannot be read to its end is there, and equals no other.
            Err(_) => Some(hex(&marked(b'u'))),
        };
        paths.iter().map(|path| (path.clone(), look(path))).collect()
    })
    .await
}

/// The digest of what is at this path below a directory: of its kind and, for a file or a link, its content.
pub(super) fn held_by(dir: &Dir, path: &Path, abandoned: &AtomicBool) -> Result<Option<[u8; 32]>, Error> {
    let looked = dir.look(path).and_then(|stat| match Kind::of(&stat) {
        Kind::Link => {
            let target = dir.link_target(path)?;
            Ok(finished(Sha256::new_with_prefix(b"l").chain_update(target.as_os_str().as_bytes())))
        }
        Kind::Directory => Ok(marked(b'd')),
        Kind::Fifo | Kind::Socket | Kind::Device => Ok(marked(b'o')),
        Kind::File => {
            let (file, stat) = dir.file(path, Links::Refused)?;
            let hasher = Sha256::new_with_prefix(if stat.st_mode & 0o100 == 0 { b"f" } else { b"x" });
            streamed(file, hasher, abandoned)
                .map_err(|source| Error::System { path: path.to_owned(), source })
        }
    });
    match looked {
        Ok(digest) => Ok(Some(digest)),
        Err(error) if is_gone(&error) => Ok(None),
        // It became something else between two looks.
        Err(Error::Kind { .. }) => Ok(Some(marked(b'o'))),
        // Agents have no more rights than this process: what it may not read, they do not know either.
        Err(error) if error.io_kind() == io::ErrorKind::PermissionDenied => Ok(Some(marked(b'u'))),
        Err(error) => Err(error),
    }
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
