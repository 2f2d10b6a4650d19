//! Showing a file: numbered lines, a page at a time. It reads, and changes nothing.

use std::fs::File;
use std::io::Read;

use rustix::fs::Stat;

use crate::beneath;
use crate::caps::Caps;
use crate::line_ends;
use crate::refused::Refused;
use crate::root::Named;
use crate::show::{self, Page};
use crate::text::{self, Content};

/// Which lines are wanted, both counted from 1 and both included; no end means all the rest.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    first: u64,
    last: Option<u64>,
}

/// The text of a file, or of a range of its lines.
pub(crate) fn file(
    named: &Named,
    file: File,
    stat: &Stat,
    range: Option<(i64, i64)>,
    caps: &Caps,
) -> Result<String, Refused> {
    let wanted = wanted(range)?;
    if beneath::length(stat) > caps.file_bytes {
        return long_file(named, file, stat, wanted, caps);
    }
    let mut bytes = Vec::new();
    let read = (&file).take(caps.file_bytes.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Refused::reading_io(&named.said, &error))?;
    let size = bytes.len() as u64;
    if size > caps.file_bytes {
        // It grew, or it is one of those that tell no size before they are read.
        return Err(Refused::Large {
            path: named.said.clone(),
            size: format!("more than {}", show::size(caps.file_bytes)),
            cap: show::size(caps.file_bytes),
            advice: "It grows while it is read; look at it with a command.",
        });
    }
    match text::content(bytes) {
        Content::Binary(kind) => Ok(binary(named, kind, size)),
        Content::Text(text) => {
            let lines = line_ends::lines(&text.body);
            let total = lines.len() as u64;
            check_start(named, wanted, Some(total))?;
            let mut page = Page::new(caps);
            let last = wanted.last.unwrap_or(total).min(total);
            for number in wanted.first..=last {
                let Some(line) = usize::try_from(number - 1).ok().and_then(|at| lines.get(at)) else { break };
                if !page.line(number, show::bare(&text.body[line.clone()]), 0) {
                    break;
                }
            }
            let mut notes: Vec<String> = text.encoding_note().map(str::to_owned).into_iter().collect();
            let end = line_ends::dominant(&text.body);
            if end != line_ends::End::Lf {
                notes.push(format!("lines end in {}", end.name()));
            }
            if line_ends::unfinished(&text.body) && page.last == Some(total) {
                notes.push("no newline at the end".to_owned());
            }
            Ok(finish(page, wanted, Some(total), size, &notes))
        }
    }
}

/// The lines around an edit, for the answer to it.
pub(crate) fn around(body: &[u8], first: u64, last: u64, caps: &Caps) -> String {
    const CONTEXT: u64 = 3;
    const MOST: u64 = 40;
    let lines = line_ends::lines(body);
    let from = first.saturating_sub(CONTEXT).max(1);
    let mut page = Page::new(caps);
    let end = (last + CONTEXT).min(lines.len() as u64).min(from + MOST);
    for number in from..=end {
        let Some(line) = usize::try_from(number - 1).ok().and_then(|at| lines.get(at)) else { break };
        if !page.line(number, show::bare(&body[line.clone()]), 0) {
            break;
        }
    }
    page.into_text()
}

