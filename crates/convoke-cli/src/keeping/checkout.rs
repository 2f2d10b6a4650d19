//! Which directory a session is about. For most it is the one they work in. A lead that works in a worktree
//! of its own is about the checkout that this was cut from, which is written down beside the worktrees: a
//! session is looked for where it was begun.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::catalog::ListedSession;
use crate::failure::Failure;
use crate::settings::Settings;

/// The name of a lead's worktree among those of its session.
pub(crate) const LEAD: &str = "lead";

/// The checkout that the worktree of a lead was cut from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkout {
    /// What the worktree is kept under, in the place of a session.
    pub(crate) name: String,
    /// The directory in which the session was begun.
    pub(crate) dir: PathBuf,
}

impl Checkout {
    /// The checkout of a lead that works in this directory; none if that is no worktree of a lead.
    pub(crate) fn of(settings: &Settings, dir: &Path) -> Option<Self> {
        let name = name_of(&state(settings), dir)?;
        let written = fs::read(record(settings, &name)).ok()?;
        Some(Self { name, dir: PathBuf::from(std::ffi::OsString::from_vec(written)) })
    }

    /// The directory that a session is about, and the name under which what is changed there is kept. The
    /// trees of a lead's worktree have the lead's own name in the same repository, so those of its checkout
    /// have that of the worktree.
    pub(crate) fn kept(settings: &Settings, lead: &str, dir: &Path) -> Self {
        Self::of(settings, dir).unwrap_or_else(|| Self { name: lead.to_owned(), dir: dir.to_owned() })
    }

    /// The directory that a session is about.
    pub(crate) fn of_listed(settings: &Settings, listed: &ListedSession) -> PathBuf {
        let dir = Path::new(&listed.lead().summary.dir);
        Self::of(settings, dir).map_or_else(|| dir.to_owned(), |checkout| checkout.dir)
    }

    /// Writes it down.
    pub(super) fn write(&self, settings: &Settings) -> Result<(), Failure> {
        let path = record(settings, &self.name);
        let parent = path.parent().unwrap_or(&path);
        let written =
            fs::create_dir_all(parent).and_then(|()| fs::write(&path, self.dir.as_os_str().as_bytes()));
        written.map_err(|error| Failure::usage(format!("{} cannot be written: {error}", path.display())))
    }

    /// Forgets it. One that is not there is forgotten.
    pub(crate) fn forget(&self, settings: &Settings) -> std::io::Result<()> {
        match fs::remove_file(record(settings, &self.name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn record(settings: &Settings, name: &str) -> PathBuf {
    settings.state_dir.join("trees/leads").join(name)
}

/// The state directory as worktrees are named by it: without links.
fn state(settings: &Settings) -> PathBuf {
    settings.state_dir.canonicalize().unwrap_or_else(|_| settings.state_dir.clone())
}

/// The name that stands in the path of a lead's worktree, `<state>/worktrees/<name>/lead/tree/…`.
fn name_of(state: &Path, dir: &Path) -> Option<String> {
    let mut parts = dir.strip_prefix(state.join("worktrees")).ok()?.iter();
    let name = parts.next()?.to_str()?;
    let is_lead = parts.next()? == LEAD && parts.next()? == "tree";
    is_lead.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worktree_of_a_lead_is_known_by_its_path() {
        let check = |dir: &str, expected: Option<&str>| {
            assert_eq!(name_of(Path::new("/s"), Path::new(dir)).as_deref(), expected, "{dir}");
        };
        check("/s/worktrees/w_1/lead/tree", Some("w_1"));
        check("/s/worktrees/w_1/lead/tree/src", Some("w_1"));
        check("/s/worktrees/w_1/a_2/tree", None);
        check("/s/worktrees/w_1/lead", None);
        check("/work/worktrees/w_1/lead/tree", None);
        check("/work", None);
    }
}
