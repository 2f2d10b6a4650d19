//! Worktrees as they are listed: a table for people, an object for programs.

use std::path::PathBuf;

use convoke_trees::{WorktreeEntry, WorktreeState};
use serde_json::{Value, json};

use super::Lookup;
use crate::commands::table::{Column, Table};
use crate::keeping::LEAD;

/// Fewer characters of an id are soon not unique any more.
const SHORT: usize = 10;

impl Lookup<'_> {
    /// A worktree for programs.
    pub(super) fn object(&self, entry: &WorktreeEntry) -> Value {
        let stored = matches!(entry.state, WorktreeState::Kept | WorktreeState::Stored);
        let ignored: Vec<_> = entry.ignored.iter().map(|path| path.to_string_lossy()).collect();
        json!({
            "run": self.listed_of(entry).map(|listed| listed.session.as_str()),
            "agent": entry.agent,
            "label": self.label(entry),
            "ref": stored.then(|| format!("refs/convoke/{}/{}/work", entry.run, entry.agent)),
            "base": entry.base.commit(),
            "snapshot": matches!(entry.base, convoke_trees::Base::Snapshot { .. }),
            "state": entry.state.to_string(),
            "applied": entry.applied,
            "files": entry.files,
            "ignored": ignored,
            "not_stored": names(&entry.not_stored),
            "path": entry.path,
        })
    }

    /// Worktrees for people.
    pub(super) fn table(&self, entries: &[WorktreeEntry]) -> Table {
        let mut table = Table::new(vec![
            Column::kept("SESSION"),
            Column::kept("AGENT"),
            Column::kept("STATE"),
            Column::dropped("FILES", 2).right(),
            Column::dropped("CUT FROM", 1),
            Column::cut("WORK"),
        ]);
        let length = unique(entries.iter().map(|entry| entry.agent.as_str()));
        for entry in entries {
            let listed = match self.listed_of(entry) {
                Some(listed) => listed.session.as_str().chars().take(self.catalog.id_length()).collect(),
                None => entry.run.clone(),
            };
            let base = match &entry.base {
                convoke_trees::Base::Head { commit } => format!("HEAD {}", commit.get(..8).unwrap_or(commit)),
                convoke_trees::Base::Snapshot { .. } => "snapshot".to_owned(),
            };
            table.row(vec![
                listed,
                entry.agent.chars().take(length).collect(),
                state(entry),
                entry.files.len().to_string(),
                base,
                self.label(entry),
            ]);
        }
        table
    }

    /// What its agent is called.
    fn label(&self, entry: &WorktreeEntry) -> String {
        let Some(listed) = self.listed_of(entry) else {
            return "(its session is not in this journal)".to_owned();
        };
        let agent = listed.agents.iter().find(|agent| agent.agent.as_str() == entry.agent);
        match agent {
            _ if entry.agent == LEAD => listed.lead().summary.task.clone(),
            Some(agent) if agent.summary.label.is_empty() => agent.summary.task.clone(),
            Some(agent) => agent.summary.label.clone(),
            None => String::new(),
        }
    }
}

/// Paths as they are shown.
pub(super) fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// How a worktree stands, in one word, and how much of what is in it cannot be stored.
fn state(entry: &WorktreeEntry) -> String {
    match entry.not_stored.len() {
        0 => stands(entry),
        number => format!("{}, {number} not stored", stands(entry)),
    }
}

fn stands(entry: &WorktreeEntry) -> String {
    match (entry.applied, entry.files.is_empty(), entry.state) {
        (true, false, _) => "applied".to_owned(),
        (_, true, WorktreeState::Working | WorktreeState::Kept | WorktreeState::Stored) => {
            "unchanged".to_owned()
        }
        (_, _, state) => state.to_string(),
    }
}

/// How many characters tell these ids apart.
fn unique<'a>(ids: impl Iterator<Item = &'a str>) -> usize {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let common =
        |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count();
    ids.windows(2).map(|pair| common(pair) + 1).max().unwrap_or(0).max(SHORT)
}
