//! The arguments about what sessions change: diff, undo, and the worktrees of agents. They are parsed here
//! and nothing else.

use clap::{Args, Subcommand, ValueEnum};

pub(super) const DIFF_EXAMPLES: &str = "\
Examples:
  convoke sessions diff s_k3
  convoke sessions diff s_k3 --stat
  convoke sessions diff s_k3 > changes.patch

Only the session's own changes are in it: what you
changed before, beside or after it is not.";

pub(super) const UNDO_EXAMPLES: &str = "\
Examples:
  convoke sessions undo s_k3 --dry-run
  convoke sessions undo s_k3

A file that is not as the session left it is
left alone, named with the reason, and makes the
exit code 3. Your index is not touched.";

pub(super) const WORKTREES_EXAMPLES: &str = "\
Examples:
  convoke worktrees list        of this repository
  convoke worktrees list s_k3   of one session
  convoke worktrees diff s_k3 a_7f
  convoke worktrees apply s_k3 a_7f
  convoke worktrees drop s_k3 a_7f --force

With a conflict `apply` writes nothing, lists it and
exits with 1; `convoke sessions undo` takes back what it
wrote. The worktree of a session that was started
with --isolation worktree is called `lead`.";

/// Where the lead of a new session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationFlag {
    // Plain comments: see OutputFormat.
    // In the directory itself.
    None,
    // In a git worktree of its own.
    Worktree,
}

/// How changes are shown.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct DiffFlags {
    /// Only how many lines of which files.
    #[arg(long, conflicts_with = "name_only")]
    pub(crate) stat: bool,
    /// Only the names of the files, one per line; a name with a line break or the like in it stands between
    /// quotes, as git writes it.
    #[arg(long)]
    pub(crate) name_only: bool,
    /// With --name-only: every name as it is, with a NUL behind it instead of a line break.
    #[arg(short = 'z', requires = "name_only")]
    pub(crate) nul: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) form: DiffFlags,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Say what would be restored and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreesCommand {
    /// The worktrees of this repository, or of one session.
    List(WorktreesListArgs),
    /// What an agent changed in its worktree, as a patch.
    Diff(WorktreeDiffArgs),
    /// Bring what an agent changed into the checkout: all of it or nothing.
    Apply(WorktreeArgs),
    /// Remove a worktree with its branch; work that was not applied needs --force.
    Drop(WorktreeDropArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorktreesListArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorktreeArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// The agent, by any unique prefix of its id.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
}

#[derive(Debug, Args)]
pub(crate) struct WorktreeDiffArgs {
    #[command(flatten)]
    pub(crate) which: WorktreeArgs,
    #[command(flatten)]
    pub(crate) form: DiffFlags,
}

#[derive(Debug, Args)]
pub(crate) struct WorktreeDropArgs {
    #[command(flatten)]
    pub(crate) which: WorktreeArgs,
    /// Drop it although its work was not applied.
    #[arg(long)]
    pub(crate) force: bool,
}
