//! A look at one file that somebody cited. It reads nothing outside the directory, whatever links there are.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::content::open;

/// The largest file that is looked at.
const LARGEST: u64 = 8 << 20;
/// More links than this on one way lead in a circle.
const MOST_LINKS: usize = 40;

/// What was found at a cited path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Looked {
    /// A text file, and its whole text.
    Text(String),
    /// Nothing is there, or nothing that may be read.
    Missing,
    /// The path does not lie below the directory.
    Outside,
    /// The file is larger than 8 MiB.
    TooLarge,
    /// It is no file, or no text.
    NotText,
}

/// Reads the text of a file below `dir`. The path is relative to it, or absolute and below it; links are followed as
/// far as they stay below it.
pub(crate) fn read_lines(dir: &Path, path: &str) -> Looked {
    let Ok(root) = dir.canonicalize() else { return Looked::Missing };
    // An absolute path may name the directory as it was given rather than as it is.
    let path = Path::new(path);
    let inside = if path.is_absolute() { path.strip_prefix(dir).unwrap_or(path) } else { path };
    let Some((resolved, there)) = resolve(&root, inside) else { return Looked::Missing };
    if !resolved.starts_with(&root) {
        return Looked::Outside;
    }
    if !there {
        return Looked::Missing;
    }
    match resolved.symlink_metadata() {
        Ok(meta) if meta.is_file() => read(&resolved),
        Ok(_) => Looked::NotText,
        Err(_) => Looked::Missing,
    }
}

fn read(path: &Path) -> Looked {
    let Ok(file) = open(path) else { return Looked::Missing };
    // Looked at again: what was a file may be something else by now.
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Looked::NotText;
    }
    let mut bytes = Vec::new();
    if file.take(LARGEST + 1).read_to_end(&mut bytes).is_err() {
        return Looked::Missing;
    }
    if bytes.len() as u64 > LARGEST {
        return Looked::TooLarge;
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Looked::Text(text),
        _ => Looked::NotText,
    }
}

/// Where a path leads and whether something is there; `None` if it leads in a circle. Goes step by step, because only so
/// can be said where a path leads that ends in nothing.
fn resolve(root: &Path, path: &Path) -> Option<(PathBuf, bool)> {
    let (mut at, mut there, mut links) = (root.to_owned(), true, 0);
    let mut left: VecDeque<Step> = steps(path).collect();
    while let Some(step) = left.pop_front() {
        match step {
            Step::Root => (at, there) = (PathBuf::from("/"), true),
            Step::Up => drop(at.pop()),
            Step::Down(name) => {
                at.push(name);
                let meta = at.symlink_metadata();
                there &= meta.is_ok();
                if meta.is_ok_and(|meta| meta.is_symlink()) {
                    links += 1;
                    let target = at.read_link().ok().filter(|_| links <= MOST_LINKS)?;
                    at.pop();
                    steps(&target).rev().for_each(|step| left.push_front(step));
                }
            }
        }
    }
    Some((at, there))
}

enum Step {
    Root,
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|part| match part {
        Component::RootDir | Component::Prefix(_) => Some(Step::Root),
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
    })
}
