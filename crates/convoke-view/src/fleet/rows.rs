//! What a row of each list shows. Every text in here is harmless already and stands on one line, unless it
//! says otherwise.

use convoke_kernel::{AgentId, MessageId, Role, RunId, Severity, TaskId};

use crate::place::FilePosition;

/// Where an agent stands, the most interesting first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentState {
    /// It asks a person.
    Asks,
    /// It is at work.
    Running,
    /// It failed.
    Failed,
    /// It has not begun, or it began before and no process drives it now.
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
    pub fn word(self) -> &'static str {
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
    pub fn mark(self) -> char {
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
pub struct AgentRow {
    /// The agent.
    pub id: AgentId,
    /// What it is there for.
    pub role: Role,
    /// What people call it: its name, or the beginning of its subtask.
    pub label: String,
    /// The phase it belongs to: `lead`, `working`, `verifying`, `tasks`, `team`, or a phase of a program.
    pub phase: String,
    /// The run it works for.
    pub run: Option<RunId>,
    /// Where it stands.
    pub state: AgentState,
    /// What it is at right now, in one word of at most nine letters: `thinking`, `answering`, `command`,
    /// `asking`, or its state's word.
    pub act: &'static str,
    /// Its last action, or what it came to.
    pub last: String,
    /// Since when it is at this, in milliseconds.
    pub since: u64,
    /// When it was first heard of.
    pub started_at: u64,
    /// Replies of the model.
    pub turns: u32,
    /// Commands it has run.
    pub commands: u32,
    /// Tokens it has used.
    pub tokens: u64,
    /// `None` once a reply of unknown price was paid for.
    pub cost_nano: Option<u64>,
    /// The model that answers it.
    pub model: String,
}

/// How a phase stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseRow {
    /// What it is called.
    pub name: String,
    /// All its agents.
    pub total: usize,
    /// Those at work.
    pub running: usize,
    /// Those that have not begun, or rest.
    pub waiting: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those that are done.
    pub done: usize,
}

/// One run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub id: RunId,
    /// The program's name, or how many subtasks.
    pub title: String,
    /// Whether a program runs, and not a list of subtasks.
    pub is_program: bool,
    /// All its items or calls.
    pub total: usize,
    /// Those that ended well.
    pub done: usize,
    /// Those that did not.
    pub failed: usize,
    /// What it came to, once it has: `complete`, `partial`, `failed`, `stopped`.
    pub end: Option<String>,
    /// When it began.
    pub started_at: u64,
    /// When it ended, once it has.
    pub ended_at: Option<u64>,
}

/// One task of the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// The task.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub subject: String,
    /// `open`, `blocked`, `claimed`, `done`, `failed`, `cancelled`.
    pub state: &'static str,
    /// The member that holds it, or held it last.
    pub owner: Option<String>,
    /// The role that may claim it, if not every member may.
    pub role: Option<String>,
    /// The tasks it waits for.
    pub blocked_by: Vec<TaskId>,
    /// What it is about, and what came of it; may have lines.
    pub detail: String,
}

/// One letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterRow {
    /// The letter.
    pub id: MessageId,
    /// When it was sent.
    pub at: u64,
    /// The member that sent it.
    pub from: String,
    /// The member it is for.
    pub to: String,
    /// `message`, `result`, `failed`, `plan`, …
    pub kind: &'static str,
    /// What it says, once its reader has read it; may have lines.
    pub text: Option<String>,
    /// Whether its reader has read it.
    pub read: bool,
}

/// What was judged of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerdictWord {
    /// No verifier could refute it.
    Confirmed,
    /// Verifiers disagree, or could not tell.
    Uncertain,
    /// No verifier has looked, or none could.
    Unverified,
    /// It was refuted.
    Refuted,
}

impl VerdictWord {
    /// In one word.
    pub fn word(self) -> &'static str {
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
pub struct FindingRow {
    /// The run it came of.
    pub run: RunId,
    /// The subtask it came of.
    pub label: String,
    /// The agent that reported it.
    pub agent: Option<AgentId>,
    /// How grave it is.
    pub severity: Severity,
    /// What was judged of it.
    pub verdict: VerdictWord,
    /// What is claimed.
    pub claim: String,
    /// May have lines.
    pub evidence: String,
    /// Why the verdict is what it is; may have lines.
    pub reason: String,
    /// The places it names.
    pub places: Vec<FilePosition>,
}

/// Which rows are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Rows in which this stands, whatever the case; blank is all.
    pub text: String,
    /// Agents in this state, and tasks and findings accordingly.
    pub state: Option<AgentState>,
}
