//! The arguments of `convoke sessions`: what is listed, shown, forked, exported and removed. They are
//! parsed here and nothing else.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{ControlArgs, DiffArgs, RetryArgs, UndoArgs};
use crate::settings::parse_duration;

const FORK_EXAMPLES: &str = "\
Examples:
  convoke sessions fork s_k3    a new session that begins
                                with all that was said
  convoke sessions fork s_k3 --at 2
                                only up to the end of what
                                was said second; `sessions
                                show` tells the numbers
  convoke session s_9x          goes on with the new one

The old one stays as it is, and its team, its tasks and its
runs in the background stay with it. What was said is not
paid for again.";

const PRUNE_EXAMPLES: &str = "\
Examples:
  convoke sessions prune s_k3 --dry-run
  convoke sessions prune --older-than 30d --finished
  convoke sessions prune --finished --yes
  convoke sessions prune --finished --all --dry-run
                                of every directory

Without --all, only sessions of this directory go. With a
session goes what `sessions undo` needs.";

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// The sessions of this directory, newest first.
    List(ListArgs),
    /// Everything that happened in a session.
    Show(ShowArgs),
    /// What another process does in a session, as it happens.
    Watch(ControlArgs),
    /// Have the process that drives a session finish what is under way and end.
    Pause(ControlArgs),
    /// The same, and record the session's workflow as stopped.
    Stop(ControlArgs),
    /// Try what failed in a workflow again, and nothing else.
    Retry(Box<RetryArgs>),
    /// Begin a new session with what was said in another.
    #[command(after_help = FORK_EXAMPLES)]
    Fork(ForkArgs),
    /// A session's events as JSON lines.
    Export(ExportArgs),
    /// What a session changed in its directory, as a patch.
    #[command(after_help = super::trees::DIFF_EXAMPLES)]
    Diff(DiffArgs),
    /// Take back what a session changed, in files that were not changed since.
    #[command(after_help = super::trees::UNDO_EXAMPLES)]
    Undo(UndoArgs),
    /// Remove sessions and their output files for good.
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Sessions of every directory.
    #[arg(long, short = 'a', conflicts_with = "dir")]
    pub(crate) all: bool,
    /// Sessions of this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// One agent of it, by any unique prefix of its id.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Go on showing what happens until the session ends.
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// The whole report of an ended session: the answer, every finding with its evidence, every agent.
    #[arg(long, conflicts_with_all = ["agent", "follow", "value", "call", "log"])]
    pub(crate) report: bool,
    /// The whole value that its workflow returned, and nothing else.
    #[arg(long, conflicts_with_all = ["agent", "follow"])]
    pub(crate) value: bool,
    /// One call of its workflow: the prompt, the answer and who gave it.
    #[arg(long, value_name = "N", conflicts_with_all = ["agent", "follow", "value"])]
    pub(crate) call: Option<u32>,
    /// Every phase and every line of its workflow's log, in order.
    #[arg(long, conflicts_with_all = ["agent", "follow", "value", "call"])]
    pub(crate) log: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// The last question and answer that is taken along, by its number; alone: the last one that has ended.
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Write to this file, which must not exist yet.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Sessions to remove, by any unique prefix of their ids.
    #[arg(value_name = "SESSION", conflicts_with_all = ["older_than", "finished", "all"])]
    pub(crate) runs: Vec<String>,
    /// Sessions whose last event is older than this, such as 30d or 12h.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    pub(crate) older_than: Option<Duration>,
    /// Sessions that are done or failed; together with --older-than: only those of that age.
    #[arg(long)]
    pub(crate) finished: bool,
    /// Sessions of every directory, and not of this one alone.
    #[arg(long, short = 'a')]
    pub(crate) all: bool,
    /// Say what would go, with its undo data and its size, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}
