//! What a row of each list shows. Every text in here is harmless already and stands on one line, unless it says otherwise.

use convoke_kernel::{AgentId, MessageId, Role, RunId, Severity, TaskId};

use crate::ask::Place;

/// Where an agent stands, the most interesting first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AgentState {
    /// It asks a person.
    Asks,
    /// It is at work.
    Running,
    /// It failed.
    Failed,
    /// It began before and nobody has taken it up again, or it has not begun.
    Waiting,
    /// A teammate with nothing to do.
    Resting,
    /// A person stopped it.
    Stopped,
    /// It is done.
    Done,
}

impl AgentState {
    /// In one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Asks => "asks you",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Resting => "resting",
            Self::Stopped => "stopped",
            Self::Done => "done",
        }
    }

    /// In one mark, one column wide.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::Asks => '?',
            Self::Running => '▸',
            Self::Failed => '✗',
            Self::Waiting => '·',
            Self::Resting => '-',
            Self::Stopped => '■',
            Self::Done => '✓',
        }
    }
}

/// One agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentRow {
    pub(crate) id: AgentId,
    pub(crate) role: Role,
    /// What people call it: its name, or the beginning of its subtask.
    pub(crate) label: String,
    /// The phase it belongs to: `lead`, `working`, `verifying`, `tasks`, `team`, or a phase of a program.
    pub(crate) phase: String,
    /// The run it works for.
    pub(crate) run: Option<RunId>,
    pub(crate) state: AgentState,
    /// What it is at right now, in one word of at most nine letters: `thinking`, `answering`, `command`, `asking`, or its state's word.
    pub(crate) act: &'static str,
    /// Its last action, or what it came to.
    pub(crate) last: String,
    /// Since when it is at this, in milliseconds.
    pub(crate) since: u64,
    pub(crate) started_at: u64,
    pub(crate) turns: u32,
    pub(crate) commands: u32,
    pub(crate) tokens: u64,
    /// `None` once a reply of unknown price was paid for.
    pub(crate) cost_nano: Option<u64>,
    pub(crate) model: String,
}

/// How a phase stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PhaseRow {
    pub(crate) name: String,
    pub(crate) total: usize,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) failed: usize,
    pub(crate) done: usize,
}

/// One run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) id: RunId,
    /// The program's name, or how many subtasks.
    pub(crate) title: String,
    pub(crate) is_program: bool,
    pub(crate) total: usize,
    pub(crate) done: usize,
    pub(crate) failed: usize,
    /// What it came to, once it has: `complete`, `partial`, `failed`, `stopped`.
    pub(crate) end: Option<String>,
    pub(crate) started_at: u64,
    pub(crate) ended_at: Option<u64>,
}

/// One task of the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRow {
    pub(crate) id: TaskId,
    pub(crate) subject: String,
    /// `open`, `blocked`, `claimed`, `done`, `failed`, `cancelled`.
    pub(crate) state: &'static str,
    /// Who holds it, or held it last.
    pub(crate) owner: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) blocked_by: Vec<TaskId>,
    /// What it is about, and what came of it; may have lines.
    pub(crate) detail: String,
}

/// One letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LetterRow {
    pub(crate) id: MessageId,
    pub(crate) at: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    /// `message`, `result`, `failed`, `plan`, …
    pub(crate) kind: &'static str,
    /// What it says, once its reader has read it; may have lines.
    pub(crate) text: Option<String>,
    pub(crate) read: bool,
}

/// What was judged of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum VerdictWord {
    /// Nobody could refute it.
    Confirmed,
    /// Verifiers disagree, or could not tell.
    Uncertain,
    /// Nobody has looked, or nobody could.
    Unverified,
    /// It was refuted.
    Refuted,
}

impl VerdictWord {
    /// In one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Uncertain => "uncertain",
            Self::Unverified => "unverified",
            Self::Refuted => "refuted",
        }
    }
}

/// One finding with its evidence and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingRow {
    pub(crate) run: RunId,
    /// Whose subtask it came of.
    pub(crate) label: String,
    pub(crate) agent: Option<AgentId>,
    pub(crate) severity: Severity,
    pub(crate) verdict: VerdictWord,
    pub(crate) claim: String,
    /// May have lines.
    pub(crate) evidence: String,
    /// Why the verdict is what it is; may have lines.
    pub(crate) reason: String,
    pub(crate) places: Vec<Place>,
}

/// Which rows are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Only {
    /// Rows in which this stands, whatever the case; blank is all.
    pub(crate) text: String,
    /// Agents in this state, and tasks and findings accordingly.
    pub(crate) state: Option<AgentState>,
}
