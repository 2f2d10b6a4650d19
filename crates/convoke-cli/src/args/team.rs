//! The arguments of `convoke team`, `tasks`, `mail` and `export`. They are parsed here; what they mean is
//! decided in `commands/team`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};

use super::{ConfineArgs, TrustArgs};
use crate::settings::parse_duration;

pub(super) const TEAM_EXAMPLES: &str = "\
Examples:
  convoke team list             of the newest session
                                that has a team
  convoke team show alice --session s_k3
  convoke team stop alice --timeout 2m
  convoke team plan m_7f --approve
  convoke team plan m_7f --reject --feedback \"Smaller steps.\"
  convoke team host s_k3        drives its teammates from
                                this process or machine

They work while a session goes on in another process, and
when no process drives it. docs/teams.md says more.";

pub(super) const TASKS_EXAMPLES: &str = "\
Examples:
  convoke tasks add \"Write the parser\" --role coder
  convoke tasks add \"Test it\" --blocked-by t_7f --priority 2
  convoke tasks list
  convoke tasks show t_7f       with its history
  token=$(convoke tasks claim t_7f --as ci --for 10m)
  convoke tasks finish t_7f --as ci --token $token \\
    --result \"All green.\"
  convoke tasks retry t_7f

A task is named by any unique prefix of its id, or by #N.";

pub(super) const MAIL_EXAMPLES: &str = "\
Examples:
  convoke mail send alice \"Look at the lexer first.\"
  convoke mail send lead --urgent \"Stop: wrong branch.\"
  git diff | convoke mail send alice -
  convoke mail list             messages that wait
  convoke mail list alice --all what it has read too

Looking takes no message.";

pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  convoke export --to out
  convoke export s_k3 --to out --force

Writes out/.team/config.json, out/.team/inbox/NAME.jsonl
and out/.tasks/task_N.json. Files that it did not write,
or that were changed since, are left alone unless you say
--force.";

/// The session that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionArg {
    /// The session, by any unique prefix of its id [default: the newest of this directory that has a team].
    #[arg(long = "session", alias = "run", value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// The session that a list is about, in either place.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionChoice {
    /// The session, by any unique prefix of its id, or `last` [default: the newest of this directory that
    /// has a team].
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// The session, as a flag.
    #[arg(long = "session", alias = "run", value_name = "SESSION", conflicts_with = "session")]
    named: Option<String>,
}

impl SessionChoice {
    /// The session, as it was named.
    pub(crate) fn given(&self) -> Option<&str> {
        self.session.as_deref().or(self.named.as_deref())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Who belongs to the team and what each of them does.
    List(SessionChoice),
    /// One member: state, task, mail, spend and last words.
    Show(MemberArgs),
    /// Ask a teammate to stop; past its deadline it is stopped.
    Stop(TeamStopArgs),
    /// Answer a plan that waits for approval.
    Plan(TeamPlanArgs),
    /// Have a member begin a new history with a summary of the old one.
    Compact(TeamCompactArgs),
    /// Drive the teammates of a session from this process until there is nothing left for them to do.
    Host(Box<TeamHostArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct MemberArgs {
    /// The member's name; `lead` for the lead.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct TeamStopArgs {
    /// The teammate's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How long it may take to answer before it is stopped.
    #[arg(long, alias = "patience", value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("answer").required(true).args(["approve", "reject"])))]
#[command(
    override_usage = "convoke team plan <REQUEST> --approve\n       convoke team plan <REQUEST> --reject"
)]
pub(crate) struct TeamPlanArgs {
    /// The request, by any unique prefix of its id; `convoke team list` names those that wait.
    #[arg(value_name = "REQUEST")]
    pub(crate) request: String,
    /// Approve the plan.
    #[arg(long)]
    pub(crate) approve: bool,
    /// Reject the plan.
    #[arg(long)]
    pub(crate) reject: bool,
    /// What the teammate should know.
    #[arg(long, value_name = "TEXT")]
    pub(crate) feedback: Option<String>,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct TeamCompactArgs {
    /// The member's name; `lead` for the lead.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What the summary should keep above all.
    #[arg(long, value_name = "TEXT")]
    pub(crate) focus: Option<String>,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct TeamHostArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Only these teammates.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// How long a teammate without work keeps its shell before it sleeps [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) idle: Option<Duration>,
    /// How long the claim of a task holds without a sign of life of its holder; for tests.
    #[arg(long, hide = true, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) claim_ttl: Option<Duration>,
    /// How long this process may be silent before others take over what it drives; for tests.
    #[arg(long, hide = true, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) lease: Option<Duration>,
    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Write a task; its id is printed on stdout.
    Add(TaskAddArgs),
    /// Every task, who holds it and what it waits for.
    List(SessionChoice),
    /// One task, whole, with its history.
    Show(TaskNamedArgs),
    /// Claim a task for yourself or a script; the claim's token is printed on stdout.
    Claim(TaskClaimArgs),
    /// Say what a task that you claimed came to.
    Finish(TaskFinishArgs),
    /// Cancel a task, also one that a member holds.
    Cancel(TaskNamedArgs),
    /// Have a failed task tried again.
    Retry(TaskNamedArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TaskAddArgs {
    /// What it is about, in one line.
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: String,
    /// Everything that has to be known to do it; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT", conflicts_with = "description_file")]
    pub(crate) description: Option<String>,
    /// The same, from a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) description_file: Option<PathBuf>,
    /// When the task counts as done.
    #[arg(long, value_name = "TEXT")]
    pub(crate) criteria: Option<String>,
    /// What has to be done before it; may be given several times.
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<String>,
    /// The role that a teammate has to have to claim it.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// Tasks with greater numbers are claimed first.
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) priority: i32,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct TaskNamedArgs {
    /// The task, by any unique prefix of its id or by #N.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct TaskClaimArgs {
    /// The task, by any unique prefix of its id or by #N.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// The name to claim it under; not that of a member.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: String,
    /// Your role, for tasks that want one.
    #[arg(long, value_name = "ROLE", default_value = "", hide_default_value = true)]
    pub(crate) role: String,
    /// How long the claim holds; claiming the task again renews it.
    #[arg(long = "for", alias = "lease", value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub(crate) lease: Duration,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct TaskFinishArgs {
    /// The task, by any unique prefix of its id or by #N.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// The name it was claimed under.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: String,
    /// The token that the claim printed.
    #[arg(long, value_name = "N")]
    pub(crate) token: u64,
    /// What it came to; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT", conflicts_with = "failed")]
    pub(crate) result: Option<String>,
    /// The task failed, for this reason.
    #[arg(long, value_name = "WHY")]
    pub(crate) failed: Option<String>,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MailCommand {
    /// Write to a member; the message's id is printed on stdout.
    Send(MailSendArgs),
    /// Messages that wait to be read, with --all also those that were.
    List(MailListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MailSendArgs {
    /// Who is to read it; `lead` for the lead.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What it says; `-` reads it from stdin.
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// Let the message interrupt a command that its reader runs.
    #[arg(long)]
    pub(crate) urgent: bool,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct MailListArgs {
    /// The member; without one: all members.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Also messages that have been read.
    #[arg(long, short = 'a')]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) of: SessionArg,
}

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The session, by any unique prefix of its id [default: the newest of this directory that has a team].
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// The directory to write to; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Replace files that it did not write, or that were changed since.
    #[arg(long)]
    pub(crate) force: bool,
}
