//! The command line: every command and flag, and the texts of `--help`. It parses; it reads no file and no
//! environment.

mod approval;
mod control;
mod examples;
mod flags;
mod near;
#[cfg(test)]
mod reference_tests;
mod server;
mod session;
mod sessions;
mod team;
mod trees;
mod workflow;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::approval::{AnswerArgs, ApprovalArgs};
pub(crate) use self::control::{ControlArgs, RetryArgs};
use self::examples::{
    APPROVALS_EXAMPLES, COMPLETIONS_EXAMPLES, EXAMPLES, MAN_EXAMPLES, RESUME_EXAMPLES, RUN_EXAMPLES,
    SIM_EXAMPLES,
};
#[cfg(test)]
pub(crate) use self::flags::SandboxFlag;
pub(crate) use self::flags::{
    AgentArgs, BudgetArgs, ConfineArgs, EndArgs, FanOutArgs, SessionFlags, SettingFlags, Switch, TaskArgs,
    TeamArgs,
};
use self::near::mistyped;
pub(crate) use self::near::{nearest, no_command};
pub(crate) use self::server::{DoctorArgs, SimArgs};
pub(crate) use self::session::SessionArgs;
pub(crate) use self::sessions::{ExportArgs, ForkArgs, ListArgs, PruneArgs, SessionsCommand, ShowArgs};
pub(crate) use self::team::{
    FilesArgs, MailCommand, MailListArgs, MailSendArgs, TaskAddArgs, TaskClaimArgs, TaskFinishArgs,
    TaskNamedArgs, TasksCommand, TeamCommand, TeamCompactArgs, TeamHostArgs, TeamPlanArgs, TeamStopArgs,
};
pub(crate) use self::trees::{DiffArgs, DiffFlags, IsolationFlag, UndoArgs, WorktreeArgs, WorktreesCommand};
pub(crate) use self::workflow::{
    EditArgs, GivenArgs, NamedArgs, TrustArgs, WorkflowCheckArgs, WorkflowCommand, WorkflowListArgs,
    WorkflowPlanArgs, WorkflowRunArgs, WorkflowSaveArgs, WorkflowShowArgs,
};
use crate::failure::Failure;

/// Runs Claude agents on a task in a directory, survives anything, and answers with evidence and a bill.
#[derive(Debug, Parser)]
#[command(name = "convoke", version, after_help = EXAMPLES, max_term_width = 120)]
#[command(override_usage = "convoke [OPTIONS] [TASK]...\n       convoke [OPTIONS] <COMMAND>")]
pub(crate) struct Cli {
    /// What is to be done, in any number of words (the same as `convoke run TASK`).
    #[arg(value_name = "TASK")]
    pub(crate) task: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) flags: SessionFlags,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command has.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Work in this directory instead of the current one.
    #[arg(long, short = 'C', value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,
    /// The journal, where everything is recorded: a file, or a postgres:// URL.
    #[arg(long, value_name = "PLACE", global = true)]
    pub(crate) journal: Option<String>,
    /// The form of what is printed on stdout [default: text].
    #[arg(long, short = 'o', value_name = "FORMAT", global = true)]
    pub(crate) output: Option<OutputFormat>,
    /// Only the answer, warnings and errors.
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,
    /// Print the whole result on stderr: each finding with its evidence, agents, spend, cache.
    #[arg(long, short = 'v', global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Lines of text alone, for screen readers and simple terminals: nothing moves, nothing is coloured.
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Escape lines that a CI runner would obey (::add-mask::, ##[group]) [default: auto, on in GitHub
    /// Actions].
    #[arg(long, value_name = "WHEN", global = true)]
    pub(crate) ci_safe: Option<CiSafe>,
}

/// When lines that a CI runner would obey are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CiSafe {
    // In GitHub Actions.
    Auto,
    On,
    Off,
}

