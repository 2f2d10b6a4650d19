//! Whether a path lies in a directory whose files commands may write. It looks; it changes nothing.

use std::path::{Component, Path, PathBuf};

/// More links in a row lead nowhere.
const MOST_LINKS: u32 = 40;

/// Whether a path lies in a directory, by its name or by where links lead.
pub fn lies_inside(path: &Path, dir: &Path) -> bool {
    lies_in(path, dir, MOST_LINKS)
}

/// Whether a path lies in a directory, or leads through it, so that what is written there could change where
/// it leads.
fn lies_in(path: &Path, dir: &Path, links: u32) -> bool {
    let mut at = PathBuf::from("/");
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        match part {
            Component::ParentDir => drop(at.pop()),
            Component::Normal(name) => {
                let next = at.join(name);
                let last = parts.peek().is_none();
                if next.starts_with(dir) && (last || next != dir) {
                    return true;
                }
                if let Ok(target) = next.read_link()
                    && (links == 0 || lies_in(&at.join(target), dir, links - 1))
                {
                    return true;
                }
                at = next.canonicalize().unwrap_or(next);
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    at.starts_with(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn w89_what_lies_in_the_directory_is_found_by_name_and_through_links() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let work = root.join("work");
        let out = root.join("out");
        for dir in [&work.join("sub"), &out] {
            std::fs::create_dir_all(dir).unwrap();
        }
        symlink(&work, out.join("to-work")).unwrap();
        symlink(&out, work.join("to-out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let check = |path: PathBuf, expected: bool| {
            assert_eq!(lies_in(&path, &work, MOST_LINKS), expected, "{}", path.display());
        };
        check(work.join("j.db"), true);
        check(work.join("new/deep/j.db"), true);
        check(work.clone(), true);
        check(out.join("j.db"), false);
        check(out.join("none/j.db"), false);
        check(root.join("work-2/j.db"), false);
        check(out.join("to-work/j.db"), true);
        // It leads outside, but a write in the directory can make it lead elsewhere.
        check(work.join("to-out/j.db"), true);
        check(root.join("out/../work/j.db"), true);
        check(root.join("work/../out/j.db"), false);
        check(root.join("loop/j.db"), true);
    }
}
