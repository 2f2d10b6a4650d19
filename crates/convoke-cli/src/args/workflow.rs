//! The arguments about saved workflows, and the flag that trusts a project's. They are parsed here and
//! nothing else.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::flags::{EndArgs, SettingFlags};

pub(super) const WORKFLOW_EXAMPLES: &str = "\
Examples:
  convoke workflow list
  convoke workflow plan review
  convoke workflow run review
  convoke workflow show review
  convoke workflow check flow.js
  convoke workflow save nightly --from flow.js

Saved workflows are found by name: those of the project
(.convoke/workflows, .claude/workflows, from here up to
the root of the repository), then yours, then those
that are shipped. docs/workflows.md says how to write
one.";

const SAVE_EXAMPLES: &str = "\
Examples:
  convoke workflow save nightly --from flow.js
  convoke workflow save nightly --from wf_k3 --user
  convoke workflow save nightly --from flow.js --force

The name must be the one that its meta says.";

const CHECK_EXAMPLES: &str = "\
Examples:
  convoke workflow check flow.js
  convoke workflow check review audit
  convoke workflow check .convoke/workflows/*.js -o json

Prints FILE:LINE:COLUMN: MESSAGE for every error of
every file; the exit code is 2 if there is one.";

const RUN_EXAMPLES: &str = "\
Examples:
  convoke workflow run review
  convoke workflow run review --args '\"src/\"'
  convoke workflow run audit --arg-text 'swallowed errors'
  convoke workflow run flow.js --args @args.json
  convoke workflow run migrate --arg-text 'replace a by b'
  convoke review                the same by its name alone

The value it returns is on stdout. Exit codes: 0 complete,
1 failed, 3 partial, 4 a step did not fit the budget,
5 waits for your answer, or was paused or stopped:
`convoke resume` goes on.";

const PLAN_EXAMPLES: &str = "\
Examples:
  convoke workflow plan review
  convoke workflow plan flow.js --args '[1, 2]' -o json

Nothing is sent and nothing is spent: the program runs
against stub answers drawn from its schemas, once with as
little and once with as much as they allow.";

/// The flag about what a project brings along.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustArgs {
    /// Load the workflows, agents and memory files (CLAUDE.md, AGENTS.md) that this project brings along, for
    /// this once; `trusted` in your configuration does so for good.
    #[arg(long)]
    pub(crate) trust_project: bool,
}

impl TrustArgs {
    /// The first flag that was given, if any.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        self.trust_project.then_some("--trust-project")
    }

    /// These flags, and those of `below` where these say nothing.
    pub(super) fn merged(self, below: Self) -> Self {
        Self { trust_project: self.trust_project || below.trust_project }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Every saved workflow and kind of agent, nearest first, with what is wrong with it.
    List(WorkflowListArgs),
    /// What a workflow says of itself, and its source.
    Show(WorkflowShowArgs),
    /// Check workflows and list every mistake, without running them.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(WorkflowCheckArgs),
    /// Run a workflow: by its name, or from a file.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<WorkflowRunArgs>),
    /// Show what a workflow would do: phases, agents, and the cost from low to high.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Box<WorkflowPlanArgs>),
    /// Save a workflow under its name.
    #[command(after_help = SAVE_EXAMPLES)]
    Save(WorkflowSaveArgs),
}

/// How workflows are listed.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct WorkflowListArgs {
    /// Show the whole descriptions, however long the lines become.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// What a program is given.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "The workflow")]
pub(crate) struct GivenArgs {
    /// Its arguments: JSON, or `@FILE` or `-` (stdin) for what holds JSON, up to 8 MiB.
    #[arg(long, value_name = "JSON|@FILE|-", conflicts_with = "arg_text", allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    /// One plain text as its arguments.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) arg_text: Option<String>,
}

/// An edited script, for `resume`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EditArgs {
    /// Go on with this edited script; calls that are done and unchanged are not made again.
    #[arg(long, value_name = "FILE", help_heading = "The workflow", conflicts_with_all = ["allow", "deny", "answer", "skip", "say"])]
    pub(crate) script: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) given: GivenArgs,
    /// Do not ask first, whatever it is and however many agents it may start.
    #[arg(long, short = 'y', help_heading = "The workflow", requires = "script")]
    pub(crate) yes: bool,
}

impl EditArgs {
    /// The first flag that means nothing without a script, if one was given and no script is.
    pub(crate) fn astray(&self) -> Option<&'static str> {
        match (&self.script, &self.given.args, &self.given.arg_text) {
            (None, Some(_), _) => Some("--args"),
            (None, None, Some(_)) => Some("--arg-text"),
            _ => None,
        }
    }
}

/// The same behind the name of a workflow that stands alone; the help of `workflow run` explains them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NamedArgs {
    #[arg(long, hide = true, conflicts_with = "arg_text", allow_hyphen_values = true)]
    args: Option<String>,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    arg_text: Option<String>,
    #[arg(long, short = 'y', hide = true)]
    yes: bool,
}

impl NamedArgs {
    /// The first flag that was given, if any.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        match (&self.args, &self.arg_text, self.yes) {
            (Some(_), ..) => Some("--args"),
            (_, Some(_), _) => Some("--arg-text"),
            (.., true) => Some("--yes"),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WorkflowRunArgs {
    /// A saved workflow, or a file; naming a file is trust in that file.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) named: String,
    #[command(flatten)]
    pub(crate) given: GivenArgs,
    /// Do not ask first, whatever it is and however many agents it may start.
    #[arg(long, short = 'y', help_heading = "The workflow")]
    pub(crate) yes: bool,
    /// Go on with the unfinished run of the same script and arguments here, if there is one.
    #[arg(long = "continue", conflicts_with = "fresh", help_heading = "The workflow")]
    pub(crate) take_up: bool,
    /// Ignore unfinished runs and cached results of equal work: all of it is asked for anew.
    #[arg(long, help_heading = "The workflow")]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    #[command(flatten)]
    pub(crate) end: EndArgs,
    /// Whether it was the only word of the command line, which may be a mistyped command too.
    #[arg(skip)]
    pub(crate) is_bare: bool,
}

impl WorkflowRunArgs {
    /// What a single word means that is no command.
    pub(super) fn bare(word: String, named: NamedArgs) -> Self {
        let NamedArgs { args, arg_text, yes } = named;
        Self {
            named: word,
            given: GivenArgs { args, arg_text },
            yes,
            take_up: false,
            fresh: false,
            settings: SettingFlags::default(),
            end: EndArgs::default(),
            is_bare: true,
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WorkflowPlanArgs {
    /// A saved workflow, or a file.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) named: String,
    #[command(flatten)]
    pub(crate) given: GivenArgs,
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowShowArgs {
    /// The workflow's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowCheckArgs {
    /// Files, or names of saved workflows.
    #[arg(value_name = "FILE|NAME", required = true)]
    pub(crate) given: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowSaveArgs {
    /// Its name, which is also the file's: the name in the workflow's `meta` object.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The file to save, or a run whose script is saved: its id, or any unique beginning of it.
    #[arg(long, value_name = "FROM")]
    pub(crate) from: PathBuf,
    /// Save it for yourself, in every directory.
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,
    /// Save it in this project, for all who work in it [default].
    #[arg(long)]
    pub(crate) project: bool,
    /// Replace the one that is there.
    #[arg(long)]
    pub(crate) force: bool,
}
