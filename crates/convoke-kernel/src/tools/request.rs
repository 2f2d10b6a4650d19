//! A call that can be run, and what the rest has to know of it before it is: whether it writes, whether it is
//! repeated after a crash, what rules look at. The runtime is the one place that does what it asks for.

use super::bash::COMMANDS;
use super::narrow::Part;
use super::{AfterCrash, FileCall, TeamCall, WorkflowCall};
use crate::approval::Subject;
use crate::confinement::Isolation;
use crate::consent::Consent;
use crate::segment::Segment;

/// A call that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolRequest {
    /// Run a command in the agent's shell.
    Bash {
        /// The command.
        command: String,
    },
    /// Replace the agent's shell by a new one.
    RestartBash,
    /// Look for, look into, show or change files.
    File(FileCall),
    /// Give one task to a sub-agent.
    Task {
        /// The whole task.
        prompt: String,
        /// Where it works.
        isolation: Isolation,
    },
    /// Run a workflow.
    Workflow {
        /// What it is to do.
        what: WorkflowCall,
        /// Whether a person agreed to it.
        consent: Consent,
    },
    /// Read the rest of a result.
    ReadResult {
        /// The run.
        run: String,
        /// The item, from 1; 0 is what stands before them.
        item: u32,
        /// Where to start.
        from: usize,
    },
    /// Say how far a run is.
    RunStatus {
        /// The run.
        run: String,
    },
    /// Do something with the team, its mail or its board.
    Team(TeamCall),
    /// Call a tool of the embedding program.
    Given {
        /// The tool.
        name: String,
        /// Its input, which fits its schema.
        input: Segment,
        /// Whether it changes something.
        writes: bool,
        /// What becomes of it after a crash.
        after_crash: AfterCrash,
    },
}

impl ToolRequest {
    /// The part of a local tool that it uses; `None` for what `tools:` of a definition has no say in.
    pub(crate) fn part(&self) -> Option<&'static Part> {
        match self {
            ToolRequest::Bash { .. } | ToolRequest::RestartBash => Some(&COMMANDS),
            ToolRequest::File(call) => Some(call.part()),
            ToolRequest::Task { .. } | ToolRequest::Workflow { .. } => None,
            ToolRequest::ReadResult { .. } | ToolRequest::RunStatus { .. } | ToolRequest::Team(_) => None,
            ToolRequest::Given { .. } => None,
        }
    }

    /// Whether it may change something right here: such calls run one at a time and alone, and one that was
    /// cut off is not repeated, because what it did is unknown.
    pub fn writes(&self) -> bool {
        match self {
            ToolRequest::Given { writes, .. } => *writes,
            _ => self.part().is_some_and(|part| part.writes),
        }
    }

    /// Whether a call that a crash cut off is made again. What writes here is not, because its outcome is
    /// unknown; a tool of the embedding program says it itself.
    pub fn repeats(&self) -> bool {
        match self {
            ToolRequest::Given { after_crash, .. } => *after_crash != AfterCrash::Unknown,
            _ => !self.writes(),
        }
    }

    /// Whether the agent does it itself, in its shell or on its files, and not by other agents.
    pub fn is_own_work(&self) -> bool {
        self.part().is_some() || matches!(self, ToolRequest::Given { .. })
    }

    /// What rules look at; `None` for what no rule is about.
    pub(crate) fn subject(&self, dir: &str) -> Option<Subject<'_>> {
        match self {
            ToolRequest::Bash { command } => Some(Subject::Command(command)),
            ToolRequest::File(call) => {
                let part = call.part();
                Some(Subject::file(part.name, call.path().unwrap_or("."), part.writes, dir))
            }
            ToolRequest::Given { name, writes, .. } => Some(Subject::Tool { name, writes: *writes }),
            ToolRequest::RestartBash
            | ToolRequest::Task { .. }
            | ToolRequest::Workflow { .. }
            | ToolRequest::ReadResult { .. }
            | ToolRequest::RunStatus { .. }
            | ToolRequest::Team(_) => None,
        }
    }

    /// What a person is asked for: `run: ls`, `change: src/a.rs`; `None` shows the call as it is.
    pub(crate) fn asks_to(&self) -> Option<String> {
        let what = match self {
            ToolRequest::Bash { command } => command,
            ToolRequest::File(call) => call.path()?,
            _ => return None,
        };
        Some(format!("{}: {what}", self.part()?.asks_to?))
    }

    /// Whether calls of this kind are done one after the other, in the order they were written: letters
    /// arrive as they were sent.
    pub(crate) fn takes_turns(&self) -> bool {
        matches!(self, ToolRequest::Team(_))
    }
}
