//! The grep tool: lines that fit a regular expression. Files are searched through the handle they were opened
//! by; nothing is changed.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use rustix::fs::{AtFlags, FileType};
use serde::Deserialize;

use crate::beneath::{self, Opened};
use crate::caps::{Caps, Deadline};
use crate::editor::Done;
use crate::glob::{Pattern, Sort, changed};
use crate::refused::Refused;
use crate::root::{Named, Root};
use crate::show;
use crate::walk::Walk;

/// One call of the grep tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Grep {
    /// A regular expression in Rust's syntax.
    pub pattern: String,
    /// The file or directory to search; the tree if none.
    #[serde(default)]
    pub path: Option<String>,
    /// Only files that fit this pattern of names; see [`Glob`](crate::Glob).
    #[serde(default)]
    pub glob: Option<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// Whether the pattern is a plain text.
    #[serde(default)]
    pub fixed: bool,
    /// Whether a match may span lines.
    #[serde(default)]
    pub multiline: bool,
    /// Lines shown before and after a match.
    #[serde(default)]
    pub context: usize,
    /// What the answer lists.
    #[serde(default)]
    pub mode: Mode,
    /// Whether hidden and ignored files are searched too.
    #[serde(default)]
    pub all: bool,
    /// The order of files in the answer.
    #[serde(default)]
    pub sort: Sort,
}

/// What an answer lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Matching lines, with their numbers.
    #[default]
    Lines,
    /// Files with a match.
    Files,
    /// Files, each with the number of matching lines.
    Count,
}

/// Carries out one call of the grep tool.
pub fn grep(root: &Root, grep: &Grep, caps: &Caps) -> Result<Done, Refused> {
    let filter = grep.glob.as_deref().map(|glob| Pattern::read(root, glob)).transpose()?;
    let named = root.named(grep.path.as_deref().unwrap_or("."))?;
    let mut walk = Walk::new(caps, grep.all);
    let mut search = Search::new(grep, caps, walk.deadline())?;
    match beneath::open(root, &named)? {
        Opened::File(file, _) => search.file(&named.path, file),
        Opened::Directory(directory) => {
            let mut later: Vec<(i128, PathBuf)> = Vec::new();
            walk.run(root, &named, directory, &mut |entry| {
                if entry.kind != FileType::RegularFile
                    || filter.as_ref().is_some_and(|filter| !filter.fits(entry.below))
                {
                    return ControlFlow::Continue(());
                }
                if grep.sort == Sort::Newest {
                    let stat = rustix::fs::statat(entry.directory, entry.name, AtFlags::SYMLINK_NOFOLLOW);
                    later.push((-stat.map_or(0, |stat| changed(&stat)), entry.path.to_owned()));
                    return ControlFlow::Continue(());
                }
                match beneath::open_file(entry.directory, entry.name) {
                    Ok((file, _)) => search.file(entry.path, file),
                    Err(_) => search.unread.push(show::below(entry.path)),
                }
                ControlFlow::Continue(())
            });
            later.sort();
            for (_, path) in later {
                let named = Named { said: show::below(&path), path };
                match beneath::open(root, &named) {
                    Ok(Opened::File(file, _)) => search.file(&named.path, file),
                    _ => search.unread.push(named.said),
                }
            }
        }
    }
    walk.late |= search.late;
    Ok(Done { text: search.finish(&named, &walk), changed: None })
}

/// A search that goes from file to file.
struct Search<'a> {
    grep: &'a Grep,
    caps: &'a Caps,
    deadline: Deadline,
    matcher: RegexMatcher,
    searcher: Searcher,
    text: String,
    /// Characters that still fit in the answer.
    room: usize,
    /// Lines or files listed.
    listed: usize,
    /// Matching lines and files that were not listed.
    left_lines: u64,
    left_files: u64,
    searched: u64,
    matched: bool,
    binary: Vec<String>,
    unread: Vec<String>,
    late: bool,
}

