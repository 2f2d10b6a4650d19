//! What came back from the model and could not be recorded is paid for: it is kept in a file until a resume
//! can record it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use convoke_journal::{Batch, StreamId};
use convoke_kernel::{Agent, Event, Kept};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A batch that the journal would not take.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spooled {
    pub(crate) expected: u64,
    pub(crate) at: u64,
    pub(crate) events: Vec<String>,
    pub(crate) acks: Vec<String>,
}

/// The batch without its decisions to call or run something: those have not been acted upon.
pub(crate) fn outcome_only(events: &[Event], batch: &Batch) -> Batch {
    let keep = |event: &Event| !matches!(event, Event::ModelCalled(_) | Event::ToolStarted(_));
    let kept =
        events.iter().zip(&batch.events).take_while(|(event, _)| keep(event)).map(|(_, text)| text.clone());
    Batch { events: kept.collect(), ..batch.clone() }
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
    if !is_ours(dir) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let partial = path.with_extension("partial");
    // Half a batch that a killed process left behind is of no use.
    let _ = fs::remove_file(&partial);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    let written =
        file.write_all(text).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// A directory in a shared place may be another user's, who would read a reply, hold it back or forge one.
fn is_ours(dir: &Path) -> bool {
    let owner = fs::metadata("/proc/self").map(|me| me.uid()).ok();
    fs::symlink_metadata(dir)
        .is_ok_and(|meta| meta.is_dir() && Some(meta.uid()) == owner && meta.mode() & 0o077 == 0)
}

/// Finds a kept batch that goes right behind this sequence number. One that does not fit any more is left
/// alone.
pub(crate) fn find(dirs: &[PathBuf], stream: &StreamId, seq: u64) -> Option<(PathBuf, Spooled)> {
    dirs.iter().filter(|dir| is_ours(dir)).find_map(|dir| {
        let path = path(dir, stream);
        let spooled: Spooled = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        (spooled.expected == seq).then_some((path, spooled))
    })
}

/// Keeps what came back, if anything did. Only the outcome is kept, not what would have followed from it:
/// that was never allowed to start.
pub(crate) fn keep_if_worth(
    spools: &[PathBuf],
    stream: &StreamId,
    seq: u64,
    events: &[Event],
    batch: &Batch,
) -> Option<PathBuf> {
    let worth = events.iter().any(|e| matches!(e, Event::ModelReplied(_) | Event::ToolFinished(_)));
    if worth { keep(spools, stream, seq, &outcome_only(events, batch)) } else { None }
}

/// What came back is paid for: it is spooled unless another process took the stream over.
pub(crate) fn unrecorded(
    spools: &[PathBuf],
    stream: &StreamId,
    seq: u64,
    agent: &Agent,
    cause: convoke_journal::Error,
    (events, batch): (&[Event], &Batch),
) -> Error {
    use convoke_journal::Error::{Declined, LostLease, StaleSequence};
    if matches!(cause, LostLease { .. } | StaleSequence { .. } | Declined { .. }) {
        return Error::Journal(cause);
    }
    let text = events.iter().find_map(|event| match event {
        Event::ModelReplied(e) if e.kept == Kept::Yes => Some(e.reply.text.clone()),
        _ => None,
    });
    let outcome = events.iter().find_map(|event| match event {
        Event::ExchangeClosed(e) => Some(Box::new(e.outcome.clone())),
        _ => None,
    });
    let spooled = keep_if_worth(spools, stream, seq, events, batch);
    let summary = agent.summary_after(events, batch.at).ok().flatten().map(Box::new);
    Error::Unrecorded { cause, text, outcome, summary, spooled }
}
