//! Which hands an agent was given, where it was not given all of them: names that people write, and what the dispatcher says
//! to a call of what is missing. It widens nothing: an unknown name gives nothing.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ToolRequest;

/// One of the things an agent does with its own hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Hand {
    /// Commands.
    Bash,
    /// Reading files and directories.
    View,
    /// Writing files.
    Edit,
    /// Looking for files.
    Glob,
    /// Looking into files.
    Grep,
}

const ALL: [Hand; 5] = [Hand::Bash, Hand::View, Hand::Edit, Hand::Glob, Hand::Grep];

/// The hands that an agent was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tools(BTreeSet<Hand>);

/// The tools that these names mean, in our words or in those that people know from elsewhere, and the names that mean none.
pub fn known_tools(names: &[String]) -> (Tools, Vec<String>) {
    let mut known = BTreeSet::new();
    let mut unknown = Vec::new();
    for name in names {
        match name.trim().to_ascii_lowercase().as_str() {
            "bash" => drop(known.insert(Hand::Bash)),
            "view" | "read" | "ls" => drop(known.insert(Hand::View)),
            "edit" | "write" | "multiedit" => drop(known.insert(Hand::Edit)),
            "glob" => drop(known.insert(Hand::Glob)),
            "grep" => drop(known.insert(Hand::Grep)),
            "*" => known.extend(ALL),
            super::declare::EDIT => known.extend([Hand::View, Hand::Edit]),
            // It follows from the schema and from nothing else.
            "structuredoutput" => {}
            _ => unknown.push(name.clone()),
        }
    }
    (Tools(known), unknown)
}

impl Tools {
    /// All of them.
    pub fn all() -> Self {
        Self(ALL.into())
    }

    /// Their names, as rules call them.
    pub fn names(&self) -> Vec<&'static str> {
        let name = |hand: &Hand| match hand {
            Hand::Bash => "bash",
            Hand::View => "view",
            Hand::Edit => "edit",
            Hand::Glob => "glob",
            Hand::Grep => "grep",
        };
        self.0.iter().map(name).collect()
    }

    pub(crate) fn has(&self, hand: Hand) -> bool {
        self.0.contains(&hand)
    }

    /// What the model reads if it calls what it was not given.
    pub(crate) fn refuses(&self, request: &ToolRequest) -> Option<String> {
        let (hand, what) = match request {
            ToolRequest::Bash { .. } | ToolRequest::RestartBash => (Hand::Bash, "run commands"),
            ToolRequest::Edit(edit) if edit.writes() => (Hand::Edit, "create or change files"),
            ToolRequest::Edit(_) => (Hand::View, "view files"),
            ToolRequest::Glob(_) => (Hand::Glob, "look for files with glob"),
            ToolRequest::Grep(_) => (Hand::Grep, "look into files with grep"),
            ToolRequest::Task { .. }
            | ToolRequest::Workflow { .. }
            | ToolRequest::ReadResult { .. }
            | ToolRequest::RunStatus { .. }
            | ToolRequest::Team(_) => return None,
        };
        (!self.has(hand)).then(|| {
            let names = self.names();
            let given = if names.is_empty() {
                "no tools".to_owned()
            } else {
                format!("{} and no other tools", names.join(", "))
            };
            format!("Not run: you were given {given}, so you cannot {what}. Go on without it, or say what is missing.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], expected: &[&str], unknown: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (tools, left) = known_tools(&names);
        assert_eq!((tools.names(), left.iter().map(String::as_str).collect()), (expected.to_vec(), unknown.to_vec()));
        let text = serde_json::to_string(&tools).unwrap();
        assert_eq!(serde_json::from_str::<Tools>(&text).unwrap(), tools, "{text}");
    }

    #[test]
    fn tools_are_known_by_our_names_and_by_those_people_know() {
        check(&["bash", "view", "edit", "glob", "grep"], &["bash", "view", "edit", "glob", "grep"], &[]);
        check(&["Read", "Grep", "Glob", "LS"], &["view", "glob", "grep"], &[]);
        check(&["Write", "MultiEdit", "Edit"], &["edit"], &[]);
        check(&["Bash", "WebFetch", "mcp__x__y"], &["bash"], &["WebFetch", "mcp__x__y"]);
        check(&["StructuredOutput"], &[], &[]);
        check(&["*"], &["bash", "view", "edit", "glob", "grep"], &[]);
        check(&[], &[], &[]);
    }

    #[test]
    fn a_name_with_a_pattern_gives_nothing_rather_than_too_much() {
        check(&["Bash(git log:*)", "Read"], &["view"], &["Bash(git log:*)"]);
    }
}
