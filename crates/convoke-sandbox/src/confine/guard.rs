//! What the host does about a workspace before a shell starts in which commands may write it: it finds what
//! is run or obeyed later when the tree is used, and parts files from the names that they have elsewhere.

use std::path::{Path, PathBuf};

use super::links;
use super::places::look;
use crate::gitconfig::named_in;
use crate::policy::{Access, LayerSet, Policy};

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// What the configuration of the workspace's repository names in it, existing or not.
    pub(crate) named: Vec<PathBuf>,
    /// What else must not be written.
    pub(crate) shared: Vec<PathBuf>,
    /// What a person should know, a line each.
    pub(crate) notes: Vec<String>,
}

impl Guard {
    /// Looks at the workspace of a policy. Blocks, for seconds where a large tree has to be parted from a
    /// cache.
    pub(crate) fn look(policy: &Policy, set: LayerSet, home: Option<&Path>) -> Self {
        if policy.access != Access::Workspace {
            return Self::default();
        }
        let workspace = look(&policy.workspace).path;
        let mut closed: Vec<PathBuf> =
            policy.hidden.iter().chain(&policy.masked).map(|path| look(path).path).collect();
        if set == LayerSet::Namespaces {
            closed.push(workspace.join(".git"));
        }
        let links = links::part(&workspace, &closed, set);
        let named = named_in(&workspace, home);
        Self { named, shared: links.read_only, notes: links.note.into_iter().collect() }
    }
}

/// What of a tree the configuration of its repository, or of the person whose home this is, names for git to
/// run or to read: where hooks are and which files are included, existing or not.
pub fn named_by_git(tree: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    named_in(&look(tree).path, home)
}
