//! What of a shell can be carried over to another one: its directory and its exported variables. Functions,
//! unexported variables and jobs cannot, and this file never pretends they can.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The directory and the exported variables of a shell, the latter as a difference to the environment it was
/// given, so that what is recorded holds only what commands changed and can be restored over a newer
/// environment.
///
/// Values that are not UTF-8 are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellState {
    /// The physical working directory (no symbolic links).
    pub cwd: PathBuf,
    /// Exported variables that were added or changed.
    pub set: BTreeMap<String, String>,
    /// Variables of the given environment that are no longer exported.
    pub unset: BTreeSet<String>,
}

impl ShellState {
    /// The difference between what was given and what is exported now.
    pub(crate) fn between(
        cwd: PathBuf,
        given: &BTreeMap<String, String>,
        now: &BTreeMap<String, String>,
    ) -> Self {
        Self {
            cwd,
            set: now
                .iter()
                .filter(|&(name, value)| given.get(name) != Some(value))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            unset: given.keys().filter(|&name| !now.contains_key(name)).cloned().collect(),
        }
    }

    /// The environment of a shell that goes on from here.
    pub(crate) fn over(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env = given.clone();
        env.extend(self.set.clone());
        env.retain(|name, _| !self.unset.contains(name));
        env
    }
}

/// The given environment with what keeps programs from waiting for a person, unless the caller decided
/// otherwise.
pub(crate) fn with_defaults(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    for (name, value) in
        [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("TERM", "dumb"), ("GIT_TERMINAL_PROMPT", "0")]
    {
        env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_difference_laid_over_what_was_given_makes_what_there_was() {
        let given = map(&[("A", "1"), ("B", "2"), ("C", "3")]);
        let now = map(&[("A", "1"), ("B", "x\ny"), ("D", "")]);
        let state = ShellState::between("/".into(), &given, &now);
        assert_eq!(state.set, map(&[("B", "x\ny"), ("D", "")]));
        assert_eq!(state.unset, BTreeSet::from(["C".to_owned()]));
        assert_eq!(state.over(&given), now);
    }
}