impl<'a> Search<'a> {
    fn new(grep: &'a Grep, caps: &'a Caps, deadline: Deadline) -> Result<Self, Refused> {
        const MOST_CONTEXT: usize = 100;
        /// Bytes a compiled pattern may take.
        const MOST_PATTERN: usize = 16 << 20;
        if grep.pattern.is_empty() {
            let why = "it is empty and would fit every line.".to_owned();
            return Err(Refused::Pattern { pattern: String::new(), why });
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(grep.ignore_case)
            .fixed_strings(grep.fixed)
            .multi_line(true)
            .size_limit(MOST_PATTERN);
        if !grep.multiline {
            // So `$` fits before `\r\n` too.
            builder.crlf(true);
        }
        let matcher = builder.build(&grep.pattern).map_err(|error| {
            let hint = if grep.multiline || !grep.pattern.contains("\\n") && !grep.pattern.contains('\n') {
                "Escape what is meant literally, as in `\\{`, or set fixed for a plain text."
            } else {
                "Set multiline for a pattern that spans lines."
            };
            Refused::Pattern {
                pattern: show::cut(&grep.pattern, 200, 0),
                why: format!("{} {hint}", one_line(&error.to_string())),
            }
        })?;
        let mut builder = SearcherBuilder::new();
        let context = if grep.mode == Mode::Lines { grep.context.min(MOST_CONTEXT) } else { 0 };
        builder.line_number(true).multi_line(grep.multiline).before_context(context).after_context(context);
        builder.binary_detection(BinaryDetection::convert(0)).heap_limit(Some(caps.search_bytes));
        if !grep.multiline {
            builder.line_terminator(LineTerminator::crlf());
        }
        Ok(Self {
            grep,
            caps,
            deadline,
            matcher,
            searcher: builder.build(),
            text: String::new(),
            room: caps.view_chars,
            listed: 0,
            left_lines: 0,
            left_files: 0,
            searched: 0,
            matched: false,
            binary: Vec::new(),
            unread: Vec::new(),
            late: false,
        })
    }

    fn file(&mut self, path: &Path, file: File) {
        if self.late || self.deadline.passed() {
            self.late = true;
            return;
        }
        self.searched += 1;
        let path = show::below(path);
        let quota = self.caps.results.saturating_sub(self.listed);
        let mut lines = FileLines {
            matcher: &self.matcher,
            caps: self.caps,
            mode: self.grep.mode,
            quota,
            room: self.room.saturating_sub(path.len() + 1),
            text: String::new(),
            kept: 0,
            shown: 0,
            found: 0,
            full: false,
            binary: false,
        };
        let mut reader = Timed { file, deadline: self.deadline, late: false };
        let outcome = self.searcher.search_reader(&self.matcher, &mut reader, &mut lines);
        self.late |= reader.late;
        let FileLines { text, shown, found, binary, .. } = lines;
        if outcome.is_err() {
            self.unread.push(path.clone());
        }
        if found == 0 {
            return;
        }
        self.matched = true;
        if binary {
            self.binary.push(path);
            return;
        }
        let block = match self.grep.mode {
            Mode::Lines => format!("{path}\n{text}"),
            Mode::Files => format!("{path}\n"),
            Mode::Count => format!("{path}: {found}\n"),
        };
        let chars = block.chars().count();
        let listed = if self.grep.mode == Mode::Lines { shown } else { 1 };
        if listed == 0 || quota == 0 || chars > self.room {
            self.left_lines += found;
            self.left_files += 1;
            // Smaller blocks of later files would stand there as if nothing were missing between them.
            self.room = 0;
            return;
        }
        self.room -= chars;
        self.listed += listed;
        if self.grep.mode == Mode::Lines {
            self.left_lines += found - shown as u64;
        }
        self.text.push_str(&block);
    }

    fn finish(self, named: &Named, walk: &Walk) -> String {
        let mut text = self.text;
        let mut remarks = Vec::new();
        if self.left_lines > 0 || self.left_files > 0 {
            let lines = show::count(self.left_lines, "more matching line", "more matching lines");
            let files = show::count(self.left_files, "more file", "more files");
            let what = match self.grep.mode {
                Mode::Lines if self.left_files > 0 => format!("{lines}, some of them in {files},"),
                Mode::Lines => lines,
                Mode::Files | Mode::Count => files,
            };
            remarks.push(format!("{what} not listed: narrow the pattern, the path or glob"));
        }
        if !self.matched {
            let searched = show::count(self.searched, "file", "files");
            remarks.push(format!(
                "no match for `{}` in `{}` ({searched} searched)",
                show::cut(&self.grep.pattern, 200, 0),
                named.said
            ));
            if walk.left_out > 0 {
                remarks.push(format!(
                    "{} hidden or ignored and not searched: all includes them",
                    show::count(walk.left_out, "entry is", "entries are")
                ));
            }
        }
        if !self.binary.is_empty() {
            remarks.push(format!("binary files that match, not shown: {}", some(&self.binary)));
        }
        if !self.unread.is_empty() {
            remarks.push(format!(
                "could not be searched to the end (unreadable, or a line longer than is held): {}",
                some(&self.unread)
            ));
        }
        remarks.extend(walk.remarks(self.caps));
        if !remarks.is_empty() {
            text.push_str(&format!("[{}]\n", remarks.join("; ")));
        }
        text
    }
}

/// A file that seems to end when the time is up.
struct Timed {
    file: File,
    deadline: Deadline,
    late: bool,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.passed() {
            self.late = true;
            return Ok(0);
        }
        self.file.read(buffer)
    }
}

