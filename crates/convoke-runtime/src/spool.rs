//! What came back from the model and could not be recorded is paid for: it is kept in a file until a resume can
//! record it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use convoke_journal::{Batch, StreamId};
use serde::{Deserialize, Serialize};

/// A batch that the journal would not take.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spooled {
    pub(crate) expected: u64,
    pub(crate) at: u64,
    pub(crate) events: Vec<String>,
    pub(crate) acks: Vec<String>,
}

fn path(dir: &Path, stream: &StreamId) -> PathBuf {
    dir.join(format!("{}.json", stream.as_str()))
}

/// Keeps a batch in the first of these directories that takes it.
pub(crate) fn keep(dirs: &[PathBuf], stream: &StreamId, expected: u64, batch: &Batch) -> Option<PathBuf> {
    let spooled = Spooled { expected, at: batch.at, events: batch.events.clone(), acks: batch.acks.clone() };
    let text = serde_json::to_vec(&spooled).ok()?;
    dirs.iter().find_map(|dir| {
        let path = path(dir, stream);
        write(dir, &path, &text).ok().map(|()| path)
    })
}

fn write(dir: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    // A directory in a shared place may be somebody else's by now, who would then read or hold back the reply.
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != fs::metadata("/proc/self")?.uid() || meta.mode() & 0o077 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    let written = file.write_all(text).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // Half a batch is of no use, and the next try must find its place free.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Finds a kept batch that goes right behind this sequence number. One that does not fit any more is left alone.
pub(crate) fn find(dirs: &[PathBuf], stream: &StreamId, seq: u64) -> Option<(PathBuf, Spooled)> {
    dirs.iter().find_map(|dir| {
        let path = path(dir, stream);
        let spooled: Spooled = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        (spooled.expected == seq).then_some((path, spooled))
    })
}
