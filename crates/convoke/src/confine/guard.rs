//! Refuses to start where commands could change what Convoke itself goes by: the journal, its state and its settings have
//! to lie outside the directory that is worked in. It looks; it changes nothing.

use std::path::{Component, Path, PathBuf};

use convoke_journal::Location;

use crate::failure::Failure;
use crate::settings::Settings;

/// More links in a row lead nowhere.
const MOST_LINKS: u32 = 40;

/// That nothing of Convoke's own lies in the directory, by its name or by where links lead.
pub(crate) fn check_places(settings: &Settings, dir: &Path) -> Result<(), Failure> {
    let config = settings.files.first().and_then(|file| file.path.parent());
    let journal = match &settings.journal {
        Location::Sqlite(path) => Some(path.as_path()),
        Location::Postgres(_) | Location::Memory => None,
    };
    let origin = settings.origin("journal").map(ToString::to_string).unwrap_or_default();
    let things = [
        (journal, format!("the journal ({origin})"), "name a file outside of it with --journal or ORCH_JOURNAL"),
        (Some(settings.state_dir.as_path()), "the state directory".to_owned(), "set XDG_STATE_HOME to a place outside"),
        (config, "your configuration".to_owned(), "set XDG_CONFIG_HOME to a place outside"),
    ];
    let inside = |path: &Path| lies_inside(path, dir);
    let Some((Some(path), what, remedy)) = things.into_iter().find(|(path, ..)| path.is_some_and(inside)) else {
        return Ok(());
    };
    let message = format!(
        "{what} lies in the directory that is worked in, where commands could change it: {} is in {}",
        path.display(),
        dir.display()
    );
    Err(Failure::usage(message)
        .hint("start in a project directory, or name one with --cwd")
        .hint(format!("or {remedy}")))
}

/// Whether a path lies in a directory, by its name or by where links lead.
pub(crate) fn lies_inside(path: &Path, dir: &Path) -> bool {
    lies_in(path, dir, MOST_LINKS)
}

/// Whether a path lies in a directory, or whoever may write there could decide where it leads.
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
        let (work, out) = (root.join("work"), root.join("out"));
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
        // It leads outside, but whoever can write the directory can make it lead elsewhere.
        check(work.join("to-out/j.db"), true);
        check(root.join("out/../work/j.db"), true);
        check(root.join("work/../out/j.db"), false);
        check(root.join("loop/j.db"), true);
    }
}
