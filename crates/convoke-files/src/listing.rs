//! Showing a directory: two levels, without what is hidden or ignored. It reads, and changes nothing.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType};

use crate::beneath;
use crate::caps::Caps;
use crate::root::{Named, Root};
use crate::show;
use crate::walk::{Entry, Walk};

/// Levels that are listed.
const LEVELS: usize = 2;
/// Entries of one directory on the second level that are listed, so that one large directory does not hide
/// the others.
const MOST_BELOW: usize = 50;

/// The entries of a directory and of those in it.
pub(crate) fn directory(root: &Root, named: &Named, directory: OwnedFd, caps: &Caps) -> String {
    let mut walk = Walk::new(caps, false).down_to(LEVELS);
    let mut lines: Vec<String> = Vec::new();
    let mut chars = 0;
    let mut below = 0;
    let mut left_below = 0_u64;
    let mut left_over = 0_u64;
    walk.run(root, named, directory, &mut |entry| {
        if entry.depth == 1 {
            if left_below > 0 {
                lines.push(more(left_below));
            }
            below = 0;
            left_below = 0;
        } else {
            below += 1;
            if below > MOST_BELOW {
                left_below += 1;
                return ControlFlow::Continue(());
            }
        }
        let line = line(entry);
        if lines.len() >= caps.results || chars + line.len() > caps.view_chars {
            left_over += 1;
        } else {
            chars += line.len();
            lines.push(line);
        }
        ControlFlow::Continue(())
    });
    if left_below > 0 {
        lines.push(more(left_below));
    }
    let mut remarks = Vec::new();
    if left_over > 0 {
        remarks.push(format!("{left_over} more not listed: view a directory further down, or use glob"));
    }
    if walk.left_out > 0 {
        remarks.push(format!("{} hidden or ignored", walk.left_out));
    }
    walk.too_deep = 0;
    remarks.extend(walk.remarks(caps));
    let mut text = format!("`{}`, two levels deep:\n", named.said);
    for line in &lines {
        text.push_str(line);
        text.push('\n');
    }
    if lines.is_empty() {
        remarks.insert(0, "nothing to list".to_owned());
    }
    if !remarks.is_empty() {
        text.push_str(&format!("[{}]\n", remarks.join("; ")));
    }
    text
}

fn more(number: u64) -> String {
    format!("  … {number} more here")
}

fn line(entry: &Entry<'_>) -> String {
    let path = show::below(entry.path);
    match entry.kind {
        FileType::Directory => format!("{path}/"),
        FileType::RegularFile => {
            let stat = rustix::fs::statat(entry.directory, entry.name, AtFlags::SYMLINK_NOFOLLOW);
            stat.map_or_else(
                |_| path.clone(),
                |stat| format!("{path}  {}", show::size(beneath::length(&stat))),
            )
        }
        FileType::Symlink => match rustix::fs::readlinkat(entry.directory, entry.name, Vec::new()) {
            Ok(target) => {
                format!("{path} -> {}", show::path(Path::new(OsStr::from_bytes(target.to_bytes()))))
            }
            Err(_) => format!("{path} (a link)"),
        },
        _ => format!("{path} (no regular file)"),
    }
}
