//! The flags about asking a person: when a person is asked, what becomes of a question without an answer,
//! and, with `resume`, the answers. They are parsed here; what they mean is decided in `settings` and in
//! `questions`.

use clap::{Args, ValueEnum};

/// Flags about asking a person.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Asking you (docs/approvals.md)")]
pub(crate) struct ApprovalArgs {
    /// When to ask you: where a rule says so, or before every call that no rule allows [default: when-needed
    /// in a terminal, never elsewhere].
    #[arg(long, value_name = "never|when-needed|always", hide_possible_values = true)]
    pub(crate) ask: Option<AskFlag>,
    /// Where no person can be asked, an agent waits with its question, the others go on, and the session ends
    /// with exit code 5.
    #[arg(long = "wait-for-answers", alias = "park")]
    pub(crate) park: bool,
}

/// When a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskFlag {
    // Plain comments: see OutputFormat.
    // No person is asked.
    Never,
    // Where a rule says so.
    WhenNeeded,
    // Before everything that no rule allows.
    Always,
}

/// Answers to questions that wait, for `resume`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Answers (`convoke approvals list ID` shows the questions)")]
pub(crate) struct AnswerArgs {
    /// Allow these calls, by the ids of their questions or `all`; may be given several times.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,
    /// Refuse these calls; the agent is told.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) deny: Vec<String>,
    /// Answer a question of a workflow; `ID=@FILE` takes the answer from a file. May be given several times.
    #[arg(long, value_name = "ID=TEXT")]
    pub(crate) answer: Vec<String>,
    /// Have a workflow do without one of its unfinished calls, by its id such as wf_k3:7; that is no failure.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Say something to the lead; it is heard when the lead has nothing else to do.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
}

impl AskFlag {
    /// The word a person writes.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::WhenNeeded => "when-needed",
            Self::Always => "always",
        }
    }
}

impl ApprovalArgs {
    /// The first flag that was given, if any.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        match (self.ask, self.park) {
            (Some(_), _) => Some("--ask"),
            (None, true) => Some("--wait-for-answers"),
            (None, false) => None,
        }
    }

    /// These flags, and those of `below` where these say nothing.
    pub(super) fn merged(self, below: Self) -> Self {
        Self { ask: self.ask.or(below.ask), park: self.park || below.park }
    }
}

impl AnswerArgs {
    /// Whether calls are allowed or refused.
    pub(crate) fn is_given(&self) -> bool {
        !self.allow.is_empty() || !self.deny.is_empty()
    }
}
