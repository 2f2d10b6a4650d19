//! What was written in earlier sessions: a line of JSON each, in a file that is the person's alone. A file
//! that cannot be read or written is no reason to stop.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::composer::history::{decode, encode};

/// A longer file is cut to its last lines when it is read.
const MOST_BYTES: u64 = 1 << 20;

/// What was written, the oldest first.
pub(super) fn read(file: &Path) -> Vec<String> {
    let all = decode(&fs::read_to_string(file).unwrap_or_default());
    if fs::metadata(file).is_ok_and(|meta| meta.len() > MOST_BYTES) {
        let kept: String = all.iter().rev().take(500).rev().map(|text| encode(text) + "\n").collect();
        // Put in place in one step: another session may read it right now.
        let new = file.with_extension("new");
        let _ = write(&new, kept.as_bytes(), true).and_then(|()| fs::rename(&new, file));
    }
    all
}

/// Adds a text to the history file.
pub(super) fn keep(file: &Path, text: &str) {
    if let Some(dir) = file.parent() {
        let _ = fs::create_dir_all(dir);
    }
    let _ = write(file, (encode(text) + "\n").as_bytes(), false);
}

/// Makes an empty file beside the history to write a text in; only the person's account can read it.
pub(super) fn draft(history: Option<&Path>) -> std::io::Result<PathBuf> {
    let history = history.ok_or_else(|| std::io::Error::other("nothing is kept of this session"))?;
    if let Some(dir) = history.parent() {
        fs::create_dir_all(dir)?;
    }
    // Another session may have its own right now.
    let file = history.with_file_name(format!("draft-{}.md", std::process::id()));
    write(&file, b"", true).map(|()| file)
}

/// Reads what was written there, and removes the file.
pub(super) fn take_draft(file: &Path) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    let _ = fs::remove_file(file);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn write(file: &Path, bytes: &[u8], anew: bool) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600).append(!anew).write(true).truncate(anew);
    options.open(file)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_written_is_there_again_and_for_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/history");
        assert_eq!(read(&file), Vec::<String>::new());
        keep(&file, "first\nsecond row");
        keep(&file, "another");
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"not json\n").unwrap();
        keep(&file, "third \u{1b}[2J");
        assert_eq!(read(&file), ["first\nsecond row", "another", "third \u{1b}[2J"]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_draft_is_the_persons_alone_and_gone_when_it_was_taken() {
        let dir = tempfile::tempdir().unwrap();
        let file = draft(Some(&dir.path().join("state/history"))).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&file, b"two\nrows \xff").unwrap();
        assert_eq!(take_draft(&file), "two\nrows \u{fffd}");
        assert!(!file.exists());
        assert!(draft(None).is_err());
    }
}
