//! A patch as it is shown: byte for byte to a program, coloured and cleaned to a terminal, or counted by
//! file. It reads patches that git made and changes none.

use serde_json::{Value, json};

use super::table::{Column, Table};
use crate::args::DiffFlags;
use crate::failure::Failure;
use crate::render::{Look, clean, quoted_name};
use crate::settings::OutputFormat;
use crate::stdio;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counted {
    /// As it is, which may be no text.
    pub(super) name: Vec<u8>,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// Whether its lines mean nothing.
    pub(super) binary: bool,
}

/// Puts a patch on stdout in the form that was asked for.
pub(super) fn put(patch: &[u8], form: DiffFlags, look: Look) -> Result<(), Failure> {
    if form.name_only && form.nul && !look.answer_on_terminal {
        let names: Vec<u8> =
            counted(patch).into_iter().flat_map(|file| file.name.into_iter().chain([0])).collect();
        return stdio::put_exact(&names).map(drop);
    }
    if form.name_only {
        // A terminal obeys what is in a name, so it never gets one as it is.
        return stdio::put(
            &counted(patch).iter().map(|file| quoted_name(&file.name) + "\n").collect::<String>(),
        );
    }
    if form.stat {
        return stdio::put(&stat(patch).render(stdio::width()));
    }
    if look.answer_on_terminal {
        return stdio::put(&shown(&String::from_utf8_lossy(patch), look.colour));
    }
    stdio::put_exact(patch).map(drop)
}

/// The patch for programs that want more than a patch: the files, and the patch as text.
pub(super) fn object(patch: &[u8]) -> (Vec<Value>, String) {
    let file = |file: Counted| {
        let Counted { name, added, removed, binary } = file;
        json!({"path": String::from_utf8_lossy(&name), "added": added, "removed": removed, "binary": binary})
    };
    (counted(patch).into_iter().map(file).collect(), String::from_utf8_lossy(patch).into_owned())
}

/// Checks that a patch can be printed in this format.
pub(super) fn check(command: &str, format: OutputFormat) -> Result<(), Failure> {
    if format == OutputFormat::Jsonl { Err(super::no_jsonl(command)) } else { Ok(()) }
}

fn stat(patch: &[u8]) -> Table {
    let mut table =
        Table::new(vec![Column::kept("ADDED").right(), Column::kept("REMOVED").right(), Column::cut("FILE")]);
    for Counted { name, added, removed, binary } in counted(patch) {
        let count = |lines: usize| if binary { "binary".to_owned() } else { lines.to_string() };
        table.row(vec![count(added), count(removed), quoted_name(&name)]);
    }
    table
}

/// What a patch does, file by file.
fn counted(patch: &[u8]) -> Vec<Counted> {
    let mut files: Vec<Counted> = Vec::new();
    // Lines of the hunk that are still to come: what begins like a header inside of one is content.
    let mut old = 0usize;
    let mut new = 0usize;
    for line in patch.split(|byte| *byte == b'\n') {
        if old + new > 0 {
            let Some(file) = files.last_mut() else { break };
            match line.first() {
                Some(b'+') => (file.added, new) = (file.added + 1, new.saturating_sub(1)),
                Some(b'-') => (file.removed, old) = (file.removed + 1, old.saturating_sub(1)),
                Some(b'\\') => {}
                _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
            continue;
        }
        let text = String::from_utf8_lossy(line);
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            files.push(Counted { name: name(names), added: 0, removed: 0, binary: false });
        } else if let Some(hunk) = text.strip_prefix("@@ ") {
            (old, new) = sizes(hunk);
        } else if text == "GIT binary patch" || text.starts_with("Binary files ") {
            files.iter_mut().last().into_iter().for_each(|file| file.binary = true);
        }
    }
    files
}