impl CiSafe {
    /// The word of flags and files.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// All flags that settings are made from, wherever on the command line they stood.
#[derive(Debug, Clone, Default)]
pub(crate) struct GlobalArgs {
    pub(crate) place: PlaceArgs,
    pub(crate) settings: SettingFlags,
}

/// The form of what is printed on stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    // Plain comments: a doc comment on a value makes every option of every help page take three lines.
    // For people.
    #[default]
    Text,
    // One JSON document.
    Json,
    // One JSON event per line, as they happen.
    Jsonl,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lead a session in this terminal (the same as `convoke` alone): talk to the lead, watch all agents.
    #[command(after_help = session::SESSION_EXAMPLES)]
    Session(SessionArgs),
    /// Give an agent a task (without one: review this directory).
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Go on with a session that was cut off, stopped or failed; one that has ended prints its answer again.
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ResumeArgs),
    /// List, show, watch, pause, stop, retry, fork, export, take back and remove sessions.
    #[command(subcommand, alias = "runs", after_help = control::SESSIONS_EXAMPLES)]
    Sessions(SessionsCommand),
    /// See which calls wait for your answer.
    #[command(subcommand, after_help = APPROVALS_EXAMPLES)]
    Approvals(ApprovalsCommand),
    /// List, show, take over and drop the worktrees of agents.
    #[command(subcommand, after_help = trees::WORKTREES_EXAMPLES)]
    Worktrees(WorktreesCommand),
    /// Run, plan, list, show, check and save workflows: programs that start agents.
    #[command(subcommand, after_help = workflow::WORKFLOW_EXAMPLES)]
    Workflow(WorkflowCommand),
    /// The team of a session: list, show and stop teammates, answer plans, drive them from here.
    #[command(subcommand, after_help = team::TEAM_EXAMPLES)]
    Team(TeamCommand),
    /// The board of a session: add, list, show, claim, finish, cancel and retry tasks.
    #[command(subcommand, after_help = team::TASKS_EXAMPLES)]
    Tasks(TasksCommand),
    /// Write to members of a team, and look at their mail without taking it from them.
    #[command(subcommand, after_help = team::MAIL_EXAMPLES)]
    Mail(MailCommand),
    /// Write a team, its mail and its tasks as files.
    #[command(after_help = team::EXPORT_EXAMPLES)]
    Export(FilesArgs),
    /// Estimate what a task will cost, from what this journal has recorded; nothing is sent.
    Plan(Box<PlanArgs>),
    /// Tokens and dollars, by session and by model.
    Cost(CostArgs),
    /// Start the simulator: a strict Messages API server on this machine.
    #[command(after_help = SIM_EXAMPLES)]
    Sim(SimArgs),
    /// Show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check what Convoke needs, and say what to do about what is missing.
    Doctor(DoctorArgs),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the manual page of convoke or of one of its commands, or write all of them.
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What is to be done; `-` reads it from stdin, `@FILE` from a file, up to 8 MiB. It has to leave the
    /// model room to work: keep what is longer in files, and have them read.
    #[arg(value_name = "TASK")]
    pub(crate) task: Vec<String>,
    #[command(flatten)]
    pub(crate) flags: SessionFlags,
    /// Whether no command stood before the task: its first word may be a workflow's name.
    #[arg(skip)]
    pub(crate) is_bare: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session, by any unique prefix of its id; alone: the newest unfinished session of this directory.
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Write off the unconfirmed cost of requests that were cut off; the bill may then pass the cap by as
    /// much.
    #[arg(long)]
    pub(crate) forgive: bool,
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
    #[command(flatten)]
    pub(crate) edit: EditArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// The open questions of a session, with their ids.
    List(ApprovalsListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsListArgs {
    /// The session, by any unique prefix of its id.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The task that is planned for; what it says changes nothing, the model, the mode and the caps do.
    #[arg(value_name = "TASK")]
    pub(crate) task: Vec<String>,
    #[command(flatten)]
    pub(crate) flags: SettingFlags,
}

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// One session, by any unique prefix of its id; alone: all sessions of the journal.
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every key, its value and where it came from.
    Show(ConfigShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) flags: SettingFlags,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// A command, such as `sessions undo`; alone: convoke itself.
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Write the page, and one for every command below it, to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// What `convoke sessions` was called once. It still works, and no text names it.
const OLD_SESSIONS: &str = "runs";

/// The words that are commands.
const COMMANDS: &[&str] = &[
    "session",
    "run",
    "resume",
    "sessions",
    OLD_SESSIONS,
    "approvals",
    "worktrees",
    "workflow",
    "team",
    "tasks",
    "mail",
    "export",
    "plan",
    "cost",
    "sim",
    "config",
    "doctor",
    "completions",
    "man",
    "help",
];

impl Cli {
    /// The command that is meant, and the flags that settings are made from. A task without a command is a
    /// session, unless it is one word: that is a workflow, or far more often a mistyped command than a task.
    /// Neither a task nor a command is a session where a person sits, and a review of the directory
    /// elsewhere.
    pub(crate) fn split(self, has_person: bool) -> Result<(GlobalArgs, Command), Failure> {
        let Cli { place, mut flags, mut named, task, command } = self;
        let mut command = match command {
            Some(command) if task.is_empty() => command,
            Some(_) => {
                let hint = format!("to give it as a task, write `convoke run {}`", task.join(" "));
                return Err(
                    Failure::usage(format!("'{}' stands before a command", task.join(" "))).hint(hint)
                );
            }
            None if has_person && task.is_empty() && session::is_meant(&place, &flags) => {
                Command::Session(SessionArgs::default())
            }
            None => match only_word(&task) {
                Some(word) => {
                    let args = WorkflowRunArgs::bare(
                        word.strip_prefix('/').unwrap_or(word).to_owned(),
                        std::mem::take(&mut named),
                    );
                    Command::Workflow(WorkflowCommand::Run(Box::new(args)))
                }
                // A word behind a slash is a workflow's name or nothing.
                None => match mistyped(&task)
                    .filter(|_| !task.first().is_some_and(|first| first.starts_with('/')))
                {
                    Some(failure) => return Err(failure),
                    None => Command::Run(RunArgs { task, flags: SessionFlags::default(), is_bare: true }),
                },
            },
        };
        refuse(named.first_flag())?;
        let globals = match &mut command {
            Command::Session(args) => {
                session::check(&place)?;
                GlobalArgs { place, settings: session::settle(flags, args)? }
            }
            Command::Run(args) => {
                let SessionFlags { settings, task, end } = std::mem::take(&mut args.flags);
                let settings = settings.over(flags.settings)?;
                let task = task.over(flags.task)?;
                let end = end.merged(flags.end);
                args.flags = SessionFlags { settings: settings.clone(), task, end };
                GlobalArgs { place, settings }
            }
            Command::Config(ConfigCommand::Show(ConfigShowArgs { flags: own }))
            | Command::Doctor(DoctorArgs { flags: own, .. }) => {
                refuse(flags.task.first_flag().or(flags.end.first_flag()))?;
                GlobalArgs { place, settings: std::mem::take(own).over(flags.settings)? }
            }
            Command::Plan(args) => {
                refuse(flags.task.first_flag().or(flags.end.first_flag()))?;
                GlobalArgs { place, settings: std::mem::take(&mut args.flags).over(flags.settings)? }
            }
            Command::Resume(args) => {
                let settings = control::go_on(
                    flags,
                    (&mut args.budget, &mut args.confine, &mut args.trust, &mut args.end),
                )?;
                GlobalArgs { place, settings }
            }
            Command::Sessions(SessionsCommand::Retry(args)) => {
                let settings = control::go_on(
                    flags,
                    (&mut args.budget, &mut args.confine, &mut args.trust, &mut args.end),
                )?;
                GlobalArgs { place, settings }
            }
            Command::Workflow(WorkflowCommand::Run(args)) => {
                args.fresh |= std::mem::take(&mut flags.task.fresh);
                args.take_up |= std::mem::take(&mut flags.task.take_up);
                refuse(flags.task.first_flag())?;
                if args.take_up && args.fresh {
                    return Err(Failure::usage("--continue and --fresh cannot be used together"));
                }
                args.settings = std::mem::take(&mut args.settings).over(flags.settings)?;
                args.end = std::mem::take(&mut args.end).merged(flags.end);
                GlobalArgs { place, settings: args.settings.clone() }
            }
            Command::Workflow(WorkflowCommand::Plan(args)) => {
                refuse(flags.task.first_flag().or(flags.end.first_flag()))?;
                GlobalArgs { place, settings: std::mem::take(&mut args.settings).over(flags.settings)? }
            }
            Command::Team(TeamCommand::Host(args)) => {
                GlobalArgs { place, settings: control::host(flags, args)? }
            }
            Command::Sessions(_)
            | Command::Team(_)
            | Command::Tasks(_)
            | Command::Mail(_)
            | Command::Export(_)
            | Command::Approvals(_)
            | Command::Worktrees(_)
            | Command::Workflow(_)
            | Command::Cost(_)
            | Command::Sim(_)
            | Command::Completions(_)
            | Command::Man(_) => {
                refuse(flags.first_flag())?;
                GlobalArgs { place, ..GlobalArgs::default() }
            }
        };
        Ok((globals, command))
    }
}

/// A flag that the command cannot use is told, not ignored.
fn refuse(flag: Option<&str>) -> Result<(), Failure> {
    let Some(flag) = flag else { return Ok(()) };
    let what = format!("{flag} has no meaning for this command");
    Err(Failure::usage(what).hint("an agent keeps what it was started with; see `convoke run --help`"))
}

/// The only word of a task, if it is one and says nothing about where the task is.
fn only_word(task: &[String]) -> Option<&str> {
    let [word] = task else { return None };
    let other_form = word == "-" || word.starts_with('@');
    (!other_form && !word.trim().contains(char::is_whitespace)).then_some(word)
}
