//! What a command printed, kept within bounds: the head and the tail as text, all of it (up to a cap) in a
//! file, and an exact count. However much a command prints, memory does not grow.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

/// How much of a command's output to keep, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSpec {
    /// The most characters of text to return, the line about what was left out included.
    pub keep_chars: usize,
    /// Where the whole output goes when the text had to be cut. Its directory is made if need be.
    pub full_file: PathBuf,
    /// The most bytes to write there.
    pub full_cap: u64,
}

impl OutputSpec {
    /// The usual limits: 8,000 characters of text, 64 MiB in the file.
    pub fn new(full_file: PathBuf) -> Self {
        Self { keep_chars: 8000, full_file, full_cap: 64 * 1024 * 1024 }
    }
}

/// What a command printed on stdout and stderr, in the order in which it was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// All of it, or head and tail with a line between them that says how much is missing and where it is.
    /// What is not UTF-8 is replaced.
    pub text: String,
    /// How many bytes were printed.
    pub total_bytes: u64,
    /// The file with the whole output; only there when `text` was cut.
    pub full: Option<PathBuf>,
    /// Whether the file, too, holds only the beginning.
    pub full_truncated: bool,
    /// Why there is no whole file although the text was cut.
    pub full_error: Option<String>,
}

/// Takes output in as it comes.
pub(crate) struct Sink {
    spec: OutputSpec,
    /// The first bytes, up to `room`.
    head: Vec<u8>,
    /// The last bytes of what went past the head, up to `room`.
    tail: VecDeque<u8>,
    room: usize,
    total: u64,
    spool: Spool,
}

enum Spool {
    /// Everything is still in `head`.
    NotNeeded,
    Open {
        file: File,
        written: u64,
    },
    Failed(String),
}

impl Sink {
    pub(crate) fn new(spec: OutputSpec) -> Self {
        // A character has at most four bytes, so what does not fit here is certainly cut.
        let room = spec.keep_chars.saturating_mul(4);
        Self { spec, head: Vec::new(), tail: VecDeque::new(), room, total: 0, spool: Spool::NotNeeded }
    }

    /// Takes in some bytes.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.room - self.head.len()));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        if matches!(self.spool, Spool::NotNeeded) {
            self.open_spool().await;
        }
        self.write(rest).await;
        self.tail.extend(&rest[rest.len().saturating_sub(self.room)..]);
        let excess = self.tail.len().saturating_sub(self.room);
        self.tail.drain(..excess);
    }

    /// The end: what has been kept.
    pub(crate) async fn finish(mut self) -> Captured {
        let whole = String::from_utf8_lossy(&self.head);
        if self.tail.is_empty() && whole.chars().count() <= self.spec.keep_chars {
            let text = whole.into_owned();
            return Captured {
                text,
                total_bytes: self.total,
                full: None,
                full_truncated: false,
                full_error: None,
            };
        }
        if matches!(self.spool, Spool::NotNeeded) {
            self.open_spool().await;
        }
        if let Spool::Open { file, .. } = &mut self.spool
            && let Err(error) = file.flush().await
        {
            self.spool = Spool::Failed(error.to_string());
        }
        let (full, full_truncated, full_error) = match &self.spool {
            Spool::Open { written, .. } => (Some(self.spec.full_file.clone()), *written < self.total, None),
            Spool::Failed(error) => (None, false, Some(error.clone())),
            Spool::NotNeeded => (None, false, None),
        };
        let place = match (&full, full_truncated, &full_error) {
            (Some(path), false, _) => format!("all of it is in {}", path.display()),
            (Some(path), true, _) => {
                format!("the first {} bytes are in {}", self.spec.full_cap, path.display())
            }
            (None, _, error) => format!("it could not be stored: {}", error.as_deref().unwrap_or("no file")),
        };
        let text = self.cut(&place);
        Captured { text, total_bytes: self.total, full, full_truncated, full_error }
    }

    fn cut(&mut self, place: &str) -> String {
        let total = self.total;
        let marker = |left_out: u64| format!("\n[... {left_out} of {total} bytes left out; {place} ...]\n");
        let budget = self.spec.keep_chars.saturating_sub(marker(total).chars().count());
        let (head, head_bytes) = first_chars(&self.head, budget - budget / 2);
        // Only bytes that the head does not show may be shown again as the tail.
        let mut rest = self.head[head_bytes..].to_vec();
        rest.extend(self.tail.make_contiguous().iter());
        let (tail, tail_bytes) = last_chars(&rest, budget / 2);
        format!("{head}{}{tail}", marker(total - (head_bytes + tail_bytes) as u64))
    }

    async fn open_spool(&mut self) {
        self.spool = match create(&self.spec.full_file).await {
            Ok(file) => Spool::Open { file, written: 0 },
            Err(error) => Spool::Failed(error.to_string()),
        };
        let head = std::mem::take(&mut self.head);
        self.write(&head).await;
        self.head = head;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let Spool::Open { file, written } = &mut self.spool else { return };
        let room = usize::try_from(self.spec.full_cap - *written).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        match file.write_all(bytes).await {
            Ok(()) => *written += bytes.len() as u64,
            Err(error) => self.spool = Spool::Failed(error.to_string()),
        }
    }
}

