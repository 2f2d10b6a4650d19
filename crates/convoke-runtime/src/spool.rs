//! What came back from the model and could not be recorded is paid for: it is kept in a file until a resume can
//! record it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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

fn write(dir: &Path, path: &Path, text: &[u8]) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let partial = path.with_extension("partial");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(partial, path)
}

/// Finds a kept batch that goes right behind this sequence number. One that does not fit any more is left alone.
pub(crate) fn find(dirs: &[PathBuf], stream: &StreamId, seq: u64) -> Option<(PathBuf, Spooled)> {
    dirs.iter().find_map(|dir| {
        let path = path(dir, stream);
        let spooled: Spooled = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        (spooled.expected == seq).then_some((path, spooled))
    })
}
