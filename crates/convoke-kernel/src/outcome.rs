//! The outcomes of exchanges and tool calls.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::wire::FailureKind;

/// What an exchange came to. A failure is never dressed up as an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent answered.
    Ok {
        /// Its answer.
        text: String,
    },
    /// It did not, or only in part.
    Failed {
        /// The kind, for programs.
        kind: FailureKind,
        /// What happened and what to do, for people.
        message: String,
        /// What the reply that ended it said; may be empty.
        text: String,
    },
}

impl Outcome {
    /// What the agent said, whole or in part.
    pub fn text(&self) -> &str {
        match self {
            Outcome::Ok { text } | Outcome::Failed { text, .. } => text,
        }
    }

    /// Whether the only failure is that the answer is not whole: there is an answer as far as it goes.
    pub fn is_partial(&self) -> bool {
        use FailureKind::{Budget, ContextFull, Stuck, Truncated, TurnLimit};
        let cut_short = matches!(self.failure(), Some(TurnLimit | Stuck | Truncated | Budget | ContextFull));
        cut_short && !self.text().trim().is_empty()
    }

    /// The kind of failure, if it is one.
    pub fn failure(&self) -> Option<FailureKind> {
        match self {
            Outcome::Ok { .. } => None,
            Outcome::Failed { kind, .. } => Some(*kind),
        }
    }
}

/// Whether a tool ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// It ended by itself, or at its deadline.
    Done,
    /// It was cut off; what it did is unknown.
    Interrupted,
    /// It was never started.
    Refused,
}

/// What is left of a shell between two commands, and what a new one is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellState {
    /// The working directory.
    pub cwd: String,
    /// Exported variables that the commands added or changed.
    pub set: BTreeMap<String, String>,
    /// Variables that the commands removed.
    #[serde(default)]
    pub unset: BTreeSet<String>,
}

/// What a tool call came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// What the model reads.
    pub text: String,
    /// Whether it is flagged as an error.
    pub is_error: bool,
    /// Whether the tool ran.
    pub ran: Ran,
    /// The exit code, if a command ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The shell after the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellState>,
    /// The file that holds the whole output, if the text does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output: Option<String>,
    /// The run that the call launched and that goes on in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<String>,
    /// The kind of failure, where a person made the call and is to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// The task from the board that the call put into the agent's hands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<TaskId>,
    /// Whether the work ends with it for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
}

impl ToolResult {
    /// The call succeeded, and this is what it says.
    pub fn done(text: impl Into<String>) -> Self {
        Self { is_error: false, ran: Ran::Done, ..Self::refused(text) }
    }

    /// The call is answered without being run.
    pub fn refused(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: true,
            ran: Ran::Refused,
            exit_code: None,
            shell: None,
            full_output: None,
            launched: None,
            failure: None,
            claimed: None,
            ends: false,
        }
    }

    /// The call was under way when its process ended or was told to stop.
    pub fn interrupted(text: impl Into<String>) -> Self {
        Self { ran: Ran::Interrupted, ..Self::refused(text) }
    }
}