/// A file that only its owner can read. A symbolic link in its place is not followed.
async fn create(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        tokio::fs::create_dir_all(directory).await?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path).await
}

/// Up to `count` characters from the beginning, and how many bytes they were.
fn first_chars(bytes: &[u8], count: usize) -> (String, usize) {
    let mut text = String::new();
    let mut used = 0;
    let mut left = count;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if left == 0 {
                return (text, used);
            }
            text.push(character);
            used += character.len_utf8();
            left -= 1;
        }
        if !chunk.invalid().is_empty() {
            if left == 0 {
                return (text, used);
            }
            text.push(char::REPLACEMENT_CHARACTER);
            used += chunk.invalid().len();
            left -= 1;
        }
    }
    (text, used)
}

/// Up to `count` characters from the end, and how many bytes they were.
fn last_chars(bytes: &[u8], count: usize) -> (String, usize) {
    let mut characters = Vec::new();
    for chunk in bytes.utf8_chunks() {
        characters.extend(chunk.valid().chars().map(|character| (character, character.len_utf8())));
        if !chunk.invalid().is_empty() {
            characters.push((char::REPLACEMENT_CHARACTER, chunk.invalid().len()));
        }
    }
    // What comes from the middle may begin inside a character; those bytes are far from the end and fall away
    // here.
    let kept = &characters[characters.len().saturating_sub(count)..];
    (kept.iter().map(|(character, _)| character).collect(), kept.iter().map(|(_, length)| length).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sink(keep_chars: usize, full_cap: u64, parts: &[&[u8]]) -> (Captured, Option<Vec<u8>>) {
        let directory = tempfile::tempdir().unwrap();
        let full_file = directory.path().join("new/full");
        let mut sink = Sink::new(OutputSpec { keep_chars, full_file: full_file.clone(), full_cap });
        for part in parts {
            sink.push(part).await;
        }
        let captured = sink.finish().await;
        (captured, std::fs::read(full_file).ok())
    }

    #[tokio::test]
    async fn what_fits_is_kept_whole_and_makes_no_file() {
        let text = "ä".repeat(200);
        let (captured, file) = sink(200, 1000, &[&text.as_bytes()[..3], &text.as_bytes()[3..]]).await;
        assert_eq!((captured.text.as_str(), captured.total_bytes, captured.full), (text.as_str(), 400, None));
        assert_eq!(file, None);
    }

    #[tokio::test]
    async fn one_character_too_many_is_cut_into_head_and_tail() {
        let text: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let (captured, file) = sink(text.len() - 1, 10_000, &[text.as_bytes()]).await;
        assert!(captured.text.chars().count() < text.len(), "{}", captured.text);
        let (head, rest) = captured.text.split_once("\n[... ").unwrap();
        let (marker, tail) = rest.split_once(" ...]\n").unwrap();
        let left_out = text.len() - head.len() - tail.len();
        let path = captured.full.unwrap();
        assert_eq!(
            marker,
            format!("{left_out} of {} bytes left out; all of it is in {}", text.len(), path.display())
        );
        assert!(text.starts_with(head) && text.ends_with(tail));
        assert_eq!(file.as_deref(), Some(text.as_bytes()));
        assert!(!captured.full_truncated);
    }

    #[tokio::test]
    async fn the_file_is_capped_and_says_so() {
        let data = vec![b'x'; 100_000];
        let (captured, file) = sink(400, 50_000, &[&data[..70_000], &data[70_000..]]).await;
        assert_eq!((captured.total_bytes, captured.full_truncated), (100_000, true));
        assert!(captured.text.contains("the first 50000 bytes are in"), "{}", captured.text);
        assert!((390..=400).contains(&captured.text.chars().count()), "{}", captured.text);
        assert_eq!(file.unwrap().len(), 50_000);
    }

    #[tokio::test]
    async fn characters_of_several_bytes_and_garbage_are_cut_between_characters() {
        let data =
            [&"äö€".repeat(1000).into_bytes()[..], &[0xff, 0xfe, 0x00], &"€ü".repeat(1000).into_bytes()]
                .concat();
        for keep in [200, 201, 202, 203, 999] {
            let (captured, file) = sink(keep, 1 << 20, &[&data]).await;
            assert!(captured.text.chars().count() <= keep);
            assert!(!captured.text.contains(char::REPLACEMENT_CHARACTER), "{}", captured.text);
            assert_eq!(file.as_deref(), Some(&data[..]));
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_is_reported_and_loses_no_count() {
        let spec = OutputSpec { keep_chars: 300, full_file: "/dev/null/no/file".into(), full_cap: 1000 };
        let mut sink = Sink::new(spec);
        sink.push(&[b'x'; 5000]).await;
        let captured = sink.finish().await;
        assert_eq!((captured.total_bytes, captured.full), (5000, None));
        assert!(captured.full_error.is_some());
        assert!(captured.text.contains("it could not be stored"), "{}", captured.text);
    }
}