/// What is found in one file.
struct FileLines<'a> {
    matcher: &'a RegexMatcher,
    caps: &'a Caps,
    mode: Mode,
    /// Lines and characters that may still be shown.
    quota: usize,
    room: usize,
    text: String,
    /// How much of `text` belongs to matches that are shown.
    kept: usize,
    shown: usize,
    found: u64,
    /// From the first match on that does not fit, matches are only counted.
    full: bool,
    binary: bool,
}

impl FileLines<'_> {
    /// Adds lines if they fit.
    fn push(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) -> bool {
        let mut text = String::new();
        for (offset, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let number = number.unwrap_or(0) + offset as u64;
            text.push_str(&format!("{number:>6}{mark} {}\n", self.window(show::bare(line))));
        }
        let chars = text.chars().count();
        let fits = chars <= self.room;
        if fits {
            self.room -= chars;
            self.text.push_str(&text);
        }
        fits
    }

    /// A line, or the part of a long one around the match.
    fn window(&self, line: &[u8]) -> String {
        const BEFORE: usize = 60;
        let text = show::readable(line);
        let start = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
        let before = show::readable(&line[..start]).chars().count();
        if before + BEFORE < self.caps.line_chars {
            return show::cut(&text, self.caps.line_chars, 0);
        }
        let skipped = before.saturating_sub(BEFORE);
        let rest: String = text.chars().skip(skipped).collect();
        format!("[{skipped} characters] …{}", show::cut(&rest, self.caps.line_chars, 0))
    }
}

impl Sink for FileLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let lines = found.lines().count();
        self.found += lines as u64;
        if self.mode == Mode::Files || self.binary {
            return Ok(false);
        }
        if self.mode == Mode::Lines && !self.full {
            if self.shown + lines <= self.quota && self.push(found.line_number(), ':', found.bytes()) {
                self.shown += lines;
                self.kept = self.text.len();
            } else {
                self.full = true;
                // What was shown before this match goes with it.
                self.text.truncate(self.kept);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.mode == Mode::Lines && !self.full {
            let fits = self.push(context.line_number(), '-', context.bytes());
            if fits && *context.kind() == SinkContextKind::After {
                self.kept = self.text.len();
            }
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.mode == Mode::Lines && !self.full && !self.text.is_empty() {
            self.text.push_str("    --\n");
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        // One match is all that is said of such a file.
        Ok(self.found == 0)
    }
}

/// The first few of a list, and how many more there are.
fn some(paths: &[String]) -> String {
    const MOST: usize = 10;
    let listed = paths.iter().take(MOST).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let more = paths.len().saturating_sub(MOST);
    if more == 0 { listed } else { format!("{listed} and {more} more") }
}

/// An error of several lines as one.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
