//! How much a directory without a repository holds, before a copy of it is kept in the state directory. It
//! looks at names and sizes and opens no file.

use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Kind};

use crate::tree::LARGEST;

/// The most that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// What is copied unasked.
pub(crate) const LIMIT: Limit = Limit { files: 200_000, bytes: 1 << 30 };

/// What was counted below `dir` when it became more than the limit; none if it is not more. Files that are
/// not kept for their size, and repositories below it, do not count; what a `.gitignore` there names does.
pub(crate) fn beyond(dir: &Path, limit: Limit) -> Option<Limit> {
    let mut counted = Limit { files: 0, bytes: 0 };
    let top = Dir::open(dir).ok()?;
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for entry in top.entries(&dir).unwrap_or_default() {
            let path = dir.join(&entry.name);
            if entry.kind == Kind::Directory {
                if top.look(&path.join(".git")).is_err() && entry.name != ".git" {
                    open.push(path);
                }
                continue;
            }
            let size = top.look(&path).map_or(0, |about| u64::try_from(about.st_size).unwrap_or(0));
            if size <= LARGEST {
                counted.files += 1;
                counted.bytes += size;
            }
            if counted.files > limit.files || counted.bytes > limit.bytes {
                return Some(counted);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_with_more_files_or_bytes_than_the_limit_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b/c", "b/d", "nested/.git/x", "nested/big"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "12345").unwrap();
        }
        let check = |files, bytes, expected| {
            assert_eq!(beyond(dir.path(), Limit { files, bytes }), expected, "{files} {bytes}");
        };
        check(3, 15, None);
        check(2, 15, Some(Limit { files: 3, bytes: 15 }));
        check(3, 14, Some(Limit { files: 3, bytes: 15 }));
    }
}
