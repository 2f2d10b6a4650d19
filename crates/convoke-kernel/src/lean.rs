//! The tools a lean lead is offered beside bash and the file tools: those for which the task has a word, and
//! no others. A model with a small window pays for every tool with room that it needs for its work, and a
//! small one calls whatever it is offered. The tools follow from the first thing that is said and stay: a
//! list that changed in mid-conversation would break the cache.

/// What a text has a word for. A word too many offers a tool that is not needed; it agrees to nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Agents that do a piece of the work: `task` and `Workflow`.
    pub agents: bool,
    /// Teammates, mail and the board.
    pub team: bool,
}

const AGENTS: &[&str] = &[
    "workflow",
    "workflows",
    "subtask",
    "subtasks",
    "sub-task",
    "sub-tasks",
    "subagent",
    "subagents",
    "sub-agent",
    "sub-agents",
    "agents",
    "delegate",
    "delegated",
    "fan-out",
    "workers",
];

const TEAM: &[&str] = &["team", "teammate", "teammates", "spawn", "broadcast", "inbox", "board"];

/// What this text has a word for.
pub fn wishes(text: &str) -> Wishes {
    let text = text.to_lowercase();
    let mut found = Wishes::default();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '-').map(|word| word.trim_matches('-')) {
        found.agents |= AGENTS.contains(&word);
        found.team |= TEAM.contains(&word);
    }
    found.agents |= text.contains("fan out") || text.contains("use a task");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_wishes_for_what_it_has_a_word_for() {
        let check = |text: &str, agents: bool, team: bool| {
            assert_eq!(wishes(text), Wishes { agents, team }, "{text}")
        };
        check("Which files are here?", false, false);
        check("Review the task queue in jobs.py and its steam engine", false, false);
        check("Use a subtask to find what testing framework this project uses", true, false);
        check("Delegate: read all .py files and summarize what each one does", true, false);
        check("Run it as a Workflow.", true, false);
        check("use a task to create a new module, then verify it from here", true, false);
        check("Spawn alice and bob, then broadcast a status update", false, true);
        check("Create 3 tasks on the board and let the sub-agents claim them", true, true);
    }
}