/// A file too large to be held: read once from its beginning, holding only what is shown.
fn long_file(
    named: &Named,
    mut file: File,
    stat: &Stat,
    wanted: Wanted,
    caps: &Caps,
) -> Result<String, Refused> {
    let deadline = caps.deadline();
    let mut buffer = vec![0_u8; 256 << 10];
    let mut page = Page::new(caps);
    let mut number = 1_u64;
    let mut line = Vec::new();
    let mut dropped = 0_u64;
    let mut open = false;
    let mut full = false;
    let mut begun = false;
    let mut whole = true;
    // Four bytes are the most a character has, so this many always fill what is shown of a line.
    let hold = caps.line_chars.saturating_mul(4);
    let within = |number: u64| number >= wanted.first && wanted.last.is_none_or(|last| number <= last);
    loop {
        if deadline.passed() {
            whole = false;
            break;
        }
        let length = file.read(&mut buffer).map_err(|error| Refused::reading_io(&named.said, &error))?;
        let chunk = &buffer[..length];
        if !begun {
            begun = true;
            if let Some(kind) = text::binary_head(&chunk[..length.min(8 << 10)]) {
                return Ok(binary(named, kind, beneath::length(stat)));
            }
        }
        if chunk.is_empty() {
            break;
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let ended = piece.ends_with(b"\n");
            if within(number) && !full {
                let room = hold.saturating_sub(line.len()).min(piece.len());
                line.extend_from_slice(&piece[..room]);
                // A character has one byte that does not continue another.
                dropped += piece[room..].iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
            }
            open = !ended;
            if ended {
                if within(number) && !full {
                    full = !page.line(number, show::bare(&line), dropped);
                    line.clear();
                    dropped = 0;
                }
                number += 1;
            }
        }
    }
    if open && within(number) && !full {
        page.line(number, show::bare(&line), dropped);
    }
    let total = whole.then_some(if open { number } else { number - 1 });
    check_start(named, wanted, total)?;
    let notes = if whole {
        Vec::new()
    } else {
        vec![format!("reading stopped after {:?}, before the end of the file", caps.time)]
    };
    Ok(finish(page, wanted, total, beneath::length(stat), &notes))
}

fn wanted(range: Option<(i64, i64)>) -> Result<Wanted, Refused> {
    let Some((first, last)) = range else { return Ok(Wanted { first: 1, last: None }) };
    let bad = |why: &str| Err(Refused::Lines { why: format!("view_range [{first}, {last}] {why}") });
    let Some(from) = u64::try_from(first).ok().filter(|first| *first >= 1) else {
        return bad("is not usable: lines are counted from 1.");
    };
    match u64::try_from(last) {
        Ok(last) if last >= from => Ok(Wanted { first: from, last: Some(last) }),
        _ if last == -1 => Ok(Wanted { first: from, last: None }),
        _ => {
            bad("is not usable: the end is a line at or after the first one, or -1 for the end of the file.")
        }
    }
}

fn check_start(named: &Named, wanted: Wanted, total: Option<u64>) -> Result<(), Refused> {
    match total {
        Some(total) if wanted.first > total.max(1) => Err(Refused::Lines {
            why: format!(
                "`{}` has {}; view_range begins at {}, behind its end.",
                named.said,
                show::count(total, "line", "lines"),
                wanted.first
            ),
        }),
        _ => Ok(()),
    }
}

fn finish(page: Page, wanted: Wanted, total: Option<u64>, size: u64, notes: &[String]) -> String {
    let shown = page.last;
    let mut text = page.into_text();
    let mut notes = notes.to_vec();
    let end = match (wanted.last, total) {
        (Some(last), Some(total)) => Some(last.min(total)),
        (last, total) => last.or(total),
    };
    match (shown, end, total) {
        (None, _, Some(0)) => notes.insert(0, "the file is empty".to_owned()),
        (None, ..) => notes.insert(0, "none of these lines was reached".to_owned()),
        (Some(shown), end, total) => {
            let cut = end.is_none_or(|end| shown < end);
            let of = total.map_or_else(
                || format!("of {}", show::size(size)),
                |total| format!("of {total} ({})", show::size(size)),
            );
            if cut {
                let next = shown + 1;
                let to = end.map_or_else(|| "-1".to_owned(), |end| end.to_string());
                notes.insert(
                    0,
                    format!("lines {} to {shown} {of}; go on with view_range [{next}, {to}]", wanted.first),
                );
            } else if wanted.first > 1 || total.is_none_or(|total| shown < total) {
                notes.insert(0, format!("lines {} to {shown} {of}", wanted.first));
            }
        }
    }
    if !notes.is_empty() {
        text.push_str(&format!("[{}]\n", notes.join("; ")));
    }
    text
}

fn binary(named: &Named, kind: &str, size: u64) -> String {
    format!(
        "`{}` is {kind} of {}; this tool shows text only. Use a command to look into it.\n",
        named.said,
        show::size(size)
    )
}