/// The lines of a hunk, before and after, from `-1,3 +1,4 @@`.
fn sizes(hunk: &str) -> (usize, usize) {
    let size = |range: Option<&str>| {
        let range = range.map(|range| range.trim_start_matches(['-', '+'])).unwrap_or_default();
        range.split_once(',').map_or(Some(1), |(_, lines)| lines.parse().ok()).unwrap_or(0)
    };
    let mut ranges = hunk.split(' ');
    (size(ranges.next()), size(ranges.next()))
}

/// The name from `a/NAME b/NAME`: nothing is renamed, so both halves say the same.
fn name(names: &[u8]) -> Vec<u8> {
    let half = names.get(..names.len().saturating_sub(1) / 2).unwrap_or(names);
    match half.strip_prefix(b"\"").and_then(|quoted| quoted.strip_suffix(b"\"")) {
        Some(quoted) => unquoted(quoted.strip_prefix(b"a/").unwrap_or(quoted)),
        None => half.strip_prefix(b"a/").unwrap_or(half).to_owned(),
    }
}

/// A name as git quotes it, as it is.
fn unquoted(name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = name.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    let Some(next) = rest.next_if(|next| (b'0'..=b'7').contains(next)) else { break };
                    value = value * 8 + (next - b'0');
                }
                bytes.push(value);
            }
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'v') => bytes.push(0xb),
            Some(b'f') => bytes.push(0xc),
            Some(b'r') => bytes.push(b'\r'),
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    bytes
}

/// The patch for a terminal: nothing in it is obeyed, and lines have colours if they may.
fn shown(patch: &str, colour: bool) -> String {
    let mut shown = String::with_capacity(patch.len());
    for line in patch.lines() {
        let text = clean(line);
        let style = match line.as_bytes() {
            _ if !colour => "",
            [b'd', b'i', b'f', b'f', ..] | [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => {
                "\u{1b}[1m"
            }
            [b'@', b'@', ..] => "\u{1b}[36m",
            [b'+', ..] => "\u{1b}[32m",
            [b'-', ..] => "\u{1b}[31m",
            _ => "",
        };
        match style {
            "" => shown.push_str(&text),
            style => shown.push_str(&format!("{style}{text}\u{1b}[0m")),
        }
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\n+++ b/a \
        b.txt\n@@ -1,3 +1,3 @@\n one\n\
        --- two\n+++ three\n four\n\\ No newline at end of file\ndiff --git \"a/\\303\\251\\t.bin\" \
        \"b/\\303\\251\\t.bin\"\nnew file mode 100644\nindex 0..3\nGIT binary patch\nliteral \
        3\nKcmZQzU|?Vd\n\n\
        diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+\u{1b}[2Jx\n";

    #[test]
    fn lines_are_counted_by_file_and_content_is_not_taken_for_headers() {
        let expected = [("a b.txt", 1, 1, false), ("é\t.bin", 0, 0, true), ("new", 1, 0, false)];
        let counted: Vec<_> = counted(PATCH.as_bytes())
            .into_iter()
            .map(|f| (String::from_utf8(f.name).unwrap(), f.added, f.removed, f.binary))
            .collect();
        let expected: Vec<_> =
            expected.map(|(path, added, removed, binary)| (path.to_owned(), added, removed, binary)).into();
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_terminal_obeys_nothing_in_a_patch_and_a_pipe_gets_no_colour() {
        let plain = shown(PATCH, false);
        assert!(!plain.contains('\u{1b}') && plain.contains("\n+x\n"), "{plain:?}");
        let coloured = shown(PATCH, true);
        assert!(
            coloured.contains("\u{1b}[32m+x\u{1b}[0m") && coloured.contains("\u{1b}[36m@@"),
            "{coloured:?}"
        );
        assert!(!coloured.contains("[2J"), "{coloured:?}");
    }

    #[test]
    fn a_count_fits_its_width() {
        assert_eq!(
            stat(PATCH.as_bytes()).render(Some(40)),
            " ADDED  REMOVED  FILE\n     1        1  a b.txt\nbinary   binary  \"é\\t.bin\"\n     1        \
                0  new\n"
        );
    }
}
