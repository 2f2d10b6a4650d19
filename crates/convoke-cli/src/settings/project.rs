//! What a project's configuration chose for its reader: keys that do not narrow, which count only where the
//! project is trusted, and how a person is told of them. Which keys those are is said in `keys`.

use std::path::PathBuf;

use super::origin::Origin;
use crate::render::revealed;

/// Keys of a project's configuration that choose instead of narrowing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProjectKeys {
    /// Each with where it stands, in the order of `config show`.
    pub(super) keys: Vec<(&'static str, Origin)>,
    /// Whether they count.
    pub(super) trusted: bool,
    /// The root of the project.
    pub(super) root: PathBuf,
    /// The user's own configuration.
    pub(super) user_file: PathBuf,
}

impl ProjectKeys {
    /// The keys that count, in one line; `None` if there are none.
    pub(crate) fn in_force(&self) -> Option<String> {
        self.trusted.then(|| self.names()).flatten()
    }

    /// The keys that do not count, in one line; `None` if there are none.
    pub(crate) fn ignored(&self) -> Option<String> {
        if self.trusted { None } else { self.names() }
    }

    /// Where a project states a key that does not count.
    pub(super) fn ignored_at(&self, name: &str) -> Option<&Origin> {
        let stated = self.keys.iter().find(|(key, _)| *key == name && !self.trusted);
        stated.map(|(_, origin)| origin)
    }

    /// The warning that keys are ignored, and what would make them count.
    pub(crate) fn warning(&self) -> Option<String> {
        let names = self.ignored()?;
        let (_, origin) = self.keys.first()?;
        let file = match origin {
            Origin::File { path, .. } => revealed(&path.to_string_lossy()),
            other => other.to_string(),
        };
        let root = revealed(&self.root.to_string_lossy());
        let user = revealed(&self.user_file.to_string_lossy());
        Some(format!(
            "ignored, because {root} is not trusted: {names} ({file}); --trust-project lets them count for \
             this once, trusted = [\"{root}\"] in {user} for good"
        ))
    }

    fn names(&self) -> Option<String> {
        let names: Vec<&str> = self.keys.iter().map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}
