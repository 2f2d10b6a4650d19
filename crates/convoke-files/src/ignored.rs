//! What `.gitignore` and `.ignore` files leave out, read by handle on the way down a tree. It never follows a
//! link to such a file.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::beneath;

/// The rules of the directories a walk has come through, the deepest last.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    /// How many bytes of a path lead to this directory, with the slash.
    prefix: usize,
    /// `.ignore` first: it overrides what is for git.
    rules: Vec<Gitignore>,
}

const FILES: [&str; 2] = [".ignore", ".gitignore"];
/// Larger files of rules are read up to here.
const MOST_BYTES: u64 = 1 << 20;

impl Ignored {
    /// Reads the rules of a directory; `at` is its path relative to the tree.
    pub(crate) fn enter(&mut self, directory: BorrowedFd<'_>, at: &Path) {
        let length = at.as_os_str().len();
        let prefix = if length == 0 { 0 } else { length + 1 };
        let rules = FILES.iter().filter_map(|name| rules(directory, name)).collect();
        self.levels.push(Level { prefix, rules });
    }

    /// Forgets the rules of the directory entered last.
    pub(crate) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether the rules leave out an entry; `path` is relative to the tree.
    pub(crate) fn leaves_out(&self, path: &Path, is_directory: bool) -> bool {
        for level in self.levels.iter().rev() {
            let Some(below) = path.as_os_str().as_bytes().get(level.prefix..) else { continue };
            for rules in &level.rules {
                match rules.matched(Path::new(OsStr::from_bytes(below)), is_directory) {
                    Match::None => {}
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                }
            }
        }
        false
    }
}

fn rules(directory: BorrowedFd<'_>, name: &str) -> Option<Gitignore> {
    let (file, _) = beneath::open_file(directory, OsStr::new(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new(".");
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A rule that cannot be read leaves nothing out, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
