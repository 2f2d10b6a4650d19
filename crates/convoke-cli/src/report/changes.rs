//! What a session left behind in files, as data and as lines for people. It looks nothing up.

use std::collections::BTreeMap;

use serde::Serialize;

use super::model::{Agent, SessionReport};
use crate::render::{count, file_name};

/// A file that a session changed in its directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Changed {
    pub(crate) path: String,
    /// `added`, `modified`, `deleted`, or `mode` where only that is another.
    pub(crate) how: &'static str,
    /// The agents that changed it, in the order of their first change.
    pub(crate) agents: Vec<String>,
    /// Whether a change from outside of the session came in between: it is not taken back.
    pub(crate) mixed: bool,
}

/// Something that later work in the directory runs, that no patch shows, and that was changed while the
/// session worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RunLater {
    /// A directory, if it stands for many.
    pub(crate) path: String,
    /// `added`, `modified` or `deleted`; of many, the first.
    pub(crate) how: &'static str,
    /// For how many files it stands.
    pub(crate) count: usize,
    /// Whether undo can take it back.
    pub(crate) kept: bool,
    /// `metadata` of a repository, `named` for what an everyday act such as a commit runs or obeys, or
    /// `program`.
    pub(crate) kind: &'static str,
}

impl RunLater {
    /// `.envrc (added)`, or `target/debug (40 programs)`.
    pub(crate) fn words(&self) -> String {
        let left = if self.kept { "" } else { ", not kept" };
        match self.count {
            1 => format!("{} ({}{left})", self.path, self.how),
            many => format!("{} ({many} programs{left})", self.path),
        }
    }
}

/// The head of the list of what is run later.
pub(super) const LATER_HEAD: &str = "run later, changed while this session worked, and in no patch";

/// A worktree with something in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Tree {
    /// The agent that worked in it; `lead` for that of the whole session.
    pub(crate) agent: String,
    /// What it was cut from.
    pub(crate) base: String,
    /// `unfinished`, `working`, `kept` or `stored`.
    pub(crate) state: String,
    /// Whether what it holds is in the checkout.
    pub(crate) applied: bool,
    /// Files that differ from the base.
    pub(crate) files: Vec<String>,
    /// Files that git ignores or cannot store; they are there until it is dropped.
    pub(crate) ignored: Vec<String>,
    /// Where it is; `None` once everything in it is stored.
    pub(crate) path: Option<String>,
}

impl Changed {
    /// The letter that stands for how it was changed, as git writes it.
    pub(crate) fn letter(&self) -> char {
        match self.how {
            "added" => 'A',
            "deleted" => 'D',
            _ => 'M',
        }
    }
}

/// The files that each agent changed, entered in its row. One that says itself what changed meanwhile keeps
/// that.
pub(crate) fn enter(changed: &[Changed], agents: &mut [Agent]) {
    for agent in agents.iter_mut().filter(|agent| agent.changed.is_empty()) {
        let Some(id) = &agent.agent else { continue };
        let own = changed.iter().filter(|file| file.agents.contains(id));
        agent.changed = own.map(|file| file.path.clone()).collect();
    }
}

/// The head of the list of changed files.
pub(super) fn files_head(report: &SessionReport) -> String {
    format!("changed files: {}", report.changed.len())
}

/// More agents than this are counted.
const MOST_AGENTS: usize = 3;

/// `M src/a.rs (lead, task a_…)`, or `M src/a.rs (14 agents)`.
pub(super) fn file_line(report: &SessionReport, file: &Changed) -> String {
    let by: Vec<String> = match file.agents.len() {
        many if many > MOST_AGENTS => vec![count(u32::try_from(many).unwrap_or(u32::MAX), "agent")],
        _ => file.agents.iter().map(|id| who(&report.agents, id)).collect(),
    };
    let mode = if file.how == "mode" { ", its mode" } else { "" };
    let mixed = if file.mixed { "; it was also changed from outside in between" } else { "" };
    format!("{} {} ({}{mode}{mixed})", file.letter(), file_name(&file.path), by.join(", "))
}

/// The files that changed while agents of programs were at work and that are in no list of the session's own,
/// each once, with how many agents there were: they are many, and work at the same time.
pub(super) fn callee_lines(report: &SessionReport) -> Vec<String> {
    let mut files: BTreeMap<&str, u32> = BTreeMap::new();
    let callees = report.agents.iter().filter(|agent| agent.role == CALLEE);
    for path in callees.flat_map(|agent| &agent.changed) {
        if !report.changed.iter().any(|file| file.path == *path) {
            *files.entry(path.as_str()).or_default() += 1;
        }
    }
    files
        .into_iter()
        .map(|(path, agents)| format!("changed while {} worked: {}", count(agents, "agent"), file_name(path)))
        .collect()
}

/// The role of an agent that a program asked for.
pub(super) const CALLEE: &str = "callee";

/// `task a_… (label): 3 files, not applied, cut from HEAD (…)`.
pub(super) fn tree_line(report: &SessionReport, tree: &Tree) -> String {
    let files = count(u32::try_from(tree.files.len()).unwrap_or(u32::MAX), "file");
    let applied = if tree.applied { "applied" } else { "not applied" };
    let ignored = match tree.ignored.len() {
        0 => String::new(),
        more => format!(", {more} ignored by git"),
    };
    format!("{}: {files}{ignored}, {applied}, cut from {}", who(&report.agents, &tree.agent), tree.base)
}

/// The agent as people know it.
fn who(agents: &[Agent], id: &str) -> String {
    match agents.iter().find(|agent| agent.agent.as_deref() == Some(id)) {
        Some(agent) if agent.role == "lead" => "lead".to_owned(),
        Some(agent) => format!("{} {id}", agent.role),
        None => id.to_owned(),
    }
}
